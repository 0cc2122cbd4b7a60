//! `lbp` on the device: flooding messages of a factor graph, the processor's iterations to rounding.
//!
//! Messages of pairs lie in shared memory for as many rows of a block as fit (4, 2 or 1), else in global
//! memory, with the same answers. Models with relations that are hard or stronger than single precision
//! takes run in doubles.

mod echo;
mod order;
mod spread;
mod tables;

use phex::infer::compiled::Network;
use phex::infer::{MessageOptions, MessageOrder, Method};

use crate::Error;
use crate::buffer::{Buffer, Offset};
use crate::device::{Device, Stream};
use crate::program::{Arguments, Function, Shape, Source};
use crate::rows::{Precision, RawRows};
use tables::{Layout, Sizes};

const FILES: [&str; 8] = [
    include_str!("../../kernels/common.cu"),
    include_str!("../../kernels/lbp.cu"),
    include_str!("../../kernels/lbp_groups.cu"),
    include_str!("../../kernels/lbp_counts.cu"),
    include_str!("../../kernels/lbp_cached.cu"),
    include_str!("../../kernels/lbp_echo.cu"),
    include_str!("../../kernels/lbp_rows.cu"),
    include_str!("../../kernels/lbp_kernel.cu"),
];

/// Beliefs whose odds change more than this times the tolerance, in proportion, have not converged.
const DRIFT: f64 = 1e3;

/// Most edges of a thread that keeps their indices in registers.
const MOST_EDGES: u32 = 13;
/// Most nodes of such a thread.
const MOST_TURNS: usize = 4;

/// Most messages of a label whose exponent a thread keeps in 16 bits: so many of strength 6 do not outweigh what is known.
const MOST_MESSAGES: usize = 1800;

/// Bytes of an entry of four messages.
const TAIL: usize = 8;

/// The last iterations, whose beliefs are compared.
const COMPARED: u32 = 3;

/// Shared memory that the kernel has beside the messages.
const FIXED_SHARED: usize = 3072;

/// A factor graph on the device.
#[derive(Debug)]
pub(crate) struct Lbp {
    layout: Layout,
    tables: Buffer,
    options: MessageOptions,
    multiprocessors: usize,
    shared_bytes: usize,
}

/// The kernel for some rows.
#[derive(Debug, Clone, Copy)]
struct Variant {
    score: Precision,
    real: Precision,
    /// Rows of a block.
    rows: usize,
    threads: u32,
    /// Whether the numbers of labels and pairs lie in shared memory, and those of larger factors with them.
    shared: bool,
    ports: bool,
    iteration: Iteration,
}

/// How messages are sent.
#[derive(Debug, Clone, Copy)]
enum Iteration {
    /// Nodes, then edges.
    Plain,
    /// The same; a thread has so many of both and keeps their indices in registers.
    Cached { edges: u32, nodes: u32 },
    /// Nodes answer messages in place; a thread has so many. Whom further messages come from is in shared memory too, where
    /// beliefs are compared in the last iterations only.
    Echo { nodes: u32, kinds: usize, near: bool },
}

/// Where the diagnosis of each row goes.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct RawAnswers {
    /// Doubles.
    pub(crate) residual: u64,
    /// Integers.
    pub(crate) iterations: u64,
    /// Integers: not 0 where it did.
    pub(crate) converged: u64,
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
    sizes: Sizes,
    constant: f64,
}

/// Iterations after which rows are looked at.
fn stride(options: &MessageOptions) -> u32 {
    [4, 2, 1].into_iter().find(|&s| options.iterations.is_multiple_of(s)).unwrap_or(1)
}

/// Damping needs the old messages, which answers in place overwrite. And a row must be asked for after as many iterations as
/// leave every message with its reader: those that the last has, less a multiple of two.
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

impl Lbp {
    pub(crate) fn new(
        device: &Device,
        network: &Network,
        options: &MessageOptions,
    ) -> Result<Lbp, Error> {
        if options.schedule != MessageOrder::Flooding {
            return Err(Error::Unsupported {
                method: Method::Lbp,
                why: String::from(
                    "its messages go label after label; take the schedule `flooding`, which sends all at once",
                ),
            });
        }
        let layout = Layout::new(network, may_echo(options))?;
        let tables = layout.tables.upload(device)?;
        Ok(Lbp {
            layout,
            tables,
            options: *options,
            multiprocessors: device.multiprocessors(),
            shared_bytes: device.shared_bytes(),
        })
    }

