//! How often guesses come true, by what is known of them beforehand: how long the match is that a guess follows, or how
//! sure the draft model is of it.
//!
//! Counts with a fading memory. A guess counts whether it was checked in a draft or merely compared with what was
//! sampled anyway, so that a source that becomes good is noticed while nothing is drafted.

/// What is known of a guess before it is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clue {
    /// The text before it equals the text's end for so many tokens; 0: a copy is expected back in its source.
    Match(usize),
    /// A draft model's own probability of its guess, in percent.
    Sure(u8),
}

/// First lengths of the classes of matches, and how often the guesses after them come true until it is known better.
const MATCHES: [(usize, f32); 8] =
    [(0, 0.3), (1, 0.3), (2, 0.3), (3, 0.4), (4, 0.6), (6, 0.75), (10, 0.85), (20, 0.93)];

/// First percents of the classes of sureness, and the same.
const SURE: [(usize, f32); 6] = [(0, 0.15), (20, 0.3), (40, 0.5), (60, 0.65), (80, 0.8), (95, 0.93)];

const N_CLASSES: usize = MATCHES.len() + SURE.len();

/// What is believed beforehand weighs as much as so many guesses.
const N_BELIEVED: f32 = 4.0;

/// A guess weighs so much of the one after it: the last some thirty count.
const FADE: f32 = 31.0 / 32.0;

/// No guess is better.
const CERTAIN: f32 = 0.995;

/// Odds of one text's guesses.
#[derive(Debug, Clone)]
pub struct Odds {
    /// guesses that came true, and all of them (N_CLASSES)
    classes: [(f32, f32); N_CLASSES],
}

impl Default for Odds {
    fn default() -> Self {
        let mut classes = [(0.0, N_BELIEVED); N_CLASSES];
        for (class, (_, odds)) in classes.iter_mut().zip(MATCHES.iter().chain(&SURE)) {
            class.0 = odds * N_BELIEVED;
        }
        Self { classes }
    }
}

impl Odds {
    /// The share of such guesses that come true.
    pub fn of(&self, clue: Clue) -> f32 {
        let (n_true, n) = self.classes[class(clue)];
        (n_true / n).min(CERTAIN)
    }

    /// A guess was compared with what came.
    pub fn saw(&mut self, clue: Clue, came_true: bool) {
        let (n_true, n) = &mut self.classes[class(clue)];
        *n = *n * FADE + 1.0;
        *n_true = *n_true * FADE + f32::from(u8::from(came_true));
    }
}

fn class(clue: Clue) -> usize {
    let of =
        |classes: &[(usize, f32)], value: usize| classes.partition_point(|(first, _)| *first <= value) - 1;
    match clue {
        Clue::Match(n) => of(&MATCHES, n),
        Clue::Sure(percent) => MATCHES.len() + of(&SURE, usize::from(percent)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odds_follow_what_is_seen_and_only_in_its_class() {
        let mut odds = Odds::default();
        for clue in [Clue::Match(3), Clue::Match(100), Clue::Sure(0), Clue::Sure(100)] {
            let (before, other) = (odds.of(clue), odds.of(Clue::Match(6)));
            (0..100).for_each(|_| odds.saw(clue, true));
            assert!(odds.of(clue) > 0.95 && odds.of(clue) > before, "{clue:?}");
            (0..40).for_each(|_| odds.saw(clue, false));
            assert!(odds.of(clue) < 0.3, "{clue:?}: {}", odds.of(clue));
            assert_eq!(odds.of(Clue::Match(6)), other);
        }
        // 0.93 and 0.93: beliefs are probabilities
        assert!((0..256).all(|n| (0.0..1.0).contains(&Odds::default().of(Clue::Match(n)))));
    }

    #[test]
    fn longer_matches_and_surer_models_are_believed_more() {
        let odds = Odds::default();
        for clue in [|n: usize| Clue::Match(n), |n: usize| Clue::Sure(n as u8)] {
            let believed: Vec<f32> = (0..=100).map(|n| odds.of(clue(n))).collect();
            assert!(believed.is_sorted(), "{believed:?}");
        }
    }
}
