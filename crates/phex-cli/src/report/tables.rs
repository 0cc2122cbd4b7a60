//! Tables: results, methods beside each other, settings, warnings.

use std::fmt::{self, Write as _};

use super::Piece;
use super::text::{NOTHING, escape, number};

/// A mean over runs or folds, and their standard deviation where there are several.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Measured {
    /// The mean, or the only value; NaN where there is none.
    pub(crate) mean: f64,
    /// The standard deviation.
    pub(crate) deviation: Option<f64>,
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&number(self.mean))?;
        match self.deviation {
            Some(deviation) if self.mean.is_finite() => write!(f, " ± {}", number(deviation)),
            _ => Ok(()),
        }
    }
}

/// One result.
#[derive(Debug, Clone)]
pub(crate) struct Metric {
    /// Its name.
    pub(crate) name: String,
    /// What came out.
    pub(crate) value: Measured,
    /// What it means, in a few words.
    pub(crate) meaning: String,
}

/// Results, each with what it means.
#[derive(Debug, Clone, Default)]
pub(crate) struct Summary {
    /// The results, the most important first.
    pub(crate) metrics: Vec<Metric>,
}

impl Piece for Summary {
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
pub(crate) struct MetricColumn {
    /// The name of the metric.
    pub(crate) name: String,
    /// Whether more is better; less is for losses and errors.
    pub(crate) higher_is_better: bool,
}

/// Methods beside each other.
#[derive(Debug, Clone, Default)]
pub(crate) struct Comparison {
    /// The columns.
    pub(crate) metrics: Vec<MetricColumn>,
    /// Each method with a value a column; what is missing is left blank.
    pub(crate) methods: Vec<(String, Vec<Measured>)>,
}

impl Comparison {
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

impl Piece for Comparison {
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
                "<th scope=\"col\" class=\"n\">{} <span title=\"{word} is better\">{arrow}</span></th>",
                escape(&metric.name)
            );
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        let best: Vec<Option<f64>> = (0..self.metrics.len()).map(|at| self.best(at)).collect();
        for (method, values) in &self.methods {
            let _ = write!(out, "<tr><th scope=\"row\">{}</th>", escape(method));
            for (column, best) in best.iter().enumerate() {
                let value = values.get(column).copied();
                let text = value.map_or(String::from(NOTHING), |value| value.to_string());
                // What reads the same as the best is as good.
                let is_best = value
                    .zip(*best)
                    .is_some_and(|(value, best)| number(value.mean) == number(best));
                let text = if is_best { format!("<strong>{text}</strong>") } else { text };
                let _ = write!(out, "<td class=\"n\">{text}</td>");
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody></table></div>\n<p class=\"note\">Mean ± standard deviation; the best of each column in bold.</p>\n");
        out
    }
}

/// Settings of a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    /// Keys and values, in the order in which they are shown.
    pub(crate) entries: Vec<(String, String)>,
}

impl Piece for Settings {
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

/// What a reader has to know before trusting the numbers; nothing is shown without any.
#[derive(Debug, Clone, Default)]
pub(crate) struct Warnings {
    /// One sentence each.
    pub(crate) messages: Vec<String>,
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

/// What stands where there would be a table.
pub(super) fn nothing() -> String {
    String::from("<p class=\"nothing\">no data</p>\n")
}

#[cfg(test)]
mod tests {
    use super::super::markup::elements;
    use super::super::samples;
    use super::*;

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
        assert!(Summary::default().html().contains("no data"));
        assert!(Comparison::default().html().contains("no data"));
        assert!(Settings::default().html().contains("no data"));
        assert_eq!(Warnings::default().html(), "");
        let nan = Measured { mean: f64::NAN, deviation: Some(0.1) };
        assert_eq!(nan.to_string(), NOTHING);
    }

    #[test]
    fn texts_are_escaped() {
        let evil = String::from("</table><script>alert(1)</script>");
        let value = Measured { mean: 1.0, deviation: None };
        let metric = Metric { name: evil.clone(), value, meaning: evil.clone() };
        let column = MetricColumn { name: evil.clone(), higher_is_better: true };
        let pieces = [
            Summary { metrics: vec![metric] }.html(),
            Comparison { metrics: vec![column], methods: vec![(evil.clone(), vec![value])] }.html(),
            Settings { entries: vec![(evil.clone(), evil.clone())] }.html(),
            Warnings { messages: vec![evil] }.html(),
        ];
        for html in pieces {
            elements(&html);
            assert!(!html.contains("<script"), "{html}");
        }
    }
}
