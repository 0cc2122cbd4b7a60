//! The written form of a graph, which TOML and JSON share.
//!
//! Every record rejects unknown keys. The JSON schema is generated from these types.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    Defaults, ExclusionRule, GraphBuilder, OneOf, RelationGraph, RuleDeclaration, Semantics,
    Strength,
};

/// A whole graph as written in a file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "phex label-relation graph")]
pub struct Document {
    /// Which violations a soft graph charges for.
    #[serde(default, skip_serializing_if = "is_sparse")]
    pub semantics: Semantics,
    /// Strengths of relations that are declared without one.
    #[serde(default, skip_serializing_if = "Defaults::is_empty")]
    pub defaults: Defaults,
    /// Whether each thing is exactly one kind: labels without a common descendant exclude each other,
    /// roots included, and exactly one leaf is on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub single_label: bool,
    /// Pairs that exclude each other by a rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclude: Option<RuleItem>,
    /// All labels, in the order of the columns of a score table. If left out, every name in a
    /// relation is a label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<Vec<LabelItem>>,
    /// A parent and its children.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hierarchy: Vec<HierarchyItem>,
    /// Labels that exclude each other: two labels are an edge, more are a group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclusion: Vec<ExclusionItem>,
    /// Groups of which exactly one label is on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub one_of: Vec<OneOfItem>,
}

fn is_sparse(semantics: &Semantics) -> bool {
    *semantics == Semantics::Sparse
}

/// A label: its name, or a table with a name and a title.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged, deny_unknown_fields)]
pub enum LabelItem {
    /// The name alone.
    Name(String),
    /// A name and a title for people.
    Titled {
        /// The unique name.
        name: String,
        /// The readable form.
        title: String,
    },
}

/// The exclusion rule: its name, or a table with a strength.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged, deny_unknown_fields)]
pub enum RuleItem {
    /// The rule with the default strength.
    Rule(ExclusionRule),
    /// The rule with a strength of its own.
    Strong {
        /// Which pairs exclude each other.
        rule: ExclusionRule,
        /// What each violated pair costs.
        strength: Strength,
    },
}

/// A parent and its children, all with one strength.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HierarchyItem {
    /// The more general label.
    pub parent: String,
    /// The more specific labels.
    pub children: Vec<String>,
    /// What a violation costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strength: Option<Strength>,
}

/// Labels that exclude each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExclusionItem {
    /// A name for the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Two or more labels.
    pub labels: Vec<String>,
    /// What each violated pair costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strength: Option<Strength>,
}

/// A group of which exactly one label is on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OneOfItem {
    /// The name of the group.
    pub name: String,
    /// Its labels, or `"leaves"` for all leaves of the hierarchy.
    pub labels: OneOfLabels,
    /// Only `"hard"` is allowed, because a one-of group is always hard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strength: Option<Strength>,
}

/// The members of a one-of group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum OneOfLabels {
    /// Named labels.
    Names(Vec<String>),
    /// A selection.
    Selection(OneOfSelection),
}

/// Members of a one-of group that are selected and not named.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OneOfSelection {
    /// The labels that have a parent and no child.
    Leaves,
}

impl Document {
    /// The JSON schema of this form.
    pub fn json_schema() -> serde_json::Value {
        schemars::schema_for!(Document).to_value()
    }

    /// A builder with all declarations. It has no source locations.
    pub fn builder(&self) -> GraphBuilder {
        let mut builder = GraphBuilder::new();
        builder.semantics(self.semantics).defaults(self.defaults);
        if self.single_label {
            builder.single_label();
        }
        if let Some(rule) = &self.exclude {
            rule.declare(&mut builder);
        }
        if let Some(labels) = &self.labels {
            builder.close_labels();
            labels.iter().for_each(|label| label.declare(&mut builder));
        }
        self.hierarchy.iter().for_each(|item| item.declare(&mut builder));
        self.exclusion.iter().for_each(|item| item.declare(&mut builder));
        self.one_of.iter().for_each(|item| item.declare(&mut builder));
        builder
    }
}

