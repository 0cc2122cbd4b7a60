//! Columns that number or name the rows: they are no scores and no features, unless somebody says so.

/// Whether a column looks like the index of its rows: it is called `id`, or it is the first and has no name or one that
/// pandas gives to an index.
pub(super) fn is_index(name: &str, column: usize) -> bool {
    let name = name.trim();
    name.eq_ignore_ascii_case("id")
        || name == "__index_level_0__"
        || (column == 0 && matches!(name, "" | "Unnamed: 0"))
        || (column == 0 && name.eq_ignore_ascii_case("index"))
}

#[cfg(test)]
mod tests {
    use super::is_index;

    #[test]
    fn indices_are_recognised_by_name_and_place() {
        for (name, column) in
            [("", 0), ("id", 3), ("ID", 0), ("Unnamed: 0", 0), ("index", 0), (" ", 0)]
        {
            assert!(is_index(name, column), "{name}");
        }
        for (name, column) in [("", 1), ("ids", 0), ("index", 2), ("dog", 0)] {
            assert!(!is_index(name, column), "{name}");
        }
    }
}
