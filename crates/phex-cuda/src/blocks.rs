//! `blocks` on the device: passes of `family` over the forest, and messages on the pairs that it leaves out between them.
//!
//! All passes are put on the stream at once. Rows whose beliefs stay are not listed for the next pass, so that a pass
//! costs what the rows that go on cost; nothing waits for the device to tell. In doubles, as on the processor.

use phex::infer::MessageOptions;
use phex::infer::compiled::Joined;

use crate::Error;
use crate::buffer::{Buffer, Tables};
use crate::device::{Device, Stream, failed};
use crate::family::{BlockRows, Family};
use crate::lbp::RawAnswers;
use crate::program::{Arguments, Function, Shape, Source};
use crate::rows::{Carver, Precision, RawRows};

const FILES: [&str; 2] =
    [include_str!("../kernels/common.cu"), include_str!("../kernels/blocks.cu")];

/// Threads of a block: a row's.
const THREADS: u32 = 128;

/// A forest and the pairs that it leaves out, on the device.
#[derive(Debug)]
pub(crate) struct Blocks {
    family: Family,
    /// What the addresses below point to.
    _tables: Buffer,
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

/// Working memory, and the two lists of rows that go on.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct RawBeliefs {
    adjusted: u64,
    fresh: u64,
    old: u64,
    messages: u64,
    forest: u64,
    status: u64,
    residual: u64,
    iterations: u64,
    converged: u64,
}

struct Places {
    beliefs: RawBeliefs,
    lists: [u64; 2],
    scratch: u64,
}

impl Blocks {
    pub(crate) fn new(
        device: &Device,
        joined: &Joined<'_>,
        options: &MessageOptions,
        block_rows: BlockRows,
    ) -> Result<Blocks, Error> {
        let family = Family::new(device, &joined.forest, block_rows)?;
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
        let mut tables = Tables::default();
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
        Ok(Blocks { family, _tables: tables, raw })
    }

    fn places(&self, carver: &mut Carver, rows: usize, answers: RawAnswers) -> Places {
        let numbers = 8 * rows * self.raw.labels as usize;
        let beliefs = RawBeliefs {
            adjusted: carver.take(numbers),
            fresh: carver.take(numbers),
            old: carver.take(numbers),
            messages: carver.take(16 * rows * self.raw.pairs as usize),
            forest: carver.take(8 * rows),
            status: carver.take(4 * rows),
            residual: answers.residual,
            iterations: answers.iterations,
            converged: answers.converged,
        };
        let lists = [(); 2].map(|()| carver.take(4 * (rows + 1)));
        let scratch = carver.take(self.family.workspace(rows, Precision::Double));
        Places { beliefs, lists, scratch }
    }

    /// Bytes of working memory.
    pub(crate) fn workspace(&self, rows: usize) -> usize {
        let mut carver = Carver::new(0);
        self.places(&mut carver, rows, RawAnswers { residual: 0, iterations: 0, converged: 0 });
        carver.taken()
    }

    /// Compiles the kernels for so many rows: start, step, finish, then those of the forest.
    pub(crate) fn prepare(
        &self,
        device: &Device,
        rows: usize,
        score: Precision,
    ) -> Result<Vec<Function>, Error> {
        let source = |kernel| Source {
            kernel,
            files: &FILES,
            defines: vec![
                format!("SCORE={}", score.name()),
                String::from("REAL=double"),
                format!("THREADS={THREADS}"),
            ],
        };
        let mut all =
            device.functions(&["blocks_start", "blocks_step", "blocks_finish"].map(source))?;
        all.extend(self.family.prepare(device, rows, Precision::Double)?);
        Ok(all)
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
        let count = rows.rows as usize;
        let functions = self.prepare(device, count, score)?;
        let Places { beliefs, lists, scratch } =
            self.places(&mut Carver::new(scratch), count, answers);
        let shape = Shape { blocks: count.min(1 << 16), threads: THREADS, shared: 0 };
        let launch = |function: &Function, arguments: Arguments<'_>| {
            // SAFETY: the arguments are those of the kernels, in the layout of their structures; the memory is the
            // caller's.
            unsafe { function.launch(shape, stream, arguments) }
        };
        let start = Arguments::default().with(&self.raw).with(&rows).with(&beliefs);
        launch(&functions[0], start)?;
        for iteration in 0..self.raw.iterations {
            let [listed, next] =
                [lists[iteration as usize % 2], lists[(iteration as usize + 1) % 2]];
            // The first pass is over all rows.
            let listed = if iteration == 0 { 0 } else { listed };
            let pass = RawRows {
                scores: beliefs.adjusted,
                marginals: beliefs.fresh,
                log_partition: beliefs.forest,
                status: beliefs.status,
                listed,
                scored: rows.rows,
                ..rows
            };
            // SAFETY: by the caller's word, and the working memory has the size of the rows in doubles. Rows in
            // doubles are not done again, so that no list is needed.
            unsafe {
                self.family.enqueue(device, pass, Precision::Double, 0, scratch, stream)?;
                cudarc::driver::result::memset_d8_async(next, 0, 4, stream.raw())
                    .map_err(failed("cuMemsetD8Async"))?;
            }
            let some = RawRows { listed, ..rows };
            let step = Arguments::default().with(&self.raw).with(&some).with(&beliefs);
            launch(&functions[1], step.with(&next).with(&iteration))?;
        }
        let finish = Arguments::default().with(&self.raw).with(&rows).with(&beliefs);
        launch(&functions[2], finish)
    }
}
