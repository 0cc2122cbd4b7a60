//! RDF Turtle (and N-Triples) with SKOS or OWL.
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
//! | `a owl:Class`, `a rdfs:Class`, `a skos:Concept`       | a label                           |
//! | `skos:prefLabel`, `rdfs:label`                        | a title, English or untagged first |
//!
//! Everything else is skipped: restrictions and other blank nodes, `owl:Thing`, the transitive
//! properties of SKOS. A relation that is stated twice, such as `broader` and its inverse
//! `narrower`, counts once. The name of a label is what follows the last `#` or `/` of its IRI if
//! that is unique in the file, else the whole IRI.

use std::collections::{HashMap, HashSet};

use oxttl::TurtleParser;

use super::sink::GraphSink;
use super::turtle_terms::{TurtleFact, TurtleNode, fact, is_nil};
use crate::Error;
use crate::files::text::SourceText;

/// After this many bytes without a triple, the parser gets more than one line at a time, because it
/// scans a long token again from its start with each piece.
const PATIENCE: usize = 64 * 1024;

#[derive(Default)]
struct TurtleFacts {
    /// Labels in the order of their first mention, with the line.
    labels: Vec<(usize, String)>,
    seen: HashSet<String>,
    relations: Vec<(usize, TurtleRelation)>,
    known_pairs: HashSet<(bool, String, String)>,
    titles: HashMap<String, (u8, String)>,
    disjoint: Vec<(usize, TurtleNode)>,
    members: HashMap<TurtleNode, TurtleNode>,
    first: HashMap<TurtleNode, TurtleNode>,
    rest: HashMap<TurtleNode, TurtleNode>,
}

enum TurtleRelation {
    Hierarchy(String, String),
    Exclusion(String, String),
}

impl TurtleFacts {
    fn label(&mut self, line: usize, iri: &str) {
        if self.seen.insert(iri.to_owned()) {
            self.labels.push((line, iri.to_owned()));
        }
    }

    fn add(&mut self, line: usize, fact: TurtleFact) {
        match fact {
            TurtleFact::IsLabel(label) => self.label(line, &label),
            TurtleFact::Hierarchy { parent, child } => {
                self.label(line, &child);
                self.label(line, &parent);
                if self.known_pairs.insert((true, parent.clone(), child.clone())) {
                    self.relations.push((line, TurtleRelation::Hierarchy(parent, child)));
                }
            }
            TurtleFact::Exclusion(a, b) => {
                self.label(line, &a);
                self.label(line, &b);
                let pair = if a <= b {
                    (false, a.clone(), b.clone())
                } else {
                    (false, b.clone(), a.clone())
                };
                if self.known_pairs.insert(pair) {
                    self.relations.push((line, TurtleRelation::Exclusion(a, b)));
                }
            }
            TurtleFact::Title(label, rank, title) => {
                let best = self.titles.entry(label).or_insert_with(|| (rank, title.clone()));
                if rank < best.0 {
                    *best = (rank, title);
                }
            }
            TurtleFact::AllDisjoint(node) => self.disjoint.push((line, node)),
            TurtleFact::Members(node, list) => drop(self.members.insert(node, list)),
            TurtleFact::First(node, item) => drop(self.first.insert(node, item)),
            TurtleFact::Rest(node, next) => drop(self.rest.insert(node, next)),
        }
    }

    /// The exclusion groups with their lines. Their members become labels.
    fn groups(&mut self, source: &SourceText<'_>) -> Result<Vec<(usize, Vec<String>)>, Error> {
        let mut groups = Vec::new();
        let mut walked = HashSet::new();
        for (line, node) in std::mem::take(&mut self.disjoint) {
            let mut next = self.members.get(&node).cloned();
            let mut group = Vec::new();
            while let Some(node) = next.filter(|node| !is_nil(node)) {
                if !walked.insert(node.clone()) {
                    let message = "the list of an owl:AllDisjointClasses is circular or shared \
                                   with another";
                    return Err(source.error(line, message));
                }
                if let Some(TurtleNode::Iri(label)) = self.first.get(&node).cloned() {
                    self.label(line, &label);
                    group.push(label);
                }
                next = self.rest.get(&node).cloned();
            }
            groups.push((line, group));
        }
        Ok(groups)
    }
}

pub(super) fn read(source: &SourceText<'_>, sink: &mut GraphSink) -> Result<(), Error> {
    let mut facts = collect(source)?;
    let groups = facts.groups(source)?;
    let names = short_names(facts.labels.iter().map(|(_, iri)| iri.as_str()));
    for (line, iri) in &facts.labels {
        let title = facts.titles.get(iri).map(|(_, title)| title.as_str());
        sink.label_once(*line, names[iri.as_str()], title)?;
    }
    for (line, relation) in &facts.relations {
        let builder = sink.at(*line)?;
        match relation {
            TurtleRelation::Hierarchy(parent, child) => {
                builder.hierarchy(names[parent.as_str()], names[child.as_str()], None)
            }
            TurtleRelation::Exclusion(a, b) => {
                builder.exclusion(names[a.as_str()], names[b.as_str()], None)
            }
        };
    }
    for (line, group) in &groups {
        let labels = group.iter().map(|label| names[label.as_str()]);
        sink.at(*line)?.exclusion_group(None, labels, None);
    }
    Ok(())
}

/// Feeds the parser line by line, so that each triple ends on the line fed last.
fn collect(source: &SourceText<'_>) -> Result<TurtleFacts, Error> {
    let mut parser = TurtleParser::new().low_level();
    let mut facts = TurtleFacts::default();
    let (mut line, mut waiting) = (0, 0);
    let mut rest = source.text.as_bytes();
    loop {
        let ended = rest.is_empty();
        if ended {
            parser.end();
        } else {
            let least = if waiting > PATIENCE { (waiting / 2).min(rest.len() - 1) } else { 0 };
            let end = rest[least..].iter().position(|&byte| byte == b'\n');
            let (piece, after) = rest.split_at(end.map_or(rest.len(), |end| least + end + 1));
            parser.extend_from_slice(piece);
            line += if least == 0 { 1 } else { piece.split_inclusive(|&b| b == b'\n').count() };
            waiting += piece.len();
            rest = after;
        }
        while let Some(parsed) = parser.parse_next() {
            waiting = 0;
            let triple = parsed.map_err(|error| {
                let line = usize::try_from(error.location().start.line).unwrap_or(usize::MAX - 1);
                source.error(line + 1, error.message())
            })?;
            if let Some(fact) = fact(triple) {
                facts.add(line, fact);
            }
        }
        if ended {
            return Ok(facts);
        }
    }
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

fn local_name(iri: &str) -> &str {
    let after = |mark| iri.rsplit_once(mark).map(|(_, local)| local);
    after('#').or_else(|| after('/')).unwrap_or(iri)
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
}
