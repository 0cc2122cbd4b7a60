//! Ising models and QUBOs, for the solvers and samplers of that world.
//!
//! Every form holds one polynomial of degree two, in spins `y ∈ {−1, +1}` or in `x ∈ {0, 1}` with
//! `y = 2x − 1`. All are read into an [`Ising`] whose energy is the polynomial's, offset included,
//! for every state; a name is that of the file, or the number of the variable where it has none.
//!
//! | [`IsingFormat`] | names | variables | names and offset |
//! |---|---|---|---|
//! | `coo` | `.coo` | spins or 0/1 | in comments of ours, which dimod skips |
//! | `bqm` | `.bqm.json`, `.json` with a model inside | spins or 0/1 | in the file |
//! | `qubo` | `.qubo` | 0/1 | in comments of ours, which qbsolv skips |
//! | `sparse` | `.sparse` | 0/1, from 1 | none; read only |
//! | `maxcut` | `.mc` | sides of a cut, from 1 | none; read only |

mod biqmac;
mod bqm;
mod coo;
mod format;
mod notes;
mod polynomial;
mod qubo;

use std::collections::HashSet;
use std::io::Write as _;
use std::path::Path;

use phex::model::Ising;

use crate::input::{display_name, is_standard, read_path};
use crate::text::Source;
use crate::{Error, Format, Output, ReadOptions};

pub(crate) use bqm::label_name;
pub use format::IsingFormat;
pub(crate) use notes::{Notes, quoted};

/// More spins than this are refused where a header alone could ask for them.
const MAX_SPINS: usize = 4_000_000;

/// Reads an Ising model, or from standard input for `-`.
///
/// Without a format the name of the file says it; a `.json` file must hold a binary quadratic
/// model of dimod.
///
/// # Errors
/// When the file cannot be read, its format is not known, or it is not of that format.
pub fn read_ising(path: &Path, format: Option<IsingFormat>) -> Result<Ising, Error> {
    let json = || path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
    let format = format
        .or_else(|| IsingFormat::from_path(path))
        .or_else(|| json().then_some(IsingFormat::Bqm))
        .ok_or_else(|| Error::UnknownFormat {
            path: display_name(path),
            known: IsingFormat::readable_names(),
        })?;
    // As for JSON, lines may have any length.
    let bytes = read_path(path, Some(Format::Json), &ReadOptions::default())?;
    parse_ising(&bytes, &display_name(path), format)
}

/// Reads an Ising model from bytes; `name` is for messages.
///
/// ```
/// use phex_io::{IsingFormat, parse_ising};
/// let ising = parse_ising(b"# vartype=SPIN\n0 0 1.5\n0 1 -1\n", "m.coo", IsingFormat::Coo)?;
/// assert_eq!(ising.energy(&[true, false]), 2.5);
/// # Ok::<(), phex_io::Error>(())
/// ```
///
/// # Errors
/// When the bytes are not of this format.
pub fn parse_ising(bytes: &[u8], name: &str, format: IsingFormat) -> Result<Ising, Error> {
    let source = Source::decode(bytes, name)?;
    let ising = match format {
        IsingFormat::Coo => coo::read(&source)?,
        IsingFormat::Bqm => bqm::read(&source)?,
        IsingFormat::Qubo => qubo::read(&source)?,
        IsingFormat::Sparse => biqmac::read_sparse(&source)?,
        IsingFormat::MaxCut => biqmac::read_cut(&source)?,
    };
    check(&ising, name)?;
    Ok(ising)
}

/// Writes an Ising model to a file, all at once, or to standard output for `-`. Without a format
/// the name of the file says it.
///
/// # Errors
/// When the format is not known or only read, the model holds what no file can, or the file cannot
/// be written.
pub fn write_ising(ising: &Ising, path: &Path, format: Option<IsingFormat>) -> Result<(), Error> {
    let format = format.or_else(|| IsingFormat::from_path(path)).ok_or_else(|| {
        let path = path.display().to_string();
        Error::UnknownFormat { path, known: IsingFormat::writable_names() }
    })?;
    write_text(&ising_to_string(ising, format)?, path)
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
/// When the format is only read, or the model holds what no file can: numbers that are not finite,
/// two spins of the same name, couplings of spins that do not exist.
pub fn ising_to_string(ising: &Ising, format: IsingFormat) -> Result<String, Error> {
    check(ising, "the model")?;
    match format {
        IsingFormat::Coo => Ok(coo::write(ising)),
        IsingFormat::Bqm => bqm::write(ising),
        IsingFormat::Qubo => Ok(qubo::write(ising)),
        IsingFormat::Sparse | IsingFormat::MaxCut => Err(Error::Model {
            path: String::from("the model"),
            message: format!(
                "{format} files hold no names and no offset and are only read; write one of {}",
                IsingFormat::writable_names()
            ),
        }),
    }
}

/// Writes a text to a file that appears once it is complete.
pub(crate) fn write_text(text: &str, path: &Path) -> Result<(), Error> {
    let name = if is_standard(path) { "<stdout>".into() } else { path.display().to_string() };
    let write = || {
        let mut output = Output::create(path)?;
        output.write_all(text.as_bytes())?;
        output.finish()
    };
    write().map_err(|source| Error::Write { path: name, source })
}

/// What every form needs: finite numbers, names that tell spins apart, couplings of two spins.
fn check(ising: &Ising, path: &str) -> Result<(), Error> {
    let n = ising.names.len();
    let fault = |message: String| Err(Error::Model { path: path.to_owned(), message });
    if ising.h.len() != n {
        return fault(format!("there are {} fields for {n} spins", ising.h.len()));
    }
    if let Some(&(a, b, _)) = ising.j.iter().find(|&&(a, b, _)| a >= n || b >= n || a == b) {
        return fault(format!("a coupling of the spins {a} and {b} of {n} is not possible"));
    }
    let couplings = ising.j.iter().map(|(_, _, j)| j);
    if !ising.h.iter().chain(couplings).chain([&ising.offset]).all(|value| value.is_finite()) {
        return fault(String::from(
            "a bias, an interaction or the offset is not finite, or too large to compute with",
        ));
    }
    let mut seen = HashSet::with_capacity(n);
    match ising.names.iter().find(|name| !seen.insert(name.as_str())) {
        Some(name) => fault(format!("two variables are named `{name}`; rename one")),
        None => Ok(()),
    }
}
