//! The inner loops: one child joins a unit, forwards and backwards.
//!
//! `F_j(m) = F_{j−1}(m) e₀ + F_{j−1}(m−1) q^{m−1} e₁`, where e are the child's messages (e₁
//! includes the cost of its edge). The backward step is the transpose:
//! `B_{j−1}(m) = e₀ B_j(m) + e₁ q^m B_j(m+1)`, and the child receives `Σ F_{j−1}(m) B_j(m)` when
//! off and `Σ F_{j−1}(m) q^m B_j(m+1)` when on. The layers of one-of groups multiply like dual
//! numbers. A step costs O(cells).

use super::number::Semiring;

/// What a child receives: `[off, on]`.
pub(super) type Received<N> = [N; 2];

/// The forward step without layers. Returns the largest cell. When `output` has the same width as
/// `input`, the overflow is dropped, or kept in the last cell.
#[inline(always)]
pub(super) fn join<N: Semiring>(
    input: &[N],
    output: &mut [N],
    e: [N; 2],
    turns: &[N::Weight],
    saturate: bool,
) -> N {
    let (body, rest) = output.split_at_mut(input.len());
    let mut carry = N::ZERO;
    let mut most = N::ZERO;
    for ((x, out), &turn) in input.iter().zip(body.iter_mut()).zip(turns) {
        let cell = x.times_plus(e[0], carry);
        most = most.larger(cell);
        *out = cell;
        carry = x.weigh(turn).times(e[1]);
    }
    match rest.first_mut() {
        Some(last) => *last = carry,
        None if saturate => {
            if let Some(last) = body.last_mut() {
                *last = last.plus(carry);
                carry = *last;
            }
        }
        None => carry = N::ZERO,
    }
    most.larger(carry)
}

/// As [`join`], with one open group. `input` and `output` have two layers each. `e0` holds the
/// child's messages without the group's label, and `e1` those with it.
#[inline(always)]
pub(super) fn join_dual<N: Semiring>(
    input: &[N],
    output: &mut [N],
    e0: [N; 2],
    e1: [N; 2],
    turns: &[N::Weight],
    saturate: bool,
) -> N {
    let (in0, in1) = input.split_at(input.len() / 2);
    let (out0, out1) = output.split_at_mut(output.len() / 2);
    let (body0, rest0) = out0.split_at_mut(in0.len());
    let (body1, rest1) = out1.split_at_mut(in0.len());
    let (mut carry0, mut carry1) = (N::ZERO, N::ZERO);
    let mut most = N::ZERO;
    let inputs = in0.iter().zip(in1);
    let outputs = body0.iter_mut().zip(body1.iter_mut());
    for (((x0, x1), (o0, o1)), &turn) in inputs.zip(outputs).zip(turns) {
        let cell0 = x0.times_plus(e0[0], carry0);
        let cell1 = x1.times_plus(e0[0], x0.times_plus(e1[0], carry1));
        most = most.larger(cell0).larger(cell1);
        *o0 = cell0;
        *o1 = cell1;
        let (x0, x1) = (x0.weigh(turn), x1.weigh(turn));
        carry0 = x0.times(e0[1]);
        carry1 = x1.times_plus(e0[1], x0.times(e1[1]));
    }
    match (rest0.first_mut(), rest1.first_mut()) {
        (Some(last0), Some(last1)) => (*last0, *last1) = (carry0, carry1),
        _ if saturate => {
            if let (Some(last0), Some(last1)) = (body0.last_mut(), body1.last_mut()) {
                (*last0, *last1) = (last0.plus(carry0), last1.plus(carry1));
                (carry0, carry1) = (*last0, *last1);
            }
        }
        _ => (carry0, carry1) = (N::ZERO, N::ZERO),
    }
    most.larger(carry0).larger(carry1)
}

/// As [`join`], but adds to the output. Used for one move between layers.
#[inline(always)]
pub(super) fn join_add<N: Semiring>(
    input: &[N],
    output: &mut [N],
    e: [N; 2],
    turns: &[N::Weight],
    saturate: bool,
) {
    let width = output.len();
    for (m, (x, &turn)) in input.iter().zip(turns).enumerate() {
        output[m] = x.times_plus(e[0], output[m]);
        let to = if m + 1 < width {
            m + 1
        } else if saturate {
            m
        } else {
            continue;
        };
        output[to] = x.weigh(turn).times_plus(e[1], output[to]);
    }
}

