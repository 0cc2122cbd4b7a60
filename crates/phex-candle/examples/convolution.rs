//! A convolutional network learns fine labels from images that mostly have only a coarse one.
//!
//! Images of 16 × 16 show a disc, a square or a cross, striped across or along: six fine labels under
//! three coarse ones under a root. One training image in ten has its fine label, the others only the
//! coarse one. The same network, from the same weights, with the same number of steps and rows per
//! step, is trained twice: by cross-entropy on the fine rows, which are all it can use, and by
//! `RelationLoss` on all rows, of which a quarter of each step's are fine ones. (Drawn evenly, a step
//! would have a tenth of them, and the stripes would need more steps than the shapes.) Its last layer is a
//! `RelationHead`. `--quick` does a part of it in a few seconds, too few for either to learn much.

use std::error::Error;
use std::time::Instant;

use candle_core::{D, DType, Device, Tensor, Var};
use candle_nn::{AdamW, Conv2d, Conv2dConfig, Module, Optimizer, ParamsAdamW};
use phex::graph::{GraphBuilder, RelationGraph};
use phex::infer::{Engine, Options};
use phex::learn::{LEAF_SHARE, Loss};
use phex::model::Model;
use phex_candle::{RelationHead, RelationLayer, RelationLoss};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

type Outcome<T> = Result<T, Box<dyn Error>>;

const SIDE: usize = 16;
const SHAPES: [&str; 3] = ["disc", "square", "cross"];
const STRIPES: [&str; 2] = ["across", "along"];
const FINE: usize = SHAPES.len() * STRIPES.len();
/// The root, the shapes, and each shape with each kind of stripes.
const LABELS: usize = 1 + SHAPES.len() + FINE;
const FIRST_FINE: usize = 1 + SHAPES.len();

/// How much work to do.
struct Budget {
    training_rows: usize,
    test_rows: usize,
    steps: usize,
    batch: usize,
    seeds: u64,
}

fn main() -> Outcome<()> {
    let quick = std::env::args().any(|argument| argument == "--quick");
    let budget = if quick {
        Budget { training_rows: 400, test_rows: 300, steps: 60, batch: 32, seeds: 1 }
    } else {
        Budget { training_rows: 1200, test_rows: 1500, steps: 400, batch: 32, seeds: 2 }
    };
    let graph = graph()?;
    let engine = Engine::compile(Model::new(&graph)?, &Options::default())?;
    println!("{}", engine.plan().why);
    println!(
        "{} training images, a tenth of them with a fine label; {} steps of {} rows; {} test images",
        budget.training_rows, budget.steps, budget.batch, budget.test_rows
    );
    println!("{:<6}{:<30}{:>6}{:>8}{:>9}", "seed", "loss", "fine", "coarse", "seconds");
    let mut sums = [0.0; 2];
    for seed in 1..=budget.seeds {
        for (relations, sum) in [false, true].into_iter().zip(&mut sums) {
            let start = Instant::now();
            let (fine, coarse) = train_and_test(&graph, &engine, &budget, seed, relations)?;
            *sum += fine;
            let name = if relations { "relations, all rows" } else { "cross-entropy, fine rows" };
            let (fine, coarse) = (100.0 * fine, 100.0 * coarse);
            let seconds = start.elapsed().as_secs_f64();
            println!("{seed:<6}{name:<30}{fine:>5.1}%{coarse:>7.1}%{seconds:>9.1}");
        }
    }
    let [cross_entropy, relations] = sums.map(|sum| 100.0 * sum / budget.seeds as f64);
    println!(
        "fine accuracy: cross-entropy on the fine rows {cross_entropy:.1}%, relations on all rows {relations:.1}%"
    );
    Ok(())
}

