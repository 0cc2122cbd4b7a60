//! The items of TOML and JSON documents, read so that errors name the wrong key.
//!
//! [`phex::graph::document`] has the same items as untagged enums, but for these serde can only
//! report that no variant matched.

use std::fmt;

use phex::graph::document::{LabelItem, OneOfItem, OneOfLabels, OneOfSelection, RuleItem};
use phex::graph::{ExclusionRule, Strength};
use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer, StrDeserializer};
use serde::de::{self, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor};

/// A label: a name, or a table with a name and a title.
pub(super) struct ReadLabel(pub(super) LabelItem);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TitledLabel {
    name: String,
    title: String,
}

impl<'de> Deserialize<'de> for ReadLabel {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ReadLabel, D::Error> {
        struct LabelVisitor;
        impl<'de> Visitor<'de> for LabelVisitor {
            type Value = ReadLabel;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a label: a name, or a table with `name` and `title`")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<ReadLabel, E> {
                Ok(ReadLabel(LabelItem::Name(name.to_owned())))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ReadLabel, A::Error> {
                let TitledLabel { name, title } =
                    TitledLabel::deserialize(MapAccessDeserializer::new(map))?;
                Ok(ReadLabel(LabelItem::Titled { name, title }))
            }
        }
        deserializer.deserialize_any(LabelVisitor)
    }
}

/// The exclusion rule: a name, or a table with a rule and a strength.
pub(super) struct ReadRule(pub(super) RuleItem);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleWithStrength {
    rule: ExclusionRule,
    strength: Strength,
}

impl<'de> Deserialize<'de> for ReadRule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ReadRule, D::Error> {
        struct RuleVisitor;
        impl<'de> Visitor<'de> for RuleVisitor {
            type Value = ReadRule;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an exclusion rule: a name, or a table with `rule` and `strength`")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<ReadRule, E> {
                let name: StrDeserializer<'_, E> = name.into_deserializer();
                ExclusionRule::deserialize(name).map(|rule| ReadRule(RuleItem::Rule(rule)))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ReadRule, A::Error> {
                let RuleWithStrength { rule, strength } =
                    RuleWithStrength::deserialize(MapAccessDeserializer::new(map))?;
                Ok(ReadRule(RuleItem::Strong { rule, strength }))
            }
        }
        deserializer.deserialize_any(RuleVisitor)
    }
}

/// A one-of group.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadOneOf {
    name: String,
    labels: ReadMembers,
    strength: Option<Strength>,
}

impl From<ReadOneOf> for OneOfItem {
    fn from(ReadOneOf { name, labels, strength }: ReadOneOf) -> OneOfItem {
        OneOfItem { name, labels: labels.0, strength }
    }
}

/// The members of a one-of group: names, or `leaves`.
struct ReadMembers(OneOfLabels);

impl<'de> Deserialize<'de> for ReadMembers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ReadMembers, D::Error> {
        struct MembersVisitor;
        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = ReadMembers;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of labels or the word `leaves`")
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<ReadMembers, E> {
                let word: StrDeserializer<'_, E> = word.into_deserializer();
                OneOfSelection::deserialize(word)
                    .map(|all| ReadMembers(OneOfLabels::Selection(all)))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<ReadMembers, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(seq))
                    .map(|names| ReadMembers(OneOfLabels::Names(names)))
            }
        }
        deserializer.deserialize_any(MembersVisitor)
    }
}
