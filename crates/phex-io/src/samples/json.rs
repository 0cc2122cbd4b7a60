//! dimod's sample sets as JSON, schema 3.
//!
//! Packed samples are 32 variables a number, the first in the lowest bit.

use serde::Deserialize;
use serde_json::Value;

use super::{Sample, Values, places};
use crate::Error;
use crate::ising::label_name;
use crate::text::Source;

#[derive(Deserialize)]
struct SampleSet {
    #[serde(rename = "type")]
    kind: Option<String>,
    version: Version,
    sample_data: Array,
    #[serde(default = "packed")]
    sample_packed: bool,
    vectors: Vectors,
    variable_labels: Vec<Value>,
}

/// Before schema 3.1 samples were always packed.
fn packed() -> bool {
    true
}

#[derive(Deserialize)]
struct Version {
    sampleset_schema: String,
}

/// The vectors that are read; a sampler may add others.
#[derive(Deserialize)]
struct Vectors {
    energy: Option<Array>,
    num_occurrences: Option<Array>,
}

#[derive(Deserialize)]
struct Array {
    // With bytes this is no list: a value, so that the message can be about the bytes.
    data: Value,
    #[serde(default)]
    use_bytes: bool,
}

impl Array {
    fn list<T: serde::de::DeserializeOwned>(self, key: &str) -> Result<Vec<T>, String> {
        if self.use_bytes {
            return Err(format!(
                "`{key}` is packed bytes; write the file with `to_serializable(use_bytes=False)`"
            ));
        }
        serde_json::from_value(self.data).map_err(|error| format!("`{key}`: {error}"))
    }
}

pub(super) fn read(source: &Source<'_>, names: &[String]) -> Result<Vec<Sample>, Error> {
    let set: SampleSet = serde_json::from_str(source.text).map_err(|error| {
        source.error(error.line().max(1), format!("no sample set of dimod: {error}"))
    })?;
    let fault = |message: String| Error::Model { path: source.name.to_owned(), message };
    if let Some(kind) = set.kind.filter(|kind| kind != "SampleSet") {
        return Err(fault(format!("the type is `{kind}`, not `SampleSet`")));
    }
    let schema = &set.version.sampleset_schema;
    if !schema.starts_with("3.") {
        return Err(fault(format!("the schema `{schema}` is not 3; write it with dimod 0.9+")));
    }
    let variables: Vec<String> = set.variable_labels.iter().map(label_name).collect();
    let places = places(source.name, &variables, names, &[])?;
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
        return Err(fault(String::from("the vectors and the samples have not the same length")));
    }
    let mut values = Values::default();
    let mut samples = Vec::with_capacity(rows.len());
    for (at, row) in rows.iter().enumerate() {
        let wrong = |message: String| fault(format!("sample {at}: {message}"));
        let width = if set.sample_packed { variables.len().div_ceil(32) } else { variables.len() };
        if row.len() != width {
            return Err(wrong(format!("there are {} numbers, not {width}", row.len())));
        }
        let mut state = vec![false; names.len()];
        for (variable, place) in places.iter().enumerate() {
            let Some(place) = place else { continue };
            state[*place] = if set.sample_packed {
                row[variable / 32] >> (variable % 32) & 1 == 1
            } else {
                values.is_on(row[variable]).map_err(wrong)?
            };
        }
        let energy = energies.as_ref().map(|energies| energies[at]);
        let occurrences = counts.as_ref().map_or(1, |counts| counts[at]);
        samples.push(Sample { state, energy, occurrences });
    }
    Ok(samples)
}
