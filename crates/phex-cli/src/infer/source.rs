//! Where rows come from: a table of scores, and optionally a table of evidence.

use std::num::NonZero;
use std::path::Path;
use std::str::FromStr as _;

use anyhow::bail;
use phex::infer::Evidence;
use phex_io::{
    EvidenceReader, Limits, Precision, ScoreReader, ScoreRows, ScoreValues, TableFormat,
};

use crate::args::{RowArguments, TableArguments};
use crate::files::CommandFiles;
use crate::model::ModelFile;

pub(crate) struct Source {
    scores: Scores,
    evidence: Option<EvidenceReader>,
    keep: Vec<String>,
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
    pub(super) fn of(arguments: &RowArguments, labels: &[String]) -> anyhow::Result<Source> {
        let zeros = (arguments.input.kind() != ModelFile::Graph).then(|| zeros(labels.len()));
        Source::open(&arguments.table, labels, zeros)
    }

    /// The given table of scores, or else these rows.
    pub(crate) fn open(
        arguments: &TableArguments,
        labels: &[String],
        rows: Option<ScoreRows>,
    ) -> anyhow::Result<Source> {
        let format = arguments.table_format.as_deref().map(TableFormat::from_str).transpose();
        let format = format.map_err(anyhow::Error::msg)?;
        let (keep, limits) = (arguments.keep.clone(), Limits::default());
        let scores = match (&arguments.scores, rows) {
            (Some(path), _) => {
                Scores::Table(Box::new(ScoreReader::open(path, format, labels, &keep, &limits)?))
            }
            (None, Some(rows)) => Scores::Rows(Some(rows)),
            (None, None) => {
                bail!("--scores FILE is missing: a table of logits, one column per label")
            }
        };
        let evidence = match &arguments.evidence {
            Some(path) => Some(open_evidence(path, labels, &keep, &limits)?),
            None => None,
        };
        crate::interrupt::listen();
        Ok(Source { scores, evidence, keep })
    }

    fn table(&self) -> Option<&ScoreReader> {
        match &self.scores {
            Scores::Table(table) => Some(table),
            Scores::Rows(_) => None,
        }
    }

    /// The format of the output: by its file name, or else that of the scores.
    pub(super) fn format(&self, out: &Path) -> TableFormat {
        let scores = self.table().map(ScoreReader::format);
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
        let rows = match &mut self.scores {
            Scores::Table(scores) => scores.next_rows(most)?,
            Scores::Rows(rows) => rows.take(),
        };
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
