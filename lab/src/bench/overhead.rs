//! One call on a block of rows, to compare with the same call from Python (`lab/python/overhead.py`).
//!
//! Each line of standard input is a number of calls. Their seconds are printed as one line of JSON, with the first row of
//! the answer, which has to equal that of Python.

use std::io::{BufRead as _, Write as _};
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context as _;
use clap::Args;
use phex::infer::{Block, Engine, Options, Want};
use phex::model::Model;
use phex_io::{ReadOptions, read_graph};
use serde_json::json;

#[derive(Debug, Args)]
pub(crate) struct OverheadCommand {
    /// The graph
    #[arg(long)]
    graph: PathBuf,
    /// Rows of scores: float32, little-endian, row after row
    #[arg(long)]
    scores: PathBuf,
}

pub(crate) fn run(command: &OverheadCommand) -> anyhow::Result<()> {
    let graph = read_graph(&command.graph, &ReadOptions::default())?.build()?;
    let engine = Engine::compile(Model::new(&graph)?, &Options::default())?;
    let bytes =
        std::fs::read(&command.scores).with_context(|| command.scores.display().to_string())?;
    let number = |bytes: &[u8]| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let scores: Vec<f32> = bytes.chunks_exact(4).map(number).collect();
    let block = Block::new(graph.len(), &scores);
    // A pool of its own, as in Python with one thread.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    let call = || pool.install(|| engine.run(&block, Want::default()));
    let first = call()?;
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let calls: usize = line?.trim().parse()?;
        call()?;
        let mut seconds = Vec::with_capacity(calls);
        for _ in 0..calls {
            let start = Instant::now();
            let answer = call()?;
            drop(answer);
            seconds.push(start.elapsed().as_secs_f64());
        }
        let row: Vec<f64> = first.row(0).iter().map(|&value| f64::from(value)).collect();
        writeln!(out, "{}", json!({ "seconds": seconds, "first_row": row }))?;
        out.flush()?;
    }
    Ok(())
}
