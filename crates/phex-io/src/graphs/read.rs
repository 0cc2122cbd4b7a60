//! Reading graphs: from a path, a stream or bytes to a builder.

use std::io::Read;
use std::path::{Path, PathBuf};

use phex::graph::{GraphBuilder, Strength};

use super::matrix::MatrixOptions;
use super::path_tree::PathNames;
use super::recognise::recognise;
use super::sink::GraphSink;
use super::table::{self, Records, levels, parents, path_column};
use super::{
    arff, categories, edges, graphml, hxg, icd, isolated, json, label_table, matrix, node_link,
    obo, outline, paths, rdf, toml, tree, wordnet,
};
use crate::files::input::{self, LineGuard};
use crate::files::text::SourceText;
use crate::{Error, Format, Limits};

/// How to read a graph. By default the format is recognised and no other file is read.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// The format. `None`: the name of the file decides, then its content.
    pub format: Option<Format>,
    /// The list of synsets for a WordNet file.
    pub synsets: Option<PathBuf>,
    /// A table of all labels, in the order of the score columns. Any other label is then an error.
    pub labels: Option<PathBuf>,
    /// The class names of a matrix without a header.
    pub rows: Option<PathBuf>,
    /// The attribute names of a matrix without a header.
    pub columns: Option<PathBuf>,
    /// The strength of a certain entry of a matrix. `None`: hard for binary matrices, `u = 1` for
    /// graded ones.
    pub matrix_scale: Option<Strength>,
    /// Whether the classes of a matrix form a one-of group named `class`.
    pub one_of_classes: bool,
    /// The kinds of relations that are hierarchy, such as `is_a` and `part_of`, in OBO files and
    /// graphs whose links have kinds. `None`: `is_a`.
    pub relations: Option<Vec<String>>,
    /// The language of titles, such as `de`, where a file has several. `None`: English.
    pub language: Option<String>,
    /// How labels are named that a file gives by their place in a tree. `None`: outlines are
    /// merged, other formats have short names.
    pub path_names: Option<PathNames>,
    /// How much the file may hold.
    pub limits: Limits,
}

/// Reads a file, or standard input for `-`, into a builder that knows the line of each declaration.
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
/// When the file cannot be read, breaks a limit, has an unknown format or is malformed.
pub fn read_graph(path: &Path, options: &ReadOptions) -> Result<GraphBuilder, Error> {
    let format = options.format.or_else(|| format_by_name(path, options));
    let bytes = input::read_path(path, format, &options.limits)?;
    parse(&bytes, &input::display_name(path), format, options)
}

/// Reads a stream. The name stands for the file in messages and may imply the format.
///
/// # Errors
/// As for [`read_graph`].
pub fn read_graph_from(
    reader: impl Read,
    name: &str,
    options: &ReadOptions,
) -> Result<GraphBuilder, Error> {
    let format = options.format.or_else(|| format_by_name(name.as_ref(), options));
    let bytes = input::read_all(reader, name, format, &options.limits)?;
    parse(&bytes, name, format, options)
}

/// Reads bytes of a given format. Other files are opened only where the options name them.
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
    let limits = &options.limits;
    if bytes.len() as u64 > limits.file_bytes {
        return Err(Error::TooLarge { path: name.to_owned(), limit: limits.file_bytes });
    }
    LineGuard::new(name, Some(format), limits).feed(bytes)?;
    let options = ReadOptions { format: Some(format), ..options.clone() };
    parse(bytes, name, Some(format), &options)
}

fn format_by_name(path: &Path, options: &ReadOptions) -> Option<Format> {
    // Only matrices have names of rows or columns.
    if options.rows.is_some() || options.columns.is_some() {
        return Some(Format::Matrix);
    }
    Format::from_path(path)
}

