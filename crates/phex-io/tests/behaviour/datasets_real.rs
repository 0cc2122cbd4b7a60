//! The hierarchical multi-label sets and the features of CIFAR-100, counted by hand in the raw
//! text and bytes. Skipped where the data is not there.
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::common::names;
use phex::graph::GraphBuilder;
use phex::testkit::data;
use phex_io::{
    Dataset, DatasetOptions, ReadOptions, TargetOptions, TargetSource, Unlisted, graph_of_arff,
    read_dataset, read_graph,
};

/// What the raw text of an ARFF file says.
struct Raw {
    attributes: Vec<String>,
    entries: Vec<String>,
    rows: Vec<String>,
}

fn raw(path: &Path) -> Raw {
    let text = std::fs::read_to_string(path).unwrap();
    let lower = text.to_lowercase();
    let (header, body) = text.split_at(lower.find("@data").unwrap());
    let attributes: Vec<String> = header
        .lines()
        .filter(|line| line.to_lowercase().starts_with("@attribute"))
        .map(str::to_owned)
        .collect();
    let classes = attributes.last().unwrap().split_whitespace().nth(3).unwrap();
    let rows = body.lines().skip(1).map(str::trim).filter(|line| !line.is_empty());
    Raw {
        entries: classes.split(',').map(str::to_owned).collect(),
        rows: rows.map(str::to_owned).collect(),
        attributes,
    }
}

/// All classes that are on with one: found by paths, or by walking edges up.
fn closed(class: &str, raw: &Raw, dag: bool) -> BTreeSet<String> {
    let mut all = BTreeSet::from([class.to_owned()]);
    if !dag {
        let cuts = class.match_indices('/').map(|(at, _)| class[..at].to_owned());
        all.extend(cuts);
        return all;
    }
    loop {
        let above = raw.entries.iter().filter_map(|edge| {
            let (parent, child) = edge.split_once('/').unwrap();
            (all.contains(child) && parent != "root").then(|| parent.to_owned())
        });
        let more: BTreeSet<String> = above.filter(|class| !all.contains(class)).collect();
        if more.is_empty() {
            return all;
        }
        all.extend(more);
    }
}

fn read(paths: &[PathBuf]) -> (phex::graph::RelationGraph, Dataset) {
    let graph = graph_of_arff(&paths[0]).unwrap().build().unwrap();
    let source = TargetOptions::new(TargetSource::Hierarchical);
    let targets = Some(TargetOptions { unlisted: Unlisted::Off, ..source });
    let options = DatasetOptions { targets, ..DatasetOptions::default() };
    let data = read_dataset(paths, &options, Some(&graph)).unwrap();
    (graph, data)
}

/// Compares everything with the raw text.
fn check(path: &Path, dag: bool) {
    let raw = raw(path);
    let (graph, data) = read(&[path.to_owned()]);
    let targets = data.targets.as_ref().unwrap();
    assert_eq!((data.rows(), targets.rows()), (raw.rows.len(), raw.rows.len()), "{path:?}");
    assert_eq!(data.schema.columns.len(), raw.attributes.len() - 1, "{path:?}");
    let found: BTreeSet<&str> = graph.labels().iter().map(|label| label.name.as_str()).collect();
    assert_eq!(found.len(), graph.len());
    let expected: BTreeSet<&str> = if dag {
        raw.entries.iter().flat_map(|edge| edge.split('/')).filter(|&n| n != "root").collect()
    } else {
        raw.entries.iter().map(String::as_str).collect()
    };
    assert_eq!(found, expected, "{path:?}");
    let edges: BTreeSet<&String> = if dag {
        raw.entries.iter().filter(|edge| !edge.starts_with("root/")).collect()
    } else {
        raw.entries.iter().filter(|path| path.contains('/')).collect()
    };
    assert_eq!(graph.hierarchy().len(), edges.len(), "{path:?}");
    let mut memory = BTreeMap::new();
    for (row, line) in raw.rows.iter().enumerate() {
        let mut on = BTreeSet::new();
        for class in line.rsplit(',').next().unwrap().split('@') {
            let all = memory.entry(class.to_owned()).or_insert_with(|| closed(class, &raw, dag));
            on.extend(all.iter().cloned());
        }
        let row_targets = targets.row(row);
        let listed: BTreeSet<String> = row_targets
            .listed
            .iter()
            .map(|target| graph.labels()[target.label as usize].name.clone())
            .collect();
        assert_eq!(listed, on, "{path:?} row {row}");
        assert!(row_targets.others_off && row_targets.listed.iter().all(|target| target.on));
    }
    // Numbers stand where they do in the text: attributes before the first nominal one.
    let numbers =
        raw.attributes.iter().position(|a| !a.to_lowercase().contains("numeric")).unwrap();
    for row in [0, data.rows() / 2, data.rows() - 1] {
        for (cell, value) in raw.rows[row].split(',').take(numbers).zip(data.features.row(row)) {
            match cell {
                "?" => assert!(value.is_nan()),
                cell => assert_eq!(cell.parse::<f32>().unwrap(), *value),
            }
        }
    }
}

