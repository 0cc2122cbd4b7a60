//! The methods that are compared. Each is tuned by the same number of trials.

use super::job::ZeroShotMethod;
use super::relations::PredicateStrengths;
use super::settings::{CostMap, ZeroShotSettings};

/// A row of the tables.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum MethodEntry {
    /// Given strengths, with or without class logits.
    Given { strengths: PredicateStrengths, class_logits: bool },
    /// PredicateStrengths learned from a constant one.
    Learned { u: f64 },
    /// DAP.
    Attributes,
    /// ESZSL.
    Bilinear,
}

impl MethodEntry {
    /// All of an experiment.
    pub(super) fn all(settings: &ZeroShotSettings) -> Vec<MethodEntry> {
        let constant = |all: &[f64]| -> Vec<PredicateStrengths> {
            all.iter().map(|&u| PredicateStrengths::Constant { u }).collect()
        };
        let variable = |map: CostMap, all: &[f64]| -> Vec<PredicateStrengths> {
            all.iter().map(|&u| PredicateStrengths::Variable { map, u }).collect()
        };
        let mut without = vec![PredicateStrengths::Hard];
        without.extend(constant(&settings.strengths));
        for curve in &settings.maps {
            without.extend(variable(curve.map, &curve.strengths));
        }
        let mut with = Vec::new();
        if !settings.class_logits.is_empty() {
            with.push(PredicateStrengths::Hard);
            with.extend(constant(&settings.class_logits));
            let first = settings.maps.first();
            with.extend(first.iter().flat_map(|curve| variable(curve.map, &settings.class_logits)));
        }
        let given = |class_logits| move |strengths| MethodEntry::Given { strengths, class_logits };
        let mut entries: Vec<MethodEntry> = without.into_iter().map(given(false)).collect();
        entries.extend(settings.learned.map(|u| MethodEntry::Learned { u }));
        entries.extend([MethodEntry::Attributes, MethodEntry::Bilinear]);
        entries.extend(with.into_iter().map(given(true)));
        entries
    }

    /// Its name in reports.
    pub(super) fn name(self) -> String {
        match self {
            MethodEntry::Given { strengths, .. } => strengths.describe(),
            MethodEntry::Learned { u } => format!("learned strengths, from u = {u}"),
            MethodEntry::Attributes => String::from("DAP"),
            MethodEntry::Bilinear => String::from("bilinear (ESZSL)"),
        }
    }

    /// The trials on validation classes: runs, each with several settings.
    pub(super) fn trials(self, settings: &ZeroShotSettings) -> Vec<ZeroShotMethod> {
        let lengths = &settings.lengths;
        let rates = settings.learning_rates.iter();
        let through = |strengths, class_logits, learned| {
            let method = |&learning_rate: &f64| ZeroShotMethod::Relations {
                strengths,
                class_logits,
                learned,
                learning_rate,
                lengths: lengths.clone(),
            };
            rates.clone().map(method).collect()
        };
        match self {
            MethodEntry::Given { strengths, class_logits } => {
                through(strengths, class_logits, false)
            }
            MethodEntry::Learned { u } => through(PredicateStrengths::Constant { u }, false, true),
            MethodEntry::Attributes => {
                let method = |&learning_rate: &f64| ZeroShotMethod::Attributes {
                    learning_rate,
                    lengths: lengths.clone(),
                };
                rates.map(method).collect()
            }
            MethodEntry::Bilinear => vec![ZeroShotMethod::Bilinear {
                feature_ridges: settings.feature_ridges.clone(),
                attribute_ridges: settings.attribute_ridges.clone(),
            }],
        }
    }
}
