//! `forests` treats a hierarchy with several parents as a mixture of forests. It is meant for
//! training through a wide DAG.
//!
//! If every label keeps only one of its parents, the hierarchy becomes a forest, which is exact.
//! Over all ways to choose, an edge is in a fraction `ρ = 1 / parents of its child` of the forests.
//! So tree-reweighted messages (Wainwright, Jaakkola and Willsky 2005) with these fractions bound
//! log Z from above once they have converged. The bound is convex in the scores, so a head that is
//! trained through it has one optimum. The Bethe log Z of `lbp` and `forest-bp` has many, and
//! training through it may collapse, as on the Gene Ontology. That is why training falls back to
//! `forests`. A model that was trained through an approximation should be used with the same one
//! (Wainwright 2006).
//!
//! With `b = ℓ + Σ ρ m` over the edges of a label, `w' = w / ρ`, and the cavities
//! `c = b_child − down`, `p = b_parent − up` of an edge: `up = log (1 + e^c) / (1 + e^{c − w'})`,
//! `down = log (e^p + e^{−w'}) / (1 + e^p)`, and
//! `log Z = Σ_i (1 − Σ ρ) log(1 + e^b) + Σ_e ρ log(1 + e^p + e^{c − w'} + e^{p + c})`.
//!
//! An iteration goes up the hierarchy and down again. On a forest one iteration is exact. On the
//! way down a child with several parents answers at once, before its parent sends to the next
//! child, and its messages are damped. If they were all updated at the same time, parents that
//! share many children would oscillate between two states, as on the Gene Ontology, and training
//! would collapse.
//!
//! `trw` shares no step with it. Its trees are listed, its messages cross the pairs and tables of any
//! factor graph, and its bound is recomputed on each tree; a hierarchy needs only the closed
//! fractions and sums above, in single precision as well.
//!
//! A row costs O(edges) per iteration, with four exponentials per edge. Rows run side by side.
//! [`messages`] has the arithmetic.

mod messages;

use crate::infer::{Kernel, forward_to_own};
use messages::{ForestMessages, HierarchyEdges};

use crate::infer::registers::run_in_registers;
use crate::infer::{Answers, Block, Diagnosis, Evidence, MessageOptions, Number, Options, Unfit};
use crate::model::{Model, Relation};

/// A hierarchy laid out for messages up and down.
#[derive(Debug)]
pub(crate) struct Forests {
    graph: HierarchyEdges,
    bias: Vec<f64>,
    constant: f64,
    terms: usize,
    /// Terms without a cost: `(term, parent, child)`.
    idle: Vec<(usize, usize, usize)>,
    options: MessageOptions,
}

impl Forests {
    pub(crate) fn compile(model: &Model, options: &Options) -> Result<Forests, Unfit> {
        if !model.one_of().is_empty() || model.dense().is_some() {
            let why = "it can handle hierarchies only, without one-of groups or dense semantics";
            return Err(Unfit::Shape(String::from(why)));
        }
        let (mut edges, mut idle) = (Vec::new(), Vec::new());
        for (term, relation) in model.relations().iter().enumerate() {
            match relation {
                Relation::Hierarchy { parent, child, cost } if *cost > 0.0 => {
                    edges.push((term, parent.index(), child.index(), *cost));
                }
                Relation::Hierarchy { parent, child, .. } => {
                    idle.push((term, parent.index(), child.index()));
                }
                other => {
                    let names: Vec<&str> = other
                        .labels()
                        .iter()
                        .map(|id| model.names()[id.index()].as_str())
                        .collect();
                    let why = format!(
                        "it can handle hierarchies only, but {} exclude each other",
                        names.join(", ")
                    );
                    return Err(Unfit::Shape(why));
                }
            }
        }
        Ok(Forests {
            graph: HierarchyEdges::new(model.len(), &edges, options.messages.damping),
            bias: model.bias().to_vec(),
            constant: model.constant(),
            terms: model.terms(),
            idle,
            options: options.messages,
        })
    }

