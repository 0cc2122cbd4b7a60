//! Random graphs of each class that an engine is made for, and losses by definition.

use phex::graph::{ExclusionRule, GraphBuilder, LabelId, RelationGraph};
use phex::testkit::{HierarchyShape, Oracle, Random, RandomGraph, RandomStrengths};

/// A class of graphs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// A forest with nothing but hierarchy.
    Forest,
    /// A hierarchy in which labels have several parents.
    Dag,
    /// Two hierarchies of any shape, and exclusions of labels of one and the other.
    Opposites,
    /// A hierarchy of any shape, and exclusions of two labels anywhere.
    Pairs,
    /// A forest whose siblings fall into exclusive groups.
    Groups,
    /// A forest in which exactly one leaf is on.
    Leaves,
    /// Groups of siblings, and one-of groups of roots.
    Mixed,
    /// Anything hard.
    General,
    /// Anything, soft relations too.
    Soft,
}

impl Class {
    pub(super) const FORESTS: [Class; 4] =
        [Class::Forest, Class::Groups, Class::Leaves, Class::Mixed];

    /// A random graph that has relations and legal states.
    pub(super) fn draw(self, seed: u64) -> RelationGraph {
        (0..).find_map(|attempt| self.attempt(seed.wrapping_mul(1000) + attempt)).unwrap()
    }

    fn attempt(self, seed: u64) -> Option<RelationGraph> {
        let mut random = Random::new(seed);
        let n = 2 + random.below(9);
        let tree = RandomGraph::new(n, seed);
        let any = RandomGraph::any(n, seed);
        let graph = match self {
            Class::Forest => tree.draw(),
            Class::Dag => RandomGraph { shape: HierarchyShape::Dag, ..tree }.draw(),
            Class::Leaves => {
                let mut builder =
                    RandomGraph { rule: Some(ExclusionRule::NoCommonDescendant), ..tree }.builder();
                builder.one_of_leaves("leaf");
                builder.build().ok()?
            }
            Class::Opposites => opposites(n, seed, &mut random)?,
            Class::Pairs => {
                let exclusions = 1 + random.below(3);
                RandomGraph { shape: HierarchyShape::Dag, exclusions, ..tree }.draw()
            }
            Class::Groups | Class::Mixed => grouped(&tree.draw(), &mut random, self)?,
            Class::General => RandomGraph { strengths: RandomStrengths::Hard, ..any }.draw(),
            Class::Soft => RandomGraph { strengths: RandomStrengths::Mixed, ..any }.draw(),
        };
        let related = !graph.hierarchy().is_empty() || graph.has_exclusions();
        (related && !Oracle::new(&graph).legal_states().is_empty()).then_some(graph)
    }
}

/// Two hierarchies, `l…` and `r…`, and exclusions between them.
fn opposites(n: usize, seed: u64, random: &mut Random) -> Option<RelationGraph> {
    let mut builder = GraphBuilder::new();
    let left = 1 + random.below(n - 1);
    for (side, labels) in [("l", left), ("r", n - left)] {
        let shape = HierarchyShape::Dag;
        let half = RandomGraph { shape, ..RandomGraph::new(labels, seed ^ labels as u64) }.draw();
        half.ids().for_each(|id| {
            builder.label(&format!("{side}{}", half.name(id)));
        });
        for edge in half.hierarchy() {
            let name = |id| format!("{side}{}", half.name(id));
            builder.hierarchy(&name(edge.parent), &name(edge.child), None);
        }
    }
    for _ in 0..1 + random.below(4) {
        let (a, b) = (random.below(left), random.below(n - left));
        builder.exclusion(&format!("ll{a}"), &format!("rl{b}"), None);
    }
    builder.build().ok()
}

/// A forest whose siblings are split into exclusive groups at random.
fn grouped(tree: &RelationGraph, random: &mut Random, class: Class) -> Option<RelationGraph> {
    let mut builder = GraphBuilder::new();
    builder.close_labels();
    tree.ids().for_each(|id| {
        builder.label(tree.name(id));
    });
    for edge in tree.hierarchy() {
        builder.hierarchy(tree.name(edge.parent), tree.name(edge.child), None);
    }
    let roots: Vec<_> = tree.roots().collect();
    let families = tree.ids().map(|id| tree.topology().children(id).to_vec());
    for (at, mut family) in std::iter::once(roots).chain(families).enumerate() {
        while !family.is_empty() {
            let size =
                if random.next() < 0.4 { family.len() } else { 1 + random.below(family.len()) };
            let group: Vec<_> = family.drain(..size).collect();
            let names = group.iter().map(|&id| tree.name(id));
            if size > 1 && at == 0 && class == Class::Mixed && random.next() < 0.6 {
                builder.one_of(&format!("roots {size}"), names, None);
            } else if size > 1 {
                builder.exclusion_group(None, names, None);
            }
        }
    }
    builder.build().ok()
}

