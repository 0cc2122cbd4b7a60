//! Pages, charts and pictures of label graphs, as self-contained HTML and SVG.
//!
//! The crate takes plain data (graphs, evaluations, curves, numbers by label) and returns strings. It reads
//! and writes no files.
//!
//! - [`graph_picture`] draws a label graph as SVG. [`GraphLayout`] and [`exclusion_marks`] are its layout
//!   without any unit, for other renderers.
//! - A [`Page`] is one HTML file of [`Section`]s of [`Piece`]s: tables, charts, pictures. [`evaluation_page`] and
//!   [`training_page`] make the pages of an evaluation and of a training.
//! - [`figure_svg`] draws curves against the strength of the relations, in panels side by side.
//!
//! All names are escaped. Missing numbers are dashes, and charts without numbers say "no data".
//!
//! ```
//! use phex_report::{Page, Section, SettingsTable};
//!
//! let settings = SettingsTable::from_json(&serde_json::json!({"optimiser": {"batch": 64}}));
//! let sections = vec![Section::new("Settings").with(&settings)];
//! let page = Page { title: "Animals".into(), subtitle: "a test".into(), sections };
//! assert!(page.html().contains("optimiser.batch"));
//! ```

mod chart;
mod markup;
mod page;
mod picture;
mod text;
#[cfg(test)]
mod well_formed;

pub use chart::{Figure, FigurePanel, FigureSeries, LineStyle, figure_svg};
pub use markup::escape_markup;
pub use page::{
    EpochPoint, GraphPicture, LabelRow, LabelTable, MethodTable, MetricColumn, MetricTable,
    MetricValue, Page, Piece, ReliabilityBin, ReliabilityDiagram, Section, SettingsTable,
    StageStart, StrengthCurve, TrainingContent, TrainingCurves, Warnings, evaluation_page,
    f1_by_label, training_page,
};
pub use picture::{
    ExclusionMark, GraphLayout, LabelValues, MarkForm, exclusion_marks, graph_picture,
    wants_picture,
};
