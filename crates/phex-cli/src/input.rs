//! Graphs from the command line.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use phex::graph::{Defaults, GraphBuilder, RelationGraph, Strength};
use phex_io::{Format, ReadOptions};

use crate::args::{GraphFile, GraphInput};
use crate::say::say;

/// The format named on the command line.
pub(crate) fn format(name: Option<&str>) -> anyhow::Result<Option<Format>> {
    name.map(|name| name.parse().map_err(anyhow::Error::msg)).transpose()
}

/// A graph without the additions of the command line.
pub(crate) fn read(path: &Path, options: &ReadOptions) -> anyhow::Result<RelationGraph> {
    phex_io::read_graph(path, options)?.build().with_context(|| path.display().to_string())
}

/// Says on standard error what was left out of the file; `phex graph check` reports it as warnings.
fn say_notes(builder: &GraphBuilder) {
    for (place, message) in builder.notes() {
        say(format_args!("note: {place}: {message}"));
    }
}

impl GraphFile {
    /// The files that are read.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        let others = [&self.labels, &self.synsets, &self.rows, &self.columns];
        others.into_iter().flatten().chain([&self.path]).map(PathBuf::as_path)
    }

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
            relations: (!self.relations.is_empty()).then(|| self.relations.clone()),
            language: self.language.clone(),
            path_names: self.path_names,
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
        let builder = self.builder_with(None)?;
        say_notes(&builder);
        builder.build().with_context(|| self.path.display().to_string())
    }
}

impl GraphInput {
    /// Reads the file and adds what the command line says.
    pub(crate) fn builder(&self) -> anyhow::Result<GraphBuilder> {
        self.builder_with(self.strength)
    }

    /// The frozen graph.
    pub(crate) fn graph(&self) -> anyhow::Result<RelationGraph> {
        let builder = self.builder()?;
        say_notes(&builder);
        builder.build().with_context(|| self.path.display().to_string())
    }
}
