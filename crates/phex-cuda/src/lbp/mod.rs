//! `lbp` on the device: flooding messages of a factor graph, the processor's iterations to rounding.
//!
//! Messages of pairs lie in shared memory for as many rows of a block as fit (4, 2 or 1), else in global
//! memory, with the same answers. Models with relations that are hard or stronger than single precision
//! takes run in doubles.

mod order;
mod tables;

use phex::infer::compiled::Network;
use phex::infer::{MessageOptions, Method, Schedule};

use crate::Error;
use crate::buffer::Buffer;
use crate::device::{Device, Stream};
use crate::program::{Arguments, Function, Shape, Source};
use crate::rows::{Precision, RawRows};
use tables::{Layout, Sizes};

const FILES: [&str; 6] = [
    include_str!("../../kernels/common.cu"),
    include_str!("../../kernels/lbp.cu"),
    include_str!("../../kernels/lbp_groups.cu"),
    include_str!("../../kernels/lbp_counts.cu"),
    include_str!("../../kernels/lbp_rows.cu"),
    include_str!("../../kernels/lbp_kernel.cu"),
];

/// Beliefs whose odds change more than this times the tolerance, in proportion, have not converged.
const DRIFT: f64 = 1e3;

/// Most edges and nodes of a thread that keeps their indices in registers.
const MOST_ROUNDS: [u32; 2] = [13, 4];

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
    shared: bool,
    /// Edges and nodes a thread, where it keeps their indices in registers; else 0.
    rounds: [u32; 2],
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
    bias: u64,
    sizes: Sizes,
    constant: f64,
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
        if options.schedule != Schedule::Flooding {
            return Err(Error::Unsupported {
                method: Method::Lbp,
                why: String::from(
                    "its messages go label after label; take the schedule `flooding`, which sends all at once",
                ),
            });
        }
        let layout = Layout::new(network)?;
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
        let fits = |rows: usize| rows * one + FIXED_SHARED <= self.shared_bytes;
        // Few rows spread over all multiprocessors.
        let most = match rows {
            _ if rows <= self.multiprocessors => 1,
            _ if rows <= 2 * self.multiprocessors => 2,
            _ => 4,
        };
        let found = [4, 2, 1].into_iter().find(|&n| n <= most && fits(n));
        let work = (sizes.edges / 4).max(sizes.nodes / 2).max(sizes.states / 2) as u32;
        let threads = work.next_multiple_of(32).clamp(64, 1024);
        let mut rounds = [0, 0];
        let mild = self.layout.single.is_some_and(|weights| weights.mild);
        if single
            && mild
            && found.is_some()
            && sizes.ports == 0
            && sizes.slots.max(sizes.nodes) < 1 << 16
        {
            let all = [sizes.edges, sizes.nodes].map(|count| (count as u32).div_ceil(threads));
            if all[0] <= MOST_ROUNDS[0] && all[1] <= MOST_ROUNDS[1] {
                rounds = all;
            }
        }
        Variant {
            score,
            real,
            rows: found.unwrap_or(most),
            threads,
            shared: found.is_some(),
            rounds,
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
        let cached = u32::from(variant.rounds[0] + variant.rounds[1] > 0);
        let cache = [
            ("CACHED", cached),
            ("EDGE_ROUNDS", variant.rounds[0]),
            ("NODE_ROUNDS", variant.rounds[1]),
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
        ];
        defines.extend(flags.iter().filter(|flag| flag.1).map(|flag| flag.0.to_owned()));
        device.function(&Source { kernel: "lbp", files: &FILES, defines })
    }

    fn shared(&self, variant: Variant) -> usize {
        let sizes = &self.layout.sizes;
        let numbers = (sizes.nodes + sizes.slots) as usize * variant.rows;
        if variant.shared { numbers * variant.real.bytes() } else { 0 }
    }

    /// Bytes of global memory a block.
    fn block_bytes(&self, variant: Variant) -> usize {
        let size = |count: i32| count as usize;
        let Sizes { nodes, slots, ports, states, groups, entries, parts, largest, .. } =
            self.layout.sizes;
        let near = if variant.shared { 0 } else { size(nodes + slots) };
        let vectors = near + 2 * size(nodes + ports + parts) + size(entries) + 5 * size(states);
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
        let stride =
            [4, 2, 1].into_iter().find(|&s| options.iterations.is_multiple_of(s)).unwrap_or(1);
        let tolerance = options.tolerance.max(noise);
        RawCourse {
            iterations: options.iterations as i32,
            stride: stride as i32,
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
        let network = RawNetwork {
            edges: self.tables.at(layout.edges),
            weights: self.tables.at(weights.edges),
            nodes: layout.nodes.map(|at| self.tables.at(at)),
            entries: self.tables.at(layout.entries),
            entry_weights: self.tables.at(weights.entries),
            larger: layout.larger.map(|at| self.tables.at(at)),
            factor_cost: self.tables.at(layout.factor_cost),
            bias: self.tables.at(layout.bias),
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
