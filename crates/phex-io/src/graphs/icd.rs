//! ICD-10-CM: the code list, the order file and the tabular XML.
//!
//! ```text
//! A000    Cholera due to Vibrio cholerae 01, biovar cholerae
//! A001    Cholera due to Vibrio cholerae 01, biovar eltor
//! ```
//!
//! A code is a label and its words the title. In lists, the parent of a code is the longest code of
//! the list that it starts with; a list of billable codes has no categories such as `A00`, which are
//! added. Dots in codes do not matter. The order file (`00001 A00     0 Cholera   Cholera`) has a
//! number first and, after the code, whether it is billable. In the XML, chapters, sections and
//! codes are nested; chapters are labels such as `chapter 1`. The XML does not list codes with a
//! seventh character; they are counted, and the code list has them.

use std::collections::HashMap;

use super::sink::GraphSink;
use super::xml::{XmlReader, XmlToken};
use crate::Error;
use crate::files::text::{SourceText, shown};

/// The shortest codes are categories of three characters.
const CATEGORY: usize = 3;
/// How many lines are examined.
const EXAMINED: usize = 200;

/// A line of a list.
struct CodeLine<'a> {
    code: &'a str,
    title: &'a str,
}

impl<'a> CodeLine<'a> {
    fn parse(line: &'a str) -> Option<CodeLine<'a>> {
        let (first, rest) = line.trim().split_once([' ', '\t'])?;
        if is_code(first) {
            return Some(CodeLine { code: first, title: rest.trim() });
        }
        // The order file: number, code, 0 or 1, short title in 60 characters, title.
        let numbered = first.len() == 5 && first.bytes().all(|byte| byte.is_ascii_digit());
        let (code, rest) = rest.trim_start().split_once(' ').filter(|_| numbered)?;
        let (billable, titles) = rest.trim_start().split_once(' ')?;
        if !is_code(code) || !matches!(billable, "0" | "1") {
            return None;
        }
        let long = titles.char_indices().nth(60).map_or("", |(end, _)| titles[end..].trim());
        let title = if long.is_empty() { titles.trim() } else { long };
        Some(CodeLine { code, title })
    }
}

/// `A00`, `A000`, `A00.0`, `S02.0XXA`.
fn is_code(text: &str) -> bool {
    let bare = without_dot(text);
    let bytes = bare.as_bytes();
    (CATEGORY..=7).contains(&bytes.len())
        && bytes[0].is_ascii_uppercase()
        && bytes[1].is_ascii_digit()
        && bytes[2..].iter().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
        && text.find('.').is_none_or(|at| at == CATEGORY)
}

fn without_dot(code: &str) -> String {
    code.replacen('.', "", 1)
}

fn rows<'a>(source: &SourceText<'a>) -> impl Iterator<Item = (usize, &'a str)> + use<'a> {
    source.lines().filter(|(_, text)| !text.trim().is_empty())
}

/// Whether the first lines of a text are those of a code list.
pub(super) fn is_list(text: &str) -> bool {
    let source = SourceText { name: "", text };
    // The last line may be cut.
    let lines: Vec<&str> = rows(&source).take(EXAMINED).map(|(_, text)| text).collect();
    let good = lines.iter().filter(|line| CodeLine::parse(line).is_some()).count();
    good >= 2 && good + 1 >= lines.len()
}

pub(super) fn read(source: &SourceText<'_>, sink: &mut GraphSink) -> Result<(), Error> {
    if source.text.trim_start().starts_with('<') {
        return read_xml(source, sink);
    }
    let mut lines = Vec::new();
    let mut codes: HashMap<String, &str> = HashMap::new();
    for (line, text) in rows(source) {
        let row = CodeLine::parse(text).ok_or_else(|| {
            let message = format!("{} is not of the form `A000  title`", shown(text));
            source.error(line, message)
        })?;
        if codes.insert(without_dot(row.code), row.code).is_some() {
            return Err(source.error(line, format!("the code {} is here twice", shown(row.code))));
        }
        let title = (!row.title.is_empty()).then_some(row.title);
        sink.label_once(line, row.code, title)?;
        lines.push((line, row));
    }
    let mut added = 0;
    for (line, row) in &lines {
        let bare = without_dot(row.code);
        let shorter = (CATEGORY..bare.len()).rev();
        let parent = shorter.filter_map(|end| codes.get(&bare[..end]).copied()).next();
        match parent {
            Some(parent) => {
                sink.at(*line)?.hierarchy(parent, row.code, None);
            }
            None if bare.len() > CATEGORY => {
                let category = &bare[..CATEGORY];
                added += usize::from(!sink.knows(category));
                sink.label_once(*line, category, None)?;
                sink.at(*line)?.hierarchy(category, row.code, None);
            }
            None => {}
        }
    }
    if added > 0 {
        let message = format!("{added} categories such as `A00` were added; they have no titles");
        sink.note(1, message)?;
    }
    Ok(())
}

/// A chapter, section or code that is not finished.
struct IcdOpen {
    line: usize,
    /// The label, once its name is known.
    label: Option<String>,
    title: Option<String>,
    parent: Option<String>,
    chapter: bool,
}

fn read_xml(source: &SourceText<'_>, sink: &mut GraphSink) -> Result<(), Error> {
    let mut xml = XmlReader::new(source)?;
    let mut open: Vec<IcdOpen> = Vec::new();
    // The elements around: `name` and `desc` count where they are children of a chapter or a code.
    let mut around: Vec<String> = Vec::new();
    let mut text = String::new();
    let (mut extensions, mut first) = (0, 1);
    while let Some(token) = xml.next()? {
        match token {
            XmlToken::Start(tag) => {
                text.clear();
                if matches!(tag.name.as_str(), "chapter" | "section" | "diag") {
                    let parent = open
                        .last()
                        .and_then(|outer| outer.label.clone().or_else(|| outer.parent.clone()));
                    let chapter = tag.name == "chapter";
                    let (label, line) = (tag.attribute("id").map(str::to_owned), tag.line);
                    open.push(IcdOpen { line, label, title: None, parent, chapter });
                } else if tag.name == "sevenChrDef" {
                    extensions += 1;
                    first = if extensions == 1 { tag.line } else { first };
                }
                around.push(tag.name);
            }
            XmlToken::Text(more) => text.push_str(&more),
            XmlToken::End(name) => {
                around.pop();
                let inside = around.last().map(String::as_str);
                let direct = matches!(inside, Some("chapter" | "section" | "diag"));
                let value = text.split_whitespace().collect::<Vec<_>>().join(" ");
                match (name.as_str(), open.last_mut()) {
                    ("name", Some(last)) if direct => {
                        let name = if last.chapter { format!("chapter {value}") } else { value };
                        last.label.get_or_insert(name);
                    }
                    ("desc", Some(last)) if direct => {
                        last.title.get_or_insert(value);
                        declare(source, last, sink)?;
                    }
                    ("chapter" | "section" | "diag", _) => {
                        // A code without a description is a label as well.
                        if let Some(last) = open.pop()
                            && last.title.is_none()
                        {
                            declare(source, &last, sink)?;
                        }
                    }
                    _ => {}
                }
                text.clear();
            }
        }
    }
    if extensions > 0 {
        let message = format!(
            "{extensions} definitions of seventh characters were skipped; the code list has the \
             codes that they make"
        );
        sink.note(first, message)?;
    }
    Ok(())
}

fn declare(source: &SourceText<'_>, open: &IcdOpen, sink: &mut GraphSink) -> Result<(), Error> {
    let Some(label) = open.label.as_deref().filter(|label| !label.is_empty()) else {
        return Err(source.error(open.line, "the element has no `name` and no `id`"));
    };
    // A section may stand for the one code in it.
    let again = sink.knows(label);
    sink.label_once(open.line, label, open.title.as_deref())?;
    if let Some(parent) = open.parent.as_deref().filter(|parent| !again && *parent != label) {
        sink.at(open.line)?.hierarchy(parent, label, None);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::{Format, ReadOptions, parse_graph};
    use phex::graph::RelationGraph;

    fn read(text: &str) -> RelationGraph {
        let options = ReadOptions::default();
        parse_graph(text.as_bytes(), "g", Format::Icd10, &options).unwrap().build().unwrap()
    }

    fn edges(graph: &RelationGraph) -> Vec<String> {
        let edges = graph.hierarchy().iter();
        edges.map(|e| format!("{}>{}", graph.name(e.parent), graph.name(e.child))).collect()
    }

    #[test]
    fn code_lists() {
        let graph = read("A000    Cholera, cholerae\nA001    Cholera, eltor\nS020XXA Fracture\n");
        assert_eq!(edges(&graph), ["A00>A000", "A00>A001", "S02>S020XXA"]);
        assert_eq!(graph.labels()[0].title.as_deref(), Some("Cholera, cholerae"));
        let graph = read("A00 Cholera\nA00.0 Cholerae\nA00.01 More\n");
        assert_eq!(edges(&graph), ["A00>A00.0", "A00.0>A00.01"]);
    }

    #[test]
    fn order_files() {
        let line = |number, code, billable, short, long| {
            format!("{number:05} {code:<7} {billable} {short:<60} {long}\n")
        };
        let text = line(1, "A00", 0, "Cholera", "Cholera")
            + &line(2, "A000", 1, "Chol d/t V. chol", "Cholera due to Vibrio cholerae");
        let graph = read(&text);
        assert_eq!(edges(&graph), ["A00>A000"]);
        assert_eq!(graph.labels()[1].title.as_deref(), Some("Cholera due to Vibrio cholerae"));
    }

    #[test]
    fn tabular() {
        let graph = read(
            "<?xml version=\"1.0\"?>\n<ICD10CM.tabular><version>2024</version>\n<chapter><name>1</name>\
             <desc>Infections</desc><includes><note>x</note></includes>\n<section id=\"A00-A09\">\
             <desc>Intestinal</desc>\n<diag><name>A00</name><desc>Cholera</desc>\n<diag><name>A00.0</name>\
             <desc>Cholerae</desc></diag></diag>\n</section></chapter></ICD10CM.tabular>",
        );
        assert_eq!(edges(&graph), ["chapter 1>A00-A09", "A00-A09>A00", "A00>A00.0"]);
        assert_eq!(graph.labels()[3].title.as_deref(), Some("Cholerae"));
        assert_eq!(graph.hierarchy()[2].place.line, Some(6));
    }
}
