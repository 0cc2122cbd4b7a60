//! Draws random graphs.

use crate::numeric::GOLDEN;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::graph::{ExclusionRule, GraphBuilder, RelationGraph, Strength};

/// The shape of the hierarchy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HierarchyShape {
    /// No hierarchy.
    Flat,
    /// Every label has at most one parent.
    Tree,
    /// Labels have up to three parents.
    Dag,
}

/// The strengths of the relations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RandomStrengths {
    /// All hard.
    Hard,
    /// All soft.
    Soft,
    /// Some hard, some soft.
    Mixed,
}

/// What to draw.
///
/// ```
/// use phex::testkit::{RandomGraph, HierarchyShape};
/// let graph = RandomGraph { shape: HierarchyShape::Dag, one_of: 1, ..RandomGraph::new(8, 42) }.draw();
/// assert_eq!(graph.len(), 8);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct RandomGraph {
    /// How many labels.
    pub labels: usize,
    /// The shape of the hierarchy.
    pub shape: HierarchyShape,
    /// How many exclusion edges to try.
    pub exclusions: usize,
    /// How many exclusion groups to try.
    pub groups: usize,
    /// How many one-of groups.
    pub one_of: usize,
    /// The exclusion rule.
    pub rule: Option<ExclusionRule>,
    /// The strengths.
    pub strengths: RandomStrengths,
    /// The seed. The same seed draws the same graph.
    pub seed: u64,
}

impl RandomGraph {
    /// A hard tree with nothing but its edges.
    pub fn new(labels: usize, seed: u64) -> RandomGraph {
        RandomGraph {
            labels,
            shape: HierarchyShape::Tree,
            exclusions: 0,
            groups: 0,
            one_of: 0,
            rule: None,
            strengths: RandomStrengths::Hard,
            seed,
        }
    }

    /// A graph in which everything except the number of labels is drawn from the seed.
    pub fn any(labels: usize, seed: u64) -> RandomGraph {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed ^ GOLDEN);
        let rules = [
            None,
            None,
            Some(ExclusionRule::NoCommonDescendant),
            Some(ExclusionRule::NotSubsumed),
            Some(ExclusionRule::Siblings),
        ];
        RandomGraph {
            labels,
            shape: [
                HierarchyShape::Flat,
                HierarchyShape::Tree,
                HierarchyShape::Dag,
                HierarchyShape::Dag,
            ][random.random_range(0..4)],
            exclusions: random.random_range(0..=labels),
            groups: random.random_range(0..3),
            one_of: random.random_range(0..3),
            rule: rules[random.random_range(0..rules.len())],
            strengths: [RandomStrengths::Hard, RandomStrengths::Soft, RandomStrengths::Mixed]
                [random.random_range(0..3)],
            seed,
        }
    }

    /// Declares the graph. Labels are named `l0`, `l1`, ...
    pub fn builder(&self) -> GraphBuilder {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(self.seed);
        let mut builder = GraphBuilder::new();
        let names: Vec<String> = (0..self.labels).map(|label| format!("l{label}")).collect();
        builder.close_labels();
        names.iter().for_each(|name| {
            builder.label(name);
        });
        let n = self.labels;
        // A random order of the labels, so that ids carry no information about the hierarchy.
        let mut order: Vec<usize> = (0..n).collect();
        for at in (1..n).rev() {
            order.swap(at, random.random_range(0..=at));
        }
        let most = match self.shape {
            HierarchyShape::Flat => 0,
            HierarchyShape::Tree => 1,
            HierarchyShape::Dag => 3,
        };
        for at in 1..n {
            let mut parents: Vec<usize> =
                (0..random.random_range(0..=most)).map(|_| random.random_range(0..at)).collect();
            parents.sort_unstable();
            parents.dedup();
            for parent in parents {
                let strength = self.strength(&mut random);
                builder.hierarchy(&names[order[parent]], &names[order[at]], Some(strength));
            }
        }
        let mut sets: std::collections::HashSet<Vec<usize>> = Default::default();
        for group in 0..self.exclusions + self.groups {
            let size = if group < self.exclusions { 2 } else { random.random_range(3..=6) };
            let mut set = some_of(&mut random, n, size);
            set.sort_unstable();
            let strength = self.strength(&mut random);
            if set.len() >= 2 && sets.insert(set.clone()) {
                let members = set.iter().map(|&label| names[label].as_str());
                builder.exclusion_group(None, members, Some(strength));
            }
        }
        let mut free: Vec<usize> = some_of(&mut random, n, n);
        for group in 0..self.one_of {
            let size = random.random_range(1..=4).min(free.len());
            let members: Vec<usize> = free.drain(..size).collect();
            if !members.is_empty() {
                let names = members.iter().map(|&label| names[label].as_str());
                builder.one_of(&format!("group {group}"), names, None);
            }
        }
        if let Some(rule) = self.rule {
            let strength = self.strength(&mut random);
            builder.exclusion_rule(rule, Some(strength));
        }
        builder
    }

    /// Draws the graph.
    ///
    /// # Panics
    /// Never: random declarations always make a valid graph.
    pub fn draw(&self) -> RelationGraph {
        self.builder().build().expect("random declarations make a valid graph")
    }

    fn strength(&self, random: &mut Xoshiro256PlusPlus) -> Strength {
        let soft = Strength::W(random.random_range(0.0..6.0));
        match self.strengths {
            RandomStrengths::Hard => Strength::Hard,
            RandomStrengths::Soft => soft,
            RandomStrengths::Mixed if random.random_bool(0.5) => Strength::Hard,
            RandomStrengths::Mixed => soft,
        }
    }
}

/// Up to `size` of `0..n`, distinct, in random order.
fn some_of(random: &mut Xoshiro256PlusPlus, n: usize, size: usize) -> Vec<usize> {
    let mut all: Vec<usize> = (0..n).collect();
    for at in (1..n).rev() {
        all.swap(at, random.random_range(0..=at));
    }
    all.truncate(size);
    all
}
