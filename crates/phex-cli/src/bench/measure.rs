//! One engine in one setting: its time, its error and what it says of itself.

use std::sync::Arc;
use std::time::{Duration, Instant};

use phex::Error;
use phex::infer::{
    Block, Engine, GroupForm, MessageOptions, MessageOrder, Method, Options, Posterior, RowStatus,
    Trust, Want,
};
use phex::model::Model;

use super::reference::{Distance, Reference, mean};

/// No further repetition once this has gone by.
const PATIENCE: Duration = Duration::from_secs(2);

/// An engine and how it is run.
pub(super) struct Setting {
    pub(super) name: String,
    pub(super) options: Options,
}

/// Every engine for probabilities, or those that were asked for; `lbp` in several settings.
pub(super) fn settings(options: &Options) -> Vec<Setting> {
    let methods: Vec<Method> = match options.method {
        Method::Auto => Method::exact().chain(Method::approximate()).collect(),
        Method::Exact => Method::exact().collect(),
        method => vec![method],
    };
    methods.into_iter().flat_map(|method| of(method, options)).collect()
}

fn of(method: Method, options: &Options) -> Vec<Setting> {
    let plain = Options { method, ..options.clone() };
    let mut settings = vec![Setting { name: method.name().to_owned(), options: plain.clone() }];
    if method == Method::Lbp {
        let mut add = |name: &str, messages: MessageOptions| {
            let options = Options { messages, ..plain.clone() };
            settings.push(Setting { name: format!("{method}, {name}"), options });
        };
        add("pairs", MessageOptions { groups: GroupForm::Pairs, ..plain.messages });
        let paper = MessageOptions {
            schedule: MessageOrder::Flooding,
            groups: GroupForm::Pairs,
            damping: 0.0,
            iterations: 20,
            tolerance: 0.0,
        };
        add("the paper's", paper);
    }
    settings
}

/// What was measured.
pub(super) struct Measured {
    pub(super) trust: &'static str,
    pub(super) compile: Duration,
    /// The fastest repetition, all rows.
    pub(super) run: Duration,
    pub(super) distance: Distance,
    /// Of approximate engines.
    pub(super) converged: Option<usize>,
    pub(super) doubtful: usize,
    /// The mean width of the interval around log Z.
    pub(super) bounds_width: Option<f64>,
}

/// Runs an engine on the current threads; why not, where it does not take the model.
pub(super) fn measure(
    model: &Arc<Model>,
    options: &Options,
    rows: &Block<'_, f64>,
    repetitions: u64,
    reference: Option<&Reference>,
    widths: &mut Widths,
) -> Result<Measured, String> {
    let start = Instant::now();
    let engine = Engine::compile(Arc::clone(model), options).map_err(reason)?;
    let compile = start.elapsed();
    let start = Instant::now();
    let mut posterior = engine.run(rows, Want::default()).map_err(reason)?;
    let mut run = start.elapsed();
    for _ in 1..repetitions {
        if start.elapsed() > PATIENCE {
            break;
        }
        let again = Instant::now();
        posterior = engine.run(rows, Want::default()).map_err(reason)?;
        run = run.min(again.elapsed());
    }
    let plan = engine.plan();
    let bounds_width =
        if plan.approximate { widths.of(&engine, options.messages, rows)? } else { None };
    let answered = || {
        let rows = posterior.status.iter().zip(&posterior.trust);
        rows.filter(|(status, _)| **status == RowStatus::Answered).map(|(_, trust)| trust)
    };
    let converged = |trust: &&Trust| matches!(trust, Trust::Approximate(d) if d.converged);
    Ok(Measured {
        trust: match (plan.exact, plan.approximate) {
            (true, _) => "exact",
            (false, true) => "approximate",
            (false, false) => "certified",
        },
        compile,
        run,
        distance: reference.map_or(Distance::default(), |known| known.distance(&posterior)),
        converged: plan.approximate.then(|| answered().filter(converged).count()),
        doubtful: answered().filter(|trust| trust.doubt().is_some()).count(),
        bounds_width,
    })
}

/// The mean widths of the intervals around log Z. They depend on how messages are sent, not on the
/// engine that they stand beside (but for `forest-bp`, which has bounds of its own), and cost more than
/// its answer: each is computed once.
#[derive(Default)]
pub(super) struct Widths(Vec<((MessageOptions, bool), Option<f64>)>);

impl Widths {
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
        let width = mean(&widths.collect::<Vec<f64>>());
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
