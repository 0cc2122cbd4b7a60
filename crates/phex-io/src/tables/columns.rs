//! Which column of a table is which label.

use std::collections::HashMap;

use crate::Error;
use crate::text::did_you_mean;

/// What a column of a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// The values of the label with this number.
    Label(usize),
    /// The text that is passed through, with its number.
    Kept(usize),
}

/// What a reader wants from a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'a> {
    /// The labels of the model, in order.
    pub(super) labels: &'a [String],
    /// The other columns.
    pub(super) keep: &'a [String],
    /// Whether cells are evidence and labels may be missing: else they are scores.
    pub(super) evidence: bool,
}

impl Wanted<'_> {
    /// The use of each column of a header.
    pub(super) fn uses<'h>(
        &self,
        path: &str,
        header: impl Iterator<Item = &'h str>,
    ) -> Result<Vec<Use>, Error> {
        let path = || path.to_owned();
        let labels = self.labels.iter().enumerate().map(|(i, name)| (name.as_str(), Use::Label(i)));
        let mut known: HashMap<&str, Use> = labels.collect();
        for (i, name) in self.keep.iter().enumerate() {
            match known.insert(name, Use::Kept(i)) {
                None => {}
                Some(Use::Label(_)) => {
                    let message =
                        format!("`{name}` is a label of the model and cannot be kept as it is");
                    return Err(Error::Table { path: path(), message });
                }
                Some(Use::Kept(_)) => {
                    let message = format!("`{name}` is to be kept twice");
                    return Err(Error::Table { path: path(), message });
                }
            }
        }
        let mut has_label = vec![false; self.labels.len()];
        let mut has_kept = vec![false; self.keep.len()];
        let mut uses = Vec::new();
        for column in header {
            let Some(&use_) = known.get(column) else {
                let hint = did_you_mean(column, self.labels.iter().map(String::as_str));
                return Err(Error::UnknownColumn { path: path(), column: column.to_owned(), hint });
            };
            let seen = match use_ {
                Use::Label(label) => &mut has_label[label],
                Use::Kept(kept) => &mut has_kept[kept],
            };
            if std::mem::replace(seen, true) {
                return Err(Error::DuplicateColumn { path: path(), column: column.to_owned() });
            }
            uses.push(use_);
        }
        let labels = self.labels.iter().zip(&has_label).filter(|_| !self.evidence);
        let needed = labels.chain(self.keep.iter().zip(&has_kept));
        let mut missing = needed.filter(|&(_, &has)| !has).map(|(name, _)| name);
        match missing.next() {
            Some(first) => {
                let (column, count) = (first.clone(), 1 + missing.count());
                Err(Error::MissingColumn { path: path(), column, count })
            }
            None => Ok(uses),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    fn message(labels: &[&str], keep: &[&str], header: &[&str]) -> String {
        let (labels, keep) = (names(labels), names(keep));
        let wanted = Wanted { labels: &labels, keep: &keep, evidence: false };
        wanted.uses("s.csv", header.iter().copied()).unwrap_err().to_string()
    }

    #[test]
    fn columns_come_in_any_order() {
        let (labels, keep) = (names(&["a", "b"]), names(&["id"]));
        let wanted = Wanted { labels: &labels, keep: &keep, evidence: false };
        let uses = wanted.uses("s.csv", ["b", "id", "a"].into_iter()).unwrap();
        assert_eq!(uses, [Use::Label(1), Use::Kept(0), Use::Label(0)]);
        let wanted = Wanted { labels: &labels, keep: &[], evidence: true };
        assert_eq!(wanted.uses("s.csv", ["b"].into_iter()).unwrap(), [Use::Label(1)]);
    }

    #[test]
    fn messages_name_columns() {
        assert_eq!(
            message(&["animal", "dog"], &[], &["Animal", "dog"]),
            "s.csv: the column `Animal` is no label of the model; did you mean `animal`?; to pass \
             it through, use --keep \"Animal\""
        );
        let missing = message(&["a", "b", "c"], &["id"], &["b"]);
        assert_eq!(missing, "s.csv: no column is named `a`, nor 2 others that are needed");
        assert_eq!(message(&["a", "b"], &[], &["b"]), "s.csv: no column is named `a`");
        assert_eq!(message(&["a"], &[], &["a", "a"]), "s.csv: two columns are named `a`");
        assert!(message(&["a"], &["a"], &["a"]).contains("is a label of the model"));
        assert!(message(&["a"], &["x", "x"], &["a"]).contains("kept twice"));
        assert!(message(&["a"], &[], &["something"]).contains("model; to pass it through"));
    }
}
