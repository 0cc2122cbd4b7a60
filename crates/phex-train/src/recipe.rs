//! The recipe of training: every default, and the rules that derive settings from the examples.
//!
//! [`Recipe::STANDARD`] has the numbers. The command line, Python and the demo state only what a user
//! chose ([`TrainingChoices`]) and let the recipe fill in the rest. `docs/how-to/train.md` has what the
//! rules achieve.
//!
//! # What follows from graph and rows
//! With `n` rows, `d` features, a batch of `b` rows and the names of the fields of [`Recipe`]:
//!
//! - **Held-out rows.** With `n ≥ validation_rows` and no validation data, `validation_fraction` of the
//!   rows are held out. They choose the epoch to keep. With fewer rows, all are trained on, because a
//!   tenth of them could not choose well. `patience` validations without improvement end a stage, unless
//!   the user chose the epochs.
//! - **All rows.** Where rows are held out, a linear head is trained again on all rows, for the epochs that
//!   validation kept in each stage. A tenth more rows are worth more than what else the epochs could be.
//!   What was measured stays that of the first head. A head with hidden layers takes too long to train
//!   twice, learned strengths are chosen along with the epoch (unless they repair a taxonomy), and the stages
//!   of a user are left alone.
//! - **Batch.** `b = n / epoch_steps`, between `smallest_batch` and `batch`.
//! - **Epochs.** `epochs`, or as many as make `steps` steps if that is more: the weights of few rows
//!   have as far to go as those of many.
//! - **Learning rate.** A linear head takes `learning_rate · √(rate_features / d)`. Adam moves each weight
//!   by about the rate, and so the logits of a standardised row by about `√d` times that.
//! - **Biases.** If most rows have every label on or off, biases start at the labels' frequencies. Most
//!   of these labels are rare, and otherwise training would first have to learn that. Rows with unknown
//!   labels do not show the frequencies.
//! - **Scale of inner scores.** In a single-label graph under relations, the scores of labels that have
//!   children are multiplied by `inner_scale / √a`, where a leaf has `a` labels above it on average. An inner
//!   score collects the gradients of all rows below it; without the scale it moves first and most, and the
//!   leaves learn little. A step moves the sum of the `a` scores above a leaf by the sum of their squared
//!   scales, which the root keeps at `inner_scale²`. If a row may be several things at once, inner labels have
//!   something of their own to learn, and the scale is 1.
//! - **Rows labelled with a leaf.** If at least `warm_up_rows` rows, but not all, are labelled with a
//!   leaf, a linear head first trains on these alone ([`Recipe::warm_up_epochs`]), and a head with hidden
//!   layers draws `leaf_share` of each batch from them.
//! - **Learned strengths.** One strength for each relation is cross-fitted
//!   ([`Recipe::strength_folds`]); there are too many for the rows that the weights are trained on. One
//!   factor for all or for a kind of relations is learned together with the weights. Cross-fitting
//!   has a start of its own, so it needs no warm-up, and a share of the epochs (`fold_epochs`). It needs
//!   full scores of the labels above leaves, so it does not scale them.
//!
//! Explicit choices of the user always override these rules. The epochs of a user's curriculum or stages
//! are not changed.

use phex::graph::{RelationGraph, Strength};
use phex::learn::{self, Loss, Tie};

use crate::choices::TrainingChoices;
use crate::config::{
    Config, HeadConfig, Metric, Norm, ObjectiveConfig, OptimiserConfig, RateSchedule, RowChoice,
    Stage, Start, StrengthConfig, StrengthSetting, UpdateRule, ValidationConfig, WarmUp,
};
use crate::{Error, ExampleCounts, Examples};

