//! Features from files of every form.
use std::path::PathBuf;

use crate::common::{names, npy};
use phex_io::{
    Dataset, DatasetFormat, DatasetOptions, Error, FeatureKind, FeatureReader, FeatureSchema,
    Limits, Unseen, read_dataset,
};

/// A folder with files, which is deleted in the end.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }
}

fn read(name: &str, content: impl AsRef<[u8]>, options: &DatasetOptions) -> Result<Dataset, Error> {
    let folder = Folder::new();
    read_dataset(&[folder.file(name, content)], options, None)
}

fn message(name: &str, content: impl AsRef<[u8]>, options: &DatasetOptions) -> String {
    read(name, content, options).unwrap_err().to_string()
}

/// The values with -9 for those that are missing.
fn values(data: &Dataset) -> Vec<f32> {
    data.features.values.iter().map(|&v| if v.is_nan() { -9.0 } else { v }).collect()
}

fn plain() -> DatasetOptions {
    DatasetOptions::default()
}

#[test]
fn csv_has_numbers_and_categories() {
    let csv = "id,x,color,n\nr1,1.5,red,1\nr2,?,blue,NA\nr3,-2,,nan\nr4,,red,2e3\n";
    let options = DatasetOptions { keep: names(&["id"]), ..plain() };
    for (name, text) in [("a.csv", csv.to_owned()), ("a.tsv", csv.replace(',', "\t"))] {
        let data = read(name, text, &options).unwrap();
        assert_eq!(data.features.names, ["x", "color=blue", "color=red", "n"]);
        assert_eq!((data.features.rows, data.features.columns), (4, 4));
        let rows = [1.5, 0., 1., 1., -9., 1., 0., -9., -2., 0., 0., -9., -9., 0., 1., 2000.];
        assert_eq!(values(&data), rows);
        assert_eq!(data.kept, [("id".to_owned(), names(&["r1", "r2", "r3", "r4"]))]);
        assert_eq!(data.features.row(3)[3], 2000.0);
        assert!(data.targets.is_none() && data.unseen.is_empty());
    }
}

/// Pieces of any size are the whole, with its kept texts and its unseen categories.
#[test]
fn pieces_are_the_whole() {
    let train = "x,color,n\n1,red,1\n2,blue,3\n";
    let schema = read("t.csv", train, &plain()).unwrap().schema;
    let csv = "id,n,x,color\nr1,1,1.5,red\nr2,NA,?,green\nr3,3,-2,\nr4,2e3,,blue\nr5,0,1,pink\n";
    let folder = Folder::new();
    let path = folder.file("new.csv", csv);
    let options = DatasetOptions { keep: names(&["id"]), schema: Some(schema), ..plain() };
    let whole = read_dataset(std::slice::from_ref(&path), &options, None).unwrap();
    assert_eq!(whole.unseen, [Unseen { column: "color".into(), count: 2, first: "green".into() }]);
    for most in [0, 1, 2, 3, 5, 9] {
        let mut reader = FeatureReader::open(&path, &options).unwrap();
        let (mut found, mut kept) = (Vec::new(), Vec::new());
        while let Some(piece) = reader.next_rows(most).unwrap() {
            assert!((1..=most.max(1)).contains(&piece.rows()));
            assert_eq!(piece.schema, whole.schema);
            found.extend(values(&piece));
            kept.extend(piece.kept[0].1.clone());
        }
        assert_eq!((found, &kept), (values(&whole), &whole.kept[0].1), "{most}");
        assert_eq!(reader.unseen(), whole.unseen);
        assert!(reader.next_rows(most).unwrap().is_none());
    }
    // The place of a mistake is that in the file.
    let path = folder.file("bad.csv", csv.replace("2e3", "?!"));
    let mut reader = FeatureReader::open(&path, &options).unwrap();
    assert_eq!(reader.next_rows(2).unwrap().map(|piece| piece.rows()), Some(2));
    let error = reader.next_rows(2).unwrap_err().to_string();
    assert!(error.contains("bad.csv:5"), "{error}");
    let error = FeatureReader::open(&path, &plain()).err().map(|error| error.to_string());
    assert!(error.unwrap().contains("pieces need the schema"));
}

