//! Targets: the known labels of each row.

use phex::infer::Evidence;

/// A label that a row lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target {
    /// The position of the label in the graph.
    pub label: u32,
    /// Whether it is on.
    pub on: bool,
}

/// A row of targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TargetRow<'a> {
    /// The labels that are listed, in the order of the graph.
    pub listed: &'a [Target],
    /// Whether all other labels are off; otherwise they are unknown.
    pub others_off: bool,
}

/// The known labels of each row. They are sparse, because most rows list few of many labels.
///
/// ```
/// use phex::infer::Evidence;
/// use phex_io::{Target, Targets};
///
/// let mut targets = Targets::new(3);
/// targets.push(&[Target { label: 1, on: true }], false);
/// targets.push(&[Target { label: 0, on: true }], true);
/// let mut values = vec![Evidence::Unknown; 3];
/// targets.fill(0, &mut values);
/// assert_eq!(values, [Evidence::Unknown, Evidence::On, Evidence::Unknown]);
/// targets.fill(1, &mut values);
/// assert_eq!(values, [Evidence::On, Evidence::Off, Evidence::Off]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Targets {
    labels: usize,
    /// The start of the entries of each row, and the end of the last.
    offsets: Vec<usize>,
    entries: Vec<Target>,
    others_off: Vec<bool>,
}

impl Targets {
    /// Targets without rows, for a graph with this many labels.
    pub fn new(labels: usize) -> Targets {
        Targets { labels, offsets: vec![0], entries: Vec::new(), others_off: Vec::new() }
    }

    /// How many labels the graph has.
    pub fn labels(&self) -> usize {
        self.labels
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.others_off.len()
    }

    /// All listed labels, row after row.
    pub fn entries(&self) -> &[Target] {
        &self.entries
    }

    /// The position in the entries where each row starts, and at last their end.
    pub fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// A row.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn row(&self, row: usize) -> TargetRow<'_> {
        let listed = &self.entries[self.offsets[row]..self.offsets[row + 1]];
        TargetRow { listed, others_off: self.others_off[row] }
    }

    /// Adds a row: the labels that it lists, and whether all others are off.
    ///
    /// # Panics
    /// When a label is not in the graph.
    pub fn push(&mut self, listed: &[Target], others_off: bool) {
        let from = self.entries.len();
        assert!(listed.iter().all(|target| (target.label as usize) < self.labels), "no such label");
        self.entries.extend_from_slice(listed);
        self.entries[from..].sort_unstable();
        self.offsets.push(self.entries.len());
        self.others_off.push(others_off);
    }

    /// Writes the evidence of a row, one value per label.
    ///
    /// # Panics
    /// When there is no such row, or there is not one value per label.
    pub fn fill(&self, row: usize, values: &mut [Evidence]) {
        assert_eq!(values.len(), self.labels, "one value per label");
        let row = self.row(row);
        values.fill(if row.others_off { Evidence::Off } else { Evidence::Unknown });
        for target in row.listed {
            values[target.label as usize] = Evidence::known(target.on);
        }
    }

    /// The evidence of a row, as the engines use it.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn evidence(&self, row: usize) -> Vec<Evidence> {
        let mut evidence = vec![Evidence::Unknown; self.labels];
        self.fill(row, &mut evidence);
        evidence
    }

    /// Adds the rows of other targets for the same labels.
    ///
    /// # Panics
    /// When they have another number of labels.
    pub fn append(&mut self, more: &Targets) {
        assert_eq!(self.labels, more.labels, "the same labels");
        let start = self.entries.len();
        self.entries.extend_from_slice(&more.entries);
        self.offsets.extend(more.offsets.iter().skip(1).map(|&offset| start + offset));
        self.others_off.extend_from_slice(&more.others_off);
    }
}