/// The defaults of training and the parameters of its rules.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Recipe {
    /// Widths of hidden layers; empty for a linear head.
    pub hidden: &'static [usize],
    /// Fraction of hidden values dropped in training.
    pub dropout: f64,
    /// Fraction of features dropped in training.
    pub input_dropout: f64,
    /// Normalisation of hidden layers.
    pub norm: Norm,
    /// Initial weights of the last layer.
    pub start: Start,
    /// Standardised features are clipped to ± this value; 0 means no clipping.
    pub feature_clip: f64,
    /// Factor on the scores of labels that have children, in single-label graphs with one such label above
    /// each leaf ([`Recipe::inner_scale_of`]).
    pub inner_scale: f64,
    /// Share of each batch that is drawn from rows labelled with a leaf, for heads with hidden layers.
    pub leaf_share: f64,
    /// The loss under relations.
    pub loss: Loss,
    /// How a step follows from a gradient.
    pub rule: UpdateRule,
    /// The momentum of [`UpdateRule::Sgd`].
    pub momentum: f64,
    /// Size of a step of a linear head over [`Recipe::rate_features`] features.
    pub learning_rate: f64,
    /// Over `d` features the size of a step is `learning_rate · √(rate_features / d)`.
    pub rate_features: usize,
    /// Size of a step of a head with hidden layers.
    pub hidden_learning_rate: f64,
    /// Weight decay per step, times the learning rate.
    pub weight_decay: f64,
    /// The learning rate over a stage.
    pub schedule: RateSchedule,
    /// Most rows per step.
    pub batch: usize,
    /// Fewest rows per step.
    pub smallest_batch: usize,
    /// With few rows, batches shrink to give an epoch this many steps, as far as `smallest_batch` lets
    /// them.
    pub epoch_steps: usize,
    /// Memory of the average of weights; 0 keeps the last weights.
    pub average: f64,
    /// Longest gradient; 0 means any.
    pub clip: f64,
    /// Epochs of the stage that trains on all rows.
    pub epochs: usize,
    /// With few rows, this stage has more epochs, so that it makes this many steps.
    pub steps: usize,
    /// A warm-up needs so many rows labelled with a leaf: with fewer, validation might hold out all of
    /// them.
    pub warm_up_rows: usize,
    /// The longest automatic warm-up, in epochs.
    pub warm_up_epochs: usize,
    /// Validations of a warm-up: few rows make short epochs, and validating each would take longer
    /// than training.
    pub warm_up_validations: usize,
    /// Weight of the prior that holds learned strengths to the given ones.
    pub strength_prior: f64,
    /// Size of a step of learned strengths.
    pub strength_rate: f64,
    /// Steps of the weights per step of learned strengths.
    pub strength_every: usize,
    /// Parts of the rows for cross-fitting, if each relation has its own learned strength.
    pub strength_folds: usize,
    /// As `strength_prior`, for cross-fitting: beside the sum of the losses of all rows.
    pub fold_prior: f64,
    /// As `strength_rate`, for cross-fitting: the first step, in parts of the mean given strength.
    pub fold_rate: f64,
    /// Epochs of the stage after cross-fitting, in parts of those of a stage that starts at zero: it starts
    /// from trained weights.
    pub fold_epochs: f64,
    /// Fraction of rows held out for validation when no validation data are given.
    pub validation_fraction: f64,
    /// Fewer rows hold out none.
    pub validation_rows: usize,
    /// The metric that chooses the epoch to keep.
    pub metric: Metric,
    /// Validations without improvement that end a stage; 0 means never.
    pub patience: usize,
    /// The metric that compares strengths in tuning: a loss under one strength says nothing about
    /// a loss under another.
    pub tuning_metric: Metric,
    /// The strengths that tuning compares.
    pub tuning_strengths: &'static [StrengthSetting],
    /// Seeds per strength in tuning.
    pub tuning_seeds: u64,
    /// Seconds between checkpoints of a run folder.
    pub checkpoint_seconds: f64,
    /// The seed of everything random.
    pub seed: u64,
}

impl Recipe {
    /// The recipe of the command line and the library.
    pub const STANDARD: Recipe = Recipe {
        hidden: &[],
        dropout: 0.0,
        input_dropout: 0.0,
        norm: Norm::None,
        start: Start::Zero,
        feature_clip: 0.0,
        inner_scale: learn::INNER_SCALE,
        leaf_share: learn::LEAF_SHARE,
        loss: Loss::Joint,
        rule: UpdateRule::AdamW { beta1: 0.9, beta2: 0.999, epsilon: 1e-8 },
        momentum: 0.9,
        learning_rate: 1e-3,
        rate_features: 256,
        hidden_learning_rate: 1e-3,
        weight_decay: 1e-4,
        schedule: RateSchedule::Cosine { warm_up: 0.0 },
        batch: 64,
        smallest_batch: 8,
        epoch_steps: 20,
        average: 0.0,
        clip: 0.0,
        epochs: 30,
        steps: 4000,
        warm_up_rows: 10,
        warm_up_epochs: 1000,
        warm_up_validations: 10,
        strength_prior: 0.01,
        strength_rate: 0.01,
        strength_every: 10,
        strength_folds: 2,
        fold_prior: 0.1,
        fold_rate: 0.03,
        fold_epochs: 1.0 / 3.0,
        validation_fraction: 0.1,
        validation_rows: 1000,
        metric: Metric::Loss,
        patience: 5,
        tuning_metric: Metric::AuPrc,
        tuning_strengths: &[
            StrengthSetting::All(Strength::Hard),
            StrengthSetting::All(Strength::U(0.1)),
            StrengthSetting::All(Strength::U(0.3)),
            StrengthSetting::All(Strength::U(0.5)),
            StrengthSetting::All(Strength::U(0.7)),
            StrengthSetting::All(Strength::U(1.0)),
            StrengthSetting::All(Strength::U(1.5)),
        ],
        tuning_seeds: 3,
        checkpoint_seconds: 30.0,
        seed: 0,
    };

