//! What speculation with a model's own draft block promises: the same tokens as without, and drafts that a fork, a
//! rewind and a stored context do not change.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::speculate::{DraftLength, DraftSource, Speculation};
use engine::{
    Chunk, Devices, DraftBlockUse, Finish, GenEvent, GenerationStats, LoadOptions, LogitsSelection, Model,
    Request, Sampling, Scheduler, SequenceId, TokenId,
};
use test_support::{Missing, skip};
use weights::WeightFile;

use crate::stored_chunks::StoredChunks;

/// Safetensors and GGUF. `None` where the reference data has no draft blocks.
fn models() -> Option<[PathBuf; 2]> {
    let dir = inglenook_tests::reference_dir().join("mtp/qwen3_5");
    let is_there = dir.exists() || !inglenook_tests::reference_is_small();
    is_there.then(|| [dir.clone(), dir.join("qwen3_5.q8_0.gguf")])
}

/// Size of the vocabulary.
const N_VOCAB: usize = 512;

fn load(path: &Path) -> Model {
    load_with(path, N_VOCAB)
}

/// A block that drafts the first `common_tokens` in any text.
fn load_with(path: &Path, common_tokens: usize) -> Model {
    let options = LoadOptions {
        common_tokens,
        devices: Devices::Cpu,
        threads: Some(2),
        ctx: Some(512),
        draft_block: DraftBlockUse::Required,
        ..LoadOptions::default()
    };
    Model::load(Arc::new(WeightFile::open(path).unwrap()), &options, &mut |_| {}).unwrap()
}

/// Ways to draft that all give what none gives.
pub const LENGTHS: [DraftLength; 4] =
    [DraftLength::Always(1), DraftLength::Always(3), DraftLength::Always(9), DraftLength::Paying(8)];

pub fn text(seed: u32, n: usize) -> Vec<TokenId> {
    (0..n as u32).map(|at| (at * at * 7 + at * 31 + seed * 97) % 500).collect()
}

pub fn request(id: u64, prompt: Vec<TokenId>, length: Option<DraftLength>) -> Request {
    Request {
        id,
        prompt,
        sequence: None,
        sampling: Sampling { temperature: 0.0, ..Sampling::default() },
        max_tokens: Some(60),
        stop: Vec::new(),
        ignore_eos: true,
        markup_tokens: Vec::new(),
        budget: None,
        speculation: length.map(|length| Speculation { source: DraftSource::Block, length }),
        script: engine::speculate::Script::default(),
        constraint: None,
        logprobs: None,
        resumed: Vec::new(),
    }
}

pub fn run(model: &mut Model, request: Request) -> (Vec<TokenId>, GenerationStats) {
    let (mut scheduler, mut tokens, mut ended) = (Scheduler::new(), Vec::new(), None);
    scheduler.submit(request).unwrap();
    while scheduler.step(model, &mut |_, event| match event {
        GenEvent::Token { id, .. } => tokens.push(id),
        GenEvent::Done(done) => ended = Some(done),
        GenEvent::Prefill { .. } => {}
        GenEvent::Failed(error) => panic!("{error}"),
    }) {
        scheduler.record_step(0.03);
    }
    (tokens, ended.unwrap())
}

/// Answers greedy and sampled, with drafts of every length as with none. Returns how many tokens were drafted.
pub fn answers_as_without_drafts(
    model: &mut Model,
    text: &dyn Fn(u32, usize) -> Vec<TokenId>,
    name: &str,
) -> usize {
    let mut n_drafted = 0;
    let sampled = Sampling { temperature: 0.4, top_k: 5, seed: Some(3), ..Sampling::default() };
    let greedy = Sampling { temperature: 0.0, ..Sampling::default() };
    for (seed, sampling) in [(1, &greedy), (2, &greedy), (3, &sampled), (4, &sampled)] {
        let prompt = text(seed, 20 + 9 * seed as usize);
        let asked = |length| Request { sampling: sampling.clone(), ..request(1, prompt.clone(), length) };
        let (expected, _) = run(model, asked(None));
        for length in LENGTHS {
            let (found, done) = run(model, asked(Some(length)));
            assert_eq!(found, expected, "{name} {length:?} {sampling:?}");
            n_drafted += done.n_drafted;
        }
    }
    n_drafted
}

