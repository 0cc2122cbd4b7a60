//! Which engine reconciles which part of a graph, why, and at what cost.

use std::fmt;

use serde::Serialize;

use crate::Named;
use crate::graph::LabelId;

/// The engines. The set is closed, and compiling a graph picks one for each of its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReconcileEngine {
    /// Merges blocks of a tree of hierarchy: exact.
    Pool,
    /// Splits a hierarchy of any shape by maximum closures: exact.
    Closure,
    /// Newton's method by messages on forests whose siblings exclude each other.
    Family,
    /// The weighted geometric mean of softmax heads: exact.
    Categorical,
    /// Newton's method on the multipliers of any relations, with a sparse factorisation.
    Newton,
}

impl Named for ReconcileEngine {
    const WHAT: &'static str = "engine";
    const CHOICES: &'static [(&'static str, ReconcileEngine)] = &[
        ("pool", ReconcileEngine::Pool),
        ("closure", ReconcileEngine::Closure),
        ("family", ReconcileEngine::Family),
        ("categorical", ReconcileEngine::Categorical),
        ("newton", ReconcileEngine::Newton),
    ];
}

impl fmt::Display for ReconcileEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The parts of a graph that one engine reconciles.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlannedPart {
    /// The engine.
    pub engine: ReconcileEngine,
    /// How many parts of the graph it handles. No relation connects two parts.
    pub parts: usize,
    /// How many labels they have.
    pub labels: usize,
    /// How many inequalities and equations describe their relations.
    pub rows: usize,
    /// Why this engine.
    pub why: String,
    /// Whether the answer is exact up to rounding. Otherwise each row has a certified distance.
    pub exact: bool,
    /// Whether the inequalities describe exactly the probabilities that some distribution over
    /// legal label sets has. Otherwise they allow more. The guarantee holds all the same, but the
    /// gain may be smaller than it could be.
    pub hull: bool,
    /// Predicted elementary operations per row.
    pub operations: f64,
}

/// A sum that consistent probabilities keep: `Σ members ≤ above`, `≤ 1` or `=`.
#[derive(Debug, Clone, PartialEq)]
pub struct SumLimit {
    /// The labels that are added up.
    pub members: Vec<LabelId>,
    /// The label whose probability is the limit. `None` stands for 1.
    pub above: Option<LabelId>,
    /// Whether the sum equals its limit.
    pub equal: bool,
    /// What one unit of violation costs: infinite for a hard relation. A soft exclusion of more than
    /// two labels counts for each of the limits 1, 2, … below the number of its labels.
    pub cost: f64,
}

/// What compiling found.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct ReconcilePlan {
    /// The parts by engine, cheapest engine first.
    pub parts: Vec<PlannedPart>,
    /// Labels that no legal label set contains. Their probability becomes 0.
    pub never: usize,
    /// Labels that every legal label set contains. Their probability becomes 1.
    pub always: usize,
    /// Labels without relations. Their probabilities stay as they are.
    pub free: usize,
    /// How many relations are soft. A violation then costs at most their strength.
    pub soft: usize,
}

impl ReconcilePlan {
    /// Whether every part is described exactly.
    pub fn is_hull(&self) -> bool {
        self.parts.iter().all(|part| part.hull)
    }

    /// Predicted elementary operations per row.
    pub fn operations(&self) -> f64 {
        self.parts.iter().map(|part| part.operations).sum()
    }
}

impl fmt::Display for ReconcilePlan {
    /// One line for each engine, and one for labels that no engine handles.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.parts {
            let answer =
                if part.exact { "exact" } else { "to a tolerance, with a certified distance" };
            let hull = if part.hull {
                "the inequalities describe the consistent probabilities exactly"
            } else {
                "the inequalities allow some probabilities that no distribution has"
            };
            writeln!(
                f,
                "{}: {} labels in {} parts, {} inequalities ({}); {answer}; {hull}; about {:.0} operations per row",
                part.engine, part.labels, part.parts, part.rows, part.why, part.operations
            )?;
        }
        let fixed = [
            (self.never, "can never be on and get the probability 0"),
            (self.always, "are always on and get the probability 1"),
            (self.free, "have no relations and keep their probabilities"),
        ];
        for (count, what) in fixed {
            if count > 0 {
                writeln!(f, "{count} labels {what}")?;
            }
        }
        if self.soft > 0 {
            writeln!(
                f,
                "{} relations are soft: violating one costs at most its strength",
                self.soft
            )?;
        }
        Ok(())
    }
}
