//! The builder collects declarations by name, in any order, and never fails.
//!
//! [`GraphBuilder::check`] finds everything that is wrong with the declarations. A faulty
//! declaration (an unknown name, an edge that closes a cycle) becomes a finding and is dropped, and
//! the other checks continue with what is left, so that one run reports everything.
//! [`GraphBuilder::build`] refuses only what makes a graph unusable. Labels that can never be on
//! are reported, but they do not prevent a build.

use std::collections::HashMap;
use std::sync::Arc;

use super::check::{self, Report};
use super::{Defaults, ExclusionRule, RelationGraph, Semantics, SourceLocation, Strength};
use crate::Error;

/// A name in the builder: interned, and either declared or only used in relations.
#[derive(Debug, Clone)]
pub(super) struct Symbol {
    pub(super) name: Arc<str>,
    pub(super) title: Option<String>,
    /// Every place where it was declared. Empty when it was only used in relations.
    pub(super) declared: Vec<SourceLocation>,
    pub(super) first_use: SourceLocation,
}

/// Index of a [`Symbol`].
pub(super) type SymbolId = u32;

#[derive(Debug, Clone)]
pub(super) struct HierarchyDraft {
    pub(super) parent: SymbolId,
    pub(super) child: SymbolId,
    pub(super) strength: Option<Strength>,
    pub(super) place: SourceLocation,
}

#[derive(Debug, Clone)]
pub(super) struct ExclusionDraft {
    pub(super) name: Option<String>,
    pub(super) labels: Vec<SymbolId>,
    pub(super) strength: Option<Strength>,
    pub(super) place: SourceLocation,
}

#[derive(Debug, Clone)]
pub(super) struct OneOfDraft {
    pub(super) name: String,
    /// `None`: the leaves of the hierarchy, whichever they turn out to be.
    pub(super) labels: Option<Vec<SymbolId>>,
    pub(super) strength: Option<Strength>,
    pub(super) place: SourceLocation,
}

#[derive(Debug, Clone)]
pub(super) struct RuleDraft {
    pub(super) rule: ExclusionRule,
    pub(super) strength: Option<Strength>,
    pub(super) place: SourceLocation,
}

/// Collects labels and relations by name.
///
/// ```
/// use phex::graph::{ExclusionRule, GraphBuilder, Strength};
///
/// let mut builder = GraphBuilder::new();
/// builder.hierarchy("animal", "dog", None);
/// builder.hierarchy("animal", "cat", None);
/// builder.hierarchy("dog", "puppy", Some(Strength::U(0.5)));
/// builder.exclusion_rule(ExclusionRule::Siblings, None);
/// let graph = builder.build()?;
/// assert_eq!(graph.len(), 4);
/// # Ok::<(), phex::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct GraphBuilder {
    pub(super) symbols: Vec<Symbol>,
    index: HashMap<Arc<str>, SymbolId>,
    /// Whether the declared labels are all there are, so that any other name is a mistake.
    pub(super) closed: bool,
    pub(super) hierarchy: Vec<HierarchyDraft>,
    pub(super) exclusions: Vec<ExclusionDraft>,
    pub(super) one_of: Vec<OneOfDraft>,
    pub(super) rules: Vec<RuleDraft>,
    /// Where it was declared that each thing is exactly one kind.
    pub(super) single_label: Option<SourceLocation>,
    pub(super) semantics: Semantics,
    pub(super) defaults: Defaults,
    pub(super) defaults_place: SourceLocation,
    /// What a reader of files has to say about its source.
    pub(super) notes: Vec<(SourceLocation, String)>,
    place: SourceLocation,
}

impl GraphBuilder {
    /// An empty builder. Until labels are closed, every name in a relation is a label.
    pub fn new() -> GraphBuilder {
        GraphBuilder::default()
    }

    /// Sets the source (a file) of the declarations that follow.
    pub fn source(&mut self, source: &str) -> &mut Self {
        self.place = SourceLocation { source: Some(Arc::from(source)), line: None };
        self
    }

    /// Sets the line, counted from 1, of the declarations that follow.
    pub fn line(&mut self, line: usize) -> &mut Self {
        self.place.line = u32::try_from(line).ok();
        self
    }

