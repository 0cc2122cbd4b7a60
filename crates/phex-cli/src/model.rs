//! Models from the command line: label graphs, UAI files and the files of Ising solvers.

use std::path::Path;

use anyhow::{Context as _, anyhow, bail};
use phex::graph::RelationGraph;
use phex::model::{Ising, Model};
use phex::numeric::SCORE_LIMIT;
use phex_io::{IsingFormat, Limits, ScoreReader, ScoreValues, TableFormat};

use crate::args::{GraphInput, ScoreArguments};
use crate::say::say;
use crate::scores::ignored;

/// What a file contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModelFile {
    /// A label graph, without scores.
    Graph,
    Uai,
    Ising(IsingFormat),
}

impl ModelFile {
    /// By the given format, or else by the file.
    pub(crate) fn of(format: Option<&str>, path: &Path) -> ModelFile {
        match format {
            Some("uai") => ModelFile::Uai,
            Some(name) => name.parse().map_or(ModelFile::Graph, ModelFile::Ising),
            None if is_uai(path) => ModelFile::Uai,
            None => IsingFormat::of_file(path).map_or(ModelFile::Graph, ModelFile::Ising),
        }
    }
}

/// Whether a file name is that of a UAI model.
pub(crate) fn is_uai(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("uai"))
}

impl GraphInput {
    pub(crate) fn kind(&self) -> ModelFile {
        ModelFile::of(self.format.as_deref(), &self.path)
    }

    /// The model of any file.
    pub(crate) fn model(&self) -> anyhow::Result<Model> {
        Ok(self.model_with_graph()?.0)
    }

    /// The model of any file, and its graph if it has one.
    pub(crate) fn model_with_graph(&self) -> anyhow::Result<(Model, Option<RelationGraph>)> {
        match self.kind() {
            ModelFile::Graph => {
                // A file that is not a graph may be a model whose format must be named.
                let graph = self.graph().map_err(|error| match error.downcast_ref() {
                    Some(phex_io::Error::UnknownFormat { .. }) => {
                        anyhow!(
                            "{error}; for a model, write uai, {}",
                            IsingFormat::readable_names()
                        )
                    }
                    _ => error,
                })?;
                let model = Model::new(&graph).with_context(|| self.path.display().to_string())?;
                Ok((model, Some(graph)))
            }
            ModelFile::Uai => Ok((phex_io::read_uai(&self.path)?, None)),
            ModelFile::Ising(format) => {
                Ok((phex_io::read_ising(&self.path, Some(format))?.to_model(), None))
            }
        }
    }
}

impl ScoreArguments {
    /// The scores of the chosen row, or zeros.
    pub(crate) fn row(&self, labels: &[String]) -> anyhow::Result<Vec<f64>> {
        let Some(path) = &self.scores else { return Ok(vec![0.0; labels.len()]) };
        let format = self.table_format.as_deref().map(str::parse::<TableFormat>).transpose();
        let format = format.map_err(anyhow::Error::msg)?;
        let limits = Limits::default();
        let mut table = ScoreReader::open(path, format, labels, &self.keep, &limits)?;
        ignored(table.ignored()).iter().for_each(|note| say(format_args!("phex: {note}")));
        let wanted = self.row.unwrap_or(0);
        let mut left = wanted;
        while let Some(rows) = table.next_rows(1024)? {
            let count = rows.count as u64;
            if left >= count {
                left -= count;
                continue;
            }
            let start = left as usize * labels.len();
            let row: Vec<f64> = match rows.values {
                ScoreValues::F32(values) => {
                    values[start..start + labels.len()].iter().copied().map(f64::from).collect()
                }
                ScoreValues::F64(values) => values[start..start + labels.len()].to_vec(),
            };
            let bad = row.iter().position(|score| score.is_nan() || score.abs() > SCORE_LIMIT);
            return match bad {
                Some(at) => {
                    let (row, label) = (wanted as usize, labels[at].clone());
                    Err(phex::Error::BadScore { row, label }.into())
                }
                None => Ok(row),
            };
        }
        bail!(
            "{}: there is no row {wanted}: rows are counted from 0, and there are {}",
            path.display(),
            wanted - left
        )
    }

    /// The Ising form of a model under these scores.
    pub(crate) fn ising(&self, model: &Model, scores: &[f64]) -> anyhow::Result<Ising> {
        model.to_ising(scores, self.hard).map_err(|error| match error {
            phex::Error::HardIsing => anyhow!(
                "the model has hard constraints, which an Ising model cannot hold; give a finite \
                 cost for them, such as --hard {}, under which every best state is legal",
                model.hard_cost(scores).ceil()
            ),
            error => error.into(),
        })
    }
}
