//! aPascal-aYahoo: objects with 64 annotated attributes, from which the inputs are made.

use std::path::Path;

use phex_io::Features;

use super::data::{Predicates, ZeroShotData};
use super::read::wrong;
use crate::Error;
use crate::harness::data::read_text;

/// Pascal's objects first, then Yahoo's.
const FILES: [&str; 3] = ["apascal_train.txt", "apascal_test.txt", "ayahoo_test.txt"];

/// Fields before the attributes: image, class and four numbers of a box.
const BEFORE: usize = 6;

pub(super) fn read(folder: &Path) -> Result<ZeroShotData, Error> {
    let list = |name: &str| -> Result<Vec<String>, Error> {
        let text = read_text(&folder.join(name))?;
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        Ok(lines.map(String::from).collect())
    };
    let (names, attributes) = (list("class_names.txt")?, list("attribute_names.txt")?);
    let (mut classes, mut values) = (Vec::new(), Vec::new());
    let mut official = Vec::new();
    for file in FILES {
        let path = folder.join(file);
        for (line, object) in read_text(&path)?.lines().enumerate() {
            let place = |message: String| wrong(&path, format!("line {}: {message}", line + 1));
            let fields: Vec<&str> = object.split_whitespace().collect();
            if fields.len() != BEFORE + attributes.len() {
                let (found, needed) = (fields.len(), BEFORE + attributes.len());
                return Err(place(format!("{found} fields, and {needed} are needed")));
            }
            let class = names.iter().position(|name| name == fields[1]);
            let class = class.ok_or_else(|| {
                place(format!("the class `{}` is not in class_names.txt", fields[1]))
            })?;
            for (column, field) in fields[BEFORE..].iter().enumerate() {
                values.push(match *field {
                    "0" => 0.0,
                    "1" => 1.0,
                    other => {
                        let column = BEFORE + column + 1;
                        return Err(place(format!("column {column}: `{other}` is not 0 or 1")));
                    }
                });
            }
            classes.push(class);
            if file.starts_with("ayahoo") && !official.contains(&class) {
                official.push(class);
            }
        }
    }
    let graded = averages(&classes, &values, names.len(), attributes.len());
    let predicates = Predicates::from_graded(names, attributes.clone(), graded);
    let (rows, columns) = (classes.len(), attributes.len());
    let about = "aPascal-aYahoo: 20 Pascal classes (12695 objects) to train on, 12 Yahoo classes (2644) to \
                 test, 64 attributes. No image features are available: the inputs are the annotated \
                 attributes of each object with noise that imitates detectors, so accuracies cannot be \
                 compared with the paper's. Predicates are the means of the annotations of each class, \
                 binary where they are above the mean of all.";
    Ok(ZeroShotData {
        about: String::from(about),
        features: Features { names: attributes, rows, columns, values },
        classes,
        predicates,
        official,
        fixed: true,
        noise: None,
    })
}

/// How often each class has each attribute; `None` for a class without objects.
fn averages(
    classes: &[usize],
    values: &[f32],
    class_count: usize,
    attributes: usize,
) -> Vec<Option<f64>> {
    let mut sums = vec![0.0f64; class_count * attributes];
    let mut counts = vec![0usize; class_count];
    for (&class, object) in classes.iter().zip(values.chunks_exact(attributes)) {
        counts[class] += 1;
        let sums = &mut sums[class * attributes..(class + 1) * attributes];
        sums.iter_mut().zip(object).for_each(|(sum, &value)| *sum += f64::from(value));
    }
    let mean = |(at, &sum): (usize, &f64)| {
        let count = counts[at / attributes];
        (count > 0).then(|| sum / count as f64)
    };
    sums.iter().enumerate().map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn predicates_are_means_of_annotations() {
        let folder = tempfile::tempdir().unwrap();
        let write =
            |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("class_names.txt", "cat\ngoat\n");
        write("attribute_names.txt", "Tail\nFurn. Leg\n");
        write("apascal_train.txt", "a.jpg cat 1 2 3 4 1 0\n");
        write("apascal_test.txt", "b.jpg cat 1 2 3 4 0 0\n");
        write("ayahoo_test.txt", "c.jpg goat 1 2 3 4 1 1\n");
        let data = read(folder.path()).unwrap();
        assert_eq!(data.predicates.graded, [Some(0.5), Some(0.0), Some(1.0), Some(1.0)]);
        assert_eq!((data.official, data.classes), (vec![1], vec![0, 0, 1]));
        write("ayahoo_test.txt", "c.jpg goat 1 2 3 4 1 2\n");
        let error = read(folder.path()).unwrap_err().to_string();
        assert!(error.contains("ayahoo_test.txt: line 1: column 8: `2`"), "{error}");
    }
}
