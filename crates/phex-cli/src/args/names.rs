//! Options whose values are a closed set of names, which help lists.

use std::str::FromStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use phex::Named;

/// One of the choices of the core.
pub(super) fn named<T: Named + Send + Sync>() -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(T::CHOICES.iter().map(|(name, _)| *name))
        .try_map(|name| T::from_name(&name))
}

/// One of the choices of the core, each with a line of help.
pub(super) fn explained<T: Named + Send + Sync>(
    help: &'static [&'static str],
) -> impl TypedValueParser<Value = T> {
    let lines = T::CHOICES.iter().zip(help);
    let values = lines.map(|((name, _), help)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(values).try_map(|name| T::from_name(&name))
}

/// One of some names.
pub(super) fn listed<T>(names: &'static [&'static str]) -> impl TypedValueParser<Value = T> + use<T>
where
    T: FromStr<Err = String> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names).try_map(|name| name.parse::<T>())
}

/// One of some names, each with a line of help.
pub(super) fn described<T>(
    names: &'static [(&'static str, &'static str)],
) -> impl TypedValueParser<Value = T> + use<T>
where
    T: FromStr<Err = String> + Clone + Send + Sync + 'static,
{
    let values = names.iter().map(|(name, help)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(values).try_map(|name| name.parse::<T>())
}
