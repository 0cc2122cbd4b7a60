//! Features under a hierarchy of labels, where most training rows are labelled only with a parent of their class.

use std::path::{Path, PathBuf};

use phex::graph::{GraphBuilder, LabelId, RelationGraph};
use phex_io::{
    DatasetOptions, Features, LabelForm, Target, TargetOptions, TargetSource, Targets, read_dataset,
};

use super::settings::{HierarchyData, Relations};
use crate::Error;
use crate::experiment::graphs::{finish, hierarchy};
use crate::harness::RandomStream;
use crate::harness::data::read_text;

/// A data set in memory.
#[derive(Debug)]
pub(crate) struct RelabelledData {
    /// All relations are hard: a hierarchy, exclusions of labels without a common descendant, exactly one leaf on.
    pub(crate) graph: RelationGraph,
    training: LeafRows,
    /// A tenth of them is for validation, the rest for the test.
    evaluation: LeafRows,
    pub(crate) about: String,
}

/// Features with the leaf of each row.
#[derive(Debug)]
struct LeafRows {
    features: Features,
    leaves: Vec<LabelId>,
}

/// A graph in which some classes stand under a wrong parent.
#[derive(Debug)]
pub(crate) struct MovedClasses {
    pub(crate) graph: RelationGraph,
    /// Of each label, whether it was moved.
    pub(crate) moved: Vec<bool>,
}

/// Features and targets of one seed.
#[derive(Debug)]
pub(crate) struct RowSample {
    pub(crate) features: Features,
    pub(crate) targets: Targets,
}

impl RelabelledData {
    /// Reads a data set of a folder, and names it. A miniature uses generated data if the data are missing.
    pub(crate) fn load(
        name: HierarchyData,
        folder: &Path,
        quick: bool,
    ) -> Result<(HierarchyData, RelabelledData), Error> {
        type Read = fn(&Path) -> Result<RelabelledData, Error>;
        let (inside, read) = match name {
            HierarchyData::Cifar100 => ("cifar100", cifar as Read),
            HierarchyData::TinyImagenet => ("tiny_imagenet", tiny_imagenet as Read),
            HierarchyData::Generated => return Ok((name, generated()?)),
        };
        let path = folder.join(inside);
        match path.is_dir() {
            true => Ok((name, read(&path)?)),
            false if quick => Ok((HierarchyData::Generated, generated()?)),
            false => Err(Error::NoData { path }),
        }
    }

    /// Training rows, a share of which is relabelled to a parent of their leaf (one of several at random). Sigmoids are
    /// also given what follows from the label.
    pub(crate) fn training(
        &self,
        rows_a_class: usize,
        relabelled: f64,
        relations: Relations,
        seed: u64,
    ) -> RowSample {
        let mut random = RandomStream::new(seed, "training");
        let mut taken = vec![0usize; self.graph.len()];
        let order = random.shuffled(self.training.leaves.len());
        let mut rows: Vec<usize> = order
            .into_iter()
            .filter(|&row| {
                let count = &mut taken[self.training.leaves[row].index()];
                *count += 1;
                rows_a_class == 0 || *count <= rows_a_class
            })
            .collect();
        // The same share of each class: the first rows in random order are relabelled.
        let mut seen = vec![0usize; self.graph.len()];
        let mut targets = Targets::new(self.graph.len());
        rows.sort_by_key(|&row| self.training.leaves[row]);
        let implied = (relations == Relations::Sigmoids).then(|| self.implications());
        for &row in &rows {
            let leaf = self.training.leaves[row];
            let count = taken[leaf.index()];
            let of_class = if rows_a_class == 0 { count } else { count.min(rows_a_class) };
            seen[leaf.index()] += 1;
            let coarse = seen[leaf.index()] as f64 <= (relabelled * of_class as f64).round();
            let parents = self.graph.topology().parents(leaf);
            let label = match parents.len() {
                0 => leaf,
                _ if !coarse => leaf,
                count => parents[random.below(count)],
            };
            match &implied {
                Some(implied) => targets.push(&implied[label.index()], false),
                None => targets.push(&[Target { label: label.0, on: true }], false),
            }
        }
        RowSample { features: self.training.pick(&rows), targets }
    }

