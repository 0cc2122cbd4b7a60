//! The settings of a relabelled experiment, and the runs that follow from them.

use phex::graph::Strength;
use phex::infer::{GroupForm, MessageOptions, Method, Options};
use serde::{Deserialize, Serialize};

use crate::Error;

/// The settings of the file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct RelabelledSettings {
    /// Its title in reports.
    pub(super) title: String,
    /// The data set.
    pub(super) data: HierarchyData,
    /// Training rows per class; 0 means all.
    #[serde(default)]
    pub(super) rows_a_class: usize,
    /// The shares of training rows that get the label of a parent.
    pub(super) relabelled: Vec<f64>,
    /// The strengths u of soft relations.
    pub(super) strengths: Vec<f64>,
    /// Runs per method.
    pub(super) seeds: u64,
    /// Epochs; the second stage of a curriculum has half as many.
    pub(super) epochs: usize,
    /// Rows of a step.
    pub(super) batch: usize,
    /// The learning rates that every method tries. The best one on the validation rows of the first seed is used for
    /// all seeds.
    pub(super) learning_rates: Vec<f64>,
    /// The methods that are compared.
    pub(super) methods: Vec<MethodSettings>,
    /// The group of methods among which the recipe chooses by validation rows.
    pub(super) recipe: Option<String>,
    /// The name of the method with which all others are compared, each with the group and the strength that validation
    /// rows choose.
    pub(super) compare: Option<String>,
    /// The group of the paper's curriculum, with which the recipe is compared.
    pub(super) staged: Option<String>,
    /// The group of plain training from random weights, with which the recipe is compared.
    pub(super) random: Option<String>,
}

/// A data set with a hierarchy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum HierarchyData {
    Cifar100,
    TinyImagenet,
    Generated,
}

/// A method; one of soft relations is a curve over the strengths.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct MethodSettings {
    /// Its name in tables.
    pub(super) name: String,
    /// Methods of one group are shown together and compared with each other.
    pub(super) group: String,
    pub(super) relations: Relations,
    #[serde(default)]
    pub(super) inference: Inference,
    /// The standard deviation of the initial weights of the last layer; 0 starts at zero.
    #[serde(default)]
    pub(super) start: f64,
    /// Hidden layers.
    #[serde(default)]
    pub(super) hidden: Vec<usize>,
    #[serde(default)]
    pub(super) curriculum: Curriculum,
    #[serde(default)]
    pub(super) schedule: JobSchedule,
    /// The factor on the scores of labels above leaves.
    #[serde(default = "one")]
    pub(super) inner_scale: f64,
    /// The share of each batch that is drawn from rows labelled with a leaf.
    #[serde(default)]
    pub(super) leaf_share: f64,
    /// Only these shares of those of the experiment.
    pub(super) relabelled: Option<Vec<f64>>,
    /// Only these strengths of those of the experiment.
    pub(super) strengths: Option<Vec<f64>>,
    /// Other learning rates than those of the experiment, but as many: zero and random weights need different ones.
    pub(super) learning_rates: Option<Vec<f64>>,
    /// Another number of runs than that of the experiment.
    pub(super) seeds: Option<u64>,
}

/// The relations or the baseline that a method trains with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Relations {
    /// HEX.
    Hard,
    /// pHEX, a constant strength.
    Soft,
    /// pHEX, a strength for hierarchy and one for exclusion, learned from u = 0.5.
    Learned,
    /// Softmax over the leaves, trained on rows labelled with a leaf.
    SoftmaxFine,
    /// Softmax over the leaves, a coarse label the sum of its leaves.
    SoftmaxSums,
    /// One sigmoid per label, trained with all that the label of a row implies.
    Sigmoids,
}

/// How expectations are computed.
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

/// In which order relations and rows are learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Curriculum {
    /// All rows from the start.
    #[default]
    Plain,
    /// First the rows labelled with a leaf, for as many steps as one pass over all rows takes.
    WarmUp,
    /// First hard relations by exact inference, then these: the paper's curriculum. Its control continues with hard
    /// relations.
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
    /// Constant.
    Constant,
}

impl JobSchedule {
    fn is_cosine(&self) -> bool {
        *self == JobSchedule::Cosine
    }
}

/// One run: everything that decides its answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct TrainingJob {
    pub(crate) data: HierarchyData,
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
    #[serde(skip_serializing_if = "is_one")]
    pub(crate) inner_scale: f64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) leaf_share: f64,
    pub(crate) epochs: usize,
    pub(crate) batch: usize,
    pub(crate) learning_rate: f64,
    pub(crate) seed: u64,
}

impl TrainingJob {
    pub(crate) fn strength(&self) -> Strength {
        self.u.map_or(Strength::Hard, Strength::U)
    }
}

/// A method at one strength and one share of relabelled rows: tuned and run together.
#[derive(Debug, Clone)]
pub(super) struct MethodCell {
    /// The index of the method in the settings.
    pub(super) method: usize,
    pub(super) relabelled: f64,
    pub(super) u: Option<f64>,
    pub(super) seeds: u64,
    /// The learning rates to try.
    pub(super) rates: Vec<f64>,
    /// The run of the first seed and learning rate.
    pub(super) job: TrainingJob,
}

fn one() -> f64 {
    1.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_one(value: &f64) -> bool {
    *value == 1.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

fn is_rate(rate: f64) -> bool {
    rate > 0.0 && rate.is_finite()
}

impl RelabelledSettings {
    /// Rejects settings that leave nothing to run or are out of range.
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
            "a method needs as many `learning-rates` as the experiment: every method has the same trials"
        } else if self
            .methods
            .iter()
            .flat_map(|method| self.rates(method))
            .any(|&rate| !is_rate(rate))
        {
            "`learning-rates` must be above 0"
        } else if !self.relabelled.iter().all(|part| (0.0..1.0).contains(part)) {
            "`relabelled` must be 0 or more and below 1"
        } else if self.relabelled.iter().any(|&part| self.leaves_no_row(part)) {
            "`rows-a-class` is so small that a share in `relabelled` leaves no row with its class: raise it"
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

    /// All cells.
    pub(super) fn cells(&self) -> Vec<MethodCell> {
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
                let job = TrainingJob {
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
                    inner_scale: settings.inner_scale,
                    leaf_share: settings.leaf_share,
                    epochs: self.epochs,
                    batch: self.batch,
                    learning_rate: rates.first().copied().unwrap_or(1e-3),
                    seed: 0,
                };
                let seeds = settings.seeds.unwrap_or(self.seeds);
                let rates = rates.to_vec();
                cells.push(MethodCell { method, relabelled, u, seeds, rates, job });
            }
        }
        cells
    }
}

/// The values that a method keeps; all if it does not say.
fn chosen(all: &[f64], own: &Option<Vec<f64>>) -> Vec<f64> {
    let keeps = |value: &f64| own.as_ref().is_none_or(|own| own.contains(value));
    all.iter().copied().filter(keeps).collect()
}
