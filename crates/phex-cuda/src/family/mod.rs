//! `family` on the device: the flat plan of the CPU engine as tables, and its launches.
//!
//! Single precision goes first. Rows whose numbers leave its range are listed on the device and done again in doubles, by a
//! second launch on the same stream, without the host.

mod fold;
mod pool;
mod records;
mod rounds;
mod schedule;
mod shapes;
mod tables;
mod units;

use phex::infer::Method;
use phex::infer::compiled::Forest;

use crate::Error;
use crate::device::Device;
use crate::kernels::{EngineKernels, EnginePass, PassMemory};
use crate::memory::{DeviceMemory, TableBuilder, clear_count};
use crate::program::{KernelArguments, KernelSource, LaunchShape, LoadedKernel};
use crate::rows::{Precision, RawRows};
use fold::fold;
use records::{ParentRecord, StepRecord, child, most_in_registers, parent, steps};
use rounds::levels;
use schedule::{ScheduleInput, WarpSchedule, schedule};
pub use shapes::BlockRows;
use shapes::{BlockForm, FORMS, choose};
use tables::{ForestWeights, GroupTables, LabelPlaces, group_tables, label_places, weights};

const FILES: &[&str] = &[
    include_str!("../../kernels/family/model.cu"),
    include_str!("../../kernels/family/inside.cu"),
    include_str!("../../kernels/family/outside.cu"),
    include_str!("../../kernels/family/large.cu"),
    include_str!("../../kernels/family/parent.cu"),
    include_str!("../../kernels/family/simple.cu"),
    include_str!("../../kernels/family/sets.cu"),
    include_str!("../../kernels/family/rows.cu"),
    include_str!("../../kernels/family/kernel.cu"),
];

/// The lanes of a warp.
const LANES: usize = 32;
/// Labels per tile.
const TILE: usize = 32;
/// More layers would not fit the registers.
const MOST_LAYERS: usize = 4;

/// The form of blocks in doubles, as an index in [`FORMS`]: that of few rows, in global memory.
const DOUBLE_FORM: usize = 1;

/// Numbers per row, in the order of the kernel: log-sums by tile (doubles), messages, totals and their shares, scales, sums
/// of groups.
fn numbers_of_row([labels, chunks, messages]: [usize; 3], weights: &ForestWeights) -> usize {
    2 * labels.div_ceil(TILE) + messages + 2 * weights.totals + weights.scales + 2 * chunks
}

/// One instance of the kernel: its types, and its form of blocks as an index in [`FORMS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct FamilyVariant {
    score: Precision,
    real: Precision,
    form: usize,
}

