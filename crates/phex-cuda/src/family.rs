//! `family` on the device: the flat plan of the processor's engine as tables, and its launches.
//!
//! Single precision first; rows whose numbers leave its range are listed on the device and done again in
//! doubles, in the same order of the stream and without a word from the host.

use std::collections::HashMap;

use phex::infer::Method;
use phex::infer::compiled::{Forest, Kind, Plan};

use crate::Error;
use crate::buffer::{Buffer, Offset, Plain, Tables};
use crate::device::{Device, Stream};
use crate::program::{Arguments, Function, Shape, Source};
use crate::rows::{Precision, RawRows};

const FILES: [&str; 5] = [
    include_str!("../kernels/common.cu"),
    include_str!("../kernels/family.cu"),
    include_str!("../kernels/family_outside.cu"),
    include_str!("../kernels/family_simple.cu"),
    include_str!("../kernels/family_rows.cu"),
];

/// Rows of a block: the lanes of a warp.
const LANES: usize = 32;
/// Labels of a tile.
const TILE: usize = 32;
/// More layers would not fit the registers.
const MOST_LAYERS: usize = 4;

/// A kernel's shape and type of arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Variant {
    score: Precision,
    real: Precision,
    shape: usize,
}

/// Warps of a block, blocks that a multiprocessor is to hold, and the warps that get more of the shared memory, for
/// larger families, with their parts of it in thousandths: for many rows, and for few, where all warps of a
/// multiprocessor work on the same ones.
const SHAPES: [(usize, usize, &[usize]); 2] =
    [(8, 2, &[370, 157, 157]), (16, 1, &[183, 183, 78, 78, 78])];

/// The schedule of a shape in one type of arithmetic.
#[derive(Debug)]
struct Schedule {
    regions: Offset,
    up: [Offset; 2],
    down: [Offset; 2],
    /// Lines of shared memory a block.
    lines: usize,
    /// Numbers of a warp that do not fit: of each lane.
    wide: usize,
}

/// The tables of one type of arithmetic.
#[derive(Debug)]
struct Weights {
    values: Offset,
    bias: Offset,
    units: Offset,
}

