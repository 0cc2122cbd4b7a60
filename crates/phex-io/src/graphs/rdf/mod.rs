//! RDF with SKOS or OWL: Turtle, N-Triples, TriG, RDF/XML and JSON-LD.
//!
//! ```turtle
//! @prefix : <http://example.org/> .
//! @prefix skos: <http://www.w3.org/2004/02/skos/core#> .
//! :animal a skos:Concept ; skos:prefLabel "animal"@en .
//! :dog a skos:Concept ; skos:broader :animal .
//! ```
//!
//! | triple                                                | relation                          |
//! |-------------------------------------------------------|-----------------------------------|
//! | `rdfs:subClassOf`, `skos:broader`, `skos:narrower`    | hierarchy                         |
//! | `owl:disjointWith`                                    | exclusion                         |
//! | `owl:AllDisjointClasses` with `owl:members`           | exclusion group                   |
//! | `C owl:disjointUnionOf (…)`                           | hierarchy and exclusion group     |
//! | `C owl:equivalentClass [ owl:unionOf (…) ]`           | hierarchy                         |
//! | `owl:Thing owl:disjointUnionOf (…)`                   | one-of group                      |
//! | `a owl:Class`, `a rdfs:Class`, `a skos:Concept`       | a label                           |
//! | `skos:prefLabel`, `rdfs:label`                        | a title, English or untagged first |
//!
//! A union of disjoint classes that equals `owl:Thing` is also a one-of group. Relations of labels
//! cannot say that a class has no members except those of its union, so this is left out.
//! Restrictions such as `part_of some X` are hierarchy if their property is requested, and are
//! counted otherwise. Everything else is skipped: other blank nodes, `owl:Thing`, the transitive
//! properties of SKOS. A relation that is stated twice, such as `broader` and its inverse
//! `narrower`, counts once. The name of a label is what follows the last `#` or `/` of its IRI if
//! that is unique in the file, else the whole IRI.

mod syntax;
mod terms;

use std::collections::{BTreeMap, HashMap, HashSet};

use terms::{RdfFact, RdfNode, Wanted, fact, is_nil, is_thing, local_name};

use super::sink::GraphSink;
use crate::files::text::{SourceText, shown};
use crate::{Error, Format};

#[derive(Default)]
struct RdfFacts {
    /// Labels in the order of their first mention, with the line.
    labels: Vec<(usize, String)>,
    seen: HashSet<String>,
    relations: Vec<(usize, RdfRelation)>,
    known_pairs: HashSet<(bool, String, String)>,
    titles: HashMap<String, (u8, String)>,
    disjoint: Vec<(usize, RdfNode)>,
    /// Classes and the lists whose disjoint union they are.
    disjoint_unions: Vec<(usize, RdfNode, RdfNode)>,
    /// Classes that are kinds of a blank node.
    within: Vec<(usize, RdfNode, RdfNode)>,
    members: HashMap<RdfNode, RdfNode>,
    unions: HashMap<RdfNode, RdfNode>,
    first: HashMap<RdfNode, RdfNode>,
    rest: HashMap<RdfNode, RdfNode>,
    properties: HashMap<RdfNode, String>,
    values: HashMap<RdfNode, String>,
}

/// A set of classes with its line.
struct ClassSet {
    line: usize,
    labels: Vec<String>,
    /// Whether exactly one of them holds for every thing.
    one_of: bool,
}

enum RdfRelation {
    Hierarchy(String, String),
    Exclusion(String, String),
}

impl RdfFacts {
    fn label(&mut self, line: usize, iri: &str) {
        if self.seen.insert(iri.to_owned()) {
            self.labels.push((line, iri.to_owned()));
        }
    }

    fn add(&mut self, line: usize, fact: RdfFact) {
        match fact {
            RdfFact::IsLabel(label) => self.label(line, &label),
            RdfFact::Hierarchy { parent, child } => {
                self.label(line, &child);
                self.label(line, &parent);
                if self.known_pairs.insert((true, parent.clone(), child.clone())) {
                    self.relations.push((line, RdfRelation::Hierarchy(parent, child)));
                }
            }
            RdfFact::Exclusion(a, b) => {
                self.label(line, &a);
                self.label(line, &b);
                let pair = if a <= b {
                    (false, a.clone(), b.clone())
                } else {
                    (false, b.clone(), a.clone())
                };
                if self.known_pairs.insert(pair) {
                    self.relations.push((line, RdfRelation::Exclusion(a, b)));
                }
            }
            RdfFact::Title(label, rank, title) => {
                let best = self.titles.entry(label).or_insert_with(|| (rank, title.clone()));
                if rank < best.0 {
                    *best = (rank, title);
                }
            }
            RdfFact::AllDisjoint(node) => self.disjoint.push((line, node)),
            RdfFact::Members(node, list) => drop(self.members.insert(node, list)),
            RdfFact::DisjointUnion(class, list) => self.disjoint_unions.push((line, class, list)),
            RdfFact::Union(node, list) => drop(self.unions.insert(node, list)),
            RdfFact::Within(class, node) => self.within.push((line, class, node)),
            RdfFact::OnProperty(node, iri) => drop(self.properties.insert(node, iri)),
            RdfFact::SomeFrom(node, iri) => drop(self.values.insert(node, iri)),
            RdfFact::First(node, item) => drop(self.first.insert(node, item)),
            RdfFact::Rest(node, next) => drop(self.rest.insert(node, next)),
        }
    }

