//! What is kept of a card from one start to the next: checks that it passed, and what its driver compiled. Software
//! plays the card, and is checked as one.
#![cfg(feature = "gpu")]
#![allow(clippy::unwrap_used)] // a failure here fails the test

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::*;
use kernels::backends::{Card, Check};
use kernels::gpu::{Device, Gpu, Uses, adapters};
use kernels::*;
use test_support::{Missing, skip};
use weights::DType;

const CAPACITY: Capacity =
    Capacity { n_pages: 4, n_window_pages: 0, n_aged_pages: 0, max_rows: 8, max_outputs: 8, n_states: 0 };

fn graph(dtype: DType) -> Arc<Graph> {
    Arc::new(model(Shape { dtype, kv: KvDType::F16, n_layers: 1, ..SMALL }, 21))
}

fn prepare(device: &Arc<Device>, dtype: DType) -> Result<(), KernelError> {
    Gpu::new(device.clone()).prepare(&graph(dtype), DeviceId(0), CAPACITY, Retain::Needed)
}

fn open(known: &Notebook) -> Arc<Device> {
    Device::open_with(&Card::Any, Uses::default(), known, Check::All).unwrap()
}

/// As the next start finds it.
fn again(known: &Notebook) -> Notebook {
    Notebook::new(known.all())
}

#[test]
fn what_passed_a_check_is_not_checked_again_and_what_failed_it_stays_out_of_use() {
    let key = adapters()[0].key();
    let known = Notebook::default();
    prepare(&open(&known), DType::Q8_0).unwrap();
    let right = known.of(&key).right;
    for check in ["row by row", "product of Q8_0", "attention over F16", "a layer of Q8_0 over F16"] {
        assert!(right.contains(check), "{right:?}");
    }
    // kernels that are all known to be right are not run: nothing new is noted
    let next = again(&known);
    prepare(&open(&next), DType::Q8_0).unwrap();
    assert_eq!(next.of(&key).right, right);
    // a graph that uses another one has that checked
    prepare(&open(&next), DType::F16).unwrap();
    let more: Vec<String> = next.of(&key).right.difference(&right).cloned().collect();
    assert_eq!(more, ["a layer of F16 over F16", "product of F16"]);

    next.change(&key, |known| known.wrong = Some("product of Q8_0".into()));
    let error = prepare(&open(&next), DType::Q8_0).unwrap_err();
    assert_eq!(error.code(), "kernels.gpu_wrong");
    assert!(error.to_string().contains("product of Q8_0"), "{error}");
    // another driver is another card
    let other = CardKey { driver: "another".into(), ..key.clone() };
    let moved = BTreeMap::from([(other, next.of(&key))]);
    prepare(&open(&Notebook::new(moved)), DType::Q8_0).unwrap();
}

#[test]
fn software_is_checked_only_where_it_is_wanted() {
    let known = Notebook::default();
    let device = Device::open_with(&Card::Any, Uses::default(), &known, Check::Cards).unwrap();
    prepare(&device, DType::F32).unwrap();
    let is_hardware = adapters()[0].kind.is_hardware();
    assert_eq!(known.of(&adapters()[0].key()).right.is_empty(), !is_hardware);
}

#[test]
fn what_a_driver_compiled_goes_to_the_next_start_and_damaged_it_does_no_harm() {
    let key = adapters()[0].key();
    let known = Notebook::default();
    let device = Device::open_with(&Card::Any, Uses::default(), &known, Check::Cards).unwrap();
    let Some(empty) = device.compiled() else {
        assert!(!device.has_cache(), "a driver that keeps what it compiles says what it is");
        skip!(Missing::Gpu, "the driver has no cache of pipelines");
    };
    prepare(&device, DType::F32).unwrap();
    let compiled = known.of(&key).pipelines.expect("it is noted once kernels are there");
    assert!(compiled.len() >= empty.len());
    let next = Device::open_with(&Card::Any, Uses::default(), &again(&known), Check::Cards).unwrap();
    assert_eq!(next.compiled().unwrap().len(), compiled.len(), "all of it, before a kernel was made");
    let mut damaged = compiled.to_vec();
    damaged[4] ^= 0xff;
    known.change(&key, |known| known.pipelines = Some(damaged.into()));
    let next = Device::open_with(&Card::Any, Uses::default(), &again(&known), Check::Cards).unwrap();
    // no code is left of it (Mesa's software never keeps any), and the card works
    assert_eq!(next.compiled().unwrap().len(), empty.len());
    prepare(&next, DType::F32).unwrap();
}

