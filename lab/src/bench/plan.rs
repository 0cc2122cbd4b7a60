//! How long it takes to choose an engine: every hierarchy of the data sets and random ones, under each exclusion rule.
//!
//! Times are seconds of CPU, so that they hardly depend on who else uses the machine. One is measured as `phex graph
//! plan` works: the model is built, an engine is chosen, and if it is not exact, changes are tried that would make an
//! exact one possible.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use phex::graph::document::{Document, OneOfItem, OneOfLabels, OneOfSelection, RuleItem};
use phex::graph::{ExclusionRule, GraphBuilder, RelationGraph, Strength};
use phex::infer::{Engine, Options, changes_for_exactness};
use phex::model::Model;
use phex_io::{ReadOptions, graph_of_arff, read_graph};
use serde::Serialize;
use serde_json::json;

use crate::harness::data::{self, imagenet_edges, read_edges};
use crate::harness::statistics::median;
use crate::harness::timing::Stopwatch;
use crate::harness::{MarkdownTable, RandomStream, ResultFolder, ResultPage};

#[derive(Debug, Args)]
pub(crate) struct PlanCommand {
    /// Where the results go [default: target/lab/plan]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// How many random graphs
    #[arg(long, default_value_t = 200)]
    graphs: usize,
    /// Labels of the largest random graph
    #[arg(long, default_value_t = 100_000)]
    labels: usize,
}

/// Strengths of hierarchy and exclusion.
const STRENGTHS: [(&str, [Strength; 2]); 3] = [
    ("hard", [Strength::Hard; 2]),
    ("soft hierarchy", [Strength::U(0.5), Strength::Hard]),
    ("soft", [Strength::U(0.5); 2]),
];

/// One plan.
#[derive(Debug, Serialize)]
struct PlanRow {
    /// The rows of the table: a graph, or random graphs of about a size.
    group: String,
    labels: usize,
    rule: ExclusionRule,
    strengths: &'static str,
    one_leaf: bool,
    engine: String,
    exact: bool,
    /// CPU seconds to build the model, to choose the engine, and to look for changes.
    model: f64,
    engine_seconds: f64,
    changes: f64,
}

impl PlanRow {
    fn seconds(&self) -> f64 {
        self.model + self.engine_seconds + self.changes
    }
}

pub(crate) fn run(command: &PlanCommand) -> anyhow::Result<()> {
    let folder = ResultFolder::create(command.out.as_deref(), "plan")?;
    let mut rows = Vec::new();
    for (name, graph) in real_graphs()? {
        for rule in ExclusionRule::ALL {
            for strengths in &STRENGTHS {
                for one_leaf in [false, true] {
                    measure(&name, &graph, rule, strengths, one_leaf, &mut rows)?;
                }
            }
        }
    }
    let mut random = RandomStream::new(0, "plan");
    for at in 0..command.graphs {
        let graph = random_graph(&mut random, command.labels)?;
        let strengths = &STRENGTHS[random.below(3)];
        let one_leaf = random.below(2) == 1;
        let most = 10usize.pow((graph.len() as f64).log10().ceil() as u32);
        eprintln!("random graph {} of {}: {} labels", at + 1, command.graphs, graph.len());
        for rule in ExclusionRule::ALL {
            let group = format!("random, up to {most} labels");
            measure(&group, &graph, rule, strengths, one_leaf, &mut rows)?;
        }
    }
    let about = "Seconds of CPU to build a model, to choose its engine, and if that is not exact, to look for changes \
                 that would make it so. Hierarchies of data sets have six plans under each rule: hard, with soft \
                 hierarchy or all soft, with and without one leaf that must be on. Random graphs draw one of these. Up \
                 to a fifth of their labels have a second parent.";
    let mut page = ResultPage::of_bench("plan", "Choosing an engine", about);
    page.tables.push(table(&rows));
    Ok(folder.write_bench(&page, &json!({ "rows": rows }))?)
}

fn table(rows: &[PlanRow]) -> MarkdownTable {
    let columns = "graph | labels | rule | plans | median s | largest s | exact | engines";
    let mut table = MarkdownTable::new("", columns);
    let mut groups: Vec<(&str, ExclusionRule)> = Vec::new();
    for row in rows {
        if !groups.contains(&(&row.group, row.rule)) {
            groups.push((&row.group, row.rule));
        }
    }
    groups.sort_by_key(|(group, _)| group.starts_with("random").then_some(group.len()));
    for (group, rule) in groups {
        let here: Vec<&PlanRow> =
            rows.iter().filter(|row| row.group == group && row.rule == rule).collect();
        let seconds: Vec<f64> = here.iter().map(|row| row.seconds()).collect();
        let mut engines: BTreeMap<&str, usize> = BTreeMap::new();
        here.iter().for_each(|row| *engines.entry(&row.engine).or_default() += 1);
        let engines: Vec<String> =
            engines.iter().map(|(engine, count)| format!("{engine} {count}")).collect();
        let (least, most) = here.iter().fold((usize::MAX, 0), |(least, most), row| {
            (least.min(row.labels), most.max(row.labels))
        });
        table.row([
            String::from(group),
            if least == most { most.to_string() } else { format!("{least}–{most}") },
            String::from(rule.name()),
            here.len().to_string(),
            format!("{:.2}", median(seconds.clone())),
            format!("{:.2}", seconds.iter().copied().fold(0.0, f64::max)),
            here.iter().filter(|row| row.exact).count().to_string(),
            engines.join(", "),
        ]);
    }
    table
}