    /// The graph with some classes under a wrong parent each. A parent keeps at least one class.
    pub(crate) fn with_wrong_parents(
        &self,
        count: usize,
        seed: u64,
    ) -> Result<MovedClasses, Error> {
        let mut random = RandomStream::new(seed, "wrong parents");
        let topology = self.graph.topology();
        let roots: Vec<LabelId> =
            self.graph.ids().filter(|&id| topology.parents(id).is_empty()).collect();
        let leaves: Vec<LabelId> = self.graph.leaves().collect();
        let mut parent_of: Vec<Option<LabelId>> =
            self.graph.ids().map(|id| topology.parents(id).first().copied()).collect();
        let mut classes_of = vec![0usize; self.graph.len()];
        parent_of.iter().flatten().for_each(|parent| classes_of[parent.index()] += 1);
        let mut moved = vec![false; self.graph.len()];
        for at in random.shuffled(leaves.len()) {
            let leaf = leaves[at];
            let Some(parent) = parent_of[leaf.index()] else { continue };
            if moved.iter().filter(|moved| **moved).count() == count {
                break;
            }
            if classes_of[parent.index()] == 1 {
                continue;
            }
            let others: Vec<LabelId> = roots.iter().copied().filter(|&id| id != parent).collect();
            if others.is_empty() {
                break;
            }
            parent_of[leaf.index()] = Some(others[random.below(others.len())]);
            classes_of[parent.index()] -= 1;
            moved[leaf.index()] = true;
        }
        let name = |id: LabelId| self.graph.labels()[id.index()].name.as_str();
        let mut builder = GraphBuilder::new();
        for id in self.graph.ids() {
            builder.label(name(id));
        }
        for id in self.graph.ids() {
            if let Some(parent) = parent_of[id.index()] {
                builder.hierarchy(name(parent), name(id), None);
            }
        }
        Ok(MovedClasses { graph: finish(builder)?, moved })
    }

    /// The validation and the test rows of a seed.
    pub(crate) fn evaluation(&self, seed: u64) -> [RowSample; 2] {
        let order = RandomStream::new(seed, "evaluation").shuffled(self.evaluation.leaves.len());
        let (validation, test) = order.split_at(order.len() / 10);
        [validation, test].map(|rows| {
            let mut targets = Targets::new(self.graph.len());
            for &row in rows {
                targets.push(&[Target { label: self.evaluation.leaves[row].0, on: true }], false);
            }
            RowSample { features: self.evaluation.pick(rows), targets }
        })
    }

    /// What hard relations imply about all other labels if a label is on, for each label. O(n²).
    fn implications(&self) -> Vec<Vec<Target>> {
        let topology = self.graph.topology();
        let leaves: Vec<LabelId> = self.graph.leaves().collect();
        let below: Vec<Vec<bool>> = self
            .graph
            .ids()
            .map(|id| {
                leaves.iter().map(|&leaf| leaf == id || topology.subsumes(id, leaf)).collect()
            })
            .collect();
        let meet = |a: LabelId, b: LabelId| {
            below[a.index()].iter().zip(&below[b.index()]).any(|(a, b)| *a && *b)
        };
        let of = |label: LabelId| {
            self.graph.ids().filter_map(move |other| {
                let on = other == label || topology.subsumes(other, label);
                let is_implied = on || !meet(label, other);
                is_implied.then_some(Target { label: other.0, on })
            })
        };
        self.graph.ids().map(|label| of(label).collect()).collect()
    }
}

