//! The graph that a hierarchical class attribute of an ARFF file declares; the data is not read.
//!
//! ```text
//! @attribute class hierarchical animal,animal/dog,animal/cat
//! ```
//!
//! In a tree, the label is the whole path. In a DAG, which lists edges under `root`, the names are
//! labels and `root`, which is always on, is not. Labels come in the order of their declaration.

use std::path::Path;

use phex::graph::GraphBuilder;

use super::sink::GraphSink;
use crate::Error;
use crate::files::input::display_name;
use crate::files::limits::Limits;
use crate::files::text::SourceText;
use crate::tables::{ArffHeader, open_lines};

/// Reads the graph that the hierarchical class attribute of an ARFF file declares. Only the header
/// is read, so that the file may have any size.
///
/// # Errors
/// When the file cannot be read, is not an ARFF file or has no such attribute.
pub fn graph_of_arff(path: &Path) -> Result<GraphBuilder, Error> {
    let name = display_name(path);
    let header = ArffHeader::read(&mut open_lines(path, &Limits::default())?)?;
    let mut sink = GraphSink::new(&Limits::default());
    sink.source(&name);
    fill(&header, &name, &mut sink)?;
    let line = header.attributes.last().map_or(1, |attribute| attribute.line);
    sink.finish(line)
}

pub(super) fn read(source: &SourceText<'_>, sink: &mut GraphSink) -> Result<(), Error> {
    fill(&ArffHeader::parse(source)?, source.name, sink)
}

/// Declares the labels and relations of a header.
fn fill(header: &ArffHeader, path: &str, sink: &mut GraphSink) -> Result<(), Error> {
    let mut hierarchies = header.hierarchies();
    let error = |line, message: &str| {
        let (path, message) = (path.to_owned(), message.to_owned());
        Err(Error::Syntax { path, line, message })
    };
    let Some((attribute, hierarchy)) = hierarchies.next() else {
        let message = "the file has no hierarchical attribute and so declares no graph; the type \
                       is `hierarchical a,a/b,a/c`";
        return error(1, message);
    };
    if let Some((second, _)) = hierarchies.next() {
        return error(second.line, "this is a second hierarchical attribute; a graph has one");
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
