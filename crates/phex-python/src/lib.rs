//! The module `phex._core`: phex for Python.
//!
//! It converts and never computes: numpy arrays become blocks of rows, errors become exceptions of
//! `phex.errors`, and the interpreter lock is released while engines work. The Python package on top
//! of it (tables with names, PyTorch, scikit-learn) is in `python/phex`.

mod arrays;
mod builder;
mod cuda;
mod decide;
mod engine;
mod errors;
mod graph;
mod head;
mod layout;
mod options;
mod posterior;
mod recipe;
mod reconcile;
mod report;
mod scores;
mod strength;
mod strengths;
mod threads;

use pyo3::prelude::*;

#[pymodule]
mod _core {
    use super::*;

    #[pymodule_export]
    use super::{
        arrays::read_evidence,
        builder::GraphBuilder,
        cuda::CudaEngine,
        decide::{best_sets, decide},
        engine::Engine,
        errors::{bad_score, contradiction},
        graph::Graph,
        head::Head,
        layout::{exclusion_marks, graph_layout},
        posterior::{Gradients, Plan, Posterior},
        recipe::{epoch_rows, rows_with_leaf, score_scales},
        reconcile::{PlannedPart, ReconcilePlan, ReconciledRows, ReconcilerCore, looks_finished},
        report::{Finding, Report, RootCause, Step},
        scores::{to_logits, unscored},
        strength::Strength,
        strengths::Strengths,
        threads::{set_threads, threads},
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("DIFFERENCE_STEP", phex::learn::DIFFERENCE_STEP)?;
        module.add("SCORE_LIMIT", phex::numeric::SCORE_LIMIT)?;
        module.add("LEAF_SHARE", phex_train::Recipe::STANDARD.leaf_share)
    }
}
