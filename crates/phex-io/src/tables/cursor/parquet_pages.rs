//! Pages of Parquet, checked before they are decoded.
//!
//! The decoders of the Parquet library trust levels and indices, and a damaged page makes them panic.
//! So every page is first walked run by run, which is cheap compared with decoding it. Only the
//! encodings that can be checked here are supported: plain, dictionary, byte stream split, and runs
//! of booleans.

use std::fs::File;
use std::sync::Arc;

use parquet::arrow::arrow_reader::RowGroups;
use parquet::basic::{Encoding, Type};
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::ChunkReader as _;
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::ColumnDescriptor;

use super::parquet_claims::check_pages;
use super::parquet_file::BATCH_ROWS;

/// Bytes that a column may take in a batch of rows.
const BATCH_BYTES: u64 = 1 << 30;

/// All row groups of a file, with checked pages.
pub(super) struct CheckedGroups {
    pub(super) file: Arc<File>,
    pub(super) metadata: Arc<ParquetMetaData>,
    pub(super) rows: usize,
}

impl RowGroups for CheckedGroups {
    fn num_rows(&self) -> usize {
        self.rows
    }

    fn column_chunks(&self, column: usize) -> Result<Box<dyn PageIterator>> {
        let (file, metadata) = (Arc::clone(&self.file), Arc::clone(&self.metadata));
        Ok(Box::new(CheckedChunks { file, metadata, column, group: 0 }))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(self.metadata.row_groups().iter())
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }
}

/// The chunks of a column, one for each row group.
struct CheckedChunks {
    file: Arc<File>,
    metadata: Arc<ParquetMetaData>,
    column: usize,
    group: usize,
}

impl Iterator for CheckedChunks {
    type Item = Result<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        let group = self.metadata.row_groups().get(self.group)?;
        self.group += 1;
        let Some(chunk) = group.columns().get(self.column) else {
            return Some(Err(broken("a row group that lacks a column")));
        };
        let rows = group.num_rows() as usize;
        if let Err(error) = check_chunk(&self.file, chunk) {
            return Some(Err(error));
        }
        let pages = SerializedPageReader::new(Arc::clone(&self.file), chunk, rows, None);
        let rules = PageRules::new(chunk.column_descr());
        Some(pages.map(|pages| Box::new(CheckedPages { pages, rules }) as Box<dyn PageReader>))
    }
}

impl PageIterator for CheckedChunks {}

/// Checks the claims of all pages of a chunk.
fn check_chunk(file: &File, chunk: &ColumnChunkMetaData) -> Result<()> {
    let (start, length) = chunk.byte_range();
    let unpacked = u64::try_from(chunk.uncompressed_size()).unwrap_or(0);
    let read = |at: u64, most: usize| file.get_bytes(start + at, most.min((length - at) as usize));
    check_pages(length, unpacked, read)?.map_err(broken)
}

/// The pages of a chunk.
struct CheckedPages {
    pages: SerializedPageReader<File>,
    rules: PageRules,
}

impl Iterator for CheckedPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Result<Page>> {
        self.get_next_page().transpose()
    }
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        if let Some(page) = &page {
            self.rules.check(page)?;
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }
}

/// The rules that the pages of a column must follow.
struct PageRules {
    kind: Type,
    /// The size of an item in bytes, if all have the same.
    width: Option<u64>,
    max_definition: u32,
    max_repetition: u32,
    /// The number of entries of the dictionary, once it was read.
    dictionary: Option<u32>,
    /// The lengths of its texts.
    lengths: Vec<u32>,
    budget: BatchBudget,
}

/// The rows and bytes since the last full batch. A dictionary makes few bytes many, and all values of a batch are in
/// memory at once.
#[derive(Default)]
struct BatchBudget {
    rows: u64,
    bytes: u64,
}

impl BatchBudget {
    /// Adds rows of so many bytes each.
    fn add(&mut self, bytes: u64, mut rows: u64) -> Result<()> {
        while rows > 0 {
            let taken = rows.min(BATCH_ROWS as u64 - self.rows);
            (self.rows, rows) = (self.rows + taken, rows - taken);
            self.bytes = self.bytes.saturating_add(bytes.saturating_mul(taken));
            if self.bytes > BATCH_BYTES {
                return Err(broken("values that take more than 1 GiB in a few thousand rows"));
            }
            if self.rows == BATCH_ROWS as u64 {
                *self = BatchBudget::default();
            }
        }
        Ok(())
    }
}

impl PageRules {
    fn new(column: &ColumnDescriptor) -> PageRules {
        let kind = column.physical_type();
        let width = match kind {
            Type::INT32 | Type::FLOAT => Some(4),
            Type::INT64 | Type::DOUBLE => Some(8),
            Type::INT96 => Some(12),
            Type::FIXED_LEN_BYTE_ARRAY => u64::try_from(column.type_length()).ok(),
            Type::BOOLEAN | Type::BYTE_ARRAY => None,
        };
        let level = |level: i16| u32::try_from(level).unwrap_or(0);
        let (max_definition, max_repetition) =
            (level(column.max_def_level()), level(column.max_rep_level()));
        PageRules {
            kind,
            width,
            max_definition,
            max_repetition,
            dictionary: None,
            lengths: Vec::new(),
            budget: BatchBudget::default(),
        }
    }

