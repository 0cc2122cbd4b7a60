//! What fuzzing calls: every reader on untrusted bytes, and exact inference on graphs that bytes describe.
//!
//! A function panics where a promise is broken, and returns otherwise. `fuzz.rs` calls them with the files in
//! `fuzz/seeds`, in every test run; the targets in `fuzz/fuzz_targets` call them with the bytes of libFuzzer.
//! Where a reader has several formats, the first line of the bytes names one.

use std::io::Cursor;
use std::path::Path;
use std::sync::OnceLock;

use phex::graph::{ExclusionRule, GraphBuilder, RelationGraph, Semantics, Strength};
use phex::infer::{Block, Engine, Evidence, Method, Options, RowStatus, Trust, Want};
use phex::model::Model;
use phex::testkit::TruthTable;
use phex_io::{
    DatasetOptions, EvidenceReader, FeatureReader, Features, Format, IsingFormat, Limits,
    Precision, ReadOptions, ScoreReader, ScoreRows, ScoreValues, ScoreWriter, TableFormat, Target,
    TargetOptions, TargetSource, Targets,
};
use phex_train::{
    Checkpoint, Config, Error, Examples, HeadConfig, Observer, Silent, Stage, TrainedModel, Trainer,
};

/// A target by its name.
pub type Call = fn(&[u8]);

/// Every target.
pub const TARGETS: [(&str, Call); 8] = [
    ("graphs", graphs),
    ("tables", tables),
    ("evidence", evidence),
    ("bundles", bundles),
    ("checkpoints", checkpoints),
    ("uai", uai),
    ("ising", ising),
    ("infer_oracle", infer_oracle),
];

/// Enough for every seed, and little to wait for.
fn limits() -> Limits {
    Limits {
        file_bytes: 1 << 20,
        labels: 2000,
        values: 1 << 16,
        row_group_bytes: 1 << 20,
        ..Limits::default()
    }
}

/// The first line and the rest.
fn first_line(bytes: &[u8]) -> (&str, &[u8]) {
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    let rest = bytes.get(end + 1..).unwrap_or_default();
    (std::str::from_utf8(&bytes[..end]).unwrap_or_default(), rest)
}

/// Graph files of every format: a graph that is read is written and read again as the same.
pub fn graphs(bytes: &[u8]) {
    let (format, bytes) = first_line(bytes);
    let options = ReadOptions { limits: limits(), ..ReadOptions::default() };
    let builder = match format.parse::<Format>() {
        Ok(format) => phex_io::parse_graph(bytes, "fuzz", format, &options),
        Err(_) => phex_io::read_graph_from(bytes, "fuzz", &options),
    };
    let Ok(builder) = builder else { return };
    let (report, graph) = builder.check_and_build();
    let _ = report.to_text(true);
    let Some(graph) = graph else { return };
    let text = phex_io::graph_to_string(&graph, Format::Json).expect("JSON holds every graph");
    let again = phex_io::parse_graph(text.as_bytes(), "again", Format::Json, &options);
    let again = again.expect("what is written can be read").build().expect("it was a graph");
    assert_eq!(format!("{graph:?}"), format!("{again:?}"));
}

fn labels() -> Vec<String> {
    ["a", "b", "c"].map(String::from).to_vec()
}