/// A forest on the device.
#[derive(Debug)]
pub(crate) struct Family {
    tables: Buffer,
    single: Option<Weights>,
    double: Weights,
    raw: RawForest,
    layers: usize,
    /// By type of arithmetic, then by shape.
    schedules: [[Schedule; 2]; 2],
    multiprocessors: usize,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct RawForest {
    parents: u64,
    units: u64,
    steps: u64,
    children: u64,
    moves: u64,
    weights: u64,
    bias: u64,
    slots: u64,
    grouped: u64,
    group_labels: u64,
    chunks: u64,
    group_chunks: u64,
    up: u64,
    up_levels: u64,
    down: u64,
    down_levels: u64,
    regions: u64,
    up_count: i32,
    down_count: i32,
    labels: i32,
    groups: i32,
    chunk_count: i32,
    messages: i32,
    outside: i32,
    totals: i32,
    unit_count: i32,
    root: i32,
    block_numbers: i32,
    wide_region: i32,
    constant: f64,
}

type Parent = [i32; 16];
type Unit = [i32; 20];
type Step = [i32; 16];
type Chunk = [i32; 3];

// SAFETY: arrays of integers.
unsafe impl Plain for Parent {}
// SAFETY: arrays of integers.
unsafe impl Plain for Unit {}
// SAFETY: arrays of integers.
unsafe impl Plain for Chunk {}

impl Family {
    pub(crate) fn new(device: &Device, forest: &Forest<'_>) -> Result<Family, Error> {
        let plan = forest.plan;
        let unsupported = |why: String| Error::Unsupported { method: Method::Family, why };
        let layers = plan.nodes.iter().map(|node| node.layers);
        let layers = layers.chain(plan.units.iter().map(|u| u.most_layers.max(u.product_layers)));
        let layers = layers.max().unwrap_or(1);
        if layers > MOST_LAYERS {
            return Err(unsupported(format!("its one-of groups need {layers} layers of messages")));
        }
        let mut tables = Tables::default();
        let single = weights(&mut tables, forest, 80.0, |value| value as f32);
        let double = weights(&mut tables, forest, 600.0, |value| value)
            .ok_or_else(|| unsupported(String::from("an edge costs more than 600, and is not hard")))?;
        let parents: Vec<Parent> = plan.parents.iter().map(|&at| parent(plan, at)).collect();
        let steps: Vec<Step> = plan.units.iter().flat_map(|unit| steps(plan, unit)).collect();
        let moves: Vec<[u8; 4]> = plan.moves.iter().map(|m| [m.a, m.b, m.to, 0]).collect();
        let slots: Vec<[i32; 2]> = plan.slots.iter().map(|s| s.map(|at| at as i32)).collect();
        let mut grouped = vec![0i32; forest.bias.len()];
        forest.shifted.iter().flatten().for_each(|&label| grouped[label] = 1);
        let (mut group_labels, mut chunks) = (Vec::<i32>::new(), Vec::<Chunk>::new());
        let mut group_chunks = vec![0i32];
        for (group, labels) in forest.shifted.iter().enumerate() {
            for some in labels.chunks(TILE) {
                let from = group_labels.len() as i32;
                group_labels.extend(some.iter().map(|&label| label as i32));
                chunks.push([group as i32, from, group_labels.len() as i32]);
            }
            group_chunks.push(chunks.len() as i32);
        }
        let (up, down) = levels(plan);
        let counts = (up.len() as i32, down.len() as i32, chunks.len() as i32);
        let schedules = [Precision::Single, Precision::Double].map(|real| {
            SHAPES.map(|shape| schedule(&mut tables, plan, shape, real, device.shared_bytes(), [&up, &down]))
        });
        let children: Vec<[i32; 4]> = steps.iter().map(|s| [s[0], s[2], s[1], s[3]]).collect();
        let (parents, steps) = (tables.add(&parents), tables.add(&steps));
        let children = tables.add(&children);
        let (moves, slots) = (tables.add(&moves), tables.add(&slots));
        let [grouped, group_labels, group_chunks] =
            [&grouped, &group_labels, &group_chunks].map(|table| tables.add(table));
        let chunks = tables.add(&chunks);
        let tables = tables.upload(device)?;
        let root = plan.nodes.last().map_or(0, |node| node.message);
        let raw = RawForest {
            parents: tables.at(parents),
            units: 0,
            steps: tables.at(steps),
            children: tables.at(children),
            moves: tables.at(moves),
            weights: 0,
            bias: 0,
            slots: tables.at(slots),
            grouped: tables.at(grouped),
            group_labels: tables.at(group_labels),
            chunks: tables.at(chunks),
            group_chunks: tables.at(group_chunks),
            up: 0,
            up_levels: 0,
            down: 0,
            down_levels: 0,
            regions: 0,
            up_count: counts.0,
            down_count: counts.1,
            labels: forest.bias.len() as i32,
            groups: forest.shifted.len() as i32,
            chunk_count: counts.2,
            messages: plan.messages as i32,
            outside: plan.outside as i32,
            totals: plan.totals as i32,
            unit_count: plan.units.len() as i32,
            root: root as i32,
            block_numbers: 0,
            wide_region: 0,
            constant: forest.constant,
        };
        let multiprocessors = device.multiprocessors();
        Ok(Family { tables, single, double, raw, layers, schedules, multiprocessors })
    }

    /// The kernels for so many rows of this type, the first and that of rows done again.
    fn variants(&self, rows: usize, score: Precision) -> (Variant, Option<Variant>) {
        // Few rows: all warps of a multiprocessor work on the same ones.
        let shape = usize::from(rows.div_ceil(LANES) <= self.multiprocessors);
        let double = Variant { score, real: Precision::Double, shape: 1 };
        if score == Precision::Double || self.single.is_none() {
            return (double, None);
        }
        (Variant { score, real: Precision::Single, shape }, Some(double))
    }

