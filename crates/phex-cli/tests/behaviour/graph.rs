//! `phex graph` as a user runs it: the real binary, a temporary folder each.

use std::fs;

use assert_cmd::Command;
use serde_json::Value;

fn phex(arguments: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("phex"));
    command.args(arguments);
    command
}

/// Runs and returns the exit status, standard output and standard error.
fn run(arguments: &[&str]) -> (i32, String, String) {
    let output = phex(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn json(arguments: &[&str]) -> (i32, Value) {
    let (status, out, error) = run(arguments);
    let value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}{error}"));
    (status, value)
}

/// A folder with one file in it.
fn file(name: &str, text: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    (folder, path.to_str().unwrap().to_owned())
}

fn example(name: &str) -> String {
    format!("{}/examples/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn check_of_a_good_graph_is_fine() {
    let (status, out, _) = run(&["graph", "check", &example("animals.toml")]);
    assert_eq!((status, out.as_str()), (0, "17 labels: nothing found\n"));
}

#[test]
fn check_explains_a_broken_graph() {
    let (status, report) = json(&["graph", "check", &example("animals-broken.toml"), "--json"]);
    assert_eq!(status, 1);
    assert_eq!(report["labels"], 11);
    let findings = report["findings"].as_array().unwrap();
    let husky = findings.iter().find(|f| f["kind"] == "dead-label" && f["labels"][0] == "husky");
    let husky = husky.unwrap();
    assert_eq!(
        husky["message"],
        "husky can never be on: husky is a dog, dog is a pet, pet excludes wild animal, \
         husky is a wild animal"
    );
    let chain: Vec<&str> = husky["chain"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s["relation"].as_str().unwrap())
        .collect();
    assert_eq!(chain, ["hierarchy", "hierarchy", "exclusion", "hierarchy"]);
    assert_eq!(husky["chain"][2]["place"]["line"], 32);
    let kinds: Vec<&str> = findings.iter().map(|f| f["kind"].as_str().unwrap()).collect();
    for kind in ["unknown-label", "strength-out-of-range", "implied-relation", "isolated-label"] {
        assert!(kinds.contains(&kind), "{kind} in {kinds:?}");
    }
    let unknown = findings.iter().find(|f| f["kind"] == "unknown-label").unwrap();
    assert!(unknown["message"].as_str().unwrap().contains("did you mean `wolf`?"));
    assert_eq!(report["root_causes"][0]["revived"], 2);
}

#[test]
fn check_prints_text_and_markdown() {
    let (_, text, _) = run(&["graph", "check", &example("animals-broken.toml")]);
    assert!(text.starts_with("Remove this relation and 2 of 2 dead labels revive:\n"), "{text}");
    assert!(text.contains("animals-broken.toml:35: error[unknown-label]"), "{text}");
    let (status, markdown, _) =
        run(&["graph", "check", &example("animals-broken.toml"), "--markdown"]);
    assert_eq!(status, 1);
    assert!(markdown.contains("## dead-label (2)"), "{markdown}");
}

#[test]
fn every_kind_of_mistake_is_found_in_one_run() {
    let (_folder, path) = file(
        "bad.toml",
        r#"labels = ["a", "b", "c", "d", "e", "a", "/product", "/product/weapon", "x", "y"]
[[hierarchy]]
parent = "a"
children = ["b", "b", "a"]
[[hierarchy]]
parent = "b"
children = ["c"]
[[hierarchy]]
parent = "c"
children = ["a"]
[[hierarchy]]
parent = "d"
children = ["e"]
[[exclusion]]
labels = ["d", "e"]
[[exclusion]]
labels = ["/product", "/product/weapon"]
[[exclusion]]
labels = ["x", "y"]
strength = { w = -1 }
[[exclusion]]
labels = ["b", "x"]
strength = { w = 1 }
[[exclusion]]
labels = ["b", "x"]
strength = { w = 2 }
[[one_of]]
name = "first"
labels = ["x", "y"]
[[one_of]]
name = "second"
labels = ["y", "e"]
strength = { q = 0.5 }
[[one_of]]
name = "third"
labels = []
"#,
    );
    let (status, report) = json(&["graph", "check", &path, "--json"]);
    assert_eq!(status, 1);
    let mut kinds: Vec<&str> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| finding["kind"].as_str().unwrap())
        .collect();
    kinds.dedup();
    for kind in [
        "duplicate-label",
        "hierarchy-cycle",
        "self-relation",
        "strength-out-of-range",
        "contradictory-strengths",
        "contradictory-relations",
        "two-one-of-groups",
        "empty-one-of",
        "soft-one-of",
        "repeated-relation",
        "name-says-is-a",
    ] {
        assert!(kinds.contains(&kind), "{kind} is not in {kinds:?}");
    }
    let findings = report["findings"].as_array().unwrap();
    let cycle = findings.iter().find(|f| f["kind"] == "hierarchy-cycle").unwrap();
    assert!(cycle["message"].as_str().unwrap().contains("is"), "{cycle}");
    assert_eq!(cycle["chain"].as_array().unwrap().len(), 3);
    assert!(findings.iter().all(|f| f["place"]["line"].is_u64()), "each has its place");
}

#[test]
fn warnings_fail_only_when_strict() {
    let (_folder, path) =
        file("g.csv", "relation,a,b\nhierarchy,a,b\nhierarchy,b,c\nhierarchy,a,c\n");
    let (status, out, _) = run(&["graph", "check", &path]);
    assert_eq!(status, 0);
    assert!(out.contains("warning[implied-relation]"), "{out}");
    assert_eq!(run(&["graph", "check", &path, "--strict"]).0, 1);
}

#[test]
fn errors_exit_with_two_and_name_file_and_line() {
    let (_folder, path) = file("g.toml", "[[hierarchy]]\nparent = \"a\"\nchilds = [\"b\"]\n");
    let (status, out, error) = run(&["graph", "check", &path]);
    assert_eq!((status, out.as_str()), (2, ""));
    assert!(error.contains("g.toml:3") && error.contains("childs"), "{error}");
    assert_eq!(run(&["graph", "check", "no-such-file.toml"]).0, 2);
    assert_eq!(run(&["graph", "sparsify", &example("animals-broken.toml")]).0, 2);
    let (status, _, error) =
        run(&["graph", "check", &example("animals.toml"), "--exclude", "siblings"]);
    assert_eq!(status, 2);
    assert!(error.contains("leave out --exclude"), "{error}");
}

#[test]
fn standard_input_and_output_work() {
    let output = phex(&["graph", "convert", "-", "-", "--format", "outline", "--to", "json"])
        .write_stdin("animal\n  dog\n  cat\n")
        .output()
        .unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["hierarchy"][0]["children"], serde_json::json!(["dog", "cat"]));
}

