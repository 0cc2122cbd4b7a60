//! Photos whose labels overlap: classifiers of all labels, with and without relations.

use anyhow::Context as _;
use phex::graph::{LabelId, RelationGraph};
use phex::infer::{Evidence, Options};
use phex::learn::Loss;
use phex_io::{Dataset, Target};
use phex_train::{Config, ObjectiveConfig, TrainedModel, TrainingChoices};
use rayon::prelude::*;

use super::measure::{DRAWS, Judged, MeasuredMethod, TOLERANCE, judge, train};
use super::world::{RowMaker, normals, random, sum};
use crate::data::targets;

/// The graph as a file.
pub(super) const GRAPH: &str = include_str!("../../examples/photos.toml");

pub(super) const TRAINING: usize = 200;
pub(super) const TEST: usize = 2000;
/// How probable it is that an animal is a pet if it can be one, and that it is indoors if it can be.
const PET: f64 = 0.6;
const INDOORS: f64 = 0.6;
/// How far apart kinds, animals, pets and places are, in deviations of the noise.
const SCALES: [f64; 4] = [0.45, 0.45, 0.25, 0.3];
/// The animals that the printed photo compares, beside kinds and attributes.
const COMPARED: usize = 2;

/// Labels, relations, and where the animals are.
pub(super) struct PhotoWorld {
    pub(super) graph: RelationGraph,
    pub(super) animals: Vec<LabelId>,
    pub(super) kinds: Vec<LabelId>,
    /// Of each animal.
    centres: Vec<Vec<f64>>,
    of_pet: Vec<f64>,
    of_indoors: Vec<f64>,
}

/// The comparison of methods.
pub(super) struct PhotoTour {
    pub(super) world: PhotoWorld,
    /// Sigmoids, the same corrected by the relations, and trained with them.
    pub(super) methods: Vec<MeasuredMethod>,
    pub(super) shown: ShownPhoto,
}

/// A test photo about which the sigmoids contradict themselves.
pub(super) struct ShownPhoto {
    /// The names of the labels that are on.
    pub(super) truth: Vec<String>,
    /// Some labels with their probabilities by sigmoids and with relations.
    pub(super) labels: Vec<(String, [f32; 2])>,
}

impl PhotoWorld {
    pub(super) fn new() -> anyhow::Result<PhotoWorld> {
        let graph = super::read(GRAPH, "photos.toml")?.build()?;
        let members = |name: &str| -> anyhow::Result<Vec<LabelId>> {
            let mut groups = graph.one_of().iter();
            let group = groups.find(|group| group.name == name).context("a group is missing")?;
            Ok(group.labels.clone())
        };
        let (animals, kinds) = (members("animal")?, members("kind")?);
        let mut random = random(2);
        let of_kind: Vec<Vec<f64>> = kinds.iter().map(|_| normals(&mut random)).collect();
        let centre = |&animal: &LabelId| {
            let own = normals(&mut random);
            let kind = kinds.iter().position(|&kind| graph.topology().subsumes(kind, animal));
            let kind = kind.map_or(&own, |kind| &of_kind[kind]);
            sum(&[(SCALES[0], kind), (SCALES[1], &own)])
        };
        let centres = animals.iter().map(centre).collect();
        let (of_pet, of_indoors) = (normals(&mut random), normals(&mut random));
        Ok(PhotoWorld { graph, animals, kinds, centres, of_pet, of_indoors })
    }

    fn id(&self, name: &str) -> anyhow::Result<LabelId> {
        self.graph.id(name).with_context(|| format!("`{name}` is not a label of the demo"))
    }

    /// Photos of one animal after another, of which everything is known.
    pub(super) fn photos(&self, rows: usize, seed: u64) -> anyhow::Result<Dataset> {
        let (pet, indoors, outdoors) = (self.id("pet")?, self.id("indoors")?, self.id("outdoors")?);
        let topology = self.graph.topology();
        let mut maker = RowMaker::new(&self.graph, seed);
        for row in 0..rows {
            let at = row % self.animals.len();
            let animal = self.animals[at];
            let is_above = |label: &LabelId| *label == animal || topology.subsumes(*label, animal);
            let mut on: Vec<LabelId> = self.graph.ids().filter(is_above).collect();
            let is_pet = self.can_be(animal, pet) && maker.chance(PET);
            let is_indoors = !on.contains(&outdoors) && maker.chance(INDOORS);
            on.extend(is_pet.then_some(pet));
            match is_indoors {
                true => on.push(indoors),
                false if !on.contains(&outdoors) => on.push(outdoors),
                false => {}
            }
            let part = |is_on: bool, scale: f64| if is_on { scale } else { -scale };
            let centre = sum(&[
                (1.0, &self.centres[at]),
                (part(is_pet, SCALES[2]), &self.of_pet),
                (part(is_indoors, SCALES[3]), &self.of_indoors),
            ]);
            let labels: Vec<Target> =
                on.iter().map(|label| Target { label: label.0, on: true }).collect();
            maker.push(&centre, &labels, true);
        }
        Ok(maker.finish())
    }

    fn can_be(&self, animal: LabelId, other: LabelId) -> bool {
        let mut groups = self.graph.exclusions().iter();
        !groups.any(|group| group.labels.contains(&animal) && group.labels.contains(&other))
    }
}

