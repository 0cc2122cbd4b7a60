//! The seeds of the fuzz targets, in every test run. `make fuzz` goes on from them. `UPDATE_SEEDS=1` writes those again
//! that are not text, after a change of what they hold.

#[path = "fuzz_targets.rs"]
mod targets;

use std::fs;
use std::path::Path;

#[test]
fn seeds_keep_every_promise() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    if std::env::var_os("UPDATE_SEEDS").is_some() {
        targets::write_seeds(&seeds);
    }
    for (name, call) in targets::TARGETS {
        let folder = seeds.join(name);
        let mut files: Vec<_> =
            fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        for file in &files {
            // Shown if the call panics.
            println!("{}", file.display());
            call(&fs::read(file).unwrap());
        }
        assert!(files.len() >= 3, "{name} has {} seeds", files.len());
    }
}

/// Numbers that stand for the bytes of a fuzzer.
#[test]
fn inference_agrees_with_enumeration_on_random_bytes() {
    let mut dice = crate::common::animals::Dice(8);
    for _ in 0..300 {
        let bytes: Vec<u8> = (0..200).map(|_| (dice.roll() * 256.0) as u8).collect();
        targets::infer_oracle(&bytes);
    }
}
