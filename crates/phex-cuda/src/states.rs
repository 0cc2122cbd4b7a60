//! `states` on the device: the list of legal states both ways round, and its launch.

use phex::infer::compiled::StateList;

use crate::Error;
use crate::buffer::{Buffer, Offset, Tables};
use crate::device::{Device, Stream};
use crate::program::{Arguments, Function, Shape, Source};
use crate::rows::{Precision, RawRows};

const FILES: [&str; 2] =
    [include_str!("../kernels/common.cu"), include_str!("../kernels/states.cu")];

/// Threads of a block.
const THREADS: u32 = 256;

/// Blocks of a multiprocessor, where memory lets them.
const RESIDENT: usize = 8;

/// The legal states on the device.
#[derive(Debug)]
pub(crate) struct States {
    tables: Buffer,
    bias: [Offset; 2],
    raw: RawStates,
    multiprocessors: usize,
    shared_bytes: usize,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct RawStates {
    state_start: u64,
    state_labels: u64,
    label_start: u64,
    label_states: u64,
    bias: u64,
    states: i32,
    labels: i32,
    base: f64,
}

impl States {
    pub(crate) fn new(device: &Device, list: &StateList<'_>) -> Result<States, Error> {
        let labels = list.bias.len();
        let mut start = vec![0i32; labels + 1];
        list.on.iter().for_each(|&label| start[label as usize + 1] += 1);
        (0..labels).for_each(|label| start[label + 1] += start[label]);
        let mut next = start.clone();
        let mut states = vec![0i32; list.on.len()];
        for (state, range) in list.start.windows(2).enumerate() {
            for &label in &list.on[range[0] as usize..range[1] as usize] {
                states[next[label as usize] as usize] = state as i32;
                next[label as usize] += 1;
            }
        }
        let mut tables = Tables::default();
        let single: Vec<f32> = list.bias.iter().map(|&bias| bias as f32).collect();
        let bias = [tables.add(&single), tables.add(list.bias)];
        let state_start = tables.add(list.start);
        let state_labels = tables.add(list.on);
        let (label_start, label_states) = (tables.add(&start), tables.add(&states));
        let tables = tables.upload(device)?;
        let raw = RawStates {
            state_start: tables.at(state_start),
            state_labels: tables.at(state_labels),
            label_start: tables.at(label_start),
            label_states: tables.at(label_states),
            bias: 0,
            states: list.start.len() as i32 - 1,
            labels: labels as i32,
            base: list.base,
        };
        let (multiprocessors, shared_bytes) = (device.multiprocessors(), device.shared_bytes());
        Ok(States { tables, bias, raw, multiprocessors, shared_bytes })
    }

    fn row_bytes(&self, score: Precision) -> usize {
        (self.raw.states + self.raw.labels) as usize * score.bytes()
    }

    /// Whether a row fits shared memory.
    fn fits(&self, score: Precision) -> bool {
        self.row_bytes(score) + 1024 <= self.shared_bytes
    }

    fn blocks(&self, rows: usize) -> usize {
        rows.min(self.multiprocessors * RESIDENT)
    }

    pub(crate) fn workspace(&self, rows: usize, score: Precision) -> usize {
        if self.fits(score) { 0 } else { self.blocks(rows) * self.row_bytes(score) }
    }

    pub(crate) fn prepare(&self, device: &Device, score: Precision) -> Result<Function, Error> {
        let mut defines = vec![
            format!("SCORE={}", score.name()),
            format!("REAL={}", score.name()),
            format!("THREADS={THREADS}"),
        ];
        if self.fits(score) {
            defines.push(String::from("SHARED"));
        }
        device.function(&Source { kernel: "states", files: &FILES, defines })
    }

    /// # Safety
    /// The addresses must be of live memory of the sizes that the rows need.
    pub(crate) unsafe fn enqueue(
        &self,
        device: &Device,
        rows: RawRows,
        score: Precision,
        scratch: u64,
        stream: Stream,
    ) -> Result<(), Error> {
        let function = self.prepare(device, score)?;
        let which = usize::from(score == Precision::Double);
        let states = RawStates { bias: self.tables.at(self.bias[which]), ..self.raw };
        let shared = if self.fits(score) { self.row_bytes(score) } else { 0 };
        let shape = Shape { blocks: self.blocks(rows.rows as usize), threads: THREADS, shared };
        let arguments = Arguments::default().with(&states).with(&rows).with(&scratch);
        // SAFETY: the arguments are those of `states`, in the layout of its structures.
        unsafe { function.launch(shape, stream, arguments) }
    }
}