impl LabelItem {
    /// Declares the label.
    pub fn declare(&self, builder: &mut GraphBuilder) {
        match self {
            LabelItem::Name(name) => builder.label(name),
            LabelItem::Titled { name, title } => builder.titled_label(name, Some(title)),
        };
    }
}

impl RuleItem {
    /// Declares the rule.
    pub fn declare(&self, builder: &mut GraphBuilder) {
        match *self {
            RuleItem::Rule(rule) => builder.exclusion_rule(rule, None),
            RuleItem::Strong { rule, strength } => builder.exclusion_rule(rule, Some(strength)),
        };
    }
}

impl HierarchyItem {
    /// Declares an edge to each child.
    pub fn declare(&self, builder: &mut GraphBuilder) {
        for child in &self.children {
            builder.hierarchy(&self.parent, child, self.strength);
        }
    }
}

impl ExclusionItem {
    /// Declares the edge or group.
    pub fn declare(&self, builder: &mut GraphBuilder) {
        let labels = self.labels.iter().map(String::as_str);
        builder.exclusion_group(self.name.as_deref(), labels, self.strength);
    }
}

impl OneOfItem {
    /// Declares the group.
    pub fn declare(&self, builder: &mut GraphBuilder) {
        match &self.labels {
            OneOfLabels::Names(names) => {
                builder.one_of(&self.name, names.iter().map(String::as_str), self.strength)
            }
            OneOfLabels::Selection(OneOfSelection::Leaves) => builder.one_of_leaves(&self.name),
        };
    }
}

impl From<&RelationGraph> for Document {
    fn from(graph: &RelationGraph) -> Document {
        let name = |id| graph.name(id).to_owned();
        let defaults = *graph.defaults();
        let own = |strength: Strength, default: Strength| (strength != default).then_some(strength);
        let labels = graph.labels().iter().map(|label| match &label.title {
            Some(title) => LabelItem::Titled { name: label.name.clone(), title: title.clone() },
            None => LabelItem::Name(label.name.clone()),
        });
        // Children with the same parent and strength share an item. Items keep the order of their
        // first child.
        let mut hierarchy: Vec<HierarchyItem> = Vec::new();
        let mut item_of = BTreeMap::new();
        for edge in graph.hierarchy() {
            let key = (edge.parent, edge.strength.to_string());
            let at = *item_of.entry(key).or_insert_with(|| {
                let strength = own(edge.strength, defaults.hierarchy());
                hierarchy.push(HierarchyItem {
                    parent: name(edge.parent),
                    children: vec![],
                    strength,
                });
                hierarchy.len() - 1
            });
            hierarchy[at].children.push(name(edge.child));
        }
        let exclusion = graph.exclusions().iter().map(|exclusion| ExclusionItem {
            name: exclusion.name.clone(),
            labels: exclusion.labels.iter().copied().map(name).collect(),
            strength: own(exclusion.strength, defaults.exclusion()),
        });
        // Written as one word unless the rule has a strength of its own.
        let by_default = |rule: &RuleDeclaration| {
            rule.strength == defaults.exclusion() && graph.is_single_label()
        };
        let single_label = graph.rule().is_some_and(by_default)
            && graph.one_of().iter().any(|group| group.name == OneOf::SINGLE_LABEL);
        let declared = graph.one_of().iter();
        let declared = declared.filter(|group| !single_label || group.name != OneOf::SINGLE_LABEL);
        let one_of = declared.map(|group| OneOfItem {
            name: group.name.clone(),
            labels: OneOfLabels::Names(group.labels.iter().copied().map(name).collect()),
            strength: None,
        });
        let exclude = graph.rule().filter(|_| !single_label).map(|declared| {
            match own(declared.strength, defaults.exclusion()) {
                None => RuleItem::Rule(declared.rule),
                Some(strength) => RuleItem::Strong { rule: declared.rule, strength },
            }
        });
        Document {
            semantics: graph.semantics(),
            defaults,
            single_label,
            exclude,
            labels: Some(labels.collect()),
            hierarchy,
            exclusion: exclusion.collect(),
            one_of: one_of.collect(),
        }
    }
}