    /// The classes of a list. They become labels.
    fn list(
        &mut self,
        source: &SourceText<'_>,
        line: usize,
        start: Option<RdfNode>,
        walked: &mut HashSet<RdfNode>,
    ) -> Result<Vec<String>, Error> {
        let (mut next, mut labels) = (start, Vec::new());
        while let Some(node) = next.filter(|node| !is_nil(node)) {
            if !walked.insert(node.clone()) {
                let message = "the list of classes is circular or shared with another";
                return Err(source.error(line, message));
            }
            if let Some(RdfNode::Iri(label)) = self.first.get(&node).cloned() {
                self.label(line, &label);
                labels.push(label);
            }
            next = self.rest.get(&node).cloned();
        }
        Ok(labels)
    }

    /// The groups of classes, with the hierarchy of their unions.
    fn sets(&mut self, source: &SourceText<'_>) -> Result<Vec<ClassSet>, Error> {
        let mut walked = HashSet::new();
        let mut sets = Vec::new();
        for (line, node) in std::mem::take(&mut self.disjoint) {
            let start = self.members.get(&node).cloned();
            let labels = self.list(source, line, start, &mut walked)?;
            sets.push(ClassSet { line, labels, one_of: false });
        }
        for (line, class, list) in std::mem::take(&mut self.disjoint_unions) {
            let labels = self.list(source, line, Some(list), &mut walked)?;
            self.below(line, &class, &labels);
            sets.push(ClassSet { line, labels, one_of: is_thing(&class) });
        }
        for (line, class, node) in std::mem::take(&mut self.within) {
            let Some(start) = self.unions.get(&node).cloned() else {
                self.within.push((line, class, node));
                continue;
            };
            let labels = self.list(source, line, Some(start), &mut walked)?;
            self.below(line, &class, &labels);
            // Everything is one of them, and two of them never hold together.
            let same = |set: &&mut ClassSet| {
                let all: HashSet<&String> = set.labels.iter().collect();
                labels.len() == set.labels.len() && labels.iter().all(|label| all.contains(label))
            };
            if is_thing(&class)
                && let Some(set) = sets.iter_mut().find(same)
            {
                set.one_of = true;
            }
        }
        Ok(sets)
    }

    /// Puts the labels below a class, unless it is everything.
    fn below(&mut self, line: usize, class: &RdfNode, labels: &[String]) {
        let RdfNode::Iri(parent) = class else { return };
        if is_thing(class) {
            return;
        }
        for child in labels {
            self.add(line, RdfFact::Hierarchy { parent: parent.clone(), child: child.clone() });
        }
    }

    /// Restrictions of requested properties become hierarchy; others are counted.
    fn restrictions(&mut self, wanted: Wanted<'_>, sink: &mut GraphSink) -> Result<(), Error> {
        let mut skipped: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for (line, class, node) in std::mem::take(&mut self.within) {
            let (RdfNode::Iri(child), Some(property), Some(parent)) =
                (class, self.properties.get(&node), self.values.get(&node).cloned())
            else {
                continue;
            };
            if wanted.relation(property) {
                self.add(line, RdfFact::Hierarchy { parent, child });
            } else {
                skipped.entry(local_name(property).to_owned()).or_insert((line, 0)).1 += 1;
            }
        }
        for (property, (line, count)) in skipped.into_iter().take(20) {
            let message = format!(
                "{count} relations {} were skipped; request them by name to read them as hierarchy",
                shown(&property)
            );
            sink.note(line, message)?;
        }
        Ok(())
    }
}

