//! Recognises what a JSON file is: a graph document, nested labels, categories of a data set, a node-link
//! graph, JSON-LD, or a list of records.
//!
//! Only the keys at the top are examined, so that annotations of any size cost one scan.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::table;
use crate::Format;

/// The keys of a graph document.
const DOCUMENT: [&str; 7] =
    ["hierarchy", "exclusion", "one_of", "labels", "exclude", "semantics", "single_label"];

/// The top of a JSON file.
pub(super) enum JsonTop<'a> {
    /// The entries of an object, in order.
    Map(Vec<(Cow<'a, str>, &'a RawValue)>),
    /// The first item of a list.
    List(Option<&'a RawValue>),
    Other,
}

impl<'a> JsonTop<'a> {
    /// The raw value of a key.
    pub(super) fn get(&self, key: &str) -> Option<&'a RawValue> {
        match self {
            JsonTop::Map(entries) => {
                entries.iter().find(|(name, _)| name == key).map(|(_, value)| *value)
            }
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for JsonTop<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<JsonTop<'de>, D::Error> {
        struct TopVisitor;
        impl<'de> Visitor<'de> for TopVisitor {
            type Value = JsonTop<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object or a list")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonTop<'de>, A::Error> {
                let mut entries = Vec::new();
                while let Some(Key(key)) = map.next_key()? {
                    entries.push((key, map.next_value()?));
                }
                Ok(JsonTop::Map(entries))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<JsonTop<'de>, A::Error> {
                let first = items.next_element()?;
                while items.next_element::<IgnoredAny>()?.is_some() {}
                Ok(JsonTop::List(first))
            }

            fn visit_str<E>(self, _: &str) -> Result<JsonTop<'de>, E> {
                Ok(JsonTop::Other)
            }
        }
        deserializer.deserialize_any(TopVisitor)
    }
}

/// A key: borrowed where it has no escapes.
struct Key<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Key<'de>, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(key)))
            }

            fn visit_str<E>(self, key: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(key.to_owned())))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}

/// The top of a text, unless it is not JSON.
pub(super) fn top(text: &str) -> Option<JsonTop<'_>> {
    serde_json::from_str(text).ok()
}

/// The form of a JSON file. Text that is not JSON is left to the reader of graph documents, which
/// says what is wrong with it.
pub(super) fn form(text: &str) -> Format {
    let Some(top) = top(text) else { return Format::Json };
    match &top {
        JsonTop::Map(entries) => {
            let has = |key: &str| entries.iter().any(|(name, _)| name == key);
            let list = |key: &str| top.get(key).is_some_and(|raw| raw.get().starts_with('['));
            if has("@context") || has("@graph") || has("@id") {
                Format::JsonLd
            } else if list("nodes") && (list("links") || list("edges")) {
                Format::NodeLink
            } else if list("categories") {
                Format::Categories
            } else if entries.is_empty() || entries.iter().any(|(key, _)| of_document(key)) {
                Format::Json
            } else {
                Format::Tree
            }
        }
        JsonTop::List(first) => first.map_or(Format::Json, |item| item_form(item.get())),
        JsonTop::Other => Format::Json,
    }
}

/// Whether a key is one of a document, or one that is misspelt.
fn of_document(key: &str) -> bool {
    DOCUMENT.iter().any(|known| strsim::damerau_levenshtein(key, known) <= 1)
}

fn item_form(text: &str) -> Format {
    let Some(JsonTop::Map(entries)) = self::top(text) else {
        return if text.starts_with(['"', '{']) { Format::Tree } else { Format::Json };
    };
    let has = |key: &str| entries.iter().any(|(name, _)| name == key);
    if has("@id") || has("@type") || has("@context") {
        return Format::JsonLd;
    }
    if has("supercategory") && has("name") {
        return Format::Categories;
    }
    let header: Vec<String> = entries.iter().map(|(name, _)| name.to_string()).collect();
    match table::kind(&header) {
        table::TableKind::Parents => Format::Parents,
        table::TableKind::Levels => Format::Levels,
        _ => Format::Tree,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_tell_the_form() {
        let cases = [
            (r#"{"labels": [], "hierarchy": []}"#, Format::Json),
            (r#"{"name": "a", "children": []}"#, Format::Tree),
            (r#"{"dog": ["puppy"]}"#, Format::Tree),
            (r#"{"images": [], "categories": []}"#, Format::Categories),
            (r#"[{"supercategory": "a", "id": 1, "name": "b"}]"#, Format::Categories),
            (r#"{"directed": true, "nodes": [], "edges": []}"#, Format::NodeLink),
            (r#"{"@context": {}, "@graph": []}"#, Format::JsonLd),
            (r#"[{"@id": "x:a"}]"#, Format::JsonLd),
            (r#"[{"id": 1, "parent_id": null, "name": "a"}]"#, Format::Parents),
            (r#"[{"name": "a", "children": []}]"#, Format::Tree),
            (r#"["a"]"#, Format::Tree),
            ("{", Format::Json),
            ("3", Format::Json),
            ("{}", Format::Json),
        ];
        for (text, expected) in cases {
            assert_eq!(form(text), expected, "{text}");
        }
    }
}
