//! Kernel launches per token, and the times of steps.

use super::*;

/// Kernels per token for narrow layers of llama-3.2-1b. Rotations fuse with the KV write, and residual adds with the next
/// norm; norms of heads and of residual branches, as in Gemma 3, need no further kernels.
#[test]
fn a_token_takes_few_kernels() {
    for norms in [false, true] {
        let (short, long) = kernels_of_a_token(norms);
        // 229 with one kernel per operation, 277 with norms; split attention has two kernels
        assert!(short <= 197, "{short}, norms: {norms}");
        assert_eq!(long, short + 16);
    }
}

/// In a short context, and in a context of two chunks.
fn kernels_of_a_token(norms: bool) -> (u64, u64) {
    let shape = Shape {
        norms,
        d: 64,
        n_heads: 4,
        n_kv_heads: 1,
        head_dim: 16,
        ffn: 64,
        n_layers: 16,
        kv: KvDType::F16,
        ..SMALL
    };
    let mut executor = Executor::new(model(shape, 5), vec![gpu()], LONG).unwrap();
    let pages: Vec<u32> = (0..20).collect();
    let text = tokens(300, shape.n_vocab, 1);
    run_chunks(&mut executor, &text[..60], &pages, &[60]);
    let clock: MonotonicClock = Arc::new(|| std::time::Duration::ZERO);
    let mut of_token = |at: usize| {
        executor.measure_submissions(Some(&clock));
        let batch = Batch {
            tokens: &text[at..=at],
            positions: &[at as u32],
            kinds: &[],
            given: GivenRows::NONE,
            sequence: &[0],
            page_tables: &[&pages],
            window_tables: &[],
            states: &[],
            outputs: &[0],
        };
        executor.run(&batch).unwrap();
        executor.take_submission_stats()
    };
    let (short, long) = (of_token(60), of_token(299));
    assert_eq!((short.n_runs, long.n_runs), (1, 1));
    (short.n_kernels, long.n_kernels)
}

/// Timing by GPU timestamps does not change the results.
#[test]
fn steps_are_timed_by_the_gpu() {
    let graph = common::mixed::model(MixedShape { kv: KvDType::F16, ..MIXED }, 5);
    let text = tokens(40, N_VOCAB, 3);
    let positions: Vec<u32> = (0..40).collect();
    let batch = Batch {
        tokens: &text,
        positions: &positions,
        kinds: &[],
        given: GivenRows::NONE,
        sequence: &[0; 40],
        page_tables: &[&PAGES],
        window_tables: &[],
        states: &[2],
        outputs: &[38, 39],
    };
    let mut executor = Executor::new(graph, vec![gpu()], CAPACITY).unwrap();
    let mut all = Vec::new();
    for is_timed in [false, true, false] {
        executor.set_step_timing(is_timed).unwrap();
        let (mut steps, mut spans) = (Vec::new(), Vec::new());
        let mut observe = |ran: &StepProfile| {
            steps.push((ran.name().to_owned(), ran.cost()));
            spans.extend(ran.span());
        };
        executor.run_observed(&batch, Some(&mut observe)).unwrap();
        assert_eq!(spans.len(), if is_timed { steps.len() } else { 0 });
        assert!(spans.iter().all(|span| span.start <= span.end));
        assert!(spans.is_sorted_by_key(|span| span.start), "one after another: {spans:?}");
        if let (Some(first), Some(last)) = (spans.first(), spans.last()) {
            assert!(first.start.is_zero() && !last.end.is_zero(), "{spans:?}");
        }
        all.push((steps, executor.output().to_vec()));
    }
    assert!(all[0] == all[1] && all[0] == all[2]);
}
