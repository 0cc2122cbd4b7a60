//! The IRIs that mean something to the Turtle reader, and what each triple says.

use oxrdf::{Literal, NamedNode, NamedOrBlankNode, Term, Triple};

/// A node: an IRI or a blank node.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Node {
    Iri(String),
    Blank(String),
}

/// What a triple says about labels.
pub(super) enum Fact {
    /// The node is a class or a concept.
    IsLabel(String),
    Hierarchy {
        parent: String,
        child: String,
    },
    Exclusion(String, String),
    /// The rank, best first, and the title of a label.
    Title(String, u8, String),
    /// The node is a set of classes that exclude each other.
    AllDisjoint(Node),
    /// The node has the members of the list at the other node.
    Members(Node, Node),
    First(Node, Node),
    Rest(Node, Node),
}

const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
const RDFS: &str = "http://www.w3.org/2000/01/rdf-schema#";
const OWL: &str = "http://www.w3.org/2002/07/owl#";
const SKOS: &str = "http://www.w3.org/2004/02/skos/core#";

/// An IRI of one of the four vocabularies as prefix and local name.
fn known(iri: &str) -> Option<(&'static str, &str)> {
    let prefixes = [("rdf", RDF), ("rdfs", RDFS), ("owl", OWL), ("skos", SKOS)];
    prefixes.into_iter().find_map(|(prefix, start)| Some((prefix, iri.strip_prefix(start)?)))
}

/// Whether the IRI is a word of a vocabulary and no label: `owl:Thing` is everything.
fn is_word(iri: &str) -> bool {
    known(iri).is_some()
}

/// The end of a list.
pub(super) fn is_nil(node: &Node) -> bool {
    matches!(node, Node::Iri(iri) if known(iri) == Some(("rdf", "nil")))
}

pub(super) fn fact(triple: Triple) -> Option<Fact> {
    let subject = match triple.subject {
        NamedOrBlankNode::NamedNode(node) => Node::Iri(NamedNode::into_string(node)),
        NamedOrBlankNode::BlankNode(node) => Node::Blank(node.into_string()),
    };
    let predicate = known(triple.predicate.as_str())?;
    let object = match triple.object {
        Term::NamedNode(node) => Node::Iri(node.into_string()),
        Term::BlankNode(node) => Node::Blank(node.into_string()),
        Term::Literal(literal) => return title(subject, predicate, &literal),
        #[allow(unreachable_patterns, reason = "other crates may turn on terms of RDF 1.2")]
        _ => return None,
    };
    match predicate {
        ("rdf", "type") => match (subject, &object) {
            (Node::Iri(label), Node::Iri(class)) if !is_word(&label) => {
                let classes = [("owl", "Class"), ("rdfs", "Class"), ("skos", "Concept")];
                let class = known(class)?;
                classes.contains(&class).then_some(Fact::IsLabel(label))
            }
            (node, Node::Iri(class)) if known(class) == Some(("owl", "AllDisjointClasses")) => {
                Some(Fact::AllDisjoint(node))
            }
            _ => None,
        },
        ("owl", "members") => Some(Fact::Members(subject, object)),
        ("rdf", "first") => Some(Fact::First(subject, object)),
        ("rdf", "rest") => Some(Fact::Rest(subject, object)),
        _ => relation(subject, predicate, object),
    }
}

fn relation(subject: Node, predicate: (&str, &str), object: Node) -> Option<Fact> {
    // Blank nodes are restrictions and other expressions.
    let (Node::Iri(subject), Node::Iri(object)) = (subject, object) else { return None };
    if is_word(&subject) || is_word(&object) {
        return None;
    }
    match predicate {
        ("rdfs", "subClassOf") | ("skos", "broader") => {
            Some(Fact::Hierarchy { parent: object, child: subject })
        }
        ("skos", "narrower") => Some(Fact::Hierarchy { parent: subject, child: object }),
        ("owl", "disjointWith") => Some(Fact::Exclusion(subject, object)),
        _ => None,
    }
}

fn title(subject: Node, predicate: (&str, &str), literal: &Literal) -> Option<Fact> {
    let Node::Iri(label) = subject else { return None };
    let by_kind = match predicate {
        ("skos", "prefLabel") => 0,
        ("rdfs", "label") => 1,
        _ => return None,
    };
    let by_language = match literal.language() {
        None | Some("en") => 0,
        Some(tag) if tag.starts_with("en-") => 1,
        Some(_) => 2,
    };
    Some(Fact::Title(label, 2 * by_language + by_kind, literal.value().to_owned()))
}
