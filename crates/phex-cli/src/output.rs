//! Standard output, written so that a closed pipe is not an error, and the texts of errors.

use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use anyhow::{Context as _, anyhow};
use phex_io::{Output, TableFormat};
use serde::Serialize;

use crate::files::summary_of;
use crate::say::{say, visible};

/// Writes text for people to standard output.
pub(crate) fn text(text: &str) -> anyhow::Result<()> {
    io::stdout().lock().write_all(visible(text).as_bytes())?;
    Ok(())
}

/// Writes one JSON object to standard output.
pub(crate) fn json<T: Serialize>(value: &T) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, value).map_err(io::Error::from)?;
    out.write_all(b"\n")?;
    Ok(())
}

/// Writes a summary to standard output, or to standard error if standard output holds the data.
pub(crate) fn summary<T: Serialize>(value: &T, data_on_stdout: bool) -> anyhow::Result<()> {
    if !data_on_stdout {
        return json(value);
    }
    say(serde_json::to_string_pretty(value)?);
    Ok(())
}

/// Writes a summary to `OUT.run.json` beside an output file, but not for streams and devices.
pub(crate) fn write_beside<T: Serialize>(summary: &T, out: &Path) -> anyhow::Result<()> {
    if !out.is_file() {
        return Ok(());
    }
    let text = serde_json::to_string_pretty(summary)? + "\n";
    Ok(phex_io::write_text(&summary_of(out), &text)?)
}

/// An error with its causes, and the option that helps if there is one. A cause that the message
/// already contains is not repeated.
pub(crate) fn message(error: &anyhow::Error) -> String {
    let mut message = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if message.is_empty() {
            message = cause;
        } else if !message.contains(&cause) {
            message = format!("{message}: {cause}");
        }
    }
    let advice = error.chain().filter_map(|cause| cause.downcast_ref()).find_map(advice);
    match advice {
        Some(advice) => format!("{message}; {advice}"),
        None => message,
    }
}

/// The option that helps against an error in a file.
fn advice(error: &phex_io::Error) -> Option<String> {
    use phex_io::Error;
    match error {
        Error::UnknownColumn { column, .. } => {
            Some(format!("to pass it through, use --keep {column:?}"))
        }
        Error::UnnamedFeature { .. } => Some(String::from("name it or use --drop \"\"")),
        Error::NotAFeature { column, .. } => Some(format!(
            "leave it out with --drop {column:?} or pass it through with --keep {column:?}"
        )),
        Error::TooManyCategories { location, .. } => {
            let column = &location.column;
            Some(format!(
                "correct the cell, leave the column out with --drop {column:?} or pass it through \
                 with --keep {column:?}"
            ))
        }
        Error::TooMuchData { .. } => Some(String::from("leave columns out with --drop")),
        _ => None,
    }
}

/// Whether the reader of the output has closed the pipe, as `head` does.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let io = cause.downcast_ref::<io::Error>();
        io.is_some_and(|io| io.kind() == io::ErrorKind::BrokenPipe)
    })
}

/// Names of labels in one cell of CSV, separated by semicolons.
pub(crate) fn label_list(labels: &[&str]) -> String {
    let escape = |label: &&str| label.replace('\\', "\\\\").replace(';', "\\;");
    cell(&labels.iter().map(escape).collect::<Vec<_>>().join(";"))
}

/// A cell of CSV.
pub(crate) fn cell(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// Whether a file name asks for JSON lines.
pub(crate) fn is_json_lines(path: &Path) -> bool {
    let is =
        |known: &&str| path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case(known));
    ["jsonl", "ndjson"].iter().any(is)
}

/// Refuses a file name whose ending promises a format in which no table can be written.
pub(crate) fn check_table(path: &Path) -> anyhow::Result<()> {
    match TableFormat::from_path(path) {
        None if path.extension().is_some() => Err(unknown_ending(path, &TableFormat::names())),
        _ => Ok(()),
    }
}

/// Refuses a file name whose ending promises a format in which no lines can be written.
pub(crate) fn check_lines(path: &Path) -> anyhow::Result<()> {
    let is_csv = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("csv"));
    match path.extension().is_none() || is_csv || is_json_lines(path) {
        true => Ok(()),
        false => Err(unknown_ending(path, "csv, jsonl, ndjson")),
    }
}

fn unknown_ending(path: &Path, known: &str) -> anyhow::Error {
    let ending = path.extension().unwrap_or_default().to_string_lossy();
    anyhow!(
        "{}: phex cannot write `.{ending}` files here; choose a name that ends in one of {known}",
        path.display()
    )
}

/// Starts a file of lines, which appears when it is complete.
pub(crate) fn create(path: &Path) -> anyhow::Result<BufWriter<Output>> {
    let out = Output::create(path).with_context(|| path.display().to_string())?;
    Ok(BufWriter::new(out))
}

/// Puts a complete file of lines in its place.
pub(crate) fn finish(out: BufWriter<Output>) -> anyhow::Result<()> {
    out.into_inner().map_err(io::IntoInnerError::into_error)?.finish()?;
    Ok(())
}