/// Tables of scores, and of training data: pieces of a table are the whole.
pub fn tables(bytes: &[u8]) {
    let (format, bytes) = first_line(bytes);
    if let Ok(format) = format.parse::<TableFormat>() {
        let input = Cursor::new(bytes.to_vec());
        let reader =
            ScoreReader::from_reader(input, "fuzz", Some(format), &labels(), &[], &limits());
        if let Ok(mut reader) = reader {
            while let Ok(Some(rows)) = reader.next_rows(3) {
                let values = match &rows.values {
                    ScoreValues::F32(values) => values.len(),
                    ScoreValues::F64(values) => values.len(),
                };
                assert_eq!(values, 3 * rows.count);
            }
        }
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("fuzz");
    std::fs::write(&path, bytes).expect("a file");
    let Ok(format) = format.parse() else { return };
    let options =
        DatasetOptions { format: Some(format), limits: limits(), ..DatasetOptions::default() };
    let paths = std::slice::from_ref(&path);
    let targets = Some(TargetOptions::new(TargetSource::Column(String::from("is"))));
    let _ = phex_io::read_dataset(
        paths,
        &DatasetOptions { targets, ..options.clone() },
        Some(&graph()),
    );
    let Ok(whole) = phex_io::read_dataset(paths, &options, None) else { return };
    let options = DatasetOptions { schema: Some(whole.schema.clone()), ..options };
    let mut reader = FeatureReader::open(&path, &options).expect("it was read before");
    let mut values = Vec::new();
    while let Some(piece) = reader.next_rows(2).expect("it was read before") {
        values.extend(piece.features.values.iter().map(|value| value.to_bits()));
    }
    let expected: Vec<u32> = whole.features.values.iter().map(|value| value.to_bits()).collect();
    assert_eq!(values, expected);
}

/// Tables of evidence.
pub fn evidence(bytes: &[u8]) {
    let (format, bytes) = first_line(bytes);
    let Ok(format) = format.parse::<TableFormat>() else { return };
    let input = Cursor::new(bytes.to_vec());
    let reader =
        EvidenceReader::from_reader(input, "fuzz", Some(format), &labels(), &[], &limits());
    let Ok(mut reader) = reader else { return };
    while let Ok(Some(rows)) = reader.next_rows(3) {
        assert_eq!(rows.values.len(), 3 * rows.count);
    }
}

/// Models of the UAI competitions: a model of variables with two states is written and read again.
pub fn uai(bytes: &[u8]) {
    let names = labels();
    let _ = phex_io::parse_samples(bytes, "fuzz", &names);
    let Ok(read) = phex_io::parse_uai_model(bytes, "fuzz") else { return };
    // The names of the states of larger variables are not yet read back.
    let binary = read.variables.iter().all(|states| states.len() == 2);
    let model = read.model;
    let zeros = vec![0.0; model.len()];
    if binary
        && model.len() <= 64
        && let Ok(text) = phex_io::uai_to_string(&model, &zeros)
    {
        phex_io::parse_uai(text.as_bytes(), "again").expect("what is written can be read");
    }
}

/// Ising models of every format: a model that is read is written and read again.
pub fn ising(bytes: &[u8]) {
    let (format, bytes) = first_line(bytes);
    let Ok(format) = format.parse::<IsingFormat>() else { return };
    let Ok(ising) = phex_io::parse_ising(bytes, "fuzz", format) else { return };
    for format in IsingFormat::ALL.into_iter().filter(|format| format.can_write()) {
        let Ok(text) = phex_io::ising_to_string(&ising, format) else { continue };
        let again = phex_io::parse_ising(text.as_bytes(), "again", format);
        assert_eq!(again.expect("what is written can be read").names.len(), ising.names.len());
    }
}

/// A parent with two children that exclude each other.
fn graph() -> RelationGraph {
    let mut builder = GraphBuilder::new();
    builder.hierarchy("a", "b", None).hierarchy("a", "c", Some(Strength::U(0.5)));
    builder.exclusion("b", "c", None);
    builder.build().expect("a graph")
}

/// Twelve rows of three features.
fn examples() -> &'static (RelationGraph, Features, Targets) {
    static EXAMPLES: OnceLock<(RelationGraph, Features, Targets)> = OnceLock::new();
    EXAMPLES.get_or_init(|| {
        let graph = graph();
        let mut targets = Targets::new(graph.len());
        let values = (0..36).map(|at| (at * 7 % 11) as f32 / 4.0).collect();
        (0..12).for_each(|row| targets.push(&[Target { label: row % 3, on: true }], false));
        let names = labels();
        (graph, Features { names, rows: 12, columns: 3, values }, targets)
    })
}

fn trainer() -> Trainer<'static> {
    let (graph, features, targets) = examples();
    let config = Config {
        head: HeadConfig { hidden: vec![3], ..HeadConfig::default() },
        stages: vec![Stage { epochs: 3, ..Stage::default() }],
        ..Config::default()
    };
    let examples = Examples::new(features, targets, graph).expect("examples");
    Trainer::new(config, graph, &Options::default(), examples, None).expect("a run")
}

