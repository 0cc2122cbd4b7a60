//! A table of all labels, in the order of the score columns, beside a file of relations.
//!
//! Plain text has one name per line. Tables with commas or tabs have a header. The name is in the
//! first existing column of `label`, `name`, `wnid` and `id`, else in the first column. The title is
//! in the first existing column of `title`, `words` and `description`, if any.
//!
//! ```text
//! wnid       words
//! n02119789  kit fox, Vulpes macrotis
//! n02100735  English setter
//! ```

use std::path::Path;

use super::sink::GraphSink;
use crate::Error;
use crate::files::csv::CsvRecords;
use crate::files::text::SourceText;

const NAMES: [&str; 4] = ["label", "name", "wnid", "id"];
const TITLES: [&str; 3] = ["title", "words", "description"];

pub(super) fn read(source: &SourceText<'_>, sink: &mut GraphSink) -> Result<(), Error> {
    match delimiter(source) {
        Some(delimiter) => read_table(source, delimiter, sink)?,
        None => {
            for (line, text) in source.lines() {
                if !text.trim().is_empty() {
                    sink.table_label(line, text.trim(), None)?;
                }
            }
        }
    }
    sink.fix_labels();
    Ok(())
}

/// The delimiter that the name of the file implies, else a tab if the first line has one.
fn delimiter(source: &SourceText<'_>) -> Option<u8> {
    if is_table(source, &["csv"]) {
        return Some(b',');
    }
    let tabs = source.text.lines().next().is_some_and(|line| line.contains('\t'));
    (tabs || is_table(source, &["tsv", "tab"])).then_some(b'\t')
}

fn is_table(source: &SourceText<'_>, extensions: &[&str]) -> bool {
    let extension = Path::new(source.name).extension().unwrap_or_default();
    extensions.iter().any(|known| extension.eq_ignore_ascii_case(known))
}

fn read_table(source: &SourceText<'_>, delimiter: u8, sink: &mut GraphSink) -> Result<(), Error> {
    let mut records = CsvRecords::of_text(source, delimiter)?;
    if !records.next()? {
        return Ok(());
    }
    let header = records.cells();
    let column = |wanted: &[&str]| {
        let at = |name| header.iter().position(|cell| cell.trim().eq_ignore_ascii_case(name));
        wanted.iter().find_map(|name| at(name))
    };
    let (name_at, title_at) = (column(&NAMES), column(&TITLES));
    if name_at.is_none() && !is_table(source, &["csv", "tsv", "tab"]) {
        // The first row may be a label and must not be lost as a header.
        let message = "a label table with tabs starts with a header that names a column `label`, \
                       `name`, `wnid` or `id`";
        return Err(records.error(message));
    }
    let name_at = name_at.unwrap_or(0);
    while records.next()? {
        let row = records.cells();
        let name = row.get(name_at).unwrap_or_default().trim();
        if name.is_empty() {
            return Err(records.error("the cell for the label is empty"));
        }
        let title = title_at.and_then(|at| row.get(at)).map(str::trim);
        sink.table_label(records.line(), name, title.filter(|title| !title.is_empty()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;

    fn table(name: &str, text: &str) -> Result<Vec<(String, Option<String>)>, Error> {
        let mut sink = GraphSink::new(&Limits::default());
        sink.source(name);
        read(&SourceText { name, text }, &mut sink)?;
        let graph = sink.finish(1)?.build().unwrap();
        let labels = graph.labels().iter();
        Ok(labels.map(|label| (label.name.clone(), label.title.clone())).collect())
    }

    #[test]
    fn columns_are_found_by_name() {
        let both = vec![("n1".to_owned(), Some("dog".to_owned())), ("n2".to_owned(), None)];
        assert_eq!(table("t.tsv", "idx\twnid\twords\n0\tn1\tdog\n1\tn2\t\n").unwrap(), both);
        assert_eq!(table("t.txt", "id\tTitle\nn1\tdog\nn2\t\n").unwrap(), both);
        let names = vec![("a b".to_owned(), None), ("c".to_owned(), None)];
        assert_eq!(table("t.txt", "a b\r\n\nc\n").unwrap(), names);
        assert_eq!(table("t.csv", "class,size\na b,1\nc,2\n").unwrap(), names);
        let error = table("t.txt", "1\tantelope\n2\tbear\n").unwrap_err().to_string();
        assert!(error.starts_with("t.txt:1: a label table with tabs starts"), "{error}");
    }
}
