"""Writes one taxonomy in the forms of pandas, networkx and rdflib, and says how they count it.

Usage: taxonomies.py FOLDER. The counts are in FOLDER/counts.json: labels and hierarchy edges per file.
"""

import json
import sys
from pathlib import Path

import networkx as nx
import pandas as pd
import rdflib
from rdflib.namespace import OWL, RDF, RDFS, SKOS

folder = Path(sys.argv[1])
counts: dict[str, list[int]] = {}

# A tree of 4 levels whose leaves repeat under different parents, and a DAG with more edges.
rows = [
    (f"kingdom {k}", f"family {k}{f}", f"genus {k}{f}{g}", f"kind {s}")
    for k in range(3)
    for f in range(2)
    for g in range(3)
    for s in range(2)
]
frame = pd.DataFrame(rows, columns=["kingdom", "family", "genus", "species"])
paths = {row[: n + 1] for row in rows for n in range(4)}
tree = nx.DiGraph()
tree.add_nodes_from(paths)
tree.add_edges_from((path[:-1], path) for path in paths if len(path) > 1)
size = [tree.number_of_nodes(), tree.number_of_edges()]


def written(name: str, expected: list[int]) -> Path:
    counts[name] = expected
    return folder / name


frame.to_csv(written("levels.csv", size))
frame.sample(frac=1, random_state=1).to_csv(written("levels_no_index.tsv", size), sep="\t", index=False)
frame.set_axis(range(4), axis=1).to_csv(written("hiclass.csv", size), index=False)
frame.sort_values(["kingdom", "family", "genus"]).to_csv(written("semicolon.csv", size), sep=";", index=False)
lines = [" > ".join(path) for path in sorted(paths)]
written("paths.txt", size).write_text("\n".join(lines) + "\n")
written("slashes.txt", size).write_text("".join("/".join(path) + "\n" for path in rows))

# Ids: pandas makes floats of a parent column with gaps.
order = sorted(paths)
ids = {path: 100 + at for at, path in enumerate(order)}
table = pd.DataFrame(
    {
        "taxon_name": [path[-1] for path in order],
        "parent_taxon_id": [ids.get(path[:-1]) for path in order],
        "taxon_id": [ids[path] for path in order],
        "size": [len(path) for path in order],
    }
)
shuffled = table.sample(frac=1, random_state=2)
shuffled.to_csv(written("ids.csv", size), index=False)
assert ".0" in (folder / "ids.csv").read_text()
shuffled.to_json(written("records.json", size), orient="records", indent=1)
darwin = pd.DataFrame(
    {
        "taxonID": [ids[path] for path in order],
        "parentNameUsageID": [str(ids.get(path[:-1], "")) for path in order],
        "acceptedNameUsageID": "",
        "scientificName": [path[-1] for path in order],
        "kingdom": [path[0] for path in order],
    }
)
darwin.loc[len(darwin)] = [9999, "100", "101", "a synonym", "kingdom 0"]
darwin.to_csv(written("darwin_core.tsv", size), sep="\t", index=False)

dag = nx.DiGraph()
for path in order:
    dag.add_node(ids[path], name=path[-1])
dag.add_edges_from((ids[path[:-1]], ids[path]) for path in order if len(path) > 1)
leaves = [path for path in order if len(path) == 4]
dag.add_edges_from((ids[leaves[0][:1]], ids[leaf]) for leaf in leaves[-4:])
dag_size = [dag.number_of_nodes(), dag.number_of_edges()]
for key in ("links", "edges"):
    data = nx.node_link_data(dag, edges=key)
    written(f"node_link_{key}.json", dag_size).write_text(json.dumps(data))
nx.write_graphml(dag, written("dag.graphml", dag_size))
up = nx.MultiDiGraph()
up.add_nodes_from(dag.nodes)
up.add_edges_from((child, parent, "is_a") for parent, child in dag.edges)
up.add_edge(ids[leaves[0]], ids[leaves[1]], "part_of")
written("ontology.json", dag_size).write_text(json.dumps(nx.node_link_data(up, edges="links")))
below = tree.subgraph([path for path in paths if path[0] == "kingdom 0"]).copy()
below = nx.relabel_nodes(below, {path: "/".join(path) for path in below})
written("tree_data.json", [below.number_of_nodes(), below.number_of_edges()]).write_text(
    json.dumps(nx.tree_data(below, root="kingdom 0"))
)

concepts, classes = rdflib.Graph(), rdflib.Graph()
name = rdflib.Namespace("http://example.org/taxa#")
for path in order:
    node = name[f"t{ids[path]}"]
    concepts.add((node, RDF.type, SKOS.Concept))
    concepts.add((node, SKOS.prefLabel, rdflib.Literal(path[-1], lang="en")))
    concepts.add((node, SKOS.prefLabel, rdflib.Literal("de " + path[-1], lang="de")))
    classes.add((node, RDF.type, OWL.Class))
    classes.add((node, RDFS.label, rdflib.Literal(path[-1])))
    if len(path) > 1:
        parent = name[f"t{ids[path[:-1]]}"]
        concepts.add((node, SKOS.broader, parent))
        concepts.add((parent, SKOS.narrower, node))
        classes.add((node, RDFS.subClassOf, parent))
restriction = rdflib.BNode()
classes.add((restriction, RDF.type, OWL.Restriction))
classes.add((restriction, OWL.onProperty, name.part_of))
classes.add((restriction, OWL.someValuesFrom, name.t100))
classes.add((name.t101, RDFS.subClassOf, restriction))
for what, graph, edge in (("skos", concepts, SKOS.broader), ("owl", classes, RDFS.subClassOf)):
    edges = [o for _, _, o in graph.triples((None, edge, None)) if isinstance(o, rdflib.URIRef)]
    labels = {s for s in graph.subjects() if isinstance(s, rdflib.URIRef)}
    for ending, form in (
        ("rdf", "xml"),
        ("pretty.rdf", "pretty-xml"),
        ("jsonld", "json-ld"),
        ("nt", "nt"),
        ("ttl", "turtle"),
        ("trig", "trig"),
    ):
        target = written(f"{what}.{ending}", [len(labels), len(edges)])
        graph.serialize(target, format=form, encoding="utf-8")

(folder / "counts.json").write_text(json.dumps(counts))
