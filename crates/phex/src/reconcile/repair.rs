//! Makes probabilities consistent to the last bit.
//!
//! On a forest, from the top: the members of an overfull group are scaled to fit their parent, and
//! rounded down; what rounding left goes to the largest member. Sums are those of the members in
//! double precision. An inequality then holds exactly, and an equation up to the rounding of its
//! largest member.

use super::compile::{Families, NONE};
use crate::numeric::Grid;

/// How far the sum of this many numbers may be from its value by rounding alone.
pub(super) fn rounding<T: Grid>(members: usize, size: f64) -> f64 {
    T::STEP * size * (8.0 + (members as f64).sqrt())
}

/// By how much a row `sum ≤ limit` or `sum = limit` is violated. Rounding of an equation does not
/// count.
pub(super) fn excess<T: Grid>(sum: f64, limit: f64, equal: bool, members: usize) -> f64 {
    if !equal {
        return (sum - limit).max(0.0);
    }
    let off = (sum - limit).abs();
    if off <= rounding::<T>(members, limit) { 0.0 } else { off }
}

/// The largest violation of a row of a forest.
pub(super) fn violation<T: Grid>(forest: &Families, q: &[T]) -> f64 {
    let mut worst = 0.0;
    for g in 0..forest.groups() {
        let members = forest.members(g);
        let limit = match forest.parent[g] {
            NONE => 1.0,
            parent => q[parent as usize].to_f64(),
        };
        let count = members.len();
        let sum: f64 = q[members].iter().map(|q| q.to_f64()).sum();
        let off = excess::<T>(sum, limit, forest.equal[g], count);
        worst = if off > worst { off } else { worst };
    }
    worst
}

/// Makes the probabilities of a forest consistent, from the top.
pub(super) fn fit<T: Grid>(forest: &Families, q: &mut [T]) {
    for g in 0..forest.groups() {
        let limit = match forest.parent[g] {
            NONE => T::ONE,
            parent => q[parent as usize],
        };
        fit_group(&mut q[forest.members(g)], limit, forest.equal[g]);
    }
}

/// Scales a group that exceeds its limit, or is not equal to it, such that it fits.
pub(super) fn fit_group<T: Grid>(members: &mut [T], limit: T, equal: bool) {
    if let [only] = members {
        if equal || *only > limit {
            *only = limit;
        }
        return;
    }
    let bound = limit.to_f64();
    let sum: f64 = members.iter().map(|q| q.to_f64()).sum();
    let fits =
        if equal { excess::<T>(sum, bound, true, members.len()) == 0.0 } else { sum <= bound };
    if fits {
        return;
    }
    let scale = bound / sum;
    let mut largest = 0;
    for at in 0..members.len() {
        members[at] = T::round_down(members[at].to_f64() * scale);
        if members[at] > members[largest] {
            largest = at;
        }
    }
    let others = |members: &[T]| -> f64 {
        let others = members.iter().enumerate().filter(|(at, _)| *at != largest);
        others.map(|(_, q)| q.to_f64()).sum()
    };
    let room = bound - others(members);
    members[largest] = if room > 0.0 { T::round_down(room) } else { T::ZERO };
    // The sum in the order of the members may round up.
    while members[largest] > T::ZERO && members.iter().map(|q| q.to_f64()).sum::<f64>() > bound {
        members[largest] = members[largest].below();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::Random;

    #[test]
    fn repaired_groups_fit_to_the_last_bit() {
        let mut random = Random::new(3);
        for _ in 0..2000 {
            let k = 1 + random.below(9);
            let limit = random.next();
            let equal = random.next() < 0.5;
            let wide: Vec<f64> = (0..k).map(|_| random.next() * 2.0 / k as f64).collect();
            let mut narrow: Vec<f32> = wide.iter().map(|&q| q as f32).collect();
            let mut double = wide.clone();
            fit_group(&mut double, limit, equal);
            fit_group(&mut narrow, limit as f32, equal);
            let sum: f64 = double.iter().sum();
            assert!(sum <= limit || (equal && excess::<f64>(sum, limit, true, k) == 0.0));
            let (sum, limit) = (narrow.iter().map(|&q| f64::from(q)).sum::<f64>(), limit as f32);
            let limit = f64::from(limit);
            assert!(sum <= limit || (equal && excess::<f32>(sum, limit, true, k) == 0.0));
            if equal {
                assert!((sum - limit).abs() <= 2.0 * rounding::<f32>(k, limit), "{sum} {limit}");
            }
        }
    }
}
