//! `star` on the device: the matrix of cells, and its launch.

use phex::graph::LabelId;
use phex::infer::compiled::Classes;

use crate::Error;
use crate::buffer::{Buffer, Offset, Tables};
use crate::device::{Device, Stream};
use crate::program::{Arguments, Function, Shape, Source};
use crate::rows::{Precision, RawRows};

const FILES: [&str; 2] = [include_str!("../kernels/common.cu"), include_str!("../kernels/star.cu")];

/// Threads of a block.
const THREADS: u32 = 256;

/// Blocks of a multiprocessor, where memory lets them.
const RESIDENT: usize = 8;

/// Kinds of cells up to which a row's cells are made once a kind.
const MOST_TABLES: usize = 8;

/// Classes and attributes on the device.
#[derive(Debug)]
pub(crate) struct Star {
    tables: Buffer,
    kinds: [Offset; 2],
    raw: RawStar,
    multiprocessors: usize,
    shared_bytes: usize,
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

impl Star {
    pub(crate) fn new(device: &Device, view: &Classes<'_>) -> Result<Star, Error> {
        let labels = |ids: &[LabelId]| ids.iter().map(|id| id.index() as i32).collect::<Vec<_>>();
        let mut tables = Tables::default();
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
        let (multiprocessors, shared_bytes) = (device.multiprocessors(), device.shared_bytes());
        Ok(Star { tables, kinds, raw, multiprocessors, shared_bytes })
    }

    fn few_kinds(&self) -> bool {
        self.raw.kind_count as usize <= MOST_TABLES
    }

    /// Bytes of a row: weights of classes, of attributes the score, what is known, and two numbers a kind.
    fn row_bytes(&self, score: Precision) -> usize {
        let kinds = if self.few_kinds() { self.raw.kind_count as usize } else { 0 };
        let numbers = self.raw.attribute_count as usize * (2 + 2 * kinds);
        (8 * self.raw.class_count as usize + numbers * score.bytes()).next_multiple_of(16)
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
        let flags = [("SHARED", self.fits(score)), ("TABLES", self.few_kinds())];
        defines.extend(flags.iter().filter(|flag| flag.1).map(|flag| flag.0.to_owned()));
        device.function(&Source { kernel: "star", files: &FILES, defines })
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
        let star = RawStar { kinds: self.tables.at(self.kinds[which]), ..self.raw };
        let bytes = self.row_bytes(score);
        let shared = if self.fits(score) { bytes } else { 0 };
        let shape = Shape { blocks: self.blocks(rows.rows as usize), threads: THREADS, shared };
        let bytes = bytes as u64;
        let arguments = Arguments::default().with(&star).with(&rows).with(&scratch).with(&bytes);
        // SAFETY: the arguments are those of `star`, in the layout of its structures.
        unsafe { function.launch(shape, stream, arguments) }
    }
}
