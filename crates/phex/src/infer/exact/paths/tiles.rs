//! Moves labels between rows and lanes.
//!
//! A table of rows becomes one vector per label, and back: a transposition. It is done in tiles that
//! stay in the first-level cache, four rows at a time: interleaving four rows, and joining groups of
//! four, are loops that compilers turn into shuffles.

use crate::numeric::{Lanes, Scalar};

/// Labels per tile.
const TILE: usize = 64;

/// Rows that are interleaved at a time.
const FEW: usize = 4;

/// The groups of four in the widest vector.
const GROUPS: usize = 4;

type Tile<T> = [[T; FEW]; TILE];

/// Writes column `i` of the rows to `lanes[place[i]]`. Lanes without a row get the last one.
#[inline(always)]
pub(super) fn load<S: Copy, T: Scalar, const L: usize>(
    rows: &[S],
    place: &[u32],
    lanes: &mut [Lanes<T, L>],
    convert: impl Fn(S) -> T,
) {
    let n = place.len();
    let last = rows.len() / n - 1;
    let row = |at: usize| &rows[at.min(last) * n..][..n];
    let mut groups: [Tile<T>; GROUPS] = [[[T::ZERO; FEW]; TILE]; GROUPS];
    let mut from = 0;
    while let Some(places) = place[from..].first_chunk::<TILE>() {
        for (group, tile) in groups[..L / FEW].iter_mut().enumerate() {
            let tile_of = |at: usize| row(FEW * group + at)[from..].first_chunk::<TILE>();
            let (Some(a), Some(b), Some(c), Some(d)) =
                (tile_of(0), tile_of(1), tile_of(2), tile_of(3))
            else {
                return;
            };
            for i in 0..TILE {
                tile[i] = [convert(a[i]), convert(b[i]), convert(c[i]), convert(d[i])];
            }
        }
        for (i, &to) in places.iter().enumerate() {
            let lanes = &mut lanes[to as usize].0;
            for (group, tile) in groups[..L / FEW].iter().enumerate() {
                lanes[FEW * group..FEW * group + FEW].copy_from_slice(&tile[i]);
            }
        }
        from += TILE;
    }
    for (i, &to) in place.iter().enumerate().skip(from) {
        let lanes = &mut lanes[to as usize].0;
        for (at, lane) in lanes.iter_mut().enumerate() {
            *lane = convert(row(at)[i]);
        }
    }
}

/// Writes `lanes[place[i]]`, times a factor, to column `i` of the rows.
#[inline(always)]
pub(super) fn store<T: Scalar, const L: usize>(
    lanes: &[Lanes<T, L>],
    factor: Lanes<T, L>,
    place: &[u32],
    rows: &mut [T],
) {
    let n = place.len();
    let count = rows.len() / n;
    let mut groups: [Tile<T>; GROUPS] = [[[T::ZERO; FEW]; TILE]; GROUPS];
    let mut split = [[T::ZERO; TILE]; FEW];
    let mut from = 0;
    while let Some(places) = place[from..].first_chunk::<TILE>() {
        for (i, &to) in places.iter().enumerate() {
            let lanes = (lanes[to as usize] * factor).0;
            for (group, tile) in groups[..L / FEW].iter_mut().enumerate() {
                tile[i].copy_from_slice(&lanes[FEW * group..FEW * group + FEW]);
            }
        }
        for (group, tile) in groups[..L / FEW].iter().enumerate() {
            let [a, b, c, d] = &mut split;
            for i in 0..TILE {
                [a[i], b[i], c[i], d[i]] = tile[i];
            }
            for (at, split) in split.iter().enumerate() {
                let row = FEW * group + at;
                if row < count {
                    rows[row * n + from..][..TILE].copy_from_slice(split);
                }
            }
        }
        from += TILE;
    }
    for (i, &to) in place.iter().enumerate().skip(from) {
        let lanes = lanes[to as usize] * factor;
        for (row, &value) in rows.chunks_exact_mut(n).zip(&lanes.0) {
            row[i] = value;
        }
    }
}
