//! Pages: one HTML file that needs nothing else.
//!
//! A [`Page`] consists of sections, a section of pieces: tables ([`MetricTable`], [`MethodTable`], [`LabelTable`],
//! [`SettingsTable`]), charts ([`TrainingCurves`], [`ReliabilityDiagram`], [`StrengthCurve`]) and [`GraphPicture`].
//! Style, pictures and the short script that sorts a table are part of the page, and its content security
//! policy forbids the network.

mod curves;
mod evaluation;
mod graph;
mod labels;
mod reliability;
#[cfg(test)]
mod samples;
mod strength;
mod tables;

use std::fmt::Write as _;

pub use curves::{EpochPoint, StageStart, TrainingCurves};
pub use evaluation::{TrainingContent, evaluation_page, f1_by_label, training_page};
pub use graph::GraphPicture;
pub use labels::{LabelRow, LabelTable};
pub use reliability::{ReliabilityBin, ReliabilityDiagram};
pub use strength::StrengthCurve;
pub use tables::{MethodTable, MetricColumn, MetricTable, MetricValue, SettingsTable, Warnings};

use crate::chart;
use crate::text::escape;

const PAGE_STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("sort.js");

/// A piece of a page.
pub trait Piece {
    /// The piece as HTML that is also well-formed XML.
    fn html(&self) -> String;
}

/// A section of a page, with a heading.
#[derive(Debug, Clone)]
pub struct Section {
    title: String,
    body: String,
}

impl Section {
    /// An empty section.
    pub fn new(title: &str) -> Section {
        Section { title: title.to_owned(), body: String::new() }
    }

    /// Adds a paragraph.
    pub fn text(mut self, text: &str) -> Section {
        let _ = writeln!(self.body, "<p>{}</p>", escape(text));
        self
    }

    /// Adds a piece.
    pub fn with(mut self, piece: &impl Piece) -> Section {
        self.body.push_str(&piece.html());
        self
    }
}

/// A page.
#[derive(Debug, Clone)]
pub struct Page {
    /// The heading and title of the page.
    pub title: String,
    /// The line below the heading: data, date, machine.
    pub subtitle: String,
    /// The sections in order.
    pub sections: Vec<Section>,
}

impl Page {
    /// The page as one HTML text.
    pub fn html(&self) -> String {
        let (title, subtitle) = (escape(&self.title), escape(&self.subtitle));
        let chart_style = chart::STYLE;
        let mut out = format!(
            r#"<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<meta name="color-scheme" content="light dark"/>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"/>
<title>{title}</title>
<style>
{PAGE_STYLE}{chart_style}</style>
</head>
<body>
<header>
<h1>{title}</h1>
<p class="subtitle">{subtitle}</p>
"#
        );
        if self.sections.len() > 2 {
            out.push_str("<nav aria-label=\"Sections\">");
            for (at, section) in self.sections.iter().enumerate() {
                let name = escape(&section.title);
                let _ = write!(out, "<a href=\"#section-{}\">{name}</a> ", at + 1);
            }
            out.push_str("</nav>\n");
        }
        out.push_str("</header>\n<main>\n");
        for (at, Section { title, body }) in self.sections.iter().enumerate() {
            let title = escape(title);
            let _ = write!(
                out,
                "<section id=\"section-{}\">\n<h2>{title}</h2>\n{body}</section>\n",
                at + 1
            );
        }
        let version = env!("CARGO_PKG_VERSION");
        let _ = write!(
            out,
            "</main>\n<footer>Made by phex {version}. This page holds all it needs and loads nothing.\
             </footer>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n"
        );
        out
    }
}

/// A picture with its caption; on a narrow page the picture scrolls by itself.
fn captioned(picture: &str, caption: &str) -> String {
    let caption = escape(caption);
    format!(
        "<figure><div class=\"wide\">{picture}</div><figcaption>{caption}</figcaption></figure>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::well_formed::elements;

    #[test]
    fn a_page_is_well_formed_and_holds_all_it_needs() {
        let html = samples::report().html();
        let names = elements(&html);
        assert_eq!(names.iter().filter(|name| *name == "section").count(), 7);
        assert_eq!(names.iter().filter(|name| *name == "script").count(), 1, "our own alone");
        for outside in ["src=", "@import", "url(", "<link", "<img"] {
            assert!(!html.contains(outside), "{outside}");
        }
        assert!(!html.replace(SCRIPT, "").contains("NaN"));
        let addresses = html.matches("http").count();
        let names_of_space = html.matches("http://www.w3.org/2000/svg").count();
        assert_eq!(addresses, names_of_space + 1, "only the name of SVG, and http-equiv");
    }

    #[test]
    fn titles_are_escaped() {
        let evil = "</title><script>alert(1)</script>";
        let section = Section::new(evil).text(evil);
        let (title, subtitle) = (evil.to_owned(), evil.to_owned());
        let html = Page { title, subtitle, sections: vec![section; 3] }.html();
        assert_eq!(elements(&html).iter().filter(|name| *name == "script").count(), 1);
        assert!(!html.contains("<script>alert"));
    }

    #[test]
    #[ignore = "writes pages for people to look at into the folder named by PHEX_LOOK"]
    fn look() {
        let folder = std::env::var("PHEX_LOOK").expect("PHEX_LOOK names a folder");
        let write = |name: &str, text: String| {
            std::fs::write(std::path::Path::new(&folder).join(name), text).unwrap();
        };
        write("report.html", samples::report().html());
        write("edges.html", samples::edges().html());
        write("strength.svg", samples::strength().svg());
    }
}