    /// Declares that the labels declared so far and later are complete: any other name is a
    /// mistake.
    pub fn close_labels(&mut self) -> &mut Self {
        self.closed = true;
        self
    }

    /// Declares a label. Labels are the columns of a score table, in the order of their
    /// declaration.
    pub fn label(&mut self, name: &str) -> &mut Self {
        self.titled_label(name, None)
    }

    /// Declares a label with a readable title.
    pub fn titled_label(&mut self, name: &str, title: Option<&str>) -> &mut Self {
        let id = self.intern(name);
        let place = self.place.clone();
        let symbol = &mut self.symbols[id as usize];
        symbol.declared.push(place);
        if symbol.title.is_none() {
            symbol.title = title.map(str::to_owned);
        }
        self
    }

    /// Gives a label a title without declaring it.
    pub fn title(&mut self, name: &str, title: &str) -> &mut Self {
        if let Some(&id) = self.index.get(name) {
            self.symbols[id as usize].title = Some(title.to_owned());
        }
        self
    }

    /// Notes that something in the source was left out, or how it was understood. It becomes a
    /// warning of [`GraphBuilder::check`].
    pub fn note(&mut self, message: impl Into<String>) -> &mut Self {
        self.notes.push((self.place.clone(), message.into()));
        self
    }

    /// What was noted, with places.
    pub fn notes(&self) -> impl Iterator<Item = (&SourceLocation, &str)> {
        self.notes.iter().map(|(place, message)| (place, message.as_str()))
    }

    /// Whether the name has been declared or used.
    pub fn knows(&self, name: &str) -> bool {
        self.index.contains_key(name)
    }

    /// How many names have been declared or used.
    pub fn len(&self) -> usize {
        self.symbols.len()
    }