#[test]
fn a_closed_pipe_is_quiet() {
    let script = format!(
        "{} graph states {} --list | head -n 1",
        assert_cmd::cargo::cargo_bin!("phex").display(),
        example("animals.toml")
    );
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.status.success());
}

#[test]
fn transforms_keep_the_states_and_report_counts() {
    let folder = tempfile::tempdir().unwrap();
    let dense = folder.path().join("dense.json");
    let dense = dense.to_str().unwrap();
    let (status, counts) =
        json(&["graph", "densify", &example("animals.toml"), "--out", dense, "--json"]);
    assert_eq!(status, 0);
    assert!(counts["hierarchy"].as_u64() > Some(18));
    let count = |path: &str| json(&["graph", "states", path, "--json"]).1["count"].clone();
    assert_eq!(count(&example("animals.toml")), "136");
    assert_eq!(count(dense), "136");
    let (_, sparse, _) = run(&["graph", "sparsify", dense]);
    let (_folder, sparse) = file("sparse.toml", &sparse);
    assert_eq!(count(&sparse), "136");
}

#[test]
fn states_are_listed_and_limited() {
    let (_, out, _) = run(&["graph", "states", &example("animals.toml"), "--list"]);
    assert_eq!(out.lines().count(), 136);
    let (_, limited) =
        json(&["graph", "states", &example("animals.toml"), "--list", "--limit", "2", "--json"]);
    assert_eq!(limited["states"].as_array().unwrap().len(), 2);
}

#[test]
fn show_prints_an_outline_and_draws() {
    let folder = tempfile::tempdir().unwrap();
    let (svg, dot) = (folder.path().join("g.svg"), folder.path().join("g.dot"));
    let (status, out, _) = run(&[
        "graph",
        "show",
        &example("animals.toml"),
        "--svg",
        svg.to_str().unwrap(),
        "--dot",
        dot.to_str().unwrap(),
    ]);
    assert_eq!(status, 0);
    assert!(out.contains("├─ mammal · 6\n"), "{out}");
    assert!(fs::read_to_string(svg).unwrap().contains("antelope"));
    assert!(fs::read_to_string(dot).unwrap().starts_with("digraph"));
    let (_, counts) = json(&["graph", "show", &example("animals.toml"), "--json"]);
    assert_eq!(counts["leaves"], 10);
}