/// A tree of three levels, in which exactly one fine label is on.
fn graph() -> Outcome<RelationGraph> {
    let mut builder = GraphBuilder::new();
    // Labels are numbered in the order in which they are first named: coarse ones first.
    for shape in SHAPES {
        builder.hierarchy("figure", shape, None);
    }
    for shape in SHAPES {
        for stripes in STRIPES {
            builder.hierarchy(shape, &format!("{shape} {stripes}"), None);
        }
    }
    Ok(builder.single_label().build()?)
}

/// Fine and coarse accuracy on new images.
fn train_and_test(
    graph: &RelationGraph,
    engine: &Engine,
    budget: &Budget,
    seed: u64,
    relations: bool,
) -> Outcome<(f64, f64)> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let training = Images::draw(&mut random, budget.training_rows)?;
    let test = Images::draw(&mut random, budget.test_rows)?;
    let network = ConvolutionalNetwork::new(&mut random, graph)?;
    let loss = RelationLoss::new(engine.clone(), Loss::Joint);
    let rate = ParamsAdamW { lr: 2e-3, weight_decay: 1e-3, ..ParamsAdamW::default() };
    let mut optimiser = AdamW::new(network.variables.clone(), rate)?;
    // Every tenth image has its fine label; a share of each batch is of these where all rows are used.
    let count = budget.training_rows as u32;
    let all: Vec<u32> = (0..count).collect();
    let fine: Vec<u32> = (0..count).filter(|row| row.is_multiple_of(10)).collect();
    for _ in 0..budget.steps {
        let drawn = (LEAF_SHARE * budget.batch as f64).ceil() as usize;
        let mut row = |at: usize| {
            let from = if relations && at >= drawn { &all } else { &fine };
            from[random.random_range(0..from.len())]
        };
        let rows: Vec<u32> = (0..budget.batch).map(&mut row).collect();
        let at = Tensor::new(rows.as_slice(), &Device::Cpu)?;
        let logits = network.forward(&training.pixels.index_select(&at, 0)?)?;
        let value = if relations {
            loss.forward(&logits, &training.targets(&rows)?, None)?
        } else {
            let fine = logits.narrow(1, FIRST_FINE, FINE)?;
            let classes: Vec<u32> = rows.iter().map(|&row| training.fine[row as usize]).collect();
            candle_nn::loss::cross_entropy(&fine, &Tensor::new(classes, &Device::Cpu)?)?
        };
        optimiser.backward_step(&value)?;
    }
    let logits = network.forward(&test.pixels)?;
    let ranked =
        if relations { RelationLayer::new(engine.clone())?.forward(&logits)? } else { logits };
    let fine = ranked.narrow(1, FIRST_FINE, FINE)?.argmax(D::Minus1)?.to_vec1::<u32>()?;
    let share = |same: &dyn Fn(u32, u32) -> bool| {
        let right = fine.iter().zip(&test.fine).filter(|(found, truth)| same(**found, **truth));
        right.count() as f64 / test.fine.len() as f64
    };
    let shape = |fine: u32| fine as usize / STRIPES.len();
    Ok((share(&|found, truth| found == truth), share(&|found, truth| shape(found) == shape(truth))))
}

/// Images and their fine labels.
struct Images {
    /// Images × 1 × side × side.
    pixels: Tensor,
    /// `shape · 2 + stripes` of each.
    fine: Vec<u32>,
}

impl Images {
    fn draw(random: &mut Xoshiro256PlusPlus, count: usize) -> Outcome<Images> {
        let mut pixels = Vec::with_capacity(count * SIDE * SIDE);
        let mut fine = Vec::with_capacity(count);
        for _ in 0..count {
            let label = random.random_range(0..FINE);
            draw(random, label / STRIPES.len(), label % STRIPES.len(), &mut pixels);
            fine.push(label as u32);
        }
        let pixels = Tensor::from_vec(pixels, (count, 1, SIDE, SIDE), &Device::Cpu)?;
        Ok(Images { pixels, fine })
    }

