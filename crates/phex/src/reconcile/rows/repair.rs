//! Makes probabilities consistent to the last bit.
//!
//! On a forest, from the top: the members of an overfull group are scaled to fit their parent, and
//! rounded down; what rounding left goes to the largest member. Sums are those of the members in
//! double precision. An inequality then holds exactly, and an equation up to the rounding of its
//! largest member. The members of an equation never add up to more than their parent, not even by
//! rounding: it may imply that two of them, or a member and a label above it, exclude each other.

use multiversion::multiversion;

use crate::numeric::Grid;
use crate::reconcile::compile::{Families, NONE};

/// How far the sum of this many numbers may be from its value by rounding alone.
#[inline(always)]
pub(in crate::reconcile) fn rounding<T: Grid>(members: usize, size: f64) -> f64 {
    T::STEP * size * (8.0 + (members as f64).sqrt())
}

/// By how much a row `sum ≤ limit` or `sum = limit` is violated. Rounding of an equation does not
/// count.
#[inline(always)]
pub(in crate::reconcile) fn excess<T: Grid>(
    sum: f64,
    limit: f64,
    equal: bool,
    members: usize,
) -> f64 {
    if !equal {
        return (sum - limit).max(0.0);
    }
    let off = (sum - limit).abs();
    if off <= rounding::<T>(members, limit) { 0.0 } else { off }
}

/// [`excess`] of a group with this sum and this largest member. A member of an equation that is above
/// the limit counts, however little that is: it implies its parent.
#[inline(always)]
fn group_excess<T: Grid>(sum: f64, most: f64, limit: f64, equal: bool, members: usize) -> f64 {
    let off = excess::<T>(sum, limit, equal, members);
    let above = if equal { most - limit } else { 0.0 };
    if above > off { above } else { off }
}

/// The largest of some members.
fn most<T: Grid>(members: &[T]) -> f64 {
    members.iter().fold(0.0, |most, q| if q.to_f64() > most { q.to_f64() } else { most })
}

/// The largest violation of a row of a forest.
pub(in crate::reconcile) fn violation<T: Grid>(forest: &Families, q: &[T]) -> f64 {
    let mut worst = 0.0;
    for g in 0..forest.groups() {
        let members = forest.members(g);
        let limit = match forest.parent[g] {
            NONE => 1.0,
            parent => q[parent as usize].to_f64(),
        };
        let members = &q[members];
        let sum: f64 = members.iter().map(|q| q.to_f64()).sum();
        let off = group_excess::<T>(sum, most(members), limit, forest.equal[g], members.len());
        worst = if off > worst { off } else { worst };
    }
    worst
}

/// Makes the probabilities of a forest consistent, from the top.
pub(in crate::reconcile) fn fit<T: Grid>(forest: &Families, q: &mut [T]) {
    for g in 0..forest.groups() {
        let limit = match forest.parent[g] {
            NONE => T::ONE,
            parent => q[parent as usize],
        };
        fit_group(&mut q[forest.members(g)], limit, forest.equal[g]);
    }
}

