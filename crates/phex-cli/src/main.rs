//! The `phex` command.
//!
//! Data goes to standard output, talk to standard error. Exit status: 0 fine, 1 findings, 2 error.

mod args;
mod data;
mod demo;
mod device;
mod eval;
mod files;
mod graph;
mod infer;
mod input;
mod interrupt;
mod model;
mod output;
mod pages;
mod predict;
mod reconcile;
mod samples;
mod say;
mod scores;
mod train;
mod tune;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

use args::{Arguments, Command};

/// How a command ended well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Nothing to complain about.
    Fine,
    /// A check found errors.
    Findings,
}

/// Prints the script of a shell.
fn completions(shell: clap_complete::Shell) -> anyhow::Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "phex", &mut script);
    output::text(&String::from_utf8_lossy(&script))?;
    Ok(Outcome::Fine)
}

fn main() -> ExitCode {
    interrupt::keep_limits_as_errors();
    let arguments =
        Arguments::try_parse().unwrap_or_else(|error| args::without_misleading(error).exit());
    let outcome = match &arguments.command {
        Command::Graph(command) => {
            infer::use_threads(None);
            graph::run(command)
        }
        Command::Infer(command) => infer::run(command),
        Command::Map(command) => infer::map(command),
        Command::Reconcile(command) => reconcile::run(command),
        Command::Train(command) => train::run(command),
        Command::Predict(command) => predict::run(command),
        Command::Eval(command) => eval::run(command),
        Command::Tune(command) => tune::run(command),
        Command::Samples(command) => samples::run(command),
        Command::Demo(command) => {
            infer::use_threads(None);
            demo::run(command)
        }
        Command::Completions(command) => completions(command.shell),
    };
    match outcome {
        Ok(Outcome::Fine) => ExitCode::SUCCESS,
        Ok(Outcome::Findings) => ExitCode::from(1),
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            say::say(format_args!("phex: {}", output::message(&error)));
            ExitCode::from(2)
        }
    }
}
