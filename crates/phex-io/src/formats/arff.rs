//! The hierarchy of a hierarchical class attribute of an ARFF file; the rows are not read.
//!
//! ```text
//! @attribute class hierarchical animal,animal/dog,animal/cat
//! ```
//!
//! In a tree the whole path is the label; in a DAG, which lists edges under `root`, the names are
//! labels and `root`, which is always on, is not. Labels come in the order in which they are
//! declared.

use crate::Error;
use crate::arff::Header;
use crate::sink::Sink;
use crate::text::Source;

pub(crate) fn read(source: &Source<'_>, sink: &mut Sink) -> Result<(), Error> {
    fill(&Header::parse(source)?, source.name, sink)
}

/// Declares the labels and relations of a header.
pub(crate) fn fill(header: &Header, path: &str, sink: &mut Sink) -> Result<(), Error> {
    let mut hierarchies = header.hierarchies();
    let error = |line, message: &str| {
        let (path, message) = (path.to_owned(), message.to_owned());
        Err(Error::Syntax { path, line, message })
    };
    let Some((attribute, hierarchy)) = hierarchies.next() else {
        let message = "the file has no hierarchical attribute, and so no graph: the type is \
                       `hierarchical a,a/b,a/c`";
        return error(1, message);
    };
    if let Some((second, _)) = hierarchies.next() {
        return error(second.line, "this is a second hierarchical attribute; one is one graph");
    }
    for class in &hierarchy.classes {
        sink.label_once(attribute.line, class, None)?;
    }
    for &(parent, child) in &hierarchy.edges {
        let (parent, child) =
            (&hierarchy.classes[parent as usize], &hierarchy.classes[child as usize]);
        sink.at(attribute.line)?.hierarchy(parent, child, None);
    }
    Ok(())
}
