//! Who sends the messages of each node: the tables that `lbp/echo.cu` reads to answer messages in place.

use phex::infer::compiled::Network;

use super::order::{EIGHT, MessageSlots};
use super::tables::{MILD, is_mild};

/// Messages of an entry of the table.
const FOUR: usize = 4;
/// Bits of a slot in an entry; the others say which strength the pair has.
const SLOT_BITS: u32 = 14;
const MOST_KINDS: usize = 4;

/// The tables of a network whose pairs are symmetric and have few strengths.
#[derive(Debug)]
pub(super) struct MessagePartners {
    /// The first four messages of each node: the slot of the other end's copy and the pair's strength, two per number.
    pub(super) heads: Vec<[u32; 2]>,
    /// The other messages. Those of eight nodes lie side by side.
    pub(super) tails: Vec<[u32; 2]>,
    /// For each node: where its other messages start, and how many messages it has in all.
    pub(super) reach: Vec<[i32; 2]>,
    pub(super) strengths: [f32; MOST_KINDS],
    pub(super) kinds: usize,
}

/// The strengths of pairs, if messages can be answered in place.
#[derive(Debug)]
pub(super) struct StrengthKinds {
    strengths: [f32; MOST_KINDS],
    count: usize,
    /// Of each pair.
    of: Vec<u32>,
}

impl StrengthKinds {
    /// `None` if some pair is not symmetric and mild, or if there are too many messages or strengths for an entry.
    pub(super) fn new(network: &Network) -> Option<StrengthKinds> {
        if 2 * network.pairs.len() > 1 << SLOT_BITS {
            return None;
        }
        let (mut strengths, mut of) = (Vec::new(), Vec::with_capacity(network.pairs.len()));
        for pair in &network.pairs {
            if !is_mild(&pair.costs, MILD[0]) {
                return None;
            }
            let strength = (-pair.costs[0][1]).exp() as f32;
            let kind = strengths.iter().position(|&other| other == strength);
            of.push(kind.unwrap_or(strengths.len()) as u32);
            if kind.is_none() {
                strengths.push(strength);
            }
            if strengths.len() > MOST_KINDS {
                return None;
            }
        }
        let count = strengths.len();
        strengths.resize(MOST_KINDS, 1.0);
        Some(StrengthKinds { strengths: strengths.try_into().ok()?, count, of })
    }
}

impl MessagePartners {
    /// `None` if there are too many places for an entry.
    pub(super) fn new(
        kinds: &StrengthKinds,
        ends: &[[usize; 2]],
        slots: &MessageSlots,
    ) -> Option<MessagePartners> {
        if slots.count > 1 << SLOT_BITS {
            return None;
        }
        let fours = |degree: &i32| (*degree as usize).div_ceil(FOUR).saturating_sub(1);
        let mut reach = Vec::with_capacity(EIGHT * slots.degree.len());
        let mut start = 0;
        for degree in &slots.degree {
            reach.extend((0..EIGHT).map(|lane| [(start + lane) as i32, 0]));
            start += EIGHT * fours(degree);
        }
        let (mut heads, mut tails) = (vec![[0; 2]; reach.len()], vec![[0; 2]; start]);
        for (pair, ends) in ends.iter().enumerate() {
            for (side, &node) in ends.iter().enumerate() {
                let at =
                    (slots.of[pair][side] as usize - slots.base[node / EIGHT] as usize) / EIGHT;
                let entry = slots.of[pair][1 - side] | kinds.of[pair] << SLOT_BITS;
                let four = match at / FOUR {
                    0 => &mut heads[node],
                    further => &mut tails[reach[node][0] as usize + (further - 1) * EIGHT],
                };
                four[at % FOUR / 2] |= entry << (at % 2 * 16);
                reach[node][1] += 1;
            }
        }
        Some(MessagePartners {
            heads,
            tails,
            reach,
            strengths: kinds.strengths,
            kinds: kinds.count,
        })
    }
}
