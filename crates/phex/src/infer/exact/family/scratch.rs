//! The arrays that the passes fill, and the part that one child has in them.

use super::cells::{join, join_add, join_dual, part, part_add, part_dual};
use super::number::Semiring;
use super::plan::{ForestProgram, JoinStep, SiblingUnit, StepKind};
use super::weights::Weights;

/// The arrays that the passes fill. They are reused from block to block.
#[derive(Debug)]
pub(super) struct Scratch<N: Semiring> {
    pub(super) exponents: N::Exponents,
    /// Not zero in lanes whose answer is unreliable.
    pub(super) suspect: N,
    /// Marginals by label.
    pub(super) marginals: Vec<N::Real>,
    /// P(on, parent off) by label.
    pub(super) edges: Vec<N>,
    /// The expected number of pairs that are on, by unit.
    pub(super) counts: Vec<N>,
    /// The probability that both are on, by pair of steps.
    pub(super) pairs: Vec<N>,
    /// The upward messages. The weights of labels are written into it, see
    /// [`ForestProgram::slots`].
    pub(super) inside: Vec<N>,
    pub(super) outside: Vec<N>,
    pub(super) cells: Vec<N>,
    pub(super) totals: Vec<N>,
    /// The transposed totals.
    pub(super) shares: Vec<N>,
    pub(super) step_scale: Vec<N>,
    pub(super) unit_scale: Vec<[N; 2]>,
    pub(super) here: Vec<N>,
    pub(super) next: Vec<N>,
    pub(super) history: Vec<N>,
}

impl<N: Semiring> Scratch<N> {
    pub(super) fn new(plan: &ForestProgram) -> Scratch<N> {
        let n = plan.nodes.len();
        let numbers = |length: usize| vec![N::ZERO; length];
        let reals = |length: usize| vec![N::Real::default(); length];
        Scratch {
            exponents: N::Exponents::default(),
            suspect: N::ZERO,
            marginals: reals(n),
            edges: numbers(n),
            counts: numbers(plan.units.len()),
            pairs: Vec::new(),
            inside: numbers(plan.messages),
            outside: numbers(plan.outside),
            cells: numbers(plan.cells),
            totals: numbers(plan.totals),
            shares: numbers(plan.totals),
            step_scale: numbers(plan.steps.len()),
            unit_scale: vec![[N::ONE; 2]; plan.units.len()],
            here: numbers(plan.widest),
            next: numbers(plan.widest),
            history: Vec::new(),
        }
    }

    /// Allocates memory for the expectations of pairs.
    pub(super) fn expect_pairs(&mut self, plan: &ForestProgram) {
        self.pairs.resize(plan.pairs, N::ZERO);
        self.history.resize(plan.widest * plan.longest, N::ZERO);
    }

    /// The root's value: Z without the scales.
    pub(super) fn value(&self, plan: &ForestProgram) -> N {
        self.inside[plan.root() + 1]
    }
}

/// The largest of some numbers. This is a loop, because a closure might not be compiled for wide
/// vectors.
#[inline(always)]
pub(super) fn largest<N: Semiring>(numbers: &[N]) -> N {
    let mut most = N::ZERO;
    for number in numbers {
        most = most.larger(*number);
    }
    most
}

/// `Σ x y`.
#[inline(always)]
pub(super) fn dot<N: Semiring>(x: &[N], y: &[N]) -> N {
    let mut sum = N::ZERO;
    for (x, y) in x.iter().zip(y) {
        sum = x.times_plus(*y, sum);
    }
    sum
}

/// A child as it joins its unit.
pub(super) struct Child<'a, N: Semiring> {
    pub(super) plan: &'a ForestProgram,
    pub(super) weights: &'a Weights<N>,
    pub(super) unit: &'a SiblingUnit,
    pub(super) step: &'a JoinStep,
    pub(super) scale: N,
    /// Its messages: off by layer, then on by layer.
    pub(super) messages: &'a [N],
}

