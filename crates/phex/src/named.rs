//! Closed choices with the names by which people write them: on the command line, in Python, in files.

use crate::Error;

/// A choice with a name. Adapters list, read and print choices through this trait, so that no adapter
/// keeps a copy of them.
pub trait Named: Copy + PartialEq + 'static {
    /// What is chosen, for messages: `method`, `schedule`.
    const WHAT: &'static str;
    /// Every choice with its name.
    const CHOICES: &'static [(&'static str, Self)];

    /// The name of a choice.
    fn name(self) -> &'static str {
        Self::CHOICES.iter().find(|(_, choice)| *choice == self).map_or("", |(name, _)| name)
    }

    /// The choice of a name; `_` and `-` are the same.
    ///
    /// # Errors
    /// [`Error::UnknownChoice`], which lists the names.
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
