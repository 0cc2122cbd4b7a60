//! Codes of evidence in device memory: 1, 0 and −1, and nothing else.

use phex::graph::{ExclusionRule, GraphBuilder};
use phex::infer::{Engine, MessageOrder, Method, Options};
use phex::model::Model;
use phex_cuda::{
    CudaEngine, Device, DeviceCall, DeviceMemory, DeviceRows, DeviceStatus, Error, LossBatch,
    Precision, Workspace,
};

use crate::devices::device;

const CODES: [i8; 6] = [1, 0, -1, 2, -2, 127];

/// A class with two attributes, which every engine on the device can handle.
fn engine(method: Method) -> Engine {
    let mut builder = GraphBuilder::new();
    builder.hierarchy("animal", "dog", None).hierarchy("animal", "cat", None);
    builder.exclusion_rule(ExclusionRule::Siblings, None);
    if method == Method::Star {
        builder.one_of("class", ["dog", "cat"], None);
    }
    let mut options = Options { method, ..Options::default() };
    options.messages.schedule = MessageOrder::Flooding;
    Engine::compile(Model::new(&builder.build().unwrap()).unwrap(), &options).unwrap()
}

/// Runs `enqueue(scores, evidence, results, status)` on a row for each code, with the code as the evidence of its second label.
fn statuses(
    device: &Device,
    labels: usize,
    enqueue: impl Fn([u64; 4]) -> Result<(), Error>,
) -> Vec<DeviceStatus> {
    let scores = vec![0.5f32; CODES.len() * labels];
    let codes: Vec<i8> = CODES
        .iter()
        .flat_map(|&code| (0..labels).map(move |at| if at == 1 { code } else { -1 }))
        .collect();
    let scores = DeviceMemory::of(device, &scores).unwrap();
    let evidence = DeviceMemory::of(device, &codes).unwrap();
    let results = DeviceMemory::new(device, 8 * CODES.len() * (labels + 1)).unwrap();
    let status = DeviceMemory::new(device, 4 * CODES.len()).unwrap();
    enqueue([&scores, &evidence, &results, &status].map(DeviceMemory::address)).unwrap();
    let mut found = vec![-1i32; CODES.len()];
    status.read(device.stream(), &mut found).unwrap();
    found.into_iter().map(DeviceStatus::from_code).collect()
}

#[test]
fn other_codes_of_evidence_are_refused() {
    let Some(device) = device() else { return };
    let [good, bad] = [DeviceStatus::Answered, DeviceStatus::BadScore];
    let expected = vec![good, good, good, bad, bad, bad];
    let rows = CODES.len();
    let mut losses = 0;
    for method in [Method::Family, Method::States, Method::Star, Method::Lbp, Method::ForestBp] {
        let gpu = CudaEngine::new(&device, &engine(method)).unwrap();
        let precision = Precision::Single;
        let bytes = gpu.infer_bytes(rows, precision).max(gpu.joint_loss_bytes(rows, precision));
        let bytes = bytes.max(gpu.marginal_loss_bytes(rows, precision));
        let room = DeviceMemory::new(&device, bytes).unwrap();
        let workspace = Workspace { address: room.address(), bytes };
        let call = DeviceCall { precision, workspace, stream: device.stream() };
        let found = statuses(&device, gpu.labels(), |[scores, evidence, marginals, status]| {
            let log_partition = marginals + 8 * (rows * gpu.labels()) as u64;
            let rows = DeviceRows { scores, evidence, marginals, log_partition, status, rows };
            // SAFETY: the memory has the sizes of the rows and lives until the status has been read.
            unsafe { gpu.infer(rows, call) }
        });
        assert_eq!(found, expected, "{method}");
        for is_joint in [true, false] {
            if !is_joint && !gpu.is_exact() {
                continue;
            }
            let found = statuses(&device, gpu.labels(), |[scores, evidence, gradient, status]| {
                let losses = gradient + 8 * (rows * gpu.labels()) as u64;
                let batch =
                    LossBatch { scores, evidence, weights: 0, losses, gradient, status, rows };
                // SAFETY: as above.
                unsafe {
                    if is_joint {
                        gpu.joint_loss(batch, call)
                    } else {
                        gpu.marginal_loss(batch, call)
                    }
                }
            });
            assert_eq!(found, expected, "loss of {method}, joint: {is_joint}");
            losses += 1;
        }
    }
    // The marginal loss needs an exact engine: three of the five.
    assert_eq!(losses, 5 + 3);
}
