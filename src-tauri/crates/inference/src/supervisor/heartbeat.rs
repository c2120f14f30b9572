//! Signs of life of the worker. They come from a thread that does nothing else: a worker that loads, computes or
//! waits for a slow disk gives them all the same. One that is stopped does not.

use std::time::Duration;

use super::child::ProcessActivity;

/// Between two signs of life that are asked for.
pub const BEAT_INTERVAL: Duration = Duration::from_secs(2);

/// Looks without an answer after which a process that does nothing is stopped: it is replaced within ten seconds. One
/// look is lost where the computer slept.
const MAX_MISSED_BEATS: u32 = 3;

/// What a look at the process finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pulse {
    /// It lives; it is asked for the next sign.
    Ask,
    /// The sign that was asked for has not come yet.
    Waits,
    Stopped,
}

/// The signs of life of one process.
#[derive(Debug, Default)]
pub struct Heartbeat {
    is_asked: bool,
    n_missed: u32,
    /// When the first sign was missed.
    before: ProcessActivity,
}

impl Heartbeat {
    /// It said something, or gave a sign of life.
    pub fn beats(&mut self) {
        (self.is_asked, self.n_missed) = (false, 0);
    }

    /// Looks at it, once an interval. `activity`: what it has done up to now.
    pub fn look(&mut self, activity: &mut dyn FnMut() -> ProcessActivity) -> Pulse {
        if !std::mem::replace(&mut self.is_asked, true) {
            return Pulse::Ask;
        }
        self.n_missed += 1;
        if self.n_missed == 1 {
            self.before = activity();
        }
        if self.n_missed < MAX_MISSED_BEATS {
            return Pulse::Waits;
        }
        let now = activity();
        if !now.has_worked_since(&self.before) {
            return Pulse::Stopped;
        }
        // It is kept from answering, but not stopped.
        (self.n_missed, self.before) = (1, now);
        Pulse::Waits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn activity(s: u64, n_read: u64) -> ProcessActivity {
        ProcessActivity::of(Duration::from_secs(s), Duration::ZERO, n_read)
    }

    #[test]
    fn a_process_that_stops_is_found_within_ten_seconds() {
        let mut heart = Heartbeat::default();
        assert_eq!(heart.look(&mut || activity(2, 0)), Pulse::Ask);
        heart.beats();
        let looks: Vec<Pulse> = (2..6).map(|look| heart.look(&mut || activity(2 * look, 0))).collect();
        assert_eq!(looks, [Pulse::Ask, Pulse::Waits, Pulse::Waits, Pulse::Stopped]);
        assert!(BEAT_INTERVAL * (MAX_MISSED_BEATS + 1) < Duration::from_secs(10));
    }

    #[test]
    fn one_that_reads_or_answers_late_lives() {
        let mut heart = Heartbeat::default();
        for look in 0..40 {
            assert_ne!(heart.look(&mut || activity(2 * look, look)), Pulse::Stopped, "it reads");
        }
        let mut heart = Heartbeat::default();
        for look in 0..40 {
            assert_ne!(heart.look(&mut || activity(2 * look, 0)), Pulse::Stopped, "it answers late");
            if look % 3 == 2 {
                heart.beats();
            }
        }
    }
}