    /// What is known of rows: a shape, and of every tenth the stripes too. Unknown is −1; what the
    /// relations imply need not be written down.
    fn targets(&self, rows: &[u32]) -> Outcome<Tensor> {
        let mut targets = vec![-1i64; rows.len() * LABELS];
        for (at, &row) in rows.iter().enumerate() {
            let fine = self.fine[row as usize] as usize;
            let known =
                if row.is_multiple_of(10) { FIRST_FINE + fine } else { 1 + fine / STRIPES.len() };
            targets[at * LABELS + known] = 1;
        }
        Ok(Tensor::from_vec(targets, (rows.len(), LABELS), &Device::Cpu)?)
    }
}

/// A striped shape of random size, place and phase, under noise.
fn draw(random: &mut Xoshiro256PlusPlus, shape: usize, stripes: usize, pixels: &mut Vec<f32>) {
    let mut between = |low: f64, high: f64| low + (high - low) * random.random::<f64>();
    let (radius, phase, noise) = (between(4.0, 6.5), between(0.0, 3.0), 0.2);
    let (x, y) = (between(6.0, 10.0), between(6.0, 10.0));
    for row in 0..SIDE {
        for column in 0..SIDE {
            let (dx, dy) = (column as f64 + 0.5 - x, row as f64 + 0.5 - y);
            let inside = match shape {
                0 => dx * dx + dy * dy < radius * radius,
                1 => dx.abs().max(dy.abs()) < 0.88 * radius,
                _ => dx.abs().min(dy.abs()) < 0.45 * radius && dx.abs().max(dy.abs()) < radius,
            };
            let along = if stripes == 0 { row } else { column } as f64;
            let bright = (along + phase) % 3.0 < 1.5;
            let value = if !inside {
                0.0
            } else if bright {
                1.0
            } else {
                0.2
            };
            let blur: f64 = (0..4).map(|_| between(-1.0, 1.0)).sum::<f64>() * 0.75f64.sqrt();
            pixels.push((value + noise * blur) as f32);
        }
    }
}

/// Convolution, pool, convolution, pool, and a head, which starts at zero for both losses.
struct ConvolutionalNetwork {
    variables: Vec<Var>,
    first: Conv2d,
    second: Conv2d,
    last: RelationHead,
}

impl ConvolutionalNetwork {
    /// Candle's generator cannot be seeded on every device, so the weights are drawn here.
    fn new(
        random: &mut Xoshiro256PlusPlus,
        graph: &RelationGraph,
    ) -> Outcome<ConvolutionalNetwork> {
        let mut weights = |shape: &[usize]| -> Outcome<Var> {
            let (count, inputs) =
                (shape.iter().product::<usize>(), shape[1..].iter().product::<usize>());
            let bound = (6.0 / inputs as f64).sqrt();
            let values: Vec<f32> =
                (0..count).map(|_| (bound * (2.0 * random.random::<f64>() - 1.0)) as f32).collect();
            Ok(Var::from_vec(values, shape, &Device::Cpu)?)
        };
        let bias = |count: usize| Var::zeros(count, DType::F32, &Device::Cpu);
        let inputs = 16 * (SIDE / 4) * (SIDE / 4);
        let mut variables =
            vec![weights(&[8, 1, 3, 3])?, bias(8)?, weights(&[16, 8, 3, 3])?, bias(16)?];
        let last = RelationHead::new(inputs, graph, &Device::Cpu)?;
        let tensor = |at: usize| variables[at].as_tensor().clone();
        let padded = Conv2dConfig { padding: 1, ..Conv2dConfig::default() };
        let first = Conv2d::new(tensor(0), Some(tensor(1)), padded);
        let second = Conv2d::new(tensor(2), Some(tensor(3)), padded);
        variables.extend(last.variables());
        Ok(ConvolutionalNetwork { variables, first, second, last })
    }

    fn forward(&self, pixels: &Tensor) -> candle_core::Result<Tensor> {
        let once = self.first.forward(pixels)?.relu()?.max_pool2d(2)?;
        let twice = self.second.forward(&once)?.relu()?.max_pool2d(2)?;
        self.last.forward(&twice.flatten_from(1)?)
    }
}