    fn schedule(&self, variant: Variant) -> &Schedule {
        &self.schedules[usize::from(variant.real == Precision::Double)][variant.shape]
    }

    fn function(&self, device: &Device, variant: Variant) -> Result<Function, Error> {
        let mut defines = vec![
            format!("SCORE={}", variant.score.name()),
            format!("REAL={}", variant.real.name()),
            format!("THREADS={}", variant.threads()),
            format!("BLOCKS={}", variant.resident()),
            format!("MAX_LAYERS={}", self.layers),
        ];
        if variant.real == Precision::Double {
            defines.push(String::from("DOUBLE"));
        }
        device.function(&Source { kernel: "family", files: &FILES, defines })
    }

    fn blocks(&self, variant: Variant, rows: usize) -> usize {
        rows.div_ceil(LANES).min(self.multiprocessors * variant.resident())
    }

    /// Numbers a lane and block in global memory.
    fn numbers(&self, variant: Variant) -> usize {
        let raw = &self.raw;
        let tiles = (raw.labels as usize).div_ceil(TILE);
        let sizes = [raw.messages, raw.outside, 2 * raw.totals, 2 * raw.unit_count, raw.labels];
        let all: usize = sizes.iter().map(|&size| size as usize).sum();
        let chunks = 2 * raw.chunk_count as usize;
        2 * tiles + all + chunks + SHAPES[variant.shape].0 * self.schedule(variant).wide
    }

    fn scratch(&self, variant: Variant, rows: usize) -> usize {
        self.blocks(variant, rows) * self.numbers(variant) * LANES * variant.real.bytes()
    }

    /// Bytes of working memory.
    pub(crate) fn workspace(&self, rows: usize, score: Precision) -> usize {
        let (first, again) = self.variants(rows, score);
        let again = again.map_or(0, |variant| self.scratch(variant, rows));
        self.scratch(first, rows).max(again)
    }

    /// Compiles the kernels for so many rows.
    pub(crate) fn prepare(
        &self,
        device: &Device,
        rows: usize,
        score: Precision,
    ) -> Result<Vec<Function>, Error> {
        let (first, again) = self.variants(rows, score);
        [Some(first), again].into_iter().flatten().map(|v| self.function(device, v)).collect()
    }

    /// Whether rows may have to be done again.
    pub(crate) fn lists(&self, rows: usize, score: Precision) -> bool {
        self.variants(rows, score).1.is_some()
    }

    /// Puts the kernels on a stream. `again` is room for a number and the rows done again; its number must
    /// be 0.
    ///
    /// # Safety
    /// The addresses must be of live memory of the sizes that the rows need.
    pub(crate) unsafe fn enqueue(
        &self,
        device: &Device,
        rows: RawRows,
        score: Precision,
        again: u64,
        scratch: u64,
        stream: Stream,
    ) -> Result<(), Error> {
        let count = rows.rows as usize;
        let (first, second) = self.variants(count, score);
        let list = if second.is_some() { again } else { 0 };
        // SAFETY: by the caller's word.
        unsafe { self.launch(device, first, RawRows { again: list, ..rows }, scratch, stream)? };
        let Some(second) = second else { return Ok(()) };
        let listed = RawRows { listed: again, again: 0, ..rows };
        // SAFETY: by the caller's word; the stream orders the two launches.
        unsafe { self.launch(device, second, listed, scratch, stream) }
    }

