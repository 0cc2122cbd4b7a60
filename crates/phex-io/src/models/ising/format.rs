//! The formats of Ising models: their names, and how to recognise them.

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::str::FromStr;

/// A file format of Ising models. `docs/reference/formats.md` describes each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IsingFormat {
    /// The coordinate lists of dimod.
    Coo,
    /// The JSON of dimod's binary quadratic models.
    Bqm,
    /// The QUBO files of qbsolv.
    Qubo,
    /// The QUBO files of the Biq Mac library; they can only be read.
    Sparse,
    /// The maximum-cut graphs of the Biq Mac library; they can only be read.
    MaxCut,
}

/// How many bytes of a `.json` file are examined: a model is recognised by its first keys.
const SNIFFED: u64 = 4096;

impl IsingFormat {
    /// Every format.
    pub const ALL: [IsingFormat; 5] = [
        IsingFormat::Coo,
        IsingFormat::Bqm,
        IsingFormat::Qubo,
        IsingFormat::Sparse,
        IsingFormat::MaxCut,
    ];

    /// The name used on the command line.
    pub fn name(self) -> &'static str {
        match self {
            IsingFormat::Coo => "coo",
            IsingFormat::Bqm => "bqm",
            IsingFormat::Qubo => "qubo",
            IsingFormat::Sparse => "sparse",
            IsingFormat::MaxCut => "maxcut",
        }
    }

    /// Whether models can be written to it.
    pub fn can_write(self) -> bool {
        !matches!(self, IsingFormat::Sparse | IsingFormat::MaxCut)
    }

    /// The names of the formats that can be read, separated by commas.
    pub fn readable_names() -> String {
        IsingFormat::ALL.map(IsingFormat::name).join(", ")
    }

    /// The names of the formats that can be written, separated by commas.
    pub fn writable_names() -> String {
        let writable = IsingFormat::ALL.into_iter().filter(|format| format.can_write());
        writable.map(IsingFormat::name).collect::<Vec<_>>().join(", ")
    }

    /// The format that the name of a file implies. `.json` alone implies none: see
    /// [`IsingFormat::of_file`].
    ///
    /// ```
    /// use phex_io::IsingFormat;
    /// assert_eq!(IsingFormat::from_path("m.bqm.json".as_ref()), Some(IsingFormat::Bqm));
    /// assert_eq!(IsingFormat::from_path("g.json".as_ref()), None);
    /// ```
    pub fn from_path(path: &Path) -> Option<IsingFormat> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        if name.ends_with(".bqm.json") {
            return Some(IsingFormat::Bqm);
        }
        match name.rsplit_once('.')?.1 {
            "coo" => Some(IsingFormat::Coo),
            "bqm" => Some(IsingFormat::Bqm),
            "qubo" => Some(IsingFormat::Qubo),
            "sparse" => Some(IsingFormat::Sparse),
            "mc" => Some(IsingFormat::MaxCut),
            _ => None,
        }
    }

    /// The format of a file: by its name, or for `.json` by its first keys, which distinguish a model
    /// of dimod from a label graph.
    pub fn of_file(path: &Path) -> Option<IsingFormat> {
        if let Some(format) = IsingFormat::from_path(path) {
            return Some(format);
        }
        if !path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json")) {
            return None;
        }
        let mut start = Vec::new();
        // Bytes read from a device or a pipe here would be lost.
        if !path.is_file() {
            return None;
        }
        File::open(path).ok()?.take(SNIFFED).read_to_end(&mut start).ok()?;
        let start = String::from_utf8_lossy(&start);
        let marks = ["\"BinaryQuadraticModel\"", "\"bias_type\"", "\"linear_biases\""];
        marks.iter().any(|mark| start.contains(mark)).then_some(IsingFormat::Bqm)
    }
}

impl fmt::Display for IsingFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for IsingFormat {
    type Err = String;

    fn from_str(name: &str) -> Result<IsingFormat, String> {
        let found = IsingFormat::ALL.into_iter().find(|format| format.name() == name);
        found.ok_or_else(|| {
            format!(
                "`{name}` is not a format of Ising models; the formats are {}",
                Self::readable_names()
            )
        })
    }
}