#[test]
fn a_draft_block_changes_no_answer() {
    let Some(models) = models() else { skip!(Missing::Reference, "the small set has no draft blocks") };
    for (path, common_tokens) in models.iter().flat_map(|path| [(path, N_VOCAB), (path, 200)]) {
        let mut model = load_with(path, common_tokens);
        let n_drafted = answers_as_without_drafts(&mut model, &text, &path.display().to_string());
        assert!(n_drafted > 500, "{n_drafted}");
        let usage = model.kv_usage();
        assert_eq!((usage.n_pages, usage.n_states), (0, 0), "{}: nothing is left", path.display());
    }
}

#[test]
fn a_draft_of_common_tokens_has_their_logits() {
    let Some(models) = models() else { skip!(Missing::Reference, "the small set has no draft blocks") };
    for path in models {
        let [all, common] = [N_VOCAB, 200].map(|common_tokens| {
            let mut model = load_with(&path, common_tokens);
            let seq = model.new_sequence().unwrap();
            let chunk = Chunk { seq, tokens: &text(3, 40), logits: LogitsSelection::Last };
            let hidden = model.forward(&[chunk]).unwrap().hidden(0).unwrap().to_vec();
            model.draft_logits(seq, (40, 9), &hidden, 1).unwrap().remove(0)
        });
        assert_eq!(all.len(), N_VOCAB);
        assert!(common == all[..200], "{}", path.display());
    }
}

/// What the block drafts after a text, computed from its beginning.
pub fn chain(model: &mut Model, text: &[TokenId], n: usize) -> Vec<TokenId> {
    let (last, before) = text.split_last().unwrap();
    let seq = model.new_sequence().unwrap();
    let chunk = Chunk { seq, tokens: before, logits: LogitsSelection::Last };
    let hidden = model.forward(&[chunk]).unwrap().hidden(0).unwrap().to_vec();
    let drafts = model.draft_logits(seq, (before.len(), *last), &hidden, n).unwrap();
    model.free(seq);
    drafts
        .iter()
        .map(|logits| (0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b])).unwrap() as TokenId)
        .collect()
}

#[test]
fn drafts_that_come_true_are_accepted() {
    let Some([path, _]) = models() else { skip!(Missing::Reference, "the small set has no draft blocks") };
    let mut model = load(&path);
    accepts_what_comes_true(&path, &mut model, text(8, 30));
}

/// A text that has all uncommon tokens: with those of the text, the block drafts as with its whole vocabulary.
#[test]
fn uncommon_tokens_of_the_text_are_drafted() {
    const COMMON_TOKENS: usize = 256;
    let Some([path, _]) = models() else { skip!(Missing::Reference, "the small set has no draft blocks") };
    let mut model = load_with(&path, COMMON_TOKENS);
    let uncommon = COMMON_TOKENS as TokenId..N_VOCAB as TokenId;
    let n_uncommon = accepts_what_comes_true(&path, &mut model, uncommon.chain(text(8, 30)).collect());
    assert!(n_uncommon >= 4, "{n_uncommon} of the drafts are not common");
}

/// An answer that follows the drafts for some tokens, then leaves them: exactly those are accepted, also right after
/// others were rejected. Returns how many were of the second half of the vocabulary.
fn accepts_what_comes_true(path: &Path, drafting: &mut Model, prompt: Vec<TokenId>) -> usize {
    const N_DRAFTED: usize = 3;
    let mut model = load(path);
    let mut whole = [&prompt[..], &[11]].concat();
    let (mut n_expected, mut n_of_second_half) = (0, 0);
    for n_true in [3, 0, 2, 2, 1, 3, 3, 0, 0, 2, 1, 1, 3] {
        let drafts = chain(&mut model, &whole, N_DRAFTED);
        n_expected += n_true;
        n_of_second_half += drafts[..n_true].iter().filter(|id| **id as usize >= N_VOCAB / 2).count();
        whole.extend(&drafts[..n_true]);
        whole.push(drafts.get(n_true).map_or(11, |draft| (draft + 1) % 500));
    }
    let script = whole[prompt.len()..].to_vec();
    let length = Some(DraftLength::Always(N_DRAFTED));
    // The first answer token comes with the prompt, and the last ones leave less room for drafts.
    let max_tokens = Some(script.len());
    let (found, done) =
        run(drafting, Request { script: script.into(), max_tokens, ..request(1, prompt.clone(), length) });
    assert_eq!(found, whole[prompt.len()..]);
    assert_eq!(done.n_accepted, n_expected);
    n_of_second_half
}

