//! What a relabelled experiment compares.

use phex::graph::Strength;
use phex::infer::{GroupForm, MessageOptions, Method, Options};
use serde::{Deserialize, Serialize};

use crate::Error;

/// The settings of the file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct RelabelledSettings {
    /// What it is called in reports.
    pub(super) title: String,
    /// Which data set.
    pub(super) data: DataName,
    /// Training rows of each class; 0 takes all.
    #[serde(default)]
    pub(super) rows_a_class: usize,
    /// The parts of the training rows that get the label of a parent.
    pub(super) relabelled: Vec<f64>,
    /// The strengths u of soft relations.
    pub(super) strengths: Vec<f64>,
    /// Runs of each method.
    pub(super) seeds: u64,
    /// Passes over the training rows; the second stage of a curriculum has half as many.
    pub(super) epochs: usize,
    /// Rows of a step.
    pub(super) batch: usize,
    /// The trials of every method: the learning rate that is best on the validation rows of the first
    /// seed is taken for all.
    pub(super) learning_rates: Vec<f64>,
    /// What is compared.
    pub(super) methods: Vec<MethodSettings>,
    /// The group of methods among which the recipe chooses on validation rows.
    pub(super) recipe: Option<String>,
    /// The group of the paper's curriculum, and that of plain training from random weights: what the
    /// recipe is compared with.
    pub(super) staged: Option<String>,
    /// See `staged`.
    pub(super) random: Option<String>,
}

/// A data set with a hierarchy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum DataName {
    Cifar100,
    TinyImagenet,
    Generated,
}

/// A method; one of soft relations is a curve over the strengths.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct MethodSettings {
    /// What it is called in tables; methods of one group are shown together.
    pub(super) name: String,
    /// Where it is shown: methods of the same group are compared with each other.
    pub(super) group: String,
    pub(super) relations: Relations,
    #[serde(default)]
    pub(super) inference: Inference,
    /// The deviation of the random weights of the last layer at the start; 0 starts at zero.
    #[serde(default)]
    pub(super) start: f64,
    /// Hidden layers.
    #[serde(default)]
    pub(super) hidden: Vec<usize>,
    #[serde(default)]
    pub(super) curriculum: Curriculum,
    #[serde(default)]
    pub(super) schedule: JobSchedule,
    /// Of the parts of the experiment these alone.
    pub(super) relabelled: Option<Vec<f64>>,
    /// Of the strengths of the experiment these alone.
    pub(super) strengths: Option<Vec<f64>>,
    /// Other learning rates than those of the experiment, as many of them: what suits random weights does
    /// not suit zero ones.
    pub(super) learning_rates: Option<Vec<f64>>,
    /// Another number of runs than that of the experiment.
    pub(super) seeds: Option<u64>,
}

/// What is known of the labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Relations {
    /// HEX.
    Hard,
    /// pHEX, a constant strength.
    Soft,
    /// pHEX, a strength for hierarchy and one for exclusion, learned from u = 0.5.
    Learned,
    /// Softmax over the leaves, trained on rows that have one.
    SoftmaxFine,
    /// Softmax over the leaves, a coarse label the sum of its leaves.
    SoftmaxSums,
    /// A sigmoid for each label, told all that its observed label implies.
    Sigmoids,
}

/// How expectations are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Inference {
    /// The cheapest exact engine.
    #[default]
    Exact,
    /// Loopy belief propagation over pairs, as in the paper: in place, at most 30 iterations.
    Lbp,
}

impl Inference {
    pub(crate) fn options(self, seed: u64) -> Options {
        match self {
            Inference::Exact => Options { seed, method: Method::Exact, ..Options::default() },
            Inference::Lbp => Options {
                seed,
                method: Method::Lbp,
                messages: MessageOptions {
                    groups: GroupForm::Pairs,
                    iterations: 30,
                    tolerance: 1e-3,
                    ..MessageOptions::default()
                },
                ..Options::default()
            },
        }
    }
}

/// In which order things are learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Curriculum {
    /// All rows from the start.
    #[default]
    Plain,
    /// First the rows that have a leaf, as many steps as one pass over all rows takes.
    WarmUp,
    /// First hard relations by exact inference, then these: the paper's. Hard relations continued are
    /// its control.
    HardFirst,
    /// First these, then hard relations.
    HardLast,
}

/// How the learning rate changes over a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum JobSchedule {
    /// Along half a cosine to zero.
    #[default]
    Cosine,
    /// It does not.
    Constant,
}

impl JobSchedule {
    fn is_cosine(&self) -> bool {
        *self == JobSchedule::Cosine
    }
}