#[test]
fn trees() {
    let Some(folder) = data("hmc") else { return };
    for name in ["Diatoms_train.arff", "Diatoms_test.arff", "ImCLEF07A_Train.arff"] {
        check(&folder.join(name), false);
    }
    for set in ["cellcycle_FUN", "seq_FUN", "spo_FUN"] {
        check(&folder.join(format!("{set}/{set}.train.arff")), false);
    }
}

#[test]
fn graphs_of_genes() {
    let Some(folder) = data("hmc") else { return };
    for set in ["cellcycle_GO", "seq_GO"] {
        check(&folder.join(format!("{set}/{set}.valid.arff")), true);
    }
}

#[test]
fn known_counts() {
    let Some(folder) = data("hmc") else { return };
    let path = |part: &str| folder.join(format!("cellcycle_FUN/cellcycle_FUN.{part}.arff"));
    let (graph, data) = read(&[path("train"), path("valid")]);
    assert_eq!((data.rows(), data.features.columns, graph.len()), (1628 + 848, 77, 499));
    assert_eq!(data.features.names[0], "cln3-1");
    let (_, mut first) = read(&[path("train")]);
    let (_, second) = read(&[path("valid")]);
    first.append(second).unwrap();
    assert_eq!(first.targets, data.targets);
    let bits =
        |data: &Dataset| data.features.values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&first), bits(&data));

    // The published numbers: nominal features count by category, and 4122 terms without the roots.
    let (_, data) = read(&[folder.join("seq_FUN/seq_FUN.train.arff")]);
    assert_eq!((data.schema.columns.len(), data.features.columns), (478, 529));
    let go = folder.join("cellcycle_GO/cellcycle_GO.train.arff");
    let graph = read_graph(&go, &ReadOptions::default()).unwrap().build().unwrap();
    assert_eq!((graph.len(), graph.roots().count()), (4125, 3));
}

#[test]
fn features_of_images() {
    let Some(folder) = data("cifar100") else { return };
    let table = std::fs::read_to_string(folder.join("labels.txt")).unwrap();
    let cells: Vec<Vec<&str>> = table.lines().map(|line| line.split('\t').collect()).collect();
    let mut builder = GraphBuilder::new();
    for row in &cells {
        builder.hierarchy(row[3], row[1], None);
    }
    let graph = builder.build().unwrap();
    assert_eq!(graph.len(), 120);
    let fine: Vec<&str> = cells.iter().map(|row| row[1]).collect();
    let labels = folder.join("labels_fine_test_uint8.npy");
    let source = TargetSource::Files { paths: vec![labels.clone()], column: None };
    let source = TargetOptions::new(source);
    let targets = Some(TargetOptions { names: Some(names(&fine)), ancestors: true, ..source });
    let options = DatasetOptions { targets, ..DatasetOptions::default() };
    let path = folder.join("features_effnet_lite0_pca256_f16_test.npy");
    let data = read_dataset(std::slice::from_ref(&path), &options, Some(&graph)).unwrap();
    assert_eq!((data.rows(), data.features.columns), (10_000, 256));
    let targets = data.targets.unwrap();
    let ids = std::fs::read(labels).unwrap();
    for (row, &id) in ids[ids.len() - 10_000..].iter().enumerate() {
        let on: BTreeSet<&str> = targets
            .row(row)
            .listed
            .iter()
            .map(|target| graph.labels()[target.label as usize].name.as_str())
            .collect();
        let row = &cells[usize::from(id)];
        assert_eq!(on, BTreeSet::from([row[1], row[3]]));
    }
    // Normal halves by the definition: (1 + fraction / 1024) * 2^(exponent - 15).
    let bytes = std::fs::read(path).unwrap();
    let halves = bytes[bytes.len() - 10_000 * 256 * 2..].chunks_exact(2);
    for (half, &value) in halves.zip(&data.features.values) {
        let bits = u16::from_le_bytes([half[0], half[1]]);
        let (exponent, fraction) = (i32::from(bits >> 10 & 31), f32::from(bits & 1023));
        if exponent > 0 {
            let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
            assert_eq!(value, sign * (1.0 + fraction / 1024.0) * 2f32.powi(exponent - 15));
        }
    }
}
