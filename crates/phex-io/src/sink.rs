//! Where readers put what they find: a builder with a limit and a label table.

use std::collections::HashMap;

use phex::graph::GraphBuilder;

use crate::text::shown;
use crate::{Error, ReadOptions};

/// A builder that refuses more labels than allowed, and labels outside a given table.
#[derive(Debug)]
pub(crate) struct Sink {
    builder: GraphBuilder,
    source: String,
    limit: usize,
    /// Labels that were declared by name, with whether they have a title.
    declared: HashMap<String, bool>,
    /// Whether the labels come from a table and no others may be declared.
    fixed: bool,
}

impl Sink {
    pub(crate) fn new(options: &ReadOptions) -> Sink {
        Sink {
            builder: GraphBuilder::new(),
            source: String::new(),
            limit: options.max_labels,
            declared: HashMap::new(),
            fixed: false,
        }
    }

    /// Names the file of the declarations that follow.
    pub(crate) fn source(&mut self, name: &str) {
        name.clone_into(&mut self.source);
        self.builder.source(name);
    }

    /// The builder, set to a line.
    pub(crate) fn at(&mut self, line: usize) -> Result<&mut GraphBuilder, Error> {
        self.within_limit(line)?;
        Ok(self.builder.line(line))
    }

    /// Declares a label of a label table.
    pub(crate) fn table_label(
        &mut self,
        line: usize,
        name: &str,
        title: Option<&str>,
    ) -> Result<(), Error> {
        self.declared.insert(name.to_owned(), title.is_some());
        self.at(line)?.titled_label(name, title);
        Ok(())
    }

    /// Declares the labels so far as all there are.
    pub(crate) fn fix_labels(&mut self) {
        self.builder.close_labels();
        self.fixed = true;
    }

    /// Declares a label; the builder reports one that is declared twice.
    pub(crate) fn label(
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

    /// Declares a label, unless it is declared already.
    pub(crate) fn label_once(
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

    /// A label that should be declared already: at most its title is new.
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

    /// The filled builder.
    pub(crate) fn finish(self, line: usize) -> Result<GraphBuilder, Error> {
        self.within_limit(line)?;
        Ok(self.builder)
    }
}