    /// Whether no name has been declared or used.
    pub fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }

    /// The names that are in no relation, with the place of their declaration. Exclusion rules and
    /// groups of all leaves relate labels only through others, so they do not count.
    pub fn isolated(&self) -> Vec<(&str, &SourceLocation)> {
        let mut related = vec![false; self.symbols.len()];
        let edges = self.hierarchy.iter().flat_map(|edge| [edge.parent, edge.child]);
        let sets = self.exclusions.iter().flat_map(|exclusion| exclusion.labels.iter().copied());
        let groups = self.one_of.iter().flat_map(|group| group.labels.iter().flatten().copied());
        edges.chain(sets).chain(groups).for_each(|id| related[id as usize] = true);
        let alone = self.symbols.iter().zip(&related).filter(|&(_, &related)| !related);
        alone.map(|(s, _)| (&*s.name, s.declared.first().unwrap_or(&s.first_use))).collect()
    }

    /// Declares that the parent subsumes the child. `None` means the default strength.
    pub fn hierarchy(
        &mut self,
        parent: &str,
        child: &str,
        strength: Option<Strength>,
    ) -> &mut Self {
        let (parent, child) = (self.intern(parent), self.intern(child));
        let place = self.place.clone();
        self.hierarchy.push(HierarchyDraft { parent, child, strength, place });
        self
    }

    /// Declares that two labels exclude each other. `None` means the default strength.
    pub fn exclusion(&mut self, a: &str, b: &str, strength: Option<Strength>) -> &mut Self {
        self.exclusion_group(None, [a, b], strength)
    }

    /// Declares that these labels exclude each other pairwise. `None` means the default strength.
    pub fn exclusion_group<'a>(
        &mut self,
        name: Option<&str>,
        labels: impl IntoIterator<Item = &'a str>,
        strength: Option<Strength>,
    ) -> &mut Self {
        let labels = labels.into_iter().map(|name| self.intern(name)).collect();
        let (name, place) = (name.map(str::to_owned), self.place.clone());
        self.exclusions.push(ExclusionDraft { name, labels, strength, place });
        self
    }

    /// Declares that exactly one of these labels is on. The group is always hard, because the model
    /// defines it so; a soft strength is a finding.
    pub fn one_of<'a>(
        &mut self,
        name: &str,
        labels: impl IntoIterator<Item = &'a str>,
        strength: Option<Strength>,
    ) -> &mut Self {
        let labels = Some(labels.into_iter().map(|name| self.intern(name)).collect());
        let (name, place) = (name.to_owned(), self.place.clone());
        self.one_of.push(OneOfDraft { name, labels, strength, place });
        self
    }

    /// Declares that exactly one leaf of the hierarchy is on. Leaves are the labels that have a
    /// parent and no child.
    pub fn one_of_leaves(&mut self, name: &str) -> &mut Self {
        let (name, place) = (name.to_owned(), self.place.clone());
        self.one_of.push(OneOfDraft { name, labels: None, strength: None, place });
        self
    }

    /// Declares a taxonomy of kinds of which each thing is exactly one: labels without a common
    /// descendant exclude each other, roots included, and exactly one label without children is on.
    /// The legal states are then one leaf each, with everything above it.
    ///
    /// The rule [`ExclusionRule::Siblings`] may be declared as well, because it is implied; its
    /// strength is kept. Otherwise the exclusions have the default strength.
    ///
    /// ```
    /// use phex::graph::GraphBuilder;
    ///
    /// let mut builder = GraphBuilder::new();
    /// builder.hierarchy("animal", "dog", None).hierarchy("animal", "cat", None);
    /// builder.hierarchy("vehicle", "car", None).single_label();
    /// let graph = builder.build()?;
    /// assert_eq!(graph.one_of()[0].labels.len(), 3);
    /// assert!(graph.is_single_label());
    /// # Ok::<(), phex::Error>(())
    /// ```
    pub fn single_label(&mut self) -> &mut Self {
        self.single_label = Some(self.place.clone());
        self
    }

    /// Declares a rule by which pairs of labels exclude each other. A graph has at most one rule.
    pub fn exclusion_rule(&mut self, rule: ExclusionRule, strength: Option<Strength>) -> &mut Self {
        let place = self.place.clone();
        self.rules.push(RuleDraft { rule, strength, place });
        self
    }

    /// Whether a rule was declared.
    pub fn has_exclusion_rule(&self) -> bool {
        !self.rules.is_empty()
    }

    /// Sets which violations a soft graph charges for.
    pub fn semantics(&mut self, semantics: Semantics) -> &mut Self {
        self.semantics = semantics;
        self
    }

    /// Sets the strengths of relations that are declared without one.
    pub fn defaults(&mut self, defaults: Defaults) -> &mut Self {
        self.defaults = defaults;
        self.defaults_place = self.place.clone();
        self
    }

    /// The strengths of relations that are declared without one.
    pub fn current_defaults(&self) -> &Defaults {
        &self.defaults
    }

    /// Finds everything that is wrong with the declarations, in one run.
    pub fn check(&self) -> Report {
        check::run(self).0
    }

    /// The report, and the graph unless the report has errors that make it unusable.
    pub fn check_and_build(&self) -> (Report, Option<RelationGraph>) {
        check::run(self)
    }

    /// The frozen graph.
    ///
    /// Only findings that make the graph unusable are refused: unknown or repeated names, cycles,
    /// strengths out of range and the like. Labels that can never be on, and all warnings, are left
    /// to [`GraphBuilder::check`].
    ///
    /// # Errors
    /// [`Error::Graph`] with the report, when it has such findings.
    pub fn build(&self) -> Result<RelationGraph, Error> {
        let (graph, findings) = check::resolve(self);
        if findings.iter().any(|finding| finding.kind.refuses()) {
            return Err(Error::Graph { report: Box::new(Report::new(graph.len(), findings)) });
        }
        Ok(graph)
    }

    fn intern(&mut self, name: &str) -> SymbolId {
        if let Some(&id) = self.index.get(name) {
            return id;
        }
        let id = SymbolId::try_from(self.symbols.len()).expect("label ids fit 32 bits");
        let name: Arc<str> = Arc::from(name);
        self.index.insert(Arc::clone(&name), id);
        let first_use = self.place.clone();
        self.symbols.push(Symbol { name, title: None, declared: Vec::new(), first_use });
        id
    }
}
