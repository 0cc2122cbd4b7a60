//! Writing TOML as people would: lists are wrapped, strengths are inline, children of one parent
//! stay together.

use std::fmt::Write;

use phex::graph::document::{Document, LabelItem, OneOfLabels, RuleItem};
use phex::graph::{RelationGraph, Semantics, Strength};

/// The width at which lists are wrapped.
const WIDTH: usize = 100;

pub(super) fn write(graph: &RelationGraph) -> String {
    let document = Document::from(graph);
    let mut out = String::new();
    if document.semantics == Semantics::Dense {
        out.push_str("semantics = \"dense\"\n");
    }
    if document.single_label {
        out.push_str("single_label = true\n");
    }
    match &document.exclude {
        Some(RuleItem::Rule(rule)) => line(&mut out, "exclude", &quoted(rule.name())),
        Some(RuleItem::Strong { rule, strength }) => {
            let rule = quoted(rule.name());
            let value = format!("{{ rule = {rule}, strength = {} }}", strength_value(*strength));
            line(&mut out, "exclude", &value);
        }
        None => {}
    }
    if let Some(labels) = &document.labels {
        list(&mut out, "labels", labels.iter().map(label_value));
    }
    let defaults = &document.defaults;
    if !defaults.is_empty() {
        out.push_str("\n[defaults]\n");
        maybe_strength(&mut out, "strength", defaults.strength);
        maybe_strength(&mut out, "hierarchy", defaults.hierarchy);
        maybe_strength(&mut out, "exclusion", defaults.exclusion);
    }
    for item in &document.hierarchy {
        out.push_str("\n[[hierarchy]]\n");
        line(&mut out, "parent", &quoted(&item.parent));
        list(&mut out, "children", item.children.iter().map(|name| quoted(name)));
        maybe_strength(&mut out, "strength", item.strength);
    }
    for item in &document.exclusion {
        out.push_str("\n[[exclusion]]\n");
        if let Some(name) = &item.name {
            line(&mut out, "name", &quoted(name));
        }
        list(&mut out, "labels", item.labels.iter().map(|name| quoted(name)));
        maybe_strength(&mut out, "strength", item.strength);
    }
    for item in &document.one_of {
        out.push_str("\n[[one_of]]\n");
        line(&mut out, "name", &quoted(&item.name));
        match &item.labels {
            OneOfLabels::Names(names) => {
                list(&mut out, "labels", names.iter().map(|name| quoted(name)));
            }
            OneOfLabels::Selection(_) => line(&mut out, "labels", "\"leaves\""),
        }
        maybe_strength(&mut out, "strength", item.strength);
    }
    out
}

fn line(out: &mut String, key: &str, value: &str) {
    out.extend([key, " = ", value, "\n"]);
}

fn maybe_strength(out: &mut String, key: &str, strength: Option<Strength>) {
    if let Some(strength) = strength {
        line(out, key, &strength_value(strength));
    }
}

/// `{ u = 0.5 }` or `"hard"`.
fn strength_value(strength: Strength) -> String {
    // The debug form of a float is the shortest that reads back as the same number, as TOML does.
    match strength {
        Strength::Hard => String::from("\"hard\""),
        Strength::Q(q) => format!("{{ q = {q:?} }}"),
        Strength::U(u) => format!("{{ u = {u:?} }}"),
        Strength::W(w) => format!("{{ w = {w:?} }}"),
    }
}

fn label_value(label: &LabelItem) -> String {
    match label {
        LabelItem::Name(name) => quoted(name),
        LabelItem::Titled { name, title } => {
            format!("{{ name = {}, title = {} }}", quoted(name), quoted(title))
        }
    }
}

/// A list on one line if it fits, else wrapped. Labels with titles, which are tables, get one line
/// each.
fn list(out: &mut String, key: &str, values: impl Iterator<Item = String>) {
    let values: Vec<String> = values.collect();
    let tables = values.iter().any(|value| value.starts_with('{'));
    let width: usize = values.iter().map(|value| value.chars().count() + 2).sum();
    if !tables && key.len() + width + 4 <= WIDTH {
        line(out, key, &format!("[{}]", values.join(", ")));
        return;
    }
    out.extend([key, " = [\n"]);
    let mut used = 0;
    for value in &values {
        let length = value.chars().count() + 2;
        if used > 0 && (tables || used + length > WIDTH) {
            out.push('\n');
            used = 0;
        }
        out.push_str(if used == 0 { "  " } else { " " });
        out.extend([value, ","]);
        used += length;
    }
    out.push_str("\n]\n");
}

/// A basic string.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            // Writing to a string cannot fail.
            char if char.is_control() => drop(write!(out, "\\u{:04X}", u32::from(char))),
            char => out.push(char),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use phex::graph::{ExclusionRule, GraphBuilder};

    #[test]
    fn reads_as_a_person_would_write_it() {
        let mut builder = GraphBuilder::new();
        builder.exclusion_rule(ExclusionRule::Siblings, Some(Strength::U(0.5)));
        builder.hierarchy("animal", "dog", Some(Strength::W(2.0)));
        builder.hierarchy("animal", "cat \"Tom\"", Some(Strength::W(2.0)));
        builder.exclusion_group(Some("pets"), ["dog", "cat \"Tom\""], None);
        let text = write(&builder.build().unwrap());
        let expected = r#"exclude = { rule = "siblings", strength = { u = 0.5 } }
labels = ["animal", "dog", "cat \"Tom\""]

[[hierarchy]]
parent = "animal"
children = ["dog", "cat \"Tom\""]
strength = { w = 2.0 }

[[exclusion]]
name = "pets"
labels = ["dog", "cat \"Tom\""]
"#;
        assert_eq!(text, expected);
    }

    #[test]
    fn long_lists_are_wrapped() {
        let mut out = String::new();
        list(&mut out, "labels", (0..30).map(|i| format!("\"label {i}\"")));
        assert!(out.lines().all(|line| line.len() <= WIDTH + 2), "{out}");
        assert!(out.lines().count() > 4, "{out}");
    }
}
