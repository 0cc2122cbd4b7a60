//! The items of TOML and JSON documents, read so that errors name the key that is wrong.
//!
//! [`phex::graph::document`] has the same items as untagged enums, for which serde can only say
//! that no variant matched.

use std::fmt;

use phex::graph::document::{LabelItem, OneOfItem, OneOfLabels, OneOfSelection, RuleItem};
use phex::graph::{ExclusionRule, Strength};
use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer, StrDeserializer};
use serde::de::{self, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor};

/// A label: a name, or a table with a name and a title.
pub(super) struct Label(pub(super) LabelItem);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Titled {
    name: String,
    title: String,
}

impl<'de> Deserialize<'de> for Label {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Label, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Label;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a label: a name, or a table with `name` and `title`")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<Label, E> {
                Ok(Label(LabelItem::Name(name.to_owned())))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Label, A::Error> {
                let Titled { name, title } = Titled::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Label(LabelItem::Titled { name, title }))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// The exclusion rule: a name, or a table with a rule and a strength.
pub(super) struct Rule(pub(super) RuleItem);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Strong {
    rule: ExclusionRule,
    strength: Strength,
}

impl<'de> Deserialize<'de> for Rule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Rule, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Rule;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an exclusion rule: a name, or a table with `rule` and `strength`")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<Rule, E> {
                let name: StrDeserializer<'_, E> = name.into_deserializer();
                ExclusionRule::deserialize(name).map(|rule| Rule(RuleItem::Rule(rule)))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Rule, A::Error> {
                let Strong { rule, strength } =
                    Strong::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Rule(RuleItem::Strong { rule, strength }))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// A one-of group.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OneOf {
    name: String,
    labels: Members,
    strength: Option<Strength>,
}

impl From<OneOf> for OneOfItem {
    fn from(OneOf { name, labels, strength }: OneOf) -> OneOfItem {
        OneOfItem { name, labels: labels.0, strength }
    }
}

/// The members of a one-of group: names, or `leaves`.
struct Members(OneOfLabels);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Members, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of labels or the word `leaves`")
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<Members, E> {
                let word: StrDeserializer<'_, E> = word.into_deserializer();
                OneOfSelection::deserialize(word).map(|all| Members(OneOfLabels::Selection(all)))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Members, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(seq))
                    .map(|names| Members(OneOfLabels::Names(names)))
            }
        }
        deserializer.deserialize_any(Either)
    }
}
