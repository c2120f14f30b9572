//! Sequences whose older pages are requantized: attention reads both formats as the specification does, at every level,
//! and the result of a token still depends only on its sequence.
#![allow(clippy::unwrap_used)] // a failure here fails the test

use crate::common::*;
use kernels::cpu::isa::IsaLevel;
use kernels::ops::kv_rows::{KvRows, requantized_page};
use kernels::*;
use weights::DType;

const CAPACITY: Capacity = Capacity {
    n_pages: 24,
    n_requantized_pages: 20,
    n_window_pages: 0,
    max_rows: 64,
    max_outputs: 64,
    n_states: 0,
};

/// Tokens before requantization, and those after it.
const N_OLD: usize = 590;
const N_NEW: usize = 100;

/// Quantized keys are multiplied with 15-bit queries, and sums have another order.
const ROUNDED: f32 = 3e-4;

/// Pages of a sequence in some order, of which the first 16 are requantized.
fn tables() -> (Vec<u32>, Vec<u32>) {
    let exact: Vec<u32> = (0..22).map(|i| (i * 7 + 3) % 24).collect();
    let mut mixed = exact.clone();
    for (i, page) in mixed.iter_mut().take(16).enumerate() {
        *page = 24 + (i as u32 * 3 + 1) % 20;
    }
    (exact, mixed)
}

/// An executor that holds the first `N_OLD` tokens, with the pages of the second table: computed by the specification.
struct Old {
    pages: Vec<(usize, u32, Vec<u8>)>,
    mixed: Vec<u32>,
    /// first layer of a page that is not requantized
    exact: Vec<u8>,
}

impl Old {
    fn of(graph: &Graph, tokens: &[u32]) -> Self {
        let (exact, mixed) = tables();
        let mut executor = Executor::new(graph.clone(), vec![scalar()], CAPACITY).unwrap();
        let chunks = [&[64; N_OLD / 64][..], &[N_OLD % 64]].concat();
        run_chunks(&mut executor, &tokens[..N_OLD], &exact, &chunks);
        for (&from, &to) in exact.iter().zip(&mixed).filter(|(from, to)| from != to) {
            executor.requantize_kv_page(from, to).unwrap();
            executor.release_kv_page(from).unwrap();
        }
        let mut pages = Vec::new();
        for layer in 0..graph.kv().layers.len() {
            for &page in &mixed {
                pages.push((layer, page, executor.kv_page(layer, page).unwrap().into_owned()));
            }
        }
        let exact = executor.kv_page(0, mixed[18]).unwrap().into_owned();
        Self { pages, mixed, exact }
    }

    /// Logits of the remaining tokens on a backend.
    fn go_on(&self, graph: &Graph, backend: Box<dyn Backend>, tokens: &[u32], chunks: &[usize]) -> Vec<f32> {
        let mut executor = Executor::new(graph.clone(), vec![backend], CAPACITY).unwrap();
        for (layer, page, bytes) in &self.pages {
            executor.write_kv_page(*layer, *page, bytes).unwrap();
        }
        let (mut out, mut at) = (Vec::new(), N_OLD);
        for &n in chunks {
            let positions: Vec<u32> = (at as u32..(at + n) as u32).collect();
            let outputs: Vec<u32> = (0..n as u32).collect();
            let batch = Batch {
                tokens: &tokens[at..at + n],
                positions: &positions,
                kinds: &[],
                given: GivenRows::NONE,
                sequence: &vec![0; n],
                page_tables: &[&self.mixed],
                window_tables: &[],
                states: &[],
                outputs: &outputs,
            };
            executor.run(&batch).unwrap();
            out.extend_from_slice(executor.output());
            at += n;
        }
        out
    }
}

