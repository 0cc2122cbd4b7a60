//! `family` on the device: the flat plan of the processor's engine as tables, and its launches.
//!
//! Single precision first; rows whose numbers leave its range are listed on the device and done again in
//! doubles, in the same order of the stream and without a word from the host.

mod fold;
mod pool;
mod rounds;
mod schedule;
mod shapes;
mod tables;
mod units;

use phex::infer::Method;
use phex::infer::compiled::Forest;

use crate::Error;
use crate::buffer::{Buffer, Tables};
use crate::device::{Device, Stream};
use crate::program::{Arguments, Function, Shape, Source};
use crate::rows::{Precision, RawRows};
use fold::fold;
use rounds::levels;
use schedule::{Schedule, Work, schedule};
pub use shapes::BlockRows;
use shapes::{FORMS, choose};
use tables::{
    Chunk, Parent, Places, Step, Weights, child, most_in_registers, parent, places, steps, weights,
};

const FILES: [&str; 8] = [
    include_str!("../../kernels/common.cu"),
    include_str!("../../kernels/family.cu"),
    include_str!("../../kernels/family_outside.cu"),
    include_str!("../../kernels/family_large.cu"),
    include_str!("../../kernels/family_parent.cu"),
    include_str!("../../kernels/family_simple.cu"),
    include_str!("../../kernels/family_sets.cu"),
    include_str!("../../kernels/family_rows.cu"),
];

/// The lanes of a warp.
const LANES: usize = 32;
/// Labels of a tile.
const TILE: usize = 32;
/// More layers would not fit the registers.
const MOST_LAYERS: usize = 4;

/// The form of blocks in doubles, by its place in [`FORMS`]: those of few rows, in global memory.
const DOUBLE_FORM: usize = 1;

/// Numbers of a row: log-sums by tile (doubles), messages, totals and their shares, scales, sums of groups. The kernel lays
/// them out in this order.
fn numbers_of_row([labels, chunks, messages]: [usize; 3], weights: &Weights) -> usize {
    2 * labels.div_ceil(TILE) + messages + 2 * weights.totals + weights.scales + 2 * chunks
}

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
    /// By form of blocks, where rows fit it, in single precision.
    schedules: [Option<Schedule>; FORMS.len()],
    /// In doubles, which are few rows and done in global memory.
    double_schedule: Schedule,
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
    group_places: u64,
    chunks: u64,
    group_chunks: u64,
    rounds: u64,
    starts: u64,
    awaited: u64,
    regions: u64,
    sets: u64,
    members: u64,
    labels: i32,
    groups: i32,
    chunk_count: i32,
    set_count: i32,
    messages: i32,
    totals: i32,
    scales: i32,
    root: i32,
    wide_region: i32,
    unused: i32,
    block_numbers: u64,
    constant: f64,
}

