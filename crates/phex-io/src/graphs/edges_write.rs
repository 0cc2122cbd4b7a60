//! Writing edge lists, from which the same graph is read again.

use std::collections::HashMap;

use phex::graph::{RelationGraph, Semantics, Strength};

use crate::{Error, Format};

/// Writes rows `relation, a, b, strength`.
struct EdgeWriter {
    format: Format,
    writer: csv::Writer<Vec<u8>>,
    /// Whether there is a strength column: graphs without soft relations need none.
    strengths: bool,
}

impl EdgeWriter {
    fn row(
        &mut self,
        relation: &str,
        a: &str,
        b: &str,
        strength: Option<Strength>,
    ) -> Result<(), Error> {
        // The reader trims cells, so that spaces may follow commas.
        let titled = relation == "label";
        for (name, may_be_empty, free) in [(a, false, false), (b, true, titled)] {
            if (name.is_empty() && !may_be_empty) || (name.trim() != name && !free) {
                let what = format!("the name {name:?}: it is empty or has spaces around it");
                return Err(Error::NotExpressible { format: self.format, what });
            }
        }
        let strength = strength.map(|strength| strength.to_string()).unwrap_or_default();
        self.record(&[relation, a, b, &strength])
    }

    fn record(&mut self, cells: &[&str; 4]) -> Result<(), Error> {
        let count = if self.strengths { 4 } else { 3 };
        let format = self.format;
        self.writer
            .write_record(&cells[..count])
            .map_err(|error| Error::Encode { format, message: error.to_string() })
    }
}

pub(super) fn write(graph: &RelationGraph, format: Format) -> Result<String, Error> {
    let delimiter = if format == Format::Tsv { b'\t' } else { b',' };
    let writer = csv::WriterBuilder::new().delimiter(delimiter).from_writer(Vec::new());
    let defaults = graph.defaults();
    let strengths = !defaults.is_empty() || graph.strengths().any(|s| s != Strength::Hard);
    let mut rows = EdgeWriter { format, writer, strengths };
    let header = ["relation", "a", "b", "strength"];
    rows.record(&header)?;
    if graph.semantics() == Semantics::Dense {
        rows.row("semantics", "dense", "", None)?;
    }
    let kinds = [
        ("all", defaults.strength),
        ("hierarchy", defaults.hierarchy),
        ("exclusion", defaults.exclusion),
    ];
    for (kind, strength) in kinds {
        if strength.is_some() {
            rows.row("default", kind, "", strength)?;
        }
    }
    let own = |strength: Strength, default: Strength| (strength != default).then_some(strength);
    if let Some(declared) = graph.rule() {
        let strength = own(declared.strength, defaults.exclusion());
        rows.row("exclude", declared.rule.name(), "", strength)?;
    }
    for label in graph.labels() {
        rows.row("label", &label.name, label.title.as_deref().unwrap_or_default(), None)?;
    }
    for edge in graph.hierarchy() {
        let strength = own(edge.strength, defaults.hierarchy());
        rows.row("hierarchy", graph.name(edge.parent), graph.name(edge.child), strength)?;
    }
    exclusions(graph, &mut rows)?;
    for group in graph.one_of() {
        for &label in &group.labels {
            rows.row("one_of", &group.name, graph.name(label), None)?;
        }
    }
    let encode = |message: String| Error::Encode { format, message };
    let bytes = rows.writer.into_inner().map_err(|error| encode(error.to_string()))?;
    String::from_utf8(bytes).map_err(|error| encode(error.to_string()))
}

fn exclusions(graph: &RelationGraph, rows: &mut EdgeWriter) -> Result<(), Error> {
    let mut uses: HashMap<&str, usize> = HashMap::new();
    for name in graph.exclusions().iter().filter_map(|exclusion| exclusion.name.as_deref()) {
        *uses.entry(name).or_default() += 1;
    }
    let default = graph.defaults().exclusion();
    for (index, exclusion) in graph.exclusions().iter().enumerate() {
        let strength = (exclusion.strength != default).then_some(exclusion.strength);
        let key = match exclusion.name.as_deref() {
            None if exclusion.labels.len() == 2 => {
                let (a, b) = (exclusion.labels[0], exclusion.labels[1]);
                rows.row("exclusion", graph.name(a), graph.name(b), strength)?;
                continue;
            }
            None => format!("#{}", index + 1),
            // A name that another group has, or that looks like a key, needs a number.
            Some(name) if uses[name] > 1 || name.starts_with('#') => {
                format!("#{} {name}", index + 1)
            }
            Some(name) => name.to_owned(),
        };
        if exclusion.name.as_deref().is_some_and(|name| name.trim() != name || name.is_empty()) {
            let what = format!("a group named {:?}", exclusion.name.as_deref().unwrap_or_default());
            return Err(Error::NotExpressible { format: rows.format, what });
        }
        for &label in &exclusion.labels {
            rows.row("exclusion_group", &key, graph.name(label), strength)?;
        }
    }
    Ok(())
}
