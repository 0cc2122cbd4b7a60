//! Many short lists in one block of memory: list `i` is `items[start[i]..start[i + 1]]`.

use std::ops::Range;

/// One list of items per key.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Lists<T> {
    start: Vec<u32>,
    items: Vec<T>,
}

impl<T> Default for Lists<T> {
    fn default() -> Lists<T> {
        Lists { start: vec![0], items: Vec::new() }
    }
}

impl<T: Copy> Lists<T> {
    /// Concatenates the given lists.
    pub(crate) fn new(lists: &[Vec<T>]) -> Lists<T> {
        let ends = lists.iter().scan(0, |end, list| {
            *end += list.len() as u32;
            Some(*end)
        });
        Lists { start: std::iter::once(0).chain(ends).collect(), items: lists.concat() }
    }

    /// Groups items by key. Each list keeps the order in which its items arrive.
    pub(crate) fn by_key(keys: usize, pairs: impl Iterator<Item = (usize, T)> + Clone) -> Lists<T> {
        let mut start = vec![0u32; keys + 1];
        pairs.clone().for_each(|(key, _)| start[key + 1] += 1);
        (0..keys).for_each(|key| start[key + 1] += start[key]);
        let Some((_, any)) = pairs.clone().next() else {
            return Lists { start, items: Vec::new() };
        };
        let mut next = start.clone();
        let mut items = vec![any; start[keys] as usize];
        for (key, item) in pairs {
            items[next[key] as usize] = item;
            next[key] += 1;
        }
        Lists { start, items }
    }

    /// The range of a key's list within all items.
    #[inline(always)]
    pub(crate) fn range(&self, key: usize) -> Range<usize> {
        self.start[key] as usize..self.start[key + 1] as usize
    }

    /// A key's list.
    #[inline(always)]
    pub(crate) fn of(&self, key: usize) -> &[T] {
        &self.items[self.range(key)]
    }

    /// All items, one list after another.
    pub(crate) fn items(&self) -> &[T] {
        &self.items
    }

    /// The same lists with each item mapped.
    pub(crate) fn map<U>(&self, f: impl Fn(T) -> U) -> Lists<U> {
        Lists { start: self.start.clone(), items: self.items.iter().map(|&item| f(item)).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_keep_their_order() {
        let pairs = [(2, 'a'), (0, 'b'), (2, 'c')];
        let by_key = Lists::by_key(4, pairs.into_iter());
        assert_eq!(by_key, Lists::new(&[vec!['b'], vec![], vec!['a', 'c'], vec![]]));
        assert_eq!(by_key.of(2), ['a', 'c']);
        assert!(by_key.of(3).is_empty());
        assert_eq!(by_key.map(|item| item == 'a').items(), [false, true, false]);
        assert!(Lists::<u8>::by_key(1, std::iter::empty()).of(0).is_empty());
    }
}