#[test]
fn every_level_reads_both_kinds_as_the_specification_does() {
    let r = &mut Random(7);
    for (kv, window, n_heads, n_kv_heads, head_dim) in [
        (KvDType::F32, None, 8, 2, 32),
        (KvDType::F16, None, 8, 2, 64),
        (KvDType::F16, Some(300), 6, 3, 32),
        (KvDType::F16, None, 40, 1, 96),
        (KvDType::F32, Some(100), 4, 4, 128),
    ] {
        let shape = Shape { kv, window, n_heads, n_kv_heads, head_dim, ..SMALL };
        let graph = model(shape, 5);
        let tokens = tokens(N_OLD + N_NEW, shape.n_vocab, 3);
        let old = Old::of(&graph, &tokens);
        let expected = old.go_on(&graph, scalar(), &tokens, &[50, 50]);
        assert!(expected.iter().all(|x| x.is_finite()));
        for level in IsaLevel::present() {
            let what = format!("{kv:?} {window:?} {n_heads}/{n_kv_heads} of {head_dim} {level}");
            let first = old.go_on(&graph, cpu(1, level), &tokens, &[50, 50]);
            let far = distance(&expected, &first);
            assert!(far < ROUNDED, "{what}: {far}");
            for threads in [2, 3] {
                let chunks = random_chunks(r, N_NEW, [4, 64][threads - 2]);
                let again = old.go_on(&graph, cpu(threads, level), &tokens, &chunks);
                assert!(first == again, "{what}: {threads} threads, chunks {chunks:?}");
            }
        }
    }
}

/// Equals the specification, and gives the same bits for any batches: with few rows attention is split.
#[cfg(feature = "gpu")]
#[test]
fn a_card_reads_both_kinds_as_the_specification_does() {
    let open = || kernels::gpu::GpuContext::open(&kernels::GpuSelector::Any);
    let device = open().expect("mesa-vulkan-drivers, or the driver of a card: `make setup`");
    let card = || -> Box<dyn Backend> { Box::new(kernels::gpu::Gpu::new(device.clone())) };
    for (kv, window, n_heads, n_kv_heads, head_dim) in
        [(KvDType::F16, None, 8, 2, 64), (KvDType::F32, Some(300), 6, 3, 32), (KvDType::F16, None, 12, 1, 96)]
    {
        let shape = Shape { kv, window, n_heads, n_kv_heads, head_dim, ..SMALL };
        let graph = model(shape, 5);
        let tokens = tokens(N_OLD + N_NEW, shape.n_vocab, 3);
        let old = Old::of(&graph, &tokens);
        let expected = old.go_on(&graph, scalar(), &tokens, &[50, 50]);
        let first = old.go_on(&graph, card(), &tokens, &[50, 50]);
        let far = distance(&expected, &first);
        assert!(far < ROUNDED, "{kv:?} {window:?} {n_heads}/{n_kv_heads} of {head_dim}: {far}");
        let again = old.go_on(&graph, card(), &tokens, &[1, 8, 3, 38, 2, 48]);
        assert!(first == again, "{kv:?} {window:?}");
        // it requantizes pages as other backends do
        let mut executor = Executor::new(graph.clone(), vec![card()], CAPACITY).unwrap();
        let mut other = Executor::new(graph, vec![scalar()], CAPACITY).unwrap();
        for executor in [&mut executor, &mut other] {
            executor.write_kv_page(0, 3, &old.exact).unwrap();
            executor.requantize_kv_page(3, 43).unwrap();
        }
        assert!(executor.kv_page(0, 43).unwrap() == other.kv_page(0, 43).unwrap());
        assert!(executor.kv_page(0, 3).unwrap() == old.exact);
    }
}

