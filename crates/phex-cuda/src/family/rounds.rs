//! Assigns the labels of a block to its warps, in which order, and with which shared memory.
//!
//! A round is what a warp does at a time: one label, or, where a block has few rows, several labels of one level that are
//! close in size, so that they take the same steps. A large family has a round alone, with its counts spread over the lanes;
//! so has a label that needs more memory than the smallest part of any warp. Rounds do not wait for whole levels: a round
//! waits until each warp has done the rounds that it needs. This is a list schedule: the round with the longest way to the
//! end goes first, to the warp that finishes it first. The memory of rounds alone is divided in the same way: a round waits
//! for those that had its lines before.

use std::collections::HashMap;
use std::ops::Range;

use phex::infer::compiled::{ForestProgram, SiblingUnit};

use super::pool::LinePool;
use super::units::{is_large, needs, needs_of_large};

/// The labels with children of a plan: what they cost and how much memory they need.
pub(super) struct ParentCosts<'a> {
    pub(super) plan: &'a ForestProgram,
    /// Which of them are done in registers.
    pub(super) simple: &'a [bool],
    /// Labels that a warp has at a time.
    pub(super) groups: usize,
}

impl ParentCosts<'_> {
    fn units(&self, place: usize) -> &[SiblingUnit] {
        &self.plan.units[self.plan.nodes[self.plan.parents[place]].units.clone()]
    }

    /// About how many cycles a unit takes on the way up (0) or down (1). The numbers were measured.
    fn cost(&self, unit: &SiblingUnit, way: usize) -> usize {
        let (size, layers) = (unit.steps.len(), unit.most_layers);
        let is_large = self.groups > 1 && is_large(self.plan, unit);
        let [fixed, step] = match is_large {
            true => [[2000, 220], [2500, 600]][way],
            false => [[600, 100 + 8 * size], [800, 250 + 20 * size]][way],
        };
        // The lanes of a large family share what is read for all layers.
        let times = if is_large { 1 + layers } else { 2 * layers };
        fixed + step * size * times / 2
    }

    fn needs_of(&self, unit: &SiblingUnit) -> usize {
        match self.groups > 1 && is_large(self.plan, unit) {
            true => needs_of_large(unit),
            false => needs(self.plan, unit),
        }
    }

    /// The number of children of the largest family whose counts are spread over lanes.
    pub(super) fn most_counts(&self) -> usize {
        let large = self.plan.units.iter().filter(|unit| is_large(self.plan, unit));
        large.map(|unit| unit.steps.len()).max().unwrap_or(0)
    }

    fn has_large(&self, place: usize) -> bool {
        self.units(place).iter().any(|unit| is_large(self.plan, unit))
    }

    /// Whether a parent has a round alone, if each warp has at least `least` lines.
    fn is_alone(&self, place: usize, least: usize) -> bool {
        let alone = self.has_large(place) || self.needs(place) > least || !self.share_rounds();
        self.groups > 1 && !self.simple[place] && alone
    }

    /// Whether labels that are not done in registers share rounds: if there are enough of them that are not large, so that
    /// it pays to keep memory for them.
    pub(super) fn share_rounds(&self) -> bool {
        let general = |&place: &usize| !self.simple[place] && !self.has_large(place);
        10 * (0..self.simple.len()).filter(general).count() > self.simple.len()
    }

    /// Lines that a round alone takes. The way up of a large family needs none.
    fn lines(&self, place: usize, way: usize) -> usize {
        let units = self.units(place).iter();
        let kept = units.filter(|unit| way == 1 || !is_large(self.plan, unit));
        kept.map(|unit| self.needs_of(unit)).max().unwrap_or(0).div_ceil(self.groups)
    }

    fn children(&self, place: usize) -> impl Iterator<Item = usize> {
        let steps = self.units(place).iter().flat_map(|unit| &self.plan.steps[unit.steps.clone()]);
        steps.map(|step| step.node)
    }

    /// Numbers per lane of a warp's memory.
    fn needs(&self, place: usize) -> usize {
        if self.simple[place] {
            return 0;
        }
        self.units(place).iter().map(|unit| self.needs_of(unit)).max().unwrap_or(0)
    }

    pub(super) fn widest(&self) -> usize {
        (0..self.simple.len()).map(|place| self.needs(place)).max().unwrap_or(0)
    }

    /// Lines that the largest label needs alone.
    pub(super) fn most_lines(&self) -> usize {
        let alone = (0..self.simple.len()).filter(|&place| !self.simple[place]);
        alone.map(|place| self.lines(place, 1)).max().unwrap_or(0)
    }
}

/// Far more than any family costs.
const NEVER: usize = 1 << 24;

/// In an entry of a round, as in `model.cu`: there is no parent; the round has one parent alone.
const NONE: usize = (1 << 28) - 1;
const ALONE: usize = 1 << 28;

