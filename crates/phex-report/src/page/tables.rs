//! Tables of results, of methods side by side, and of settings; and warnings.

use std::fmt::Write as _;

use phex::metrics::Spread;
use serde_json::Value;

use super::Piece;
use crate::text::{NOTHING, escape, number, spread};

/// A metric and its value.
#[derive(Debug, Clone)]
pub struct MetricValue {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: Spread,
    /// What it means, in a few words.
    pub meaning: String,
}

/// A table of metrics, their values and their meanings.
#[derive(Debug, Clone, Default)]
pub struct MetricTable {
    /// The metrics, the most important first.
    pub metrics: Vec<MetricValue>,
}

impl Piece for MetricTable {
    fn html(&self) -> String {
        if self.metrics.is_empty() {
            return nothing();
        }
        // Deviations have a column of their own, so that values stand below each other.
        let mut out = String::from(
            "<div class=\"wide\"><table class=\"summary\">\n<thead><tr><th scope=\"col\">metric</th>\
             <th scope=\"col\" class=\"n\">value</th><td></td><th scope=\"col\">what it means</th>\
             </tr></thead>\n<tbody>\n",
        );
        for metric in &self.metrics {
            let deviation = metric.value.deviation.filter(|_| metric.value.mean.is_finite());
            let _ = writeln!(
                out,
                "<tr><th scope=\"row\">{}</th><td class=\"n\">{}</td><td class=\"deviation\">{}</td>\
                 <td>{}</td></tr>",
                escape(&metric.name),
                number(metric.value.mean),
                deviation.map_or(String::new(), |deviation| format!("± {}", number(deviation))),
                escape(&metric.meaning)
            );
        }
        out.push_str("</tbody></table></div>\n");
        out
    }
}

/// A column of a comparison.
#[derive(Debug, Clone)]
pub struct MetricColumn {
    /// The name of the metric.
    pub name: String,
    /// Whether more is better; less is better for losses and errors.
    pub higher_is_better: bool,
}

/// A table that compares methods.
#[derive(Debug, Clone, Default)]
pub struct MethodTable {
    /// The columns.
    pub metrics: Vec<MetricColumn>,
    /// Each method with one value per column; missing values at the end are left blank.
    pub methods: Vec<(String, Vec<Spread>)>,
}

impl MethodTable {
    /// The best mean of a column.
    fn best(&self, column: usize) -> Option<f64> {
        let means = self.methods.iter().filter_map(|(_, values)| values.get(column));
        let means = means.map(|value| value.mean).filter(|mean| mean.is_finite());
        if self.metrics[column].higher_is_better {
            means.max_by(f64::total_cmp)
        } else {
            means.min_by(f64::total_cmp)
        }
    }
}