impl<N: Semiring> Child<'_, N> {
    /// The cost of being on in stream `y`.
    #[inline(always)]
    fn fall(&self, y: usize, value: N) -> N {
        if self.unit.shared || y == 1 {
            value
        } else {
            value.weigh(self.weights.values[self.step.fall])
        }
    }

    /// Its scaled messages in one layer.
    #[inline(always)]
    fn messages(&self, y: usize, layer: usize) -> [N; 2] {
        let on = self.messages[self.messages.len() / 2 + layer];
        [self.messages[layer].times(self.scale), self.fall(y, on.times(self.scale))]
    }

    #[inline(always)]
    fn turns(&self) -> &[N::Weight] {
        &self.weights.values[self.unit.turns..=self.unit.turns + self.unit.width]
    }

    /// Computes the cells after the child from those before it, and returns the largest. The child
    /// can be forced on.
    #[inline(always)]
    pub(super) fn join(&self, input: &[N], output: &mut [N], y: usize, must_be_on: bool) -> N {
        let (step, saturate) = (self.step, self.plan.saturate);
        let keep = if must_be_on { N::ZERO } else { N::ONE };
        let told = |[off, on]: [N; 2]| [off.times(keep), on];
        match step.kind {
            StepKind::Plain => {
                join(input, output, told(self.messages(y, 0)), self.turns(), saturate)
            }
            StepKind::Dual => {
                let e = [told(self.messages(y, 0)), told(self.messages(y, 1))];
                join_dual(input, output, e[0], e[1], self.turns(), saturate)
            }
            StepKind::General => {
                output.fill(N::ZERO);
                for way in &self.plan.moves[step.moves.clone()] {
                    let from = usize::from(way.a) * step.input_width;
                    let to = usize::from(way.to) * step.width;
                    let input = &input[from..from + step.input_width];
                    let output = &mut output[to..to + step.width];
                    let e = told(self.messages(y, usize::from(way.b)));
                    join_add(input, output, e, self.turns(), saturate);
                }
                largest(output)
            }
        }
    }

    /// Stores what the child receives in a layer, either by adding to it or by replacing it.
    #[inline(always)]
    fn receive(&self, received: &mut [N], y: usize, layer: usize, got: [N; 2], add: bool) {
        let layers = received.len() / 2;
        let off = got[0].times(self.scale);
        let on = self.fall(y, got[1].times(self.scale));
        if add {
            received[layer] = off.plus(received[layer]);
            received[layers + layer] = on.plus(received[layers + layer]);
        } else {
            received[layer] = off;
            received[layers + layer] = on;
        }
    }

    /// Transposes [`Child::join`]: computes what the child receives, either by adding to it or by
    /// replacing it. B before the child ends up in `here`, or in `next` for general moves. Both
    /// have a fixed stride per layer.
    #[inline(always)]
    pub(super) fn part(
        &self,
        before: &[N],
        here: &mut [N],
        next: &mut [N],
        received: &mut [N],
        y: usize,
        add: bool,
    ) {
        let (step, stride) = (self.step, self.unit.width);
        match step.kind {
            StepKind::Plain => {
                let here = &mut here[..step.width];
                let got = part(before, here, self.messages(y, 0), self.turns());
                self.receive(received, y, 0, got, add);
            }
            StepKind::Dual => {
                let (low, high) = here.split_at_mut(stride);
                let cells = [&mut low[..step.width], &mut high[..step.width]];
                let (in0, in1) = before.split_at(step.input_width);
                let e = [self.messages(y, 0), self.messages(y, 1)];
                let [without, with] = part_dual([in0, in1], cells, e[0], e[1], self.turns());
                self.receive(received, y, 0, without, add);
                self.receive(received, y, 1, with, add);
            }
            StepKind::General => {
                next.fill(N::ZERO);
                if !add {
                    received.fill(N::ZERO);
                }
                for way in &self.plan.moves[step.moves.clone()] {
                    let from = usize::from(way.a);
                    let before = &before[from * step.input_width..(from + 1) * step.input_width];
                    let to = usize::from(way.to) * stride;
                    let cells = &here[to..to + step.width];
                    let output = &mut next[from * stride..from * stride + step.input_width];
                    let layer = usize::from(way.b);
                    let e = self.messages(y, layer);
                    let got = part_add(before, cells, output, e, self.turns());
                    self.receive(received, y, layer, got, true);
                }
            }
        }
    }
}
