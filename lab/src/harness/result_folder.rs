//! The folder of results: `runs.jsonl`, `result.json`, `result.md` and figures as SVG.
//!
//! Raw results are not kept in the repository. Those that documents cite have their summary, `result.md`, in
//! `lab/results`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use phex_report::{Figure, figure_svg};
use serde::Serialize;

use super::timing::Machine;
use super::{Journal, MarkdownTable};
use crate::Error;

/// A summary: tables and figures on one page of Markdown.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResultPage {
    /// The heading.
    pub title: String,
    /// What made it: a command, a version, a machine.
    pub made_by: String,
    /// How it was measured, and on which data.
    pub about: String,
    /// The tables.
    pub tables: Vec<MarkdownTable>,
    /// Figures, which are linked to as SVG files.
    pub figures: Vec<Figure>,
}

impl ResultPage {
    /// The page of a benchmark that was run on this machine.
    pub(crate) fn of_bench(name: &str, title: &str, about: &str) -> ResultPage {
        let machine = Machine::here();
        ResultPage {
            title: String::from(title),
            made_by: format!("`make bench ARGS={name}` ({machine})"),
            about: String::from(about),
            ..ResultPage::default()
        }
    }

    /// The page as Markdown.
    pub fn markdown(&self) -> String {
        let ResultPage { title, made_by, about, tables, figures } = self;
        let mut text = format!("# {title}\n\nMade by {made_by}.\n");
        if !about.is_empty() {
            let _ = write!(text, "\n{about}\n");
        }
        for figure in figures {
            let _ = write!(text, "\n![{}]({}.svg)\n", figure.title, figure.file);
        }
        for table in tables {
            let _ = write!(text, "\n{}", table.markdown());
        }
        text
    }
}

/// Where results go.
#[derive(Debug, Clone)]
pub struct ResultFolder {
    path: PathBuf,
}

impl ResultFolder {
    /// This folder, or `target/lab/NAME`. It is made if it does not exist.
    ///
    /// # Errors
    /// [`Error::File`] if it cannot be made.
    pub fn create(folder: Option<&Path>, name: &str) -> Result<ResultFolder, Error> {
        let path = folder.map_or_else(|| Path::new("target/lab").join(name), Path::to_owned);
        match std::fs::create_dir_all(&path) {
            Ok(()) => Ok(ResultFolder { path }),
            Err(source) => Err(Error::File { path, source }),
        }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The journal of runs in it.
    ///
    /// # Errors
    /// See [`Journal::open`].
    pub fn journal(&self, resume: bool) -> Result<Journal, Error> {
        Journal::open(&self.path.join("runs.jsonl"), resume)
    }

    /// Writes the summary, its figures and the raw results.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write(&self, page: &ResultPage, results: &impl Serialize) -> Result<(), Error> {
        for figure in &page.figures {
            let file = self.path.join(format!("{}.svg", figure.file));
            phex_io::write_text(&file, &figure_svg(figure))?;
        }
        phex_io::write_text(&self.path.join("result.md"), &page.markdown())?;
        let broken = |error: serde_json::Error| Error::Broken { message: error.to_string() };
        let text = serde_json::to_string_pretty(results).map_err(broken)? + "\n";
        Ok(phex_io::write_text(&self.path.join("result.json"), &text)?)
    }

    /// Prints and writes the summary of a benchmark, and its raw results with the machine that made them.
    pub(crate) fn write_bench(
        &self,
        page: &ResultPage,
        results: &impl Serialize,
    ) -> Result<(), Error> {
        #[derive(Serialize)]
        struct MadeBy<'a, R> {
            made_by: &'a str,
            machine: Machine,
            #[serde(flatten)]
            results: &'a R,
        }
        println!("{}", page.markdown());
        let raw = MadeBy { made_by: &page.made_by, machine: Machine::here(), results };
        self.write(page, &raw)?;
        eprintln!("results are in {}", self.path.display());
        Ok(())
    }
}
