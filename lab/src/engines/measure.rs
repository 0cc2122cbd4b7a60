//! Measures one engine in one setting: time, error and its own diagnosis.

use std::sync::Arc;
use std::time::Instant;

use phex::Error;
use phex::infer::{
    Block, Engine, GroupForm, MessageOptions, Method, Options, Posterior, RowStatus, Trust, Want,
};
use phex::metrics::mean;
use phex::model::Model;

use super::reference::{Distance, Reference};
use crate::harness::setups::{EngineSetup, paper_messages};
use crate::harness::timing::{Repetitions, repeat};

/// No further repetition starts after this many seconds.
const PATIENCE: f64 = 2.0;

/// Every engine for probabilities, or the requested ones; `lbp` in several setups.
pub(super) fn setups(options: &Options) -> Vec<EngineSetup> {
    let methods: Vec<Method> = match options.method {
        Method::Auto => Method::exact().chain(Method::approximate()).collect(),
        Method::Exact => Method::exact().collect(),
        method => vec![method],
    };
    methods.into_iter().flat_map(|method| of(method, options)).collect()
}

fn of(method: Method, options: &Options) -> Vec<EngineSetup> {
    let plain = Options { method, ..options.clone() };
    let mut setups = vec![EngineSetup { name: method.name().to_owned(), options: plain.clone() }];
    if method == Method::Lbp {
        let mut add = |name: &str, messages: MessageOptions| {
            let options = Options { messages, ..plain.clone() };
            setups.push(EngineSetup { name: format!("{method}, {name}"), options });
        };
        add("pairs", MessageOptions { groups: GroupForm::Pairs, ..plain.messages });
        add("the paper's", paper_messages());
    }
    setups
}

/// What was measured of an engine.
pub(super) struct EngineMeasurement {
    pub(super) trust: &'static str,
    pub(super) compile_seconds: f64,
    /// The fastest repetition, for all rows.
    pub(super) run_seconds: f64,
    pub(super) distance: Distance,
    /// Converged rows, for approximate engines.
    pub(super) converged: Option<usize>,
    pub(super) doubtful: usize,
    /// The mean width of the interval around log Z.
    pub(super) bounds_width: Option<f64>,
}

/// Runs an engine on the current threads; the error says why it cannot handle the model.
pub(super) fn measure(
    model: &Arc<Model>,
    options: &Options,
    rows: &Block<'_, f64>,
    repetitions: usize,
    reference: Option<&Reference>,
    widths: &mut BoundWidths,
) -> Result<EngineMeasurement, String> {
    let start = Instant::now();
    let engine = Engine::compile(Arc::clone(model), options).map_err(reason)?;
    let compile_seconds = start.elapsed().as_secs_f64();
    let repetitions = Repetitions { least: 1, most: repetitions, seconds: PATIENCE };
    let (posterior, timing) =
        repeat(repetitions, || engine.run(rows, Want::default())).map_err(reason)?;
    let plan = engine.plan();
    let bounds_width =
        if plan.approximate { widths.of(&engine, options.messages, rows)? } else { None };
    let answered = || {
        let rows = posterior.status.iter().zip(&posterior.trust);
        rows.filter(|(status, _)| **status == RowStatus::Answered).map(|(_, trust)| trust)
    };
    let converged = |trust: &&Trust| matches!(trust, Trust::Approximate(d) if d.converged);
    Ok(EngineMeasurement {
        trust: match (plan.exact, plan.approximate) {
            (true, _) => "exact",
            (false, true) => "approximate",
            (false, false) => "certified",
        },
        compile_seconds,
        run_seconds: timing.best,
        distance: reference.map_or(Distance::default(), |known| known.distance(&posterior)),
        converged: plan.approximate.then(|| answered().filter(converged).count()),
        doubtful: answered().filter(|trust| trust.doubt().is_some()).count(),
        bounds_width,
    })
}

/// The mean widths of the intervals around log Z. They depend on how messages are sent and not on the engine (except
/// for `forest-bp`, which has its own bounds). They cost more than the answer, so each is computed once.
#[derive(Default)]
pub(super) struct BoundWidths(Vec<((MessageOptions, bool), Option<f64>)>);

impl BoundWidths {
    fn of(
        &mut self,
        engine: &Engine,
        messages: MessageOptions,
        rows: &Block<'_, f64>,
    ) -> Result<Option<f64>, String> {
        let key = (messages, engine.plan().method == Method::ForestBp);
        if let Some((_, width)) = self.0.iter().find(|(known, _)| *known == key) {
            return Ok(*width);
        }
        let want = Want { bounds: true, ..Want::default() };
        let posterior: Posterior<f64> = engine.run(rows, want).map_err(reason)?;
        let width = |(status, trust): (&RowStatus, &Trust)| match (status, trust) {
            (RowStatus::Answered, Trust::Approximate(diagnosis)) => {
                diagnosis.bounds.map(|(low, high)| high - low)
            }
            _ => None,
        };
        let widths = posterior.status.iter().zip(&posterior.trust).filter_map(width);
        let width = mean(widths);
        self.0.push((key, width));
        Ok(width)
    }
}

fn reason(error: Error) -> String {
    match error {
        Error::Unfit { refused } => {
            refused.into_iter().map(|refusal| refusal.why).collect::<Vec<_>>().join("; ")
        }
        error => error.to_string(),
    }
}
