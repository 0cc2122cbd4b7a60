//! A number for each label, as the colour of its box.
//!
//! The scale runs from pale yellow over green to dark blue. Its luminance falls all the way, so that it reads
//! the same in grey and with any colour vision. The number also stands in the box.

use std::fmt::Write as _;

use crate::markup::escape_markup;

/// A number for each label of a picture: its accuracy, its F1, its average precision.
#[derive(Debug, Clone, Copy)]
pub struct LabelValues<'v> {
    /// What the numbers are, for the legend: `F1`.
    pub name: &'v str,
    /// In the order of the labels; labels without a number are NaN, or missing at the end.
    pub values: &'v [f64],
    /// The numbers at the two ends of the scale; numbers beyond them get the colour of the end.
    pub range: (f64, f64),
}

/// Colours at equal steps of the scale, as red, green and blue.
const STOPS: [[f64; 3]; 5] = [
    [252.0, 244.0, 200.0],
    [186.0, 222.0, 184.0],
    [92.0, 180.0, 180.0],
    [44.0, 118.0, 170.0],
    [34.0, 52.0, 112.0],
];
const STRIPES: usize = 30;
const STRIPE: f64 = 5.0;

/// The fill of a box and the colour of the text in it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Paint {
    pub(super) fill: String,
    pub(super) text: &'static str,
}

impl LabelValues<'_> {
    /// The number of a label, where it has one.
    pub(super) fn of(&self, index: usize) -> Option<f64> {
        self.values.get(index).copied().filter(|value| value.is_finite())
    }

    pub(super) fn paint(&self, value: f64) -> Paint {
        let (low, high) = self.range;
        let part = (value - low) / (high - low);
        paint(if part.is_nan() { 0.5 } else { part })
    }

    /// The scale as a legend, its upper left corner at the origin.
    pub(super) fn legend(&self) -> String {
        let mut out = String::new();
        let name = escape_markup(self.name);
        let letters = self.name.chars().count() + self.low().len();
        // Whole numbers and crisp edges: no seams between stripes.
        let from = (12.0 + 6.2 * letters as f64).round();
        let _ = write!(out, r#"<text class="legend" x="0" y="9">{name}  {}</text>"#, self.low());
        for stripe in 0..STRIPES {
            let fill = paint(stripe as f64 / (STRIPES - 1) as f64).fill;
            let x = from + stripe as f64 * STRIPE;
            let _ = write!(
                out,
                r#"<rect x="{x}" y="0" width="{STRIPE}" height="10" shape-rendering="crispEdges" style="fill:{fill}"/>"#
            );
        }
        let end = from + STRIPES as f64 * STRIPE + 6.0;
        let _ = write!(
            out,
            r#"<text class="legend" x="{end:.1}" y="9">{}</text>"#,
            number(self.range.1)
        );
        out
    }

    fn low(&self) -> String {
        number(self.range.0)
    }
}

/// A number in a box: two digits after the point, because colours cannot show more.
pub(super) fn number(value: f64) -> String {
    format!("{value:.2}")
}

fn paint(part: f64) -> Paint {
    let at = part.clamp(0.0, 1.0) * (STOPS.len() - 1) as f64;
    let below = (at as usize).min(STOPS.len() - 2);
    let rest = at - below as f64;
    let mix = |c: usize| STOPS[below][c] + rest * (STOPS[below + 1][c] - STOPS[below][c]);
    let colour = [mix(0), mix(1), mix(2)].map(f64::round);
    let fill = format!("#{:02x}{:02x}{:02x}", colour[0] as u8, colour[1] as u8, colour[2] as u8);
    // Where white and black text contrast alike: (1.05 / (L + 0.05)) = (L + 0.05) / 0.05.
    let text = if luminance(colour) > 0.179 { "#000" } else { "#fff" };
    Paint { fill, text }
}

/// Relative luminance of an sRGB colour, from 0 to 1, as WCAG 2 defines it.
fn luminance(colour: [f64; 3]) -> f64 {
    let linear = |c: f64| {
        let c = c / 255.0;
        if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * linear(colour[0]) + 0.7152 * linear(colour[1]) + 0.0722 * linear(colour[2])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn colour(fill: &str) -> [f64; 3] {
        [1, 3, 5].map(|at| f64::from(u8::from_str_radix(&fill[at..at + 2], 16).unwrap()))
    }

    #[test]
    fn the_scale_darkens_steadily_and_text_stays_readable() {
        let mut before = 1.0;
        for step in 0..=100 {
            let paint = paint(f64::from(step) / 100.0);
            let light = luminance(colour(&paint.fill));
            assert!(light < before, "step {step}: {light} after {before}");
            before = light;
            let contrast =
                if paint.text == "#fff" { 1.05 / (light + 0.05) } else { (light + 0.05) / 0.05 };
            assert!(contrast >= 4.5, "step {step}: {contrast}");
        }
    }

    #[test]
    fn numbers_beyond_the_range_keep_its_colours() {
        let values = LabelValues { name: "F1", values: &[f64::NAN, 2.0], range: (0.0, 1.0) };
        assert_eq!(values.of(0), None);
        assert_eq!(values.of(7), None);
        assert_eq!(values.paint(2.0), values.paint(1.0));
        assert_eq!(values.paint(0.0).fill, "#fcf4c8");
        let empty = LabelValues { range: (0.5, 0.5), ..values };
        assert_eq!(empty.paint(0.5), paint(0.5), "an empty range has one colour");
    }
}