/// The parts of a trained model.
const PARTS: [&str; 3] = ["config.json", "graph.json", "model.safetensors"];

/// The parts of a trained model and their bytes.
fn good_bundle() -> &'static [(&'static str, Vec<u8>)] {
    static GOOD: OnceLock<Vec<(&str, Vec<u8>)>> = OnceLock::new();
    GOOD.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("m");
        let model = trainer().run(&mut Silent).expect("a model");
        let bundle = model.to_bundle(String::new()).expect("a bundle");
        phex_io::write_bundle(&path, &bundle).expect("a written bundle");
        PARTS.iter().map(|part| (*part, std::fs::read(path.join(part)).expect("a part"))).collect()
    })
}

/// Trained models of which one part, which the first line names, is replaced. A model that is read gives probabilities.
pub fn bundles(bytes: &[u8]) {
    let good = good_bundle();
    let (replaced, bytes) = first_line(bytes);
    let folder = tempfile::tempdir().expect("a folder");
    for (part, good) in good {
        let content = if *part == replaced { bytes } else { good };
        std::fs::write(folder.path().join(part), content).expect("a file");
    }
    let Ok(model) = TrainedModel::read(folder.path()) else { return };
    let (_, features, _) = examples();
    let Ok(predictor) = model.predictor(&Options::default()) else { return };
    let Ok(probabilities) = predictor.predict(features) else { return };
    assert!(probabilities.iter().all(|p| (-1e-4..=1.0001).contains(p)), "{probabilities:?}");
}

/// Keeps the checkpoints of all epochs.
#[allow(dead_code)] // Fuzzing itself makes no seeds.
struct Keeper<'a>(&'a Path);

impl Observer for Keeper<'_> {
    fn save(&mut self, checkpoint: &Checkpoint) -> Result<(), Error> {
        checkpoint.write(&self.0.join(format!("epoch-{}", checkpoint.epochs())))
    }
}

/// Writes the seeds that are not text: trained models, checkpoints and Parquet.
#[allow(dead_code)]
pub fn write_seeds(seeds: &Path) {
    let folder = |name: &str| {
        let folder = seeds.join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        folder
    };
    trainer().run(&mut Keeper(&folder("checkpoints"))).expect("a model");
    for (part, bytes) in good_bundle() {
        let seed = [part.as_bytes(), b"\n", bytes].concat();
        std::fs::write(folder("bundles").join(part), seed).expect("a file");
    }
    let made = tempfile::tempdir().expect("a folder");
    let path = made.path().join("p.parquet");
    let mut writer =
        ScoreWriter::create(&path, TableFormat::Parquet, &labels(), &[], Precision::F32)
            .expect("a writer");
    let values = ScoreValues::F32(vec![1.0, 0.0, 1.0, 0.0, f32::NAN, 1.0]);
    writer.write_rows(&ScoreRows { count: 2, values, kept: Vec::new() }).expect("rows");
    writer.finish().expect("a file");
    let seed = [&b"parquet\n"[..], &std::fs::read(&path).expect("a file")].concat();
    std::fs::write(folder("tables").join("scores-parquet"), &seed).expect("a file");
    std::fs::write(folder("evidence").join("parquet"), &seed).expect("a file");
}

/// Checkpoints: a run that resumes from one ends, with numbers or an error.
pub fn checkpoints(bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("checkpoint.safetensors");
    std::fs::write(&path, bytes).expect("a file");
    let Ok(checkpoint) = Checkpoint::read(&path) else { return };
    let mut trainer = trainer();
    if trainer.resume(&checkpoint).is_err() {
        return;
    }
    let Ok(model) = trainer.run(&mut Silent) else { return };
    assert!(model.history.len() >= 3);
}

/// Bytes that are used up one by one; then zeros.
struct Bytes<'a>(std::slice::Iter<'a, u8>);

impl Bytes<'_> {
    fn next(&mut self) -> usize {
        usize::from(self.0.next().copied().unwrap_or(0))
    }

    fn strength(&mut self) -> Option<Strength> {
        match self.next() {
            0..=99 => Some(Strength::Hard),
            byte @ 100..=179 => Some(Strength::U((byte - 99) as f64 / 80.0)),
            byte => Some(Strength::W((byte - 180) as f64 / 8.0)),
        }
    }
}

