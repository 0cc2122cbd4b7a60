//! From the cells of a row to its targets.

use std::path::Path;

use phex::graph::{LabelId, RelationGraph};
use phex::infer::Evidence;

use super::{LabelForm, Target, TargetOptions, Targets, Unlisted};
use crate::files::text::{did_you_mean, shown};
use crate::tables::cursor::{Hierarchy, RecordCell};
use crate::tables::input::open_lines;
use crate::{Error, Limits};

/// The mark of a label that is off, in a list.
const OFF: char = '!';
/// Marks a class that is not a label of the graph.
const NO_LABEL: u32 = u32::MAX;

/// Collects the targets of rows.
pub(super) struct LabelReader<'g> {
    graph: &'g RelationGraph,
    options: &'g TargetOptions,
    /// The labels that numbers stand for, if names are given for them.
    ids: Option<Vec<LabelId>>,
    pub(super) targets: Targets,
    /// The evidence of the current row for each label.
    state: Vec<Evidence>,
    listed: Vec<Target>,
    limit: usize,
}

/// The labels of the classes of a hierarchical attribute.
pub(super) struct ClassLabels {
    hierarchy: Hierarchy,
    parents: Vec<Vec<u32>>,
    labels: Vec<u32>,
    /// The row in which each class was visited last.
    seen: Vec<usize>,
    row: usize,
}

impl ClassLabels {
    pub(super) fn new(hierarchy: &Hierarchy, graph: &RelationGraph) -> ClassLabels {
        let label = |class: &String| graph.id(class).map_or(NO_LABEL, |id| id.0);
        ClassLabels {
            labels: hierarchy.classes.iter().map(label).collect(),
            parents: hierarchy.parents(),
            seen: vec![0; hierarchy.classes.len()],
            row: 0,
            hierarchy: hierarchy.clone(),
        }
    }
}

