//! Graphviz, which can only be written: `dot -Tpdf animals.dot > animals.pdf`.
//!
//! Hierarchy edges are arrows from parent to child. Exclusions are red lines without arrow heads; an
//! exclusion group is a red point with a line to each label. A one-of group is a blue point with its
//! name. Soft relations are dashed and labelled with their strength.

use std::fmt::Write;

use phex::graph::{RelationGraph, Strength};

pub(super) fn write(graph: &RelationGraph) -> String {
    let mut out = String::from("digraph phex {\n  node [shape=box, style=rounded];\n");
    if let Some(declared) = graph.rule() {
        let text = match declared.strength {
            Strength::Hard => format!("exclude: {}", declared.rule),
            strength => format!("exclude: {} ({strength})", declared.rule),
        };
        line(&mut out, format_args!("label={};", quoted(&text)));
    }
    for (index, label) in graph.labels().iter().enumerate() {
        line(&mut out, format_args!("n{index} [label={}];", quoted(&label.to_string())));
    }
    for edge in graph.hierarchy() {
        let (parent, child) = (edge.parent.index(), edge.child.index());
        let soft = soft(edge.strength).map(|soft| format!(" [{soft}]")).unwrap_or_default();
        line(&mut out, format_args!("n{parent} -> n{child}{soft};"));
    }
    // These lines must not change the ranks of the hierarchy.
    let across = "color=red, dir=none, constraint=false";
    for (index, exclusion) in graph.exclusions().iter().enumerate() {
        let soft = soft(exclusion.strength).map(|soft| format!(", {soft}")).unwrap_or_default();
        if let ([a, b], None) = (exclusion.labels.as_slice(), &exclusion.name) {
            let (a, b) = (a.index(), b.index());
            line(&mut out, format_args!("n{a} -> n{b} [{across}{soft}];"));
            continue;
        }
        let name = quoted(exclusion.name.as_deref().unwrap_or_default());
        line(&mut out, format_args!("x{index} [shape=point, color=red, xlabel={name}];"));
        for label in &exclusion.labels {
            let label = label.index();
            line(&mut out, format_args!("x{index} -> n{label} [{across}{soft}];"));
        }
    }
    for (index, group) in graph.one_of().iter().enumerate() {
        let name = quoted(&group.name);
        line(&mut out, format_args!("o{index} [shape=point, color=blue, xlabel={name}];"));
        for label in &group.labels {
            let label = label.index();
            let across = "color=blue, dir=none, constraint=false";
            line(&mut out, format_args!("o{index} -> n{label} [{across}];"));
        }
    }
    out.push_str("}\n");
    out
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "  {text}");
}

/// The attributes of a soft relation.
fn soft(strength: Strength) -> Option<String> {
    (!strength.is_hard()).then(|| format!("style=dashed, label={}", quoted(&strength.to_string())))
}

/// A quoted string: Graphviz reads backslashes in labels as escapes of its own.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            char if char.is_control() => out.push(' '),
            char => out.push(char),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use phex::graph::GraphBuilder;

    #[test]
    fn relations_are_drawn_apart() {
        let mut builder = GraphBuilder::new();
        builder.hierarchy("a", "the \"b\"\\", Some(Strength::U(0.5)));
        builder.exclusion("a", "c", None);
        builder.exclusion_group(Some("g"), ["c", "d", "e"], None);
        builder.one_of("o", ["d"], None);
        let text = write(&builder.build().unwrap());
        for part in [
            r#"n1 [label="the \"b\"\\"];"#,
            r#"n0 -> n1 [style=dashed, label="u=0.5"];"#,
            "n0 -> n2 [color=red, dir=none, constraint=false];",
            r#"x1 [shape=point, color=red, xlabel="g"];"#,
            "x1 -> n4 [color=red",
            "o0 -> n3 [color=blue",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }
}
