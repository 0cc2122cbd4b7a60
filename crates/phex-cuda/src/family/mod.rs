//! `family` on the device: the flat plan of the processor's engine as tables, and its launches.
//!
//! Single precision first; rows whose numbers leave its range are listed on the device and done again in
//! doubles, in the same order of the stream and without a word from the host.

mod schedule;
mod shapes;
mod tables;

use phex::infer::Method;
use phex::infer::compiled::Forest;

use crate::Error;
use crate::buffer::{Buffer, Tables};
use crate::device::{Device, Stream};
use crate::program::{Arguments, Function, Shape, Source};
use crate::rows::{Precision, RawRows};
use schedule::{Schedule, levels, schedule};
pub use shapes::BlockRows;
use shapes::{FORMS, choose};
use tables::{Chunk, Parent, Step, Weights, parent, steps, weights};

const FILES: [&str; 5] = [
    include_str!("../../kernels/common.cu"),
    include_str!("../../kernels/family.cu"),
    include_str!("../../kernels/family_outside.cu"),
    include_str!("../../kernels/family_simple.cu"),
    include_str!("../../kernels/family_rows.cu"),
];

/// The lanes of a warp.
const LANES: usize = 32;
/// Labels of a tile.
const TILE: usize = 32;
/// More layers would not fit the registers.
const MOST_LAYERS: usize = 4;

/// A kernel's form of blocks, by its place in [`FORMS`], and type of arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Variant {
    score: Precision,
    real: Precision,
    form: usize,
}

/// A forest on the device.
#[derive(Debug)]
pub(crate) struct Family {
    tables: Buffer,
    single: Option<Weights>,
    double: Weights,
    raw: RawForest,
    layers: usize,
    /// By type of arithmetic, then by form of blocks.
    schedules: [[Schedule; FORMS.len()]; 2],
    multiprocessors: usize,
    block_rows: BlockRows,
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
    wide_region: i32,
    block_numbers: u64,
    constant: f64,
}

impl Family {
    pub(crate) fn new(
        device: &Device,
        forest: &Forest<'_>,
        block_rows: BlockRows,
    ) -> Result<Family, Error> {
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
        let double = weights(&mut tables, forest, 600.0, |value| value).ok_or_else(|| {
            unsupported(String::from("an edge costs more than 600, and is not hard"))
        })?;
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
            FORMS.map(|form| {
                schedule(&mut tables, plan, form, real, device.shared_bytes(), [&up, &down])
            })
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
            wide_region: 0,
            block_numbers: 0,
            constant: forest.constant,
        };
        let multiprocessors = device.multiprocessors();
        Ok(Family { tables, single, double, raw, layers, schedules, multiprocessors, block_rows })
    }

    /// The kernels for so many rows of this type, the first and that of rows done again.
    fn variants(&self, rows: usize, score: Precision) -> (Variant, Option<Variant>) {
        let form = choose(self.block_rows, rows, self.multiprocessors);
        let double = Variant { score, real: Precision::Double, form: form.max(1) };
        if score == Precision::Double || self.single.is_none() {
            return (double, None);
        }
        (Variant { score, real: Precision::Single, form }, Some(double))
    }

    fn schedule(&self, variant: Variant) -> &Schedule {
        &self.schedules[usize::from(variant.real == Precision::Double)][variant.form]
    }

    fn threads(&self, variant: Variant) -> u32 {
        (self.schedule(variant).warps * LANES) as u32
    }

    fn source(&self, variant: Variant) -> Source<'static> {
        let mut defines = vec![
            format!("SCORE={}", variant.score.name()),
            format!("REAL={}", variant.real.name()),
            format!("THREADS={}", self.threads(variant)),
            format!("BLOCKS={}", variant.resident()),
            format!("BLOCK_ROWS={}", variant.rows()),
            // Powers of two: models with other numbers share a kernel.
            format!("MAX_LAYERS={}", self.layers.next_power_of_two()),
        ];
        if variant.real == Precision::Double {
            defines.push(String::from("DOUBLE"));
        }
        Source { kernel: "family", files: &FILES, defines }
    }

    fn blocks(&self, variant: Variant, rows: usize) -> usize {
        rows.div_ceil(variant.rows()).min(self.multiprocessors * variant.resident())
    }

    /// Numbers of a block in global memory; even, for doubles lie among them.
    fn numbers(&self, variant: Variant) -> usize {
        let raw = &self.raw;
        let tiles = (raw.labels as usize).div_ceil(TILE);
        let sizes = [raw.messages, raw.outside, 2 * raw.totals, 2 * raw.unit_count, raw.labels];
        let all: usize = sizes.iter().map(|&size| size as usize).sum();
        let chunks = 2 * raw.chunk_count as usize;
        let Schedule { warps, wide, .. } = *self.schedule(variant);
        let own = warps * wide * LANES;
        ((2 * tiles + all + chunks) * variant.rows() + own).next_multiple_of(LANES)
    }

    fn scratch(&self, variant: Variant, rows: usize) -> usize {
        self.blocks(variant, rows) * self.numbers(variant) * variant.real.bytes()
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
        let all = [Some(first), again].into_iter().flatten();
        device.functions(&all.map(|variant| self.source(variant)).collect::<Vec<_>>())
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
        self.prepare(device, count, score)?;
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
        let function = device.function(&self.source(variant))?;
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
            wide_region: schedule.wide as i32,
            block_numbers: self.numbers(variant) as u64,
            ..self.raw
        };
        let shape = Shape {
            blocks: self.blocks(variant, rows.rows as usize),
            threads: self.threads(variant),
            shared: schedule.lines * LANES * variant.real.bytes(),
        };
        let arguments = Arguments::default().with(&forest).with(&rows).with(&scratch);
        // SAFETY: the arguments are those of `family`, in the layout of its structures.
        unsafe { function.launch(shape, stream, arguments) }
    }
}

impl Variant {
    fn resident(self) -> usize {
        FORMS[self.form].resident(self.real)
    }

    /// Rows of a block.
    fn rows(self) -> usize {
        FORMS[self.form].rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use phex::graph::{ExclusionRule, GraphBuilder, Strength};
    use phex::infer::{Engine, Options};
    use phex::model::Model;

    /// Families of one to twelve children, some below a common root.
    pub(super) fn forest(one_of: bool) -> Engine {
        let mut builder = GraphBuilder::new();
        for family in 0..40 {
            for child in 0..1 + family % 12 {
                let (parent, child) = (format!("f{family}"), format!("f{family}c{child}"));
                builder.hierarchy(&parent, &child, Some(Strength::U(0.5)));
            }
            builder.hierarchy("root", &format!("f{family}"), Some(Strength::U(0.5)));
        }
        builder.exclusion_rule(ExclusionRule::Siblings, Some(Strength::U(0.5)));
        if one_of {
            builder.one_of_leaves("leaves");
        }
        let options = Options { method: Method::Family, ..Options::default() };
        Engine::compile(Model::new(&builder.build().unwrap()).unwrap(), &options).unwrap()
    }
}
