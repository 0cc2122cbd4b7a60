//! The range of every setting of a run.

use super::{
    Config, HeadConfig, ObjectiveConfig, OptimiserConfig, RateSchedule, Start, StrengthConfig,
    UpdateRule,
};
use crate::Error;

/// Ranges that several settings share.
#[derive(Debug, Clone, Copy)]
enum Range {
    Fraction,
    Positive,
    NotNegative,
}

impl Range {
    fn check(self, setting: &'static str, value: f64) -> Result<(), Error> {
        let (holds, need) = match self {
            Range::Fraction => {
                ((0.0..1.0).contains(&value), "a number of 0 or more and below 1 is needed")
            }
            Range::Positive => (value > 0.0 && value.is_finite(), "a number above 0 is needed"),
            Range::NotNegative => {
                ((0.0..f64::INFINITY).contains(&value), "a number of 0 or more is needed")
            }
        };
        require(holds, setting, need)
    }
}

fn require(holds: bool, setting: &'static str, need: &str) -> Result<(), Error> {
    if holds { Ok(()) } else { Err(Error::Setting { setting, message: String::from(need) }) }
}

impl Config {
    /// Checks every range.
    ///
    /// # Errors
    /// [`Error::Setting`], naming the setting and its range.
    pub fn check(&self) -> Result<(), Error> {
        self.head.check()?;
        self.optimiser.check()?;
        let stages = &self.stages;
        let trains = stages.iter().any(|stage| stage.epochs > 0);
        require(trains, "stages", "one stage with one epoch is needed")?;
        let validates = stages.iter().all(|stage| stage.validate_every > 0);
        require(validates, "stages", "validate_every is 1 or more")?;
        for rate in stages.iter().filter_map(|stage| stage.learning_rate) {
            Range::Positive.check("stages.learning_rate", rate)?;
        }
        for stage in stages {
            Range::Fraction.check("stages.leaf_share", stage.leaf_share)?;
        }
        // The epochs that were kept are counted by the names of stages.
        let named = stages.windows(2).all(|pair| pair[0].name != pair[1].name);
        require(
            named || !self.validation.all_rows,
            "validation.all_rows",
            "stages that follow each other need different names",
        )?;
        if let StrengthConfig::Learned { prior, learning_rate, every, .. } = self.strengths {
            Range::NotNegative.check("strengths.prior", prior)?;
            Range::Positive.check("strengths.learning_rate", learning_rate)?;
            require(every > 0, "strengths.every", "1 step or more is needed")?;
        }
        if let StrengthConfig::CrossFitted { prior, learning_rate, folds, .. } = self.strengths {
            Range::NotNegative.check("strengths.prior", prior)?;
            Range::Positive.check("strengths.learning_rate", learning_rate)?;
            require(folds > 1, "strengths.folds", "2 parts or more are needed")?;
            let relations = matches!(self.objective, ObjectiveConfig::Relations { .. });
            require(relations, "strengths", "only the objective `relations` has strengths")?;
        }
        Range::Fraction.check("validation.fraction", self.validation.fraction)
    }
}

/// The most weights that a head may have: with the memory of an optimiser they take 16 GiB.
const MOST_WEIGHTS: usize = 1 << 30;

impl HeadConfig {
    /// How many weights and averages a head has, or an error if that is too many.
    pub(crate) fn size(&self, inputs: usize, outputs: usize) -> Result<usize, Error> {
        let widths = std::iter::once(inputs).chain(self.hidden.iter().copied()).chain([outputs]);
        let mut size = Some(0usize);
        let mut before = None;
        for width in widths {
            let layer = before.and_then(|inputs: usize| inputs.checked_add(5)?.checked_mul(width));
            size = size
                .zip(layer.or(before.is_none().then_some(0)))
                .and_then(|(a, b)| a.checked_add(b));
            before = Some(width);
        }
        let most = size.filter(|size| *size <= MOST_WEIGHTS);
        most.ok_or_else(|| Error::Setting {
            setting: "head.hidden",
            message: format!(
                "a head from {inputs} features to {outputs} labels would have more than {MOST_WEIGHTS} weights; choose \
                 smaller hidden layers"
            ),
        })
    }

    fn check(&self) -> Result<(), Error> {
        let wide = !self.hidden.contains(&0);
        require(wide, "head.hidden", "a hidden layer needs a width of 1 or more")?;
        Range::Fraction.check("head.dropout", self.dropout)?;
        Range::Fraction.check("head.input_dropout", self.input_dropout)?;
        Range::NotNegative.check("head.feature_clip", self.feature_clip)?;
        Range::NotNegative.check("head.inner_scale", self.inner_scale)?;
        match self.start {
            Start::Normal(deviation) => Range::NotNegative.check("head.start", deviation),
            Start::Zero | Start::Uniform => Ok(()),
        }
    }
}

impl OptimiserConfig {
    fn check(&self) -> Result<(), Error> {
        Range::Positive.check("optimiser.learning_rate", self.learning_rate)?;
        Range::NotNegative.check("optimiser.weight_decay", self.weight_decay)?;
        Range::NotNegative.check("optimiser.clip", self.clip)?;
        require(self.batch > 0, "optimiser.batch", "1 row or more is needed")?;
        Range::Fraction.check("optimiser.average", self.average)?;
        match self.schedule {
            RateSchedule::Constant => {}
            RateSchedule::Cosine { warm_up } | RateSchedule::Linear { warm_up } => {
                Range::Fraction.check("optimiser.schedule", warm_up)?;
            }
            RateSchedule::Step { every, factor } => require(
                every > 0 && factor > 0.0 && factor <= 1.0,
                "optimiser.schedule",
                "every is 1 or more, and factor is above 0 and at most 1",
            )?,
        }
        match self.rule {
            UpdateRule::Sgd { momentum } => Range::Fraction.check("optimiser.momentum", momentum),
            UpdateRule::AdamW { beta1, beta2, epsilon } => {
                Range::Fraction.check("optimiser.beta1", beta1)?;
                Range::Fraction.check("optimiser.beta2", beta2)?;
                Range::Positive.check("optimiser.epsilon", epsilon)
            }
        }
    }
}
