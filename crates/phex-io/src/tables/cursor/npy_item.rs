//! The types of the numbers of npy files.

use super::NumberType;

/// The type of the items; all are little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NpyItem {
    F2,
    F4,
    F8,
    I1,
    I2,
    I4,
    I8,
    U1,
    U2,
    U4,
    U8,
    Bool,
}

impl NpyItem {
    /// The type that a header names.
    pub(super) fn from_descr(descr: &str) -> Result<NpyItem, String> {
        let (order, kind) = descr.split_at_checked(1).unwrap_or(("", descr));
        let item = match kind {
            "f2" => NpyItem::F2,
            "f4" => NpyItem::F4,
            "f8" => NpyItem::F8,
            "i1" => NpyItem::I1,
            "i2" => NpyItem::I2,
            "i4" => NpyItem::I4,
            "i8" => NpyItem::I8,
            "u1" => NpyItem::U1,
            "u2" => NpyItem::U2,
            "u4" => NpyItem::U4,
            "u8" => NpyItem::U8,
            "b1" => NpyItem::Bool,
            _ => {
                return Err(format!(
                    "items of type `{}` are not supported; save array.astype('float32')",
                    descr.escape_debug()
                ));
            }
        };
        if item.size() > 1 && order != "<" {
            return Err(format!(
                "the items are big-endian (`{}`); save array.astype('<{kind}')",
                descr.escape_debug()
            ));
        }
        Ok(item)
    }

    /// How many bytes an item has.
    pub(super) fn size(self) -> usize {
        match self {
            NpyItem::I1 | NpyItem::U1 | NpyItem::Bool => 1,
            NpyItem::F2 | NpyItem::I2 | NpyItem::U2 => 2,
            NpyItem::F4 | NpyItem::I4 | NpyItem::U4 => 4,
            NpyItem::F8 | NpyItem::I8 | NpyItem::U8 => 8,
        }
    }

    /// The type of number that an item is.
    pub(super) fn number(self) -> NumberType {
        match self {
            NpyItem::F2 | NpyItem::F4 => NumberType::Single,
            NpyItem::F8 => NumberType::Double,
            _ => NumberType::Whole,
        }
    }

    /// The value of an item, given its bytes.
    #[inline]
    pub(super) fn value(self, bytes: &[u8]) -> f64 {
        match (self, bytes) {
            (NpyItem::F4, &[a, b, c, d]) => f64::from(f32::from_le_bytes([a, b, c, d])),
            (NpyItem::F8, &[a, b, c, d, e, f, g, h]) => {
                f64::from_le_bytes([a, b, c, d, e, f, g, h])
            }
            (NpyItem::F2, &[a, b]) => half_to_f64(u16::from_le_bytes([a, b])),
            (NpyItem::I1, &[a]) => f64::from(a as i8),
            (NpyItem::U1 | NpyItem::Bool, &[a]) => f64::from(a),
            (NpyItem::I2, &[a, b]) => f64::from(i16::from_le_bytes([a, b])),
            (NpyItem::U2, &[a, b]) => f64::from(u16::from_le_bytes([a, b])),
            (NpyItem::U4, &[a, b, c, d]) => f64::from(u32::from_le_bytes([a, b, c, d])),
            (NpyItem::U8, &[a, b, c, d, e, f, g, h]) => {
                u64::from_le_bytes([a, b, c, d, e, f, g, h]) as f64
            }
            (NpyItem::I4, &[a, b, c, d]) => f64::from(i32::from_le_bytes([a, b, c, d])),
            (NpyItem::I8, &[a, b, c, d, e, f, g, h]) => {
                i64::from_le_bytes([a, b, c, d, e, f, g, h]) as f64
            }
            _ => f64::NAN,
        }
    }
}

/// The value of 16 bits: sign, 5 bits of exponent, 10 of fraction.
fn half_to_f64(bits: u16) -> f64 {
    let fraction = f64::from(bits & 0x3ff);
    let magnitude = match bits >> 10 & 0x1f {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        exponent => (1024.0 + fraction) * 2f64.powi(i32::from(exponent) - 25),
    };
    if bits >> 15 == 1 { -magnitude } else { magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_known_values() {
        let cases = [
            (0x0000, 0.0),
            (0x0001, 5.960_464_477_539_063e-8),
            (0x03ff, 6.097_555_160_522_461e-5),
            (0x0400, 6.103_515_625e-5),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65504.0),
            (0xfc00, f64::NEG_INFINITY),
            (0x3555, 0.333_251_953_125),
        ];
        for (bits, value) in cases {
            assert_eq!(half_to_f64(bits), value, "{bits:#x}");
        }
        assert!(half_to_f64(0x7e00).is_nan());
        assert!(half_to_f64(0x8000).is_sign_negative());
    }
}