/// Scales a group that exceeds its limit, or is not equal to it, such that it fits.
pub(in crate::reconcile) fn fit_group<T: Grid>(members: &mut [T], limit: T, equal: bool) {
    if let [only] = members {
        if equal || *only > limit {
            *only = limit;
        }
        return;
    }
    let bound = limit.to_f64();
    let sum: f64 = members.iter().map(|q| q.to_f64()).sum();
    if sum <= bound && group_excess::<T>(sum, most(members), bound, equal, members.len()) == 0.0 {
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

/// The sums of some members, in their order, for rows side by side.
#[inline(always)]
fn sums<T: Grid, const L: usize>(members: &[[T; L]]) -> [f64; L] {
    let mut sum = [0.0; L];
    for member in members {
        for lane in 0..L {
            sum[lane] += member[lane].to_f64();
        }
    }
    sum
}

/// The largest of some members, for rows side by side.
#[inline(always)]
fn largest<T: Grid, const L: usize>(members: &[[T; L]]) -> [f64; L] {
    let mut most = [0.0; L];
    for member in members {
        for lane in 0..L {
            let q = member[lane].to_f64();
            most[lane] = if q > most[lane] { q } else { most[lane] };
        }
    }
    most
}

/// The upper limit of a group, for rows side by side.
#[inline(always)]
fn limits<T: Grid, const L: usize>(forest: &Families, g: usize, q: &[[T; L]]) -> [T; L] {
    match forest.parent[g] {
        NONE => [T::ONE; L],
        parent => q[parent as usize],
    }
}

/// [`violation`] of rows side by side.
#[multiversion(targets = "simd")]
pub(in crate::reconcile) fn violations<T: Grid, const L: usize>(
    forest: &Families,
    q: &[[T; L]],
) -> [f64; L] {
    let mut worst = [0.0; L];
    for g in 0..forest.groups() {
        let (members, limit) = (forest.members(g), limits(forest, g, q));
        see_excess(&mut worst, &q[members], limit, forest.equal[g]);
    }
    worst
}

#[inline(always)]
fn see_excess<T: Grid, const L: usize>(
    worst: &mut [f64; L],
    members: &[[T; L]],
    limit: [T; L],
    equal: bool,
) {
    let sum = sums(members);
    let most = if equal { largest(members) } else { [0.0; L] };
    for lane in 0..L {
        let bound = limit[lane].to_f64();
        let off = group_excess::<T>(sum[lane], most[lane], bound, equal, members.len());
        worst[lane] = if off > worst[lane] { off } else { worst[lane] };
    }
}

/// [`fit`] for rows side by side. Returns what is left of violations, which is rounding.
#[multiversion(targets = "simd")]
pub(in crate::reconcile) fn fit_abreast<T: Grid, const L: usize>(
    forest: &Families,
    q: &mut [[T; L]],
) -> [f64; L] {
    let mut worst = [0.0; L];
    for g in 0..forest.groups() {
        let (limit, equal) = (limits(forest, g, q), forest.equal[g]);
        let members = &mut q[forest.members(g)];
        if let [only] = members {
            for lane in 0..L {
                let high = equal || only[lane] > limit[lane];
                only[lane] = if high { limit[lane] } else { only[lane] };
            }
            continue;
        }
        let sum = sums(members);
        let most = if equal { largest(members) } else { [0.0; L] };
        // Below 0 where the group fits as it is.
        let (mut scale, mut any) = ([-1.0; L], false);
        for lane in 0..L {
            let bound = limit[lane].to_f64();
            let off = group_excess::<T>(sum[lane], most[lane], bound, equal, members.len());
            let unfit = (off > 0.0) | (sum[lane] > bound);
            scale[lane] = if unfit { bound / sum[lane] } else { -1.0 };
            any |= unfit;
        }
        if any {
            scale_abreast(members, limit, scale);
        }
        see_excess(&mut worst, members, limit, equal);
    }
    worst
}

/// Scales the members of a group, and gives what rounding left to the largest.
#[inline(always)]
fn scale_abreast<T: Grid, const L: usize>(members: &mut [[T; L]], limit: [T; L], scale: [f64; L]) {
    let (mut most, mut largest) = ([-T::ONE; L], [0u32; L]);
    for (at, member) in (0..).zip(members.iter_mut()) {
        for lane in 0..L {
            let scaled = T::round_down(member[lane].to_f64() * scale[lane]);
            let new = if scale[lane] < 0.0 { member[lane] } else { scaled };
            member[lane] = new;
            let larger = new > most[lane];
            most[lane] = if larger { new } else { most[lane] };
            largest[lane] = if larger { at } else { largest[lane] };
        }
    }
    let mut others = [0.0; L];
    for (at, member) in (0..).zip(members.iter()) {
        for lane in 0..L {
            others[lane] += if largest[lane] == at { 0.0 } else { member[lane].to_f64() };
        }
    }
    let mut room = most;
    for lane in 0..L {
        let rest = limit[lane].to_f64() - others[lane];
        let rest = if rest > 0.0 { T::round_down(rest) } else { T::ZERO };
        room[lane] = if scale[lane] < 0.0 { most[lane] } else { rest };
    }
    loop {
        for (at, member) in (0..).zip(members.iter_mut()) {
            for lane in 0..L {
                member[lane] = if largest[lane] == at { room[lane] } else { member[lane] };
            }
        }
        // The sum in the order of the members may round up.
        let (sum, mut over) = (sums(members), false);
        for lane in 0..L {
            let above = sum[lane] > limit[lane].to_f64();
            let lower = scale[lane] >= 0.0 && above && room[lane] > T::ZERO;
            room[lane] = if lower { room[lane].below() } else { room[lane] };
            over |= lower;
        }
        if !over {
            return;
        }
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
            assert!(!equal || narrow.iter().all(|&q| f64::from(q) <= limit));
            if equal {
                assert!((sum - limit).abs() <= 2.0 * rounding::<f32>(k, limit), "{sum} {limit}");
            }
        }
    }

    #[test]
    fn no_member_of_an_equation_is_above_its_limit() {
        // Within the rounding of an equation, but the first member implies the limit.
        let limit = 0.3_f32;
        let mut members = [f32::from_bits(limit.to_bits() + 1), 0.0, 1e-12];
        fit_group(&mut members, limit, true);
        assert!(members.iter().all(|q| *q <= limit) && members[0] > 0.299_999);
        let fitted = members;
        fit_group(&mut members, limit, true);
        assert_eq!(members, fitted);
    }

    #[test]
    fn rows_side_by_side_are_repaired_as_rows_by_themselves() {
        use crate::graph::ExclusionRule;
        use crate::reconcile::compile::forest_of;
        use crate::testkit::RandomGraph;
        fn check<T: Grid>(forest: &Families, random: &mut Random) {
            let rows: Vec<[T; 8]> = (0..forest.nodes())
                .map(|_| std::array::from_fn(|_| T::from_f64(random.next().powi(4))))
                .collect();
            let mut fitted = rows.clone();
            let (before, after) = (violations(forest, &rows), fit_abreast(forest, &mut fitted));
            for lane in 0..8 {
                let mut row: Vec<T> = rows.iter().map(|values| values[lane]).collect();
                assert_eq!(violation(forest, &row), before[lane]);
                fit(forest, &mut row);
                assert_eq!(violation(forest, &row), after[lane]);
                assert!(row.iter().zip(&fitted).all(|(q, values)| *q == values[lane]));
            }
        }
        let (mut random, mut checked) = (Random::new(5), 0);
        for seed in 0..300 {
            let rule = Some(ExclusionRule::Siblings);
            let graph = RandomGraph { rule, ..RandomGraph::new(14, seed) }.draw();
            let Some(forest) = forest_of(&graph) else { continue };
            check::<f32>(&forest, &mut random);
            check::<f64>(&forest, &mut random);
            checked += 1;
        }
        assert!(checked > 100, "{checked}");
    }
}
