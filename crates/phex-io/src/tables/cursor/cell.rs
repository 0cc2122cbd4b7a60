//! What cells and columns of a table hold.

use phex::infer::Evidence;

use super::arff::Hierarchy;

/// The content of a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::tables) enum RecordCell<'a> {
    Missing,
    Number(f64),
    Text(&'a str),
    #[cfg_attr(not(feature = "parquet"), allow(dead_code))]
    List(&'a [String]),
}

/// The type of a column, as far as its file declares it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tables) enum ColumnType<'a> {
    /// The file declares nothing: only the cells show the type.
    Untyped,
    Number(NumberType),
    /// Text whose values are not declared.
    #[cfg_attr(not(feature = "parquet"), allow(dead_code))]
    Text,
    /// These categories and no others.
    Nominal(&'a [String]),
    /// The classes of a hierarchy.
    Hierarchical(&'a Hierarchy),
    /// Lists, with the type of their items if these are numbers.
    #[cfg_attr(not(feature = "parquet"), allow(dead_code))]
    Lists(Option<NumberType>),
    /// Any other type.
    Other,
}

/// A type of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tables) enum NumberType {
    /// Floating point of 16 or 32 bits.
    Single,
    /// Floating point of 64 bits.
    Double,
    /// Whole numbers and booleans.
    Whole,
}

/// How a reader needs the cells of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tables) enum ColumnNeed {
    Nothing,
    /// As numbers, where the column holds numbers.
    Values,
    /// As text, or as lists of text.
    Texts,
}

/// What becomes of a column when blocks are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tables) enum BlockColumn {
    /// The values of the label with this index.
    Label(usize),
    /// The values of all labels, as lists.
    AllLabels,
    /// Text that is passed through, with the index of the kept column.
    Kept(usize),
    /// A column that is left out.
    Ignored,
}

/// The columns of a table when blocks are read.
#[derive(Debug)]
pub(in crate::tables) struct BlockColumns {
    /// The labels, in the order of the values of a row.
    pub(in crate::tables) labels: Vec<String>,
    /// One entry per column of the table.
    pub(in crate::tables) columns: Vec<BlockColumn>,
}

/// A value of a block: a score, or evidence.
pub(in crate::tables) trait BlockValue: Copy {
    /// The value of a cell that is missing: not a number, or unknown.
    const MISSING: Self;
    /// What a cell may hold, for messages.
    const EXPECTED: &'static str;

    /// The value of a number; `None` if it is not allowed.
    fn from_number(number: f64) -> Option<Self>;

    /// The value of text; `None` if it is not allowed.
    fn from_text(text: &str) -> Option<Self>;
}

macro_rules! score {
    ($type:ident) => {
        impl BlockValue for $type {
            const MISSING: $type = $type::NAN;
            const EXPECTED: &'static str = "a score is a number, or `nan` if it is missing";

            #[inline]
            fn from_number(number: f64) -> Option<$type> {
                Some(number as $type)
            }

            #[inline]
            fn from_text(text: &str) -> Option<$type> {
                text.trim().parse().ok()
            }
        }
    };
}

score!(f32);
score!(f64);

/// A finished probability: a number from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(transparent)]
pub(in crate::tables) struct Probability<T>(pub(in crate::tables) T);

macro_rules! probability {
    ($type:ident) => {
        impl BlockValue for Probability<$type> {
            const MISSING: Probability<$type> = Probability($type::NAN);
            const EXPECTED: &'static str = "a probability is a number from 0 to 1";

            #[inline]
            fn from_number(number: f64) -> Option<Probability<$type>> {
                (0.0..=1.0).contains(&number).then_some(Probability(number as $type))
            }

            #[inline]
            fn from_text(text: &str) -> Option<Probability<$type>> {
                text.trim().parse().ok().and_then(Self::from_number)
            }
        }
    };
}

probability!(f32);
probability!(f64);

impl BlockValue for Evidence {
    const MISSING: Evidence = Evidence::Unknown;
    const EXPECTED: &'static str = "a cell is 1 (on), 0 (off), or empty, -1 or nan (unknown)";

    #[inline]
    fn from_number(number: f64) -> Option<Evidence> {
        Evidence::from_number(number)
    }

    fn from_text(text: &str) -> Option<Evidence> {
        Evidence::from_text(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_is_read_from_words_and_numbers() {
        for text in ["1", " on", "TRUE", "1.0", "True"] {
            assert_eq!(Evidence::from_text(text), Some(Evidence::On), "{text}");
        }
        for text in ["0", "off ", "false", "0.0", "-0"] {
            assert_eq!(Evidence::from_text(text), Some(Evidence::Off), "{text}");
        }
        for text in ["", " ", "?", "nan", "NaN", "-1", "-1.0"] {
            assert_eq!(Evidence::from_text(text), Some(Evidence::Unknown), "{text}");
        }
        for text in ["2", "0.5", "yes", "inf", "1 1"] {
            assert_eq!(Evidence::from_text(text), None, "{text}");
        }
    }

    #[test]
    fn probabilities_are_from_0_to_1() {
        for text in ["0", "1", " 0.25 ", "1e-300", "-0"] {
            assert!(Probability::<f64>::from_text(text).is_some(), "{text}");
            assert!(Probability::<f32>::from_text(text).is_some(), "{text}");
        }
        for text in ["", "nan", "1.0000001", "-1e-9", "inf", "x"] {
            assert_eq!(Probability::<f64>::from_text(text), None, "{text}");
        }
    }

    #[test]
    fn scores_are_read_from_text() {
        assert_eq!(f64::from_text(" -1.5e3 "), Some(-1500.0));
        assert_eq!(f64::from_text("-Inf"), Some(f64::NEG_INFINITY));
        assert!(f64::from_text("nan").is_some_and(f64::is_nan));
        for text in ["", "  ", "NA", "1,5", "0x10"] {
            assert_eq!(f64::from_text(text), None, "{text}");
        }
    }
}
