//! Model cards: what people should know about a model, as Markdown with a YAML header.

use std::fmt::Write;

use phex::graph::RelationGraph;

/// How many labels a card lists at most.
const SHOWN: usize = 20;

/// One result of an evaluation.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// The data, such as `test`.
    pub data: String,
    /// The metric, such as `AU(PRC)`.
    pub measure: String,
    /// Its value, as text: a number, or a dash and why there is none.
    pub value: String,
}

/// The content of a model card. Empty sections are left out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelCard {
    /// The title.
    pub title: String,
    /// Tags other than `phex`.
    pub tags: Vec<String>,
    /// What the model is for.
    pub uses: String,
    /// How it was trained.
    pub training: String,
    /// How well it performs.
    pub evaluation: Vec<Evaluation>,
    /// What it should not be used for.
    pub limits: String,
}

impl ModelCard {
    /// The text of the card.
    ///
    /// ```
    /// use phex::graph::GraphBuilder;
    /// use phex_io::ModelCard;
    ///
    /// let mut builder = GraphBuilder::new();
    /// builder.hierarchy("animal", "dog", None);
    /// let card = ModelCard { title: "Animals".into(), ..ModelCard::default() };
    /// let text = card.markdown(&builder.build()?);
    /// assert!(text.starts_with("---\nlibrary_name: phex\ntags:\n- phex\n---\n\n# Animals\n"));
    /// assert!(text.contains("2 labels"));
    /// # Ok::<(), phex::Error>(())
    /// ```
    pub fn markdown(&self, graph: &RelationGraph) -> String {
        let mut text = String::from("---\nlibrary_name: phex\ntags:\n- phex\n");
        for tag in self.tags.iter().filter(|tag| *tag != "phex") {
            // A string in double quotes is the same in JSON and in YAML.
            let tag = serde_json::Value::from(tag.as_str());
            let _ = writeln!(text, "- {tag}");
        }
        let title = if self.title.is_empty() { "phex model" } else { &one_line(&self.title) };
        let _ = write!(text, "---\n\n# {title}\n");
        section(&mut text, "Uses", &self.uses);
        section(&mut text, "Labels", &labels(graph));
        section(&mut text, "Training", &self.training);
        if !self.evaluation.is_empty() {
            let mut table = String::from("| data | measure | value |\n|---|---|---|\n");
            for Evaluation { data, measure, value } in &self.evaluation {
                let _ = writeln!(table, "| {} | {} | {} |", cell(data), cell(measure), cell(value));
            }
            section(&mut text, "Evaluation", &table);
        }
        section(&mut text, "Limits", &self.limits);
        text
    }
}

fn section(text: &mut String, title: &str, content: &str) {
    if !content.trim().is_empty() {
        let _ = write!(text, "\n## {title}\n\n{}\n", content.trim_end());
    }
}

fn labels(graph: &RelationGraph) -> String {
    let mut text = format!(
        "{} labels, {} hierarchy relations, {} declared exclusions, {} one-of groups. \
         `graph.json` has all of them.\n\n",
        graph.len(),
        graph.hierarchy().len(),
        graph.exclusions().len(),
        graph.one_of().len()
    );
    let shown: Vec<String> = graph
        .labels()
        .iter()
        .take(SHOWN)
        .map(|label| format!("`{}`", one_line(&label.name).replace('`', "'")))
        .collect();
    text.push_str(&shown.join(", "));
    if graph.len() > SHOWN {
        let _ = write!(text, " and {} more", graph.len() - SHOWN);
    }
    text
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn cell(text: &str) -> String {
    one_line(text).replace('|', "\\|")
}
