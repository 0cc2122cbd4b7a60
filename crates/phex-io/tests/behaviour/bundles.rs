//! Bundles: what is written is read, and what is stopped on the way leaves the old or the new.
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use phex::graph::{GraphBuilder, Strength};
use phex_io::{
    Bundle, Error, Evaluation, Format, ModelCard, Tensor, TensorData, graph_to_string, read_bundle,
    read_tensors, write_bundle, write_tensors,
};
use serde_json::json;

fn bundle(step: u64) -> Bundle {
    let mut builder = GraphBuilder::new();
    builder.label("plant").hierarchy("animal", "dog", Some(Strength::U(0.5)));
    builder.exclusion("dog", "plant", None);
    let graph = builder.build().unwrap();
    let config = json!({ "step": step, "features": { "columns": [] }, "rate": 0.1 });
    let tensors = BTreeMap::from([
        ("bias".to_owned(), Tensor::f64(&[2], vec![0.1, f64::MIN_POSITIVE])),
        ("weights".to_owned(), Tensor::f32(&[2, 1, 2], vec![1.5, -0.0, f32::MAX, 1e-40])),
        ("mask".to_owned(), Tensor { shape: vec![3], data: TensorData::U8(vec![0, 1, 255]) }),
        ("ids".to_owned(), Tensor { shape: vec![], data: TensorData::I64(vec![i64::MIN]) }),
        ("none".to_owned(), Tensor::f32(&[0, 7], vec![])),
    ]);
    let card = ModelCard {
        title: "Animals".into(),
        tags: vec!["tabular \"x\"".into()],
        uses: "Telling dogs from plants.".into(),
        training: String::new(),
        evaluation: vec![Evaluation {
            data: "test".into(),
            measure: "a|b".into(),
            value: "0.2500".into(),
        }],
        limits: "No cats.".into(),
    };
    let card = card.markdown(&graph);
    Bundle { config: config.as_object().unwrap().clone(), graph, tensors, card }
}

fn step(folder: &Path) -> u64 {
    read_bundle(folder).unwrap().config["step"].as_u64().unwrap()
}

fn message(folder: &Path) -> String {
    read_bundle(folder).unwrap_err().to_string()
}

fn entries(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn what_is_written_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    let written = bundle(1);
    write_bundle(&path, &written).unwrap();
    assert_eq!(entries(&path), ["README.md", "config.json", "graph.json", "model.safetensors"]);
    assert_eq!(entries(folder.path()), ["model"]);
    let read = read_bundle(&path).unwrap();
    assert_eq!(read.config, written.config);
    assert_eq!(read.tensors, written.tensors);
    assert_eq!(read.card, written.card);
    let json = |bundle: &Bundle| graph_to_string(&bundle.graph, Format::Json).unwrap();
    assert_eq!(json(&read), json(&written));
    let config: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(path.join("config.json")).unwrap()).unwrap();
    assert_eq!((&config["format"], &config["version"]), (&json!("phex-bundle"), &json!(1)));
    // The same model is the same bytes, wherever it is written.
    let other = folder.path().join("other");
    write_bundle(&other, &written).unwrap();
    for part in entries(&path) {
        assert_eq!(fs::read(path.join(&part)).unwrap(), fs::read(other.join(&part)).unwrap());
    }
}

#[test]
fn the_card_is_markdown() {
    let expected = "---\nlibrary_name: phex\ntags:\n- phex\n- \"tabular \\\"x\\\"\"\n---\n\n\
        # Animals\n\n## Uses\n\nTelling dogs from plants.\n\n## Labels\n\n3 labels, 1 hierarchy \
        relations, 1 declared exclusions, 0 one-of groups. `graph.json` has all of them.\n\n\
        `plant`, `animal`, `dog`\n\n## Evaluation\n\n| data | measure | value |\n|---|---|---|\n\
        | test | a\\|b | 0.2500 |\n\n## Limits\n\nNo cats.\n";
    assert_eq!(bundle(1).card, expected);
}

#[test]
fn a_bundle_is_replaced_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    for number in 1..4 {
        write_bundle(&path, &bundle(number)).unwrap();
        assert_eq!(step(&path), number);
        assert_eq!(entries(folder.path()), ["model"]);
    }
    // An empty folder is as good as none.
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    write_bundle(&empty, &bundle(5)).unwrap();
    assert_eq!(step(&empty), 5);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let made = folder.path().join("made");
        fs::create_dir(&made).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&path), mode(&made));
        // A link keeps pointing at its target.
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        write_bundle(&link, &bundle(6)).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!((step(&path), step(&link)), (6, 6));
    }
}

#[test]
fn whoever_is_stopped_leaves_the_old_or_the_new() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    let aside = folder.path().join(".model.phex-old");
    let new = folder.path().join(".model.phex-new-abc");
    write_bundle(&path, &bundle(1)).unwrap();
    // Stopped while writing: half a new folder.
    fs::create_dir(&new).unwrap();
    fs::write(new.join("graph.json"), "{").unwrap();
    assert_eq!(step(&path), 1);
    fs::remove_dir_all(&new).unwrap();
    // Stopped between the two moves: the old one is aside, the new one is complete.
    write_bundle(&new, &bundle(2)).unwrap();
    fs::rename(&path, &aside).unwrap();
    assert_eq!(step(&path), 1);
    // And the next one who writes finishes the job.
    write_bundle(&path, &bundle(3)).unwrap();
    assert_eq!(step(&path), 3);
    assert_eq!(entries(folder.path()), [".model.phex-new-abc", "model"]);
    // Stopped while deleting the old one, which is no longer whole.
    fs::create_dir(&aside).unwrap();
    fs::write(aside.join("graph.json"), "{}").unwrap();
    assert_eq!(step(&path), 3);
    write_bundle(&path, &bundle(4)).unwrap();
    assert_eq!(step(&path), 4);
    assert_eq!(entries(folder.path()), [".model.phex-new-abc", "model"]);
}