fn parse(
    bytes: &[u8],
    name: &str,
    format: Option<Format>,
    options: &ReadOptions,
) -> Result<GraphBuilder, Error> {
    let source = SourceText::decode(bytes, name)?;
    let text_file = Path::new(name).extension().is_some_and(|ext| ext.eq_ignore_ascii_case("txt"));
    let format = recognise(format, &source).or_else(|| text_file.then_some(Format::Outline));
    let format = format.ok_or_else(|| Error::UnknownFormat {
        path: name.to_owned(),
        known: Format::readable_names(),
    })?;
    let mut sink = GraphSink::new(&options.limits);
    if let Some(path) = &options.labels {
        let (bytes, name) = companion(path, options)?;
        let table = SourceText::decode(&bytes, &name)?;
        sink.source(&name);
        label_table::read(&table, &mut sink)?;
    }
    sink.source(name);
    let names = options.path_names.unwrap_or(PathNames::Short);
    let relations = options.relations.as_deref();
    match format {
        Format::Toml => toml::read(&source, &mut sink)?,
        Format::Json => json::read(&source, &mut sink)?,
        Format::Csv | Format::Tsv => {
            edges::read(&source, table::delimiter(&source, format), &mut sink)?;
        }
        Format::Hxg => hxg::read(&source, &mut sink)?,
        Format::Outline => outline::read(&source, options.path_names, &mut sink)?,
        Format::Obo => obo::read(&source, relations, &mut sink)?,
        Format::Turtle | Format::RdfXml | Format::JsonLd => {
            let language = options.language.as_deref();
            rdf::read(&source, format, relations, language, &mut sink)?;
        }
        Format::WordNet => {
            let path = options.synsets.as_deref().ok_or_else(|| Error::NeedsFile {
                path: name.to_owned(),
                format,
                what: "a list of synset ids, because few graphs need all of WordNet",
                help: "pass a file with one id per line, such as n02084071, as `synsets`",
            })?;
            let (bytes, list) = companion(path, options)?;
            wordnet::read(&source, &SourceText::decode(&bytes, &list)?, &mut sink)?;
        }
        Format::Arff => arff::read(&source, &mut sink)?,
        Format::Parents => parents::read(&source, &Records::read(&source)?, &mut sink)?,
        Format::Levels => levels::read(&source, &Records::read(&source)?, names, &mut sink)?,
        Format::Paths if table::has_header(source.text) == Some(Format::Paths) => {
            path_column::read(&source, &Records::read(&source)?, names, &mut sink)?;
        }
        Format::Paths => paths::read(&source, names, &mut sink)?,
        Format::Tree => tree::read_json(&source, names, &mut sink)?,
        Format::Yaml => tree::read_yaml(&source, names, &mut sink)?,
        Format::Categories => categories::read(&source, names, &mut sink)?,
        Format::NodeLink => node_link::read(&source, relations, &mut sink)?,
        Format::GraphMl => graphml::read(&source, relations, &mut sink)?,
        Format::Icd10 => icd::read(&source, &mut sink)?,
        Format::Matrix => read_matrix(&source, options, &mut sink)?,
        Format::Dot => {
            return Err(Error::OneWay { path: name.to_owned(), format, only: "written" });
        }
    }
    let builder = sink.finish(source.text.lines().count())?;
    if options.format.is_none() {
        isolated::refuse(&builder, &source, format)?;
    }
    Ok(builder)
}

fn read_matrix(
    source: &SourceText<'_>,
    options: &ReadOptions,
    sink: &mut GraphSink,
) -> Result<(), Error> {
    let names = |path: &Option<PathBuf>| -> Result<Option<Vec<String>>, Error> {
        let Some(path) = path else { return Ok(None) };
        let (bytes, name) = companion(path, options)?;
        Ok(Some(matrix::names(&SourceText::decode(&bytes, &name)?)))
    };
    let (rows, columns) = (names(&options.rows)?, names(&options.columns)?);
    let matrix_options =
        MatrixOptions { scale: options.matrix_scale, one_of_classes: options.one_of_classes };
    matrix::read(source, rows, columns, matrix_options, sink)
}

/// The bytes and the name of a file beside the main one.
fn companion(path: &Path, options: &ReadOptions) -> Result<(Vec<u8>, String), Error> {
    Ok((input::read_path(path, None, &options.limits)?, input::display_name(path)))
}
