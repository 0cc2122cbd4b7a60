//! What is compared: each entry is tuned by the same trials.

use super::job::Method;
use super::relations::Strengths;
use super::settings::{CostMap, ZeroShotSettings};

/// A line of the tables.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Entry {
    /// Given strengths, with or without class logits.
    Given { strengths: Strengths, class_logits: bool },
    /// Strengths learned from a constant one.
    Learned { u: f64 },
    /// DAP.
    Attributes,
    /// ESZSL.
    Bilinear,
}

impl Entry {
    /// All of an experiment.
    pub(super) fn all(settings: &ZeroShotSettings) -> Vec<Entry> {
        let constant = |all: &[f64]| -> Vec<Strengths> {
            all.iter().map(|&u| Strengths::Constant { u }).collect()
        };
        let variable = |map: CostMap, all: &[f64]| -> Vec<Strengths> {
            all.iter().map(|&u| Strengths::Variable { map, u }).collect()
        };
        let mut without = vec![Strengths::Hard];
        without.extend(constant(&settings.strengths));
        for curve in &settings.maps {
            without.extend(variable(curve.map, &curve.strengths));
        }
        let mut with = Vec::new();
        if !settings.class_logits.is_empty() {
            with.push(Strengths::Hard);
            with.extend(constant(&settings.class_logits));
            let first = settings.maps.first();
            with.extend(first.iter().flat_map(|curve| variable(curve.map, &settings.class_logits)));
        }
        let given = |class_logits| move |strengths| Entry::Given { strengths, class_logits };
        let mut entries: Vec<Entry> = without.into_iter().map(given(false)).collect();
        entries.extend(settings.learned.map(|u| Entry::Learned { u }));
        entries.extend([Entry::Attributes, Entry::Bilinear]);
        entries.extend(with.into_iter().map(given(true)));
        entries
    }

    /// Its name in reports.
    pub(super) fn name(self) -> String {
        match self {
            Entry::Given { strengths, .. } => strengths.describe(),
            Entry::Learned { u } => format!("learned strengths, from u = {u}"),
            Entry::Attributes => String::from("DAP"),
            Entry::Bilinear => String::from("bilinear (ESZSL)"),
        }
    }

    /// What validation tries: each method is a run with several settings.
    pub(super) fn trials(self, settings: &ZeroShotSettings) -> Vec<Method> {
        let lengths = &settings.lengths;
        let rates = settings.learning_rates.iter();
        let through = |strengths, class_logits, learned| {
            let method = |&learning_rate: &f64| Method::Relations {
                strengths,
                class_logits,
                learned,
                learning_rate,
                lengths: lengths.clone(),
            };
            rates.clone().map(method).collect()
        };
        match self {
            Entry::Given { strengths, class_logits } => through(strengths, class_logits, false),
            Entry::Learned { u } => through(Strengths::Constant { u }, false, true),
            Entry::Attributes => {
                let method = |&learning_rate: &f64| Method::Attributes {
                    learning_rate,
                    lengths: lengths.clone(),
                };
                rates.map(method).collect()
            }
            Entry::Bilinear => vec![Method::Bilinear {
                feature_ridges: settings.feature_ridges.clone(),
                attribute_ridges: settings.attribute_ridges.clone(),
            }],
        }
    }
}
