//! Where readers of formats declare labels and relations: a builder with a limit on labels and,
//! where a label table is given, a fixed set of them.

use std::collections::HashMap;

use phex::graph::GraphBuilder;

use crate::files::text::shown;
use crate::{Error, Limits};

/// A builder that refuses more labels than allowed, and labels that are not in the label table.
#[derive(Debug)]
pub(super) struct GraphSink {
    builder: GraphBuilder,
    source: String,
    limit: usize,
    name_bytes: u64,
    /// The labels declared so far, and whether each has a title.
    declared: HashMap<String, bool>,
    /// Whether the labels come from a table and no others may be declared.
    fixed: bool,
}

impl GraphSink {
    pub(super) fn new(limits: &Limits) -> GraphSink {
        GraphSink {
            builder: GraphBuilder::new(),
            source: String::new(),
            limit: limits.labels,
            name_bytes: limits.file_bytes,
            declared: HashMap::new(),
            fixed: false,
        }
    }

    /// Names the file of the declarations that follow.
    pub(super) fn source(&mut self, name: &str) {
        name.clone_into(&mut self.source);
        self.builder.source(name);
    }

    /// The builder, set to a line.
    pub(super) fn at(&mut self, line: usize) -> Result<&mut GraphBuilder, Error> {
        self.within_limit(line)?;
        Ok(self.builder.line(line))
    }

    /// Declares a label of a label table.
    pub(super) fn table_label(
        &mut self,
        line: usize,
        name: &str,
        title: Option<&str>,
    ) -> Result<(), Error> {
        self.declared.insert(name.to_owned(), title.is_some());
        self.at(line)?.titled_label(name, title);
        Ok(())
    }

    /// Allows no labels but those declared so far.
    pub(super) fn fix_labels(&mut self) {
        self.builder.close_labels();
        self.fixed = true;
    }

    /// Declares a label; the builder reports a label that is declared twice.
    pub(super) fn label(
        &mut self,
        line: usize,
        name: &str,
        title: Option<&str>,
    ) -> Result<(), Error> {
        if self.fixed {
            return self.known_label(line, name, title);
        }
        self.at(line)?.titled_label(name, title);
        Ok(())
    }

    /// Declares a label unless it was declared before.
    pub(super) fn label_once(
        &mut self,
        line: usize,
        name: &str,
        title: Option<&str>,
    ) -> Result<(), Error> {
        if self.fixed || self.declared.contains_key(name) {
            return self.known_label(line, name, title);
        }
        self.declared.insert(name.to_owned(), title.is_some());
        self.at(line)?.titled_label(name, title);
        Ok(())
    }

    /// Checks that a label was declared before, and adds its title if it has none yet.
    fn known_label(&mut self, line: usize, name: &str, title: Option<&str>) -> Result<(), Error> {
        let Some(titled) = self.declared.get_mut(name) else {
            let message = format!("{} is not in the label table", shown(name));
            return Err(Error::Syntax { path: self.source.clone(), line, message });
        };
        if let (false, Some(title)) = (*titled, title) {
            self.builder.title(name, title);
            *titled = true;
        }
        Ok(())
    }

    fn within_limit(&self, line: usize) -> Result<(), Error> {
        if self.builder.len() > self.limit {
            let (path, limit) = (self.source.clone(), self.limit);
            return Err(Error::TooManyLabels { path, line, limit });
        }
        Ok(())
    }

    /// How many bytes names that are put together may take in all.
    pub(super) fn name_bytes(&self) -> u64 {
        self.name_bytes
    }

    /// Whether a label has been declared or named.
    pub(super) fn knows(&self, name: &str) -> bool {
        self.builder.knows(name)
    }

    /// Says that something in the file was left out, or how it was understood.
    pub(super) fn note(&mut self, line: usize, message: impl Into<String>) -> Result<(), Error> {
        self.at(line)?.note(message);
        Ok(())
    }

    /// The filled builder.
    pub(super) fn finish(self, line: usize) -> Result<GraphBuilder, Error> {
        self.within_limit(line)?;
        Ok(self.builder)
    }
}
