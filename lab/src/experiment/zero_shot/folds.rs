//! Folds of classes: which are for training, for validation and for the test.
//!
//! The classes are cut into folds of (nearly) equal size. Each fold is tested once. Its settings are tuned on splits of
//! the other folds, in which one fold takes the role of the unseen classes. If a data set fixes the test classes, all
//! folds test those, and only the validation classes rotate.

use super::data::ZeroShotData;
use crate::harness::RandomStream;

/// Test classes, and the folds of all others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fold {
    pub(super) index: usize,
    test: Vec<usize>,
    others: Vec<Vec<usize>>,
}

/// The seen and the unseen classes of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Split {
    /// Classes with training rows.
    pub(super) seen: Vec<usize>,
    /// Classes without training rows, which are to be recognised.
    pub(super) unseen: Vec<usize>,
}

impl Split {
    /// All classes of its graph: seen, then unseen.
    pub(super) fn classes(&self) -> Vec<usize> {
        self.seen.iter().chain(&self.unseen).copied().collect()
    }
}

impl Fold {
    /// All folds of a data set. Official test classes are the first fold.
    pub(super) fn all(data: &ZeroShotData, count: usize, seed: u64) -> Vec<Fold> {
        let is_free = |class: &usize| !data.official.contains(class);
        let free: Vec<usize> = (0..data.len()).filter(is_free).collect();
        let order = RandomStream::new(seed, "folds of classes").shuffled(free.len());
        let shuffled: Vec<usize> = order.into_iter().map(|at| free[at]).collect();
        let cut = |pieces: usize| -> Vec<Vec<usize>> {
            let bounds = |piece: usize| piece * shuffled.len() / pieces;
            let piece = |at| {
                let mut piece = shuffled[bounds(at)..bounds(at + 1)].to_vec();
                piece.sort_unstable();
                piece
            };
            (0..pieces).map(piece).collect()
        };
        if data.fixed {
            let others = cut(count);
            let fold = |index| Fold { index, test: data.official.clone(), others: others.clone() };
            return (0..count).map(fold).collect();
        }
        let folds = if data.official.is_empty() {
            cut(count)
        } else {
            std::iter::once(data.official.clone()).chain(cut(count - 1)).collect()
        };
        let fold = |index: usize| {
            let others = (0..count).filter(|&other| other != index);
            let others = others.map(|other| folds[other].clone()).collect();
            Fold { index, test: folds[index].clone(), others }
        };
        (0..count).map(fold).collect()
    }

    /// The split of a validation, which leaves out the test classes. Each number makes another fold the unseen classes.
    pub(super) fn validation(&self, number: usize) -> Split {
        let chosen = (self.index + number) % self.others.len();
        let seen = (0..self.others.len()).filter(|&other| other != chosen);
        Split {
            seen: seen.flat_map(|other| self.others[other].iter().copied()).collect(),
            unseen: self.others[chosen].clone(),
        }
    }

    /// The split of the test.
    pub(super) fn test(&self) -> Split {
        Split { seen: self.others.concat(), unseen: self.test.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::zero_shot::generated::generate;

    #[test]
    fn validation_never_meets_a_test_class() {
        let plain = generate(3);
        let official = ZeroShotData { official: vec![4, 1, 17], ..plain.clone() };
        let fixed = ZeroShotData { fixed: true, ..official.clone() };
        for data in [&plain, &official, &fixed] {
            let folds = Fold::all(data, 5, 1);
            assert_eq!(folds.len(), 5);
            for fold in &folds {
                let test = fold.test();
                let mut all = test.classes();
                all.sort_unstable();
                assert_eq!(all, (0..data.len()).collect::<Vec<_>>());
                for number in 0..3 {
                    let split = fold.validation(number);
                    assert!(!split.unseen.is_empty());
                    assert!(split.classes().iter().all(|class| !test.unseen.contains(class)));
                    assert!(split.seen.iter().all(|class| !split.unseen.contains(class)));
                    assert_eq!(split.classes().len(), test.seen.len());
                }
                assert_ne!(fold.validation(0).unseen, fold.validation(1).unseen);
            }
        }
        // Every class is tested once; official ones first, or always.
        let mut tested: Vec<usize> =
            Fold::all(&plain, 5, 1).iter().flat_map(|fold| fold.test.clone()).collect();
        tested.sort_unstable();
        assert_eq!(tested, (0..plain.len()).collect::<Vec<_>>());
        assert_eq!(Fold::all(&official, 5, 1)[0].test, [4, 1, 17]);
        assert!(Fold::all(&fixed, 5, 1).iter().all(|fold| fold.test == [4, 1, 17]));
    }
}
