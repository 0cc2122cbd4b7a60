//! `paths`, and `states` on the same passes: hard forests against brute force and the older engines.

use phex::graph::{ExclusionRule, GraphBuilder, RelationGraph, Semantics};
use phex::infer::{Block, Engine, Evidence, Method, Options, RowStatus, Want};
use phex::model::Model;
use phex::testkit::{HierarchyShape, Random, RandomGraph};

fn compile(model: &Model, method: Method) -> Option<Engine> {
    let options = Options { method, ..Options::default() };
    Engine::compile(model.clone(), &options).ok()
}