    fn check(&mut self, page: &Page) -> Result<()> {
        match page {
            Page::DictionaryPage { buf, num_values, encoding, .. } => {
                #[allow(deprecated)]
                let known = matches!(encoding, Encoding::PLAIN | Encoding::PLAIN_DICTIONARY);
                if !known || self.dictionary.is_some() || self.kind == Type::BOOLEAN {
                    return Err(broken("a dictionary where none can be"));
                }
                // A text has at least the four bytes of its length.
                enough(buf, u64::from(*num_values), self.width.unwrap_or(4))?;
                self.dictionary = Some(*num_values);
                if self.kind == Type::BYTE_ARRAY {
                    self.lengths = lengths(buf, *num_values)?;
                }
                Ok(())
            }
            Page::DataPage {
                buf,
                num_values,
                encoding,
                def_level_encoding,
                rep_level_encoding,
                ..
            } => {
                let (mut data, mut present) = (&buf[..], *num_values);
                let mut rows = *num_values;
                let levels = [
                    (self.max_repetition, rep_level_encoding),
                    (self.max_definition, def_level_encoding),
                ];
                for (max, encoding) in levels.into_iter().filter(|&(max, _)| max > 0) {
                    if *encoding != Encoding::RLE {
                        return Err(unknown(*encoding));
                    }
                    let (part, rest) = prefixed(data)?;
                    let levels = levels_at(part, max, *num_values)?;
                    if data.len() == buf.len() && self.max_repetition > 0 {
                        rows = levels.lowest;
                    }
                    present = levels.highest;
                    data = rest;
                }
                if self.max_definition == 0 {
                    present = *num_values;
                }
                self.values(data, *encoding, present, rows)
            }
            Page::DataPageV2 {
                buf,
                num_values,
                encoding,
                def_levels_byte_len,
                rep_levels_byte_len,
                ..
            } => {
                let cut = || broken("levels beyond the page");
                let (repetition, rest) =
                    buf.split_at_checked(*rep_levels_byte_len as usize).ok_or_else(cut)?;
                let (definition, data) =
                    rest.split_at_checked(*def_levels_byte_len as usize).ok_or_else(cut)?;
                let (mut present, mut rows) = (*num_values, *num_values);
                if self.max_repetition > 0 {
                    rows = levels_at(repetition, self.max_repetition, *num_values)?.lowest;
                }
                if self.max_definition > 0 {
                    present = levels_at(definition, self.max_definition, *num_values)?.highest;
                }
                self.values(data, *encoding, present, rows)
            }
        }
    }

    /// Checks the data of `count` values in so many rows.
    fn values(&mut self, data: &[u8], encoding: Encoding, count: u32, rows: u32) -> Result<()> {
        let lengths = std::mem::take(&mut self.lengths);
        let (mut bytes, fixed) = (0u64, self.width.unwrap_or(1));
        let mut budget = std::mem::take(&mut self.budget);
        let checked = self.data(data, encoding, count, |entry, times| {
            let length = lengths.get(entry as usize).map_or(fixed, |length| u64::from(*length));
            if self.max_repetition == 0 {
                return budget.add(length, u64::from(times));
            }
            bytes = bytes.saturating_add(length.saturating_mul(u64::from(times)));
            Ok(())
        });
        checked?;
        #[allow(deprecated)]
        let plain = !matches!(encoding, Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY);
        if plain || self.max_repetition > 0 {
            // Lists of any length are in one row.
            let bytes = bytes.max(data.len() as u64).saturating_add(u64::from(count) * fixed);
            let rows = u64::from(rows.max(1));
            budget.add(bytes.div_ceil(rows), rows)?;
        }
        (self.lengths, self.budget) = (lengths, budget);
        Ok(())
    }

    fn data(
        &self,
        data: &[u8],
        encoding: Encoding,
        count: u32,
        each: impl FnMut(u32, u32) -> Result<()>,
    ) -> Result<()> {
        #[allow(deprecated)]
        match (encoding, self.kind, self.width) {
            (Encoding::PLAIN, Type::BOOLEAN, _) => enough(data, u64::from(count).div_ceil(8), 1),
            (Encoding::PLAIN, _, width) => enough(data, u64::from(count), width.unwrap_or(4)),
            (Encoding::RLE, Type::BOOLEAN, _) => {
                runs(prefixed(data)?.0, 1, 2, count, |_, _| Ok(()))
            }
            (Encoding::BYTE_STREAM_SPLIT, _, Some(width)) => {
                if data.len() as u64 == u64::from(count) * width {
                    Ok(())
                } else {
                    Err(broken("a page of another length than its values"))
                }
            }
            (Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY, kind, _)
                if kind != Type::BOOLEAN =>
            {
                let entries =
                    self.dictionary.ok_or_else(|| broken("no dictionary where one is needed"))?;
                let (&bits, data) = data.split_first().ok_or_else(|| broken("an empty page"))?;
                if bits > 32 {
                    return Err(broken("indices of more than 32 bits"));
                }
                runs(data, u32::from(bits), entries, count, each)
            }
            (encoding, _, _) => Err(unknown(encoding)),
        }
    }
}