    /// The complete settings of a run: what the user chose, and the rest by this recipe.
    ///
    /// ```
    /// use phex::graph::GraphBuilder;
    /// use phex_io::{Features, Target, Targets};
    /// use phex_train::{Examples, Recipe, TrainingChoices};
    ///
    /// let mut builder = GraphBuilder::new();
    /// builder.hierarchy("animal", "dog", None).hierarchy("animal", "cat", None);
    /// let graph = builder.build()?;
    /// // Of 40 rows only 10 are labelled with a leaf.
    /// let mut targets = Targets::new(graph.len());
    /// (0..40).for_each(|row| targets.push(&[Target { label: (row % 4) / 3, on: true }], false));
    /// let features =
    ///     Features { names: vec!["x".into()], rows: 40, columns: 1, values: vec![0.0; 40] };
    /// let examples = Examples::new(&features, &targets, &graph)?;
    ///
    /// let choices = TrainingChoices { learning_rate: Some(0.01), ..TrainingChoices::default() };
    /// let config = Recipe::STANDARD.config(&choices, &examples, &graph)?;
    /// assert_eq!(config.optimiser.learning_rate, 0.01);
    /// assert_eq!(config.optimiser.batch, Recipe::STANDARD.smallest_batch);
    /// // Four epochs over 10 rows take as many steps as one over all 40.
    /// assert_eq!((config.stages[0].name.as_str(), config.stages[0].epochs), ("warm-up", 4));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Recipe::settle`].
    pub fn config(
        &self,
        choices: &TrainingChoices,
        examples: &Examples<'_>,
        graph: &RelationGraph,
    ) -> Result<Config, Error> {
        let mut config = self.settle(choices)?;
        let (rows, features) = (examples.rows(), examples.features.columns);
        self.set_validation(&mut config, choices, rows);
        self.set_steps(&mut config, choices, rows, features);
        let counts = examples.counts(graph);
        let is_softmax = matches!(config.objective, ObjectiveConfig::Softmax { .. });
        if !is_softmax && !choices.sets_prior() {
            config.head.prior = 2 * counts.complete > rows;
        }
        let has_relations = matches!(config.objective, ObjectiveConfig::Relations { .. });
        let cross_fits = matches!(config.strengths, StrengthConfig::CrossFitted { .. });
        if has_relations && !cross_fits && !choices.sets_inner_scale() {
            config.head.inner_scale = self.inner_scale_of(graph);
        }
        let is_linear = config.head.hidden.is_empty();
        let mixes = !is_linear && choices.leaf_share.is_none() && choices.warm_up.is_none();
        if mixes && has_relations && !choices.sets_stages() {
            if self.warm_up_epochs(&counts).is_some() {
                config.stages[0].leaf_share = self.leaf_share;
            }
        } else if self.warms_up(choices, &config)
            && let Some(epochs) = self.warm_up_epochs(&counts)
        {
            let first = self.warm_up_stage(&config.stages[0], epochs);
            config.stages.insert(0, first);
        }
        Ok(config)
    }

    /// The factor on the scores of labels that have children, for a head under these relations.
    pub fn inner_scale_of(&self, graph: &RelationGraph) -> f64 {
        learn::inner_scale(graph, self.inner_scale)
    }

