//! The table of labels, which the reader can sort.
//!
//! A short script sorts and filters the rows. Without it the table stays as it is.

use std::fmt::Write as _;

use super::Piece;
use super::tables::nothing;
use crate::text::{count, escape, share};

/// A page with more rows would be slow.
const MOST_ROWS: usize = 3000;

/// The results of one label.
#[derive(Debug, Clone)]
pub struct LabelRow {
    /// Its unique name.
    pub name: String,
    /// Its title for people.
    pub title: Option<String>,
    /// How many rows have it on.
    pub support: u64,
    /// Average precision. Like the values below, it is NaN where it is not defined.
    pub average_precision: f64,
    /// Precision.
    pub precision: f64,
    /// Recall.
    pub recall: f64,
    /// F1.
    pub f1: f64,
}

/// The results of all labels.
#[derive(Debug, Clone, Default)]
pub struct LabelTable {
    /// The rows in the order in which they are first shown.
    pub rows: Vec<LabelRow>,
}

impl LabelTable {
    /// The rows that are shown: all, or those with the most support, in the given order.
    fn shown(&self) -> Vec<&LabelRow> {
        if self.rows.len() <= MOST_ROWS {
            return self.rows.iter().collect();
        }
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        order.sort_by_key(|&at| std::cmp::Reverse(self.rows[at].support));
        order.truncate(MOST_ROWS);
        order.sort_unstable();
        order.into_iter().map(|at| &self.rows[at]).collect()
    }
}

impl Piece for LabelTable {
    fn html(&self) -> String {
        if self.rows.is_empty() {
            return nothing();
        }
        let mut out =
            String::from("<div class=\"wide tall\"><table class=\"labels\">\n<thead><tr>");
        for (name, class) in [
            ("label", ""),
            ("support", " class=\"n\""),
            ("average precision", " class=\"n\""),
            ("precision", " class=\"n\""),
            ("recall", " class=\"n\""),
            ("F1", " class=\"n\""),
        ] {
            let _ = write!(out, "<th scope=\"col\"{class}>{name}</th>");
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        let shown = self.shown();
        for row in &shown {
            let name = match &row.title {
                Some(title) if *title != row.name => {
                    format!("{} <small>{}</small>", escape(title), escape(&row.name))
                }
                _ => escape(&row.name).into_owned(),
            };
            let support = row.support;
            let _ = write!(
                out,
                "<tr><th scope=\"row\">{name}</th><td class=\"n\" data-value=\"{support}\">{}</td>",
                count(support)
            );
            for value in [row.average_precision, row.precision, row.recall, row.f1] {
                if value.is_finite() {
                    let part = value.clamp(0.0, 1.0);
                    let _ = write!(
                        out,
                        "<td class=\"n part\" data-value=\"{value}\" style=\"--share:{part:.3}\">{}</td>",
                        share(value)
                    );
                } else {
                    let _ = write!(out, "<td class=\"n\">{}</td>", share(f64::NAN));
                }
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody></table></div>\n");
        if shown.len() < self.rows.len() {
            let _ = writeln!(
                out,
                "<p class=\"note\">The {} labels of most support of {}.</p>",
                count(shown.len() as u64),
                count(self.rows.len() as u64)
            );
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;
    use crate::well_formed::elements;

    #[test]
    fn names_are_escaped_and_undefined_numbers_left_out() {
        let html = samples::labels().html();
        elements(&html);
        assert!(html.contains("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;"), "{html}");
        assert!(!html.contains("<script") && !html.contains("NaN"));
        assert!(html.contains("data-value=\"1204\">1\u{202f}204</td>"));
        assert!(LabelTable::default().html().contains("no data"));
    }

    #[test]
    fn of_many_labels_those_of_most_support_are_shown() {
        let mut table = samples::labels();
        let row = table.rows[0].clone();
        table.rows = (0..5000u64)
            .map(|at| LabelRow { name: format!("n{at}"), title: None, support: at, ..row.clone() })
            .collect();
        let html = table.html();
        assert_eq!(html.matches("<tr>").count(), MOST_ROWS + 1);
        assert!(html.contains(">n2000<") && !html.contains(">n1999<"));
        assert!(html.contains("The 3\u{202f}000 labels of most support of 5\u{202f}000"));
    }
}
