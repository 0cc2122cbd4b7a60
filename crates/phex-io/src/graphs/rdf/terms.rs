//! The IRIs that the reader of RDF knows, and the meaning of each triple.

use oxrdf::{Literal, NamedNode, NamedOrBlankNode, Term, Triple};

/// A node: an IRI or a blank node.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum RdfNode {
    Iri(String),
    Blank(String),
}

/// The meaning of a triple.
pub(super) enum RdfFact {
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
    AllDisjoint(RdfNode),
    /// The node has the members of the list at the other node.
    Members(RdfNode, RdfNode),
    /// A class, `owl:Thing` for instance, is exactly one of the classes of a list.
    DisjointUnion(RdfNode, RdfNode),
    /// The node is any of the classes of a list.
    Union(RdfNode, RdfNode),
    /// The first node, which may be `owl:Thing`, is a kind of the other one, a blank node.
    Within(RdfNode, RdfNode),
    /// The restriction is about a property.
    OnProperty(RdfNode, String),
    /// The restriction says that some value of the property is in a class.
    SomeFrom(RdfNode, String),
    First(RdfNode, RdfNode),
    Rest(RdfNode, RdfNode),
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

/// Whether a node is the class of all things.
pub(super) fn is_thing(node: &RdfNode) -> bool {
    matches!(node, RdfNode::Iri(iri) if known(iri) == Some(("owl", "Thing")))
}

/// The last part of an IRI, by which properties are requested.
pub(super) fn local_name(iri: &str) -> &str {
    let after = |mark| iri.rsplit_once(mark).map(|(_, local)| local);
    after('#').or_else(|| after('/')).unwrap_or(iri)
}

/// What the user of the reader requested.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Wanted<'w> {
    /// Properties that are hierarchy besides `subClassOf` and `broader`, by name or IRI.
    pub(super) relations: &'w [String],
    /// The language of titles.
    pub(super) language: Option<&'w str>,
}

impl Wanted<'_> {
    /// Whether a property is requested.
    pub(super) fn relation(&self, iri: &str) -> bool {
        self.relations.iter().any(|name| name == iri || name == local_name(iri))
    }
}

/// The end of a list.
pub(super) fn is_nil(node: &RdfNode) -> bool {
    matches!(node, RdfNode::Iri(iri) if known(iri) == Some(("rdf", "nil")))
}

pub(super) fn fact(triple: Triple, wanted: Wanted<'_>) -> Option<RdfFact> {
    let subject = match triple.subject {
        NamedOrBlankNode::NamedNode(node) => RdfNode::Iri(NamedNode::into_string(node)),
        NamedOrBlankNode::BlankNode(node) => RdfNode::Blank(node.into_string()),
    };
    let iri = triple.predicate.as_str();
    let object = match triple.object {
        Term::NamedNode(node) => RdfNode::Iri(node.into_string()),
        Term::BlankNode(node) => RdfNode::Blank(node.into_string()),
        Term::Literal(literal) => return title(subject, known(iri)?, &literal, wanted.language),
        #[allow(unreachable_patterns, reason = "other crates may turn on terms of RDF 1.2")]
        _ => return None,
    };
    if wanted.relation(iri) {
        return hierarchy(subject, object);
    }
    match (known(iri)?, object) {
        (("rdf", "type"), RdfNode::Iri(class)) => match (subject, known(&class)?) {
            (RdfNode::Iri(label), ("owl" | "rdfs", "Class") | ("skos", "Concept"))
                if !is_word(&label) =>
            {
                Some(RdfFact::IsLabel(label))
            }
            (node, ("owl", "AllDisjointClasses")) => Some(RdfFact::AllDisjoint(node)),
            _ => None,
        },
        (("owl", "members"), object) => Some(RdfFact::Members(subject, object)),
        (("rdf", "first"), object) => Some(RdfFact::First(subject, object)),
        (("rdf", "rest"), object) => Some(RdfFact::Rest(subject, object)),
        (("owl", "disjointUnionOf"), object) => Some(RdfFact::DisjointUnion(subject, object)),
        (("owl", "unionOf"), object) => Some(RdfFact::Union(subject, object)),
        (("owl", "onProperty"), RdfNode::Iri(iri)) => Some(RdfFact::OnProperty(subject, iri)),
        (("owl", "someValuesFrom"), RdfNode::Iri(iri)) if !is_word(&iri) => {
            Some(RdfFact::SomeFrom(subject, iri))
        }
        (("owl", "equivalentClass") | ("rdfs", "subClassOf"), object @ RdfNode::Blank(_)) => {
            Some(RdfFact::Within(subject, object))
        }
        (("rdfs", "subClassOf") | ("skos", "broader"), object) => hierarchy(subject, object),
        (("skos", "narrower"), object) => hierarchy(object, subject),
        (("owl", "disjointWith"), object) => {
            let (a, b) = two_labels(subject, object)?;
            Some(RdfFact::Exclusion(a, b))
        }
        _ => None,
    }
}

/// The IRIs of two nodes, unless one is a blank node or a word of a vocabulary.
fn two_labels(a: RdfNode, b: RdfNode) -> Option<(String, String)> {
    let (RdfNode::Iri(a), RdfNode::Iri(b)) = (a, b) else { return None };
    (!is_word(&a) && !is_word(&b)).then_some((a, b))
}

fn hierarchy(child: RdfNode, parent: RdfNode) -> Option<RdfFact> {
    let (child, parent) = two_labels(child, parent)?;
    Some(RdfFact::Hierarchy { parent, child })
}

fn title(
    subject: RdfNode,
    predicate: (&str, &str),
    literal: &Literal,
    wanted: Option<&str>,
) -> Option<RdfFact> {
    let RdfNode::Iri(label) = subject else { return None };
    let by_kind = match predicate {
        ("skos", "prefLabel") => 0,
        ("rdfs", "label") => 1,
        _ => return None,
    };
    let is = |tag: &str, language: &str| {
        let start = tag.get(..language.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(language))
            && matches!(tag.as_bytes().get(language.len()), None | Some(b'-'))
    };
    let by_language = match (literal.language(), wanted) {
        (Some(tag), Some(language)) if is(tag, language) => 0,
        (None | Some("en"), _) => 1,
        (Some(tag), _) if is(tag, "en") => 2,
        (Some(_), _) => 3,
    };
    Some(RdfFact::Title(label, 2 * by_language + by_kind, literal.value().to_owned()))
}
