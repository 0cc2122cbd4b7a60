//! The published JSON schema is the one of the types.

use phex::graph::document::Document;

#[test]
fn schema_file_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/schema/graph.schema.json");
    let schema = serde_json::to_string_pretty(&Document::json_schema()).unwrap() + "\n";
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(path, &schema).unwrap();
    }
    let file = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(file, schema, "run the tests with UPDATE_SCHEMA=1 to write the schema again");
}