#[test]
fn imagenet_has_the_known_numbers() {
    let Some(data) = phex::testkit::data("imagenet") else { return };
    let path = |name: &str| data.join(name).to_str().unwrap().to_owned();
    let edges = path("ilsvrc2012_hierarchy_edges.tsv");
    let nodes = path("ilsvrc2012_hierarchy_nodes.tsv");
    let rule = ["--labels", &nodes, "--exclude", "no-common-descendant", "--json"];
    let with = |verb: &'static str, graph: &str| {
        let mut arguments = vec!["graph", verb, graph];
        arguments.extend(rule);
        json(&arguments)
    };
    let (_, shown) = with("show", &edges);
    assert_eq!((&shown["labels"], &shown["leaves"]), (&1860.into(), &1000.into()));
    let (status, report) = with("check", &edges);
    assert_eq!(status, 0, "no dead label");
    assert_eq!(report["errors"], 0);
    let (_, sparse) = with("sparsify", &edges);
    assert_eq!((&sparse["hierarchy"], &sparse["exclusion"]), (&1935.into(), &4707.into()));

    let (status, report) = json(&["graph", "check", &edges, "--exclude", "not-subsumed", "--json"]);
    assert_eq!(status, 1);
    let findings = report["findings"].as_array().unwrap();
    let dead: Vec<&Value> = findings.iter().filter(|f| f["kind"] == "dead-label").collect();
    assert_eq!(dead.len(), 469);
    assert!(dead.iter().all(|f| f["chain"].as_array().is_some_and(|chain| chain.len() >= 3)));

    let (nouns, synsets) = (path("wordnet3.0/data.noun"), path("imagenet_synsets.txt"));
    let (_, sparse) = json(&[
        "graph",
        "sparsify",
        &nouns,
        "--synsets",
        &synsets,
        "--exclude",
        "no-common-descendant",
        "--json",
    ]);
    assert_eq!((&sparse["hierarchy"], &sparse["exclusion"]), (&1935.into(), &4707.into()));
}

#[test]
fn what_a_reader_leaves_out_is_said() {
    let text =
        "[Term]\nid: a\n\n[Term]\nid: b\nis_a: a\n\n[Term]\nid: c\nrelationship: part_of a\n";
    let (_folder, path) = file("g.obo", text);
    let (status, out, error) = run(&["graph", "convert", &path, "-"]);
    assert_eq!(status, 0, "{error}");
    assert!(out.contains("children = [\"b\"]"), "{out}");
    assert!(error.contains("g.obo:10: 1 line with the relation `part_of` skipped"), "{error}");
    let (_, report) = json(&["graph", "check", &path, "--json"]);
    assert_eq!(report["findings"][0]["kind"], "source-note");
    let (_, out, error) = run(&["graph", "convert", &path, "-", "--relations", "is_a,part_of"]);
    assert!(out.contains("children = [\"b\", \"c\"]"), "{out}");
    assert_eq!(error, "");
}

#[test]
fn taxonomies_are_read_as_they_are() {
    let (_folder, path) = file("products.txt", "Dogs > Toys\nCats > Toys\nCats > Food\n");
    let (status, out, error) = run(&["graph", "convert", &path, "-", "--to", "parents"]);
    assert_eq!((status, error.as_str()), (0, ""));
    assert!(out.contains("Cats > Toys,Cats,Toys\n"), "{out}");
    let merged = ["graph", "convert", &path, "-", "--to", "outline", "--path-names", "whole"];
    assert_eq!(run(&merged).1, "Dogs\n  Dogs > Toys\nCats\n  Cats > Toys\n  Cats > Food\n");
    let lines: String = (0..50).map(|at| format!("line {at} of prose\n")).collect();
    let (_folder, path) = file("prose.txt", &lines);
    let (status, _, error) = run(&["graph", "show", &path]);
    assert_eq!(status, 2);
    assert!(error.contains("50 of 50 labels have no relation"), "{error}");
    assert!(error.contains("line 1: `line 0 of prose` was read as the label"), "{error}");
}