/// A forest on the device.
#[derive(Debug)]
pub(crate) struct FamilyKernels {
    tables: DeviceMemory,
    single: Option<ForestWeights>,
    double: ForestWeights,
    raw: RawForest,
    layers: usize,
    /// By form of blocks, where rows fit it, in single precision.
    schedules: [Option<WarpSchedule>; FORMS.len()],
    /// In doubles, which are for few rows and lie in global memory.
    double_schedule: WarpSchedule,
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

impl FamilyKernels {
    pub(crate) fn new(
        device: &Device,
        forest: &Forest<'_>,
        block_rows: BlockRows,
    ) -> Result<FamilyKernels, Error> {
        let folded = fold(forest);
        let (plan, is_folded) = (&folded.plan, folded.parents());
        let unsupported = |why: String| Error::Unsupported { method: Method::Family, why };
        let layers = plan.nodes.iter().map(|node| node.layers);
        let layers = layers.chain(plan.units.iter().map(|u| u.most_layers.max(u.product_layers)));
        let layers = layers.max().unwrap_or(1);
        if layers > MOST_LAYERS {
            return Err(unsupported(format!(
                "its one-of groups need {layers} layers of messages, and at most {MOST_LAYERS} fit"
            )));
        }
        let mut tables = TableBuilder::default();
        let single =
            weights(&mut tables, (plan, forest.bias), Precision::Single, |value| value as f32);
        let double = weights(&mut tables, (plan, forest.bias), Precision::Double, |value| value)
            .ok_or_else(|| {
                unsupported(String::from("an edge that is not hard costs more than 600"))
            })?;
        let parents: Vec<ParentRecord> = plan.parents.iter().map(|&at| parent(plan, at)).collect();
        let steps: Vec<StepRecord> =
            plan.units.iter().flat_map(|unit| steps(plan, &is_folded, unit)).collect();
        let moves: Vec<[u8; 4]> = plan.moves.iter().map(|m| [m.a, m.b, m.to, 0]).collect();
        let LabelPlaces { slots, messages, sets, members } = label_places(&folded);
        let GroupTables { grouped, places: group_places, chunks, starts: group_chunks } =
            group_tables(forest.shifted, &slots, TILE);
        let (up, down) = levels(plan);
        let sizes = [forest.bias.len(), chunks.len(), messages];
        let row = numbers_of_row(sizes, single.as_ref().unwrap_or(&double));
        let levels: [&[Vec<usize>]; 2] = [&up, &down];
        let mut scheduled = |form: BlockForm, real| {
            let resident = if form.is_resident() { row } else { 0 };
            let input = ScheduleInput { plan, form, real, resident, levels };
            schedule(&mut tables, &input, device.shared_bytes())
        };
        let schedules = FORMS.map(|form| scheduled(form, Precision::Single));
        let double_schedule = scheduled(FORMS[DOUBLE_FORM], Precision::Double);
        let double_schedule = double_schedule.ok_or_else(|| {
            unsupported(String::from("a block of this GPU has too little shared memory"))
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
        Ok(FamilyKernels {
            tables,
            single,
            double,
            raw,
            layers,
            schedules,
            double_schedule,
            multiprocessors: device.multiprocessors(),
            block_rows,
        })
    }

    /// The variant for a number of rows of a type, and that of rows that are done again.
    fn variants(&self, rows: usize, score: Precision) -> (FamilyVariant, Option<FamilyVariant>) {
        let double = FamilyVariant { score, real: Precision::Double, form: DOUBLE_FORM };
        if score == Precision::Double || self.single.is_none() {
            return (double, None);
        }
        let fits = |form: usize| self.schedules[form].is_some();
        let form = choose(self.block_rows, rows, self.multiprocessors, fits);
        (FamilyVariant { score, real: Precision::Single, form }, Some(double))
    }

    fn schedule(&self, variant: FamilyVariant) -> &WarpSchedule {
        let single = &self.schedules[variant.form];
        single
            .as_ref()
            .filter(|_| variant.real == Precision::Single)
            .unwrap_or(&self.double_schedule)
    }

    fn weights(&self, variant: FamilyVariant) -> &ForestWeights {
        let single = self.single.as_ref().filter(|_| variant.real == Precision::Single);
        single.unwrap_or(&self.double)
    }

    fn threads(&self, variant: FamilyVariant) -> u32 {
        (self.schedule(variant).warps * LANES) as u32
    }

    fn source(&self, variant: FamilyVariant) -> KernelSource {
        let in_registers = most_in_registers(FORMS[variant.form].groups());
        let types = [variant.score, variant.real];
        KernelSource::new("family", FILES, types, self.threads(variant))
            .define("BLOCKS", variant.blocks_held())
            .define("BLOCK_ROWS", variant.rows())
            .define("IN_REGISTERS_1", in_registers[0])
            .define("IN_REGISTERS_2", in_registers[1])
            // Powers of two, so that models with other numbers share a kernel.
            .define("MAX_LAYERS", self.layers.next_power_of_two())
            .flag("DOUBLE", variant.real == Precision::Double)
    }

    fn blocks(&self, variant: FamilyVariant, rows: usize) -> usize {
        rows.div_ceil(variant.rows()).min(self.multiprocessors * variant.blocks_held())
    }

    /// Numbers of a block in global memory: an even number, because doubles lie among them.
    fn numbers(&self, variant: FamilyVariant) -> usize {
        let raw = &self.raw;
        let sizes = [raw.labels, raw.chunk_count, raw.messages].map(|size| size as usize);
        let row = numbers_of_row(sizes, self.weights(variant));
        let WarpSchedule { warps, wide, .. } = *self.schedule(variant);
        let own = if FORMS[variant.form].is_resident() { 0 } else { row * variant.rows() };
        (own + warps * wide * LANES).next_multiple_of(LANES)
    }

    fn variant_bytes(&self, variant: FamilyVariant, rows: usize) -> usize {
        self.blocks(variant, rows) * self.numbers(variant) * variant.real.bytes()
    }

    /// # Safety
    /// As for `enqueue`.
    unsafe fn launch(
        &self,
        device: &Device,
        variant: FamilyVariant,
        rows: RawRows,
        pass: &EnginePass,
    ) -> Result<(), Error> {
        let kernel = device.kernel(&self.source(variant))?;
        let weights = self.weights(variant);
        let (schedule, tables) = (self.schedule(variant), &self.tables);
        let forest = RawForest {
            units: tables.at(weights.units),
            weights: tables.at(weights.values),
            bias: tables.at(weights.bias),
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
        let shape = LaunchShape {
            blocks: self.blocks(variant, rows.rows as usize),
            threads: self.threads(variant),
            shared: schedule.lines * LANES * variant.real.bytes(),
        };
        let arguments = KernelArguments::default().with(&forest).with(&rows);
        // SAFETY: the arguments are those of `family`, in the layout of its structures.
        unsafe { kernel.launch(shape, pass.stream, arguments.with(&pass.memory.scratch)) }
    }
}

impl EngineKernels for FamilyKernels {
    fn prepare(
        &self,
        device: &Device,
        rows: usize,
        precision: Precision,
    ) -> Result<Vec<LoadedKernel>, Error> {
        let (first, again) = self.variants(rows, precision);
        let all = [Some(first), again].into_iter().flatten();
        device.kernels(&all.map(|variant| self.source(variant)).collect::<Vec<_>>())
    }

    fn scratch_bytes(&self, rows: usize, precision: Precision) -> usize {
        let (first, again) = self.variants(rows, precision);
        let again = again.map_or(0, |variant| self.variant_bytes(variant, rows));
        self.variant_bytes(first, rows).max(again)
    }

    unsafe fn enqueue(&self, device: &Device, pass: &EnginePass) -> Result<(), Error> {
        let EnginePass { rows, precision, memory: PassMemory { again, .. }, stream } = *pass;
        let count = rows.rows as usize;
        self.prepare(device, count, precision)?;
        let (first, second) = self.variants(count, precision);
        let Some(second) = second else {
            // SAFETY: as the caller promises.
            return unsafe { self.launch(device, first, rows, pass) };
        };
        // SAFETY: as the caller promises; the stream orders the launches.
        unsafe {
            clear_count(again, stream)?;
            self.launch(device, first, RawRows { again, ..rows }, pass)?;
            self.launch(device, second, rows.only(again), pass)
        }
    }
}

impl FamilyVariant {
    fn blocks_held(self) -> usize {
        FORMS[self.form].blocks_held(self.real)
    }

    /// Rows per block.
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
