//! Axes: the position of each number, and the ticks.
//!
//! Linear ticks are multiples of 1, 2 or 5 times a power of ten, and a linear axis ends at ticks. A logarithmic
//! axis ends where its numbers do. It may have a position for zero to the left of them, because grids of
//! strengths often start there. O(numbers).

use crate::text::tick;

/// An axis and its ticks.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Axis {
    low: f64,
    high: f64,
    scale: AxisScale,
    /// The value of each tick, and its text.
    pub(crate) ticks: Vec<(f64, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum AxisScale {
    Linear,
    /// Decimal logarithms; the position of zero, if it has one.
    Logarithmic {
        zero: Option<f64>,
    },
}

/// The difference of two numbers below this does not overflow.
const LARGEST: f64 = 1e300;

fn finite(values: impl IntoIterator<Item = f64>) -> impl Iterator<Item = f64> {
    values.into_iter().filter(|value| value.abs() < LARGEST)
}

/// The smallest and the largest of the finite numbers.
fn extent(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    finite(values).fold(None, |extent: Option<(f64, f64)>, value| {
        let (low, high) = extent.unwrap_or((value, value));
        Some((low.min(value), high.max(value)))
    })
}

/// The smallest of 1, 2, 5 times a power of ten that cuts the length into at most `most` parts.
fn step(length: f64, most: usize) -> f64 {
    let rough = length / most.max(1) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let fits = |factor: &f64| factor * power >= rough * (1.0 - 1e-9);
    [1.0, 2.0, 5.0, 10.0].into_iter().find(fits).unwrap_or(10.0) * power
}

impl Axis {
    /// A linear axis over the numbers with at most `most` + 1 parts; `None` without any number.
    pub(crate) fn linear(values: impl IntoIterator<Item = f64>, most: usize) -> Option<Axis> {
        let (low, high) = extent(values)?;
        Some(Axis::between(low, high, most))
    }

    /// A linear axis that holds both numbers and ends at ticks.
    pub(crate) fn between(low: f64, high: f64, most: usize) -> Axis {
        let size = low.abs().max(high.abs());
        // Differences within rounding do not count.
        let (low, high) = if high - low > 1e-9 * size {
            (low, high)
        } else {
            let room = if size > 0.0 { 0.1 * size } else { 1.0 };
            (low - room, high + room)
        };
        let step = step(high - low, most);
        let (first, last) = ((low / step + 1e-9).floor(), (high / step - 1e-9).ceil());
        let ticks = (0..=(last - first) as usize).map(|at| {
            let value = (first + at as f64) * step;
            (value, tick(value, step))
        });
        let ticks = ticks.collect();
        Axis { low: first * step, high: last * step, scale: AxisScale::Linear, ticks }
    }

    /// Whole numbers from `low` to `high`, with ticks at round ones and room at both ends.
    pub(crate) fn whole(low: usize, high: usize, most: usize) -> Axis {
        let step = step((high.saturating_sub(low)).max(1) as f64, most).max(1.0) as usize;
        let ticks = (low..=high).filter(|value| *value == low || value % step == 0);
        // The first tick yields to a round one close by.
        let crowded = |value: usize| value == low && !value.is_multiple_of(step);
        let close = |value: usize| step > 1 && step - value % step <= step / 2;
        let ticks = ticks.filter(|&value| !(crowded(value) && close(value)));
        let ticks = ticks.map(|value| (value as f64, value.to_string())).collect();
        let room = if low == high { 0.5 } else { 0.015 * (high - low) as f64 };
        Axis { low: low as f64 - room, high: high as f64 + room, scale: AxisScale::Linear, ticks }
    }

    /// A logarithmic axis over the positive numbers, with a position for zero if one is zero.
    pub(crate) fn logarithmic(values: impl IntoIterator<Item = f64>, most: usize) -> Option<Axis> {
        let values: Vec<f64> = finite(values).filter(|value| *value >= 0.0).collect();
        let positive = values.iter().copied().filter(|value| *value > 0.0);
        let (least, largest) = extent(positive)?;
        let (low, high) = (least.log10(), largest.log10());
        let room = (0.04 * (high - low)).max(0.02);
        let zero = values.contains(&0.0).then(|| low - (0.16 * (high - low)).max(0.3));
        let mut ticks: Vec<(f64, String)> = Vec::new();
        if zero.is_some() {
            ticks.push((0.0, String::from("0")));
        }
        // 1, 2 and 5 in each decade, or a power of ten every few decades if these are too many.
        let (first, last) = (low.floor() as i32, high.ceil() as i32);
        let within = |value: f64| value >= least * 0.999 && value <= largest * 1.001;
        let fine: Vec<f64> = (first..=last)
            .flat_map(|power| [1.0, 2.0, 5.0].map(|factor| factor * 10f64.powi(power)))
            .filter(|&value| within(value))
            .collect();
        let decades: Vec<f64> =
            (first..=last).map(|power| 10f64.powi(power)).filter(|&value| within(value)).collect();
        let stride = decades.len().div_ceil(most + 1).max(1);
        let chosen = match fine.len() > most && decades.len() > 1 {
            true => decades.into_iter().step_by(stride).collect(),
            false => fine,
        };
        ticks.extend(chosen.into_iter().map(|value| (value, tick(value, value))));
        let low = zero.unwrap_or(low) - room;
        Some(Axis { low, high: high + room, scale: AxisScale::Logarithmic { zero }, ticks })
    }

    /// Logarithmic where the positive numbers span more than `ratio`, else linear.
    pub(crate) fn fitting(values: &[f64], ratio: f64, most: usize) -> Option<Axis> {
        let positive = values.iter().copied().filter(|value| *value > 0.0);
        let wide = extent(positive).is_some_and(|(low, high)| high / low > ratio);
        if wide && values.iter().all(|value| value.is_nan() || *value >= 0.0) {
            Axis::logarithmic(values.iter().copied(), most)
        } else {
            Axis::linear(values.iter().copied(), most)
        }
    }

    pub(crate) fn is_logarithmic(&self) -> bool {
        self.scale != AxisScale::Linear
    }

    /// The position of a number, from 0 to 1; `None` if it has none.
    pub(crate) fn place(&self, value: f64) -> Option<f64> {
        let at = match self.scale {
            AxisScale::Linear => value,
            AxisScale::Logarithmic { zero } if value == 0.0 => zero?,
            AxisScale::Logarithmic { .. } => value.log10(),
        };
        let place = (at - self.low) / (self.high - self.low);
        place.is_finite().then_some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every axis: all numbers have a position on it, ticks ascend within it, no two ticks have the same text.
    fn check(axis: &Axis, values: &[f64], most: usize) {
        for &value in values.iter().filter(|value| value.is_finite()) {
            let place = axis.place(value).unwrap();
            assert!((-1e-6..=1.0 + 1e-6).contains(&place), "{value} at {place} of {axis:?}");
        }
        let places: Vec<f64> = axis.ticks.iter().map(|(v, _)| axis.place(*v).unwrap()).collect();
        assert!(places.windows(2).all(|pair| pair[0] < pair[1]), "{axis:?}");
        assert!(places.iter().all(|place| (-1e-6..=1.0 + 1e-6).contains(place)), "{axis:?}");
        assert!(axis.ticks.len() <= most + 3, "{} ticks: {axis:?}", axis.ticks.len());
        let texts: std::collections::HashSet<&String> = axis.ticks.iter().map(|t| &t.1).collect();
        assert_eq!(texts.len(), axis.ticks.len(), "{axis:?}");
    }

    #[test]
    fn linear_ticks_are_round_and_hold_the_numbers() {
        for low in [-3e5, -7.3, -0.001, 0.0, 1e-7, 0.812, 12.0, 4.1e6] {
            for length in [0.0, 1e-6, 0.003, 0.19, 1.0, 7.77, 1234.5, 9e8] {
                for most in [2, 5, 8] {
                    let values = [low, low + length / 3.0, low + length, f64::NAN];
                    let axis = Axis::linear(values, most).unwrap();
                    check(&axis, &values, most);
                    assert!(axis.ticks.len() >= 2, "{low} {length} {most}: {axis:?}");
                }
            }
        }
        let texts = |axis: Axis| axis.ticks.into_iter().map(|t| t.1).collect::<Vec<_>>().join(" ");
        assert_eq!(texts(Axis::between(0.0, 1.0, 5)), "0.0 0.2 0.4 0.6 0.8 1.0");
        assert_eq!(texts(Axis::between(0.71, 0.83, 4)), "0.70 0.75 0.80 0.85");
        assert_eq!(texts(Axis::between(-120.0, 350.0, 5)), "−200 −100 0 100 200 300 400");
    }

    #[test]
    fn epochs_get_whole_ticks() {
        for high in [1usize, 2, 3, 7, 20, 33, 100, 777, 10_000] {
            let axis = Axis::whole(1, high, 10);
            check(&axis, &[1.0, high as f64], 10);
            assert!(axis.ticks.iter().all(|(value, _)| value.fract() == 0.0));
        }
    }

    #[test]
    fn logarithmic_axes_have_room_for_zero() {
        for values in [
            vec![1e-5, 1.0],
            vec![0.0, 0.01, 0.1, 1.0, 10.0],
            vec![0.3, 0.3],
            vec![0.0, 5.0],
            vec![1e-12, 1e9, 3.0],
            vec![2.0, 30.0, 170.0],
        ] {
            let axis = Axis::logarithmic(values.iter().copied(), 6).unwrap();
            check(&axis, &values, 6);
        }
        assert_eq!(Axis::logarithmic([0.0, -1.0, f64::NAN], 5), None, "nothing is positive");
        let without = Axis::logarithmic([0.1, 10.0], 5).unwrap();
        assert_eq!(without.place(0.0), None);
        assert_eq!(without.place(-1.0), None);
    }

    #[test]
    fn no_number_no_axis() {
        assert_eq!(Axis::linear([], 5), None);
        assert_eq!(Axis::linear([f64::NAN, f64::INFINITY, f64::MAX], 5), None);
        assert_eq!(Axis::fitting(&[f64::NAN], 100.0, 5), None);
        assert!(Axis::fitting(&[1e-4, 1.0], 100.0, 5).unwrap().is_logarithmic());
        assert!(!Axis::fitting(&[1e-4, 1.0, -1.0], 100.0, 5).unwrap().is_logarithmic());
    }
}