impl LeafRows {
    fn pick(&self, rows: &[usize]) -> Features {
        let mut values = Vec::with_capacity(rows.len() * self.features.columns);
        rows.iter().for_each(|&row| values.extend_from_slice(self.features.row(row)));
        let names = self.features.names.clone();
        Features { names, rows: rows.len(), columns: self.features.columns, values }
    }
}

/// Reads features and the numbers of their leaves from npy files.
fn read_rows(
    features: &Path,
    labels: PathBuf,
    names: &[String],
    graph: &RelationGraph,
) -> Result<LeafRows, Error> {
    let wrong = |path: &Path, message: &str| Error::WrongData {
        path: path.to_owned(),
        message: String::from(message),
    };
    let source = TargetSource::Files { paths: vec![labels.clone()], column: None };
    let mut targets = TargetOptions::new(source);
    targets.form = LabelForm::Id;
    targets.names = Some(names.to_vec());
    let options = DatasetOptions { targets: Some(targets), ..DatasetOptions::default() };
    let set = read_dataset(&[features.to_owned()], &options, Some(graph))?;
    let targets = set.targets.ok_or_else(|| wrong(&labels, "there are no labels"))?;
    let leaf = |row: usize| targets.row(row).listed.first().map(|entry| LabelId(entry.label));
    let leaves: Option<Vec<LabelId>> = (0..targets.rows()).map(leaf).collect();
    let leaves = leaves.ok_or_else(|| wrong(&labels, "a row has no label"))?;
    Ok(LeafRows { features: set.features, leaves })
}

/// Superclasses above classes, and the names of the classes by number.
fn cifar_labels(folder: &Path) -> Result<(RelationGraph, Vec<String>), Error> {
    let list = folder.join("labels.txt");
    let mut builder = GraphBuilder::new();
    let mut names = Vec::new();
    for (number, line) in read_text(&list)?.lines().enumerate() {
        if !line.starts_with(|first: char| first.is_ascii_digit()) {
            continue;
        }
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, fine, _, coarse] = fields[..] else {
            let message = format!("line {}: not fine id, fine, coarse id, coarse", number + 1);
            return Err(Error::WrongData { path: list, message });
        };
        names.push(String::from(fine));
        // A class and a superclass can have the same name.
        builder.hierarchy(&format!("{coarse}*"), fine, None);
    }
    if names.is_empty() {
        let message =
            String::from("no line has a fine id, a fine name, a coarse id and a coarse name");
        return Err(Error::WrongData { path: list, message });
    }
    Ok((finish(builder)?, names))
}

pub(crate) fn cifar_graph(folder: &Path) -> Result<RelationGraph, Error> {
    Ok(cifar_labels(folder)?.0)
}

fn cifar(folder: &Path) -> Result<RelabelledData, Error> {
    let (graph, names) = cifar_labels(folder)?;
    let rows = |part: &str| {
        let features = folder.join(format!("features_effnet_lite0_pca256_f16_{part}.npy"));
        let labels = folder.join(format!("labels_fine_{part}_uint8.npy"));
        read_rows(&features, labels, &names, &graph)
    };
    let (training, evaluation) = (rows("train")?, rows("test")?);
    let about = "CIFAR-100: features of EfficientNet-Lite0 (ImageNet weights) at 128 px, 256 principal components; 100 classes under 20 superclasses.";
    Ok(RelabelledData { graph, training, evaluation, about: String::from(about) })
}

fn tiny_imagenet(folder: &Path) -> Result<RelabelledData, Error> {
    let graph = hierarchy(&folder.join("hierarchy_edges.tsv"))?;
    let names: Vec<String> =
        read_text(&folder.join("wnids_sorted.txt"))?.lines().map(String::from).collect();
    let rows = |part: &str| {
        let features = folder.join(format!("features_effnet_lite0_pca256_f16_{part}.npy"));
        read_rows(&features, folder.join(format!("labels_{part}_uint8.npy")), &names, &graph)
    };
    let (training, evaluation) = (rows("train")?, rows("val")?);
    let about = "Tiny-ImageNet-200: features of EfficientNet-Lite0 (ImageNet weights: it has seen the labels of the leaves) at 128 px, 256 principal components; 200 leaves and 343 labels above them from WordNet.";
    Ok(RelabelledData { graph, training, evaluation, about: String::from(about) })
}

