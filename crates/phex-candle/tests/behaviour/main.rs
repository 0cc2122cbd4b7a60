//! Losses and layers in candle networks. One binary: what is generic is compiled once for all of them.

#![allow(clippy::unwrap_used)]

mod common;
mod head;
mod layer;
mod learned;
mod loss;
