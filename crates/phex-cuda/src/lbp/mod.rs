//! `lbp` on the device: flooding messages of a factor graph, the same iterations as on the CPU up to rounding.
//!
//! A block has as many rows (4, 2 or 1) as have their messages in shared memory; if not even one fits, messages lie in global
//! memory, with the same answers. Models with relations that are hard, or too strong for single precision, run in doubles.

mod echo;
mod order;
mod spread;
mod tables;

use phex::infer::compiled::Network;
use phex::infer::{MessageOptions, MessageOrder, Method};

use crate::Error;
use crate::device::Device;
use crate::kernels::{EngineKernels, EnginePass};
use crate::memory::{DeviceMemory, TableOffset};
use crate::program::{KernelArguments, KernelSource, LaunchShape, LoadedKernel};
use crate::rows::Precision;
use tables::{NetworkSizes, NetworkTables, WeightTables};

const FILES: &[&str] = &[
    include_str!("../../kernels/lbp/messages.cu"),
    include_str!("../../kernels/lbp/groups.cu"),
    include_str!("../../kernels/lbp/counts.cu"),
    include_str!("../../kernels/lbp/cached.cu"),
    include_str!("../../kernels/lbp/echo.cu"),
    include_str!("../../kernels/lbp/rows.cu"),
    include_str!("../../kernels/lbp/kernel.cu"),
];

/// A row has not converged while odds change, in proportion, by more than this times the tolerance.
const DRIFT: f64 = 1e3;

/// The most edges of a thread that keeps their indices in registers.
const MOST_EDGES: u32 = 13;
/// The most nodes of such a thread.
const MOST_TURNS: usize = 4;

/// The most messages of a label whose exponent a thread keeps in 16 bits: so many of strength 6 do not outweigh evidence.
const MOST_MESSAGES: usize = 1800;

/// Bytes of an entry of four messages.
const TAIL: usize = 8;

/// How many of the last iterations compare beliefs.
const COMPARED: u32 = 3;

/// Shared memory that the kernel has beside the messages.
const FIXED_SHARED: usize = 3072;

/// A factor graph on the device.
#[derive(Debug)]
pub(crate) struct LbpKernels {
    network: NetworkTables,
    memory: DeviceMemory,
    options: MessageOptions,
    multiprocessors: usize,
    shared_bytes: usize,
}

/// One instance of the kernel.
#[derive(Debug, Clone, Copy)]
struct LbpVariant {
    score: Precision,
    real: Precision,
    /// Rows per block.
    rows: usize,
    threads: u32,
    /// Whether the numbers of labels and pairs lie in shared memory, and those of larger factors with them.
    shared: bool,
    ports: bool,
    iteration: IterationForm,
}