    /// # Safety
    /// As for `enqueue`.
    unsafe fn launch(
        &self,
        device: &Device,
        variant: Variant,
        rows: RawRows,
        scratch: u64,
        stream: Stream,
    ) -> Result<(), Error> {
        let function = self.function(device, variant)?;
        let weights = match (variant.real, &self.single) {
            (Precision::Single, Some(single)) => single,
            _ => &self.double,
        };
        let (schedule, tables) = (self.schedule(variant), &self.tables);
        let forest = RawForest {
            units: self.tables.at(weights.units),
            weights: self.tables.at(weights.values),
            bias: self.tables.at(weights.bias),
            up: tables.at(schedule.up[1]),
            up_levels: tables.at(schedule.up[0]),
            down: tables.at(schedule.down[1]),
            down_levels: tables.at(schedule.down[0]),
            regions: tables.at(schedule.regions),
            block_numbers: self.numbers(variant) as i32,
            wide_region: schedule.wide as i32,
            ..self.raw
        };
        let shape = Shape {
            blocks: self.blocks(variant, rows.rows as usize),
            threads: variant.threads(),
            shared: schedule.lines * LANES * variant.real.bytes(),
        };
        let arguments = Arguments::default().with(&forest).with(&rows).with(&scratch);
        // SAFETY: the arguments are those of `family`, in the layout of its structures.
        unsafe { function.launch(shape, stream, arguments) }
    }
}

impl Variant {
    fn threads(self) -> u32 {
        (SHAPES[self.shape].0 * LANES) as u32
    }

