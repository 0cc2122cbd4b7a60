//! The limits beyond which a file is rejected.

/// Limits of everything that is read: files from untrusted sources must not fill the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a file that is read as a whole: graphs, models and samples. Default: 1 GiB.
    pub file_bytes: u64,
    /// Bytes of a line of a graph file, except in JSON. Default: 1 MiB.
    pub line_bytes: usize,
    /// Labels of a graph. Default: 10 million.
    pub labels: usize,
    /// Bytes of a record of CSV, TSV or ARFF data. Default: 16 MiB.
    pub record_bytes: usize,
    /// Bytes that a row group of a Parquet file unpacks to. Only one page of each column is held in
    /// memory, not the group. Default: 8 GiB.
    pub row_group_bytes: u64,
    /// Bytes that a packed table unpacks to. Default: 64 GiB.
    pub unpacked_bytes: u64,
    /// Bytes that a packed table unpacks to for each of its own bytes, beyond [`Limits::file_bytes`]. Default: 1000.
    pub unpacked_ratio: u64,
    /// Categories of a column of text that becomes features. Default: 1000.
    pub categories: usize,
    /// Values of all features of a data set, and listed labels of all its targets. Default: 2^30,
    /// which is 4 GiB of features.
    pub values: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            file_bytes: 1 << 30,
            line_bytes: 1 << 20,
            labels: 10_000_000,
            record_bytes: 16 << 20,
            row_group_bytes: 8 << 30,
            unpacked_bytes: 64 << 30,
            unpacked_ratio: 1000,
            categories: 1000,
            values: 1 << 30,
        }
    }
}

impl Limits {
    /// Bytes of text that a data set may hold in memory: as many as the features.
    pub(crate) fn text_bytes(&self) -> usize {
        self.values.saturating_mul(size_of::<f32>())
    }
}
