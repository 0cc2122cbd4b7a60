//! The tables that a run trains and validates on.

use anyhow::bail;
use phex::graph::RelationGraph;
use phex_io::Dataset;
use phex_train::{Examples, LabelSettings, TaxonomyDoubt};

use super::with_flag;
use crate::args::TrainingSet;
use crate::data::{almost_numbers, ignored, label_settings, targets, unseen};
use crate::files::CommandFiles;

impl TrainingSet {
    /// The files that are read.
    pub(crate) fn files(&self) -> CommandFiles {
        let files = CommandFiles::default().reads(&self.data.data).reads(&self.valid);
        files.reads(&self.valid_labels).reads(self.labels.files())
    }
}

/// The data of a run.
pub(crate) struct TrainingTables {
    pub(crate) training: Dataset,
    pub(crate) validation: Option<Dataset>,
    pub(crate) labels: LabelSettings,
    /// What a user should know about them.
    pub(crate) notes: Vec<String>,
}

impl TrainingTables {
    pub(crate) fn read(
        arguments: &TrainingSet,
        graph: &RelationGraph,
    ) -> anyhow::Result<TrainingTables> {
        let labels = label_settings(&arguments.labels)?;
        let files = arguments.data.files()?;
        let mut options = arguments.data.options(None)?;
        options.features = Some(arguments.features.clone()).filter(|names| !names.is_empty());
        let read_labels = |data, files| labels.target_options(data, files).map_err(with_flag);
        options.targets = Some(read_labels(files, &arguments.labels.label_file)?);
        let training = phex_io::read_dataset(files, &options, Some(graph))?;
        let mut notes = ignored(&training);
        notes.extend(almost_numbers(&training.schema));
        let mut validation = None;
        if !arguments.valid.is_empty() {
            // Validation does not need the columns that are copied to the output.
            options.drop.append(&mut options.keep);
            (options.features, options.schema) = (None, Some(training.schema.clone()));
            options.targets = Some(read_labels(&arguments.valid, &arguments.valid_labels)?);
            let read = phex_io::read_dataset(&arguments.valid, &options, Some(graph))?;
            notes.extend(unseen(&read.unseen));
            validation = Some(read);
        }
        Ok(TrainingTables { training, validation, labels, notes })
    }

    /// Checks that the relations say what the rows suggest: stops where no label can be inferred to be off,
    /// and notes where roots are unrelated.
    pub(crate) fn check_taxonomy(
        &mut self,
        arguments: &TrainingSet,
        graph: &RelationGraph,
    ) -> anyhow::Result<()> {
        if arguments.multi_label {
            return Ok(());
        }
        match examples(&self.training, graph)?.taxonomy_doubt(graph) {
            None => {}
            Some(TaxonomyDoubt::NothingExcludes) => bail!(
                "each row lists one label, but no label of the graph excludes another, so a model that \
                 turns every label on would be the best; give --single-label if each row is exactly one \
                 kind, or --multi-label if a row may be several at once"
            ),
            Some(TaxonomyDoubt::NoNegatives) => bail!(
                "no row says that a label is off, and no label of the graph excludes another, so a model \
                 that turns every label on would be the best; give --unlisted off if rows list all of \
                 their labels, --single-label if each row is exactly one kind, or --multi-label to train \
                 anyway"
            ),
            Some(TaxonomyDoubt::UnrelatedRoots(roots)) => self.notes.push(format!(
                "each row lists one label, but {} roots are unrelated (`{}`, `{}`, …), so a row may be \
                 all of them at once; give --single-label if each row is exactly one kind, or \
                 --multi-label to silence this",
                roots.len(),
                graph.name(roots[0]),
                graph.name(roots[1])
            )),
        }
        Ok(())
    }

    /// The examples to train on, and those to validate on.
    pub(crate) fn examples(
        &self,
        graph: &RelationGraph,
    ) -> anyhow::Result<(Examples<'_>, Option<Examples<'_>>)> {
        let validation = self.validation.as_ref().map(|data| examples(data, graph)).transpose()?;
        Ok((examples(&self.training, graph)?, validation))
    }
}

/// The examples of a data set with targets.
pub(crate) fn examples<'d>(
    data: &'d Dataset,
    graph: &RelationGraph,
) -> anyhow::Result<Examples<'d>> {
    Ok(Examples::new(&data.features, targets(data)?, graph)?)
}