/// Five kinds of four classes each, as clouds in ten dimensions: classes of a kind are near each other.
fn generated() -> Result<RelabelledData, Error> {
    const DIMENSIONS: usize = 10;
    let mut builder = GraphBuilder::new();
    let mut random = RandomStream::new(0, "generated");
    let mut centres = Vec::new();
    for kind in 0..5 {
        let kind_centre: Vec<f64> = (0..DIMENSIONS).map(|_| 2.0 * random.normal()).collect();
        for class in 0..4 {
            builder.hierarchy(&format!("kind {kind}"), &format!("class {kind}.{class}"), None);
            centres.push(kind_centre.iter().map(|at| at + random.normal()).collect::<Vec<f64>>());
        }
    }
    let graph = finish(builder)?;
    let leaves: Vec<LabelId> = graph.leaves().collect();
    let names: Vec<String> = (0..DIMENSIONS).map(|at| format!("x{at}")).collect();
    let mut rows = |a_class: usize| {
        let (mut values, mut of_row) = (Vec::new(), Vec::new());
        for (centre, &leaf) in centres.iter().zip(&leaves) {
            for _ in 0..a_class {
                values.extend(centre.iter().map(|at| (at + random.normal()) as f32));
                of_row.push(leaf);
            }
        }
        let rows = of_row.len();
        let features = Features { names: names.clone(), rows, columns: DIMENSIONS, values };
        LeafRows { features, leaves: of_row }
    };
    let (training, evaluation) = (rows(100), rows(50));
    let about = String::from("Generated data: 20 classes of 5 kinds, clouds in 10 dimensions.");
    Ok(RelabelledData { graph, training, evaluation, about })
}

#[cfg(test)]
mod tests {
    use phex::infer::{Block, Engine, Evidence, Options, Want};
    use phex::model::Model;

    use super::*;

    #[test]
    fn the_same_share_of_each_class_is_relabelled_to_its_parent() {
        let data = generated().unwrap();
        let sample = data.training(50, 0.9, Relations::Hard, 3);
        assert_eq!(sample.features.rows, 20 * 50);
        let leaves: Vec<LabelId> = data.graph.leaves().collect();
        let mut counts = vec![0; data.graph.len()];
        for row in 0..sample.targets.rows() {
            counts[sample.targets.row(row).listed[0].label as usize] += 1;
        }
        for id in data.graph.ids() {
            let expected = if leaves.contains(&id) { 5 } else { 4 * 45 };
            assert_eq!(counts[id.index()], expected);
        }
        let [validation, test] = data.evaluation(3);
        assert_eq!((validation.features.rows, test.features.rows), (100, 900));
    }

    /// A label is implied if its probability is 1 or 0 once the other label is on.
    #[test]
    fn implications_are_those_of_the_hard_model() {
        let data = generated().unwrap();
        let n = data.graph.len();
        let engine =
            Engine::compile(Model::new(&data.graph).unwrap(), &Options::default()).unwrap();
        for (label, implied) in data.implications().iter().enumerate() {
            let mut evidence = vec![Evidence::Unknown; n];
            evidence[label] = Evidence::On;
            let scores = vec![0.0; n];
            let block = Block::new(n, &scores).with_evidence(&evidence);
            let posterior = engine.run(&block, Want::default()).unwrap();
            for (other, &p) in posterior.row(0).iter().enumerate() {
                let told = implied.iter().find(|entry| entry.label as usize == other);
                let certain = (p > 1.0 - 1e-9).then_some(true).or((p < 1e-9).then_some(false));
                assert_eq!(told.map(|entry| entry.on), certain, "{label} {other} {p}");
            }
        }
    }
}