/// How many levels equal the lowest and the highest one.
#[derive(Default)]
struct LevelCounts {
    lowest: u32,
    highest: u32,
}

/// Counts `count` levels up to `max`.
fn levels_at(data: &[u8], max: u32, count: u32) -> Result<LevelCounts> {
    let mut levels = LevelCounts::default();
    runs(data, u32::BITS - max.leading_zeros(), max + 1, count, |level, times| {
        levels.lowest += if level == 0 { times } else { 0 };
        levels.highest += if level == max { times } else { 0 };
        Ok(())
    })?;
    Ok(levels)
}

/// The lengths of texts, each preceded by its length.
fn lengths(mut data: &[u8], count: u32) -> Result<Vec<u32>> {
    let mut lengths = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let (text, rest) = prefixed(data)?;
        lengths.push(text.len() as u32);
        data = rest;
    }
    Ok(lengths)
}

/// Walks runs, repeated or packed, of `count` numbers of `bits` bits that must be less than `limit`. Each gets a number
/// and how often it comes.
fn runs(
    mut data: &[u8],
    bits: u32,
    limit: u32,
    count: u32,
    mut each: impl FnMut(u32, u32) -> Result<()>,
) -> Result<()> {
    let ends = || broken("runs beyond their page");
    let wrong = || broken("a level or an index that is too great");
    let mut left = count;
    while left > 0 {
        let header;
        (header, data) = variable(data)?;
        let length = header >> 1;
        if length == 0 {
            return Err(broken("a run of no values"));
        }
        if header & 1 == 0 {
            let (value, rest) =
                data.split_at_checked(bits.div_ceil(8) as usize).ok_or_else(ends)?;
            let value = value.iter().rev().fold(0, |all, &byte| all << 8 | u64::from(byte));
            if value >= u64::from(limit) {
                return Err(wrong());
            }
            let taken = length.min(left);
            each(value as u32, taken)?;
            left -= taken;
            data = rest;
        } else {
            // Packed runs come in groups of eight; a page has fewer than 2^32 values.
            let bytes = u64::from(length) * u64::from(bits);
            if bytes > data.len() as u64 || length > u32::MAX >> 3 {
                return Err(ends());
            }
            let (packed, rest) = data.split_at(bytes as usize);
            let taken = (length * 8).min(left);
            for index in 0..u64::from(taken) {
                let value = packed_at(packed, index * u64::from(bits), bits);
                if value >= u64::from(limit) {
                    return Err(wrong());
                }
                each(value as u32, 1)?;
            }
            left -= taken;
            data = rest;
        }
    }
    Ok(())
}

/// The number of `bits` bits that starts at a bit, lowest bit first.
fn packed_at(packed: &[u8], start: u64, bits: u32) -> u64 {
    let (byte, shift) = ((start / 8) as usize, start % 8);
    // It spans at most five bytes: up to 7 bits before it and 32 of its own.
    let bytes = packed[byte.min(packed.len())..].iter().take(5);
    let window = bytes.rev().fold(0, |all, &byte| all << 8 | u64::from(byte));
    window >> shift & ((1u64 << bits) - 1)
}

/// A number stored in seven bits per byte.
fn variable(data: &[u8]) -> Result<(u32, &[u8])> {
    let mut number = 0u64;
    for (index, &byte) in data.iter().enumerate().take(5) {
        number |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            let number = u32::try_from(number).map_err(|_| broken("a run that is too long"))?;
            return Ok((number, &data[index + 1..]));
        }
    }
    Err(broken("runs beyond their page"))
}

/// A part that is preceded by its length, and what follows it.
fn prefixed(data: &[u8]) -> Result<(&[u8], &[u8])> {
    let parts = data
        .split_first_chunk::<4>()
        .and_then(|(length, rest)| rest.split_at_checked(u32::from_le_bytes(*length) as usize));
    parts.ok_or_else(|| broken("levels beyond the page"))
}

fn enough(data: &[u8], count: u64, width: u64) -> Result<()> {
    if count.saturating_mul(width) <= data.len() as u64 {
        Ok(())
    } else {
        Err(broken("a page shorter than its values"))
    }
}

fn broken(what: &str) -> ParquetError {
    ParquetError::General(format!("it has {what}"))
}

fn unknown(encoding: Encoding) -> ParquetError {
    ParquetError::General(format!(
        "the encoding {encoding} is not supported; write the column plain or with a dictionary"
    ))
}
