//! Matrix products on the threads of the current pool.
//!
//! An output is cut into tiles of a fixed size, so that results have the same bits for any number of
//! threads. A tile is one product by `matrixmultiply`, which packs its inputs; tiles are large enough for
//! that to cost little.

use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, ArrayViewMut2, Axis};
use rayon::prelude::*;

const TILE_ROWS: usize = 128;
const TILE_COLUMNS: usize = 512;

/// `out = a · b`.
pub(super) fn multiply(
    a: ArrayView2<'_, f32>,
    b: ArrayView2<'_, f32>,
    out: ArrayViewMut2<'_, f32>,
) {
    let (rows, columns) = out.dim();
    // Along the axis with more tiles.
    if rows.div_ceil(TILE_ROWS) >= columns.div_ceil(TILE_COLUMNS) {
        let tiles = a.axis_chunks_iter(Axis(0), TILE_ROWS);
        share(tiles.zip(by(out, Axis(0), TILE_ROWS)), |a, out| product(a, b, out));
    } else {
        let tiles = b.axis_chunks_iter(Axis(1), TILE_COLUMNS);
        share(tiles.zip(by(out, Axis(1), TILE_COLUMNS)), |b, out| product(a, b, out));
    }
}

fn product(a: ArrayView2<'_, f32>, b: ArrayView2<'_, f32>, mut out: ArrayViewMut2<'_, f32>) {
    general_mat_mul(1.0, &a, &b, 0.0, &mut out);
}

/// The tiles of an output.
fn by<'a>(out: ArrayViewMut2<'a, f32>, axis: Axis, size: usize) -> Vec<ArrayViewMut2<'a, f32>> {
    let mut tiles = Vec::new();
    let mut rest = out;
    while rest.len_of(axis) > size {
        let (tile, left) = rest.split_at(axis, size);
        tiles.push(tile);
        rest = left;
    }
    tiles.push(rest);
    tiles
}

fn share<'a>(
    tiles: impl Iterator<Item = (ArrayView2<'a, f32>, ArrayViewMut2<'a, f32>)>,
    work: impl Fn(ArrayView2<'a, f32>, ArrayViewMut2<'a, f32>) + Sync,
) {
    let mut tiles: Vec<_> = tiles.collect();
    if tiles.len() == 1 {
        if let Some((a, out)) = tiles.pop() {
            work(a, out);
        }
        return;
    }
    tiles.into_par_iter().for_each(|(a, out)| work(a, out));
}