#[test]
fn columns_are_chosen() {
    let csv = "a,b,c\n1,2,3\n";
    let drop = DatasetOptions { drop: names(&["b"]), ..plain() };
    assert_eq!(read("x.csv", csv, &drop).unwrap().features.names, ["a", "c"]);
    let some = DatasetOptions { features: Some(names(&["c", "a"])), ..plain() };
    assert_eq!(values(&read("x.csv", csv, &some).unwrap()), [3., 1.]);
    let none = DatasetOptions { drop: names(&["a", "b", "c"]), ..plain() };
    assert!(message("x.csv", csv, &none).contains("no column is left for features"));
    let missing = DatasetOptions { drop: names(&["z"]), ..plain() };
    assert!(message("x.csv", csv, &missing).contains("no column is named `z`"));
    let missing = DatasetOptions { features: Some(names(&["y", "a", "z"])), ..plain() };
    assert!(message("x.csv", csv, &missing).contains("`y`, nor another one"));
    let both = DatasetOptions { drop: names(&["a"]), keep: names(&["a"]), ..plain() };
    assert!(message("x.csv", csv, &both).contains("`a` is requested for two purposes"));
    assert!(message("x.csv", "a,a\n1,2\n", &plain()).contains("two columns are named `a`"));
}

#[test]
fn mistakes_have_places() {
    let few = DatasetOptions { limits: Limits { categories: 2, ..Limits::default() }, ..plain() };
    let error = message("x.csv", "a,who\n1,x\n2,y\n3,z\n", &few);
    let expected = "x.csv:4: column `who`: `x` makes this a column of text, and it has more than 2";
    assert!(error.contains(expected), "{error}");
    let error = message("x.csv", "a,b\n1,2\n1\n", &plain());
    assert!(error.ends_with("x.csv:3: the row has 1 cells and the header has 2"), "{error}");
    let error =
        message("x.csv", "", &DatasetOptions { format: Some("csv".parse().unwrap()), ..plain() });
    assert!(error.contains("no header"), "{error}");
    let long =
        DatasetOptions { limits: Limits { record_bytes: 10, ..Limits::default() }, ..plain() };
    assert!(matches!(
        read("x.csv", "a\n12345678901\n", &long),
        Err(Error::LineTooLong { line: 2, .. })
    ));
    let small = DatasetOptions { limits: Limits { values: 3, ..Limits::default() }, ..plain() };
    assert!(message("x.csv", "a,b\n1,2\n3,4\n", &small).contains("more than the 3 values allowed"));
    // Categories count too: 2 rows of 3 columns.
    let small = DatasetOptions { limits: Limits { values: 5, ..Limits::default() }, ..plain() };
    assert!(message("x.csv", "a,b\n1,p\n3,q\n", &small).contains("more than the 5 values"));
    let long = format!("{},id\na,{}\nb,x\n", "n".repeat(30), "k".repeat(10));
    let small = DatasetOptions { limits: Limits { values: 10, ..Limits::default() }, ..plain() };
    assert!(message("x.csv", &long, &small).contains("more than the 40 bytes of names allowed"));
    let keep = DatasetOptions {
        limits: Limits { values: 2, ..Limits::default() },
        keep: names(&["id"]),
        ..plain()
    };
    assert!(message("x.csv", &long, &keep).contains("the 8 bytes of kept text allowed"));
    assert!(message("x.csv", "a,\n0,1\n", &plain()).contains("has no name"));
    assert!(matches!(read_dataset(&[], &plain(), None), Err(Error::Table { .. })));
}

#[test]
fn a_schema_is_applied_to_new_data() {
    let training = "x,color,label\n1,red,a\n2,green,b\n";
    let drop = DatasetOptions { drop: names(&["label"]), ..plain() };
    let schema = read("t.csv", training, &drop).unwrap().schema;
    let json = serde_json::to_string(&schema).unwrap();
    assert_eq!(
        json,
        r#"{"columns":[{"name":"x","kind":"numeric"},{"name":"color","kind":"nominal","values":["green","red"]}]}"#
    );
    let schema: FeatureSchema = serde_json::from_str(&json).unwrap();
    let options = DatasetOptions { schema: Some(schema), ..drop };
    // Other columns and another order; `pink` and `blue` are not known.
    let new = "color,more,x\npink,p,7\nred,q,?\nblue,r,9\n,s,1\n";
    let data = read("n.csv", new, &options).unwrap();
    assert_eq!(data.features.names, ["x", "color=green", "color=red"]);
    assert_eq!(values(&data), [7., 0., 0., -9., 0., 1., 9., 0., 0., 1., 0., 0.]);
    let unseen = Unseen { column: "color".into(), count: 2, first: "pink".into() };
    assert_eq!(data.unseen, [unseen]);
    // A text that is not a number is an error here, not a category.
    let error = message("n.csv", "color,x\nred,many\n", &options);
    assert!(error.contains("n.csv:2: column `x`: the cell is `many`; a feature is"), "{error}");
    assert!(message("n.csv", "x\n1\n", &options).contains("no column is named `color`"));
}

