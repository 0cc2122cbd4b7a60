//! The core as a user of the crate sees it. One binary: what is generic is compiled once for all of them.

#![allow(clippy::unwrap_used)]

mod anneal;
mod bounds;
mod closure;
mod conformance;
mod covariance;
mod decide;
mod errata;
mod forests;
mod gibbs;
mod golden;
mod imagenet;
mod lbp;
mod learn;
mod metrics;
mod paths;
mod reconcile;
mod silent;
mod truth;