    /// Blocks of a multiprocessor: in doubles half as many fit.
    fn resident(self) -> usize {
        let blocks = SHAPES[self.shape].1;
        if self.real == Precision::Double { blocks.div_ceil(2) } else { blocks }
    }
}

/// The constants in one type of arithmetic; none when edges are so strong, and not hard, that it does not hold
/// their weights.
fn weights<T: Plain>(
    tables: &mut Tables,
    forest: &Forest<'_>,
    limit: f64,
    round: impl Fn(f64) -> T,
) -> Option<Weights> {
    let plan = forest.plan;
    let too_small = |weight: f64| weight.is_finite() && weight < -limit;
    if plan.steps.iter().any(|step| too_small(plan.log_weights[step.fall])) {
        return None;
    }
    let value = |&log: &f64| if log.is_finite() { log.max(-limit).exp() } else { log.exp() };
    let values: Vec<T> = plan.log_weights.iter().map(|log| round(value(log))).collect();
    let bias: Vec<T> = forest.bias.iter().map(|&bias| round(bias)).collect();
    let first = |from: usize, width: usize| {
        let found = plan.log_weights[from..=from + width].iter().position(|&log| too_small(log));
        found.map_or(i32::MAX, |at| at as i32)
    };
    let unit = |unit: &phex::infer::compiled::Unit| -> Unit {
        let int = |value: usize| value as i32;
        // The m-th child to turn on pays q^(m − 1).
        let turned = first(unit.turns, unit.width).saturating_add(1);
        [
            int(unit.steps.start),
            int(unit.steps.end),
            i32::from(unit.shared),
            int(unit.width),
            int(unit.most_layers),
            int(unit.layers),
            int(unit.total),
            int(unit.product),
            int(unit.product_layers),
            int(unit.moves.start),
            int(unit.moves.end),
            int(unit.turns),
            int(unit.falls),
            turned,
            first(unit.falls, unit.width),
            int(cells(plan, unit)),
            int(needs(plan, unit)),
            0,
            0,
            0,
        ]
    };
    let units: Vec<Unit> = plan.units.iter().map(unit).collect();
    Some(Weights { values: tables.add(&values), bias: tables.add(&bias), units: tables.add(&units) })
}

/// How many cells all steps of a unit fill.
fn cells(plan: &Plan, unit: &phex::infer::compiled::Unit) -> usize {
    let streams = if unit.shared { 1 } else { 2 };
    let last = &plan.steps[unit.steps.end - 1];
    last.output + streams * last.layers * last.width - unit.cells
}

/// Numbers a lane that a unit needs of a warp's own memory: cells, scales, backward cells, and a second set of these where
/// children join by the list of moves.
fn needs(plan: &Plan, unit: &phex::infer::compiled::Unit) -> usize {
    let general = plan.steps[unit.steps.clone()].iter().any(|step| step.kind == Kind::General);
    let sets = (1 + usize::from(!unit.shared)) * (1 + usize::from(general));
    cells(plan, unit) + unit.steps.len() + sets * unit.most_layers * unit.width
}

fn parent(plan: &Plan, at: usize) -> Parent {
    let node = &plan.nodes[at];
    let int = |value: usize| value as i32;
    let unit = &plan.units[node.units.start];
    let first = plan.nodes[plan.steps[unit.steps.start].node].message;
    [
        node.label.map_or(-1, int),
        int(node.message),
        int(node.outside),
        int(node.weight),
        int(node.layers),
        int(node.units.start),
        int(node.units.end),
        int(node.own.start),
        int(node.own.end),
        i32::from(node.same_layers),
        simple(plan, node),
        int(unit.steps.len()),
        int(unit.steps.start),
        int(first),
        int(unit.turns),
        int(unit.falls),
    ]
}

/// The most children of a label that is done in registers, with one layer and with two.
const SIMPLE: [usize; 2] = [8, 6];

/// How many layers a label has whose children are one set that is done in registers; else 0.
fn simple(plan: &Plan, node: &phex::infer::compiled::Node) -> i32 {
    let unit = &plan.units[node.units.start];
    let steps = &plan.steps[unit.steps.clone()];
    let in_range = |from: usize| {
        let weights = &plan.log_weights[from..=from + unit.width];
        weights.iter().all(|&log| !log.is_finite() || log >= -80.0)
    };
    let fits = node.label.is_some() && node.units.len() == 1 && node.same_layers && unit.shared;
    if !fits || steps.len() > SIMPLE[usize::from(node.layers > 1)] || !in_range(unit.turns) || !in_range(unit.falls) {
        return 0;
    }
    let layers_of = |step: &phex::infer::compiled::Step| plan.nodes[step.node].layers;
    // Products of dual numbers, in which no group is completed.
    let dual = |step: &phex::infer::compiled::Step| {
        let moves = match (step.input_layers, layers_of(step)) {
            (1, 1) => 1,
            (1, 2) | (2, 1) => 2,
            (2, 2) => 3,
            _ => return false,
        };
        step.layers == step.input_layers.max(layers_of(step)) && step.moves.len() == moves
    };
    match node.layers {
        1 if steps.iter().all(|step| step.layers == 1 && layers_of(step) == 1) => 1,
        2 if unit.layers == 2 && steps.iter().all(dual) => 2,
        _ => 0,
    }
}

fn steps<'a>(
    plan: &'a Plan,
    unit: &'a phex::infer::compiled::Unit,
) -> impl Iterator<Item = Step> + 'a {
    let int = |value: usize| value as i32;
    plan.steps[unit.steps.clone()].iter().map(move |step| {
        let node = &plan.nodes[step.node];
        let kind = match step.kind {
            Kind::Plain => 0,
            Kind::Dual => 1,
            Kind::General => 2,
        };
        [
            node.label.map_or(-1, int),
            int(node.message),
            if node.units.is_empty() { -1 } else { int(node.outside) },
            int(node.layers),
            int(step.input - unit.cells),
            int(step.input_width),
            int(step.input_layers),
            int(step.output - unit.cells),
            int(step.width),
            int(step.layers),
            kind,
            int(step.moves.start),
            int(step.moves.end),
            int(step.fall),
            0,
            0,
        ]
    })
}

