//! Finished probabilities made consistent, never worse.
//!
//! A classifier that was not trained with relations already uses all the evidence in its input. `infer`
//! would count it twice. [`Reconciler`] instead moves its probabilities `p` as little as possible:
//!
//! `q* = argmin { D(q, p) : q ∈ C },   D(q, p) = Σ_i w_i KL(Bern(q_i) ‖ Bern(p_i))`
//!
//! `C` contains every legal state. It is given by rows `Σ_{i ∈ K} q_i ≤ q_a` (or `≤ 1`, or `=`),
//! where the labels of `K` exclude each other and `a` is above them. So for **every** legal truth
//! and every row, the log loss falls by at least `D(q*, p)`. (`D` is the Bregman divergence of the
//! negative entropy with `q` in its first argument; for a 0/1 vector `y` it is the log loss, and the
//! three-point identity is the claim.) For the dual with multipliers `λ ≥ 0`, `z = ℓ − W⁻¹Aᵀλ`,
//!
//! `d(λ) = Σ_i w_i [softplus(ℓ_i) − softplus(z_i)] − bᵀλ`
//!
//! is a lower bound of the improvement for any `λ`, converged or not. What [`Reconciled::gain`]
//! reports is computed from the output itself, after rounding and repair (see `rows::account`).
//!
//! | relations | engine | answer |
//! |---|---|---|
//! | forest of hierarchy | `pool`: pool adjacent violators on the tree | exact, O(n log n) |
//! | hierarchy of any shape, also with exclusions of two labels | `closure`: split by maximum closures | exact |
//! | forest with exclusive siblings, one-of leaves | `family`: Newton by messages, rows in lanes | 8–15 passes of O(n) |
//! | softmax heads on levels | `categorical`: log-linear pool | exact, O(n) |
//! | anything else, soft relations, weights | `newton`: Newton on the multipliers, sparse factor | to a tolerance |

mod best;
mod categorical;
mod closure;
mod compile;
mod family;
mod fit;
mod forest;
mod gradient;
mod newton;
mod options;
mod plan;
mod pool;
mod reconciler;
mod rows;

pub use best::best_sets;
pub use fit::{
    BrokenRelation, FitCandidate, FitForm, FitOptions, FitReport, FittedParameters,
    FittedReconciler, IllegalTruths, LevelParameters, fit,
};
pub use options::{ReconcileLoss, ReconcileOptions};
pub use plan::{PlannedPart, ReconcileEngine, ReconcilePlan, SumLimit};
pub use reconciler::Reconciler;
pub use rows::input::{FinishedWatch, clipped_rows, refuse_softmax};
pub use rows::result::{FinishedRows, Reconciled};
