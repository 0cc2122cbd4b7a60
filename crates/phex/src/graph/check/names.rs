//! Warns of labels whose names are nearly the same: one of the two is probably a slip.
//!
//! Names are first compared without case, white space, punctuation, plural endings and differences
//! of Unicode that cannot be seen. What remains is compared up to one edit: a letter too many, two
//! letters swapped, or, in longer names, another letter. Names with digits are ids, and one digit
//! makes another id, so they are not compared by edits. Two names one edit apart share a form with
//! one letter deleted, so that hashing all such forms finds them: O(Σ length²) in all.

use std::collections::{HashMap, HashSet};

use unicode_normalization::UnicodeNormalization as _;

use super::super::{LabelId, RelationGraph};
use super::finding::{Finding, FindingKind};

/// Graphs with more labels are not examined by edits, but by all else.
const MOST_LABELS: usize = 200_000;
/// Longer names are not examined by edits.
const LONGEST: usize = 64;
/// Shorter names differ from others by a letter as a matter of course: cat, bat.
const SHORTEST: usize = 6;
/// Names from this length on may also differ by another letter in one place.
const SHORTEST_FOR_ANOTHER: usize = 9;

pub(super) fn similar_names(graph: &RelationGraph) -> Vec<Finding> {
    let keys: Vec<String> = graph.labels().iter().map(|label| key(&label.name)).collect();
    let mut findings = Vec::new();
    let mut first: HashMap<&str, LabelId> = HashMap::new();
    for (id, key) in graph.ids().zip(&keys) {
        if key.is_empty() {
            continue;
        }
        match first.get(key.as_str()) {
            Some(&other) => findings.push(finding(graph, other, id, difference(graph, other, id))),
            None => {
                first.insert(key, id);
            }
        }
    }
    let mut alone: Vec<(&str, LabelId)> = first.into_iter().collect();
    alone.sort_unstable_by_key(|&(_, id)| id);
    if alone.len() <= MOST_LABELS {
        for (a, b) in one_edit_apart(&alone) {
            findings.push(finding(graph, a, b, "one letter"));
        }
    }
    findings
}

fn finding(graph: &RelationGraph, first: LabelId, second: LabelId, difference: &str) -> Finding {
    let (a, b) = (graph.label(first), graph.label(second));
    let message = format!(
        "`{}` and `{}` differ by {difference} only; are they one label?",
        a.name.escape_debug(),
        b.name.escape_debug()
    );
    Finding::new(FindingKind::SimilarNames, message).labels([&a.name, &b.name]).place(&b.place)
}

/// By what two names differ that have the same key.
fn difference(graph: &RelationGraph, a: LabelId, b: LabelId) -> &'static str {
    let (a, b) = (graph.name(a), graph.name(b));
    let lower = |name: &str| name.to_lowercase();
    let bare_case = |name: &str| bare(&name.to_lowercase());
    let visible_case = |name: &str| bare(&visible(name).to_lowercase());
    if lower(a) == lower(b) {
        "case"
    } else if bare_case(a) == bare_case(b) {
        "white space or punctuation"
    } else if visible_case(a) == visible_case(b) {
        "how they are written in Unicode"
    } else {
        "the plural"
    }
}

/// A name as it looks: composed, and without characters of no width.
fn visible(name: &str) -> String {
    let hidden =
        |char: &char| matches!(char, '\u{200b}'..='\u{200f}' | '\u{feff}' | '\u{ad}' | '\u{2060}');
    name.nfkc().filter(|char| !hidden(char)).collect()
}

