//! WordNet 3.0: the file `data.noun` and a list of synsets.
//!
//! The list has one id per line, such as `n02084071` (`n` and the eight digits of the offset in
//! `data.noun`); other columns may follow. The labels are these synsets, in this order, and then all
//! their hypernyms (pointers `@` and `@i`), which become their parents. The title of a label is its
//! words: `dog, domestic dog, Canis familiaris`.

use std::collections::{HashMap, HashSet};

use super::sink::GraphSink;
use crate::Error;
use crate::files::text::{SourceText, shown};

pub(super) fn read(
    data: &SourceText<'_>,
    list: &SourceText<'_>,
    sink: &mut GraphSink,
) -> Result<(), Error> {
    let synsets = index(data);
    // The synsets in the order of the labels.
    let mut order: Vec<u32> = Vec::new();
    let mut seen: HashSet<u32> = HashSet::new();
    sink.source(list.name);
    for (line, text) in list.lines() {
        let Some(id) = text.split_whitespace().next() else { continue };
        let offset = offset(id).ok_or_else(|| {
            let message = format!("{} is not a synset id such as `n02084071`", shown(id));
            list.error(line, message)
        })?;
        let Some(&(at, entry)) = synsets.get(&offset) else {
            let message = format!("the synset `{id}` is not in {}", data.name);
            return Err(list.error(line, message));
        };
        if seen.insert(offset) {
            order.push(offset);
            sink.label_once(line, &name(offset), Some(&Synset::parse(data, at, entry)?.title))?;
        }
    }
    sink.source(data.name);
    let mut next = 0;
    while let Some(&offset) = order.get(next) {
        next += 1;
        let (line, entry) = synsets[&offset];
        let synset = Synset::parse(data, line, entry)?;
        for parent in synset.hypernyms {
            let Some(&(at, entry)) = synsets.get(&parent) else {
                let message = format!("the hypernym `{}` is not in the file", name(parent));
                return Err(data.error(line, message));
            };
            if seen.insert(parent) {
                order.push(parent);
                sink.label_once(at, &name(parent), Some(&Synset::parse(data, at, entry)?.title))?;
            }
            sink.at(line)?.hierarchy(&name(parent), &name(offset), None);
        }
    }
    Ok(())
}

fn name(offset: u32) -> String {
    format!("n{offset:08}")
}

fn offset(id: &str) -> Option<u32> {
    digits(id.strip_prefix('n')?)
}

fn digits(text: &str) -> Option<u32> {
    let eight = text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_digit());
    eight.then(|| text.parse().ok()).flatten()
}

/// The line number and text of every synset. Lines of the licence start with a space.
fn index<'a>(data: &SourceText<'a>) -> HashMap<u32, (usize, &'a str)> {
    let entry = |(line, text): (usize, &'a str)| {
        let id = digits(text.split(' ').next()?)?;
        Some((id, (line, text)))
    };
    data.lines().filter_map(entry).collect()
}

/// The parts of a synset line: `offset file type count (word id)… count (pointer offset pos
/// source/target)… | gloss`. The first count is hexadecimal.
struct Synset {
    title: String,
    hypernyms: Vec<u32>,
}

impl Synset {
    fn parse(data: &SourceText<'_>, line: usize, text: &str) -> Result<Synset, Error> {
        Synset::fields(text).ok_or_else(|| {
            let message = format!("{} is not a line of WordNet's `data.noun`", shown(text));
            data.error(line, message)
        })
    }

    fn fields(text: &str) -> Option<Synset> {
        let mut fields = text.split('|').next()?.split_whitespace().skip(3);
        let count = usize::from_str_radix(fields.next()?, 16).ok()?;
        let mut title = String::new();
        for index in 0..count {
            let word = fields.next()?.replace('_', " ");
            fields.next()?;
            title.push_str(if index == 0 { "" } else { ", " });
            title.push_str(&word);
        }
        let count: usize = fields.next()?.parse().ok()?;
        let mut hypernyms = Vec::new();
        for _ in 0..count {
            let (symbol, target) = (fields.next()?, fields.next()?);
            let part_of_speech = fields.next()?;
            fields.next()?;
            if matches!(symbol, "@" | "@i") && part_of_speech == "n" {
                hypernyms.push(digits(target)?);
            }
        }
        Some(Synset { title, hypernyms })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;
    use phex::graph::GraphBuilder;

    const DATA: &str = "  1 licence\n\
        00000001 03 n 01 entity 0 001 ~ 00000002 n 0000 | all  \n\
        00000002 05 n 02 dog 0 domestic_dog 0 002 @ 00000001 n 0000 + 00000009 v 0101 | woof  \n\
        00000003 05 n 01 Rex 0 001 @i 00000002 n 0000 | mine  \n\
        00000004 05 n 02 broken\n";

    fn read_with(list: &str) -> Result<GraphBuilder, Error> {
        let mut sink = GraphSink::new(&Limits::default());
        let data = SourceText { name: "data.noun", text: DATA };
        read(&data, &SourceText { name: "list.txt", text: list }, &mut sink)?;
        sink.finish(1)
    }

    #[test]
    fn hypernyms_are_followed() {
        let graph = read_with("n00000003\tRex\n").unwrap().build().unwrap();
        let names: Vec<_> = graph.labels().iter().map(|label| label.name.as_str()).collect();
        assert_eq!(names, ["n00000003", "n00000002", "n00000001"]);
        assert_eq!(graph.labels()[1].title.as_deref(), Some("dog, domestic dog"));
        assert_eq!(graph.labels()[0].place.to_string(), "list.txt:1");
        assert_eq!(graph.hierarchy()[0].place.to_string(), "data.noun:4");
        assert_eq!(graph.hierarchy().len(), 2);
    }

    #[test]
    fn mistakes_have_their_file_and_line() {
        let error = read_with("n00000001\nn00000007\n").unwrap_err().to_string();
        assert_eq!(error, "list.txt:2: the synset `n00000007` is not in data.noun");
        let error = read_with("dog\n").unwrap_err().to_string();
        assert!(error.starts_with("list.txt:1: `dog` is not a synset id"), "{error}");
        assert!(read_with("n00000004\n").unwrap_err().to_string().starts_with("data.noun:5: "));
    }
}