#[test]
fn npy_has_numbers_alone() {
    // 1.0, -2.0, NaN and the smallest half.
    let halves = [0x3c00u16, 0xc000, 0x7e00, 0x0001].map(u16::to_le_bytes).concat();
    let data = read("x.npy", npy("<f2", "(2, 2)", &halves), &plain()).unwrap();
    assert_eq!(data.features.names, ["f0", "f1"]);
    assert_eq!(values(&data), [1., -2., -9., 2f32.powi(-24)]);
    let cases: [(&str, Vec<u8>); 6] = [
        ("<f4", [1f32, 2.0].map(f32::to_le_bytes).concat()),
        ("<f8", [1f64, 2.0].map(f64::to_le_bytes).concat()),
        ("|u1", vec![1, 2]),
        ("<u2", [1u16, 2].map(u16::to_le_bytes).concat()),
        ("<i8", [1i64, 2].map(i64::to_le_bytes).concat()),
        ("<u8", [1u64, 2].map(u64::to_le_bytes).concat()),
    ];
    for (kind, bytes) in cases {
        let data = read("x.npy", npy(kind, "(1, 2)", &bytes), &plain()).unwrap();
        assert_eq!(values(&data), [1., 2.], "{kind}");
        // The form shows without the name.
        assert!(read("x", npy(kind, "(1, 2)", &bytes), &plain()).is_ok());
    }
    let drop = DatasetOptions { drop: names(&["f0"]), ..plain() };
    assert_eq!(values(&read("x.npy", npy("|u1", "(1, 2)", &[1, 2]), &drop).unwrap()), [2.]);
    assert!(
        message("x.npy", npy("<f8", "(1000000000000, 2)", &[0; 64]), &plain()).contains("claims")
    );
    assert!(message("x.npy", npy("|u1", "(9, 0)", &[]), &plain()).contains("0 columns"));
    let infinite = npy("<f8", "(1, 1)", &f64::INFINITY.to_le_bytes());
    let error = message("x.npy", infinite, &plain());
    assert!(error.contains("row 1, column `f0`: the cell is inf"), "{error}");
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_has_types() {
    use arrow_array::{ArrayRef, BooleanArray, Date32Array, Int64Array, RecordBatch, StringArray};
    use std::sync::Arc;
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from(vec![i64::MAX, 2, 3]))),
        ("day", Arc::new(Date32Array::from(vec![1, 2, 3]))),
        ("n", Arc::new(Int64Array::from(vec![Some(4), None, Some(-1)]))),
        ("ok", Arc::new(BooleanArray::from(vec![true, false, true]))),
        ("size", Arc::new(StringArray::from(vec![Some("10"), Some("9"), None]))),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, column)| (name, column, true)),
    )
    .unwrap();
    let mut writer =
        parquet::arrow::ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    let bytes = writer.into_inner().unwrap();
    let keep = DatasetOptions { keep: names(&["id"]), ..plain() };
    let error = message("x.parquet", &bytes, &keep);
    assert!(
        error.contains("the column `day` is of type Date32 and cannot be a feature"),
        "{error}"
    );
    let options = DatasetOptions { drop: names(&["day"]), ..keep };
    let data = read("x.parquet", &bytes, &options).unwrap();
    assert_eq!(data.features.names, ["n", "ok", "size=10", "size=9"]);
    assert_eq!(values(&data), [4., 1., 1., 0., -9., 0., 0., 1., -1., 1., 0., 0.]);
    assert_eq!(data.kept[0].1, ["9223372036854775807", "2", "3"]);
}

const ARFF: &str = "% comment\n@RELATION 'r'\n@attribute 'a b' REAL\n@attribute n {z,'y y',x}\n\
    @attribute s string\n@attribute c hierarchical a,a/b\n@DATA\n1.5,'y y',hello,a\n?,?,'a, b',a/b\n\
    {0 7, 2 x}\n";

#[test]
fn arff_has_declared_types() {
    let error = message("x.arff", ARFF, &plain());
    assert!(error.contains("the column `s` is of type string and cannot be a feature"), "{error}");
    let keep = DatasetOptions { keep: names(&["s"]), ..plain() };
    for name in ["x.arff", "x"] {
        let data = read(name, ARFF, &keep).unwrap();
        assert_eq!(data.features.names, ["a b", "n=z", "n=y y", "n=x"]);
        assert_eq!(values(&data), [1.5, 0., 1., 0., -9., 0., 0., 0., 7., 1., 0., 0.]);
        assert_eq!(data.kept[0].1, ["hello", "a, b", "x"]);
    }
    let declared = FeatureKind::Nominal { values: names(&["z", "y y", "x"]) };
    assert_eq!(read("x.arff", ARFF, &keep).unwrap().schema.columns[1].kind, declared);
    let error = message("x.arff", ARFF.replace("1.5,'y y'", "1.5,w"), &keep);
    assert!(
        error.contains("x.arff:8: column `n`: `w` is not one of the declared values"),
        "{error}"
    );
    let error = message("x.arff", ARFF.replace("1.5,", "wide,"), &keep);
    assert!(error.contains("x.arff:8: column `a b`: the cell is `wide`"), "{error}");
    let format: DatasetFormat = "arff".parse().unwrap();
    assert_eq!(format, DatasetFormat::Arff);
    assert!("xls".parse::<DatasetFormat>().unwrap_err().contains("parquet, arff"));
}

