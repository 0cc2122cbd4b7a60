//! Reads the Biq Mac instances.

use std::collections::HashMap;
use std::path::Path;

use anyhow::Context as _;
use phex::anneal::{Builder, Problem};
use phex_io::IsingFormat;
use serde::Serialize;

/// A problem over 0/1 variables with its proven optimum.
#[derive(Debug, Serialize)]
pub(super) struct AnnealInstance {
    pub(super) family: String,
    pub(super) name: String,
    pub(super) optimum: f64,
    linear: Vec<f64>,
    pairs: Vec<(usize, usize, f64)>,
}

impl AnnealInstance {
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
pub(super) fn read(data: &Path) -> anyhow::Result<Vec<AnnealInstance>> {
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
                instances.push(instance(name, optimum, &path)?);
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

/// Optima of `*.sparse` files are minima, those of graphs maximum cuts.
fn instance(name: &str, listed: f64, path: &Path) -> anyhow::Result<AnnealInstance> {
    let is_cut = listed > 0.0;
    let format = if is_cut { IsingFormat::MaxCut } else { IsingFormat::Sparse };
    let ising = phex_io::read_ising(path, Some(format))?;
    // J y_a y_b = 4J x_a x_b − 2J x_a − 2J x_b + J, and h y = 2h x − h, because the peers need 0/1 variables. The constants
    // cancel, because the energy of all zeros is 0 in both files.
    let mut linear: Vec<f64> = ising.h.iter().map(|h| 2.0 * h).collect();
    let mut pairs = Vec::with_capacity(ising.j.len());
    for &(a, b, j) in &ising.j {
        linear[a] -= 2.0 * j;
        linear[b] -= 2.0 * j;
        pairs.push((a, b, 4.0 * j));
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
    Ok(AnnealInstance { family, name: name.to_owned(), optimum, linear, pairs })
}
