//! Reads the data sets.

use std::path::Path;

use phex_io::{DatasetOptions, Features, read_dataset};

use super::data::{Predicates, ZeroShotData};
use super::settings::AttributeData;
use crate::Error;
use crate::harness::data::read_text;

/// Reads a data set from its folder in `folder`, or generates it.
///
/// # Errors
/// [`Error::NoData`] if it is missing; [`Error::WrongData`] if its files do not fit.
pub(super) fn read(name: AttributeData, folder: &Path, seed: u64) -> Result<ZeroShotData, Error> {
    let folder = folder.join(name.folder());
    if name != AttributeData::Generated && !folder.is_dir() {
        return Err(Error::NoData { path: folder });
    }
    match name {
        AttributeData::Awa => awa(&folder),
        AttributeData::Cub => cub(&folder),
        AttributeData::Apy => super::read_apy::read(&folder),
        AttributeData::Generated => Ok(super::generated::generate(seed)),
    }
}

fn awa(folder: &Path) -> Result<ZeroShotData, Error> {
    let classes = names(&folder.join("classes.txt"))?;
    let attributes = names(&folder.join("predicates.txt"))?;
    let shape = (classes.len(), attributes.len());
    let percents = matrix(&folder.join("predicate-matrix-continuous.txt"), shape)?;
    let binary = matrix(&folder.join("predicate-matrix-binary.txt"), shape)?;
    // Missing entries are −1.
    let graded = percents.iter().map(|&c| (c >= 0.0).then_some(c / 100.0)).collect();
    let mut predicates = Predicates::from_graded(classes, attributes, graded);
    predicates.binary = binary.iter().map(|&b| b > 0.5).collect();
    let list = folder.join("testclasses.txt");
    let position = |name: &String| {
        let place = predicates.classes.iter().position(|class| class == name);
        place.ok_or_else(|| wrong(&list, format!("`{name}` is not in classes.txt")))
    };
    let official = names(&list)?.iter().map(position).collect::<Result<Vec<usize>, Error>>()?;
    let features = folder.join("features_hellinger_pca512_f16.npy");
    let (features, classes) = rows(&features, &folder.join("labels_uint8.npy"), &predicates)?;
    let about = "Animals with Attributes: 50 classes, 85 attributes, 30475 images. Features are the data \
                 set's own descriptors of 2009 (Hellinger map, 512 principal components of the 40 official \
                 training classes), not the paper's DECAF: accuracies are lower than the paper's.";
    let about = String::from(about);
    Ok(ZeroShotData { about, features, classes, predicates, official, fixed: false, noise: None })
}

fn cub(folder: &Path) -> Result<ZeroShotData, Error> {
    let classes = names(&folder.join("classes.txt"))?;
    let attributes = names(&folder.join("attribute_names.txt"))?;
    let shape = (classes.len(), attributes.len());
    let percents = matrix(&folder.join("class_attribute_labels_continuous.txt"), shape)?;
    let graded = percents.iter().map(|&c| Some(c / 100.0)).collect();
    let predicates = Predicates::from_graded(classes, attributes, graded);
    let features = folder.join("features_effnet_lite0_1280_f16.npy");
    let (features, classes) = rows(&features, &folder.join("labels_uint8.npy"), &predicates)?;
    let about = "CUB-200-2011: 200 classes of birds, 312 attributes, 11788 images; not in the paper. \
                 Features are the pooled last layer of EfficientNet-Lite0 trained on ImageNet (1280). A \
                 binary predicate is a graded one above the mean of all.";
    let about = String::from(about);
    let official = Vec::new();
    Ok(ZeroShotData { about, features, classes, predicates, official, fixed: false, noise: None })
}

pub(super) fn wrong(path: &Path, message: String) -> Error {
    Error::WrongData { path: path.to_owned(), message }
}

/// One name per line, after an optional number.
fn names(path: &Path) -> Result<Vec<String>, Error> {
    let text = read_text(path)?;
    let name = |line: &str| {
        let rest = line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit());
        let numbered =
            rest.starts_with(char::is_whitespace) && rest.len() < line.trim_start().len();
        String::from(if numbered { rest.trim() } else { line.trim() })
    };
    Ok(text.lines().filter(|line| !line.trim().is_empty()).map(name).collect())
}

/// One class per line: numbers separated by spaces.
fn matrix(path: &Path, (rows, columns): (usize, usize)) -> Result<Vec<f64>, Error> {
    let text = read_text(path)?;
    let mut values = Vec::with_capacity(rows * columns);
    for (line, cells) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let before = values.len();
        for (column, cell) in cells.split_whitespace().enumerate() {
            let value: f64 = cell.parse().map_err(|_| {
                let place = format!("line {}, column {}", line + 1, column + 1);
                wrong(path, format!("{place}: `{cell}` is not a number"))
            })?;
            values.push(value);
        }
        if values.len() - before != columns {
            let found = values.len() - before;
            let message = format!("line {}: {found} numbers, and {columns} are needed", line + 1);
            return Err(wrong(path, message));
        }
    }
    if values.len() != rows * columns {
        let found = values.len() / columns.max(1);
        return Err(wrong(path, format!("{found} lines of numbers, and {rows} are needed")));
    }
    Ok(values)
}

fn array(path: &Path) -> Result<Features, Error> {
    Ok(read_dataset(&[path.to_owned()], &DatasetOptions::default(), None)?.features)
}

/// Features and the class of each row.
fn rows(
    features: &Path,
    labels: &Path,
    predicates: &Predicates,
) -> Result<(Features, Vec<usize>), Error> {
    let numbers = array(labels)?;
    let features = array(features)?;
    if numbers.columns != 1 || numbers.rows != features.rows {
        let (found, needed) = (numbers.rows, features.rows);
        let message = format!("{found} class numbers, and {needed} rows of features need one each");
        return Err(wrong(labels, message));
    }
    let class = |(row, &value): (usize, &f32)| {
        let count = predicates.classes.len();
        if value >= 0.0 && value.fract() == 0.0 && (value as usize) < count {
            return Ok(value as usize);
        }
        Err(wrong(labels, format!("row {}: {value} is not a class below {count}", row + 1)))
    };
    let classes = numbers.values.iter().enumerate().map(class).collect::<Result<Vec<_>, _>>()?;
    Ok((features, classes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_matrices_say_where_they_are_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("names.txt");
        std::fs::write(&path, "  1\tgrizzly+bear\n2 001.Albatross\n2D Boxy\nHead\n").unwrap();
        assert_eq!(names(&path).unwrap(), ["grizzly+bear", "001.Albatross", "2D Boxy", "Head"]);
        std::fs::write(&path, "1 2\n3 x\n").unwrap();
        let error = matrix(&path, (2, 2)).unwrap_err().to_string();
        assert!(error.contains("line 2, column 2"), "{error}");
        std::fs::write(&path, "1 2\n3\n").unwrap();
        assert!(matrix(&path, (2, 2)).unwrap_err().to_string().contains("line 2: 1 numbers"));
        std::fs::write(&path, "1 2\n").unwrap();
        assert!(matrix(&path, (2, 2)).unwrap_err().to_string().contains("1 lines"));
        assert!(matches!(read(AttributeData::Awa, folder.path(), 1), Err(Error::NoData { .. })));
    }
}
