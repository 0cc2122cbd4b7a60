//! The Biq Mac instances as problems.

use std::collections::HashMap;
use std::path::Path;

use anyhow::Context as _;
use phex::anneal::{Builder, Problem};
use serde::Serialize;

/// A problem over 0/1 variables with its proven optimum.
#[derive(Debug, Serialize)]
pub(super) struct Instance {
    pub(super) family: String,
    pub(super) name: String,
    pub(super) optimum: f64,
    linear: Vec<f64>,
    pairs: Vec<(usize, usize, f64)>,
}

impl Instance {
    pub(super) fn problem(&self) -> anyhow::Result<Problem> {
        let mut builder = Builder::new(self.linear.len());
        for (at, &value) in self.linear.iter().enumerate() {
            builder.linear(at, value);
        }
        for &(a, b, value) in &self.pairs {
            builder.pair(a, b, value);
        }
        Ok(builder.build()?)
    }
}

/// The instances of the folders `beasley`, `gka` and `ising` that have a listed optimum.
pub(super) fn read(data: &Path) -> anyhow::Result<Vec<Instance>> {
    let mut instances = Vec::new();
    for folder in ["beasley", "gka", "ising"] {
        let folder = data.join(folder);
        let readme = std::fs::read_to_string(folder.join("README.md"))
            .with_context(|| folder.display().to_string())?;
        let optima = optima(&readme);
        let mut paths: Vec<_> = std::fs::read_dir(&folder)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<_, _>>()?;
        paths.sort();
        for path in paths {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let name = name.trim_end_matches(".sparse");
            if let Some(&optimum) = optima.get(name) {
                let text = std::fs::read_to_string(&path)?;
                let instance = instance(name, optimum, &text);
                instances.push(instance.with_context(|| path.display().to_string())?);
            }
        }
    }
    Ok(instances)
}

/// Rows `| name | … | value |` with a proven value.
fn optima(readme: &str) -> HashMap<&str, f64> {
    let mut optima = HashMap::new();
    for line in readme.lines() {
        let cells: Vec<&str> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
        if let [name, .., value] = cells.as_slice()
            && let Ok(value) = value.parse()
        {
            optima.insert(*name, value);
        }
    }
    optima
}

/// `*.sparse` files: `Σ w_ii x_i + 2 Σ w_ij x_i x_j`. The others: a graph whose maximum cut is
/// sought, `−Σ w_ij (x_i + x_j − 2 x_i x_j)`.
fn instance(name: &str, listed: f64, text: &str) -> anyhow::Result<Instance> {
    let mut lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let first = lines.next().context("empty")?;
    let n: usize = first.first().context("no size")?.parse()?;
    let mut linear = vec![0.0; n];
    let mut pairs = Vec::new();
    let is_cut = listed > 0.0;
    for line in lines.filter(|line| !line.is_empty()) {
        let [a, b, value] = line.as_slice() else { anyhow::bail!("not `i j w`: {line:?}") };
        let (a, b): (usize, usize) = (a.parse()?, b.parse()?);
        let value: f64 = value.parse()?;
        anyhow::ensure!((1..=n).contains(&a) && (1..=n).contains(&b), "variable out of range");
        let (a, b) = (a - 1, b - 1);
        match (a == b, is_cut) {
            (true, true) => {}
            (true, false) => linear[a] += value,
            (false, false) => pairs.push((a, b, 2.0 * value)),
            (false, true) => {
                linear[a] -= value;
                linear[b] -= value;
                pairs.push((a, b, 2.0 * value));
            }
        }
    }
    let family = match name {
        name if name.starts_with("bqp") => name.split('-').next().unwrap_or(name).to_owned(),
        name if name.starts_with("gka") => {
            format!("gka {}", name.chars().last().unwrap_or_default())
        }
        name if name.starts_with("ising") => "ising chains".to_owned(),
        _ => "ising tori".to_owned(),
    };
    let optimum = if is_cut { -listed } else { listed };
    Ok(Instance { family, name: name.to_owned(), optimum, linear, pairs })
}