    /// Which rows choose the epoch to keep, and for how long.
    fn set_validation(&self, config: &mut Config, choices: &TrainingChoices, rows: usize) {
        let chosen = choices.validation_fraction.is_some();
        if !chosen && !choices.sets_in("validation", "fraction") && rows >= self.validation_rows {
            config.validation.fraction = self.validation_fraction;
        }
        let epochs = choices.epochs.is_some() || choices.sets_stages();
        if !epochs && choices.patience.is_none() && !choices.sets_in("validation", "patience") {
            config.validation.patience = self.patience;
        }
        if choices.all_rows.is_none() && !choices.sets_in("validation", "all_rows") {
            config.validation.all_rows = config.validation.fraction > 0.0
                && config.head.hidden.is_empty()
                && !matches!(config.strengths, StrengthConfig::Learned { .. })
                && !choices.sets_stages();
        }
    }

    /// The number and the size of the steps.
    fn set_steps(
        &self,
        config: &mut Config,
        choices: &TrainingChoices,
        rows: usize,
        features: usize,
    ) {
        if choices.batch.is_none() && !choices.sets_in("optimiser", "batch") {
            let batch = rows / self.epoch_steps;
            config.optimiser.batch = batch.clamp(self.smallest_batch, self.batch);
        }
        if choices.epochs.is_none() && !choices.sets_stages() {
            let trained = (rows as f64 * (1.0 - config.validation.fraction)) as usize;
            let per_epoch = trained.div_ceil(config.optimiser.batch).max(1);
            let epochs = self.epochs.max(self.steps.div_ceil(per_epoch));
            let cross_fits = matches!(config.strengths, StrengthConfig::CrossFitted { .. });
            let share = if cross_fits { self.fold_epochs } else { 1.0 };
            config.stages[0].epochs = (epochs as f64 * share).ceil() as usize;
        }
        let chosen =
            choices.learning_rate.is_some() || choices.sets_in("optimiser", "learning_rate");
        if config.head.hidden.is_empty() && !chosen {
            let scale = (self.rate_features as f64 / features as f64).sqrt();
            config.optimiser.learning_rate = self.learning_rate * scale;
        }
    }

    /// The settings as far as they do not depend on the examples, checked: the rest is what the header
    /// of the module lists.
    ///
    /// # Errors
    /// [`Error::Setting`] when a choice is out of range or does not fit another one.
    pub fn settle(&self, choices: &TrainingChoices) -> Result<Config, Error> {
        let config = choices.settle(self)?;
        config.check()?;
        Ok(config)
    }

    /// Whether the length of a warm-up is left to the examples: unless the user chose it, or the
    /// stages. From random weights, coarse rows favour leaves at random before fine rows are seen.
    fn warms_up(&self, choices: &TrainingChoices, config: &Config) -> bool {
        match choices.warm_up {
            Some(warm_up) => warm_up == WarmUp::Auto,
            None => {
                !choices.sets_stages()
                    && matches!(config.objective, ObjectiveConfig::Relations { .. })
                    && !matches!(config.strengths, StrengthConfig::CrossFitted { .. })
            }
        }
    }

    /// How many epochs over the rows labelled with a leaf take as many steps as one over all rows.
    /// `None` when all rows have one, or too few.
    pub fn warm_up_epochs(&self, counts: &ExampleCounts) -> Option<usize> {
        let worthwhile = (self.warm_up_rows..counts.rows).contains(&counts.with_leaf);
        let epochs = || (counts.rows as f64 / counts.with_leaf as f64).round() as usize;
        worthwhile.then(|| epochs().clamp(1, self.warm_up_epochs))
    }

    /// A warm-up before a stage: the same on the rows labelled with a leaf.
    pub(crate) fn warm_up_stage(&self, next: &Stage, epochs: usize) -> Stage {
        Stage {
            name: String::from(Stage::WARM_UP),
            rows: RowChoice::MostSpecific,
            leaf_share: 0.0,
            epochs,
            validate_every: epochs.div_ceil(self.warm_up_validations).max(1),
            ..next.clone()
        }
    }

    /// The head, as far as it does not depend on graph and examples.
    pub fn head(&self) -> HeadConfig {
        HeadConfig {
            hidden: self.hidden.to_vec(),
            dropout: self.dropout,
            input_dropout: self.input_dropout,
            norm: self.norm,
            start: self.start,
            prior: false,
            feature_clip: self.feature_clip,
            inner_scale: 1.0,
        }
    }

    /// The optimiser.
    pub fn optimiser(&self) -> OptimiserConfig {
        OptimiserConfig {
            rule: self.rule,
            learning_rate: self.learning_rate,
            weight_decay: self.weight_decay,
            schedule: self.schedule,
            batch: self.batch,
            average: self.average,
            clip: self.clip,
        }
    }

