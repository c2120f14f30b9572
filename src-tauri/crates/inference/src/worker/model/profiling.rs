//! Profiles the turns that request it: steps are observed only while there are such turns.

use engine::GenEvent;
use io::Clock;

use super::LoadedModel;
use crate::profile::{Line, Operation, Phase, Profile, Trace};
use contract::protocol::MeasuredAnswer;
use contract::types::{ProfilePart, ProfilePhase, ProfileRow, ProfiledAnswer};

/// Steps of a trace, some dozens of tokens of a large model: a file of a few megabytes, which viewers open at once.
const MAX_EVENTS: usize = 20_000;

/// Turns that are measured, and what was found so far of all of them.
pub struct Profiling {
    turns: Vec<(u64, String)>,
    profile: Profile,
}

impl LoadedModel {
    /// A turn wants to know. Those that are written together share what is found.
    pub(super) fn profile_turn(&mut self, (is_wanted, number): (bool, u64), clock: &dyn Clock) {
        let running = self.running.iter().find(|running| is_wanted && running.number == number);
        let Some(turn) = running.map(|running| running.turn.clone()) else { return };
        if self.profiling.is_none() {
            self.set_step_timing(true);
        }
        let begin = || {
            let trace = Trace::of(MAX_EVENTS).since(clock.monotonic());
            Profiling { turns: Vec::new(), profile: Profile::traced(Some(trace)) }
        };
        self.profiling.get_or_insert_with(begin).turns.push((number, turn));
    }

    /// One batch of the scheduler.
    pub(super) fn run_batch(&mut self, clock: &dyn Clock, sink: &mut dyn FnMut(u64, GenEvent)) {
        let Self { scheduler, model, profiling, .. } = self;
        let Some(Profiling { profile, .. }) = profiling else {
            scheduler.step(model, sink);
            return;
        };
        let mut phase = Phase::Writing;
        profile.begin(clock);
        let mut seen = |number: u64, event: GenEvent| {
            if let GenEvent::Prefill { .. } = event {
                phase = Phase::Reading;
            }
            sink(number, event);
        };
        scheduler.step_observed(model, &mut seen, Some(&mut |ran| profile.ran(clock, ran)));
        let name = match phase {
            Phase::Reading => "reading",
            Phase::Writing => "writing",
        };
        profile.end(clock, name, phase);
    }

    /// A turn has ended; what was found goes with it.
    pub(super) fn profiled(&mut self, number: u64) {
        let Some(Profiling { turns, profile }) = &mut self.profiling else { return };
        let Some(at) = turns.iter().position(|(it, _)| *it == number) else { return };
        let (_, turn) = turns.remove(at);
        let is_last = turns.is_empty();
        let parts = Phase::ALL.into_iter().filter_map(|phase| part(profile, phase)).collect();
        let trace = profile.trace.as_ref();
        let n_left_out = trace.map_or(0, Trace::n_left_out);
        let answer = ProfiledAnswer { model: self.reference.id.clone(), parts, n_left_out };
        let trace = trace.map_or_else(String::new, Trace::to_json);
        self.found.push(MeasuredAnswer { turn, answer, trace });
        if is_last {
            self.profiling = None;
            self.set_step_timing(false);
        }
    }

    /// Of turns that have ended since this was last asked.
    pub fn take_profiled(&mut self) -> Vec<MeasuredAnswer> {
        std::mem::take(&mut self.found)
    }

    /// If a GPU has no memory for timestamps, steps are timed as they end.
    fn set_step_timing(&mut self, wanted: bool) {
        if let Err(error) = self.model.set_step_timing(wanted) {
            tracing::warn!(code = error.code(), "the GPU doesn't time its steps: {error}");
        }
    }
}

/// None: there was nothing to do in that phase.
fn part(profile: &Profile, phase: Phase) -> Option<ProfilePart> {
    let total = profile.total(phase).as_secs_f64();
    let row = |Operation { op, what, line, sums }| ProfileRow {
        op: str::to_owned(op),
        what,
        on_card: line == Line::Gpu,
        calls: sums.calls,
        ms: sums.time.as_secs_f64() * 1e3,
        share: sums.time.as_secs_f64() / total,
        bytes: sums.cost.bytes,
        gb_s: sums.gb_s(),
    };
    let rows = profile.operations(phase).into_iter().map(row).collect();
    let phase = match phase {
        Phase::Reading => ProfilePhase::Reading,
        Phase::Writing => ProfilePhase::Writing,
    };
    (total > 0.0).then_some(ProfilePart { phase, ms: total * 1e3, rows })
}