/// The parents by height and by depth, as places among the parents.
fn levels(plan: &Plan) -> (Vec<Vec<usize>>, Vec<Vec<usize>>) {
    let mut height = vec![0usize; plan.nodes.len()];
    let mut depth = height.clone();
    let place: HashMap<usize, usize> =
        plan.parents.iter().enumerate().map(|(place, &node)| (node, place)).collect();
    let children = |node: usize| {
        let units = &plan.units[plan.nodes[node].units.clone()];
        units.iter().flat_map(|unit| &plan.steps[unit.steps.clone()]).map(|step| step.node)
    };
    for &node in &plan.parents {
        height[node] = children(node).map(|child| height[child] + 1).max().unwrap_or(0);
    }
    for &node in plan.parents.iter().rev() {
        children(node).for_each(|child| depth[child] = depth[node] + 1);
    }
    let by = |level: &[usize]| {
        let mut all: Vec<Vec<usize>> = Vec::new();
        for &node in &plan.parents {
            all.resize_with(all.len().max(level[node] + 1), Vec::new);
            all[level[node]].push(place[&node]);
        }
        all.retain(|some| !some.is_empty());
        all
    };
    (by(&height), by(&depth))
}

/// Shares out the shared memory of a block and the parents of each level.
fn schedule(
    tables: &mut Tables,
    plan: &Plan,
    (warps, resident, large): (usize, usize, &[usize]),
    real: Precision,
    shared_bytes: usize,
    levels: [&Vec<Vec<usize>>; 2],
) -> Schedule {
    // In doubles a multiprocessor holds half the blocks: a line is twice as long.
    let resident = if real == Precision::Double { resident.div_ceil(2) } else { resident };
    let all = (shared_bytes / resident - 2048) / (LANES * real.bytes());
    let widest = plan.units.iter().map(|unit| needs(plan, unit)).max().unwrap_or(0);
    let even = all / warps;
    let mut lines = vec![even; warps];
    if widest > even {
        let parts: usize = large.iter().map(|part| part * all / 1000).sum();
        lines.fill((all - parts) / (warps - large.len()));
        large.iter().zip(&mut lines).for_each(|(part, lines)| *lines = part * all / 1000);
    }
    let big = lines.iter().copied().max().unwrap_or(0);
    let mut next = 0;
    let regions: Vec<[i32; 2]> = lines
        .iter()
        .map(|&lines| {
            next += lines;
            [(next - lines) as i32, lines as i32]
        })
        .collect();
    let wide = if widest > 4 * big { widest } else { 0 };
    let [up, down] = levels.map(|levels| {
        let (starts, order) = share_out(plan, levels, &lines);
        [tables.add(&starts), tables.add(&order)]
    });
    Schedule { regions: tables.add(&regions), up, down, lines: next, wide }
}

/// The parents of each level and warp: the dearest first, each to the warp that is done with it first.
fn share_out(plan: &Plan, levels: &[Vec<usize>], lines: &[usize]) -> (Vec<i32>, Vec<i32>) {
    let cost = |place: usize, lines: usize| {
        let units = &plan.units[plan.nodes[plan.parents[place]].units.clone()];
        let cost = |unit: &phex::infer::compiled::Unit| {
            let needs = needs(plan, unit);
            // Eight lanes at a time take four rounds; memory beyond shared memory is far slower.
            let rounds = [1, 4, 40][usize::from(needs > lines) + usize::from(needs > 4 * lines)];
            rounds * (60 + 40 * unit.steps.len() + 8 * cells(plan, unit))
        };
        units.iter().map(cost).sum::<usize>()
    };
    let (mut starts, mut all) = (vec![0i32], Vec::new());
    for level in levels {
        let mut level = level.clone();
        level.sort_by_key(|&place| std::cmp::Reverse(cost(place, usize::MAX / 8)));
        let mut load = vec![0usize; lines.len()];
        let mut shares: Vec<Vec<i32>> = vec![Vec::new(); lines.len()];
        for place in level {
            let end = |&warp: &usize| load[warp] + cost(place, lines[warp]);
            let Some(warp) = (0..lines.len()).min_by_key(end) else { continue };
            load[warp] = end(&warp);
            shares[warp].push(place as i32);
        }
        for share in shares {
            all.extend(share);
            starts.push(all.len() as i32);
        }
    }
    (starts, all)
}
