//! From Arrow columns to values and texts.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayAccessor};
use arrow_schema::DataType;

use super::{BlockValue, NumberType};

/// The type of the numbers of a column; booleans are the numbers 0 and 1.
pub(super) fn number_type(kind: &DataType) -> Option<NumberType> {
    match kind {
        DataType::Float64 => Some(NumberType::Double),
        kind if kind.is_floating() => Some(NumberType::Single),
        DataType::Boolean => Some(NumberType::Whole),
        kind if kind.is_integer() => Some(NumberType::Whole),
        _ => None,
    }
}

/// Whether a column holds numbers or booleans.
pub(super) fn is_number(kind: &DataType) -> bool {
    number_type(kind).is_some()
}

/// Whether a column can be read as text.
pub(super) fn is_text(kind: &DataType) -> bool {
    is_number(kind) || *kind == DataType::Utf8
}

/// Fills cells from a column of numbers or booleans, starting at row `from`. A null leaves its cell
/// as it is. The error holds the index of the cell and its value.
pub(super) fn copy_numbers<'c, T: BlockValue + 'c>(
    array: &dyn Array,
    from: usize,
    cells: impl Iterator<Item = &'c mut T>,
) -> Result<(), (usize, f64)> {
    let a = array;
    match array.data_type() {
        DataType::Float32 => copy(a.as_primitive_opt::<Float32Type>(), from, cells, f64::from),
        DataType::Float64 => copy(a.as_primitive_opt::<Float64Type>(), from, cells, f64::from),
        DataType::Float16 => {
            copy(a.as_primitive_opt::<Float16Type>(), from, cells, |value| value.to_f64())
        }
        DataType::Boolean => {
            copy(a.as_boolean_opt(), from, cells, |value| f64::from(u8::from(value)))
        }
        DataType::Int8 => copy(a.as_primitive_opt::<Int8Type>(), from, cells, f64::from),
        DataType::Int16 => copy(a.as_primitive_opt::<Int16Type>(), from, cells, f64::from),
        DataType::Int32 => copy(a.as_primitive_opt::<Int32Type>(), from, cells, f64::from),
        DataType::Int64 => copy(a.as_primitive_opt::<Int64Type>(), from, cells, |v| v as f64),
        DataType::UInt8 => copy(a.as_primitive_opt::<UInt8Type>(), from, cells, f64::from),
        DataType::UInt16 => copy(a.as_primitive_opt::<UInt16Type>(), from, cells, f64::from),
        DataType::UInt32 => copy(a.as_primitive_opt::<UInt32Type>(), from, cells, f64::from),
        DataType::UInt64 => copy(a.as_primitive_opt::<UInt64Type>(), from, cells, |v| v as f64),
        _ => Ok(()),
    }
}

fn copy<'c, A: ArrayAccessor, T: BlockValue + 'c>(
    column: Option<A>,
    from: usize,
    cells: impl Iterator<Item = &'c mut T>,
    number: impl Fn(A::Item) -> f64,
) -> Result<(), (usize, f64)> {
    let Some(column) = column else { return Ok(()) };
    for (index, cell) in cells.enumerate() {
        if column.is_valid(from + index) {
            let value = number(column.value(from + index));
            *cell = T::from_number(value).ok_or((index, value))?;
        }
    }
    Ok(())
}

/// Adds the texts of `count` rows of a column, starting at row `from`. Nulls are empty.
pub(super) fn copy_texts(array: &dyn Array, from: usize, count: usize, texts: &mut Vec<String>) {
    let (a, rows) = (array, from..from + count);
    match array.data_type() {
        DataType::Utf8 => add(a.as_string_opt::<i32>(), rows, texts),
        DataType::Boolean => add(a.as_boolean_opt(), rows, texts),
        DataType::Float16 => add(a.as_primitive_opt::<Float16Type>(), rows, texts),
        DataType::Float32 => add(a.as_primitive_opt::<Float32Type>(), rows, texts),
        DataType::Float64 => add(a.as_primitive_opt::<Float64Type>(), rows, texts),
        DataType::Int8 => add(a.as_primitive_opt::<Int8Type>(), rows, texts),
        DataType::Int16 => add(a.as_primitive_opt::<Int16Type>(), rows, texts),
        DataType::Int32 => add(a.as_primitive_opt::<Int32Type>(), rows, texts),
        DataType::Int64 => add(a.as_primitive_opt::<Int64Type>(), rows, texts),
        DataType::UInt8 => add(a.as_primitive_opt::<UInt8Type>(), rows, texts),
        DataType::UInt16 => add(a.as_primitive_opt::<UInt16Type>(), rows, texts),
        DataType::UInt32 => add(a.as_primitive_opt::<UInt32Type>(), rows, texts),
        DataType::UInt64 => add(a.as_primitive_opt::<UInt64Type>(), rows, texts),
        _ => texts.extend(rows.map(|_| String::new())),
    }
}

fn add<A: ArrayAccessor<Item: ToString>>(
    column: Option<A>,
    rows: std::ops::Range<usize>,
    texts: &mut Vec<String>,
) {
    texts.extend(rows.map(|row| match &column {
        Some(column) if column.is_valid(row) => column.value(row).to_string(),
        _ => String::new(),
    }));
}
