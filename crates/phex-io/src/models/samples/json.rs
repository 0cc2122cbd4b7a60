//! dimod's sample sets as JSON, schema 3.
//!
//! Packed samples hold 32 variables per number, the first in the lowest bit.

use serde::Deserialize;
use serde_json::Value;

use super::{OffValue, SolverSample, positions};
use crate::Error;
use crate::files::text::SourceText;
use crate::models::ising::label_name;

#[derive(Deserialize)]
struct SampleSet {
    #[serde(rename = "type")]
    kind: Option<String>,
    version: SampleSetVersion,
    sample_data: DimodArray,
    #[serde(default = "packed")]
    sample_packed: bool,
    vectors: SampleVectors,
    variable_labels: Vec<Value>,
}

/// Before schema 3.1 samples were always packed.
fn packed() -> bool {
    true
}

#[derive(Deserialize)]
struct SampleSetVersion {
    sampleset_schema: String,
}

/// The vectors that are read; samplers may add others.
#[derive(Deserialize)]
struct SampleVectors {
    energy: Option<DimodArray>,
    num_occurrences: Option<DimodArray>,
}

#[derive(Deserialize)]
struct DimodArray {
    // Packed bytes are not a list; a value of any type lets the message say so.
    data: Value,
    #[serde(default)]
    use_bytes: bool,
}

impl DimodArray {
    fn list<T: serde::de::DeserializeOwned>(self, key: &str) -> Result<Vec<T>, String> {
        if self.use_bytes {
            return Err(format!(
                "`{key}` is packed bytes; write the file with `to_serializable(use_bytes=False)`"
            ));
        }
        serde_json::from_value(self.data).map_err(|error| format!("`{key}`: {error}"))
    }
}

pub(super) fn read(source: &SourceText<'_>, names: &[String]) -> Result<Vec<SolverSample>, Error> {
    let set: SampleSet = serde_json::from_str(source.text).map_err(|error| {
        source.error(error.line().max(1), format!("this is not a sample set of dimod: {error}"))
    })?;
    let fault = |message: String| Error::Model { path: source.name.to_owned(), message };
    if let Some(kind) = set.kind.filter(|kind| kind != "SampleSet") {
        return Err(fault(format!("the type is `{kind}`, not `SampleSet`")));
    }
    let schema = &set.version.sampleset_schema;
    if !schema.starts_with("3.") {
        return Err(fault(format!(
            "the schema is `{schema}`, not 3; write the file with dimod 0.9+"
        )));
    }
    let variables: Vec<String> = set.variable_labels.iter().map(label_name).collect();
    let positions = positions(source.name, &variables, names, &[])?;
    let rows: Vec<Vec<i64>> = set.sample_data.list("sample_data").map_err(fault)?;
    let energies: Option<Vec<f64>> =
        set.vectors.energy.map(|array| array.list("energy")).transpose().map_err(fault)?;
    let counts: Option<Vec<u64>> = set
        .vectors
        .num_occurrences
        .map(|array| array.list("num_occurrences"))
        .transpose()
        .map_err(fault)?;
    let lengths = [energies.as_ref().map(Vec::len), counts.as_ref().map(Vec::len)];
    if lengths.into_iter().flatten().any(|length| length != rows.len()) {
        return Err(fault(String::from("the vectors and the samples differ in length")));
    }
    let mut off = OffValue::default();
    let mut samples = Vec::with_capacity(rows.len());
    for (at, row) in rows.iter().enumerate() {
        let wrong = |message: String| fault(format!("sample {at}: {message}"));
        let width = if set.sample_packed { variables.len().div_ceil(32) } else { variables.len() };
        if row.len() != width {
            return Err(wrong(format!("there are {} numbers, not {width}", row.len())));
        }
        let mut state = vec![false; names.len()];
        for (variable, position) in positions.iter().enumerate() {
            let Some(position) = position else { continue };
            state[*position] = if set.sample_packed {
                row[variable / 32] >> (variable % 32) & 1 == 1
            } else {
                off.is_on(row[variable]).map_err(wrong)?
            };
        }
        let energy = energies.as_ref().map(|energies| energies[at]);
        let occurrences = counts.as_ref().map_or(1, |counts| counts[at]);
        samples.push(SolverSample { state, energy, occurrences });
    }
    Ok(samples)
}
