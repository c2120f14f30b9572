//! A GPU that is lost again and again is left alone for the rest of the session; one that is lost now and then isn't.

use std::sync::Arc;
use std::time::Duration;

use engine::model::gpu_health::{FAILURE_WINDOW, GPU_GIVEN_UP};
use engine::{FaultPlan, GpuFallback, GpuFault, GpuHealth, LoadOptions, Model};
use io::{Clock, ManualClock};

use super::{fallbacks, is_on_gpu, load, next, open, options};

/// 24 tokens; so long after each.
fn answer(model: &mut Model, clock: &ManualClock, later: Duration) -> Vec<u32> {
    let seq = model.new_sequence().unwrap();
    let (mut tokens, mut ids) = (vec![1, 9, 17, 4], Vec::new());
    for _ in 0..24 {
        tokens = vec![next(model, seq, &tokens)];
        ids.extend(&tokens);
        clock.advance(later);
    }
    ids
}

#[test]
fn lost_twice_in_ten_minutes_is_once_too_often() {
    let (file, clock) = (open("llama"), Arc::new(ManualClock::new(0)));
    let session = || {
        let clock = clock.clone();
        GpuHealth::with_clock(move || clock.monotonic())
    };
    let expected = answer(&mut load(&file, &options(&FaultPlan::default())), &clock, Duration::ZERO);
    // the second is lost some seven tokens after the first
    let cases = [
        (FAILURE_WINDOW / 5, [GpuFallback::Reopened, GpuFallback::Reopened], true),
        (FAILURE_WINDOW / 20, [GpuFallback::Reopened, GpuFallback::CpuForSession], false),
    ];
    for (later, expected_fallbacks, on_gpu) in cases {
        let (plan, gpu_health) = (FaultPlan::repeated(8, GpuFault::Lost, 2), session());
        let mut model = load(&file, &LoadOptions { gpu_health: gpu_health.clone(), ..options(&plan) });
        assert_eq!(answer(&mut model, &clock, later), expected, "{later:?}");
        assert!(plan.is_over());
        assert_eq!(fallbacks(&mut model), expected_fallbacks, "{later:?}: said once each");
        assert_eq!(is_on_gpu(&model), on_gpu);
        clock.advance(10 * FAILURE_WINDOW);
        // whatever model comes next
        let next = load(&open("gemma3"), &LoadOptions { gpu_health, ..options(&FaultPlan::default()) });
        assert_eq!(is_on_gpu(&next), on_gpu);
        let instead = next.info().fallback_error.as_ref().map(|error| error.code());
        assert_eq!(instead, (!on_gpu).then_some(GPU_GIVEN_UP));
    }
}

/// Without a clock any second time is one too many, as before.
#[test]
fn two_models_of_one_session_share_the_verdict_on_a_gpu() {
    let (file, clock) = (open("llama"), ManualClock::new(0));
    let health = GpuHealth::with_clock(|| Duration::ZERO);
    let mut all = Vec::new();
    for _ in 0..2 {
        let plan = FaultPlan::before(5, GpuFault::TimeOut);
        let mut model = load(&file, &LoadOptions { gpu_health: health.clone(), ..options(&plan) });
        answer(&mut model, &clock, Duration::ZERO);
        all.extend(fallbacks(&mut model));
    }
    assert_eq!(all, [GpuFallback::Reopened, GpuFallback::CpuForSession]);
    let mut alone = load(&file, &options(&FaultPlan::repeated(5, GpuFault::Lost, 2)));
    answer(&mut alone, &clock, Duration::ZERO);
    assert_eq!(fallbacks(&mut alone), [GpuFallback::Reopened, GpuFallback::CpuForSession]);
}