/// Words joined by single spaces, whatever was between them.
fn bare(name: &str) -> String {
    let words = name.split(|char: char| char.is_whitespace() || "_-.'’".contains(char));
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// What two names share that are probably meant to be the same.
fn key(name: &str) -> String {
    let name = bare(&visible(name).to_lowercase());
    let word = name.rsplit(' ').next().unwrap_or_default();
    let letters = word.chars().count();
    // Only the last word, and none that may end in `s` by itself: bus, glass, Ares.
    let plural = letters >= 4 && word.chars().all(char::is_alphabetic);
    match name.strip_suffix('s') {
        Some(stem) if plural && !stem.ends_with(['s', 'u', 'i', 'a', 'o']) => {
            match stem.strip_suffix("ie") {
                Some(stem) if letters >= 5 => format!("{stem}y"),
                _ => {
                    let hissing = ["xe", "se", "che", "she", "sse"];
                    let hisses = hissing.iter().any(|end| stem.ends_with(end));
                    if hisses && !stem.ends_with("use") && !stem.ends_with("ase") {
                        stem[..stem.len() - 1].to_owned()
                    } else {
                        stem.to_owned()
                    }
                }
            }
        }
        _ => name,
    }
}

/// The pairs of labels whose names are one edit apart.
fn one_edit_apart(names: &[(&str, LabelId)]) -> Vec<(LabelId, LabelId)> {
    let mut forms: HashMap<String, Vec<usize>> = HashMap::new();
    let mut pairs = HashSet::new();
    for (at, (name, _)) in names.iter().enumerate() {
        let letters: Vec<char> = name.chars().collect();
        let compared = (SHORTEST - 1..=LONGEST).contains(&letters.len());
        if !compared || letters.iter().any(|char| char.is_numeric()) {
            continue;
        }
        let without = |skip: usize| -> String {
            let kept = letters.iter().enumerate().filter(|(index, _)| *index != skip);
            kept.map(|(_, char)| char).collect()
        };
        let mut own: Vec<String> = (0..letters.len()).map(without).collect();
        own.push((*name).to_owned());
        own.sort_unstable();
        own.dedup();
        for form in own {
            let others = forms.entry(form).or_default();
            for &other in others.iter() {
                if is_slip(names[other].0, name) {
                    pairs.insert((names[other].1, names[at].1));
                }
            }
            // Thousands of names around one form are a system of names, not slips.
            if others.len() < 32 {
                others.push(at);
            }
        }
    }
    let mut pairs: Vec<_> = pairs.into_iter().collect();
    pairs.sort_unstable();
    pairs
}

/// Whether two names differ by one edit that looks like a slip of the pen.
fn is_slip(a: &str, b: &str) -> bool {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let longest = a.len().max(b.len());
    let start = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[start..], &b[start..]);
    let end = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[..a.len() - end], &b[..b.len() - end]);
    match (a, b) {
        ([], [more]) | ([more], []) => longest >= SHORTEST && more.is_alphabetic() && start > 0,
        ([x, y], [p, q]) => longest >= SHORTEST && x == q && y == p,
        ([x], [y]) => {
            longest >= SHORTEST_FOR_ANOTHER && start > 0 && x.is_alphabetic() && y.is_alphabetic()
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::GraphBuilder;
    use super::*;

    fn found(names: &[&str]) -> Vec<String> {
        let mut builder = GraphBuilder::new();
        for name in names {
            builder.label(name);
        }
        let findings = similar_names(&builder.build().unwrap());
        findings.into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn slips_are_found() {
        for (a, b, by) in [
            ("mamal", "mammal", "one letter"),
            ("mammal", "Mammal", "case"),
            ("sea lion", "sea_lion", "white space or punctuation"),
            ("sea  lion", "sea lion", "white space or punctuation"),
            ("caf\u{e9}", "cafe\u{301}", "how they are written in Unicode"),
            ("dog", "dog\u{200b}", "how they are written in Unicode"),
            ("\u{ff24}og", "dog", "how they are written in Unicode"),
            ("puppy", "puppies", "the plural"),
            ("fox cub", "fox cubs", "the plural"),
            ("boxes", "box", "the plural"),
            ("antelope", "antleope", "one letter"),
            ("crocodile", "crocadile", "one letter"),
        ] {
            let expected = format!("differ by {by} only");
            let messages = found(&[a, b, "quite another"]);
            assert_eq!(messages.len(), 1, "{a} {b}: {messages:?}");
            assert!(messages[0].contains(&expected), "{messages:?}");
        }
    }

    #[test]
    fn other_names_are_left_alone() {
        let names = [
            "cat",
            "bat",
            "rat",
            "horse",
            "house",
            "n02084071",
            "n02084072",
            "GO:0005634",
            "GO:0005635",
            "level one",
            "bus",
            "glass",
            "gas",
            "unable",
            "table",
            "A > B",
            "A > C",
        ];
        assert!(found(&names).is_empty(), "{:?}", found(&names));
    }
}