/// In any order of pages, with and without memory for more.
#[cfg(feature = "gpu")]
#[test]
fn a_card_makes_room_for_what_has_aged_as_it_comes() {
    let graph = model(Shape { kv: KvDType::F16, ..SMALL }, 5);
    let capacity = Capacity { n_requantized_pages: 200, ..CAPACITY };
    let n_exact = CAPACITY.n_pages as u32;
    for (max_binding_bytes, most) in [(None, 200), (Some(550_000), 64)] {
        let uses = kernels::gpu::GpuOptions { max_binding_bytes, ..Default::default() };
        let device = kernels::gpu::GpuContext::open_using(&kernels::GpuSelector::Any, uses).unwrap();
        let card: Box<dyn Backend> = Box::new(kernels::gpu::Gpu::new(device));
        let mut executor = Executor::new(graph.clone(), vec![card], capacity).unwrap();
        let bytes =
            |executor: &Executor, page: u32| vec![page as u8; executor.kv_layout(0, page).page_bytes()];
        executor.write_kv_page(0, 3, &bytes(&executor, 3)).unwrap();
        assert!(executor.kv_page(0, n_exact).unwrap().iter().all(|byte| *byte == 0), "nothing is there yet");
        let pages = [0, 63, 64, 199].map(|at| n_exact + at);
        for page in pages {
            let written = executor.write_kv_page(0, page, &bytes(&executor, page));
            match page < n_exact + most {
                true => written.unwrap(),
                false => assert_eq!(written.unwrap_err().code(), "kernels.gpu_memory", "{page}"),
            }
            // existing pages are intact in any case
            let held = |before: &u32| *before <= page && *before < n_exact + most;
            for before in [3].into_iter().chain(pages).filter(held) {
                let expected = bytes(&executor, before);
                assert!(*executor.kv_page(0, before).unwrap() == *expected, "{before} after {page}");
            }
        }
    }
}

/// With requantization few pages are unquantized at a time: they are allocated as they are used, and existing pages are
/// kept. This holds for pages written token by token, as a whole or as a copy.
#[cfg(feature = "gpu")]
#[test]
fn a_card_makes_room_for_what_is_exact_as_it_comes() {
    let shape = Shape { kv: KvDType::F16, ..SMALL };
    let (graph, text) = (model(shape, 5), tokens(150, shape.n_vocab, 3));
    // the first two are allocated up front, and each of the others exceeds the allocation at its time
    let pages = [3, 60, 70, 200, 399];
    let run = |n_requantized_pages: usize| {
        let capacity = Capacity { n_pages: 400, n_requantized_pages, ..CAPACITY };
        let device = kernels::gpu::GpuContext::open(&kernels::GpuSelector::Any).unwrap();
        let card: Box<dyn Backend> = Box::new(kernels::gpu::Gpu::new(device));
        let mut executor = Executor::new(graph.clone(), vec![card], capacity).unwrap();
        if n_requantized_pages > 0 {
            let aged = vec![7; executor.kv_layout(1, 403).page_bytes()];
            executor.write_kv_page(1, 403, &aged).unwrap();
        }
        let mut all = Vec::new();
        for n in [1, 3, 4, 5] {
            all.extend(run_chunks(&mut executor, &text[..30 * n], &pages[..n], &vec![30; n]));
        }
        executor.copy_kv_page(Retention::All, 200, 390).unwrap();
        let copied = executor.kv_page(1, 390).unwrap().into_owned();
        assert!(copied == *executor.kv_page(1, 200).unwrap() && copied.iter().any(|byte| *byte != 0));
        if n_requantized_pages > 0 {
            assert!(executor.kv_page(1, 403).unwrap().iter().all(|byte| *byte == 7), "it moved along");
        }
        all.extend(copied.into_iter().map(f32::from));
        all
    };
    assert!(run(0) == run(20));
}

/// Requantization changes later results, but only slightly.
#[test]
fn aged_pages_are_read_and_hold_nearly_the_same() {
    let shape = Shape { kv: KvDType::F16, dtype: DType::F32, ..SMALL };
    let graph = model(shape, 5);
    let tokens = tokens(N_OLD + N_NEW, shape.n_vocab, 3);
    let old = Old::of(&graph, &tokens);
    let aged = old.go_on(&graph, cpu(2, IsaLevel::detect()), &tokens, &[50, 50]);
    let mut executor = Executor::new(graph, vec![cpu(2, IsaLevel::detect())], CAPACITY).unwrap();
    let chunks = [&[64; N_OLD / 64][..], &[N_OLD % 64], &[50, 50]].concat();
    let exact = run_chunks(&mut executor, &tokens, &tables().0, &chunks);
    let far = distance(&exact[N_OLD * shape.n_vocab..], &aged);
    // the worst of ten thousand logits, of random weights
    assert!(far > 1e-4 && far < 0.1, "{far}");
}