impl Piece for MethodTable {
    fn html(&self) -> String {
        if self.methods.is_empty() {
            return nothing();
        }
        let mut out = String::from(
            "<div class=\"wide\"><table class=\"comparison\">\n<thead><tr><th scope=\"col\">method</th>",
        );
        for metric in &self.metrics {
            let (arrow, word) =
                if metric.higher_is_better { ("↑", "more") } else { ("↓", "less") };
            let _ = write!(
                out,
                "<th scope=\"col\" class=\"n\">{}\u{a0}<span title=\"{word} is better\">{arrow}</span></th>",
                escape(&metric.name)
            );
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        let best: Vec<Option<f64>> = (0..self.metrics.len()).map(|at| self.best(at)).collect();
        for (method, values) in &self.methods {
            let _ = write!(out, "<tr><th scope=\"row\">{}</th>", escape(method));
            for (column, best) in best.iter().enumerate() {
                let value = values.get(column).copied();
                let text = value.map_or(String::from(NOTHING), |value| spread(&value));
                // Values that read the same as the best are as good.
                let is_best = value
                    .zip(*best)
                    .is_some_and(|(value, best)| number(value.mean) == number(best));
                let text = if is_best { format!("<strong>{text}</strong>") } else { text };
                let _ = write!(out, "<td class=\"n\">{text}</td>");
            }
            out.push_str("</tr>\n");
        }
        let deviates = |(_, values): &(String, Vec<Spread>)| {
            values.iter().any(|value| value.deviation.is_some())
        };
        let note = match self.methods.iter().any(deviates) {
            true => "Mean ± standard deviation; the best of each column in bold.",
            false => "The best of each column in bold.",
        };
        let _ = writeln!(out, "</tbody></table></div>\n<p class=\"note\">{note}</p>");
        out
    }
}

/// A table of settings: keys and values.
#[derive(Debug, Clone, Default)]
pub struct SettingsTable {
    /// Keys and values, in the order in which they are shown.
    pub entries: Vec<(String, String)>,
}

impl SettingsTable {
    /// All values of a JSON object by their path: `optimiser.batch`; items of lists are counted from 1.
    pub fn from_json(value: &Value) -> SettingsTable {
        let mut entries = Vec::new();
        flatten("", value, &mut entries);
        SettingsTable { entries }
    }
}

fn flatten(key: &str, value: &Value, entries: &mut Vec<(String, String)>) {
    let join = |part: &str| if key.is_empty() { part.to_owned() } else { format!("{key}.{part}") };
    match value {
        Value::Object(parts) => {
            parts.iter().for_each(|(part, value)| flatten(&join(part), value, entries));
        }
        Value::Array(parts) if parts.iter().any(Value::is_object) => {
            for (at, value) in parts.iter().enumerate() {
                flatten(&join(&(at + 1).to_string()), value, entries);
            }
        }
        Value::Null => {}
        Value::String(text) => entries.push((key.to_owned(), text.clone())),
        other => entries.push((key.to_owned(), other.to_string())),
    }
}

impl Piece for SettingsTable {
    fn html(&self) -> String {
        if self.entries.is_empty() {
            return nothing();
        }
        let mut out = String::from("<div class=\"wide\"><table class=\"settings\">\n<tbody>\n");
        for (key, value) in &self.entries {
            let _ = writeln!(
                out,
                "<tr><th scope=\"row\">{}</th><td><code>{}</code></td></tr>",
                escape(key),
                escape(value)
            );
        }
        out.push_str("</tbody></table></div>\n");
        out
    }
}

/// Warnings that a reader should see before the numbers; nothing is shown if there are none.
#[derive(Debug, Clone, Default)]
pub struct Warnings {
    /// One sentence each.
    pub messages: Vec<String>,
}

impl Piece for Warnings {
    fn html(&self) -> String {
        if self.messages.is_empty() {
            return String::new();
        }
        let items: String =
            self.messages.iter().map(|text| format!("<li>{}</li>\n", escape(text))).collect();
        let word = if self.messages.len() == 1 { "Warning" } else { "Warnings" };
        format!("<aside class=\"warnings\"><strong>{word}</strong>\n<ul>\n{items}</ul></aside>\n")
    }
}

/// Stands in for an empty table.
pub(super) fn nothing() -> String {
    String::from("<p class=\"nothing\">no data</p>\n")
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;
    use crate::well_formed::elements;

    #[test]
    fn the_best_of_each_column_is_bold() {
        let html = samples::comparison().html();
        elements(&html);
        assert_eq!(html.matches("<strong>").count(), 4, "one a column, two in a tie");
        assert!(html.contains("<strong>0.8120 ± 0.0041</strong>"), "{html}");
        assert!(html.contains("<strong>0.0312</strong>"), "less is better: {html}");
        assert!(html.contains("<td class=\"n\">–</td>"), "a missing value");
    }

    #[test]
    fn nothing_is_no_data() {
        assert!(MetricTable::default().html().contains("no data"));
        assert!(MethodTable::default().html().contains("no data"));
        assert!(SettingsTable::default().html().contains("no data"));
        assert_eq!(Warnings::default().html(), "");
        let nan = Spread { mean: f64::NAN, deviation: Some(0.1), count: 3 };
        assert_eq!(spread(&nan), NOTHING);
    }

    #[test]
    fn texts_are_escaped() {
        let evil = String::from("</table><script>alert(1)</script>");
        let value = Spread::single(1.0);
        let metric = MetricValue { name: evil.clone(), value, meaning: evil.clone() };
        let column = MetricColumn { name: evil.clone(), higher_is_better: true };
        let pieces = [
            MetricTable { metrics: vec![metric] }.html(),
            MethodTable { metrics: vec![column], methods: vec![(evil.clone(), vec![value])] }
                .html(),
            SettingsTable { entries: vec![(evil.clone(), evil.clone())] }.html(),
            Warnings { messages: vec![evil] }.html(),
        ];
        for html in pieces {
            elements(&html);
            assert!(!html.contains("<script"), "{html}");
        }
    }
}