    /// Whether evidence may contradict hard relations: the processor looks.
    pub(crate) fn is_hard(&self) -> bool {
        self.layout.hard
    }

    fn variant(&self, rows: usize, score: Precision) -> Variant {
        let sizes = &self.layout.sizes;
        let single = score == Precision::Single && self.layout.single.is_some();
        let real = if single { Precision::Single } else { Precision::Double };
        let one = (sizes.nodes + sizes.slots) as usize * real.bytes();
        let ports = 2 * sizes.ports as usize * real.bytes();
        let fits = |rows: usize| rows * one + FIXED_SHARED <= self.shared_bytes;
        // Few rows spread over all multiprocessors.
        let most = match rows {
            _ if rows <= self.multiprocessors => 1,
            _ if rows <= 2 * self.multiprocessors => 2,
            _ => 4,
        };
        let found = [4, 2, 1].into_iter().find(|&n| n <= most && fits(n));
        Variant {
            score,
            real,
            rows: found.unwrap_or(most),
            threads: self.layout.threads,
            shared: found.is_some(),
            ports: sizes.ports > 0
                && found
                    .is_some_and(|rows| rows * (one + ports) + FIXED_SHARED <= self.shared_bytes),
            iteration: found
                .filter(|_| single)
                .map_or(Iteration::Plain, |rows| self.iteration(rows)),
        }
    }

    /// In single precision, with messages of so many rows in shared memory.
    fn iteration(&self, rows: usize) -> Iteration {
        let Sizes { edges, nodes, slots, ports, tails, labels, .. } = self.layout.sizes;
        // One at least: there are no arrays without entries.
        let [edges, rounds] =
            [edges, nodes].map(|count| (count as u32).div_ceil(self.layout.threads).max(1));
        let mild = self.layout.single.is_some_and(|weights| weights.mild);
        let fits =
            slots.max(nodes).max(labels) < 0xffff && self.layout.most_messages <= MOST_MESSAGES;
        if !mild || ports > 0 || !fits || rounds > MOST_TURNS as u32 {
            return Iteration::Plain;
        }
        match self.layout.partners {
            Some(partners) => {
                let room = nodes as usize * rows * Precision::Single.bytes();
                let late = self.options.tolerance == 0.0 && self.options.iterations > COMPARED;
                let near = late && tails as usize * TAIL <= room;
                Iteration::Echo { nodes: rounds, kinds: partners.kinds, near }
            }
            _ if edges <= MOST_EDGES => Iteration::Cached { edges, nodes: rounds },
            _ => Iteration::Plain,
        }
    }

    fn function(&self, device: &Device, variant: Variant) -> Result<Function, Error> {
        let weights = match (variant.real, &self.layout.single) {
            (Precision::Single, Some(single)) => single,
            _ => &self.layout.double,
        };
        let mut defines = vec![
            format!("SCORE={}", variant.score.name()),
            format!("REAL={}", variant.real.name()),
            format!("ROWS={}", variant.rows),
            format!("THREADS={}", variant.threads),
        ];
        let (cached, echo, edges, nodes, kinds, near) = match variant.iteration {
            Iteration::Plain => (0, 0, 0, 0, 0, false),
            Iteration::Cached { edges, nodes } => (1, 0, edges, nodes, 0, false),
            Iteration::Echo { nodes, kinds, near } => (0, 1, 0, nodes, kinds, near),
        };
        let cache = [
            ("CACHED", cached),
            ("ECHO", echo),
            ("EDGE_ROUNDS", edges),
            ("NODE_ROUNDS", nodes),
            ("KINDS", kinds as u32),
            ("NEAR", u32::from(near)),
        ];
        defines.extend(cache.iter().map(|(name, value)| format!("{name}={value}")));
        let Sizes { groups, factors, ports, .. } = self.layout.sizes;
        for (name, count) in
            [("HAS_GROUPS", groups), ("HAS_FACTORS", factors), ("HAS_PORTS", ports)]
        {
            defines.push(format!("{name}={}", i32::from(count > 0)));
        }
        let flags = [
            ("DOUBLE", variant.real == Precision::Double),
            ("MILD", weights.mild),
            ("DAMPED", self.options.damping > 0.0),
            ("SHARED", variant.shared),
            ("SHARED_PORTS", variant.ports),
        ];
        defines.extend(flags.iter().filter(|flag| flag.1).map(|flag| flag.0.to_owned()));
        device.function(&Source { kernel: "lbp", files: &FILES, defines })
    }