impl Family {
    pub(crate) fn new(
        device: &Device,
        forest: &Forest<'_>,
        block_rows: BlockRows,
    ) -> Result<Family, Error> {
        let folded = fold(forest);
        let (plan, is_folded) = (&folded.plan, folded.parents());
        let unsupported = |why: String| Error::Unsupported { method: Method::Family, why };
        let layers = plan.nodes.iter().map(|node| node.layers);
        let layers = layers.chain(plan.units.iter().map(|u| u.most_layers.max(u.product_layers)));
        let layers = layers.max().unwrap_or(1);
        if layers > MOST_LAYERS {
            return Err(unsupported(format!("its one-of groups need {layers} layers of messages")));
        }
        let mut tables = Tables::default();
        let single =
            weights(&mut tables, (plan, forest.bias), Precision::Single, |value| value as f32);
        let double = weights(&mut tables, (plan, forest.bias), Precision::Double, |value| value)
            .ok_or_else(|| {
                unsupported(String::from("an edge costs more than 600, and is not hard"))
            })?;
        let parents: Vec<Parent> = plan.parents.iter().map(|&at| parent(plan, at)).collect();
        let steps: Vec<Step> =
            plan.units.iter().flat_map(|unit| steps(plan, &is_folded, unit)).collect();
        let moves: Vec<[u8; 4]> = plan.moves.iter().map(|m| [m.a, m.b, m.to, 0]).collect();
        let Places { slots, messages, sets, members } = places(&folded);
        let mut grouped = vec![0i32; forest.bias.len()];
        forest.shifted.iter().flatten().for_each(|&label| grouped[label] = 1);
        let (mut group_places, mut chunks) = (Vec::<i32>::new(), Vec::<Chunk>::new());
        let mut group_chunks = vec![0i32];
        for (group, labels) in forest.shifted.iter().enumerate() {
            for some in labels.chunks(TILE) {
                let from = group_places.len() as i32;
                group_places.extend(some.iter().map(|&label| slots[label][1]));
                chunks.push([group as i32, from, group_places.len() as i32]);
            }
            group_chunks.push(chunks.len() as i32);
        }
        let (up, down) = levels(plan);
        let sizes = [forest.bias.len(), chunks.len(), messages];
        let row = numbers_of_row(sizes, single.as_ref().unwrap_or(&double));
        let levels: [&[Vec<usize>]; 2] = [&up, &down];
        let mut scheduled = |form: shapes::Form, real| {
            let resident = if form.is_resident() { row } else { 0 };
            let work = Work { plan, form, real, resident, levels };
            schedule(&mut tables, &work, device.shared_bytes())
        };
        let schedules = FORMS.map(|form| scheduled(form, Precision::Single));
        let double_schedule = scheduled(FORMS[DOUBLE_FORM], Precision::Double);
        let double_schedule = double_schedule.ok_or_else(|| {
            unsupported(String::from("a block of the GPU has too little shared memory"))
        })?;
        let children: Vec<[i32; 2]> =
            plan.steps.iter().map(|step| child(plan, &is_folded, step)).collect();
        let (parents, steps) = (tables.add(&parents), tables.add(&steps));
        let children = tables.add(&children);
        let (moves, slots) = (tables.add(&moves), tables.add(&slots));
        let [grouped, group_places, group_chunks] =
            [&grouped, &group_places, &group_chunks].map(|table| tables.add(table));
        let chunks = tables.add(&chunks);
        let set_count = sets.len();
        let (sets, members) = (tables.add(&sets), tables.add(&members));
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
            group_places: tables.at(group_places),
            chunks: tables.at(chunks),
            group_chunks: tables.at(group_chunks),
            rounds: 0,
            starts: 0,
            awaited: 0,
            regions: 0,
            sets: tables.at(sets),
            members: tables.at(members),
            labels: sizes[0] as i32,
            groups: forest.shifted.len() as i32,
            chunk_count: sizes[1] as i32,
            set_count: set_count as i32,
            messages: messages as i32,
            totals: 0,
            scales: 0,
            root: root as i32,
            wide_region: 0,
            unused: 0,
            block_numbers: 0,
            constant: forest.constant,
        };
        let multiprocessors = device.multiprocessors();
        Ok(Family {
            tables,
            single,
            double,
            raw,
            layers,
            schedules,
            double_schedule,
            multiprocessors,
            block_rows,
        })
    }

    /// The kernels for so many rows of this type, the first and that of rows done again.
    fn variants(&self, rows: usize, score: Precision) -> (Variant, Option<Variant>) {
        let double = Variant { score, real: Precision::Double, form: DOUBLE_FORM };
        if score == Precision::Double || self.single.is_none() {
            return (double, None);
        }
        let fits = |place: usize| self.schedules[place].is_some();
        let form = choose(self.block_rows, rows, self.multiprocessors, fits);
        (Variant { score, real: Precision::Single, form }, Some(double))
    }

    fn schedule(&self, variant: Variant) -> &Schedule {
        let single = &self.schedules[variant.form];
        single
            .as_ref()
            .filter(|_| variant.real == Precision::Single)
            .unwrap_or(&self.double_schedule)
    }

    fn weights(&self, variant: Variant) -> &Weights {
        let single = self.single.as_ref().filter(|_| variant.real == Precision::Single);
        single.unwrap_or(&self.double)
    }

    fn threads(&self, variant: Variant) -> u32 {
        (self.schedule(variant).warps * LANES) as u32
    }

    fn source(&self, variant: Variant) -> Source<'static> {
        let in_registers = most_in_registers(FORMS[variant.form].groups());
        let mut defines = vec![
            format!("SCORE={}", variant.score.name()),
            format!("REAL={}", variant.real.name()),
            format!("THREADS={}", self.threads(variant)),
            format!("BLOCKS={}", variant.blocks_held()),
            format!("BLOCK_ROWS={}", variant.rows()),
            format!("IN_REGISTERS_1={}", in_registers[0]),
            format!("IN_REGISTERS_2={}", in_registers[1]),
            // Powers of two: models with other numbers share a kernel.
            format!("MAX_LAYERS={}", self.layers.next_power_of_two()),
        ];
        if variant.real == Precision::Double {
            defines.push(String::from("DOUBLE"));
        }
        Source { kernel: "family", files: &FILES, defines }
    }

    fn blocks(&self, variant: Variant, rows: usize) -> usize {
        rows.div_ceil(variant.rows()).min(self.multiprocessors * variant.blocks_held())
    }

    /// Numbers of a block in global memory; even, for doubles lie among them.
    fn numbers(&self, variant: Variant) -> usize {
        let raw = &self.raw;
        let sizes = [raw.labels, raw.chunk_count, raw.messages].map(|size| size as usize);
        let row = numbers_of_row(sizes, self.weights(variant));
        let Schedule { warps, wide, .. } = *self.schedule(variant);
        let own = if FORMS[variant.form].is_resident() { 0 } else { row * variant.rows() };
        (own + warps * wide * LANES).next_multiple_of(LANES)
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
        let weights = self.weights(variant);
        let (schedule, tables) = (self.schedule(variant), &self.tables);
        let forest = RawForest {
            units: self.tables.at(weights.units),
            weights: self.tables.at(weights.values),
            bias: self.tables.at(weights.bias),
            rounds: tables.at(schedule.rounds),
            starts: tables.at(schedule.starts),
            awaited: tables.at(schedule.awaited),
            totals: weights.totals as i32,
            scales: weights.scales as i32,
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
    fn blocks_held(self) -> usize {
        FORMS[self.form].blocks_held(self.real)
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

    /// Families of one to twelve children below a common root; the first child of larger ones has a child.
    pub(super) fn forest(one_of: bool) -> Engine {
        let mut builder = GraphBuilder::new();
        for family in 0..40 {
            for child in 0..1 + family % 12 {
                let (parent, child) = (format!("f{family}"), format!("f{family}c{child}"));
                builder.hierarchy(&parent, &child, Some(Strength::U(0.5)));
            }
            if family % 12 >= 6 {
                let child = format!("f{family}c0");
                builder.hierarchy(&child, &format!("{child}c"), Some(Strength::U(0.5)));
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
