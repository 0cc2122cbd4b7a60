//! Where rows come from: a table of scores, and optionally a table of evidence.

use std::io::{self, IsTerminal as _};
use std::num::NonZero;
use std::path::Path;

use anyhow::{Context as _, bail};
use phex::graph::RelationGraph;
use phex::infer::{Evidence, ScoreInput};
use phex_io::{
    EvidenceReader, Limits, Precision, ScoreReader, ScoreRows, ScoreValues, TableFormat,
};

use crate::args::{RowArguments, TableArguments};
use crate::files::CommandFiles;
use crate::model::ModelFile;
use crate::scores;

pub(crate) struct Source {
    scores: Scores,
    evidence: Option<EvidenceReader>,
    keep: Vec<String>,
    /// What the numbers of the table are.
    input: ScoreInput,
    /// Whether the user has said it.
    is_form_given: bool,
    /// Whether rows were read.
    has_begun: bool,
    /// Notes on how the table was read.
    notes: Vec<String>,
    /// The name of the table.
    path: String,
}

enum Scores {
    Table(Box<ScoreReader>),
    /// Rows that do not come from a table, until they are used.
    Rows(Option<ScoreRows>),
}

/// Evidence may repeat the kept columns of the scores.
fn open_evidence(
    path: &Path,
    labels: &[String],
    keep: &[String],
    limits: &Limits,
) -> Result<EvidenceReader, phex_io::Error> {
    match EvidenceReader::open(path, None, labels, keep, limits) {
        Err(phex_io::Error::MissingColumn { .. }) if path.as_os_str() != "-" => {
            EvidenceReader::open(path, None, labels, &[], limits)
        }
        opened => opened,
    }
}

/// Threads per processor that may be asked for, because more only wait for one another.
const THREADS_PER_PROCESSOR: usize = 4;
/// Threads that may be asked for on any machine.
const THREADS: usize = 64;

/// Starts the threads: one per processor, or as many as asked for within reason. Answers do not depend on their number.
/// Where the system allows no more threads, this one does all the work.
pub(crate) fn use_threads(threads: Option<usize>) {
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    let most = THREADS.max(THREADS_PER_PROCESSOR * processors);
    let threads = threads.filter(|threads| *threads > 0).unwrap_or(processors).min(most);
    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads);
    // The global pool can be built once only, even if that fails, so another one shows whether threads can be had.
    let global = match pool(threads).build() {
        Ok(_) => pool(threads),
        Err(_) => pool(1).use_current_thread(),
    };
    // Fails if a pool exists already, which is then used.
    let _ = global.build_global();
}

/// A row of zeros, for a model that holds its own scores.
fn zeros(labels: usize) -> ScoreRows {
    ScoreRows { count: 1, values: ScoreValues::F64(vec![0.0; labels]), kept: Vec::new() }
}

impl RowArguments {
    /// The files that are read.
    pub(super) fn files(&self) -> CommandFiles {
        let files = CommandFiles::default().reads(self.input.files());
        files.reads(self.table.scores.iter().chain(&self.table.evidence))
    }
}

impl Source {
    /// The given table; a row of zeros for models that hold their own scores.
    pub(super) fn of(
        arguments: &RowArguments,
        labels: &[String],
        graph: Option<&RelationGraph>,
    ) -> anyhow::Result<Source> {
        let zeros = (arguments.input.kind() != ModelFile::Graph).then(|| zeros(labels.len()));
        Source::open(&arguments.table, labels, graph, zeros)
    }

    /// The given table of scores, or else these rows.
    fn open(
        arguments: &TableArguments,
        labels: &[String],
        graph: Option<&RelationGraph>,
        rows: Option<ScoreRows>,
    ) -> anyhow::Result<Source> {
        let form = arguments.scores_are.unwrap_or_default();
        let mut notes = Vec::new();
        let mut given = vec![true; labels.len()];
        let scores = match (&arguments.scores, rows) {
            (Some(path), _) => {
                let reader = scores::open(path, arguments, form, labels, graph)?;
                reader.missing().for_each(|label| given[label] = false);
                notes.extend(scores::notes(&reader, labels, arguments.missing));
                Scores::Table(Box::new(reader))
            }
            (None, Some(rows)) => Scores::Rows(Some(rows)),
            (None, None) => {
                bail!("--scores FILE is missing: a table of logits, one column per label")
            }
        };
        let (keep, limits) = (arguments.keep.clone(), Limits::default());
        let evidence = match &arguments.evidence {
            Some(path) => Some(open_evidence(path, labels, &keep, &limits)?),
            None => None,
        };
        let others = evidence.as_ref().and_then(|reader| scores::ignored(reader.ignored()));
        notes.extend(others.filter(|note| !notes.contains(note)));
        crate::interrupt::listen();
        Ok(Source {
            scores,
            evidence,
            keep,
            input: ScoreInput::new(form, given, graph),
            is_form_given: arguments.scores_are.is_some(),
            has_begun: false,
            notes,
            path: arguments.scores.iter().map(|path| path.display().to_string()).collect(),
        })
    }

    /// Notes on how the rows were read, after the last row.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = self.notes.clone();
        notes.extend(scores::form_note(&self.input, self.is_form_given));
        notes
    }

    fn table(&self) -> Option<&ScoreReader> {
        match &self.scores {
            Scores::Table(table) => Some(table),
            Scores::Rows(_) => None,
        }
    }

    /// The format of the output: by its file name, or else that of the scores. People at a terminal get text.
    pub(super) fn format(&self, out: &Path) -> TableFormat {
        let is_terminal = out.as_os_str() == "-" && io::stdout().is_terminal();
        let scores = self.table().filter(|_| !is_terminal).map(ScoreReader::format);
        TableFormat::from_path(out).or(scores).unwrap_or(TableFormat::Csv)
    }

    pub(super) fn precision(&self) -> Precision {
        self.table().map_or(Precision::F64, ScoreReader::precision)
    }

    pub(super) fn kept(&self) -> &[String] {
        &self.keep
    }

    pub(super) fn total(&self) -> Option<u64> {
        self.table().and_then(ScoreReader::rows)
    }

    /// The next rows and their evidence.
    pub(crate) fn next(
        &mut self,
        most: usize,
    ) -> anyhow::Result<Option<(ScoreRows, Option<Vec<Evidence>>)>> {
        crate::interrupt::check()?;
        let mut rows = match &mut self.scores {
            Scores::Table(scores) => scores.next_rows(most)?,
            Scores::Rows(rows) => rows.take(),
        };
        if let (Some(rows), Scores::Table(_)) = (&mut rows, &self.scores) {
            let converted = match &mut rows.values {
                ScoreValues::F32(values) => self.input.convert(values),
                ScoreValues::F64(values) => self.input.convert(values),
            };
            converted.with_context(|| self.path.clone())?;
            let is_first = !std::mem::replace(&mut self.has_begun, true);
            if is_first && !self.is_form_given && self.input.looks_like_softmax() {
                bail!("{}: {}", self.path, scores::SOFTMAX_OR_LOGITS);
            }
        }
        let count = rows.as_ref().map_or(0, |rows| rows.count);
        let Some(reader) = &mut self.evidence else {
            return Ok(rows.map(|rows| (rows, None)));
        };
        let known = reader.next_rows(count.max(1))?;
        let found = known.as_ref().map_or(0, |known| known.count);
        if found != count {
            bail!(
                "the evidence has {} rows than the scores",
                if found < count { "fewer" } else { "more" }
            );
        }
        Ok(rows.zip(known).map(|(rows, known)| (rows, Some(known.values))))
    }
}
