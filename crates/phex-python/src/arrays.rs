//! Between numpy arrays and blocks of rows.
//!
//! Scores in row-major order are read in place, and answers become arrays without a copy. Evidence is 1
//! (on), 0 (off) or -1 (unknown) in Python.

use std::borrow::Cow;

use numpy::{
    Element, IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray2,
    PyUntypedArrayMethods,
};
use phex::infer::{Evidence, Number};
use pyo3::prelude::*;

use crate::errors::Failure;

/// Rows of scores, of either type.
pub(crate) enum Scores<'py> {
    Single(Table<'py, f32>),
    Double(Table<'py, f64>),
}

/// A table of numbers, borrowed from numpy.
pub(crate) struct Table<'py, T: Element> {
    array: PyReadonlyArray2<'py, T>,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
}

impl<'py> Scores<'py> {
    /// Reads an array of two dimensions of float32 or float64, with this many columns.
    pub(crate) fn read(value: &Bound<'py, PyAny>, labels: usize) -> Result<Scores<'py>, Failure> {
        if let Ok(array) = value.cast::<PyArray2<f32>>() {
            return Ok(Scores::Single(Table::of(array, labels)?));
        }
        match value.cast::<PyArray2<f64>>() {
            Ok(array) => Ok(Scores::Double(Table::of(array, labels)?)),
            Err(_) => Err(Failure::input(
                "scores must be an array of two dimensions (rows × labels) of float32 or float64",
            )),
        }
    }
}

impl<'py, T: Element + Copy> Table<'py, T> {
    /// Borrows an array with this many columns.
    pub(crate) fn of(
        array: &Bound<'py, PyArray2<T>>,
        columns: usize,
    ) -> Result<Table<'py, T>, Failure> {
        let [rows, found] = array.dims().into_pattern();
        if found != columns {
            return Err(phex::Error::Columns { expected: columns, found }.into());
        }
        let array = array.try_readonly().map_err(|_| {
            Failure::input("the array is being written to by another thread; give it a copy")
        })?;
        Ok(Table { array, rows, columns })
    }

    /// The numbers in row-major order, copied only if the array has another order.
    pub(crate) fn values(&self) -> Cow<'_, [T]> {
        // Column-major arrays are contiguous too, but in another order.
        match self.array.as_slice() {
            Ok(values) if self.array.is_c_contiguous() => Cow::Borrowed(values),
            _ => Cow::Owned(self.array.as_array().iter().copied().collect()),
        }
    }
}

/// The two sizes of a table.
trait Pattern {
    fn into_pattern(self) -> [usize; 2];
}

impl Pattern for numpy::Ix2 {
    fn into_pattern(self) -> [usize; 2] {
        [self[0], self[1]]
    }
}

/// The evidence of each label of each row.
pub(crate) fn evidence_of(
    value: Option<&Bound<'_, PyAny>>,
    rows: usize,
    names: &[String],
) -> Result<Option<Vec<Evidence>>, Failure> {
    let Some(value) = value.filter(|value| !value.is_none()) else { return Ok(None) };
    let array = value.cast::<PyArray2<i8>>().map_err(|_| {
        Failure::input("the evidence must be an array of two dimensions (rows × labels) of int8")
    })?;
    let found = array.shape()[1];
    if found != names.len() {
        let expected = names.len();
        return Err(Failure::Input(format!(
            "the evidence has {found} columns, but the model has {expected} labels"
        )));
    }
    let table = Table::of(array, names.len())?;
    if table.rows != rows {
        return Err(Failure::Input(format!(
            "there are {rows} rows of scores and {} of evidence",
            table.rows
        )));
    }
    let entry = |(at, &code): (usize, &i8)| evidence(at, f64::from(code), names);
    table.values().iter().enumerate().map(entry).collect::<Result<Vec<_>, _>>().map(Some)
}

/// Reads one entry; `at` is its position in row-major order.
fn evidence(at: usize, number: f64, names: &[String]) -> Result<Evidence, Failure> {
    Evidence::from_number(number).ok_or_else(|| {
        let (row, label) = (at / names.len(), &names[at % names.len()]);
        let expected = Evidence::EXPECTED;
        Failure::Input(format!("row {row}, `{label}`: {number} is not valid evidence; {expected}"))
    })
}

/// Evidence from numbers: 1 on, 0 off, -1 or NaN unknown. `names` are those of the columns.
#[pyfunction]
pub(crate) fn read_evidence<'py>(
    py: Python<'py>,
    values: &Bound<'py, PyArray2<f64>>,
    names: Vec<String>,
) -> Result<Bound<'py, PyAny>, Failure> {
    let table = Table::of(values, names.len())?;
    let code = |(at, &number): (usize, &f64)| Ok(evidence(at, number, &names)?.code());
    let codes =
        table.values().iter().enumerate().map(code).collect::<Result<Vec<i8>, Failure>>()?;
    matrix(py, codes, table.rows, table.columns)
}

/// An array of rows × columns, from numbers in row-major order.
pub(crate) fn matrix<'py, T: Element>(
    py: Python<'py>,
    values: Vec<T>,
    rows: usize,
    columns: usize,
) -> Result<Bound<'py, PyAny>, Failure> {
    Ok(values.into_pyarray(py).reshape([rows, columns])?.into_any())
}

/// An array of numbers.
pub(crate) fn vector<T: Element>(py: Python<'_>, values: Vec<T>) -> Bound<'_, PyArray1<T>> {
    values.into_pyarray(py)
}

/// Number types that engines and numpy share.
pub(crate) trait Cell: Number + Element {}

impl Cell for f32 {}
impl Cell for f64 {}