/// The most labels of a graph that is enumerated.
const MOST: usize = 12;

/// A graph, a row of scores and evidence that bytes describe.
fn problem(bytes: &[u8]) -> (GraphBuilder, Vec<f64>, Vec<Evidence>) {
    let mut bytes = Bytes(bytes.iter());
    let n = 1 + bytes.next() % MOST;
    let name = |label: usize| format!("l{}", label % n);
    let mut builder = GraphBuilder::new();
    (0..n).for_each(|label| {
        builder.label(&name(label));
    });
    for _ in 0..bytes.next() % 24 {
        let (kind, strength) = (bytes.next(), bytes.strength());
        let (a, b) = (bytes.next(), bytes.next());
        let set: Vec<String> =
            (0..n).filter(|label| (a | b << 8) >> label & 1 == 1).map(name).collect();
        let set = || set.iter().map(String::as_str);
        match kind % 16 {
            // Mostly without cycles.
            0..=5 if a % n != b % n => {
                builder.hierarchy(&name((a % n).min(b % n)), &name((a % n).max(b % n)), strength)
            }
            6..=8 => builder.exclusion(&name(a), &name(b), strength),
            9 | 10 => builder.exclusion_group(None, set(), strength),
            11 => builder.one_of(&format!("g{a}"), set(), None),
            12 => builder.exclusion_rule(ExclusionRule::Siblings, strength),
            13 => builder.exclusion_rule(ExclusionRule::NoCommonDescendant, strength),
            14 => builder.semantics(Semantics::Dense),
            15 => builder.single_label(),
            _ => &mut builder,
        };
    }
    let size = [1.0, 10.0, 100.0, 1e4][bytes.next() % 4];
    let scores = (0..n).map(|_| size * (bytes.next() as f64 - 128.0) / 64.0).collect();
    let evidence = (0..n).map(|_| match bytes.next() {
        250..=252 => Evidence::On,
        253..=255 => Evidence::Off,
        _ => Evidence::Unknown,
    });
    (builder, scores, evidence.collect())
}

/// `check`, `build` and every exact engine against enumeration: marginals, log Z and whether a row is possible.
pub fn infer_oracle(bytes: &[u8]) {
    let (builder, scores, evidence) = problem(bytes);
    let (report, graph) = builder.check_and_build();
    let _ = report.to_text(true);
    let Some(graph) = graph else { return };
    let Ok(model) = Model::new(&graph) else { return };
    let truth = TruthTable::new(&graph, &model).answer(&scores, &evidence);
    let size: f64 = scores.iter().map(|score| score.abs()).sum();
    let block = Block::new(scores.len(), &scores).with_evidence(&evidence);
    for method in Method::exact() {
        let options = Options { method, ..Options::default() };
        let Ok(engine) = Engine::compile(model.clone(), &options) else { continue };
        let found = engine.run(&block, Want::default()).expect("a good row");
        let Some(truth) = &truth else {
            assert_eq!(found.status[0], RowStatus::Impossible, "{method} on {graph:?}");
            continue;
        };
        assert_eq!(found.status[0], RowStatus::Answered, "{method} on {graph:?}");
        let bound = match found.trust[0] {
            Trust::Exact => 0.0,
            Trust::Certified(bound) => bound,
            Trust::Approximate(_) => panic!("{method} is exact"),
        };
        let allowed = 1e-9 + bound + 8.0 * f64::EPSILON * size;
        for (label, (p, e)) in found.marginals.iter().zip(&truth.marginals).enumerate() {
            assert!(
                (p - e).abs() <= allowed,
                "{method}, label {label}: {p}, not {e}; {graph:?}, {scores:?}"
            );
        }
        let (z, e) = (found.log_partition[0], truth.log_partition);
        let allowed = 1e-7 + 8.0 * f64::EPSILON * (size + e.abs());
        assert!((z - e).abs() <= allowed, "{method}: log Z {z}, not {e}; {graph:?}, {scores:?}");
    }
}
