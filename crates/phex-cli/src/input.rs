//! Graphs from the command line.

use std::path::Path;

use anyhow::{Context as _, bail};
use phex::graph::{Defaults, GraphBuilder, RelationGraph, Strength};
use phex_io::{Format, ReadOptions};

use crate::args::{GraphFile, GraphInput};

/// The format named on the command line.
pub(crate) fn format(name: Option<&str>) -> anyhow::Result<Option<Format>> {
    name.map(|name| name.parse().map_err(anyhow::Error::msg)).transpose()
}

/// A graph without the additions of the command line.
pub(crate) fn read(path: &Path, options: &ReadOptions) -> anyhow::Result<RelationGraph> {
    phex_io::read_graph(path, options)?.build().with_context(|| path.display().to_string())
}

impl GraphFile {
    /// Reads the file and adds what the command line says.
    fn builder_with(&self, strength: Option<Strength>) -> anyhow::Result<GraphBuilder> {
        let options = ReadOptions {
            format: format(self.format.as_deref())?,
            labels: self.labels.clone(),
            synsets: self.synsets.clone(),
            rows: self.rows.clone(),
            columns: self.columns.clone(),
            matrix_scale: self.scale,
            one_of_classes: self.one_of_classes,
            ..ReadOptions::default()
        };
        let mut builder = phex_io::read_graph(&self.path, &options)?;
        builder.source("command line");
        if let Some(rule) = self.exclude {
            if builder.has_exclusion_rule() {
                bail!(
                    "{}: the file already declares an exclusion rule; leave out --exclude",
                    self.path.display()
                );
            }
            builder.exclusion_rule(rule, None);
        }
        if let Some(strength) = strength {
            if let Some(fault) = strength.fault() {
                bail!("--strength: {fault}");
            }
            let defaults = *builder.current_defaults();
            builder.defaults(Defaults { strength: Some(strength), ..defaults });
        }
        if self.single_label {
            builder.single_label();
        }
        if let Some(name) = &self.one_of_leaves {
            builder.one_of_leaves(name);
        }
        Ok(builder)
    }

    /// The frozen graph, with the strengths that its file gives.
    pub(crate) fn given_graph(&self) -> anyhow::Result<RelationGraph> {
        self.builder_with(None)?.build().with_context(|| self.path.display().to_string())
    }
}

impl GraphInput {
    /// Reads the file and adds what the command line says.
    pub(crate) fn builder(&self) -> anyhow::Result<GraphBuilder> {
        self.builder_with(self.strength)
    }

    /// The frozen graph.
    pub(crate) fn graph(&self) -> anyhow::Result<RelationGraph> {
        self.builder()?.build().with_context(|| self.path.display().to_string())
    }
}
