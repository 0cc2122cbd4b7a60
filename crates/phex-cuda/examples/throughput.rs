//! Measures rows per second of the engines on the first GPU, on the 1860 labels of ILSVRC2012.
//!
//! `throughput EDGES.tsv [ROWS...] [NAMES...]`: a table of parents and children with a header; numbers of rows; parts of the
//! names of the engines to measure. Prints, for each engine and batch, the time of a pass on rows that are on the device,
//! rows per second, and the largest error of a marginal compared with doubles on the CPU. `PHEX_CUDA_BLOCK_ROWS` (`global`
//! or a number) sets how `family` distributes rows over blocks.

use std::time::Instant;

use phex::graph::{ExclusionRule, GraphBuilder, Strength};
use phex::infer::{Block, Engine, GroupForm, MessageOrder, Method, Options, Want};
use phex::model::Model;
use phex::testkit::edges_of;
use phex_cuda::{CudaEngine, Device, DeviceCall, DeviceMemory, DeviceRows, Precision, Workspace};

type Failure = Box<dyn std::error::Error>;

fn model(
    edges: &[(String, String)],
    tree: bool,
    leaves: bool,
    rule: ExclusionRule,
    u: f64,
) -> Result<Model, Failure> {
    let mut builder = GraphBuilder::new();
    let mut seen = std::collections::HashSet::new();
    for (parent, child) in edges {
        // A tree keeps the first parent of each label.
        if seen.insert(child) || !tree {
            builder.hierarchy(parent, child, Some(Strength::U(u)));
        }
    }
    builder.exclusion_rule(rule, Some(Strength::U(u)));
    if leaves {
        builder.one_of_leaves("leaves");
    }
    Ok(Model::new(&builder.build()?)?)
}

fn scores(count: usize) -> Vec<f32> {
    let mut random = phex::testkit::Random::new(1);
    (0..count).map(|_| (random.next() * 6.0 - 4.0) as f32).collect()
}

fn lbp(form: GroupForm, damping: f64) -> Options {
    let mut options = Options { method: Method::Lbp, ..Options::default() };
    options.messages.schedule = MessageOrder::Flooding;
    options.messages.groups = form;
    options.messages.damping = damping;
    options.messages.tolerance = 0.0;
    options.messages.iterations = 20;
    options
}