fn measure(
    group: &str,
    graph: &RelationGraph,
    rule: ExclusionRule,
    &(name, [hierarchy, exclusion]): &(&'static str, [Strength; 2]),
    one_leaf: bool,
    rows: &mut Vec<PlanRow>,
) -> anyhow::Result<()> {
    let mut document = Document::from(graph);
    document.hierarchy.iter_mut().for_each(|item| item.strength = Some(hierarchy));
    document.exclude = Some(RuleItem::Strong { rule, strength: exclusion });
    document.exclusion.clear();
    let leaves = OneOfItem {
        name: String::from("leaf"),
        labels: OneOfLabels::Selection(OneOfSelection::Leaves),
        strength: None,
    };
    document.one_of = if one_leaf { vec![leaves] } else { Vec::new() };
    let watch = Stopwatch::start();
    // A rule may contradict a hierarchy in which labels have several parents.
    let Ok(graph) = document.builder().build() else { return Ok(()) };
    let model = Model::new(&graph)?;
    let model_seconds = watch.read().cost();
    let watch = Stopwatch::start();
    let options = Options::default();
    let engine = Engine::compile(model, &options);
    let engine_seconds = watch.read().cost();
    let (engine, exact) = match &engine {
        Ok(engine) => (engine.plan().method.to_string(), engine.plan().exact),
        Err(phex::Error::Unfit { .. }) => (String::from("none"), false),
        Err(error) => anyhow::bail!("{group}: {error}"),
    };
    let watch = Stopwatch::start();
    if !exact {
        changes_for_exactness(&graph, &options);
    }
    let changes = watch.read().cost();
    let row = PlanRow {
        group: String::from(group),
        labels: graph.len(),
        rule,
        strengths: name,
        one_leaf,
        engine,
        exact,
        model: model_seconds,
        engine_seconds,
        changes,
    };
    if row.seconds() > 1.0 {
        let PlanRow { labels, engine, model, .. } = &row;
        eprintln!(
            "{group}, {labels} labels, {}, {name}, one leaf: {one_leaf}: {engine}; {model:.2} s for the model, {:.2} s for \
             the engine, {changes:.2} s for changes",
            rule.name(),
            row.engine_seconds
        );
    }
    rows.push(row);
    Ok(())
}

/// The hierarchies of the data sets that are here.
fn real_graphs() -> anyhow::Result<Vec<(String, RelationGraph)>> {
    let mut graphs = Vec::new();
    let mut add = |name: &str, builder: GraphBuilder| {
        graphs.push((String::from(name), builder.build()?));
        anyhow::Ok(())
    };
    if let Ok(edges) = imagenet_edges() {
        add("ImageNet", of_edges(&edges))?;
    }
    let tiny = data::path("tiny_imagenet/hierarchy_edges.tsv");
    if tiny.exists() {
        add("Tiny ImageNet", of_edges(&read_edges(&tiny)?))?;
    }
    for (name, file) in [
        ("GO slim", "taxonomies/goslim_generic.obo"),
        ("Google's products", "taxonomies/google_product_taxonomy_with_ids.en-US.txt"),
    ] {
        let file = data::path(file);
        if file.exists() {
            add(name, read_graph(&file, &ReadOptions::default())?)?;
        }
    }
    for (name, file) in [
        ("FunCat", "hmc/cellcycle_FUN/cellcycle_FUN.train.arff"),
        ("Gene Ontology", "hmc/cellcycle_GO/cellcycle_GO.train.arff"),
        ("Diatoms", "hmc/Diatoms_train.arff"),
        ("ImCLEF07A", "hmc/ImCLEF07A_Train.arff"),
    ] {
        let file = data::path(file);
        if file.exists() {
            add(name, graph_of_arff(&file)?)?;
        }
    }
    Ok(graphs)
}

fn of_edges(edges: &[(String, String)]) -> GraphBuilder {
    let mut builder = GraphBuilder::new();
    for (parent, child) in edges {
        builder.hierarchy(parent, child, None);
    }
    builder
}

/// A hierarchy of 100 labels or more, deep or with families of up to a hundred.
fn random_graph(random: &mut RandomStream, most: usize) -> anyhow::Result<RelationGraph> {
    let labels = (100.0 * (most as f64 / 100.0).powf(random.uniform())) as usize;
    let family = [None, Some(3), Some(10), Some(100)][random.below(4)];
    let second = [0.0, 0.02, 0.1, 0.2][random.below(4)];
    let mut builder = GraphBuilder::new();
    for label in 1..labels {
        let parent = family.map_or_else(|| random.below(label), |family| (label - 1) / family);
        let child = format!("l{label}");
        builder.hierarchy(&format!("l{parent}"), &child, None);
        let other = random.below(label);
        if random.uniform() < second && other != parent {
            builder.hierarchy(&format!("l{other}"), &child, None);
        }
    }
    Ok(builder.build()?)
}