/// How many times longer a unit takes because of where its cells lie: for a warp with `lines` lines, if no warp has more than
/// `most`, and warps have one label at a time.
fn slowness(needs: usize, lines: usize, most: usize) -> usize {
    match needs {
        _ if needs <= lines => 1,
        // Eight lanes at a time take four turns. Global memory is far slower; only what fits no warp's part is there.
        _ if needs <= 4 * lines => 4,
        _ if needs > 4 * most => 40,
        _ => NEVER,
    }
}

/// The most warps that a block may have.
pub(super) const MOST_WARPS: usize = 16;

/// The rounds of all warps, `groups` entries each.
pub(super) struct WarpRounds {
    /// Two entries per warp: where its rounds on the way up and on the way down start. Then where the last ends.
    pub(super) starts: Vec<i32>,
    /// The parent with flags, and its first child; if it is alone, the line where its cells start, or −1.
    pub(super) entries: Vec<[i32; 2]>,
    /// For each round, how many rounds each warp must have done.
    pub(super) awaited: Vec<u16>,
    /// Where the lines of the pool that some round has end.
    pub(super) end: usize,
}

/// What a warp does at a time.
struct WarpRound {
    places: Vec<usize>,
    way: usize,
    is_alone: bool,
    /// Rounds that must have been done before.
    after: Vec<usize>,
}

/// Groups the labels into rounds, in an order in which none comes before a round that it needs.
fn rounds(parents: &ParentCosts<'_>, levels: [&[Vec<usize>]; 2], least: usize) -> Vec<WarpRound> {
    let count = parents.simple.len();
    let place_of: HashMap<usize, usize> =
        parents.plan.parents.iter().enumerate().map(|(place, &node)| (node, place)).collect();
    let inner = |place: usize| parents.children(place).filter_map(|node| place_of.get(&node));
    let mut above = vec![None; count];
    (0..count).for_each(|place| inner(place).for_each(|&child| above[child] = Some(place)));
    let (mut all, mut round_of) = (Vec::<WarpRound>::new(), [vec![0; count], vec![0; count]]);
    for (way, levels) in levels.into_iter().enumerate() {
        for level in levels {
            let size = |&place: &usize| parents.units(place).iter().map(|unit| unit.steps.len());
            let mut level = level.clone();
            level.sort_by_key(|place| std::cmp::Reverse(size(place).sum::<usize>()));
            let (alone, together): (Vec<usize>, Vec<usize>) =
                level.into_iter().partition(|&place| parents.is_alone(place, least));
            let alone = alone.chunks(1).map(|some| (some, parents.groups > 1));
            for (some, is_alone) in
                alone.chain(together.chunks(parents.groups).map(|some| (some, false)))
            {
                let mut after: Vec<usize> = match way {
                    0 => {
                        let children = some.iter().flat_map(|&place| inner(place));
                        children.map(|&child| round_of[0][child]).collect()
                    }
                    // The root goes down after it came up.
                    _ => some
                        .iter()
                        .map(|&place| above[place].map_or(round_of[0][place], |at| round_of[1][at]))
                        .collect(),
                };
                after.sort_unstable();
                after.dedup();
                some.iter().for_each(|&place| round_of[way][place] = all.len());
                all.push(WarpRound { places: some.to_vec(), way, is_alone, after });
            }
        }
    }
    all
}

