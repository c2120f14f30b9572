//! A model on several devices gives the same bits as on one, for each kind of sequence state.

use std::path::Path;
use std::sync::Arc;

use kernels::GpuSelector;
use weights::WeightFile;

use super::*;
use crate::TokenId;
use crate::model::{Chunk, LogitsSelection};

/// Full attention only, with windows, with recurrent states.
const FAMILIES: [&str; 3] = ["llama", "gemma3", "qwen3_5"];

fn family(name: &str, devices: Devices) -> Model {
    let families = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/reference/families");
    let file = Arc::new(WeightFile::open(&families.join(name)).unwrap());
    let options = LoadOptions {
        devices,
        threads: Some(1),
        max_rows: Some(48),
        max_sequences: 6,
        ctx: Some(256),
        ..LoadOptions::default()
    };
    Model::load(file, &options, &mut |_| {}).unwrap()
}

fn replicas(n: usize) -> Devices {
    Devices::Replicas(vec![BackendKind::Cpu; n])
}

fn text(n: usize, seed: u32) -> Vec<TokenId> {
    (0..n as u32).map(|i| (i * 37 + seed * 101 + i * i % 11) % 100).collect()
}

/// Computes the chunks and returns all selected logits as bits.
fn read(model: &mut Model, chunks: &[(SequenceId, &[TokenId], LogitsSelection)]) -> Vec<u32> {
    let chunk = |&(seq, tokens, logits)| Chunk { seq, tokens, logits };
    let batch: Vec<Chunk> = chunks.iter().map(chunk).collect();
    let logits = model.forward(&batch).unwrap();
    (0..logits.n_rows()).flat_map(|row| logits.row(row).unwrap().iter().map(|x| x.to_bits())).collect()
}

/// Four sequences with forks and runs of all lengths. Whatever `now` does must not change the result.
fn story(model: &mut Model, now: &mut dyn FnMut(&mut Model, &[SequenceId])) -> Vec<Vec<u32>> {
    let [a, b, c] = [(); 3].map(|()| model.new_sequence().unwrap());
    let (long, short) = (text(130, 1), text(7, 2));
    let mut all = vec![
        read(
            model,
            &[
                (a, &long, LogitsSelection::Tail(3)),
                (b, &short, LogitsSelection::All),
                (c, &long[..60], LogitsSelection::None),
            ],
        ),
        read(
            model,
            &[
                (c, &short, LogitsSelection::Last),
                (b, &[5], LogitsSelection::Last),
                (a, &[6, 7], LogitsSelection::Last),
            ],
        ),
    ];
    model.save_rewind_point(b).unwrap();
    let d = model.fork(b).unwrap();
    now(model, &[a, b, c, d]);
    all.push(read(
        model,
        &[
            (d, &long[..50], LogitsSelection::Last),
            (a, &[8], LogitsSelection::Last),
            (b, &short, LogitsSelection::Tail(2)),
        ],
    ));
    model.truncate(b, 8).unwrap();
    let n = model.len(b).unwrap() as u32;
    all.push(vec![n]);
    all.push(read(
        model,
        &[
            (b, &[9, 9], LogitsSelection::All),
            (c, &[1], LogitsSelection::Last),
            (d, &[2], LogitsSelection::Last),
        ],
    ));
    all
}

#[test]
fn several_devices_compute_what_one_computes() {
    for name in FAMILIES {
        let expected = story(&mut family(name, Devices::Cpu), &mut |_, _| {});
        for n in [1, 2, 3] {
            let mut model = family(name, replicas(n));
            assert_eq!((model.n_replicas(), model.info().devices.len()), (n, n));
            let found = story(&mut model, &mut |model, all| {
                let at = |id: usize| model.replica_of(all[id]);
                assert_eq!([0, 1, 2].map(at), [0, 1 % n, 2 % n], "{name}: they are spread");
                assert_eq!(at(3), at(1), "a fork is where its pages are");
            });
            assert!(found == expected, "{name} on {n}");
        }
    }
}

#[test]
fn moving_sequences_take_their_pages_along() {
    for name in FAMILIES {
        let expected = story(&mut family(name, Devices::Cpu), &mut |_, _| {});
        let mut moved = Vec::new();
        let found = story(&mut family(name, replicas(2)), &mut |model, all| {
            moved = all.iter().map(|&id| model.move_to_replica(id, 1 - model.replica_of(id))).collect();
        });
        let is_whole = name == "llama";
        assert_eq!(moved, [is_whole; 4], "{name}: windows and states stay where they are");
        assert!(found == expected, "{name}");
    }
}

fn lost() -> EngineError {
    EngineError::new("kernels.gpu_lost", "it was lost", "")
}

#[test]
fn other_replicas_continue_after_a_failure() {
    for name in FAMILIES {
        let expected = story(&mut family(name, Devices::Cpu), &mut |_, _| {});
        for at in 0..3 {
            let mut model = family(name, replicas(3));
            let found = story(&mut model, &mut |model, _| model.recover(lost(), at, &[]).unwrap());
            assert!(found == expected, "{name} without {at}");
            assert_eq!((model.n_replicas(), model.info().devices.len()), (2, 2));
            let told = GpuIncident { error: lost(), fallback: GpuFallback::OtherReplicas(2) };
            assert_eq!((model.take_gpu_incident(), model.take_gpu_incident()), (Some(told), None));
        }
        let mut model = family(name, replicas(3));
        let found = story(&mut model, &mut |model, _| {
            (0..2).for_each(|at| model.recover(lost(), at, &[]).unwrap());
        });
        assert!(found == expected, "{name}, one is left");
        assert_eq!(
            model.source.options.devices,
            Devices::Split(vec![(BackendKind::Cpu, model.spec.layers.len())])
        );
    }
}

#[test]
fn each_replica_gets_its_named_gpu() {
    let (gpu, cpu) = (BackendKind::Gpu, BackendKind::Cpu);
    let gpus = |n: usize| (0..n).map(GpuSelector::Nth).collect::<Vec<_>>();
    let options = LoadOptions {
        devices: Devices::Replicas(vec![gpu, cpu, gpu]),
        gpus: gpus(2),
        ..LoadOptions::default()
    };
    for (at, kind, named) in [(0, gpu, vec![GpuSelector::Nth(0)]), (2, gpu, vec![GpuSelector::Nth(1)])] {
        let own = options_of_part(&options, at, 4);
        assert_eq!((own.devices, own.gpus), (Devices::Split(vec![(kind, 4)]), named));
    }
    assert_eq!(options_of_part(&options, 1, 4).devices, Devices::Split(vec![(cpu, 4)]));
    let mut left = options.clone();
    assert_eq!(drop_part(&mut left, 0, 4), Some(GpuFallback::OtherReplicas(2)));
    assert_eq!((&left.devices, &left.gpus), (&Devices::Replicas(vec![cpu, gpu]), &vec![GpuSelector::Nth(1)]));
    assert_eq!(drop_part(&mut left, 0, 4), Some(GpuFallback::OtherReplicas(1)));
    assert_eq!((&left.devices, &left.gpus), (&Devices::Split(vec![(gpu, 4)]), &vec![GpuSelector::Nth(1)]));
    assert_eq!(drop_part(&mut left, 0, 4), None);
    assert_eq!(options_of_part(&left, 0, 4), left);
}