/// One run: everything that decides what it answers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Job {
    pub(crate) data: DataName,
    pub(crate) rows_a_class: usize,
    pub(crate) relabelled: f64,
    pub(crate) relations: Relations,
    /// The strength u of soft relations, or the one at which learning begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) u: Option<f64>,
    pub(crate) inference: Inference,
    pub(crate) start: f64,
    pub(crate) hidden: Vec<usize>,
    pub(crate) curriculum: Curriculum,
    #[serde(skip_serializing_if = "JobSchedule::is_cosine")]
    pub(crate) schedule: JobSchedule,
    pub(crate) epochs: usize,
    pub(crate) batch: usize,
    pub(crate) learning_rate: f64,
    pub(crate) seed: u64,
}

impl Job {
    pub(crate) fn strength(&self) -> Strength {
        self.u.map_or(Strength::Hard, Strength::U)
    }
}

/// A method at one strength on one part of relabelled rows: tuned and run as one.
#[derive(Debug, Clone)]
pub(super) struct Cell {
    /// The method, by its place in the settings.
    pub(super) method: usize,
    pub(super) relabelled: f64,
    pub(super) u: Option<f64>,
    pub(super) seeds: u64,
    /// The learning rates that are tried.
    pub(super) rates: Vec<f64>,
    /// Of the first seed and learning rate.
    pub(super) job: Job,
}

fn is_rate(rate: f64) -> bool {
    rate > 0.0 && rate.is_finite()
}

impl RelabelledSettings {
    /// Refuses settings that leave nothing to run, or are out of range.
    pub(super) fn check(&self) -> Result<(), Error> {
        let message = if self.methods.is_empty() {
            "`methods` is empty"
        } else if self.learning_rates.is_empty() || self.seeds == 0 || self.epochs == 0 {
            "`learning-rates`, `seeds` and `epochs` need one or more"
        } else if self
            .methods
            .iter()
            .any(|method| self.rates(method).len() != self.learning_rates.len())
        {
            "the `learning-rates` of a method are as many as those of the experiment: every method has the same trials"
        } else if self
            .methods
            .iter()
            .flat_map(|method| self.rates(method))
            .any(|&rate| !is_rate(rate))
        {
            "`learning-rates` are above 0"
        } else if !self.relabelled.iter().all(|part| (0.0..1.0).contains(part)) {
            "`relabelled` are parts from 0 to below 1"
        } else if self.relabelled.iter().any(|&part| self.leaves_no_row(part)) {
            "`rows-a-class` is so small that a part of `relabelled` leaves no row with its class: raise it"
        } else {
            return Ok(());
        };
        Err(Error::Specification { name: self.title.clone(), message: String::from(message) })
    }

    fn rates<'a>(&'a self, method: &'a MethodSettings) -> &'a [f64] {
        method.learning_rates.as_ref().unwrap_or(&self.learning_rates)
    }

    fn leaves_no_row(&self, relabelled: f64) -> bool {
        let rows = self.rows_a_class as f64;
        rows > 0.0 && (relabelled * rows).round() >= rows
    }

    /// Everything that is compared.
    pub(super) fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for (method, settings) in self.methods.iter().enumerate() {
            let strengths: Vec<Option<f64>> = match settings.relations {
                Relations::Soft => {
                    chosen(&self.strengths, &settings.strengths).into_iter().map(Some).collect()
                }
                Relations::Learned => vec![Some(0.5)],
                _ => vec![None],
            };
            let rates = self.rates(settings);
            let parts = chosen(&self.relabelled, &settings.relabelled);
            let pairs = parts.iter().flat_map(|part| strengths.iter().map(move |u| (*part, *u)));
            for (relabelled, u) in pairs {
                let job = Job {
                    data: self.data,
                    rows_a_class: self.rows_a_class,
                    relabelled,
                    relations: settings.relations,
                    u,
                    inference: settings.inference,
                    start: settings.start,
                    hidden: settings.hidden.clone(),
                    curriculum: settings.curriculum,
                    schedule: settings.schedule,
                    epochs: self.epochs,
                    batch: self.batch,
                    learning_rate: rates.first().copied().unwrap_or(1e-3),
                    seed: 0,
                };
                let seeds = settings.seeds.unwrap_or(self.seeds);
                let rates = rates.to_vec();
                cells.push(Cell { method, relabelled, u, seeds, rates, job });
            }
        }
        cells
    }
}

/// Those of all values that a method keeps: all where it does not say.
fn chosen(all: &[f64], own: &Option<Vec<f64>>) -> Vec<f64> {
    let keeps = |value: &f64| own.as_ref().is_none_or(|own| own.contains(value));
    all.iter().copied().filter(keeps).collect()
}
