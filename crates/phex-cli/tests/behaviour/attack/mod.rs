//! Attacks on the command: edited and lying files, kills, full disks, closed pipes, two writers and limits.
//!
//! Every attack has a seed, so that a finding can be repeated. A finding is a status other than 0, 1 and 2, a panic, more
//! than [`SLOW`], control characters on standard error, a torn output, a blocked rerun or a leftover after it. `make test`
//! makes a few hundred attacks, `make attack` ten thousand.

#![cfg(unix)]

mod accidents;
mod edits;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::animals::Dice;

/// An attack that takes longer is a finding, on a machine that does nothing else.
const SLOW: Duration = Duration::from_secs(20);
/// Kibibytes of address space of an attacked process.
const MEMORY: u64 = 4 << 20;
/// Attacks with edited files in `make test`.
const FEW: usize = 150;
/// Kills at system calls in `make test`.
const FEW_KILLS: usize = 12;

/// What came of the attacks of each kind.
#[derive(Default)]
struct Score {
    attacks: BTreeMap<String, usize>,
    findings: Vec<String>,
}

impl Score {
    fn count(&mut self, kind: &str) {
        *self.attacks.entry(kind.to_owned()).or_default() += 1;
    }

    fn find(&mut self, kind: &str, what: impl AsRef<str>) {
        self.findings.push(format!("{kind}: {}", what.as_ref()));
    }

    /// The table, and the findings.
    fn end(&self) {
        println!("\n{:<32}{:>10}{:>10}", "attack", "inputs", "findings");
        for (kind, count) in &self.attacks {
            let start = format!("{kind}:");
            let findings = self.findings.iter().filter(|finding| finding.starts_with(&start));
            println!("{kind:<32}{count:>10}{:>10}", findings.count());
        }
        let all: usize = self.attacks.values().sum();
        println!("{:<32}{all:>10}{:>10}", "all", self.findings.len());
        assert!(self.findings.is_empty(), "{}", self.findings.join("\n"));
    }
}

/// How a process ended.
struct Ended {
    status: Option<i32>,
    error: String,
    took: Duration,
}

impl Ended {
    /// Why this is a finding, if it is one.
    fn fault(&self) -> Option<String> {
        let Ended { status, error, took } = self;
        let shown: String = error.chars().take(300).collect();
        match status {
            Some(0..=2) if error.contains("panicked") => Some(format!("panic: {shown}")),
            Some(0..=2) if *took > SLOW => Some(format!("it took {took:?}")),
            Some(0..=2) if error.contains(|c: char| c.is_control() && c != '\n' && c != '\t') => {
                Some(format!("control characters: {shown:?}"))
            }
            Some(0..=2) => None,
            status => Some(format!("status {status:?}: {shown}")),
        }
    }
}

/// Runs the command in a shell with limits such as `ulimit -u 1;`.
fn limited(folder: &Path, limits: &str, arguments: &[&str]) -> Ended {
    let start = Instant::now();
    let output = Command::new("sh")
        .current_dir(folder)
        .arg("-c")
        .arg(format!("{limits} exec timeout -s KILL 60 \"$0\" \"$@\""))
        .arg(assert_cmd::cargo::cargo_bin!("phex"))
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    Ended { status: output.status.code(), error, took: start.elapsed() }
}

/// A number below a limit.
fn below(dice: &mut Dice, limit: usize) -> usize {
    ((dice.roll() * limit as f64) as usize).min(limit.saturating_sub(1))
}

#[test]
fn attacks_have_no_findings() {
    let count = |name: &str| std::env::var(name).ok().and_then(|count| count.parse().ok());
    let (edits, kills) = (count("PHEX_ATTACK"), count("PHEX_KILLS"));
    let long = edits.is_some();
    let mut score = Score::default();
    edits::attack(&mut score, edits.unwrap_or(FEW));
    accidents::attack(&mut score, long, kills.unwrap_or(FEW_KILLS));
    score.end();
}
