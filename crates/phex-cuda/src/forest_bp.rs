//! `forest-bp` on the device: passes of `family` over a forest, and messages between them on the pairs of labels that the
//! forest leaves out.
//!
//! All passes are enqueued at once. A row whose beliefs no longer change is not listed for the next pass, so a pass costs
//! only the rows that go on, and the host never waits to learn how many those are. In doubles, as on the CPU.

use phex::infer::MessageOptions;
use phex::infer::compiled::Joined;

use crate::Error;
use crate::device::Device;
use crate::family::{BlockRows, FamilyKernels};
use crate::kernels::{EngineKernels, EnginePass, PassMemory, RawDiagnosis};
use crate::memory::{Carver, DeviceMemory, TableBuilder, clear_count};
use crate::program::{KernelArguments, KernelSource, LaunchShape, LoadedKernel};
use crate::rows::{Precision, RawRows};

const FILES: &[&str] = &[include_str!("../kernels/forest_bp.cu")];

const KERNELS: [&str; 3] = ["forest_bp_start", "forest_bp_iterate", "forest_bp_finish"];

/// Threads per block, which has one row.
const THREADS: u32 = 128;

/// A forest and the pairs that it leaves out, on the device.
#[derive(Debug)]
pub(crate) struct ForestBpKernels {
    forest: FamilyKernels,
    /// Holds what the addresses below point to.
    _tables: DeviceMemory,
    raw: RawPairs,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct RawPairs {
    ends: u64,
    weights: u64,
    costs: u64,
    label_start: u64,
    label_messages: u64,
    pairs: i32,
    labels: i32,
    iterations: i32,
    tolerance: f64,
    damping: f64,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct RawBeliefs {
    adjusted: u64,
    fresh: u64,
    old: u64,
    messages: u64,
    forest: u64,
    status: u64,
    diagnosis: RawDiagnosis,
}

/// The scratch memory of a pass.
struct BeliefMemory {
    beliefs: RawBeliefs,
    /// The rows that go on, by turns.
    lists: [u64; 2],
    forest: u64,
}

impl ForestBpKernels {
    pub(crate) fn new(
        device: &Device,
        joined: &Joined<'_>,
        options: &MessageOptions,
        block_rows: BlockRows,
    ) -> Result<ForestBpKernels, Error> {
        let forest = FamilyKernels::new(device, &joined.forest, block_rows)?;
        let labels = joined.forest.bias.len();
        let mut of_label = vec![Vec::new(); labels];
        for (at, pair) in joined.residual.iter().enumerate() {
            of_label[pair.a].push(2 * at as i32);
            of_label[pair.b].push(2 * at as i32 + 1);
        }
        let mut label_start = vec![0i32];
        for messages in &of_label {
            label_start.push(label_start[label_start.len() - 1] + messages.len() as i32);
        }
        let ends: Vec<[i32; 2]> =
            joined.residual.iter().map(|pair| [pair.a as i32, pair.b as i32]).collect();
        let costs: Vec<f64> = joined.residual.iter().flat_map(|pair| pair.costs.concat()).collect();
        let weights: Vec<f64> = costs.iter().map(|cost| (-cost).exp()).collect();
        let mut tables = TableBuilder::default();
        let [weights, costs] = [&weights, &costs].map(|table| tables.add(table));
        let [label_start, label_messages] =
            [&label_start, &of_label.concat()].map(|table| tables.add(table));
        let ends = tables.add(&ends);
        let tables = tables.upload(device)?;
        let raw = RawPairs {
            ends: tables.at(ends),
            weights: tables.at(weights),
            costs: tables.at(costs),
            label_start: tables.at(label_start),
            label_messages: tables.at(label_messages),
            pairs: joined.residual.len() as i32,
            labels: labels as i32,
            iterations: options.iterations as i32,
            tolerance: options.tolerance,
            damping: options.damping,
        };
        Ok(ForestBpKernels { forest, _tables: tables, raw })
    }

    fn carve(&self, carver: &mut Carver, rows: usize, diagnosis: RawDiagnosis) -> BeliefMemory {
        let numbers = 8 * rows * self.raw.labels as usize;
        let beliefs = RawBeliefs {
            adjusted: carver.take(numbers),
            fresh: carver.take(numbers),
            old: carver.take(numbers),
            messages: carver.take(16 * rows * self.raw.pairs as usize),
            forest: carver.take(8 * rows),
            status: carver.take(4 * rows),
            diagnosis,
        };
        let lists = [(); 2].map(|()| carver.take(4 * (rows + 1)));
        let forest = carver.take(self.forest.scratch_bytes(rows, Precision::Double));
        BeliefMemory { beliefs, lists, forest }
    }
}

impl EngineKernels for ForestBpKernels {
    /// The three kernels of this engine, then those of the forest.
    fn prepare(
        &self,
        device: &Device,
        rows: usize,
        precision: Precision,
    ) -> Result<Vec<LoadedKernel>, Error> {
        let types = [precision, Precision::Double];
        let source = |name| KernelSource::new(name, FILES, types, THREADS);
        let mut all = device.kernels(&KERNELS.map(source))?;
        all.extend(self.forest.prepare(device, rows, Precision::Double)?);
        Ok(all)
    }

    fn scratch_bytes(&self, rows: usize, _precision: Precision) -> usize {
        Carver::measure(|carver| self.carve(carver, rows, RawDiagnosis::default()))
    }

    unsafe fn enqueue(&self, device: &Device, pass: &EnginePass) -> Result<(), Error> {
        let EnginePass { rows, precision, memory: PassMemory { diagnosis, scratch, .. }, stream } =
            *pass;
        let count = rows.rows as usize;
        let kernels = self.prepare(device, count, precision)?;
        let BeliefMemory { beliefs, lists, forest } =
            self.carve(&mut Carver::new(scratch), count, diagnosis);
        let shape = LaunchShape { blocks: count.min(1 << 16), threads: THREADS, shared: 0 };
        let launch = |kernel: &LoadedKernel, arguments: KernelArguments<'_>| {
            // SAFETY: the arguments are those of the kernels, in the layout of their structures; the memory is as the
            // caller promises.
            unsafe { kernel.launch(shape, stream, arguments) }
        };
        let all = KernelArguments::default().with(&self.raw).with(&rows).with(&beliefs);
        launch(&kernels[0], all)?;
        for iteration in 0..self.raw.iterations {
            let [list, next] = [iteration, iteration + 1].map(|at| lists[at as usize % 2]);
            // The first pass is over all rows.
            let only = |rows: RawRows| if iteration == 0 { rows } else { rows.only(list) };
            let forest_rows = RawRows {
                scores: beliefs.adjusted,
                marginals: beliefs.fresh,
                log_partition: beliefs.forest,
                status: beliefs.status,
                score_rows: rows.rows,
                ..only(rows)
            };
            let forest_pass = EnginePass {
                rows: forest_rows,
                precision: Precision::Double,
                // Rows in doubles are not done again, so no list is needed.
                memory: PassMemory { again: 0, diagnosis, scratch: forest },
                stream,
            };
            // SAFETY: as the caller promises; the scratch memory has the size of the rows in doubles.
            unsafe {
                self.forest.enqueue(device, &forest_pass)?;
                clear_count(next, stream)?;
            }
            let some = only(rows);
            let arguments = KernelArguments::default().with(&self.raw).with(&some).with(&beliefs);
            launch(&kernels[1], arguments.with(&next).with(&iteration))?;
        }
        let all = KernelArguments::default().with(&self.raw).with(&rows).with(&beliefs);
        launch(&kernels[2], all)
    }

    fn has_diagnosis(&self) -> bool {
        true
    }

    /// The forest does not know the pairs, which evidence may contradict.
    fn misses_contradictions(&self) -> bool {
        true
    }
}
