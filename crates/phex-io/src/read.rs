//! Reading: from a path, a stream or bytes to a builder.

use std::io::Read;
use std::path::{Path, PathBuf};

use phex::graph::{GraphBuilder, Strength};

use crate::formats::{
    arff, edges, hxg, json, label_table, matrix, obo, outline, toml, turtle, wordnet,
};
use crate::input::{self, Limits, LineGuard};
use crate::sink::Sink;
use crate::text::Source;
use crate::{Error, Format};

/// How to read a graph. The default guesses the format and takes no other file.
#[derive(Debug, Clone)]
pub struct ReadOptions {
    /// The format. `None`: by the name of the file, else by its content.
    pub format: Option<Format>,
    /// The list of synsets for a WordNet file.
    pub synsets: Option<PathBuf>,
    /// A table of all labels, in the order of the score columns. Another label is then a mistake.
    pub labels: Option<PathBuf>,
    /// The class names of a matrix without a header.
    pub rows: Option<PathBuf>,
    /// The attribute names of a matrix without a header.
    pub columns: Option<PathBuf>,
    /// The strength of a certain entry of a matrix. `None`: hard for binary matrices, `u = 1` for
    /// graded ones.
    pub matrix_scale: Option<Strength>,
    /// Whether the classes of a matrix are a one-of group named `class`.
    pub one_of_classes: bool,
    /// How many bytes a file may have. Default: 1 GiB.
    pub max_bytes: u64,
    /// How many bytes a line may have, except in JSON. Default: 1 MiB.
    pub max_line: usize,
    /// How many labels a graph may have. Default: 10 million.
    pub max_labels: usize,
}

impl Default for ReadOptions {
    fn default() -> ReadOptions {
        ReadOptions {
            format: None,
            synsets: None,
            labels: None,
            rows: None,
            columns: None,
            matrix_scale: None,
            one_of_classes: false,
            max_bytes: 1 << 30,
            max_line: 1 << 20,
            max_labels: 10_000_000,
        }
    }
}

/// Reads a file, or standard input for `-`, into a builder whose declarations know their lines.
///
/// ```no_run
/// use phex_io::{ReadOptions, read_graph};
///
/// let builder = read_graph("animals.toml".as_ref(), &ReadOptions::default())?;
/// for finding in builder.check().findings() {
///     println!("{}: {}", finding.place, finding.message);
/// }
/// # Ok::<(), phex_io::Error>(())
/// ```
///
/// # Errors
/// When the file cannot be read, breaks a limit, is of no known format or not well formed.
pub fn read_graph(path: &Path, options: &ReadOptions) -> Result<GraphBuilder, Error> {
    let format = options.format.or_else(|| format_by_name(path, options));
    let bytes = input::read_path(path, format, options)?;
    parse(&bytes, &input::display_name(path), format, options)
}

/// Reads a stream. The name stands for the file in messages and shows the format.
///
/// # Errors
/// As for [`read_graph`].
pub fn read_graph_from(
    reader: impl Read,
    name: &str,
    options: &ReadOptions,
) -> Result<GraphBuilder, Error> {
    let format = options.format.or_else(|| format_by_name(name.as_ref(), options));
    let bytes = input::read_all(reader, name, format, options)?;
    parse(&bytes, name, format, options)
}

/// Reads bytes of a given format; other files are opened only where the options name them.
///
/// ```
/// use phex_io::{Format, ReadOptions, parse_graph};
///
/// let text = b"parent,child\nanimal,dog\nanimal,cat\n";
/// let builder = parse_graph(text, "animals.csv", Format::Csv, &ReadOptions::default())?;
/// assert_eq!(builder.len(), 3);
/// # Ok::<(), phex_io::Error>(())
/// ```
///
/// # Errors
/// As for [`read_graph`].
pub fn parse_graph(
    bytes: &[u8],
    name: &str,
    format: Format,
    options: &ReadOptions,
) -> Result<GraphBuilder, Error> {
    let limits = Limits::of(options, Some(format));
    if bytes.len() as u64 > limits.bytes {
        return Err(Error::TooLarge { path: name.to_owned(), limit: limits.bytes });
    }
    LineGuard::new(name, limits).feed(bytes)?;
    parse(bytes, name, Some(format), options)
}