/// Distributes the rounds to warps, which have `lines` lines each, and the lines of the pool to rounds alone.
pub(super) fn share_out(
    parents: &ParentCosts<'_>,
    levels: [&[Vec<usize>]; 2],
    lines: &[usize],
    pool: Range<usize>,
) -> WarpRounds {
    let (groups, warps) = (parents.groups, lines.len());
    let most = lines.iter().copied().max().unwrap_or(0);
    let rounds = rounds(parents, levels, lines.iter().copied().min().unwrap_or(0));
    let cost = |round: &WarpRound, lines: usize| {
        let of_place = |&place: &usize| -> usize {
            let of_unit = |unit: &SiblingUnit| {
                let is_free = parents.simple[place] || groups > 1;
                let needs = if is_free { 0 } else { parents.needs_of(unit) };
                slowness(needs, lines, most) * parents.cost(unit, round.way)
            };
            parents.units(place).iter().map(of_unit).sum()
        };
        round.places.iter().map(of_place).max().unwrap_or(0)
    };
    // The longest way from each round to the end.
    let mut left = vec![0; rounds.len()];
    for (at, round) in rounds.iter().enumerate().rev() {
        left[at] += cost(round, most);
        for &before in &round.after {
            left[before] = left[before].max(left[at]);
        }
    }
    let mut order: Vec<usize> = (0..rounds.len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(left[at]));
    let (mut free, mut done) = (vec![0; warps], vec![0; rounds.len()]);
    let mut streams: Vec<[Vec<usize>; 2]> = vec![Default::default(); warps];
    // Which warp has each round, and how many that warp has then done.
    let mut places = vec![(0, 0); rounds.len()];
    // For each round, where its cells start, and the rounds that had their lines before.
    let (mut pool, mut end) = (LinePool::new(pool), 0);
    let mut cells: Vec<(Option<usize>, Vec<usize>)> = vec![Default::default(); rounds.len()];
    for at in order {
        let round = &rounds[at];
        let mut ready = round.after.iter().map(|&before| done[before]).max().unwrap_or(0);
        let wanted = if round.is_alone { parents.lines(round.places[0], round.way) } else { 0 };
        let part = if wanted > 0 { pool.find(wanted, ready) } else { None };
        ready = part.as_ref().map_or(ready, |part| part.1);
        let done_by = |&warp: &usize| ready.max(free[warp]) + cost(round, lines[warp]);
        let Some(warp) = (0..warps).min_by_key(done_by) else { continue };
        (free[warp], done[at]) = (done_by(&warp), done_by(&warp));
        if let Some((part, _)) = part {
            end = end.max(part.end);
            cells[at] = (Some(part.start), pool.take(part, at, done[at]));
        }
        streams[warp][round.way].push(at);
        places[at] = (warp, streams[warp].iter().map(Vec::len).sum());
    }
    let mut found = WarpRounds { starts: vec![0], entries: Vec::new(), awaited: Vec::new(), end };
    for stream in streams.iter().flatten() {
        for &at in stream {
            let WarpRound { places: some, is_alone, after, .. } = &rounds[at];
            // If one label has the round alone, all lanes get its entry.
            let entry = |group: usize| match some.get(if *is_alone { 0 } else { group }) {
                Some(&place) if *is_alone => {
                    let from = cells[at].0.map_or(-1, |line| line as i32);
                    [(place | ALONE) as i32, from]
                }
                Some(&place) => [place as i32, parents.units(place)[0].steps.start as i32],
                None => [NONE as i32, 0],
            };
            found.entries.extend((0..groups).map(entry));
            let mut awaited = [0u16; MOST_WARPS];
            for &before in after.iter().chain(&cells[at].1) {
                let (warp, count) = places[before];
                awaited[warp] = awaited[warp].max(count as u16);
            }
            found.awaited.extend(awaited);
        }
        found.starts.push((found.entries.len() / groups) as i32);
    }
    found
}

/// The parents by height and by depth, as places among the parents.
pub(super) fn levels(plan: &ForestProgram) -> (Vec<Vec<usize>>, Vec<Vec<usize>>) {
    let mut height = vec![0usize; plan.nodes.len()];
    let mut depth = height.clone();
    let place: HashMap<usize, usize> =
        plan.parents.iter().enumerate().map(|(place, &node)| (node, place)).collect();
    let children = |node: usize| {
        let units = &plan.units[plan.nodes[node].units.clone()];
        units.iter().flat_map(|unit| &plan.steps[unit.steps.clone()]).map(|step| step.node)
    };
    for &node in &plan.parents {
        height[node] = children(node).map(|child| height[child] + 1).max().unwrap_or(0);
    }
    for &node in plan.parents.iter().rev() {
        children(node).for_each(|child| depth[child] = depth[node] + 1);
    }
    let by = |level: &[usize]| {
        let mut all: Vec<Vec<usize>> = Vec::new();
        for &node in &plan.parents {
            all.resize_with(all.len().max(level[node] + 1), Vec::new);
            all[level[node]].push(place[&node]);
        }
        all.retain(|some| !some.is_empty());
        all
    };
    (by(&height), by(&depth))
}

#[cfg(test)]
mod tests {
    use super::super::records::in_registers;
    use super::super::tests::forest;
    use super::*;
    use crate::rows::Precision;

    fn with_plan(check: impl Fn(&ForestProgram)) {
        let engine = forest(false);
        let phex::infer::compiled::Compiled::Family(forest) = engine.compiled() else {
            panic!("a forest")
        };
        check(forest.plan);
    }