impl<'g> LabelReader<'g> {
    pub(super) fn new(
        graph: &'g RelationGraph,
        options: &'g TargetOptions,
        limit: usize,
    ) -> Result<LabelReader<'g>, Error> {
        let ids = match &options.names {
            None => None,
            Some(names) => {
                let mut ids = Vec::with_capacity(names.len());
                for (id, name) in names.iter().enumerate() {
                    ids.push(find(graph, name).map_err(|message| Error::Table {
                        path: String::from("the names of numbered labels"),
                        message: format!("number {id}: {message}"),
                    })?);
                }
                Some(ids)
            }
        };
        let targets = Targets::new(graph.len());
        let state = vec![Evidence::Unknown; graph.len()];
        Ok(LabelReader { graph, options, ids, targets, state, listed: Vec::new(), limit })
    }

    /// Adds a row that one cell describes.
    pub(super) fn row(
        &mut self,
        cell: RecordCell<'_>,
        form: LabelForm,
        separator: &str,
    ) -> Result<(), String> {
        let text = match cell {
            RecordCell::List(items) => {
                items.iter().try_for_each(|item| self.item(item.trim()))?;
                return self.finish(true);
            }
            RecordCell::Missing | RecordCell::Text("?") => return self.finish(false),
            RecordCell::Text(text) => text.trim().to_owned(),
            RecordCell::Number(number) => number.to_string(),
        };
        match form {
            LabelForm::List if text == "?" => return self.finish(false),
            LabelForm::List => {
                let items = text.split(separator).map(str::trim).filter(|item| !item.is_empty());
                items.into_iter().try_for_each(|item| self.item(item))?;
            }
            LabelForm::Name if text.is_empty() => return self.finish(false),
            LabelForm::Name => {
                let label = find(self.graph, &text)?;
                self.add(label, true)?;
            }
            LabelForm::Id => match self.label_of_id(&text)? {
                Some(label) => self.add(label, true)?,
                None => return self.finish(false),
            },
        }
        self.finish(true)
    }

    /// Adds a row of classes of a hierarchical attribute; the ancestors of a class are on with it.
    pub(super) fn classes(
        &mut self,
        cell: RecordCell<'_>,
        separator: &str,
        classes: &mut ClassLabels,
    ) -> Result<(), String> {
        let RecordCell::Text(text) = cell else { return self.finish(false) };
        classes.row += 1;
        let names = text.split(separator).map(str::trim).filter(|name| !name.is_empty());
        for name in names.filter(|name| !classes.hierarchy.is_root(name)) {
            let Some(class) = classes.hierarchy.position(name) else {
                let known = classes.hierarchy.classes.iter().map(String::as_str);
                let hint = did_you_mean(name, known);
                return Err(format!("the class {} is not declared{hint}", shown(name)));
            };
            let mut open = vec![class];
            while let Some(class) = open.pop() {
                let at = class as usize;
                if std::mem::replace(&mut classes.seen[at], classes.row) == classes.row {
                    continue;
                }
                if classes.labels[at] == NO_LABEL {
                    find(self.graph, &classes.hierarchy.classes[at])?;
                }
                self.add(LabelId(classes.labels[at]), true)?;
                open.extend_from_slice(&classes.parents[at]);
            }
        }
        self.finish(true)
    }

    /// Adds a name of a list, which may have the mark for off.
    fn item(&mut self, item: &str) -> Result<(), String> {
        match (self.graph.id(item), item.strip_prefix(OFF)) {
            (Some(label), _) => self.add(label, true),
            (None, Some(name)) => {
                let label = find(self.graph, name.trim())?;
                self.add(label, false)
            }
            (None, None) => {
                let label = find(self.graph, item)?;
                self.add(label, true)
            }
        }
    }

    /// The label with a number; `None` if the number is missing.
    fn label_of_id(&self, text: &str) -> Result<Option<LabelId>, String> {
        let number = match text {
            "" | "NA" => return Ok(None),
            text => text.parse::<f64>().ok(),
        };
        let count = self.ids.as_ref().map_or(self.graph.len(), Vec::len);
        let expected = || {
            let what = if self.ids.is_some() { "names" } else { "labels" };
            format!("{} is not the number of a label; there are {count} {what}", shown(text))
        };
        match number.ok_or_else(expected)? {
            number if number == -1.0 || number.is_nan() => Ok(None),
            number if number >= 0.0 && number < count as f64 && number.fract() == 0.0 => {
                let number = number as usize;
                Ok(Some(self.ids.as_ref().map_or(LabelId(number as u32), |ids| ids[number])))
            }
            _ => Err(expected()),
        }
    }

    /// Sets a label of the row on or off.
    pub(super) fn add(&mut self, label: LabelId, on: bool) -> Result<(), String> {
        let value = Evidence::known(on);
        match self.state[label.index()] {
            Evidence::Unknown => {
                self.state[label.index()] = value;
                self.listed.push(Target { label: label.0, on });
                Ok(())
            }
            old if old == value => Ok(()),
            _ => Err(format!("the label `{}` is both on and off", self.graph.name(label))),
        }
    }

    /// Ends a row. `labelled` says whether the row lists labels at all; only then can the others be
    /// off.
    pub(super) fn finish(&mut self, labelled: bool) -> Result<(), String> {
        let closed = self.options.unlisted == Unlisted::Off;
        if closed || self.options.ancestors {
            self.close_upwards()?;
        }
        self.targets.push(&self.listed, closed && labelled);
        for target in self.listed.drain(..) {
            self.state[target.label as usize] = Evidence::Unknown;
        }
        Ok(())
    }

    /// Whether the rows list more labels than allowed.
    pub(super) fn is_full(&self) -> bool {
        self.targets.entries().len() > self.limit
    }

    fn close_upwards(&mut self) -> Result<(), String> {
        let mut next = 0;
        while next < self.listed.len() {
            let Target { label, on } = self.listed[next];
            next += 1;
            if !on {
                continue;
            }
            for &parent in self.graph.topology().parents(LabelId(label)) {
                match self.state[parent.index()] {
                    Evidence::Unknown => self.add(parent, true)?,
                    Evidence::On => {}
                    Evidence::Off => {
                        return Err(format!(
                            "the label `{}` is on, and its ancestor `{}` is off",
                            self.graph.name(LabelId(label)),
                            self.graph.name(parent)
                        ));
                    }
                }
            }
        }
        Ok(())
    }
}

/// The label with a name.
fn find(graph: &RelationGraph, name: &str) -> Result<LabelId, String> {
    graph.id(name).ok_or_else(|| {
        let known = graph.labels().iter().map(|label| label.name.as_str());
        format!("{} is not a label of the graph{}", shown(name), did_you_mean(name, known))
    })
}

/// Reads the names of numbered labels: one per line, number 0 first.
///
/// # Errors
/// When the file cannot be read, or has an empty line that is not at the end.
pub fn read_label_names(path: &Path) -> Result<Vec<String>, Error> {
    let mut lines = open_lines(path, &Limits::default())?;
    let mut names = Vec::new();
    let mut empty = false;
    while lines.next()? {
        match (lines.text()?.trim(), empty) {
            ("", _) => empty = true,
            (_, true) => {
                return Err(lines.error("a line before this one is empty; each line needs a name"));
            }
            (name, false) => names.push(name.to_owned()),
        }
    }
    Ok(names)
}
