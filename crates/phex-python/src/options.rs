//! How a model is compiled, from keyword arguments.

use std::ffi::CString;

use phex::Named as _;
use phex::infer::{GroupForm, MessageOrder, Method, Options};
use pyo3::exceptions::PyFutureWarning;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::Value;

use crate::errors::Failure;

/// Reads keyword arguments; an option that is `None` keeps its default.
pub(crate) fn read(arguments: Option<&Bound<'_, PyDict>>) -> Result<Options, Failure> {
    let mut options = Options::default();
    let Some(arguments) = arguments else { return Ok(options) };
    for (name, value) in arguments.iter() {
        if !value.is_none() {
            let name = name.extract::<String>()?;
            set(&mut options, &name, &value).map_err(|failure| match failure {
                // The number is too large, negative, or of another type.
                Failure::Python(error) => {
                    Failure::Input(format!("{name} cannot be {value}: {error}"))
                }
                other => other,
            })?;
        }
    }
    options.check()?;
    Ok(options)
}

fn set(options: &mut Options, name: &str, value: &Bound<'_, PyAny>) -> Result<(), Failure> {
    let (messages, sampling) = (&mut options.messages, &mut options.sampling);
    match name {
        "method" => options.method = method(value)?,
        "operations" => options.budget.operations = value.extract()?,
        "memory" => options.budget.bytes = value.extract::<f64>()? * 1024.0 * 1024.0,
        "search" => options.budget.search = value.extract()?,
        "cap" => options.cap = Some(value.extract()?),
        "seed" => options.seed = value.extract()?,
        "schedule" => messages.schedule = MessageOrder::from_name(&word(value)?)?,
        "groups" => messages.groups = GroupForm::from_name(&word(value)?)?,
        "damping" => messages.damping = value.extract()?,
        "iterations" => messages.iterations = value.extract()?,
        "tolerance" => messages.tolerance = value.extract()?,
        "chains" => sampling.chains = value.extract()?,
        "burn_in" => sampling.burn_in = value.extract()?,
        "sweeps" => sampling.sweeps = value.extract()?,
        "temperatures" => sampling.temperatures = value.extract()?,
        "hottest" => sampling.hottest = value.extract()?,
        "check" => sampling.check = value.extract()?,
        _ => {
            let known = "method, operations, memory, search, cap, seed, schedule, groups, damping, \
                         iterations, tolerance, chains, burn_in, sweeps, temperatures, hottest, check";
            return Err(Failure::Input(format!("`{name}` is not an option: {known}")));
        }
    }
    Ok(())
}

/// Reads the name of a method, and warns if it is a former one.
fn method(value: &Bound<'_, PyAny>) -> Result<Method, Failure> {
    let (py, name) = (value.py(), word(value)?);
    if name == Method::FORMER_FOREST_BP {
        let text = format!("the method `{name}` is now called `{}`", Method::ForestBp);
        // The caller of `phex.Model`.
        PyErr::warn(
            py,
            &py.get_type::<PyFutureWarning>(),
            &CString::new(text).unwrap_or_default(),
            2,
        )?;
    }
    Ok(name.parse()?)
}

fn word(value: &Bound<'_, PyAny>) -> Result<String, Failure> {
    Ok(value.extract::<String>()?.replace('_', "-"))
}

/// Reads a value of a type by its name.
pub(crate) fn named<T: serde::de::DeserializeOwned>(name: &str, word: &str) -> Result<T, Failure> {
    serde_json::from_value(Value::String(word.replace('_', "-")))
        .map_err(|error| Failure::Input(format!("{name}: {error}")))
}
