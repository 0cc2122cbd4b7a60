//! Where rows come from: an engine, a table of scores, and one of evidence beside it.

use std::path::Path;
use std::str::FromStr as _;

use anyhow::{Context as _, bail};
use phex::infer::{Budget, Engine, Evidence, Options};
use phex_io::{EvidenceReader, Number, Rows, TableFormat, TableLimits, TableReader, Values};

use crate::args::{EngineArguments, RowArguments};
use crate::model::Kind;

impl EngineArguments {
    pub(super) fn options(&self) -> Options {
        let default = Budget::default();
        Options {
            method: self.method,
            budget: Budget {
                operations: self.budget.unwrap_or(default.operations),
                bytes: self.memory.map_or(default.bytes, |mib| mib * 1024.0 * 1024.0),
            },
            cap: self.cap,
            seed: self.seed,
        }
    }
}

pub(super) struct Source {
    pub(super) engine: Engine,
    scores: Option<TableReader>,
    evidence: Option<EvidenceReader>,
    keep: Vec<String>,
    /// Without scores: one row of zeros, until it is taken.
    zeros: bool,
}

/// Evidence may repeat the kept columns of the scores, and need not.
fn open_evidence(
    path: &Path,
    labels: &[String],
    keep: &[String],
    limits: &TableLimits,
) -> Result<EvidenceReader, phex_io::Error> {
    match EvidenceReader::open(path, None, labels, keep, limits) {
        Err(phex_io::Error::MissingColumn { .. }) if path.as_os_str() != "-" => {
            EvidenceReader::open(path, None, labels, &[], limits)
        }
        opened => opened,
    }
}

impl Source {
    pub(super) fn open(arguments: &RowArguments) -> anyhow::Result<Source> {
        if let Some(threads) = arguments.threads {
            // Fails only when a pool exists already, and then there is one.
            let _ = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global();
        }
        let model = arguments.input.model()?;
        let engine = Engine::compile(model, &arguments.engine.options())
            .with_context(|| arguments.input.path.display().to_string())?;
        let labels = engine.model().names();
        let format = arguments.table_format.as_deref().map(TableFormat::from_str).transpose();
        let format = format.map_err(anyhow::Error::msg)?;
        let (keep, limits) = (arguments.keep.clone(), TableLimits::default());
        let scores = match &arguments.scores {
            Some(path) => Some(TableReader::open(path, format, labels, &keep, &limits)?),
            // Their fields are in the file.
            None if arguments.input.kind() != Kind::Graph => None,
            None => bail!("--scores FILE is missing: a table of logits, a column a label"),
        };
        let evidence = match &arguments.evidence {
            Some(path) => Some(open_evidence(path, labels, &keep, &limits)?),
            None => None,
        };
        crate::interrupt::listen();
        let zeros = scores.is_none();
        Ok(Source { scores, evidence, keep, zeros, engine: engine.clone() })
    }

    /// The form of the output: that of its name, else that of the scores.
    pub(super) fn format(&self, out: &Path) -> TableFormat {
        let scores = self.scores.as_ref().map(TableReader::format);
        TableFormat::from_path(out).or(scores).unwrap_or(TableFormat::Csv)
    }

    pub(super) fn number(&self) -> Number {
        self.scores.as_ref().map_or(Number::F64, TableReader::number)
    }

    pub(super) fn kept(&self) -> &[String] {
        &self.keep
    }

    pub(super) fn total(&self) -> Option<u64> {
        self.scores.as_ref().and_then(TableReader::rows)
    }

    /// The next rows and what is known of them.
    pub(super) fn next(
        &mut self,
        most: usize,
    ) -> anyhow::Result<Option<(Rows, Option<Vec<Evidence>>)>> {
        crate::interrupt::check()?;
        let n = self.engine.model().len();
        let rows = match &mut self.scores {
            Some(scores) => scores.next_rows(most)?,
            None => std::mem::take(&mut self.zeros).then(|| Rows {
                count: 1,
                values: Values::F64(vec![0.0; n]),
                kept: Vec::new(),
            }),
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
        Ok(rows.zip(known).map(|(rows, known)| (rows, Some(known.evidence()))))
    }
}