/// The backward step without layers, in place: `cells` holds B_j before the call and B_{j−1} after
/// it.
#[inline(always)]
pub(super) fn part<N: Semiring>(
    before: &[N],
    cells: &mut [N],
    e: [N; 2],
    turns: &[N::Weight],
) -> Received<N> {
    let (mut off, mut on) = (N::ZERO, N::ZERO);
    let width = cells.len();
    let below = rest_len(before, width);
    let turns = &turns[..below];
    let mut here = cells[0];
    for m in 0..below {
        let next = cells[m + 1];
        let turned = next.weigh(turns[m]);
        off = before[m].times_plus(here, off);
        on = before[m].times_plus(turned, on);
        cells[m] = here.times_plus(e[0], turned.times(e[1]));
        here = next;
    }
    // In a capped unit the last cell has no cell above it.
    if before.len() == width {
        off = before[width - 1].times_plus(here, off);
        cells[width - 1] = here.times(e[0]);
    }
    [off, on]
}

/// How many cells of `before` have a cell above them.
#[inline(always)]
fn rest_len<N>(before: &[N], width: usize) -> usize {
    before.len().min(width - 1)
}

/// As [`part`], with one open group. Returns what the child receives without and with its label.
#[inline(always)]
pub(super) fn part_dual<N: Semiring>(
    before: [&[N]; 2],
    cells: [&mut [N]; 2],
    e0: [N; 2],
    e1: [N; 2],
    turns: &[N::Weight],
) -> [Received<N>; 2] {
    let (mut off0, mut on0, mut off1, mut on1) = (N::ZERO, N::ZERO, N::ZERO, N::ZERO);
    let [b0, b1] = cells;
    let [f0, f1] = before;
    let width = b0.len();
    let (f1, b1) = (&f1[..f0.len()], &mut b1[..width]);
    let turns = &turns[..rest_len(f0, width)];
    let (mut here0, mut here1) = (b0[0], b1[0]);
    for m in 0..turns.len() {
        let (next0, next1) = (b0[m + 1], b1[m + 1]);
        let (t0, t1) = (next0.weigh(turns[m]), next1.weigh(turns[m]));
        off0 = f1[m].times_plus(here1, f0[m].times_plus(here0, off0));
        off1 = f0[m].times_plus(here1, off1);
        on0 = f1[m].times_plus(t1, f0[m].times_plus(t0, on0));
        on1 = f0[m].times_plus(t1, on1);
        let with = here1.times_plus(e1[0], t1.times(e1[1]));
        b0[m] = here0.times_plus(e0[0], t0.times_plus(e0[1], with));
        b1[m] = here1.times_plus(e0[0], t1.times(e0[1]));
        (here0, here1) = (next0, next1);
    }
    if f0.len() == width {
        let m = width - 1;
        off0 = f1[m].times_plus(here1, f0[m].times_plus(here0, off0));
        off1 = f0[m].times_plus(here1, off1);
        b0[m] = here0.times_plus(e0[0], here1.times(e1[0]));
        b1[m] = here1.times(e0[0]);
    }
    [[off0, on0], [off1, on1]]
}

/// As [`part`] for one move between layers. Adds B_{j−1} to `output`.
#[inline(always)]
pub(super) fn part_add<N: Semiring>(
    before: &[N],
    cells: &[N],
    output: &mut [N],
    e: [N; 2],
    turns: &[N::Weight],
) -> Received<N> {
    let (mut off, mut on) = (N::ZERO, N::ZERO);
    for (m, (x, &turn)) in before.iter().zip(turns).enumerate() {
        off = x.times_plus(cells[m], off);
        output[m] = cells[m].times_plus(e[0], output[m]);
        if let Some(above) = cells.get(m + 1) {
            let turned = above.weigh(turn);
            on = x.times_plus(turned, on);
            output[m] = turned.times_plus(e[1], output[m]);
        }
    }
    [off, on]
}
