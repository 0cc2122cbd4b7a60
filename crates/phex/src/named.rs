//! Names for closed sets of choices, as people write them on the command line, in Python and in
//! files.

use crate::Error;

/// A choice that has a name. Adapters list, read and print choices through this trait, so that no
/// adapter keeps its own copy of the names.
pub trait Named: Copy + PartialEq + 'static {
    /// What is chosen, for messages: `method`, `order`.
    const WHAT: &'static str;
    /// Every choice with its name.
    const CHOICES: &'static [(&'static str, Self)];

    /// The name of this choice.
    fn name(self) -> &'static str {
        Self::CHOICES.iter().find(|(_, choice)| *choice == self).map_or("", |(name, _)| name)
    }

    /// The choice with this name. `_` and `-` are equivalent.
    fn from_name(name: &str) -> Result<Self, Error> {
        let written = name.replace('_', "-");
        let found = Self::CHOICES.iter().find(|(known, _)| *known == written);
        found.map(|(_, choice)| *choice).ok_or_else(|| Error::UnknownChoice {
            what: Self::WHAT,
            name: name.to_owned(),
            choices: Self::CHOICES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", "),
        })
    }
}