    /// Runs the rounds as warps would, by turns, and checks that each label comes once each way, after those that it needs.
    #[test]
    fn rounds_wait_for_what_they_need_and_none_forever() {
        with_plan(|plan| {
            let (up, down) = levels(plan);
            for groups in [1, 4, 16] {
                let simple = in_registers(plan, Precision::Single, groups);
                let parents = ParentCosts { plan, simple: &simple, groups };
                let pool = if groups == 1 { 0..0 } else { 7..7 + 1200 / groups };
                let WarpRounds { starts, entries, awaited, .. } =
                    share_out(&parents, [&up, &down], &[500, 50, 50, 50], pool);
                assert_eq!(starts.len(), 2 * 4 + 1);
                assert_eq!(*starts.last().unwrap() as usize * groups, entries.len());
                assert_eq!(awaited.len() / MOST_WARPS * groups, entries.len());
                let mut progress = [0u16; MOST_WARPS];
                let mut ways = vec![Vec::new(); plan.nodes.len()];
                let total = *starts.last().unwrap() as usize;
                for _ in 0..total {
                    // The last warp that can go on does.
                    let (warp, at) = (0..4)
                        .rev()
                        .map(|warp| (warp, starts[2 * warp] as usize + progress[warp] as usize))
                        .find(|&(warp, at)| {
                            let needs = &awaited[at.min(total - 1) * MOST_WARPS..][..MOST_WARPS];
                            at < starts[2 * warp + 2] as usize
                                && needs.iter().zip(progress).all(|(&need, done)| done >= need)
                        })
                        .expect("a warp that can go on");
                    let way = usize::from(at >= starts[2 * warp + 1] as usize);
                    let round = &entries[at * groups..(at + 1) * groups];
                    let alone = round[0][0] as usize & ALONE > 0;
                    for &[entry, _] in &round[..if alone { 1 } else { groups }] {
                        let place = entry as usize & NONE;
                        if place == NONE {
                            continue;
                        }
                        let node = plan.parents[place];
                        for child in parents.children(place) {
                            let inner = !plan.nodes[child].units.is_empty();
                            let expected = if way == 0 && inner { vec![0] } else { vec![] };
                            let found = &ways[child];
                            assert!(*found == expected || (way == 1 && *found == [0]) || !inner);
                        }
                        assert_eq!(ways[node].len(), way);
                        ways[node].push(way);
                    }
                    progress[warp] += 1;
                }
                let all = plan.parents.iter().all(|&node| ways[node] == [0, 1]);
                assert!(all, "each label comes up and goes down");
            }
        });
    }

    #[test]
    fn families_fit_where_their_round_puts_them_and_none_has_the_lines_of_another() {
        with_plan(|plan| {
            let simple = in_registers(plan, Precision::Single, 8);
            let parents = ParentCosts { plan, simple: &simple, groups: 8 };
            let (up, down) = levels(plan);
            let pool = 10..10 + parents.most_lines() + 15;
            let rounds = share_out(&parents, [&up, &down], &[6; 4], pool.clone());
            let WarpRounds { starts, entries, awaited, end } = &rounds;
            assert!(*end <= pool.end);
            // By warp and place: the lines, and how many rounds of each warp are known to be done when it starts.
            let mut placed: Vec<(usize, usize, Range<usize>, Vec<usize>)> = Vec::new();
            let mut known: HashMap<(usize, usize), Vec<usize>> = HashMap::new();
            let mut progress = [0; 4];
            while let Some(warp) = (0..4).find(|&warp| {
                let at = starts[2 * warp] as usize + progress[warp];
                let ready = |w: usize| awaited[at * MOST_WARPS + w] as usize <= progress[w];
                at < starts[2 * warp + 2] as usize && (0..4).all(ready)
            }) {
                let at = starts[2 * warp] as usize + progress[warp];
                let mut clock = known.get(&(warp, progress[warp])).cloned().unwrap_or(vec![0; 4]);
                for other in 0..4 {
                    let count = awaited[at * MOST_WARPS + other] as usize;
                    let theirs = known.get(&(other, count)).cloned().unwrap_or(vec![0; 4]);
                    clock
                        .iter_mut()
                        .zip(theirs)
                        .for_each(|(mine, theirs)| *mine = theirs.max(*mine));
                }
                let [place, line] = entries[at * 8].map(|entry| entry as usize);
                if place & ALONE > 0 {
                    let way = usize::from(at >= starts[2 * warp + 1] as usize);
                    let lines = parents.lines(place & NONE, way);
                    assert_eq!(lines > 0, entries[at * 8][1] >= 0);
                    if lines > 0 {
                        assert!(pool.contains(&line) && line + lines <= pool.end);
                        placed.push((warp, progress[warp] + 1, line..line + lines, clock.clone()));
                    }
                }
                progress[warp] += 1;
                clock[warp] = progress[warp];
                known.insert((warp, progress[warp]), clock);
            }
            assert_eq!(progress.iter().sum::<usize>(), *starts.last().unwrap() as usize);
            assert!(placed.len() > 10);
            for (at, (_, _, lines, clock)) in placed.iter().enumerate() {
                for (warp, count, others, _) in &placed[..at] {
                    let shared = lines.start < others.end && others.start < lines.end;
                    assert!(
                        !shared || clock[*warp] >= *count,
                        "{lines:?} while another has {others:?}"
                    );
                }
            }
        });
    }
}
