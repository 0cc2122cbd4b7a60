//! Writing a model as a UAI file.
//!
//! Variable `i` is label `i`, and state 1 means on, so answers for the file are answers for the
//! labels. Its table is `(1, e^(score + bias))`; the constant of the model is spread over these
//! tables. A relation becomes a table over its two labels, an exclusion group the tables of its
//! pairs. A one-of group of one label becomes the table `(0, 1)`, one of two labels a table that
//! forbids both and neither. A larger group becomes one more variable with one state per label, and
//! for each label a table that is 1 where the label is on exactly in its state, and 0 elsewhere. The
//! labels determine the variable of the group, so nothing is counted twice. Names follow the tables.

use std::fmt::Write as _;
use std::path::Path;

use phex::graph::LabelId;
use phex::model::{DenseForest, Model, Relation};

use crate::Error;
use crate::files::output::write_text;
use crate::models::notes::quoted;

/// The most table entries of a file.
const MAX_ENTRIES: usize = 1 << 25;

/// The largest cost: for one a little larger, `e^−cost` is 0 or infinite.
const MAX_COST: f64 = 700.0;

/// Writes a model under these scores to a file, which appears once it is complete, or to standard
/// output for `-`.
///
/// # Errors
/// When no file can hold the model (see [`uai_to_string`]) or the file cannot be written.
///
/// # Panics
/// When there is not one score per label.
pub fn write_uai(model: &Model, scores: &[f64], path: &Path) -> Result<(), Error> {
    write_text(path, &uai_to_string(model, scores)?)
}

/// The text of a model under these scores.
///
/// ```
/// use phex::{graph::GraphBuilder, model::Model};
/// let mut builder = GraphBuilder::new();
/// builder.hierarchy("animal", "dog", None);
/// let model = Model::new(&builder.build()?)?;
/// let text = phex_io::uai_to_string(&model, &[0.0, 1.5])?;
/// let again = phex_io::parse_uai(text.as_bytes(), "animals.uai")?;
/// assert_eq!(again.names(), model.names());
/// assert_eq!(again.log_weight(&[0.0, 0.0], &[true, true]), 1.5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// When a finite cost or score is beyond ±700, which no table entry can hold; when the model has no
/// labels; or when it would have more than 2²⁵ table entries.
///
/// # Panics
/// When there is not one score per label.
pub fn uai_to_string(model: &Model, scores: &[f64]) -> Result<String, Error> {
    assert_eq!(scores.len(), model.len(), "one score per label");
    let n = model.len();
    if n == 0 {
        return Err(fault(String::from("a UAI file needs at least one variable")));
    }
    let mut out = UaiTables { states: vec![2; n], ..UaiTables::default() };
    let share = -model.constant() / n as f64;
    for (at, (score, bias)) in scores.iter().zip(model.bias()).enumerate() {
        let costs = [share, share - score - bias];
        out.push(&[at], &costs)
            .map_err(|message| fault(format!("the score of `{}`: {message}", model.names()[at])))?;
    }
    let dense = model.dense().into_iter().flat_map(DenseForest::relations);
    for relation in model.relations().iter().cloned().chain(dense) {
        out.relation(&relation).map_err(|message| {
            let names: Vec<&str> = relation
                .labels()
                .iter()
                .take(2)
                .map(|id| model.names()[id.index()].as_str())
                .collect();
            fault(format!("the relation of `{}`: {message}", names.join("` and `")))
        })?;
    }
    let mut names = model.names().to_vec();
    for group in model.one_of() {
        if out.one_of(&group.labels).map_err(fault)? {
            names.push(group.name.clone());
        }
    }
    Ok(out.text(&names))
}

fn fault(message: String) -> Error {
    Error::Model { path: String::from("the model"), message }
}

#[derive(Default)]
struct UaiTables {
    /// How many states each variable has.
    states: Vec<usize>,
    scopes: String,
    tables: String,
    count: usize,
    entries: usize,
}

impl UaiTables {
    /// Adds a table by its costs, last variable fastest.
    fn push(&mut self, scope: &[usize], costs: &[f64]) -> Result<(), String> {
        self.entries += costs.len();
        if self.entries > MAX_ENTRIES {
            return Err(format!("the tables have more than the {MAX_ENTRIES} entries allowed"));
        }
        let _ = write!(self.scopes, "{}", scope.len());
        scope.iter().for_each(|variable| {
            let _ = write!(self.scopes, " {variable}");
        });
        let _ = write!(self.tables, "{}", costs.len());
        for &cost in costs {
            if cost.is_nan() || (cost != f64::INFINITY && cost.abs() > MAX_COST) {
                return Err(format!(
                    "e^({}) is not a table entry; exponents are within ±{MAX_COST}",
                    -cost
                ));
            }
            // Debug writes exponents; Display would write hundreds of zeros.
            let _ = write!(self.tables, " {:?}", (-cost).exp());
        }
        self.scopes.push('\n');
        self.tables.push('\n');
        self.count += 1;
        Ok(())
    }

    fn relation(&mut self, relation: &Relation) -> Result<(), String> {
        match relation {
            Relation::Hierarchy { parent, child, cost } => {
                self.push(&[parent.index(), child.index()], &[0.0, *cost, 0.0, 0.0])
            }
            Relation::Exclusion { a, b, cost } => {
                self.push(&[a.index(), b.index()], &[0.0, 0.0, 0.0, *cost])
            }
            Relation::Group { labels, cost } => {
                for (at, a) in labels.iter().enumerate() {
                    for b in &labels[at + 1..] {
                        self.push(&[a.index(), b.index()], &[0.0, 0.0, 0.0, *cost])?;
                    }
                }
                Ok(())
            }
            Relation::Pair { a, b, costs: [[none, only_b], [only_a, both]] } => {
                self.push(&[a.index(), b.index()], &[*none, *only_b, *only_a, *both])
            }
        }
    }

    /// Adds a group and says whether it needs one more variable.
    fn one_of(&mut self, labels: &[LabelId]) -> Result<bool, String> {
        let never = f64::INFINITY;
        match *labels {
            [only] => self.push(&[only.index()], &[never, 0.0])?,
            [a, b] => self.push(&[a.index(), b.index()], &[never, 0.0, 0.0, never])?,
            _ => {
                let group = self.states.len();
                self.states.push(labels.len());
                for (at, label) in labels.iter().enumerate() {
                    let mut costs = vec![0.0; 2 * labels.len()];
                    costs[at] = never;
                    costs[labels.len()..].fill(never);
                    costs[labels.len() + at] = 0.0;
                    self.push(&[label.index(), group], &costs)?;
                }
            }
        }
        Ok(labels.len() > 2)
    }

    fn text(&self, names: &[String]) -> String {
        let states: Vec<String> = self.states.iter().map(ToString::to_string).collect();
        let mut out = format!(
            "MARKOV\n{}\n{}\n{}\n{}\n{}",
            states.len(),
            states.join(" "),
            self.count,
            self.scopes,
            self.tables
        );
        let given = names.iter().enumerate().any(|(at, name)| *name != format!("x{at}"));
        for (at, name) in names.iter().enumerate().filter(|_| given) {
            let _ = writeln!(out, "c phex name {at} {}", quoted(name));
        }
        out
    }
}