#[test]
fn a_page_loses_half_a_step_at_most() {
    let r = &mut Random(3);
    for dtype in [KvDType::F32, KvDType::F16] {
        let layout = KvLayerLayout { n_kv_heads: 2, head_dim: 64, precision: dtype.both(), window: None };
        let aged = layout.requantized().unwrap();
        assert!(aged.requantized().is_none(), "once is enough");
        let mut rows = KvRows::zeroed(layout, PAGE_LEN);
        for (head, at) in (0..2).flat_map(|head| (0..PAGE_LEN).map(move |at| (head, at))) {
            rows.key_mut(head, at).iter_mut().for_each(|x| *x = r.normal());
            rows.value_mut(head, at).iter_mut().for_each(|x| *x = r.normal() * 100.0);
        }
        let page = rows.pages().concat();
        let (before, after) = (held(layout, &page), held(aged, &requantized_page(layout, &page)));
        for (head, at) in (0..2).flat_map(|head| (0..PAGE_LEN).map(move |at| (head, at))) {
            for (a, b) in
                [(before.key(head, at), after.key(head, at)), (before.value(head, at), after.value(head, at))]
            {
                for (a, b) in a.chunks(32).zip(b.chunks(32)) {
                    let largest = test_support::largest(a.iter().map(|x| x.abs()));
                    // half a step of 127, and the scale's own rounding to half precision
                    let most = largest / 254.0 + largest / 1000.0;
                    assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() <= most), "{dtype:?}");
                }
            }
        }
    }
    let odd = KvLayerLayout { n_kv_heads: 1, head_dim: 80, precision: KvDType::F16.both(), window: None };
    assert!(odd.requantized().is_none(), "heads are no whole blocks");
    assert!(
        KvLayerLayout { head_dim: 64, window: Some(9), ..odd }.requantized().is_none(),
        "windows let go anyway"
    );
    assert!(
        KvLayerLayout { head_dim: 64, precision: KvDType::Q4_0.both(), ..odd }.requantized().is_none(),
        "nothing is saved"
    );
}

/// Rows of one page.
fn held(layout: KvLayerLayout, page: &[u8]) -> KvRows {
    // aligned as in a KV store
    let mut room = vec![0.0f32; page.len().div_ceil(4)];
    let bytes = kernels::cpu::arena::bytes_of_mut(&mut room);
    bytes[..page.len()].copy_from_slice(page);
    KvRows::read(layout, PAGE_LEN, std::iter::once(&bytes[..page.len()]))
}

#[test]
fn what_has_aged_is_read_only() {
    let mut executor = Executor::new(model(SMALL, 2), vec![scalar()], CAPACITY).unwrap();
    let good = Batch {
        tokens: &[1, 2],
        positions: &[32, 33],
        kinds: &[],
        given: GivenRows::NONE,
        sequence: &[0, 0],
        page_tables: &[&[24, 1]],
        window_tables: &[],
        states: &[],
        outputs: &[1],
    };
    executor.run(&good).unwrap();
    for table in [&[1u32, 24][..], &[44, 1], &[NO_PAGE, 1]] {
        let error = executor.run(&Batch { page_tables: &[table], ..good }).unwrap_err();
        assert_eq!(error.code(), "kernels.batch", "{table:?}");
    }
    assert!(executor.requantize_kv_page(24, 25).is_err() && executor.requantize_kv_page(1, 2).is_err());
    assert!(executor.requantize_kv_page(1, 44).is_err() && executor.requantize_kv_page(1, 43).is_ok());
    assert!(executor.copy_kv_page(Retention::All, 24, 1).is_err());
    assert!(executor.release_kv_page(24).is_err() && executor.release_kv_page(23).is_ok());
    let (own, aged) = (executor.kv_page(0, 1).unwrap().len(), executor.kv_page(0, 24).unwrap().len());
    assert_eq!(own * 34, aged * 128, "32 floats in 34 bytes");
}