pub(super) fn read(
    source: &SourceText<'_>,
    format: Format,
    relations: Option<&[String]>,
    language: Option<&str>,
    sink: &mut GraphSink,
) -> Result<(), Error> {
    let wanted = Wanted { relations: relations.unwrap_or_default(), language };
    let mut facts = RdfFacts::default();
    syntax::triples(source, format, &mut |line, triple| {
        if let Some(fact) = fact(triple, wanted) {
            facts.add(line, fact);
        }
    })?;
    let sets = facts.sets(source)?;
    facts.restrictions(wanted, sink)?;
    let names = short_names(facts.labels.iter().map(|(_, iri)| iri.as_str()));
    for (line, iri) in &facts.labels {
        let title = facts.titles.get(iri).map(|(_, title)| title.as_str());
        sink.label_once(*line, names[iri.as_str()], title)?;
    }
    for (line, relation) in &facts.relations {
        let builder = sink.at(*line)?;
        match relation {
            RdfRelation::Hierarchy(parent, child) => {
                builder.hierarchy(names[parent.as_str()], names[child.as_str()], None)
            }
            RdfRelation::Exclusion(a, b) => {
                builder.exclusion(names[a.as_str()], names[b.as_str()], None)
            }
        };
    }
    let mut groups = 0;
    for set in &sets {
        let labels = set.labels.iter().map(|label| names[label.as_str()]);
        let builder = sink.at(set.line)?;
        if set.one_of {
            groups += 1;
            let name = if groups == 1 { String::from("Thing") } else { format!("Thing {groups}") };
            builder.one_of(&name, labels, None);
        } else {
            builder.exclusion_group(None, labels, None);
        }
    }
    Ok(())
}

/// The name of each IRI: its local name if that is unique, else the whole IRI.
fn short_names<'a>(iris: impl Iterator<Item = &'a str> + Clone) -> HashMap<&'a str, &'a str> {
    let mut uses: HashMap<&str, usize> = HashMap::new();
    for iri in iris.clone() {
        *uses.entry(local_name(iri)).or_default() += 1;
    }
    let name = |iri| {
        let local = local_name(iri);
        if local.is_empty() || uses[local] > 1 { iri } else { local }
    };
    iris.map(|iri| (iri, name(iri))).collect()
}

#[cfg(test)]
mod tests {
    use crate::{Format, ReadOptions, parse_graph};
    use phex::graph::{GraphBuilder, RelationGraph};

    const PREFIXES: &str = "@prefix : <http://example.org/a#> . @prefix b: <http://example.org/b/> .\n\
        @prefix owl: <http://www.w3.org/2002/07/owl#> .\n\
        @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n\
        @prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n";

    fn read(text: &str) -> Result<GraphBuilder, crate::Error> {
        let text = format!("{PREFIXES}{text}");
        parse_graph(text.as_bytes(), "g.ttl", Format::Turtle, &ReadOptions::default())
    }

    fn xml(body: &str) -> Result<GraphBuilder, crate::Error> {
        let text = format!(
            "<?xml version=\"1.0\"?>\n<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\"\n\
             xmlns:rdfs=\"http://www.w3.org/2000/01/rdf-schema#\" xmlns:owl=\"http://www.w3.org/2002/07/owl#\">\n\
             {body}</rdf:RDF>\n"
        );
        parse_graph(text.as_bytes(), "g.owl", Format::RdfXml, &ReadOptions::default())
    }

    fn names(graph: &RelationGraph) -> Vec<&str> {
        graph.labels().iter().map(|label| label.name.as_str()).collect()
    }

    #[test]
    fn skos_concepts() {
        let text = ":animal a skos:Concept ;\n  skos:prefLabel \"Tier\"@de, \"animal\"@en ;\n  \
                    skos:narrower :dog .\n:dog skos:broader :animal ;\n  rdfs:label \"dog\" .\n\
                    :alone a skos:Concept .\n";
        let graph = read(text).unwrap().build().unwrap();
        assert_eq!(names(&graph), ["animal", "dog", "alone"]);
        assert_eq!(graph.labels()[0].title.as_deref(), Some("animal"));
        assert_eq!(graph.labels()[1].title.as_deref(), Some("dog"));
        assert_eq!(graph.hierarchy().len(), 1);
        assert_eq!(graph.hierarchy()[0].place.to_string(), "g.ttl:7");
    }

    #[test]
    fn owl_classes() {
        let text = ":dog rdfs:subClassOf :animal, owl:Thing,\n  [ a owl:Restriction ; owl:onProperty \
                    :p ] .\n:dog owl:disjointWith :cat .\n:cat owl:disjointWith :dog .\n\
                    [] a owl:AllDisjointClasses ;\n  owl:members ( :dog :cat :cow ) .\n";
        let graph = read(text).unwrap().build().unwrap();
        assert_eq!(names(&graph), ["dog", "animal", "cat", "cow"]);
        assert_eq!(graph.hierarchy().len(), 1);
        let groups: Vec<_> = graph.exclusions().iter().map(|group| group.labels.len()).collect();
        assert_eq!(groups, [2, 3]);
        assert_eq!(graph.exclusions()[0].place.line, Some(7));
        assert_eq!(graph.exclusions()[1].place.line, Some(9));
    }

    #[test]
    fn names_that_clash_are_whole() {
        let graph = read(":dog rdfs:subClassOf b:dog .\nb:dog rdfs:subClassOf b:pet .\n").unwrap();
        let graph = graph.build().unwrap();
        assert_eq!(names(&graph), ["http://example.org/a#dog", "http://example.org/b/dog", "pet"]);
    }

