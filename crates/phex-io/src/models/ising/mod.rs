//! Ising models and QUBOs, as annealers and their solvers exchange them.
//!
//! Every format holds one polynomial of degree two, in spins `y ∈ {−1, +1}` or in `x ∈ {0, 1}` with
//! `y = 2x − 1`. It is read as an [`Ising`] model that has the same energy, offset included, in
//! every state. A variable without a name is named by its number.
//!
//! | [`IsingFormat`] | file names | variables | names and offset |
//! |---|---|---|---|
//! | `coo` | `.coo` | spins or 0/1 | in comments of phex, which dimod skips |
//! | `bqm` | `.bqm.json`, `.json` with a model inside | spins or 0/1 | in the file |
//! | `qubo` | `.qubo` | 0/1 | in comments of phex, which qbsolv skips |
//! | `sparse` | `.sparse` | 0/1, counted from 1 | none; can only be read |
//! | `maxcut` | `.mc` | sides of a cut, counted from 1 | none; can only be read |

mod biqmac;
mod bqm;
mod coo;
mod format;
mod polynomial;
mod qubo;

use std::collections::HashSet;
use std::path::Path;

use phex::model::Ising;

use crate::Error;
use crate::files::input::{display_name, read_model};
use crate::files::output::write_text;
use crate::files::text::SourceText;

pub(super) use bqm::label_name;
pub use format::IsingFormat;

/// The most spins that a file may have: a header alone could claim any number.
const MAX_SPINS: usize = 4_000_000;

/// The most spins that a file may claim: some, and one per byte, because spins without a term are rare.
fn most_spins(source: &SourceText<'_>) -> usize {
    MAX_SPINS.min(10_000 + source.text.len())
}

/// Reads an Ising model from a file, or from standard input for `-`.
///
/// Without a format, the name of the file decides; a `.json` file must hold a binary quadratic model
/// of dimod.
///
/// # Errors
/// When the file cannot be read, its format is unknown, or its content does not follow the format.
pub fn read_ising(path: &Path, format: Option<IsingFormat>) -> Result<Ising, Error> {
    let json = || path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
    let format = format
        .or_else(|| IsingFormat::from_path(path))
        .or_else(|| json().then_some(IsingFormat::Bqm))
        .ok_or_else(|| Error::UnknownFormat {
            path: display_name(path),
            known: IsingFormat::readable_names(),
        })?;
    let (bytes, name) = read_model(path)?;
    parse_ising(&bytes, &name, format)
}

/// Reads an Ising model from bytes; messages call the file `name`.
///
/// ```
/// use phex_io::{IsingFormat, parse_ising};
/// let ising = parse_ising(b"# vartype=SPIN\n0 0 1.5\n0 1 -1\n", "m.coo", IsingFormat::Coo)?;
/// assert_eq!(ising.energy(&[true, false]), 2.5);
/// # Ok::<(), phex_io::Error>(())
/// ```
///
/// # Errors
/// When the bytes do not follow the format.
pub fn parse_ising(bytes: &[u8], name: &str, format: IsingFormat) -> Result<Ising, Error> {
    let source = SourceText::decode(bytes, name)?;
    let ising = match format {
        IsingFormat::Coo => coo::read(&source)?,
        IsingFormat::Bqm => bqm::read(&source)?,
        IsingFormat::Qubo => qubo::read(&source)?,
        IsingFormat::Sparse => biqmac::read_sparse(&source)?,
        IsingFormat::MaxCut => biqmac::read_cut(&source)?,
    };
    check(&ising, name)?;
    if ising.names.is_empty() {
        let message = String::from("the file has no variable");
        return Err(Error::Model { path: name.to_owned(), message });
    }
    Ok(ising)
}

/// Writes an Ising model to a file, which appears once it is complete, or to standard output for
/// `-`. Without a format, the name of the file decides.
///
/// # Errors
/// When the format is unknown or can only be read, no file can hold the model (see
/// [`ising_to_string`]), or the file cannot be written.
pub fn write_ising(ising: &Ising, path: &Path, format: Option<IsingFormat>) -> Result<(), Error> {
    let format = format.or_else(|| IsingFormat::from_path(path)).ok_or_else(|| {
        let path = path.display().to_string();
        Error::UnknownFormat { path, known: IsingFormat::writable_names() }
    })?;
    write_text(path, &ising_to_string(ising, format)?)
}

/// The text of an Ising model.
///
/// ```
/// use phex::model::Ising;
/// use phex_io::{IsingFormat, ising_to_string};
/// let names = vec![String::from("dog"), String::from("cat")];
/// let ising = Ising { names, h: vec![0.5, 0.0], j: vec![(0, 1, 1.0)], offset: 2.0 };
/// assert_eq!(
///     ising_to_string(&ising, IsingFormat::Coo)?,
///     "# vartype=SPIN\n# phex offset 2\n# phex name 0 \"dog\"\n# phex name 1 \"cat\"\n\
///      0 0 0.5\n1 1 0\n0 1 1\n"
/// );
/// # Ok::<(), phex_io::Error>(())
/// ```
///
/// # Errors
/// When the format can only be read, or no file can hold the model: a number is not finite, two
/// spins have the same name, or a coupling names a spin that does not exist.
pub fn ising_to_string(ising: &Ising, format: IsingFormat) -> Result<String, Error> {
    check(ising, "the model")?;
    match format {
        IsingFormat::Coo => Ok(coo::write(ising)),
        IsingFormat::Bqm => bqm::write(ising),
        IsingFormat::Qubo => Ok(qubo::write(ising)),
        IsingFormat::Sparse | IsingFormat::MaxCut => Err(Error::Model {
            path: String::from("the model"),
            message: format!(
                "{format} files cannot hold names or an offset and can only be read; write one of {}",
                IsingFormat::writable_names()
            ),
        }),
    }
}

/// The largest bias or interaction. Beyond it, sums of a few of them lose what is small even in the exponents of engines.
const LARGEST: f64 = 1e15;

/// What every format needs: finite numbers, distinct names, couplings of two existing spins.
fn check(ising: &Ising, path: &str) -> Result<(), Error> {
    let n = ising.names.len();
    let fault = |message: String| Err(Error::Model { path: path.to_owned(), message });
    if ising.h.len() != n {
        return fault(format!("there are {} fields for {n} spins", ising.h.len()));
    }
    if let Some(&(a, b, _)) = ising.j.iter().find(|&&(a, b, _)| a >= n || b >= n || a == b) {
        return fault(format!("spins {a} and {b} of {n} cannot be coupled"));
    }
    let couplings = ising.j.iter().map(|(_, _, j)| j);
    let mut values = ising.h.iter().chain(couplings).chain([&ising.offset]);
    if !values.all(|value| value.abs() <= LARGEST) {
        return fault(String::from(
            "a bias, an interaction or the offset is not finite, or is too large",
        ));
    }
    let mut seen = HashSet::with_capacity(n);
    match ising.names.iter().find(|name| !seen.insert(name.as_str())) {
        Some(name) => fault(format!("two variables are named `{name}`; rename one")),
        None => Ok(()),
    }
}