#[test]
fn files_of_the_same_columns_are_one_set() {
    let folder = Folder::new();
    let first = folder.file("a.csv", "x,c\n1,p\n2,q\n");
    let second = folder.file("b.csv", "c,x\nr,3\n");
    let both = read_dataset(&[first.clone(), second], &plain(), None).unwrap();
    // Categories are learned from all files together.
    assert_eq!(both.features.names, ["x", "c=p", "c=q", "c=r"]);
    assert_eq!(values(&both), [1., 1., 0., 0., 2., 0., 1., 0., 3., 0., 0., 1.]);
    let other = folder.file("o.csv", "x,c,d\n1,p,2\n");
    let error = read_dataset(&[first.clone(), other], &plain(), None).unwrap_err().to_string();
    assert!(error.contains("o.csv: the column `d` is not in the files before"), "{error}");
    let fewer = folder.file("f.csv", "x\n1\n");
    let error = read_dataset(&[first.clone(), fewer], &plain(), None).unwrap_err().to_string();
    assert!(error.contains("f.csv: no column is named `c`"), "{error}");
    let arff = folder.file("a.arff", "@attribute x real\n@attribute c {p,q}\n@data\n1,p\n");
    let error = read_dataset(&[first.clone(), arff.clone()], &plain(), None).unwrap_err();
    assert!(error.to_string().contains("`x` has another type in the files before"), "{error}");
    let other = folder.file("b.arff", "@attribute x real\n@attribute c {q,p}\n@data\n1,p\n");
    assert!(read_dataset(&[arff, other], &plain(), None).is_err());
}

#[test]
fn sets_are_appended() {
    let keep = DatasetOptions { keep: names(&["id"]), ..plain() };
    let mut data = read("a.csv", "id,x,c\ni,1,p\nj,2,q\n", &keep).unwrap();
    let schema = DatasetOptions { schema: Some(data.schema.clone()), ..keep.clone() };
    let more = read("b.csv", "id,x,c\nk,3,new\n", &schema).unwrap();
    data.append(more).unwrap();
    assert_eq!(values(&data), [1., 1., 0., 2., 0., 1., 3., 0., 0.]);
    assert_eq!((data.rows(), &data.kept[0].1), (3, &names(&["i", "j", "k"])));
    assert_eq!(data.unseen.len(), 1);
    let differences = [
        ("id,x,c\nk,3,p\n", "`c` has other categories"),
        ("id,x,c\nk,3,4\n", "`c` holds numbers and not categories"),
        ("id,x\nk,3\n", "`c` is missing"),
        ("id,y,c\nk,3,p\n", "`x` is missing where it should be: there is `y`"),
    ];
    for (text, expected) in differences {
        let error = data.append(read("b.csv", text, &keep).unwrap()).unwrap_err().to_string();
        assert!(error.starts_with("the added data set: the column "), "{error}");
        assert!(error.contains(expected), "{error}");
    }
    assert_eq!(data.rows(), 3);
}

#[test]
fn an_index_is_a_feature_only_by_choice() {
    for (text, index) in [("id,x\n7,1\n", "id"), (",x\n0,1\n", "")] {
        let data = read("x.csv", text, &plain()).unwrap();
        assert_eq!(
            (data.features.names.as_slice(), data.ignored),
            (&names(&["x"])[..], names(&[index]))
        );
    }
    let chosen = DatasetOptions { features: Some(names(&["x", "id"])), ..plain() };
    let data = read("x.csv", "id,x\n7,1\n", &chosen).unwrap();
    assert_eq!((data.features.row(0), data.ignored.len()), (&[1.0, 7.0][..], 0));
    // A model that was trained with it still gets it.
    let schema = DatasetOptions { schema: Some(data.schema), ..plain() };
    assert_eq!(read("x.csv", "id,x\n9,1\n", &schema).unwrap().features.row(0), [1.0, 9.0]);
    let dropped = DatasetOptions { drop: names(&["id"]), ..plain() };
    assert!(read("x.csv", "id,x\n7,1\n", &dropped).unwrap().ignored.is_empty());
}