fn format_by_name(path: &Path, options: &ReadOptions) -> Option<Format> {
    // Names for rows or columns make sense for nothing but a matrix.
    if options.rows.is_some() || options.columns.is_some() {
        return Some(Format::Matrix);
    }
    Format::from_path(path)
}

fn format_by_content(bytes: &[u8], name: &str) -> Result<Format, Error> {
    let text_file = Path::new(name).extension().is_some_and(|ext| ext.eq_ignore_ascii_case("txt"));
    Format::from_content(bytes).or_else(|| text_file.then_some(Format::Outline)).ok_or_else(|| {
        Error::UnknownFormat { path: name.to_owned(), known: Format::readable_names() }
    })
}

fn parse(
    bytes: &[u8],
    name: &str,
    format: Option<Format>,
    options: &ReadOptions,
) -> Result<GraphBuilder, Error> {
    let format = match format {
        Some(format) => format,
        None => format_by_content(bytes, name)?,
    };
    let source = Source::decode(bytes, name)?;
    let mut sink = Sink::new(options);
    if let Some(path) = &options.labels {
        let (bytes, name) = companion(path, options)?;
        let table = Source::decode(&bytes, &name)?;
        sink.source(&name);
        label_table::read(&table, &mut sink)?;
    }
    sink.source(name);
    match format {
        Format::Toml => toml::read(&source, &mut sink)?,
        Format::Json => json::read(&source, &mut sink)?,
        Format::Csv => edges::read(&source, b',', &mut sink)?,
        Format::Tsv => edges::read(&source, b'\t', &mut sink)?,
        Format::Hxg => hxg::read(&source, &mut sink)?,
        Format::Outline => outline::read(&source, &mut sink)?,
        Format::Obo => obo::read(&source, &mut sink)?,
        Format::Turtle => turtle::read(&source, &mut sink)?,
        Format::WordNet => {
            let path = options.synsets.as_deref().ok_or_else(|| Error::NeedsFile {
                path: name.to_owned(),
                format,
                what: "a list of synset ids, since all of WordNet is rarely wanted",
                help: "pass a file with one id a line, such as n02084071, as `synsets`",
            })?;
            let (bytes, list) = companion(path, options)?;
            wordnet::read(&source, &Source::decode(&bytes, &list)?, &mut sink)?;
        }
        Format::Arff => arff::read(&source, &mut sink)?,
        Format::Matrix => read_matrix(&source, options, &mut sink)?,
        Format::Dot => {
            return Err(Error::OneWay { path: name.to_owned(), format, only: "written" });
        }
    }
    sink.finish(source.text.lines().count())
}

fn read_matrix(source: &Source<'_>, options: &ReadOptions, sink: &mut Sink) -> Result<(), Error> {
    let names = |path: &Option<PathBuf>| -> Result<Option<Vec<String>>, Error> {
        let Some(path) = path else { return Ok(None) };
        let (bytes, name) = companion(path, options)?;
        Ok(Some(matrix::names(&Source::decode(&bytes, &name)?)))
    };
    let (rows, columns) = (names(&options.rows)?, names(&options.columns)?);
    let settings =
        matrix::Settings { scale: options.matrix_scale, one_of_classes: options.one_of_classes };
    matrix::read(source, rows, columns, settings, sink)
}

/// The bytes and the name of a file beside the main one.
fn companion(path: &Path, options: &ReadOptions) -> Result<(Vec<u8>, String), Error> {
    Ok((input::read_path(path, None, options)?, input::display_name(path)))
}