    /// Operations per row, for the number of iterations that moderate scores need.
    pub(crate) fn operations(&self) -> f64 {
        let iterations = f64::from(self.options.iterations.min(20));
        60.0 * iterations * self.graph.edges.len() as f64 + 10.0 * self.bias.len() as f64
    }

    pub(crate) fn bytes(&self) -> u64 {
        (64 * 8 * (2 * self.graph.edges.len() + 3 * self.bias.len())) as u64
    }

    pub(crate) fn run<T: Number>(&self, block: &Block<'_, T>, answers: &mut Answers<'_, T>) {
        // Sixteen singles or eight doubles fill a register. A single row has the same bits.
        let one = Self::run_rows::<T, 1>;
        if size_of::<T>() == size_of::<f32>() {
            run_in_registers(self, block, answers, 16, one, Self::run_rows::<T, 16>);
        } else {
            run_in_registers(self, block, answers, 8, one, Self::run_rows::<T, 8>);
        }
    }

    /// Runs some rows. Lanes beyond them repeat the last row.
    fn run_rows<T: Number, const L: usize>(
        &self,
        block: &Block<'_, T>,
        rows: std::ops::Range<usize>,
        answers: &mut Answers<'_, T>,
    ) {
        let n = self.bias.len();
        let mut messages = ForestMessages::<T, L>::new(&self.graph);
        let mut possible = [true; L];
        let clamped = block.evidence.is_some();
        let mut evidence = vec![Evidence::Unknown; n];
        for lane in 0..L {
            let row = (rows.start + lane).min(rows.end - 1);
            for (label, (&score, &bias)) in block.row(row).iter().zip(&self.bias).enumerate() {
                messages.scores[label].0[lane] =
                    score + <T as crate::numeric::Scalar>::from_f64(bias);
            }
            if clamped {
                (0..n).for_each(|label| evidence[label] = block.evidence(row, label));
                possible[lane] = self.graph.imply(&mut evidence);
                messages.clamp(lane, &evidence);
            }
        }
        let mut diagnosis = [Diagnosis::default(); L];
        let mut active = possible;
        for iteration in 1..=self.options.iterations {
            if active == [false; L] {
                break;
            }
            let change = messages.iterate(&self.graph, clamped, &active);
            for lane in 0..L {
                if active[lane] {
                    let residual = change.0[lane].to_f64();
                    let converged = residual <= self.options.tolerance && iteration > 1;
                    diagnosis[lane] = Diagnosis {
                        iterations: iteration,
                        converged,
                        residual,
                        ..Diagnosis::default()
                    };
                    active[lane] = !converged;
                }
            }
        }
        let log_partition = messages.log_partition(&self.graph, clamped);
        for (lane, row) in rows.enumerate() {
            answers.diagnosis[row] = diagnosis[lane];
            answers.log_partition[row] = match possible[lane] {
                true => self.constant + log_partition[lane],
                false => f64::NEG_INFINITY,
            };
            for (label, shares) in messages.shares.iter().enumerate() {
                answers.marginals[row * n + label] = shares.0[lane];
            }
            if let Some(all) = &mut answers.expectations {
                let out = &mut all[row * self.terms..(row + 1) * self.terms];
                self.write_expectations(&messages, lane, out);
            }
        }
    }

    fn write_expectations<T: Number, const L: usize>(
        &self,
        messages: &ForestMessages<T, L>,
        lane: usize,
        out: &mut [T],
    ) {
        for (at, edge) in self.graph.edges.iter().enumerate() {
            out[edge.term] = messages.violated(&self.graph, at, lane);
        }
        let share = |label: usize| messages.shares[label].0[lane];
        for &(term, parent, child) in &self.idle {
            let off = <T as crate::numeric::Scalar>::ONE - share(parent);
            out[term] = share(child) * off;
        }
    }
}

impl Kernel for Forests {
    forward_to_own!();
}
