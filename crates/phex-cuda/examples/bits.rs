//! Temporary: dumps bits.
use phex::graph::{ExclusionRule, GraphBuilder, Strength};
use phex::infer::*;
use phex::model::Model;
use phex::testkit::{Random, RandomGraph, Shape, Strengths};
use phex_cuda::{BlockRows, CudaEngine, Device, DeviceNumber};

fn dump<T: DeviceNumber>(gpu: &CudaEngine, labels: usize, rows: usize, name: &str) {
    let mut random = Random::new(5);
    let scores: Vec<T> =
        random.normals(labels * rows).iter().map(|&x| T::from_f64(2.0 * x)).collect();
    let entry = |x: f64| match x {
        _ if x < 0.05 => Evidence::On,
        _ if x < 0.15 => Evidence::Off,
        _ => Evidence::Unknown,
    };
    let evidence: Vec<Evidence> = (0..labels * rows).map(|_| entry(random.next())).collect();
    for known in [false, true] {
        let block = Block::new(labels, &scores);
        let block = if known { block.with_evidence(&evidence) } else { block };
        let p = gpu.run(&block).unwrap();
        let mut hash = 0xcbf2_9ce4_8422_2325u64;
        let mut add = |x: u64| hash = (hash ^ x).wrapping_mul(0x100_0000_01b3);
        for m in &p.marginals {
            add(m.to_f64().to_bits());
        }
        for z in &p.log_partition {
            add(z.to_bits());
        }
        let answered = p.status.iter().filter(|s| **s == RowStatus::Answered).count();
        println!("{name} {known} {answered} {hash:016x} {:?}", p.log_partition[0]);
    }
}

fn main() {
    let device = Device::open(0).unwrap();
    let mut tried = 0;
    for seed in 0..9u64 {
        let strengths = [Strengths::Hard, Strengths::Soft, Strengths::Mixed][seed as usize % 3];
        let rule = Some(ExclusionRule::Siblings);
        let base = RandomGraph::new(9 + 6 * seed as usize, 1000 + seed);
        let graph =
            RandomGraph { shape: Shape::Tree, strengths, rule, one_of: seed as usize % 4, ..base };
        let Ok(model) = Model::new(&graph.draw()) else { continue };
        for method in [Method::Family, Method::States, Method::Lbp, Method::ForestBp] {
            if method == Method::States && model.len() > 20 {
                continue;
            }
            for groups in [GroupForm::Pairs, GroupForm::Cardinality] {
                if groups == GroupForm::Cardinality && method != Method::Lbp {
                    continue;
                }
                for damping in [0.0, 0.3] {
                    if damping > 0.0 && !matches!(method, Method::Lbp) {
                        continue;
                    }
                    let mut options = Options { method, ..Options::default() };
                    options.messages.schedule = MessageOrder::Flooding;
                    options.messages.groups = groups;
                    options.messages.damping = damping;
                    options.messages.iterations = 12;
                    options.sampling.check = 0;
                    let Ok(engine) = Engine::compile(model.clone(), &options) else { continue };
                    let forms: &[BlockRows] = if method == Method::Family {
                        &[BlockRows::Auto, BlockRows::Global, BlockRows::Fixed(8)]
                    } else {
                        &[BlockRows::Auto]
                    };
                    for &form in forms {
                        let Ok(gpu) = CudaEngine::with_block_rows(&device, &engine, form) else {
                            continue;
                        };
                        let name = format!("{seed} {method} {groups:?} {damping} {form:?}");
                        dump::<f32>(&gpu, model.len(), 37, &format!("{name} f32"));
                        dump::<f64>(&gpu, model.len(), 37, &format!("{name} f64"));
                        tried += 1;
                    }
                }
            }
        }
    }
    for one_of in [false, true] {
        let mut builder = GraphBuilder::new();
        for family in 0..14usize {
            let parent = format!("f{family}");
            builder.hierarchy("root", &parent, Some(Strength::U(0.5)));
            for child in 0..[1, 2, 3, 5, 6, 7, 8, 9, 12, 17, 24, 30, 41, 60][family] {
                let child_name = format!("{parent}c{child}");
                builder.hierarchy(&parent, &child_name, Some(Strength::U(0.5)));
                if child % 5 < 4 {
                    builder.hierarchy(
                        &child_name,
                        &format!("{child_name}g"),
                        Some(Strength::U(0.5)),
                    );
                }
            }
        }
        builder.exclusion_rule(ExclusionRule::Siblings, Some(Strength::U(0.3)));
        if one_of {
            builder.one_of_leaves("leaves");
        }
        let model = Model::new(&builder.build().unwrap()).unwrap();
        let engine = Engine::compile(
            model.clone(),
            &Options { method: Method::Family, ..Options::default() },
        )
        .unwrap();
        for form in [BlockRows::Global, BlockRows::Fixed(2), BlockRows::Fixed(8)] {
            let gpu = CudaEngine::with_block_rows(&device, &engine, form).unwrap();
            dump::<f32>(&gpu, model.len(), 21, &format!("large {one_of} {form:?} f32"));
            dump::<f64>(&gpu, model.len(), 21, &format!("large {one_of} {form:?} f64"));
        }
    }
    for (seed, classes, attributes, kinds) in
        [(1, 5, 7, 1.0), (2, 40, 33, 3.0), (3, 20, 50, 1000.0)]
    {
        let mut random = Random::new(seed);
        let mut builder = GraphBuilder::new();
        let names: Vec<String> = (0..classes).map(|class| format!("c{class}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        for attribute in 0..attributes {
            let attribute = format!("a{attribute}");
            builder.label(&attribute);
            for class in &names {
                let kind = (random.next() * kinds).floor() / kinds;
                let soft = random.next() >= 0.1;
                let strength = soft.then_some(Strength::U(0.1 + 0.8 * kind));
                match random.next() {
                    x if x < 0.3 => {
                        builder.hierarchy(&attribute, class, strength);
                    }
                    x if x < 0.6 => {
                        builder.exclusion(class, &attribute, strength);
                    }
                    _ => {}
                }
            }
        }
        builder.one_of("class", names.iter().copied(), None);
        let model = Model::new(&builder.build().unwrap()).unwrap();
        let engine =
            Engine::compile(model.clone(), &Options { method: Method::Star, ..Options::default() })
                .unwrap();
        let gpu = CudaEngine::new(&device, &engine).unwrap();
        dump::<f32>(&gpu, model.len(), 7, &format!("star {seed} f32"));
        dump::<f64>(&gpu, model.len(), 7, &format!("star {seed} f64"));
    }
    println!("tried {tried}");
}