/// The legal states, one entry per label.
pub(super) fn truths(graph: &RelationGraph) -> Vec<Vec<bool>> {
    let states = Oracle::new(graph).legal_states();
    let of = |state: u32| (0..graph.len()).map(|label| state >> label & 1 == 1).collect();
    states.into_iter().map(of).collect()
}

/// The states that hard relations allow, each with what it pays for soft ones.
pub(super) fn priced_truths(graph: &RelationGraph) -> Vec<(Vec<bool>, f64)> {
    let oracle = Oracle::new(graph);
    let of = |state: u32| (0..graph.len()).map(|label| state >> label & 1 == 1).collect();
    let states = 0..1u32 << graph.len();
    let priced = states.map(|state| (of(state), oracle.cost(state)));
    priced.filter(|(_, cost)| cost.is_finite()).collect()
}

/// One weight for each label: all 1, or of three sizes.
pub(super) fn weights(labels: usize, seed: u64, weighted: bool) -> Vec<f64> {
    let of = |label: usize| [0.3, 1.0, 2.5][(label * 7 + seed as usize) % 3];
    (0..labels).map(|label| if weighted { of(label) } else { 1.0 }).collect()
}

/// The Brier score of probabilities.
pub(super) fn brier(truth: &[bool], p: &[f64], weights: Option<&[f64]>) -> f64 {
    let weight = |label: usize| weights.map_or(1.0, |weights| weights[label]);
    let label = |(label, (&on, &p)): (usize, (&bool, &f64))| {
        let off = if on { 1.0 - p } else { p };
        weight(label) * off * off
    };
    truth.iter().zip(p).enumerate().map(label).sum()
}

/// The log loss of probabilities.
pub(super) fn log_loss(truth: &[bool], p: &[f64], weights: Option<&[f64]>) -> f64 {
    let weight = |label: usize| weights.map_or(1.0, |weights| weights[label]);
    let label = |(label, (&on, &p)): (usize, (&bool, &f64))| {
        weight(label) * -(if on { p.ln() } else { (-p).ln_1p() })
    };
    truth.iter().zip(p).enumerate().map(label).sum()
}

/// Rows of logits of different sizes, clipped to ±14.
pub(super) fn logits(labels: usize, rows: usize, seed: u64) -> Vec<f64> {
    let mut random = Random::new(seed ^ 0xabc);
    let scale = [0.3, 1.0, 3.0, 8.0][random.below(4)];
    let draw = random.normals(labels * rows);
    draw.into_iter().map(|score| (score * scale).clamp(-14.0, 14.0)).collect()
}

/// The largest violation of a hard relation as it was declared: of an inequality, and of an equation.
/// Labels of which exactly one is on in every legal state make an equation, and so do some of them:
/// their sum is 1 up to rounding, and the others may be 0.
pub(super) fn violation(graph: &RelationGraph, truths: &[Vec<bool>], p: &[f64]) -> [f64; 2] {
    let [mut inequality, mut equation] = [0.0f64; 2];
    for edge in graph.hierarchy().iter().filter(|edge| edge.strength.is_hard()) {
        inequality = inequality.max(p[edge.child.index()] - p[edge.parent.index()]);
    }
    let sum = |labels: &[LabelId]| labels.iter().map(|l| p[l.index()]).sum::<f64>();
    let hard = graph.exclusions().iter().filter(|item| item.strength.is_hard());
    let mut sets: Vec<&[LabelId]> = hard.map(|exclusion| exclusion.labels.as_slice()).collect();
    let ruled = graph.rule_sets();
    if graph.rule().is_some_and(|rule| rule.strength.is_hard()) {
        sets.extend(ruled.iter().map(AsRef::<[LabelId]>::as_ref));
    }
    let count = |truth: &[bool], labels: &[LabelId]| {
        labels.iter().filter(|label| truth[label.index()]).count()
    };
    let groups = graph.one_of().iter().map(|group| group.labels.as_slice());
    let is_equal = |set: &&[LabelId]| truths.iter().all(|truth| count(truth, set) == 1);
    let equal: Vec<&[LabelId]> = sets.iter().copied().chain(groups).filter(is_equal).collect();
    for set in sets {
        let part = |whole: &&[LabelId]| set.iter().all(|label| whole.contains(label));
        let worst = if equal.iter().any(part) { &mut equation } else { &mut inequality };
        *worst = worst.max(sum(set) - 1.0);
    }
    for group in graph.one_of() {
        equation = equation.max((sum(&group.labels) - 1.0).abs());
    }
    [inequality, equation]
}

/// The largest violation of any hard relation.
pub(super) fn worst_violation(graph: &RelationGraph, p: &[f64]) -> f64 {
    let [inequality, equation] = violation(graph, &[], p);
    inequality.max(equation)
}

/// How many triples of a graph, a row and a truth are checked in all.
pub(super) fn wanted() -> usize {
    std::env::var("PHEX_TRIPLES").map_or(100_000, |text| text.parse().unwrap())
}