    /// The stage that trains on all rows.
    pub fn stage(&self) -> Stage {
        Stage {
            name: String::from(Stage::TRAIN),
            strength: StrengthSetting::Given,
            rows: RowChoice::All,
            leaf_share: 0.0,
            epochs: self.epochs,
            validate_every: 1,
            learning_rate: None,
        }
    }

    /// Validation, as far as it does not depend on the examples: no rows are held out.
    pub fn validation(&self) -> ValidationConfig {
        let metric = self.metric;
        ValidationConfig { fraction: 0.0, metric, patience: 0, all_rows: false }
    }

    /// Learned strengths with this tie; `folds` of 0 learns them together with the weights.
    pub fn learned_strengths(&self, tie: Tie, folds: Option<usize>) -> StrengthConfig {
        let folds = folds.unwrap_or(if tie == Tie::Relation { self.strength_folds } else { 0 });
        if folds > 0 {
            let (prior, learning_rate) = (self.fold_prior, self.fold_rate);
            return StrengthConfig::CrossFitted { tie, prior, learning_rate, folds };
        }
        StrengthConfig::Learned {
            tie,
            prior: self.strength_prior,
            learning_rate: self.strength_rate,
            every: self.strength_every,
        }
    }
}

impl Stage {
    /// The name of the stage that trains on all rows, where there is one such stage.
    pub const TRAIN: &'static str = "train";
    /// The name of a warm-up.
    pub const WARM_UP: &'static str = "warm-up";

    /// A warm-up of so many epochs before this stage, by the standard recipe.
    pub fn warm_up(&self, epochs: usize) -> Stage {
        Recipe::STANDARD.warm_up_stage(self, epochs)
    }
}

#[cfg(test)]
mod tests {
    use phex::graph::GraphBuilder;
    use phex_io::{Features, Target, Targets};

    use super::*;

    /// The settings for 40 rows of which 10 are labelled with a leaf.
    fn config(single_label: bool, choices: &str) -> Config {
        config_of(40, 1, single_label, choices)
    }

    /// The settings for so many rows and features; a quarter of the rows is labelled with a leaf.
    fn config_of(rows: usize, columns: usize, single_label: bool, choices: &str) -> Config {
        let mut builder = GraphBuilder::new();
        builder.hierarchy("animal", "dog", None).hierarchy("animal", "cat", None);
        if single_label {
            builder.single_label();
        }
        let graph = builder.build().unwrap();
        let mut targets = Targets::new(graph.len());
        let label = |row: usize| (row % 4 / 3) as u32;
        (0..rows).for_each(|row| targets.push(&[Target { label: label(row), on: true }], false));
        let names = (0..columns).map(|at| at.to_string()).collect();
        let features = Features { names, rows, columns, values: vec![0.0; rows * columns] };
        let examples = Examples::new(&features, &targets, &graph).unwrap();
        let choices: TrainingChoices = serde_json::from_str(choices).unwrap();
        Recipe::STANDARD.config(&choices, &examples, &graph).unwrap()
    }