impl PhotoTour {
    /// Trains and measures.
    pub(super) fn take() -> anyhow::Result<PhotoTour> {
        let world = PhotoWorld::new()?;
        let test = world.photos(TEST, 300)?;
        let judge = |p: Vec<f32>| judge(&world.graph, &world.animals, &test, p);
        let draw = |seed: u64| -> anyhow::Result<[Judged; 3]> {
            let rows = world.photos(TRAINING, 100 + seed)?;
            let train = |objective: Option<ObjectiveConfig>| {
                let choices =
                    TrainingChoices { objective, seed: Some(seed), ..TrainingChoices::default() };
                Ok::<TrainedModel, anyhow::Error>(train(&world.graph, &rows, choices)?.model)
            };
            let predict = |model: &TrainedModel| {
                judge(model.predictor(&Options::default())?.predict(&test.features)?)
            };
            let sigmoids = train(Some(ObjectiveConfig::Independent))?;
            let objective = ObjectiveConfig::Relations { loss: Loss::Joint };
            let corrected = TrainedModel {
                config: Config { objective, ..sigmoids.config.clone() },
                ..sigmoids.clone()
            };
            Ok([predict(&sigmoids)?, predict(&corrected)?, predict(&train(None)?)?])
        };
        let draws: anyhow::Result<Vec<[Judged; 3]>> =
            (0..DRAWS).into_par_iter().map(draw).collect();
        let mut columns: [Vec<Judged>; 3] = Default::default();
        for draw in draws? {
            columns.iter_mut().zip(draw).for_each(|(column, judged)| column.push(judged));
        }
        let names = [
            "a sigmoid for each label",
            "the same, corrected by relations (phex infer)",
            "trained with relations (phex train)",
        ];
        let methods = names.into_iter().zip(columns);
        let methods: Option<Vec<MeasuredMethod>> =
            methods.map(|(name, draws)| MeasuredMethod::of_draws(name, draws)).collect();
        let methods = methods.context("nothing was trained")?;
        let shown = shown(&world, &test, &methods)?;
        Ok(PhotoTour { world, methods, shown })
    }
}

/// The first test photo of a pet indoors about which sigmoids contradict themselves within two digits, and are
/// wrong where the corrected probabilities are right.
fn shown(
    world: &PhotoWorld,
    test: &Dataset,
    methods: &[MeasuredMethod],
) -> anyhow::Result<ShownPhoto> {
    let labels = world.graph.len();
    let [sigmoids, corrected, ..] = methods else { anyhow::bail!("nothing was trained") };
    let of = |method: &MeasuredMethod, row: usize| {
        method.first.probabilities[row * labels..][..labels].to_vec()
    };
    let best = |p: &[f32]| {
        let mut animals = world.animals.clone();
        animals.sort_by(|a, b| p[b.index()].total_cmp(&p[a.index()]));
        animals
    };
    let targets = targets(test)?;
    let (pet, indoors) = (world.id("pet")?, world.id("indoors")?);
    let tells = |row: &usize| {
        let (truth, before, after) =
            (targets.evidence(*row), of(sigmoids, *row), of(corrected, *row));
        let on = |label: LabelId| truth[label.index()] == Evidence::On;
        let sure = before.iter().filter(|p| **p > 0.5).count();
        on(pet)
            && on(indoors)
            && !on(best(&before)[0])
            && on(best(&after)[0])
            && sure > 2
            && excess(world, &before) > 10.0 * TOLERANCE as f32
    };
    let row = (0..test.rows()).find(tells).unwrap_or(0);
    let (before, after) = (of(sigmoids, row), of(corrected, row));
    let truth = targets.evidence(row);
    let name = |label: LabelId| world.graph.label(label).name.clone();
    let mut compared = best(&before)[..COMPARED].to_vec();
    if let Some(animal) = best(&after).first().filter(|animal| !compared.contains(animal)) {
        compared.push(*animal);
    }
    let attributes = ["furry", "pet", "indoors", "outdoors"].map(|name| world.id(name));
    let attributes: anyhow::Result<Vec<LabelId>> = attributes.into_iter().collect();
    let chosen = world.kinds.iter().copied().chain(compared).chain(attributes?);
    Ok(ShownPhoto {
        truth: world
            .graph
            .ids()
            .filter(|label| truth[label.index()] == Evidence::On)
            .map(name)
            .collect(),
        labels: chosen
            .map(|label| (name(label), [before[label.index()], after[label.index()]]))
            .collect(),
    })
}

/// By how much a label is more probable than one above it, at most.
fn excess(world: &PhotoWorld, p: &[f32]) -> f32 {
    let edges = world.graph.hierarchy().iter();
    edges.map(|edge| p[edge.child.index()] - p[edge.parent.index()]).fold(0.0, f32::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn photos_respect_the_relations_and_labels_overlap() {
        let world = PhotoWorld::new().unwrap();
        let rows = world.photos(600, 5).unwrap();
        let known = targets(&rows).unwrap();
        let on = |row: usize| known.evidence(row).into_iter().map(|known| known == Evidence::On);
        let truth: Vec<f32> =
            (0..600).flat_map(|row| on(row).map(f32::from).collect::<Vec<f32>>()).collect();
        let judged = judge(&world.graph, &world.animals, &rows, truth).unwrap();
        let violations = &judged.evaluation.probability_violations;
        assert_eq!((violations.rows, violations.violating_rows), (600, 0));
        let most = (0..600).map(|row| on(row).filter(|on| *on).count()).max();
        assert_eq!(most, Some(5), "a dog is a mammal and furry, may be a pet, and is somewhere");
    }
}