    #[test]
    fn mistakes_have_their_line() {
        assert_eq!(read(":a :b :c .\n:a :b ;; ] .\n").unwrap_err().line(), Some(6));
        assert_eq!(read(":a :b \"unfinished\n").unwrap_err().line(), Some(5));
        let circle = "[] a owl:AllDisjointClasses ; owl:members _:l .\n\
            _:l <http://www.w3.org/1999/02/22-rdf-syntax-ns#rest> _:l .\n";
        assert!(read(circle).unwrap_err().to_string().contains("circular"));
    }

    #[test]
    fn long_strings_take_time_in_proportion() {
        let text = format!(
            ":a rdfs:label \"\"\"{}\"\"\" .\n:x rdfs:subClassOf :y .\n",
            "x\n".repeat(2_000_000)
        );
        let graph = read(&text).unwrap().build().unwrap();
        assert_eq!(graph.len(), 2);
    }

    #[test]
    fn rdf_xml_with_lines() {
        let graph = xml("<owl:Class rdf:about=\"#animal\"/>\n<owl:Class rdf:about=\"#dog\">\n\
             <rdfs:subClassOf rdf:resource=\"#animal\"/>\n<rdfs:label xml:lang=\"de\">Hund</rdfs:label>\n\
             <rdfs:label xml:lang=\"en\">dog</rdfs:label></owl:Class>\n");
        let graph = graph.unwrap().build().unwrap();
        assert_eq!(names(&graph), ["animal", "dog"]);
        assert_eq!(graph.labels()[1].title.as_deref(), Some("dog"));
        assert_eq!(graph.hierarchy()[0].place.to_string(), "g.owl:6");
        assert_eq!(xml("<owl:Class>\n</owl:Klass>\n").unwrap_err().line(), Some(5));
    }

    #[test]
    fn json_ld_and_trig() {
        let text = r#"{"@context": {"skos": "http://www.w3.org/2004/02/skos/core#"}, "@graph": [
            {"@id": "x:animal", "@type": "skos:Concept"},
            {"@id": "x:dog", "skos:broader": {"@id": "x:animal"},
             "skos:prefLabel": {"@language": "de", "@value": "Hund"}}]}"#;
        let options = ReadOptions::default();
        let graph = parse_graph(text.as_bytes(), "g.jsonld", Format::JsonLd, &options).unwrap();
        let graph = graph.build().unwrap();
        assert_eq!((graph.len(), graph.hierarchy().len()), (2, 1));
        assert_eq!(graph.label(graph.hierarchy()[0].child).title.as_deref(), Some("Hund"));
        let remote = b"{\"@context\": \"http://example.org/c\", \"@id\": \"x:a\"}";
        let error = parse_graph(remote, "g", Format::JsonLd, &options).unwrap_err().to_string();
        assert!(error.contains("not loaded"), "{error}");
        let trig = read(":g { :dog rdfs:subClassOf :animal . }\n").unwrap().build().unwrap();
        assert_eq!(trig.hierarchy().len(), 1);
    }

    #[test]
    fn unions() {
        let text = ":pet owl:disjointUnionOf ( :dog :cat ) .\n:bird owl:equivalentClass [ a owl:Class ;\n \
                    owl:unionOf ( :owl :duck ) ] .\nowl:Thing owl:equivalentClass [ owl:unionOf ( :pet \
                    :bird ) ] .\n[] a owl:AllDisjointClasses ; owl:members ( :bird :pet ) .\n";
        let graph = read(text).unwrap().build().unwrap();
        assert_eq!((graph.hierarchy().len(), graph.exclusions().len()), (4, 1));
        assert_eq!(graph.one_of()[0].labels.len(), 2);
    }

    #[test]
    fn relations_and_languages_that_were_asked_for() {
        let text = format!(
            "{PREFIXES}:wheel rdfs:subClassOf [ a owl:Restriction ; owl:onProperty :part_of ;\n \
             owl:someValuesFrom :car ] ; rdfs:label \"wheel\"@en, \"Rad\"@de-AT .\n:hub :part_of :wheel .\n"
        );
        let read = |options: &ReadOptions| {
            parse_graph(text.as_bytes(), "g.ttl", Format::Turtle, options).unwrap()
        };
        let plain = read(&ReadOptions::default());
        assert_eq!(plain.notes().count(), 1);
        let options = ReadOptions {
            relations: Some(vec![String::from("part_of")]),
            language: Some(String::from("de")),
            ..ReadOptions::default()
        };
        let graph = read(&options).build().unwrap();
        assert_eq!(graph.hierarchy().len(), 2);
        assert_eq!(graph.label(graph.id("wheel").unwrap()).title.as_deref(), Some("Rad"));
    }
}