    #[test]
    fn single_label_graphs_scale_inner_scores_and_networks_mix_leaf_rows_into_batches() {
        let recipe = Recipe::STANDARD;
        let linear = config(true, "{}");
        assert_eq!(linear.head.inner_scale, recipe.inner_scale);
        assert_eq!(linear.head.start, Start::Zero);
        assert_eq!((linear.stages.len(), linear.stages[1].leaf_share), (2, 0.0));
        let network = config(true, r#"{"hidden": [8]}"#);
        assert_eq!((network.stages.len(), network.stages[0].leaf_share), (1, recipe.leaf_share));
        assert_eq!(config(false, "{}").head.inner_scale, 1.0);
        let chosen = config(true, r#"{"inner_scale": 1.0, "leaf_share": 0.1, "warm_up": "0"}"#);
        assert_eq!((chosen.head.inner_scale, chosen.stages[0].leaf_share), (1.0, 0.1));
        assert_eq!(chosen.stages.len(), 1);
        let nested = config(true, r#"{"settings": {"head": {"inner_scale": 0.5}}}"#);
        assert_eq!(nested.head.inner_scale, 0.5);
        assert_eq!(config(true, r#"{"objective": "independent"}"#).head.inner_scale, 1.0);
    }

    #[test]
    fn deeper_taxonomies_scale_inner_scores_more() {
        let mut builder = GraphBuilder::new();
        for [parent, child] in [["thing", "animal"], ["thing", "tool"], ["animal", "dog"]] {
            builder.hierarchy(parent, child, None);
        }
        let graph = builder.single_label().build().unwrap();
        // Above `tool` is one label, above `dog` are two.
        let expected = Recipe::STANDARD.inner_scale / 1.5f64.sqrt();
        assert!((Recipe::STANDARD.inner_scale_of(&graph) - expected).abs() < 1e-15);
    }

    #[test]
    fn many_rows_hold_some_out_and_few_rows_make_as_many_steps() {
        let recipe = Recipe::STANDARD;
        let few = config(true, "{}");
        assert_eq!((few.validation.fraction, few.optimiser.batch), (0.0, recipe.smallest_batch));
        let last = &few.stages[1];
        assert_eq!(last.epochs * 40_usize.div_ceil(recipe.smallest_batch), recipe.steps);
        let many = config_of(20_000, 4, true, "{}");
        let validation = (recipe.validation_fraction, recipe.patience);
        assert_eq!((many.validation.fraction, many.validation.patience), validation);
        assert_eq!((many.optimiser.batch, many.stages[1].epochs), (recipe.batch, recipe.epochs));
        assert!(many.validation.all_rows && !few.validation.all_rows);
        // A quarter of the reference's root is twice the rate.
        let rate = config_of(40, recipe.rate_features / 4, true, "{}").optimiser.learning_rate;
        assert!((rate - 2.0 * recipe.learning_rate).abs() < 1e-12);
        let network = config(true, r#"{"hidden": [8]}"#).optimiser.learning_rate;
        assert_eq!(network, recipe.hidden_learning_rate);
    }

    #[test]
    fn biases_start_at_frequencies_where_all_labels_are_known() {
        let mut builder = GraphBuilder::new();
        builder.hierarchy("animal", "dog", None).hierarchy("animal", "cat", None);
        let graph = builder.build().unwrap();
        let of = |complete: usize, choices: &str| {
            let mut targets = Targets::new(graph.len());
            let dog = [Target { label: graph.id("dog").unwrap().0, on: true }];
            (0..40).for_each(|row| targets.push(&dog, row < complete));
            let names = vec![String::from("x")];
            let features = Features { names, rows: 40, columns: 1, values: vec![0.0; 40] };
            let examples = Examples::new(&features, &targets, &graph).unwrap();
            let choices: TrainingChoices = serde_json::from_str(choices).unwrap();
            Recipe::STANDARD.config(&choices, &examples, &graph).unwrap().head.prior
        };
        assert!(of(40, "{}") && of(21, "{}") && !of(20, "{}"));
        assert!(!of(40, r#"{"prior": false}"#) && of(0, r#"{"prior": true}"#));
        assert!(!of(40, r#"{"settings": {"head": {"prior": false}}}"#));
    }

    #[test]
    fn choices_win_over_the_rules() {
        let chosen = config_of(
            20_000,
            4,
            true,
            r#"{"epochs": 3, "learning_rate": 0.5, "batch": 7, "validation_fraction": 0.0}"#,
        );
        assert_eq!((chosen.stages[1].epochs, chosen.optimiser.batch), (3, 7));
        assert_eq!((chosen.optimiser.learning_rate, chosen.validation.fraction), (0.5, 0.0));
        assert_eq!(chosen.validation.patience, 0, "the epochs are the user's");
        let without =
            [r#"{"all_rows": false}"#, r#"{"hidden": [8]}"#, r#"{"curriculum": "hard-to-soft=1"}"#];
        for choices in without {
            assert!(!config_of(20_000, 4, true, choices).validation.all_rows, "{choices}");
        }
        let nested = r#"{"settings": {"optimiser": {"learning_rate": 0.5, "batch": 7},
            "validation": {"fraction": 0.3, "patience": 2}, "stages": [{"epochs": 3}]}}"#;
        let nested = config_of(20_000, 4, true, nested);
        assert_eq!((nested.optimiser.learning_rate, nested.optimiser.batch), (0.5, 7));
        assert_eq!((nested.validation.fraction, nested.validation.patience), (0.3, 2));
        assert_eq!(nested.stages.iter().map(|stage| stage.epochs).collect::<Vec<_>>(), [3]);
    }
}
