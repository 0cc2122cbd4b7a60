//! The JSON of dimod's binary quadratic models.
//!
//! This is what `json.dump(bqm.to_serializable(), file)` writes and
//! `dimod.BinaryQuadraticModel.from_serializable(json.load(file))` reads, without packed bytes.
//! Schema 3 is written; schemas 2 and 3, which differ in packed bytes only, are read.

use phex::model::Ising;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::polynomial::{Polynomial, Variables};
use crate::Error;
use crate::files::text::SourceText;

#[derive(Deserialize)]
struct ReadBqm {
    #[serde(rename = "type")]
    kind: Option<String>,
    version: BqmVersion,
    #[serde(default)]
    use_bytes: bool,
    variable_labels: Vec<Value>,
    variable_type: String,
    #[serde(default)]
    offset: f64,
    // Packed bytes are not lists; values of any type let the message say so.
    linear_biases: Value,
    quadratic_biases: Value,
    quadratic_head: Value,
    quadratic_tail: Value,
}

#[derive(Deserialize, Serialize)]
struct BqmVersion {
    bqm_schema: String,
}

pub(super) fn read(source: &SourceText<'_>) -> Result<Ising, Error> {
    let document: ReadBqm = serde_json::from_str(source.text).map_err(|error| {
        source.error(error.line().max(1), format!("this is not a binary quadratic model: {error}"))
    })?;
    let fault = |message: String| Error::Model { path: source.name.to_owned(), message };
    if let Some(kind) = document.kind.filter(|kind| kind != "BinaryQuadraticModel") {
        return Err(fault(format!("the type is `{kind}`, not `BinaryQuadraticModel`")));
    }
    let schema = &document.version.bqm_schema;
    if !schema.starts_with("2.") && !schema.starts_with("3.") {
        return Err(fault(format!(
            "the schema is `{schema}`, not 2 or 3; write the file with dimod 0.10+"
        )));
    }
    if document.use_bytes {
        return Err(fault(String::from(
            "the biases are packed bytes; write the file with `to_serializable(use_bytes=False)`",
        )));
    }
    let variables = match document.variable_type.as_str() {
        "SPIN" => Variables::Spin,
        "BINARY" => Variables::Binary,
        other => return Err(fault(format!("the variable_type `{other}` is not SPIN or BINARY"))),
    };
    let linear: Vec<f64> = list(document.linear_biases, "linear_biases").map_err(fault)?;
    let values: Vec<f64> = list(document.quadratic_biases, "quadratic_biases").map_err(fault)?;
    let head: Vec<usize> = list(document.quadratic_head, "quadratic_head").map_err(fault)?;
    let tail: Vec<usize> = list(document.quadratic_tail, "quadratic_tail").map_err(fault)?;
    let n = document.variable_labels.len();
    if linear.len() != n || head.len() != values.len() || tail.len() != values.len() {
        return Err(fault(format!(
            "the lengths do not match: {n} labels and {} linear_biases; {} quadratic_biases, {} heads \
             and {} tails",
            linear.len(),
            values.len(),
            head.len(),
            tail.len()
        )));
    }
    let mut polynomial = Polynomial { linear, ..Polynomial::new(variables, 0) };
    polynomial.offset = document.offset;
    for ((a, b), value) in head.into_iter().zip(tail).zip(values) {
        if a.max(b) >= n || a == b {
            return Err(fault(format!("variables {a} and {b} of {n} cannot interact")));
        }
        polynomial.add(a, b, value);
    }
    Ok(polynomial.into_ising(document.variable_labels.iter().map(label_name).collect()))
}

fn list<T: serde::de::DeserializeOwned>(value: Value, key: &str) -> Result<Vec<T>, String> {
    serde_json::from_value(value)
        .map_err(|error| format!("`{key}` is not a list of numbers: {error}"))
}

/// The name of a dimod label: text unchanged, a number as its digits, a tuple as JSON.
pub(crate) fn label_name(label: &Value) -> String {
    label.as_str().map_or_else(|| label.to_string(), str::to_owned)
}

/// Everything that dimod writes.
#[derive(Serialize)]
struct WrittenBqm<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    version: BqmVersion,
    use_bytes: bool,
    index_type: &'static str,
    bias_type: &'static str,
    num_variables: usize,
    num_interactions: usize,
    variable_labels: Vec<Value>,
    variable_type: &'static str,
    offset: f64,
    info: serde_json::Map<String, Value>,
    linear_biases: &'a [f64],
    quadratic_biases: Vec<f64>,
    quadratic_head: Vec<usize>,
    quadratic_tail: Vec<usize>,
}

pub(super) fn write(ising: &Ising) -> Result<String, Error> {
    let document = WrittenBqm {
        kind: "BinaryQuadraticModel",
        version: BqmVersion { bqm_schema: String::from("3.0.0") },
        use_bytes: false,
        index_type: "int32",
        bias_type: "float64",
        num_variables: ising.names.len(),
        num_interactions: ising.j.len(),
        variable_labels: labels(&ising.names),
        variable_type: "SPIN",
        offset: ising.offset,
        info: serde_json::Map::new(),
        linear_biases: &ising.h,
        quadratic_biases: ising.j.iter().map(|&(_, _, j)| j).collect(),
        quadratic_head: ising.j.iter().map(|&(a, _, _)| a).collect(),
        quadratic_tail: ising.j.iter().map(|&(_, b, _)| b).collect(),
    };
    let text = serde_json::to_string(&document).map_err(|error| Error::Model {
        path: String::from("the model"),
        message: format!("it cannot be written as JSON: {error}"),
    })?;
    Ok(text + "\n")
}

/// The labels as numbers if all of them are: dimod numbers variables without names.
fn labels(names: &[String]) -> Vec<Value> {
    let number = |name: &String| {
        let number = name.parse::<u32>().ok()?;
        (number.to_string() == *name).then_some(Value::from(number))
    };
    let numbers: Option<Vec<Value>> = names.iter().map(number).collect();
    numbers.unwrap_or_else(|| names.iter().map(|name| Value::from(name.as_str())).collect())
}