    fn shared(&self, variant: Variant) -> usize {
        let sizes = &self.layout.sizes;
        let ports = if variant.ports { 2 * sizes.ports } else { 0 };
        let numbers = (sizes.nodes + sizes.slots + ports) as usize * variant.rows;
        if variant.shared { numbers * variant.real.bytes() } else { 0 }
    }

    /// Bytes of global memory a block.
    fn block_bytes(&self, variant: Variant) -> usize {
        let size = |count: i32| count as usize;
        let Sizes { nodes, slots, ports, states, groups, entries, parts, largest, .. } =
            self.layout.sizes;
        let near = if variant.shared { 0 } else { size(nodes + slots) };
        let own = if matches!(variant.iteration, Iteration::Plain) { 2 * size(nodes) } else { 0 };
        let ports = if variant.ports { 0 } else { 2 * size(ports) };
        let vectors = near + own + ports + 2 * size(parts) + size(entries) + 5 * size(states);
        let warps = variant.threads as usize / 32;
        let doubles = 2 * size(groups) * variant.rows + warps * 4 * (size(largest) + 1);
        (vectors * variant.rows * variant.real.bytes() + 8 * doubles + 8).next_multiple_of(256)
    }

    fn blocks(&self, variant: Variant, rows: usize) -> usize {
        let held = self.shared_bytes / (self.shared(variant) + FIXED_SHARED);
        let held = held.min(2048 / variant.threads as usize).clamp(1, 16);
        rows.div_ceil(variant.rows).min(self.multiprocessors * held)
    }

    pub(crate) fn workspace(&self, rows: usize, score: Precision) -> usize {
        let variant = self.variant(rows, score);
        self.blocks(variant, rows) * self.block_bytes(variant)
    }

    pub(crate) fn prepare(
        &self,
        device: &Device,
        rows: usize,
        score: Precision,
    ) -> Result<Function, Error> {
        self.function(device, self.variant(rows, score))
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

    /// # Safety
    /// The addresses must be of live memory of the sizes that the rows need.
    pub(crate) unsafe fn enqueue(
        &self,
        device: &Device,
        rows: RawRows,
        score: Precision,
        answers: RawAnswers,
        scratch: u64,
        stream: Stream,
    ) -> Result<(), Error> {
        let variant = self.variant(rows.rows as usize, score);
        let function = self.function(device, variant)?;
        let weights = match (variant.real, &self.layout.single) {
            (Precision::Single, Some(single)) => single,
            _ => &self.layout.double,
        };
        let layout = &self.layout;
        let partners = layout.partners;
        let table = |offset: Option<Offset>| offset.map_or(0, |offset| self.tables.at(offset));
        let network = RawNetwork {
            edges: self.tables.at(layout.edges),
            weights: self.tables.at(weights.edges),
            nodes: layout.nodes.map(|at| self.tables.at(at)),
            entries: self.tables.at(layout.entries),
            entry_weights: self.tables.at(weights.entries),
            larger: layout.larger.map(|at| self.tables.at(at)),
            factor_cost: self.tables.at(layout.factor_cost),
            factor_weight: self.tables.at(layout.factor_weight),
            bias: self.tables.at(layout.bias),
            heads: table(partners.map(|partners| partners.heads)),
            tails: table(partners.map(|partners| partners.tails)),
            reach: table(partners.map(|partners| partners.reach)),
            strengths: partners.map_or([1.0; 4], |partners| partners.strengths),
            sizes: layout.sizes,
            constant: layout.constant + weights.constant,
        };
        let shape = Shape {
            blocks: self.blocks(variant, rows.rows as usize),
            threads: variant.threads,
            shared: self.shared(variant),
        };
        let bytes = self.block_bytes(variant) as u64;
        let start = Arguments::default().with(&network);
        let single = self.course(variant.real, |value| value as f32);
        let double = self.course(variant.real, |value| value);
        let arguments = match variant.real {
            Precision::Single => start.with(&single),
            Precision::Double => start.with(&double),
        };
        let arguments = arguments.with(&rows).with(&answers).with(&scratch).with(&bytes);
        // SAFETY: the arguments are those of `lbp`, in the layout of its structures.
        unsafe { function.launch(shape, stream, arguments) }
    }
}
