//! Layers with a sliding window need only the pages within it: results equal those with all pages, bit for bit, on every
//! backend and level.
#![allow(clippy::unwrap_used)] // a failure here fails the test

use crate::common::*;
use kernels::cpu::isa::IsaLevel;
use kernels::*;
use weights::DType;

const CAPACITY: Capacity = Capacity {
    n_pages: 16,
    n_window_pages: 6,
    n_requantized_pages: 0,
    max_rows: 20,
    max_outputs: 20,
    n_states: 0,
};

/// Logits after every token, with window pages reused as soon as the window has passed.
fn run_within_window(executor: &mut Executor, tokens: &[u32], window: usize, chunks: &[usize]) -> Vec<f32> {
    let pages: Vec<u32> = (0..CAPACITY.n_pages as u32).rev().collect();
    let mut free: Vec<u32> = (0..CAPACITY.n_window_pages as u32).collect();
    let mut table: Vec<u32> = Vec::new();
    let (mut out, mut at) = (Vec::new(), 0usize);
    for n in chunks {
        for page in table.iter_mut().take((at + 1).saturating_sub(window) / PAGE_LEN) {
            if *page != NO_PAGE {
                free.push(std::mem::replace(page, NO_PAGE));
            }
        }
        while table.len() * PAGE_LEN < at + n {
            table.push(free.remove(0));
        }
        let positions: Vec<u32> = (at as u32..(at + n) as u32).collect();
        let outputs: Vec<u32> = (0..*n as u32).collect();
        let batch = Batch {
            tokens: &tokens[at..at + n],
            positions: &positions,
            kinds: &[],
            given: GivenRows::NONE,
            sequence: &vec![0; *n],
            page_tables: &[&pages],
            window_tables: &[&table],
            states: &[],
            outputs: &outputs,
        };
        executor.run(&batch).unwrap();
        out.extend_from_slice(executor.output());
        at += n;
    }
    out
}

#[test]
fn pages_that_a_window_has_passed_are_not_missed() {
    let r = &mut Random(3);
    for (kv, window) in [(KvDType::F32, 1), (KvDType::F16, 33), (KvDType::Q8_0, 90)] {
        let shape = Shape { dtype: DType::Q8_0, kv, window: Some(window), n_layers: 4, ..SMALL };
        let tokens = tokens(500, shape.n_vocab, 3);
        let (all, few) = (model(shape, 5), model(Shape { retention: Retention::Window, ..shape }, 5));
        let mut backends: Vec<Box<dyn Fn() -> Box<dyn Backend>>> = vec![Box::new(scalar)];
        for level in IsaLevel::present() {
            backends.push(Box::new(move || cpu(2, level)));
        }
        for backend in backends {
            let mut executor = Executor::new(all.clone(), vec![backend()], CAPACITY).unwrap();
            let pages: Vec<u32> = (0..16).collect();
            let chunks = random_chunks(r, tokens.len(), 20);
            let expected = run_chunks(&mut executor, &tokens, &pages, &chunks);
            let mut executor = Executor::new(few.clone(), vec![backend()], CAPACITY).unwrap();
            let chunks = random_chunks(r, tokens.len(), 20);
            let found = run_within_window(&mut executor, &tokens, window, &chunks);
            assert!(found == expected, "{kv:?}, window {window}, {:?}", executor.describe());
        }
    }
}

#[test]
fn a_missing_page_is_an_error() {
    let shape = Shape { window: Some(33), retention: Retention::Window, ..SMALL };
    let mut executor = Executor::new(model(shape, 5), vec![scalar()], CAPACITY).unwrap();
    let good = Batch {
        tokens: &[1, 2],
        positions: &[70, 71],
        kinds: &[],
        given: GivenRows::NONE,
        sequence: &[0, 0],
        page_tables: &[&[0, 1, 2]],
        window_tables: &[&[NO_PAGE, 4, 5]],
        states: &[],
        outputs: &[1],
    };
    executor.run(&good).unwrap();
    let bad = [
        Batch { window_tables: &[], ..good },
        Batch { window_tables: &[&[NO_PAGE, NO_PAGE, 5]], ..good },
        Batch { window_tables: &[&[NO_PAGE, 4]], ..good },
        Batch { window_tables: &[&[NO_PAGE, 4, 6]], ..good },
        // the first row's window reaches into the first page
        Batch { positions: &[63, 64], ..good },
    ];
    for (i, batch) in bad.iter().enumerate() {
        assert_eq!(executor.run(batch).unwrap_err().code(), "kernels.batch", "case {i}");
    }
    assert!(executor.kv_page(1, 5).is_ok() && executor.kv_page(1, 6).is_err());
    assert!(executor.kv_page(0, 15).is_ok() && executor.kv_page(0, 16).is_err());
    assert!(executor.copy_kv_page(Retention::Window, 5, 6).is_err());
}
