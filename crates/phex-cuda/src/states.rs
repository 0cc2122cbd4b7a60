//! `states` on the device: the labels of each legal state and the states of each label, and its launch.

use phex::infer::compiled::StateList;

use crate::Error;
use crate::device::Device;
use crate::kernels::{EngineKernels, EnginePass};
use crate::memory::{DeviceMemory, TableBuilder, TableOffset};
use crate::program::{KernelArguments, KernelSource, LoadedKernel};
use crate::row_blocks::{RowBlocks, THREADS};
use crate::rows::Precision;

const FILES: &[&str] = &[include_str!("../kernels/states.cu")];

/// The legal states on the device.
#[derive(Debug)]
pub(crate) struct StatesKernels {
    tables: DeviceMemory,
    /// In single and in double precision.
    bias: [TableOffset; 2],
    raw: RawStates,
    blocks: RowBlocks,
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

impl StatesKernels {
    pub(crate) fn new(device: &Device, list: &StateList<'_>) -> Result<StatesKernels, Error> {
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
        let mut tables = TableBuilder::default();
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
        Ok(StatesKernels { tables, bias, raw, blocks: RowBlocks::new(device) })
    }

    /// Bytes per row: a score per label and a weight per state.
    fn row_bytes(&self, precision: Precision) -> usize {
        (self.raw.states + self.raw.labels) as usize * precision.bytes()
    }

    fn kernel(&self, device: &Device, precision: Precision) -> Result<LoadedKernel, Error> {
        let source = KernelSource::new("states", FILES, [precision; 2], THREADS)
            .flag("SHARED", self.blocks.fits(self.row_bytes(precision)));
        device.kernel(&source)
    }
}

impl EngineKernels for StatesKernels {
    fn prepare(
        &self,
        device: &Device,
        _rows: usize,
        precision: Precision,
    ) -> Result<Vec<LoadedKernel>, Error> {
        Ok(vec![self.kernel(device, precision)?])
    }

    fn scratch_bytes(&self, rows: usize, precision: Precision) -> usize {
        self.blocks.scratch_bytes(rows, self.row_bytes(precision))
    }

    unsafe fn enqueue(&self, device: &Device, pass: &EnginePass) -> Result<(), Error> {
        let kernel = self.kernel(device, pass.precision)?;
        let bias = self.bias[usize::from(pass.precision == Precision::Double)];
        let states = RawStates { bias: self.tables.at(bias), ..self.raw };
        let shape = self.blocks.shape(pass.rows.rows as usize, self.row_bytes(pass.precision));
        let arguments = KernelArguments::default().with(&states).with(&pass.rows);
        // SAFETY: the arguments are those of `states`, in the layout of its structures.
        unsafe { kernel.launch(shape, pass.stream, arguments.with(&pass.memory.scratch)) }
    }
}
