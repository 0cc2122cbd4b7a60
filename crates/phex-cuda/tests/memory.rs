//! What happens when the memory of the GPU is nearly full. A program of its own, because it takes memory that other tests need.

use phex::graph::{GraphBuilder, Strength};
use phex::infer::{Block, Engine, Method, Options};
use phex::model::Model;
use phex::testkit::Random;
use phex_cuda::{CudaEngine, Device, DeviceMemory, Error};

/// Takes all memory except a number of bytes.
fn take_all_but(device: &Device, left: usize) -> Vec<DeviceMemory> {
    let mut taken = Vec::new();
    let mut piece = 1usize << 40;
    while piece >= 1 << 12 {
        let (free, _) = device.memory().expect("a device that answers");
        match free.checked_sub(left).filter(|&spare| spare >= piece) {
            Some(_) => match DeviceMemory::new(device, piece) {
                Ok(memory) => taken.push(memory),
                // The driver allocates memory in larger pieces than requested.
                Err(_) => piece /= 2,
            },
            None => piece /= 2,
        }
    }
    taken
}

#[test]
fn rows_go_in_parts_and_the_error_says_what_is_missing() {
    let device = match Device::open(0) {
        Ok(device) => device,
        Err(error) => return phex::testkit::skip(&format!("there is no CUDA device: {error}")),
    };
    let mut builder = GraphBuilder::new();
    for pair in 0..500 {
        builder.hierarchy(&format!("a{pair}"), &format!("b{pair}"), Some(Strength::U(0.5)));
    }
    let model = Model::new(&builder.build().unwrap()).unwrap();
    let options = Options { method: Method::Family, ..Options::default() };
    let engine = Engine::compile(model, &options).unwrap();
    let gpu = CudaEngine::new(&device, &engine).unwrap();
    let (labels, rows) = (1000, 6000);
    let scores: Vec<f32> =
        Random::new(3).normals(labels * rows).iter().map(|&score| score as f32).collect();
    let block = Block::new(labels, &scores);
    let whole = gpu.run(&block).unwrap();
    {
        // Scores and marginals of all rows take 48 MB, in addition to working memory.
        let _taken = take_all_but(&device, 40 << 20);
        let parts = gpu.run(&block).unwrap();
        assert_eq!(parts.marginals, whole.marginals);
        assert_eq!(parts.log_partition, whole.log_partition);
    }
    let _taken = take_all_but(&device, 0);
    match gpu.run(&block) {
        Err(error @ Error::OutOfMemory { .. }) => {
            let text = error.to_string();
            assert!(text.contains("out of memory") && text.contains("fewer rows"), "{text}");
        }
        other => panic!("{:?}", other.map(|posterior| posterior.status.len())),
    }
}