fn measure(
    device: &Device,
    name: &str,
    model: Model,
    options: &Options,
    sizes: &[usize],
) -> Result<(), Failure> {
    let names: Vec<String> =
        std::env::args().skip(2).filter(|word| word.parse::<usize>().is_err()).collect();
    if !names.is_empty() && !names.iter().any(|part| name.contains(part.as_str())) {
        return Ok(());
    }
    let engine = Engine::compile(model, options)?;
    let gpu = match CudaEngine::new(device, &engine) {
        Ok(gpu) => gpu,
        Err(error) => {
            println!("{name}: {error}");
            return Ok(());
        }
    };
    let labels = engine.model().len();
    let few = scores(labels * 16);
    let wide: Vec<f64> = few.iter().map(|&score| f64::from(score)).collect();
    let truth = engine.run(&Block::new(labels, &wide), Want::default())?;
    let ours = gpu.run(&Block::new(labels, &few))?;
    let pairs = ours.marginals.iter().zip(&truth.marginals);
    let error = pairs.map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max);
    let logs = ours.log_partition.iter().zip(&truth.log_partition);
    let log_error = logs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    for &rows in sizes {
        let compiled = Instant::now();
        let registers = gpu.prepare(rows, Precision::Single)?;
        let compiled = compiled.elapsed().as_secs_f64();
        let data = DeviceMemory::of(device, &scores(labels * rows))?;
        let marginals = DeviceMemory::new(device, labels * rows * 4)?;
        let (log_partition, status) =
            (DeviceMemory::new(device, rows * 8)?, DeviceMemory::new(device, rows * 4)?);
        let room = DeviceMemory::new(device, gpu.infer_bytes(rows, Precision::Single))?;
        let device_rows = DeviceRows {
            scores: data.address(),
            evidence: 0,
            marginals: marginals.address(),
            log_partition: log_partition.address(),
            status: status.address(),
            rows,
        };
        let stream = device.stream();
        let (address, bytes) = (room.address(), room.bytes());
        let workspace = Workspace { address, bytes };
        let call = DeviceCall { precision: Precision::Single, workspace, stream };
        let mut times = Vec::new();
        let repeats = if rows > 10_000 { 5 } else { 30 };
        for round in 0..repeats + 2 {
            let inner = if rows > 10_000 { 3 } else { 10 };
            device.synchronise(stream)?;
            let start = Instant::now();
            for _ in 0..inner {
                // SAFETY: the memory has the sizes of the rows and outlives the wait below.
                unsafe { gpu.infer(device_rows, call)? };
            }
            device.synchronise(stream)?;
            if round >= 2 {
                times.push(start.elapsed().as_secs_f64() / f64::from(inner));
            }
        }
        let mut answers = vec![0i32; rows];
        status.read(stream, &mut answers)?;
        let refused = answers.iter().filter(|&&answer| answer != 0).count();
        times.sort_by(f64::total_cmp);
        let time = times[times.len() / 2];
        println!(
            "{name:42} {rows:6} rows {:9.1} us {:8.3} M rows/s  error {error:.1e} log Z {log_error:.1e}  regs/spill {registers:?} compile {compiled:.1} s scratch {} MB, {refused} rows not answered",
            time * 1e6,
            rows as f64 / time / 1e6,
            bytes >> 20,
        );
    }
    Ok(())
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("give the table of edges")?;
    let sizes: Vec<usize> = arguments.filter_map(|size| size.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![1, 256, 4096, 16384, 65536] } else { sizes };
    let edges = edges_of(&std::fs::read_to_string(path)?);
    let device = Device::open(0)?;
    println!(
        "{}: {} multiprocessors, {:?} bytes of memory",
        device.name(),
        device.multiprocessors(),
        device.memory()?
    );
    let family = Options { method: Method::Family, ..Options::default() };
    let (siblings, minimal) = (ExclusionRule::Siblings, ExclusionRule::NoCommonDescendant);
    measure(&device, "family, tree", model(&edges, true, false, siblings, 0.5)?, &family, &sizes)?;
    measure(
        &device,
        "family, tree, one-of leaves",
        model(&edges, true, true, siblings, 0.5)?,
        &family,
        &sizes,
    )?;
    let mut joined = Options { method: Method::ForestBp, ..Options::default() };
    joined.messages.tolerance = 0.0;
    joined.messages.iterations = 20;
    joined.sampling.check = 0;
    let dag = model(&edges, false, false, siblings, 0.1)?;
    measure(&device, "forest-bp, DAG, siblings", dag, &joined, &sizes)?;
    let pairs = GroupForm::Pairs;
    let count = GroupForm::Cardinality;
    measure(
        &device,
        "lbp, DAG, siblings",
        model(&edges, false, false, siblings, 0.1)?,
        &lbp(pairs, 0.0),
        &sizes,
    )?;
    measure(
        &device,
        "lbp, DAG, siblings, damped",
        model(&edges, false, false, siblings, 0.1)?,
        &lbp(pairs, 0.3),
        &sizes,
    )?;
    measure(
        &device,
        "lbp, DAG, minimal exclusions",
        model(&edges, false, false, minimal, 0.1)?,
        &lbp(pairs, 0.0),
        &sizes,
    )?;
    measure(
        &device,
        "lbp, DAG, minimal, one-of leaves",
        model(&edges, false, true, minimal, 0.1)?,
        &lbp(pairs, 0.0),
        &sizes,
    )?;
    measure(
        &device,
        "lbp, DAG, siblings, counted",
        model(&edges, false, false, siblings, 0.1)?,
        &lbp(count, 0.3),
        &sizes,
    )?;
    let hard = Options { method: Method::States, ..Options::default() };
    let mut builder = GraphBuilder::new();
    for (parent, child) in &edges {
        builder.hierarchy(parent, child, None);
    }
    builder.exclusion_rule(minimal, None);
    measure(&device, "states, DAG, hard", Model::new(&builder.build()?)?, &hard, &sizes)
}