#[test]
fn half_precision_is_checked_by_itself_and_where_it_errs_floats_are_left() {
    let key = adapters()[0].key();
    let known = Notebook::default();
    let open = |precision, known| {
        Device::open_with(&Card::Any, Uses { precision, ..Uses::default() }, known, Check::All)
    };
    let halved = open(Precision::F16, &known).expect("Mesa's software and every card of ten years have it");
    prepare(&halved, DType::Q8_0).unwrap();
    let right = known.of(&key).right;
    for check in
        ["row by row", "product of Q8_0 in f16", "attention over F16", "a layer of Q8_0 over F16 in f16"]
    {
        assert!(right.contains(check), "{right:?}");
    }
    // what passed in floats says nothing of halves, and what erred in halves nothing of floats
    let next = again(&known);
    next.change(&key, |known| {
        known.imprecise.insert(Precision::F16.name().into(), "product of Q8_0".into());
    });
    let error = prepare(&open(Precision::F16, &next).unwrap(), DType::Q8_0).unwrap_err();
    assert_eq!(error.code(), "kernels.gpu_precision");
    assert!(error.to_string().contains("product of Q8_0"), "{error}");
    prepare(&open(Precision::F32, &next).unwrap(), DType::Q8_0).unwrap();
    assert!(next.of(&key).right.contains("product of Q8_0"));
}

/// Software has no cooperative matrices; a card that has them computes what the specification says.
#[test]
fn a_card_without_matrices_says_so() {
    let known = Notebook::default();
    let uses = Uses { precision: Precision::Matrices, ..Uses::default() };
    match Device::open_with(&Card::Any, uses, &known, Check::All) {
        Ok(device) => prepare(&device, DType::Q8_0).unwrap(),
        Err(error) => {
            assert_eq!(error.code(), "kernels.gpu_precision");
            assert!(error.to_string().contains("no cooperative matrices"), "{error}");
        }
    }
}

/// Logits of a text over several chunks of attention, most of it in tiles, the rest one token after another, as bits.
fn bits(device: &Arc<Device>, dtype: DType) -> Vec<u32> {
    let graph = model(Shape { dtype, kv: KvDType::F16, n_layers: 1, ..SMALL }, 21);
    let capacity = Capacity { n_pages: 20, max_rows: 64, max_outputs: 64, ..CAPACITY };
    let mut executor = Executor::new(graph, vec![Box::new(Gpu::new(device.clone()))], capacity).unwrap();
    let text = tokens(9 * 64 + 4, SMALL.n_vocab, 3);
    let pages: Vec<u32> = (0..20).collect();
    let chunks = [&[64; 9][..], &[1; 4]].concat();
    run_chunks(&mut executor, &text, &pages, &chunks).iter().map(|x| x.to_bits()).collect()
}

#[test]
fn every_shape_gives_the_same_bits_and_the_search_for_the_fastest_ends() {
    let key = adapters()[0].key();
    let known = Notebook::default();
    let device = open(&known);
    let mut gpu = Gpu::new(device.clone());
    gpu.prepare(&graph(DType::Q8_0), DeviceId(0), CAPACITY, Retain::Needed).unwrap();
    // a clock of its own: every look takes as long, so that the first shapes stay, and long enough for one to do
    let ticks = std::cell::Cell::new(0);
    let now = || {
        ticks.set(ticks.get() + 1);
        std::time::Duration::from_secs(ticks.get())
    };
    let mut n_steps = 1;
    while gpu.tune(&now).unwrap() {
        n_steps += 1;
        assert!(n_steps < 32, "it is bounded");
    }
    let tuned = known.of(&key).tuned;
    assert_eq!(tuned.len(), 3, "one format of products: {tuned:?}");
    assert_eq!(tuned["product of one row of q8_0"], "64 lanes");
    assert_eq!(tuned["product of many rows of q8_0"], "128 by 64");
    assert_eq!(tuned["attention of few rows"], "from 2 chunks");
    // what is known is not looked for again
    gpu.prepare(&graph(DType::Q8_0), DeviceId(0), CAPACITY, Retain::Needed).unwrap();
    assert!(!gpu.tune(&now).unwrap());

    let expected = bits(&device, DType::Q8_0);
    for (subject, shape) in [
        ("product of one row of q8_0", "128 lanes"),
        ("product of one row of q8_0", "256 lanes"),
        ("product of one row of q8_0", "a shape of another version"),
        ("product of many rows of q8_0", "64 by 64"),
        ("product of many rows of q8_0", "64 by 32"),
        ("attention of few rows", "from 4 chunks"),
    ] {
        known.change(&key, |known| _ = known.tuned.insert(subject.into(), shape.into()));
        assert_eq!(bits(&device, DType::Q8_0), expected, "{subject}: {shape}");
    }
}
