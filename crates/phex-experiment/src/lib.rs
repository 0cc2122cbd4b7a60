//! Experiments: what label relations are worth on real data, in runs that can be repeated and resumed.
//!
//! An [`Experiment`] is read from a TOML file (those of the paper are built in), its runs go through a
//! [`Runner`], which keeps each in a [`Journal`], and what they found is an [`Outcome`]: tables and
//! figures as plain data. Every method of an experiment is tuned by the same number of trials on
//! validation data and then tested.

mod error;
mod experiment;
mod graphs;
mod inference;
mod journal;
mod outcome;
mod random;
mod relabelled;
mod runner;
mod speed;
mod statistics;
mod stopwatch;
mod zero_shot;

pub use error::Error;
pub use experiment::Experiment;
pub use journal::Journal;
pub use outcome::{Figure, FigurePanel, FigureSeries, Line, Outcome, Table};
pub use runner::{Part, Runner, Unwatched, Watch};
pub use statistics::{Comparison, Summary};
