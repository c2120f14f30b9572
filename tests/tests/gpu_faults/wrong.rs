//! A GPU whose kernels differ from their reference: it is tried without subgroups first, and the answer goes on with
//! the same bits. A GPU that errs without them too is replaced by the CPU.

use engine::{FaultPlan, GpuFallback, GpuFault, LoadOptions, Model};
use kernels::GpuCache;
use kernels::VerificationScope;
use kernels::gpu::adapters;

use super::{fallbacks, is_on_gpu, load, next, open, options};

const N_TOKENS: usize = 24;

/// The likeliest tokens after a prompt.
fn answer(model: &mut Model) -> Vec<u32> {
    let seq = model.new_sequence().unwrap();
    let (mut tokens, mut ids) = (vec![1, 9, 17, 4], Vec::new());
    for _ in 0..N_TOKENS {
        tokens = vec![next(model, seq, &tokens)];
        ids.extend(&tokens);
    }
    ids
}

fn has_subgroups(model: &Model) -> bool {
    model.info().devices[0].contains("subgroups")
}

#[test]
fn f60_an_answer_goes_on_without_subgroups_and_then_on_the_processor() {
    let file = open("llama");
    let mut model = load(&file, &options(&FaultPlan::default()));
    assert!(has_subgroups(&model), "the GPU of this test has them: {:?}", model.info().devices);
    let expected = answer(&mut model);
    for (n_times, expected_fallbacks) in
        [(1, vec![GpuFallback::NoSubgroups]), (2, vec![GpuFallback::NoSubgroups, GpuFallback::Cpu])]
    {
        let plan = FaultPlan::repeated(9, GpuFault::Wrong, n_times);
        let mut model = load(&file, &options(&plan));
        assert_eq!(answer(&mut model), expected, "{n_times}");
        assert!(plan.is_over() && !has_subgroups(&model), "{:?}", model.info().devices);
        assert_eq!(fallbacks(&mut model), expected_fallbacks, "told once each");
        assert_eq!(is_on_gpu(&model), n_times == 1);
    }
}

#[test]
fn a_check_that_fails_is_kept_and_what_is_left_is_used_from_then_on() {
    let (file, key) = (open("llama"), adapters()[0].key());
    let checked = |plan: &FaultPlan, known: &GpuCache| LoadOptions {
        gpu_verification: VerificationScope::All,
        gpu_cache: known.clone(),
        ..options(plan)
    };
    let expected = answer(&mut load(&file, &options(&FaultPlan::default())));
    for n_times in [1, 2] {
        let (plan, known) = (FaultPlan::wrong_in_checks(n_times), GpuCache::default());
        let mut model = load(&file, &checked(&plan, &known));
        let found = known.get(&key);
        assert!(
            plan.is_over() && found.wrong_with_subgroups.is_some() && found.wrong_in_precision.is_empty(),
            "{found:?}"
        );
        assert_eq!((found.wrong_kernel.is_some(), is_on_gpu(&model)), (n_times == 2, n_times == 1));
        assert_eq!(fallbacks(&mut model), [GpuFallback::NoSubgroups]);
        assert_eq!(answer(&mut model), expected);
        // the next start knows, and says nothing of what has been said
        let known = GpuCache::new(known.all());
        let mut model = load(&file, &checked(&FaultPlan::default(), &known));
        assert_eq!((fallbacks(&mut model), has_subgroups(&model)), (Vec::new(), false));
        let instead = model.info().fallback_error.as_ref().map(|error| error.code());
        assert_eq!(instead, (n_times == 2).then_some("kernels.gpu_wrong"));
        assert_eq!(known.get(&key), found, "nothing was checked anew");
        assert_eq!(answer(&mut model), expected);
    }
}
