//! Rows of ARFF files.

use super::table::{Cell, Declared};
use crate::Error;
use crate::arff::{ArffRows, Kind, Value};
use crate::lines::Lines;

pub(super) struct ArffTable {
    names: Vec<String>,
    rows: ArffRows,
}

impl ArffTable {
    pub(super) fn open(lines: Lines) -> Result<ArffTable, Error> {
        let rows = ArffRows::open(lines)?;
        let names = rows.header.attributes.iter().map(|attribute| attribute.name.clone()).collect();
        Ok(ArffTable { names, rows })
    }

    pub(super) fn path(&self) -> &str {
        self.rows.path()
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    pub(super) fn declared(&self, column: usize) -> Declared<'_> {
        match &self.rows.header.attributes[column].kind {
            Kind::Numeric => Declared::Number,
            Kind::Nominal(values) => Declared::Nominal(values),
            Kind::Text => Declared::Other("string"),
            Kind::Date => Declared::Other("date"),
            Kind::Hierarchical(hierarchy) => Declared::Hierarchical(hierarchy),
        }
    }

    pub(super) fn next(&mut self) -> Result<bool, Error> {
        self.rows.next()
    }

    pub(super) fn cell(&self, column: usize) -> Result<Cell<'_>, Error> {
        Ok(match self.rows.value(column) {
            Value::Missing => Cell::Missing,
            Value::Zero => Cell::Number(0.0),
            Value::Text(text) => Cell::Text(text),
        })
    }

    pub(super) fn error(&self, message: impl Into<String>) -> Error {
        self.rows.error(message)
    }
}
