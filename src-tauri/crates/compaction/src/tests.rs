//! Strategies over conversations that are only numbers.

use super::*;

/// A conversation whose turns have the given token counts, in a prompt of `HEAD` more.
struct FakeConversation {
    turns: Vec<usize>,
    /// tokens of each summary
    summaries: Vec<usize>,
}

const HEAD: usize = 10;

impl FakeConversation {
    fn count(&self, sketch: &PromptDraft) -> Result<usize, ()> {
        let of = |after: &[usize], turns: &[usize]| {
            HEAD + after.iter().map(|&at| self.summaries[at]).sum::<usize>() + turns.iter().sum::<usize>()
        };
        Ok(match sketch {
            PromptDraft::Shown(view) => of(&view.summaries, &self.turns[view.n_turns..]),
            PromptDraft::Asking(wish) => of(&wish.after, &self.turns[wish.turns.clone()]) + 5,
        })
    }

    fn n_shown(&self, view: &CompactedView) -> usize {
        self.count(&PromptDraft::Shown(view)).unwrap()
    }
}

fn random(state: &mut u64) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize
}

/// Turns come one after another; each strategy is followed to its end at every one of them.
fn converse(strategy: Strategy, n_ctx: usize, seed: u64) {
    let (mut seed, room) = (seed, TokenBudget::new(n_ctx, None));
    let mut made = FakeConversation { turns: Vec::new(), summaries: Vec::new() };
    let mut talk = Transcript::default();
    for _ in 0..60 {
        made.turns.push(1 + random(&mut seed) % (n_ctx / 3));
        talk.n_turns += 1;
        let now = CompactedView { n_turns: talk.n_compacted, summaries: shown(&talk) };
        if made.n_shown(&now) <= room.budget {
            continue;
        }
        let mut n_steps = 0;
        loop {
            n_steps += 1;
            assert!(n_steps < 200, "it comes to an end");
            match next(strategy, &talk, room, &mut |sketch| made.count(sketch)).unwrap() {
                Next::Compact(view) => {
                    assert!(made.n_shown(&view) <= room.limit, "{strategy:?} {n_ctx}: over the limit");
                    assert!(view.n_turns < talk.n_turns, "the question stays");
                    assert!(view.n_turns > talk.n_compacted, "something is gained");
                    talk.n_compacted = view.n_turns;
                    break;
                }
                Next::SummaryRequest(wish) => {
                    assert!(made.count(&PromptDraft::Asking(&wish)).unwrap() + wish.n_tokens <= room.limit);
                    add(&mut made, &mut talk, &wish, &mut seed);
                }
                Next::Forget { n_most, n_keep, n_protected } => {
                    assert!(n_protected < n_keep && n_keep < n_most && n_most <= room.limit);
                    break;
                }
                Next::TooLong { n_least } => panic!("{n_least} of {n_ctx}: a turn is a third at most"),
            }
        }
        while let Some(wish) = ahead(strategy, &talk, room, &mut |sketch| made.count(sketch)).unwrap() {
            n_steps += 1;
            assert!(n_steps < 200, "it comes to an end");
            add(&mut made, &mut talk, &wish, &mut seed);
        }
    }
    assert!(strategy == Strategy::Attention || talk.n_compacted > 0, "60 turns of a sixth do not fit");
}

/// What a prompt shows after earlier compactions.
fn shown(talk: &Transcript) -> Vec<usize> {
    (0..talk.summaries.len())
        .filter(|&at| talk.summaries[at].turns.end <= talk.n_compacted)
        .filter(|&at| {
            let turns = &talk.summaries[at].turns;
            let holds = |other: &TurnSummary| {
                other.level > talk.summaries[at].level
                    && other.turns.start <= turns.start
                    && turns.end <= other.turns.end
                    && other.turns.end <= talk.n_compacted
            };
            !talk.summaries.iter().any(holds)
        })
        .collect()
}

fn add(made: &mut FakeConversation, talk: &mut Transcript, wish: &SummaryRequest, seed: &mut u64) {
    let turns = match wish.turns.is_empty() {
        false => wish.turns.clone(),
        true => {
            talk.summaries[wish.after[0]].turns.start..talk.summaries[*wish.after.last().unwrap()].turns.end
        }
    };
    assert!(!talk.summaries.contains(&TurnSummary { turns: turns.clone(), level: wish.level }), "made once");
    talk.summaries.push(TurnSummary { turns, level: wish.level });
    made.summaries.push(1 + random(seed) % wish.n_tokens);
}

#[test]
fn whatever_the_turns_the_prompt_fits() {
    for strategy in Strategy::ALL {
        for n_ctx in [64, 100, 256, 1000, 8192] {
            for seed in 0..20 {
                converse(strategy, n_ctx, seed);
            }
        }
    }
}

#[test]
fn a_question_that_is_too_long_is_told_with_its_number() {
    let made = FakeConversation { turns: vec![30, 900], summaries: Vec::new() };
    let talk = Transcript { n_turns: 2, ..Transcript::default() };
    for strategy in Strategy::ALL {
        let next = next(strategy, &talk, TokenBudget::new(256, None), &mut |sketch| made.count(sketch));
        let Ok(Next::TooLong { n_least: 910 }) = next else { panic!("{strategy:?}: {next:?}") };
    }
}

#[test]
fn cuts_are_rare() {
    let (room, mut talk) = (TokenBudget::new(1000, None), Transcript::default());
    let mut made = FakeConversation { turns: Vec::new(), summaries: Vec::new() };
    let mut n_cuts = 0;
    for _ in 0..200 {
        made.turns.push(20);
        talk.n_turns += 1;
        if made.n_shown(&CompactedView { n_turns: talk.n_compacted, summaries: Vec::new() }) > room.budget {
            let next = next(Strategy::Window, &talk, room, &mut |sketch| made.count(sketch)).unwrap();
            let Next::Compact(view) = next else { panic!("{next:?}") };
            talk.n_compacted = view.n_turns;
            n_cuts += 1;
        }
    }
    assert!(n_cuts <= 200 * 20 / (room.budget - room.aim) + 1, "{n_cuts} cuts");
}

#[test]
fn names_come_back() {
    for strategy in Strategy::ALL {
        assert_eq!(Strategy::of_name(strategy.name()), Some(strategy));
    }
    assert_eq!(Strategy::of_name("off"), None);
}