#[test]
fn other_folders_are_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("thesis.txt"), "years of work").unwrap();
    let error = write_bundle(&path, &bundle(1)).unwrap_err().to_string();
    assert!(error.contains("`thesis.txt`, which is not part of a bundle"), "{error}");
    fs::remove_file(path.join("thesis.txt")).unwrap();
    fs::write(path.join("config.json"), "{\"format\": \"other\"}").unwrap();
    let error = write_bundle(&path, &bundle(1)).unwrap_err().to_string();
    assert!(error.contains("the folder is not replaced, because it is not a bundle"), "{error}");
    assert_eq!(entries(&path), ["config.json"]);
    fs::remove_file(path.join("config.json")).unwrap();
    fs::write(path.join("README.md"), "a project").unwrap();
    assert!(write_bundle(&path, &bundle(1)).is_err());
    let file = folder.path().join("file");
    fs::write(&file, "x").unwrap();
    assert!(write_bundle(&file, &bundle(1)).unwrap_err().to_string().contains("this is a file"));
    assert_eq!(entries(folder.path()), ["file", "mine"]);
    // A bundle with something else in it is not deleted either.
    let path = folder.path().join("model");
    write_bundle(&path, &bundle(1)).unwrap();
    fs::write(path.join("notes.txt"), "keep me").unwrap();
    assert!(write_bundle(&path, &bundle(2)).is_err());
    assert_eq!(fs::read_to_string(path.join("notes.txt")).unwrap(), "keep me");
    assert_eq!(step(&path), 1);
    let missing = folder.path().join("no/such/model");
    assert!(matches!(write_bundle(&missing, &bundle(1)), Err(Error::Write { .. })));
}

#[test]
fn damaged_parts_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    assert!(message(&path).contains("there is no such folder"));
    let parts = ["config.json", "graph.json", "model.safetensors"];
    for part in parts {
        write_bundle(&path, &bundle(1)).unwrap();
        fs::remove_file(path.join(part)).unwrap();
        assert!(message(&path).contains(&format!("the bundle has no `{part}`")), "{part}");
        fs::remove_dir_all(&path).unwrap();
        write_bundle(&path, &bundle(1)).unwrap();
        fs::write(path.join(part), "{\"format\"").unwrap();
        assert!(message(&path).contains(part), "{part}");
        fs::remove_dir_all(&path).unwrap();
    }
    write_bundle(&path, &bundle(1)).unwrap();
    fs::remove_file(path.join("README.md")).unwrap();
    assert_eq!(read_bundle(&path).unwrap().card, "");
    let config = |text: &str| {
        fs::write(path.join("config.json"), text).unwrap();
        message(&path)
    };
    let newer = config(r#"{"format": "phex-bundle", "version": 2, "phex": "3.1.4"}"#);
    assert!(newer.contains("the bundle has version 2"), "{newer}");
    assert!(newer.contains("use phex 3.1.4, which wrote it, or a newer one"), "{newer}");
    assert!(config(r#"{"format": "phex-bundle", "version": 0}"#).contains("`version` is not"));
    assert!(config(r#"{"format": "phex-bundle"}"#).contains("`version` is not"));
    assert!(config("[]").contains("config.json"));
    assert!(config(r#"{"architectures": ["Bert"]}"#).contains("this is not a bundle"));
    let mut taken = bundle(1);
    taken.config.insert("version".into(), json!(7));
    let error = write_bundle(&folder.path().join("x"), &taken).unwrap_err().to_string();
    assert!(error.contains("the key `version`"), "{error}");
}

#[test]
fn tensors_are_checked_and_described() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("step.safetensors");
    let tensors = bundle(1).tensors;
    let metadata: BTreeMap<String, String> =
        (0..9).map(|i| (format!("key{i}"), format!("\"{i}\n"))).collect();
    write_tensors(&path, &tensors, &metadata).unwrap();
    assert_eq!(read_tensors(&path).unwrap(), (tensors.clone(), metadata.clone()));
    let bytes = fs::read(&path).unwrap();
    write_tensors(&path, &tensors, &metadata).unwrap();
    assert_eq!(fs::read(&path).unwrap(), bytes);
    let wrong = BTreeMap::from([("w".to_owned(), Tensor::f32(&[2, 2], vec![0.0; 3]))]);
    let error = write_tensors(&path, &wrong, &BTreeMap::new()).unwrap_err().to_string();
    assert!(error.contains("the tensor `w` has 3 numbers for the shape [2, 2]"), "{error}");
    let long = BTreeMap::from([("text".to_owned(), "x".repeat(1 << 20))]);
    assert!(write_tensors(&path, &tensors, &long).unwrap_err().to_string().contains("1 MiB"));
    // What was there is still there.
    assert_eq!(fs::read(&path).unwrap(), bytes);
}