/// Recurrent layers can't go back, but what is left of a run brings their state to its accepted tokens.
#[test]
fn no_token_is_computed_again_after_a_rejected_draft() {
    let Some([path, _]) = models() else { skip!(Missing::Reference, "the small set has no draft blocks") };
    let mut model = load(&path);
    let seq = model.new_sequence().unwrap();
    let prompt = text(9, 40);
    let mut asked = request(1, prompt.clone(), Some(DraftLength::Always(4)));
    asked.sequence = Some(seq);
    let (mut scheduler, mut n_tokens, mut done) = (Scheduler::new(), 0, None);
    scheduler.submit(asked).unwrap();
    while scheduler.step(&mut model, &mut |_, event| match event {
        GenEvent::Token { .. } => n_tokens += 1,
        GenEvent::Done(stats) => done = Some(stats),
        GenEvent::Prefill { .. } => {}
        GenEvent::Failed(error) => panic!("{error}"),
    }) {
        if n_tokens > 0 && done.is_none() {
            // The last token is read with the next.
            assert_eq!(model.len(seq).unwrap() + 1, prompt.len() + n_tokens);
        }
    }
    let done = done.unwrap();
    assert!(done.n_accepted < done.n_drafted / 2, "{} of {} accepted", done.n_accepted, done.n_drafted);
}

#[test]
fn together_they_answer_as_alone() {
    let Some([path, _]) = models() else { skip!(Missing::Reference, "the small set has no draft blocks") };
    let mut model = load(&path);
    let asked =
        |id: u64, drafts: bool| request(id, text(id as u32, 25), drafts.then_some(LENGTHS[id as usize % 4]));
    let alone: Vec<Vec<TokenId>> = (0..6).map(|id| run(&mut model, asked(id, false)).0).collect();
    let mut scheduler = Scheduler::new();
    (0..6).for_each(|id| scheduler.submit(asked(id, id != 2)).unwrap());
    let (mut together, mut ended) = (vec![Vec::new(); 6], [None; 6]);
    while scheduler.step(&mut model, &mut |id, event| match event {
        GenEvent::Token { id: token, .. } => together[id as usize].push(token),
        GenEvent::Done(done) => ended[id as usize] = Some(done.finish),
        GenEvent::Prefill { .. } => {}
        GenEvent::Failed(error) => panic!("{error}"),
    }) {
        scheduler.record_step(0.03);
        if together[4].len() >= 10 {
            scheduler.cancel(4);
        }
    }
    for id in 0..6 {
        if id == 4 {
            assert_eq!(ended[id], Some(Finish::Cancelled));
            assert!(alone[id].starts_with(&together[id]) && together[id].len() < alone[id].len());
        } else {
            assert_eq!((&together[id], ended[id]), (&alone[id], Some(Finish::Length)), "request {id}");
        }
    }
    assert_eq!(model.kv_usage().n_pages, 0);
}

/// Reads tokens, and drafts what follows.
fn drafts(model: &mut Model, seq: SequenceId, tokens: &[TokenId]) -> Vec<Vec<f32>> {
    let logits = model.forward(&[Chunk { seq, tokens, logits: LogitsSelection::Last }]).unwrap();
    let hidden = logits.hidden(0).unwrap().to_vec();
    let n = model.len(seq).unwrap();
    model.draft_logits(seq, (n, 7), &hidden, 3).unwrap()
}

#[test]
fn drafts_follow_a_sequence_through_forks_rewinds_and_the_disk() {
    let Some([path, _]) = models() else { skip!(Missing::Reference, "the small set has no draft blocks") };
    let (before, tail) = (text(5, 300), text(6, 9));
    let mut model = load(&path);
    let seq = model.new_sequence().unwrap();
    model.forward(&[Chunk { seq, tokens: &before, logits: LogitsSelection::None }]).unwrap();
    model.save_rewind_point(seq).unwrap();
    let stored = StoredChunks::of(&model, seq, &[300]);
    let fork = model.fork(seq).unwrap();
    let expected = drafts(&mut model, seq, &tail);
    assert!(drafts(&mut model, fork, &tail) == expected, "after a fork");
    assert_eq!(model.truncate(seq, 300).unwrap(), 300);
    assert!(drafts(&mut model, seq, &tail) == expected, "after a rewind");
    let mut other = load(&path);
    let restored = stored.restore(&mut other, 300).unwrap();
    assert!(drafts(&mut other, restored, &tail) == expected, "after it was stored");
    // Chunks of a model without its draft block lack what the block knows.
    let options = LoadOptions { devices: Devices::Cpu, ctx: Some(512), ..LoadOptions::default() };
    let mut without = Model::load(Arc::new(WeightFile::open(&path).unwrap()), &options, &mut |_| {}).unwrap();
    let empty = stored.restore(&mut without, 300).unwrap();
    assert_eq!(without.len(empty).unwrap(), 0);
}
