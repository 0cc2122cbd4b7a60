//! `star` on the device: the matrix of cells as tables, and its launch. The equations are in `star.cu`.

use phex::graph::LabelId;
use phex::infer::compiled::Classes;

use crate::Error;
use crate::device::Device;
use crate::kernels::{EngineKernels, EnginePass};
use crate::memory::{DeviceMemory, TableBuilder, TableOffset};
use crate::program::{KernelArguments, KernelSource, LoadedKernel};
use crate::row_blocks::{RowBlocks, THREADS};
use crate::rows::Precision;

const FILES: &[&str] = &[include_str!("../kernels/star.cu")];

/// With at most so many kinds of cells, a row's cells are computed once per kind.
const MOST_TABLES: usize = 8;

/// Classes and attributes on the device.
#[derive(Debug)]
pub(crate) struct StarKernels {
    tables: DeviceMemory,
    /// In single and in double precision.
    kinds: [TableOffset; 2],
    raw: RawStar,
    blocks: RowBlocks,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct RawStar {
    classes: u64,
    attributes: u64,
    own: u64,
    kinds: u64,
    kind_of: u64,
    bias: u64,
    class_count: i32,
    attribute_count: i32,
    kind_count: i32,
    labels: i32,
    constant: f64,
}

impl StarKernels {
    pub(crate) fn new(device: &Device, view: &Classes<'_>) -> Result<StarKernels, Error> {
        let labels = |ids: &[LabelId]| ids.iter().map(|id| id.index() as i32).collect::<Vec<_>>();
        let mut tables = TableBuilder::default();
        let classes = tables.add(&labels(view.classes));
        let attributes = tables.add(&labels(view.attributes));
        let single: Vec<[f32; 2]> =
            view.kinds.iter().map(|costs| costs.map(|cost| cost as f32)).collect();
        let kinds = [tables.add(&single), tables.add(view.kinds)];
        let (own, bias) = (tables.add(view.own), tables.add(view.bias));
        let kind_of = tables.add(view.kind_of);
        let tables = tables.upload(device)?;
        let raw = RawStar {
            classes: tables.at(classes),
            attributes: tables.at(attributes),
            own: tables.at(own),
            kinds: 0,
            kind_of: tables.at(kind_of),
            bias: tables.at(bias),
            class_count: view.classes.len() as i32,
            attribute_count: view.attributes.len() as i32,
            kind_count: view.kinds.len() as i32,
            labels: view.bias.len() as i32,
            constant: view.constant,
        };
        Ok(StarKernels { tables, kinds, raw, blocks: RowBlocks::new(device) })
    }

    fn has_few_kinds(&self) -> bool {
        self.raw.kind_count as usize <= MOST_TABLES
    }

    /// Bytes per row: the weights of classes; the score and the evidence of attributes, and two numbers per kind.
    fn row_bytes(&self, precision: Precision) -> usize {
        let kinds = if self.has_few_kinds() { self.raw.kind_count as usize } else { 0 };
        let numbers = self.raw.attribute_count as usize * (2 + 2 * kinds);
        (8 * self.raw.class_count as usize + numbers * precision.bytes()).next_multiple_of(16)
    }

    fn kernel(&self, device: &Device, precision: Precision) -> Result<LoadedKernel, Error> {
        let source = KernelSource::new("star", FILES, [precision; 2], THREADS)
            .flag("SHARED", self.blocks.fits(self.row_bytes(precision)))
            .flag("TABLES", self.has_few_kinds());
        device.kernel(&source)
    }
}

impl EngineKernels for StarKernels {
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
        let kinds = self.kinds[usize::from(pass.precision == Precision::Double)];
        let star = RawStar { kinds: self.tables.at(kinds), ..self.raw };
        let row_bytes = self.row_bytes(pass.precision);
        let shape = self.blocks.shape(pass.rows.rows as usize, row_bytes);
        let row_bytes = row_bytes as u64;
        let arguments = KernelArguments::default().with(&star).with(&pass.rows);
        let arguments = arguments.with(&pass.memory.scratch).with(&row_bytes);
        // SAFETY: the arguments are those of `star`, in the layout of its structures.
        unsafe { kernel.launch(shape, pass.stream, arguments) }
    }
}
