//! Fitting over the starter model: its vocabulary, its template.

use engine::arch;
use engine::template::ChatTemplate;
use engine::tokenizer::Tokenizer;

use super::*;
use std::path::Path;

use contract::protocol::SummaryText;
use weights::WeightFile;

/// The starter model's words.
struct Starter {
    tokenizer: Tokenizer,
    template: Option<ChatTemplate>,
    architecture: &'static str,
}

impl Starter {
    fn new() -> Self {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../models/starter/starter.gguf");
        let file = WeightFile::open(Path::new(path)).unwrap();
        Self {
            tokenizer: Tokenizer::from_weights(&file).unwrap(),
            template: ChatTemplate::from_weights(&file).unwrap(),
            architecture: arch::spec(&file, arch::find(&file).unwrap()).unwrap().architecture,
        }
    }

    fn vocabulary(&self) -> Vocabulary<'_> {
        Vocabulary {
            tokenizer: &self.tokenizer,
            template: Ok(self.template.as_ref()),
            architecture: self.architecture,
            fingerprint: "",
            now: "2026-01-15T12:00:00",
            interrupt: None,
            images: Ok(None),
            model: "small",
        }
    }
}

/// splitmix64
fn random(state: &mut u64, below: usize) -> usize {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) % below as u64) as usize
}

const WORDS: [&str; 8] =
    ["model", "chat", "settings", "privacy", "der Schlüssel", "日本", "a\n\nb", "<|im_end|>"];

fn said(role: &str, id: &str, n_words: usize, state: &mut u64) -> PromptMessage {
    let words: Vec<&str> = (0..n_words).map(|_| WORDS[random(state, WORDS.len())]).collect();
    PromptMessage { ids: vec![id.into()], ..message(role, &words.join(" ")) }
}

/// Follows a conversation with one strategy through many turns and, at times, back to an earlier
/// one, as edits and other versions do. Always: the prompt fits, begins with the system prompt and
/// ends with the question, and all between is original text.
fn converse(starter: &Starter, strategy: Strategy, n_ctx: usize, mut state: u64) {
    let vocabulary = starter.vocabulary();
    let options = ChatOptions::default();
    let room = TokenBudget::new(n_ctx, None);
    let mut messages = vec![said("system", "s", 6, &mut state)];
    let mut compression = Compression { strategy, compacted_until: None, summaries: Vec::new() };
    let mut n_folds = 0;
    for turn in 0..24 {
        if turn % 9 == 8 {
            // Another branch: a compaction of the abandoned one does not count there.
            messages.truncate(messages.len() - 4);
        }
        messages.push(said("user", &format!("q{turn}"), 1 + random(&mut state, n_ctx / 20), &mut state));
        let mut n_steps = 0;
        let shown = loop {
            n_steps += 1;
            assert!(n_steps < 100, "it comes to an end");
            let fitting = Fitting::new(&vocabulary, &options, &compression, &messages, room);
            match fitting.fit(Why::Need).unwrap() {
                Fit::Ready { messages, compacted, .. } => {
                    if let Some(compacted) = compacted {
                        assert!(compacted.tokens_after < compacted.tokens_before, "{compacted:?}");
                        compression.compacted_until = Some(compacted.until);
                        n_folds += 1;
                    }
                    break messages;
                }
                Fit::Wanting(wanted) => {
                    let n = vocabulary.n_tokens(&wanted.messages, &options).unwrap();
                    assert!(n + wanted.n_tokens <= n_ctx, "asking for a summary fits: {n} of {n_ctx}");
                    let SummaryTask { first, until, level, .. } = wanted;
                    compression.summaries.push(SummaryText { first, until, level, text: "Ok.".into() });
                }
            }
        };
        let n = vocabulary.n_tokens(&shown, &options).unwrap();
        assert!(n <= n_ctx, "{strategy:?}: {n} of {n_ctx}");
        assert_eq!(shown.first(), messages.first(), "the system prompt");
        assert_eq!(shown.last(), messages.last(), "the question");
        let said: Vec<_> = shown.iter().filter(|message| !message.ids.is_empty()).skip(1).cloned().collect();
        assert!(messages.ends_with(&said), "in order and without holes");
        messages.push(said_back(turn, n_ctx, &mut state));
    }
    assert!(n_folds > 0, "{strategy:?} in {n_ctx} tokens");
    // Taken back, everything is as it was.
    compression.compacted_until = None;
    let roomy = TokenBudget::new(1 << 20, None);
    let whole = Fitting::new(&vocabulary, &options, &compression, &messages, roomy).fit(Why::Need).unwrap();
    let Fit::Ready { messages: shown, compacted: None, .. } = whole else { panic!("{whole:?}") };
    assert_eq!(shown, messages);
}

fn said_back(turn: usize, n_ctx: usize, state: &mut u64) -> PromptMessage {
    said("assistant", &format!("a{turn}"), 1 + random(state, n_ctx / 20), state)
}

#[test]
fn conversations_far_longer_than_the_context_fit() {
    let starter = Starter::new();
    for strategy in [Strategy::Window, Strategy::Summary] {
        for (seed, n_ctx) in [128, 200, 256, 512, 1024].into_iter().enumerate() {
            converse(&starter, strategy, n_ctx, seed as u64);
        }
    }
}

#[test]
fn a_question_that_never_fits_is_told_with_both_numbers() {
    let starter = Starter::new();
    let (vocabulary, options) = (starter.vocabulary(), ChatOptions::default());
    for strategy in [Strategy::Window, Strategy::Summary] {
        let compression = Compression { strategy, compacted_until: None, summaries: Vec::new() };
        let messages = [said("user", "a", 3, &mut 1), said("user", "b", 900, &mut 2)];
        let fitting =
            Fitting::new(&vocabulary, &options, &compression, &messages, TokenBudget::new(256, None));
        let error = fitting.fit(Why::Need).unwrap_err();
        assert_eq!(error.code(), "request.context_full");
        let n = vocabulary.n_tokens(&messages, &options).unwrap();
        assert!(error.message().contains(&n.to_string()) && error.message().contains("256"), "{error}");
    }
}

#[test]
fn turns_begin_with_questions() {
    let roles = ["system", "user", "assistant", "tool", "assistant", "user", "user", "assistant"];
    let messages: Vec<_> = roles.iter().map(|role| message(role, "x")).collect();
    assert_eq!(turns(&messages), [1..5, 5..6, 6..8]);
    assert_eq!(turns(&messages[2..3]), vec![Range { start: 0, end: 1 }], "one without a question");
    assert!(turns(&messages[..1]).is_empty());
}
