//! The answers that engines are compared with.

use std::sync::Arc;

use phex::infer::{
    Block, Budget, Engine, Method, Options, Posterior, RowStatus, SamplingOptions, Trust, Want,
};
use phex::metrics::mean;
use phex::model::Model;

/// Certified answers this close to the exact ones count as exact.
const CLOSE: f64 = 1e-6;

/// The exact answers, or the best available ones.
pub(super) struct Reference {
    /// In words.
    pub(super) name: String,
    posterior: Posterior<f64>,
}

/// How far answers are from the reference.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Distance {
    pub(super) mean: Option<f64>,
    pub(super) largest: Option<f64>,
    /// The mean distance of log Z, if both know it.
    pub(super) log_partition: Option<f64>,
}

impl Reference {
    /// Answers by an exact engine, else by long sampling with tempering at any cost; `None` if the model cannot be
    /// sampled either.
    pub(super) fn find(
        model: &Arc<Model>,
        options: &Options,
        rows: &Block<'_, f64>,
    ) -> Option<Reference> {
        let exact = Options { method: Method::Exact, cap: None, ..options.clone() };
        if let Ok(engine) = Engine::compile(Arc::clone(model), &exact)
            && let Ok(posterior) = engine.run(rows, Want::default())
            && posterior.certified_error() <= CLOSE
        {
            let exactness = if engine.plan().exact { "exact" } else { "certified to 1e-6" };
            let name = format!("`{}`, {exactness}", engine.plan().method);
            return Some(Reference { name, posterior });
        }
        let sampling = SamplingOptions {
            chains: 64,
            burn_in: 500,
            sweeps: 2000,
            temperatures: 8,
            ..options.sampling
        };
        let budget = Budget { operations: f64::INFINITY, ..options.budget };
        let long = Options { method: Method::Gibbs, budget, sampling, ..options.clone() };
        let posterior =
            Engine::compile(Arc::clone(model), &long).ok()?.run(rows, Want::default()).ok()?;
        let diagnoses = posterior.trust.iter().filter_map(|trust| match trust {
            Trust::Approximate(diagnosis) => Some(diagnosis),
            _ => None,
        });
        let converged = diagnoses.clone().filter(|diagnosis| diagnosis.converged).count();
        let error = diagnoses.filter_map(|diagnosis| diagnosis.standard_error).fold(0.0, f64::max);
        let name = format!(
            "long sampling with tempering, because no exact engine can handle the model: 64 chains, \
             2000 sweeps, 8 temperatures; {converged} of {} rows converged, largest standard error \
             {error:.1e}",
            posterior.rows()
        );
        Some(Reference { name, posterior })
    }

    /// The distance over the rows that both answer.
    pub(super) fn distance(&self, posterior: &Posterior<f64>) -> Distance {
        let both = |row: &usize| {
            let status = [self.posterior.status[*row], posterior.status[*row]];
            status == [RowStatus::Answered; 2]
        };
        let rows: Vec<usize> = (0..posterior.rows()).filter(both).collect();
        let differences: Vec<f64> = rows
            .iter()
            .flat_map(|&row| self.posterior.row(row).iter().zip(posterior.row(row)))
            .map(|(expected, found)| (expected - found).abs())
            .collect();
        let log_partition = rows
            .iter()
            .map(|&row| (self.posterior.log_partition[row] - posterior.log_partition[row]).abs());
        Distance {
            mean: mean(differences.iter().copied()),
            largest: differences.iter().copied().reduce(f64::max),
            log_partition: mean(log_partition.filter(|distance| !distance.is_nan())),
        }
    }
}
