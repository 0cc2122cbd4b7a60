//! The IRIs that the Turtle reader knows, and the meaning of each triple.

use oxrdf::{Literal, NamedNode, NamedOrBlankNode, Term, Triple};

/// A node: an IRI or a blank node.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum TurtleNode {
    Iri(String),
    Blank(String),
}

/// The meaning of a triple.
pub(super) enum TurtleFact {
    /// The node is a class or a concept.
    IsLabel(String),
    Hierarchy {
        parent: String,
        child: String,
    },
    Exclusion(String, String),
    /// A label, the rank of its title (lower is better) and the title.
    Title(String, u8, String),
    /// The node is a set of classes that exclude each other.
    AllDisjoint(TurtleNode),
    /// The node has the members of the list at the other node.
    Members(TurtleNode, TurtleNode),
    First(TurtleNode, TurtleNode),
    Rest(TurtleNode, TurtleNode),
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

/// Whether the IRI is a word of a vocabulary and therefore not a label: `owl:Thing` is everything.
fn is_word(iri: &str) -> bool {
    known(iri).is_some()
}

/// The end of a list.
pub(super) fn is_nil(node: &TurtleNode) -> bool {
    matches!(node, TurtleNode::Iri(iri) if known(iri) == Some(("rdf", "nil")))
}

pub(super) fn fact(triple: Triple) -> Option<TurtleFact> {
    let subject = match triple.subject {
        NamedOrBlankNode::NamedNode(node) => TurtleNode::Iri(NamedNode::into_string(node)),
        NamedOrBlankNode::BlankNode(node) => TurtleNode::Blank(node.into_string()),
    };
    let predicate = known(triple.predicate.as_str())?;
    let object = match triple.object {
        Term::NamedNode(node) => TurtleNode::Iri(node.into_string()),
        Term::BlankNode(node) => TurtleNode::Blank(node.into_string()),
        Term::Literal(literal) => return title(subject, predicate, &literal),
        #[allow(unreachable_patterns, reason = "other crates may turn on terms of RDF 1.2")]
        _ => return None,
    };
    match predicate {
        ("rdf", "type") => match (subject, &object) {
            (TurtleNode::Iri(label), TurtleNode::Iri(class)) if !is_word(&label) => {
                let classes = [("owl", "Class"), ("rdfs", "Class"), ("skos", "Concept")];
                let class = known(class)?;
                classes.contains(&class).then_some(TurtleFact::IsLabel(label))
            }
            (node, TurtleNode::Iri(class))
                if known(class) == Some(("owl", "AllDisjointClasses")) =>
            {
                Some(TurtleFact::AllDisjoint(node))
            }
            _ => None,
        },
        ("owl", "members") => Some(TurtleFact::Members(subject, object)),
        ("rdf", "first") => Some(TurtleFact::First(subject, object)),
        ("rdf", "rest") => Some(TurtleFact::Rest(subject, object)),
        _ => relation(subject, predicate, object),
    }
}

fn relation(
    subject: TurtleNode,
    predicate: (&str, &str),
    object: TurtleNode,
) -> Option<TurtleFact> {
    // Blank nodes are restrictions and other expressions.
    let (TurtleNode::Iri(subject), TurtleNode::Iri(object)) = (subject, object) else {
        return None;
    };
    if is_word(&subject) || is_word(&object) {
        return None;
    }
    match predicate {
        ("rdfs", "subClassOf") | ("skos", "broader") => {
            Some(TurtleFact::Hierarchy { parent: object, child: subject })
        }
        ("skos", "narrower") => Some(TurtleFact::Hierarchy { parent: subject, child: object }),
        ("owl", "disjointWith") => Some(TurtleFact::Exclusion(subject, object)),
        _ => None,
    }
}

fn title(subject: TurtleNode, predicate: (&str, &str), literal: &Literal) -> Option<TurtleFact> {
    let TurtleNode::Iri(label) = subject else { return None };
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
    Some(TurtleFact::Title(label, 2 * by_language + by_kind, literal.value().to_owned()))
}
