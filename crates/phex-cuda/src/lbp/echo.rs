//! Whom the messages of each node come from: what `lbp_echo.cu` reads to answer messages in place.

use phex::infer::compiled::Network;

use super::order::{EIGHT, Slots};

/// Messages of an entry of the table.
const FOUR: usize = 4;
/// Bits of a slot in an entry; the others say which strength the pair has.
pub(super) const SLOT_BITS: u32 = 14;
const MOST_KINDS: usize = 4;

/// The tables of nodes whose pairs are symmetric, of few strengths.
#[derive(Debug)]
pub(super) struct Partners {
    /// Four messages each: the slot of the other end's copy and the pair's strength, two in a number. Those of
    /// eight nodes lie side by side.
    pub(super) entries: Vec<[u32; 2]>,
    /// For each node: where its entries start, and how many messages it has.
    pub(super) reach: Vec<[i32; 2]>,
    pub(super) strengths: [f32; MOST_KINDS],
    pub(super) kinds: usize,
}

impl Partners {
    /// `None` where there are too many messages or strengths for an entry.
    pub(super) fn new(network: &Network, ends: &[[usize; 2]], slots: &Slots) -> Option<Partners> {
        if slots.count > 1 << SLOT_BITS {
            return None;
        }
        let (mut strengths, mut kind_of) = (Vec::new(), Vec::with_capacity(ends.len()));
        for pair in &network.pairs {
            let strength = (-pair.costs[0][1]).exp() as f32;
            let kind = strengths.iter().position(|&known| known == strength);
            kind_of.push(kind.unwrap_or(strengths.len()) as u32);
            if kind.is_none() {
                strengths.push(strength);
            }
            if strengths.len() > MOST_KINDS {
                return None;
            }
        }
        let kinds = strengths.len();
        strengths.resize(MOST_KINDS, 1.0);
        let starts: Vec<usize> = slots
            .degree
            .iter()
            .scan(0, |next, &degree| {
                let start = *next;
                *next += EIGHT * (degree as usize).div_ceil(FOUR);
                Some(start)
            })
            .collect();
        let mut reach: Vec<[i32; 2]> = (0..EIGHT * starts.len())
            .map(|node| [(starts[node / EIGHT] + node % EIGHT) as i32, 0])
            .collect();
        // Nodes without messages read an entry too, the last of them behind the end.
        let fours: usize =
            slots.degree.iter().map(|&degree| (degree as usize).div_ceil(FOUR)).sum();
        let mut entries = vec![[0; 2]; EIGHT * (fours + 1)];
        for (pair, ends) in ends.iter().enumerate() {
            for (side, &node) in ends.iter().enumerate() {
                let at =
                    (slots.of[pair][side] as usize - slots.base[node / EIGHT] as usize) / EIGHT;
                let entry = slots.of[pair][1 - side] | kind_of[pair] << SLOT_BITS;
                let four = &mut entries[reach[node][0] as usize + at / FOUR * EIGHT];
                four[at % FOUR / 2] |= entry << (at % 2 * 16);
                reach[node][1] += 1;
            }
        }
        Some(Partners { entries, reach, strengths: strengths.try_into().ok()?, kinds })
    }
}
