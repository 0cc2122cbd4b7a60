//! The shared memory of rounds that have one label alone: which lines each gets, and which rounds it waits for.
//!
//! A round gets the neighbouring lines that are free first, and waits for all rounds that had one of them before. Cost:
//! O(lines) per round.

use std::collections::VecDeque;
use std::ops::Range;

/// The lines of a block's memory: when each is free, and which round had it last.
pub(super) struct LinePool {
    first: usize,
    free: Vec<usize>,
    last: Vec<Option<usize>>,
}

impl LinePool {
    /// A range of lines that no round has had.
    pub(super) fn new(lines: Range<usize>) -> LinePool {
        LinePool { first: lines.start, free: vec![0; lines.len()], last: vec![None; lines.len()] }
    }

    /// The first of those neighbouring lines that are free earliest, and when; lines that are free by `ready` are equally
    /// good. `None` if there are not so many lines.
    pub(super) fn find(&self, lines: usize, ready: usize) -> Option<(Range<usize>, usize)> {
        // The lines of the window that may be the last to become free, last first.
        let mut latest = VecDeque::new();
        let mut best = None;
        for (at, &free) in self.free.iter().enumerate() {
            while latest.back().is_some_and(|&(_, other)| other <= free) {
                latest.pop_back();
            }
            latest.push_back((at, free));
            let Some(from) = (at + 1).checked_sub(lines) else { continue };
            while latest.front().is_some_and(|&(other, _)| other < from) {
                latest.pop_front();
            }
            let when = latest.front().map_or(0, |&(_, free)| free).max(ready);
            if best.as_ref().is_none_or(|&(_, before)| when < before) {
                best = Some((self.first + from..self.first + from + lines, when));
            }
        }
        best
    }

    /// Gives lines to a round until some time. Returns the rounds that had some of them.
    pub(super) fn take(&mut self, lines: Range<usize>, round: usize, until: usize) -> Vec<usize> {
        let lines = lines.start - self.first..lines.end - self.first;
        let mut before: Vec<usize> = self.last[lines.clone()].iter().copied().flatten().collect();
        before.dedup();
        self.free[lines.clone()].fill(until);
        self.last[lines].fill(Some(round));
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_free_first_are_found() {
        let mut pool = LinePool::new(10..20);
        assert_eq!(pool.find(11, 0), None);
        assert_eq!(pool.find(4, 7), Some((10..14, 7)));
        assert!(pool.take(10..14, 0, 50).is_empty());
        assert_eq!(pool.find(6, 0), Some((14..20, 0)));
        assert!(pool.take(14..17, 1, 30).is_empty());
        // Three are still free, four after the second round, eight after the first.
        assert_eq!(pool.find(3, 0), Some((17..20, 0)));
        assert_eq!(pool.find(4, 0), Some((14..18, 30)));
        assert_eq!(pool.find(4, 60), Some((10..14, 60)));
        assert_eq!(pool.find(8, 0), Some((10..18, 50)));
        assert_eq!(pool.take(12..18, 2, 90), [0, 1]);
        assert_eq!(pool.take(10..20, 3, 99), [0, 2]);
    }
}
