//! Every fault at every submission of an answer: the same text, and how long the next token took to come.

use std::time::Duration;

use engine::{FaultPlan, GpuFallback, GpuFault, Model};
use io::{Clock, RealClock};

use super::{FAULTS, fallbacks, is_on_gpu, load, next, open, options, wants_all};

const N_TOKENS: usize = 64;

/// Submissions: another sequence's prompt, the prompt, a token each, the other's next.
const N_SUBMISSIONS: u64 = N_TOKENS as u64 + 2;

/// The likeliest tokens after a prompt, another sequence beside it, and what the token took that took longest.
fn answer(model: &mut Model, clock: &dyn Clock) -> (Vec<u32>, Duration) {
    let (mut ids, mut slowest) = (Vec::new(), Duration::ZERO);
    let mut timed = |model: &mut Model, seq, tokens: &[u32]| {
        let start = clock.monotonic();
        let best = next(model, seq, tokens);
        slowest = slowest.max(clock.monotonic() - start);
        best
    };
    let other = model.new_sequence().unwrap();
    ids.push(timed(model, other, &[5, 6, 7, 8]));
    let seq = model.new_sequence().unwrap();
    let mut tokens = vec![1, 9, 17, 4];
    for _ in 0..N_TOKENS {
        tokens = vec![timed(model, seq, &tokens)];
        ids.extend(&tokens);
    }
    // what the other one held is there again
    ids.push(timed(model, other, &[9]));
    (ids, slowest)
}

/// What was seen of one fault.
struct FaultRow {
    fault: GpuFault,
    fallback: GpuFallback,
    /// from the fault to the next token
    waits: Vec<Duration>,
}

fn print(rows: &mut [FaultRow], undisturbed: Duration) {
    println!("slowest token without a fault: {:.1} ms", undisturbed.as_secs_f64() * 1e3);
    println!(
        "{:<9} {:>7} {:>9} {:>10} {:>10}  then",
        "fault", "moments", "same text", "median ms", "worst ms"
    );
    for FaultRow { fault, fallback, waits } in rows {
        waits.sort();
        let ms = |wait: Duration| wait.as_secs_f64() * 1e3;
        let (fault, n, median) = (format!("{fault:?}"), waits.len(), ms(waits[waits.len() / 2]));
        println!("{fault:<9} {n:>7} {n:>9} {median:>10.1} {:>10.1}  {fallback:?}", ms(waits[n - 1]));
    }
}

#[test]
fn f58_an_answer_goes_on_where_it_was() {
    let (file, clock) = (open("llama"), RealClock::new());
    let mut model = load(&file, &options(&FaultPlan::default()));
    assert_eq!(model.info().fallback_error, None);
    let (expected, undisturbed) = answer(&mut model, &clock);
    assert_eq!(fallbacks(&mut model), []);
    let mut rows = Vec::new();
    for (i, fault) in FAULTS.into_iter().enumerate() {
        let few = || vec![0, 1 + 13 * i as u64, N_SUBMISSIONS - 1];
        let moments: Vec<u64> = if wants_all() { (0..N_SUBMISSIONS).collect() } else { few() };
        let fallback = match fault {
            GpuFault::Lost | GpuFault::TimeOut => GpuFallback::Reopened,
            GpuFault::Memory => GpuFallback::MaxRows(64),
            GpuFault::Wrong | GpuFault::Subgroups => GpuFallback::NoSubgroups,
            GpuFault::Invalid | GpuFault::Absent | GpuFault::Precision => GpuFallback::Cpu,
        };
        let mut waits = Vec::new();
        for at in moments {
            let plan = FaultPlan::before(at, fault);
            let mut model = load(&file, &options(&plan));
            let (found, wait) = answer(&mut model, &clock);
            assert_eq!(found, expected, "{fault:?} before submission {at}");
            assert!(plan.is_over(), "{fault:?} {at}");
            assert_eq!(fallbacks(&mut model), [fallback], "{fault:?} {at}: it is told once");
            assert_eq!(is_on_gpu(&model), fallback != GpuFallback::Cpu, "{:?}", model.info().devices);
            waits.push(wait);
        }
        rows.push(FaultRow { fault, fallback, waits });
    }
    print(&mut rows, undisturbed);
}