/// How messages are sent.
#[derive(Debug, Clone, Copy)]
enum IterationForm {
    /// Nodes, then edges.
    Plain,
    /// The same. A thread has this many of both, and keeps their indices in registers.
    Cached { edges: u32, nodes: u32 },
    /// Nodes answer messages in place; a thread has this many. With `near`, the table of senders is in shared memory too,
    /// and beliefs are compared in the last iterations only.
    Echo { nodes: u32, kinds: usize, near: bool },
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct RawNetwork {
    edges: u64,
    weights: u64,
    nodes: [u64; 6],
    entries: u64,
    entry_weights: u64,
    larger: [u64; 12],
    factor_cost: u64,
    factor_weight: u64,
    bias: u64,
    heads: u64,
    tails: u64,
    reach: u64,
    strengths: [f32; 4],
    sizes: NetworkSizes,
    constant: f64,
}

/// After how many iterations rows are checked.
fn stride(options: &MessageOptions) -> u32 {
    [4, 2, 1].into_iter().find(|&s| options.iterations.is_multiple_of(s)).unwrap_or(1)
}

/// Whether messages can be answered in place. Damping needs the old messages, which the answers overwrite. And rows must be
/// checked an even number of iterations before the last, so that every message is then with its reader.
fn may_echo(options: &MessageOptions) -> bool {
    options.damping == 0.0 && (options.tolerance == 0.0 || stride(options).is_multiple_of(2))
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct RawCourse<T> {
    iterations: i32,
    stride: i32,
    old_part: T,
    new_part: T,
    tolerance: f64,
    drift: f64,
    may_stop: i32,
}

impl LbpKernels {
    pub(crate) fn new(
        device: &Device,
        network: &Network,
        options: &MessageOptions,
    ) -> Result<LbpKernels, Error> {
        if options.schedule != MessageOrder::Flooding {
            return Err(Error::Unsupported {
                method: Method::Lbp,
                why: String::from(
                    "it sends messages label after label; use the schedule `flooding`, which sends all at once",
                ),
            });
        }
        let network = NetworkTables::new(network, may_echo(options))?;
        let memory = network.tables.upload(device)?;
        Ok(LbpKernels {
            network,
            memory,
            options: *options,
            multiprocessors: device.multiprocessors(),
            shared_bytes: device.shared_bytes(),
        })
    }

    fn variant(&self, rows: usize, score: Precision) -> LbpVariant {
        let sizes = &self.network.sizes;
        let single = score == Precision::Single && self.network.single.is_some();
        let real = if single { Precision::Single } else { Precision::Double };
        let one = (sizes.nodes + sizes.slots) as usize * real.bytes();
        let ports = 2 * sizes.ports as usize * real.bytes();
        let fits = |rows: usize| rows * one + FIXED_SHARED <= self.shared_bytes;
        // Few rows are spread over all multiprocessors.
        let most = match rows {
            _ if rows <= self.multiprocessors => 1,
            _ if rows <= 2 * self.multiprocessors => 2,
            _ => 4,
        };
        let found = [4, 2, 1].into_iter().find(|&n| n <= most && fits(n));
        LbpVariant {
            score,
            real,
            rows: found.unwrap_or(most),
            threads: self.network.threads,
            shared: found.is_some(),
            ports: sizes.ports > 0
                && found
                    .is_some_and(|rows| rows * (one + ports) + FIXED_SHARED <= self.shared_bytes),
            iteration: found
                .filter(|_| single)
                .map_or(IterationForm::Plain, |rows| self.iteration(rows)),
        }
    }

    /// How messages are sent in single precision, with those of `rows` rows in shared memory.
    fn iteration(&self, rows: usize) -> IterationForm {
        let NetworkSizes { edges, nodes, slots, ports, tails, labels, .. } = self.network.sizes;
        // At least one, because there are no empty arrays.
        let [edges, rounds] =
            [edges, nodes].map(|count| (count as u32).div_ceil(self.network.threads).max(1));
        let mild = self.network.single.is_some_and(|weights| weights.mild);
        let fits =
            slots.max(nodes).max(labels) < 0xffff && self.network.most_messages <= MOST_MESSAGES;
        if !mild || ports > 0 || !fits || rounds > MOST_TURNS as u32 {
            return IterationForm::Plain;
        }
        match self.network.partners {
            Some(partners) => {
                let room = nodes as usize * rows * Precision::Single.bytes();
                let late = self.options.tolerance == 0.0 && self.options.iterations > COMPARED;
                let near = late && tails as usize * TAIL <= room;
                IterationForm::Echo { nodes: rounds, kinds: partners.kinds, near }
            }
            _ if edges <= MOST_EDGES => IterationForm::Cached { edges, nodes: rounds },
            _ => IterationForm::Plain,
        }
    }

    fn weights(&self, variant: LbpVariant) -> &WeightTables {
        let single = self.network.single.as_ref().filter(|_| variant.real == Precision::Single);
        single.unwrap_or(&self.network.double)
    }

    fn kernel(&self, device: &Device, variant: LbpVariant) -> Result<LoadedKernel, Error> {
        let (cached, echo, edges, nodes, kinds, near) = match variant.iteration {
            IterationForm::Plain => (0, 0, 0, 0, 0, false),
            IterationForm::Cached { edges, nodes } => (1, 0, edges, nodes, 0, false),
            IterationForm::Echo { nodes, kinds, near } => (0, 1, 0, nodes, kinds, near),
        };
        let NetworkSizes { groups, factors, ports, .. } = self.network.sizes;
        let types = [variant.score, variant.real];
        let source = KernelSource::new("lbp", FILES, types, variant.threads)
            .define("ROWS", variant.rows)
            .define("CACHED", cached)
            .define("ECHO", echo)
            .define("EDGE_ROUNDS", edges)
            .define("NODE_ROUNDS", nodes)
            .define("KINDS", kinds)
            .define("NEAR", i32::from(near))
            .define("HAS_GROUPS", i32::from(groups > 0))
            .define("HAS_FACTORS", i32::from(factors > 0))
            .define("HAS_PORTS", i32::from(ports > 0))
            .flag("DOUBLE", variant.real == Precision::Double)
            .flag("MILD", self.weights(variant).mild)
            .flag("DAMPED", self.options.damping > 0.0)
            .flag("SHARED", variant.shared)
            .flag("SHARED_PORTS", variant.ports);
        device.kernel(&source)
    }

    fn shared(&self, variant: LbpVariant) -> usize {
        let sizes = &self.network.sizes;
        let ports = if variant.ports { 2 * sizes.ports } else { 0 };
        let numbers = (sizes.nodes + sizes.slots + ports) as usize * variant.rows;
        if variant.shared { numbers * variant.real.bytes() } else { 0 }
    }

    /// Bytes of global memory per block.
    fn block_bytes(&self, variant: LbpVariant) -> usize {
        let size = |count: i32| count as usize;
        let NetworkSizes { nodes, slots, ports, states, groups, entries, parts, largest, .. } =
            self.network.sizes;
        let near = if variant.shared { 0 } else { size(nodes + slots) };
        let own =
            if matches!(variant.iteration, IterationForm::Plain) { 2 * size(nodes) } else { 0 };
        let ports = if variant.ports { 0 } else { 2 * size(ports) };
        let vectors = near + own + ports + 2 * size(parts) + size(entries) + 5 * size(states);
        let warps = variant.threads as usize / 32;
        let doubles = 2 * size(groups) * variant.rows + warps * 4 * (size(largest) + 1);
        (vectors * variant.rows * variant.real.bytes() + 8 * doubles + 8).next_multiple_of(256)
    }

    fn blocks(&self, variant: LbpVariant, rows: usize) -> usize {
        let held = self.shared_bytes / (self.shared(variant) + FIXED_SHARED);
        let held = held.min(2048 / variant.threads as usize).clamp(1, 16);
        rows.div_ceil(variant.rows).min(self.multiprocessors * held)
    }

    fn course<T>(&self, real: Precision, round: impl Fn(f64) -> T) -> RawCourse<T> {
        let options = &self.options;
        let (noise, rounding) = match real {
            Precision::Single => (5e-6, 1e-4),
            Precision::Double => (0.0, 1e-11),
        };
        let tolerance = options.tolerance.max(noise);
        RawCourse {
            iterations: options.iterations as i32,
            stride: stride(options) as i32,
            old_part: round(options.damping),
            new_part: round(1.0 - options.damping),
            tolerance,
            drift: (tolerance * DRIFT).clamp(rounding, 1e-3),
            may_stop: i32::from(options.tolerance > 0.0),
        }
    }
}

impl EngineKernels for LbpKernels {
    fn prepare(
        &self,
        device: &Device,
        rows: usize,
        precision: Precision,
    ) -> Result<Vec<LoadedKernel>, Error> {
        Ok(vec![self.kernel(device, self.variant(rows, precision))?])
    }

    fn scratch_bytes(&self, rows: usize, precision: Precision) -> usize {
        let variant = self.variant(rows, precision);
        self.blocks(variant, rows) * self.block_bytes(variant)
    }

    unsafe fn enqueue(&self, device: &Device, pass: &EnginePass) -> Result<(), Error> {
        let rows = pass.rows;
        let variant = self.variant(rows.rows as usize, pass.precision);
        let kernel = self.kernel(device, variant)?;
        let (weights, memory, from) = (self.weights(variant), &self.memory, &self.network);
        let partners = from.partners;
        let table = |offset: Option<TableOffset>| offset.map_or(0, |offset| memory.at(offset));
        let network = RawNetwork {
            edges: memory.at(from.edges),
            weights: memory.at(weights.edges),
            nodes: from.nodes.map(|at| memory.at(at)),
            entries: memory.at(from.entries),
            entry_weights: memory.at(weights.entries),
            larger: from.larger.map(|at| memory.at(at)),
            factor_cost: memory.at(from.factor_cost),
            factor_weight: memory.at(from.factor_weight),
            bias: memory.at(from.bias),
            heads: table(partners.map(|partners| partners.heads)),
            tails: table(partners.map(|partners| partners.tails)),
            reach: table(partners.map(|partners| partners.reach)),
            strengths: partners.map_or([1.0; 4], |partners| partners.strengths),
            sizes: from.sizes,
            constant: from.constant + weights.constant,
        };
        let shape = LaunchShape {
            blocks: self.blocks(variant, rows.rows as usize),
            threads: variant.threads,
            shared: self.shared(variant),
        };
        let bytes = self.block_bytes(variant) as u64;
        let start = KernelArguments::default().with(&network);
        let single = self.course(variant.real, |value| value as f32);
        let double = self.course(variant.real, |value| value);
        let arguments = match variant.real {
            Precision::Single => start.with(&single),
            Precision::Double => start.with(&double),
        };
        let arguments = arguments.with(&rows).with(&pass.memory.diagnosis);
        let arguments = arguments.with(&pass.memory.scratch).with(&bytes);
        // SAFETY: the arguments are those of `lbp`, in the layout of its structures.
        unsafe { kernel.launch(shape, pass.stream, arguments) }
    }

    fn has_diagnosis(&self) -> bool {
        true
    }

    /// Only hard relations can be contradicted.
    fn misses_contradictions(&self) -> bool {
        self.network.hard
    }
}
