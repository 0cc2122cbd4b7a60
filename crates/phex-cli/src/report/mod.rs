//! Reports: one HTML file that needs nothing else.
//!
//! `phex train`, `phex eval` and `phex tune` fill plain structs, each a [`Piece`] of a page: the
//! tables of [`tables`] and [`labels`], [`Curves`], [`ReliabilityDiagram`], [`StrengthCurve`],
//! [`GraphPicture`]. A [`Report`] of sections of pieces becomes one page: style, pictures and the
//! few lines of script that sort a table are inside it, and a policy in it forbids the network. All
//! names are escaped; numbers that are not there are dashes, pictures without numbers say "no data".
//!
//! Charts are drawn by hand ([`chart`]) and not by a library: dashes, markers, dark pages and
//! titles for screen readers are a few classes here, and text is not measured against the fonts of
//! the machine that writes the page.

mod axis;
mod chart;
mod curves;
mod graph;
mod labels;
#[cfg(test)]
mod markup;
mod panels;
mod reliability;
#[cfg(test)]
mod samples;
mod strength;
mod tables;
mod text;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;
use phex_io::Output;

pub(crate) use curves::{Curves, Epoch, Stage};
pub(crate) use graph::GraphPicture;
pub(crate) use labels::{LabelRow, LabelTable};
pub(crate) use panels::figure_svg;
pub(crate) use reliability::{Bin, ReliabilityDiagram};
pub(crate) use strength::StrengthCurve;
pub(crate) use tables::{Comparison, Measured, Metric, MetricColumn, Settings, Summary, Warnings};

use text::escape;

const PAGE_STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("sort.js");

/// A piece of a page.
pub(crate) trait Piece {
    /// The piece as HTML that is well-formed XML too.
    fn html(&self) -> String;
}

/// A part of a page with a heading.
#[derive(Debug, Clone)]
pub(crate) struct Section {
    title: String,
    body: String,
}

impl Section {
    /// An empty section.
    pub(crate) fn new(title: &str) -> Section {
        Section { title: title.to_owned(), body: String::new() }
    }

    /// Adds a paragraph.
    pub(crate) fn text(mut self, text: &str) -> Section {
        let _ = writeln!(self.body, "<p>{}</p>", escape(text));
        self
    }

    /// Adds a piece.
    pub(crate) fn with(mut self, piece: &impl Piece) -> Section {
        self.body.push_str(&piece.html());
        self
    }
}

/// A page.
#[derive(Debug, Clone)]
pub(crate) struct Report {
    /// The heading, and the name of the page.
    pub(crate) title: String,
    /// What stands below it: data, date, machine.
    pub(crate) subtitle: String,
    /// The sections in order.
    pub(crate) sections: Vec<Section>,
}

impl Report {
    /// The page as one HTML text.
    pub(crate) fn html(&self) -> String {
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

    /// Writes the page, all at once.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn write(&self, path: &Path) -> anyhow::Result<()> {
        write_whole(path, &self.html())
    }
}

/// Writes a text to a file that appears once it is complete.
///
/// # Errors
/// When the file cannot be written.
pub(crate) fn write_whole(path: &Path, text: &str) -> anyhow::Result<()> {
    let write = || {
        let mut out = Output::create(path)?;
        out.write_all(text.as_bytes())?;
        out.finish()
    };
    write().with_context(|| format!("{}: cannot be written", path.display()))
}

/// A picture with its caption, which scrolls by itself where the page is narrow.
fn figure(picture: &str, caption: &str) -> String {
    let caption = escape(caption);
    format!(
        "<figure><div class=\"wide\">{picture}</div><figcaption>{caption}</figcaption></figure>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::markup::elements;
    use super::*;

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
        let html = Report { title, subtitle, sections: vec![section; 3] }.html();
        assert_eq!(elements(&html).iter().filter(|name| *name == "script").count(), 1);
        assert!(!html.contains("<script>alert"));
    }

    #[test]
    fn pages_are_written_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.html");
        let report = samples::report();
        report.write(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), report.html());
        let nowhere = folder.path().join("missing").join("report.html");
        let error = report.write(&nowhere).unwrap_err().to_string();
        assert!(error.contains("report.html: cannot be written"), "{error}");
    }

    #[test]
    #[ignore = "writes pages to look at into the folder that PHEX_LOOK names"]
    fn look() {
        let folder = std::env::var("PHEX_LOOK").expect("PHEX_LOOK names a folder");
        let folder = Path::new(&folder);
        samples::report().write(&folder.join("report.html")).unwrap();
        samples::edges().write(&folder.join("edges.html")).unwrap();
        write_whole(&folder.join("strength.svg"), &samples::strength().svg()).unwrap();
    }
}
