//! What speculation promises: the same tokens as without it, whatever is guessed, in every family; whatever else runs;
//! and nothing of a wrong guess left behind.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::speculate::{DraftLength, DraftSource, Speculation};
use engine::{
    Chunk, Devices, Finish, GenEvent, GenerationStats, LoadOptions, LogitsSelection, Model, Request,
    RopeScaling, Sampling, Scheduler, TokenId, generate,
};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use weights::WeightFile;

const LLAMA: &str = "logits/llama/llama.q8_0.gguf";

/// The project's own small models, one of each family and more of those with peculiarities.
fn families() -> Vec<PathBuf> {
    let folder = inglenook_tests::workspace_root().join("tests/reference/families");
    let mut all: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    all.sort();
    assert!(all.len() >= 27);
    all
}

/// With as much context as it has, at most `ctx` tokens.
fn load(path: &Path, ctx: usize, rope_scaling: Option<RopeScaling>) -> Model {
    let file = Arc::new(WeightFile::open(path).unwrap());
    let options = LoadOptions {
        devices: Devices::Cpu,
        threads: Some(2),
        ctx: Some(ctx),
        rope_scaling,
        ..LoadOptions::default()
    };
    Model::load(file, &options, &mut |_| {}).unwrap()
}

/// Longer than it was trained for, where that is asked.
fn llama(ctx: usize) -> Model {
    let model = load(&inglenook_tests::reference_dir().join(LLAMA), ctx, RopeScaling::yarn(16.0));
    assert_eq!(model.n_ctx(), ctx);
    model
}

fn lookup(length: DraftLength) -> Option<Speculation> {
    Some(Speculation { source: DraftSource::Lookup, length })
}

/// Ways to speculate that all give what none gives.
const LENGTHS: [DraftLength; 4] =
    [DraftLength::Always(1), DraftLength::Always(5), DraftLength::Always(48), DraftLength::Paying(24)];

/// Text that repeats itself with changes, so that guesses are right and wrong; longer than the small windows.
fn repetitive(seed: u64, n: usize, n_vocab: usize) -> Vec<TokenId> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let phrase: Vec<TokenId> = (0..9).map(|_| rng.random_range(0..n_vocab as u32)).collect();
    let changed = |rng: &mut SmallRng, id| match rng.random_range(0..10) {
        0 => rng.random_range(0..n_vocab as u32),
        _ => id,
    };
    (0..n).map(|at| changed(&mut rng, phrase[at % 9])).collect()
}

fn request(prompt: Vec<TokenId>, sampling: Sampling) -> Request {
    Request {
        id: 1,
        prompt,
        sequence: None,
        sampling,
        max_tokens: Some(60),
        stop: Vec::new(),
        ignore_eos: true,
        markup_tokens: Vec::new(),
        budget: None,
        speculation: None,
        script: engine::speculate::Script::default(),
        constraint: None,
        logprobs: None,
        resumed: Vec::new(),
    }
}

fn greedy() -> Sampling {
    Sampling { temperature: 0.0, ..Sampling::default() }
}

/// Every token and its text.
type Tokens = Vec<(TokenId, String)>;

fn run(model: &mut Model, request: Request) -> (Tokens, GenerationStats) {
    let mut tokens = Vec::new();
    let generation = generate(model, request, &mut |event| {
        if let GenEvent::Token { id, text, .. } = event {
            tokens.push((*id, text.clone()));
        }
        true
    });
    (tokens, generation.unwrap().done)
}

/// What is the same with and without guesses.
fn plain(done: &GenerationStats) -> GenerationStats {
    GenerationStats { n_drafted: 0, n_accepted: 0, ..*done }
}

#[test]
fn every_family_answers_as_without_guesses() {
    let samplings = [
        greedy(),
        Sampling { repeat_penalty: 1.3, ..greedy() },
        Sampling { temperature: 0.9, top_k: 5, repeat_penalty: 1.1, seed: Some(7), ..Sampling::default() },
    ];
    let (mut n_drafted, mut n_accepted) = (0, 0);
    for path in families() {
        let mut model = load(&path, 256, None);
        let n_vocab = model.info().n_vocab;
        // some have learned few positions
        let n_prompt = 70.min(model.n_ctx() / 2);
        for (seed, sampling) in (0..).zip(&samplings) {
            let prompt = repetitive(seed, n_prompt, n_vocab);
            let script = match seed {
                // an answer that repeats the prompt with some changes: guesses come true in any model
                0 => repetitive(9, 20, n_vocab)
                    .into_iter()
                    .chain(prompt[3..n_prompt - 20].iter().copied())
                    .collect(),
                _ => Vec::new(),
            };
            for script in [Vec::new(), script] {
                let asked = Request { script: script.into(), ..request(prompt.clone(), sampling.clone()) };
                let (expected, done) = run(&mut model, asked.clone());
                for length in LENGTHS {
                    let speculation = lookup(length);
                    let (found, guessed) = run(&mut model, Request { speculation, ..asked.clone() });
                    assert_eq!(found, expected, "{} {length:?} {sampling:?}", path.display());
                    assert_eq!(plain(&guessed), done);
                    n_drafted += guessed.n_drafted;
                    n_accepted += guessed.n_accepted;
                }
            }
        }
        let usage = model.kv_usage();
        assert_eq!((usage.n_pages, usage.n_states), (0, 0), "{}: nothing is left", path.display());
    }
    assert!(n_accepted > 10_000 && n_drafted > n_accepted + 10_000, "{n_accepted} of {n_drafted}");
}

/// What a sequence holds after wrong guesses is what it holds without: the next answers from it are the same.
#[test]
fn a_sequence_goes_on_after_guesses_as_after_none() {
    for path in families() {
        let mut model = load(&path, 384, None);
        let n_vocab = model.info().n_vocab;
        let prompt = repetitive(1, 50.min(model.n_ctx() / 4), n_vocab);
        let n_copied = prompt.len() * 2 / 3;
        // ends in the middle of a draft, and its guesses are wrong now and then
        let script: Vec<TokenId> = prompt[4..][..n_copied].iter().copied().chain([1, 2, 3]).collect();
        let first = Request {
            script: script.into(),
            max_tokens: Some(n_copied - 3),
            ..request(prompt.clone(), greedy())
        };
        let mut seen = Vec::new();
        for speculation in [None].into_iter().chain(LENGTHS.map(lookup)) {
            let held_in = model.new_sequence().unwrap();
            let sequence = Some(held_in);
            let (answer, _) = run(&mut model, Request { sequence, speculation, ..first.clone() });
            let ids: Vec<TokenId> = answer.iter().map(|(id, _)| *id).collect();
            let held = model.tokens(held_in).unwrap().to_vec();
            let whole = [&prompt[..], &ids].concat();
            assert!(whole.starts_with(&held), "{}: it holds nothing else", path.display());
            assert!(held.len() + 49 >= whole.len(), "{}: {} held", path.display(), held.len());
            let next = [&whole[..], &prompt[..7]].concat();
            let asked = Request { sequence, speculation, ..request(next, greedy()) };
            seen.push((answer, run(&mut model, asked).0));
            model.free(held_in);
        }
        assert!(seen.iter().all(|answers| *answers == seen[0]), "{}", path.display());
    }
}

/// Everything at once: several sequences with drafts of their own, more requests than sequences, and some that don't
/// speculate; cancelled ones end in time.
#[test]
fn together_they_answer_as_alone() {
    for name in ["llama", "gemma3", "qwen3_5", "lfm2"] {
        let folder = inglenook_tests::workspace_root().join("tests/reference/families");
        let mut model = load(&folder.join(name), 256, None);
        let n_vocab = model.info().n_vocab;
        let asked = |id: u64| Request {
            id,
            speculation: lookup(LENGTHS[id as usize % 4]).filter(|_| id % 3 != 2),
            max_tokens: Some(30 + id as usize),
            ..request(repetitive(id, 30 + 11 * id as usize, n_vocab), greedy())
        };
        let alone: Vec<Tokens> =
            (0..8).map(|id| run(&mut model, Request { speculation: None, ..asked(id) }).0).collect();
        let mut scheduler = Scheduler::new();
        (0..8).for_each(|id| scheduler.submit(asked(id)).unwrap());
        let mut together = vec![Tokens::new(); 8];
        let mut ended = [None; 8];
        for step in 0..2000 {
            if together[5].len() >= 10 {
                scheduler.cancel(5);
            }
            let work_left = scheduler.step(&mut model, &mut |id, event| match event {
                GenEvent::Token { id: token, text, .. } => together[id as usize].push((token, text)),
                GenEvent::Done(done) => ended[id as usize] = Some(done.finish),
                GenEvent::Prefill { .. } => {}
                GenEvent::Failed(error) => panic!("{error}"),
            });
            // times of a machine where rows are now cheap, now dear
            scheduler.record_step(if step % 7 == 0 { 0.09 } else { 0.03 });
            if !work_left {
                break;
            }
        }
        for id in 0..8 {
            if id == 5 {
                assert_eq!(ended[id], Some(Finish::Cancelled));
                assert!(alone[id].starts_with(&together[id]) && together[id].len() < alone[id].len());
            } else {
                assert_eq!(together[id], alone[id], "{name}: request {id}");
                assert_eq!(ended[id], Some(Finish::Length));
            }
        }
        assert_eq!(model.kv_usage().n_pages, 0);
    }
}

#[test]
fn ends_are_the_same_in_the_middle_of_a_draft() {
    let mut model = llama(120);
    let n_vocab = model.info().n_vocab;
    let prompt = repetitive(3, 60, n_vocab);
    let eos = model.tokenizer().unwrap().eos().unwrap();
    let script: Vec<TokenId> = prompt[0..50].to_vec();
    let base = Request { script: script.clone().into(), ..request(prompt.clone(), greedy()) };
    let text = run(&mut model, base.clone()).0.into_iter().map(|(_, text)| text).collect::<String>();
    let (at, _) = text.char_indices().nth(text.chars().count() / 2).unwrap();
    let stop: String = text[at..].chars().take(3).collect();
    let with_eos = [&script[..20], &[eos], &script[21..]].concat();
    // the prompt has it too, so that it is guessed
    let prompt_with_eos = [&prompt[..20], &[eos], &prompt[21..]].concat();
    let cases = [
        (Request { stop: vec![stop], ..base.clone() }, Finish::Stop),
        (Request { stop: vec!["\u{1F40C}".repeat(9)], ..base.clone() }, Finish::Length),
        (Request { max_tokens: Some(1), ..base.clone() }, Finish::Length),
        (Request { max_tokens: Some(2), ..base.clone() }, Finish::Length),
        (Request { max_tokens: Some(0), ..base.clone() }, Finish::Length),
        (Request { max_tokens: None, ..base.clone() }, Finish::ContextFull),
        (
            Request { prompt: prompt_with_eos, script: with_eos.into(), ignore_eos: false, ..base.clone() },
            Finish::Stop,
        ),
    ];
    for (case, finish) in cases {
        let (expected, done) = run(&mut model, case.clone());
        assert_eq!(done.finish, finish);
        for length in LENGTHS {
            let (found, guessed) = run(&mut model, Request { speculation: lookup(length), ..case.clone() });
            assert_eq!((found, plain(&guessed)), (expected.clone(), done), "{length:?}");
        }
    }
}

/// Frequencies of the second token behind a first that may have been guessed, against their exact probabilities.
#[test]
fn the_distribution_is_that_of_the_model() {
    let mut model = llama(256);
    let n_vocab = model.info().n_vocab;
    let first = 17;
    // a guess that the model finds likely, too: it comes true often, but not always
    let mut prompts = (0..n_vocab as u32).map(|guess| {
        let prompt = [&repetitive(4, 12, n_vocab)[..], &[3, first, guess, 5, 6], &[3]].concat();
        let after = likeliest(&mut model, &[&prompt[..], &[first]].concat(), 4);
        (after.iter().any(|&(id, p)| id == guess && p < 0.8), prompt)
    });
    let (_, prompt) = prompts.find(|(is_likely, _)| *is_likely).expect("some of so many are likely");
    drop(prompts);
    let sampling =
        |seed| Sampling { temperature: 1.0, top_k: 4, top_p: 1.0, min_p: 0.0, seed, ..Sampling::default() };
    let mut expected = vec![0.0; n_vocab];
    let whole = [&prompt[..], &[first]].concat();
    for (token, p) in likeliest(&mut model, &whole, 4) {
        for (next, q) in likeliest(&mut model, &[&whole[..], &[token]].concat(), 4) {
            expected[next as usize] += p * q;
        }
    }
    const N: usize = 4000;
    let sequence = Some(model.new_sequence().unwrap());
    let mut seen = vec![0usize; n_vocab];
    let mut n_accepted = 0;
    for seed in 0..N as u64 {
        let asked = Request {
            script: vec![first].into(),
            sequence,
            max_tokens: Some(3),
            speculation: lookup(DraftLength::Always(1)),
            ..request(prompt.clone(), sampling(Some(seed)))
        };
        let (tokens, done) = run(&mut model, asked);
        seen[tokens[2].0 as usize] += 1;
        n_accepted += done.n_accepted;
    }
    assert!((N / 20..N).contains(&n_accepted), "{n_accepted} guesses came true");
    let mut chi_square = 0.0;
    for (token, (&n, &p)) in seen.iter().zip(&expected).enumerate() {
        assert!(p > 0.0 || n == 0, "token {token} is none of the likeliest");
        if p > 0.0 {
            chi_square += (n as f64 - N as f64 * p).powi(2) / (N as f64 * p);
        }
    }
    // at most 15 degrees of freedom: exceeded by chance once in ten thousand
    assert!(chi_square < 44.3, "{chi_square}");
}

/// The `n` likeliest tokens after `tokens`, with their probabilities among themselves.
fn likeliest(model: &mut Model, tokens: &[TokenId], n: usize) -> Vec<(TokenId, f64)> {
    let seq = model.new_sequence().unwrap();
    let logits = model.forward(&[Chunk { seq, tokens, logits: LogitsSelection::Last }]).unwrap();
    let mut all: Vec<(TokenId, f64)> =
        (0..).zip(logits.row(0).unwrap()).map(|(id, &logit)| (id, f64::from(logit))).collect();
    model.free(seq);
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    all.truncate(n);
    let largest = all[0].1;
    let total: f64 = all.iter().map(|(_, logit)| (logit - largest).exp()).sum();
    all.into_iter().map(|(id, logit)| (id, (logit - largest).exp() / total)).collect()
}

/// Where guesses are wrong, they are soon left; where they come true, they come back.
#[test]
fn guesses_end_where_they_are_wrong_and_begin_again_where_they_are_right() {
    let mut model = llama(2048);
    let n_vocab = model.info().n_vocab as u32;
    let mut rng = SmallRng::seed_from_u64(5);
    let text: Vec<TokenId> = (0..400).map(|_| rng.random_range(0..n_vocab)).collect();
    // pairs of the text followed by something else: every match is wrong
    let wrong = text.chunks(2).flat_map(|pair| [pair[0], pair[1], rng.random_range(0..n_vocab)]);
    let wrong: Vec<TokenId> = wrong.take(500).collect();
    let ask = |script: Vec<TokenId>, speculation| Request {
        max_tokens: Some(script.len()),
        speculation,
        script: script.into(),
        ..request(text.clone(), greedy())
    };
    let paying = lookup(DraftLength::Paying(24));
    let (_, done) = run(&mut model, ask(wrong.clone(), paying));
    assert!(done.n_drafted < 25, "{} of 500", done.n_drafted);
    let copy = text[10..390].to_vec();
    let (_, done) = run(&mut model, ask(copy.clone(), paying));
    assert!(done.n_accepted > 330 && done.n_drafted < 420, "{} of {}", done.n_accepted, done.n_drafted);
    let (_, done) = run(&mut model, ask([wrong, copy].concat(), paying));
    assert!(done.n_accepted > 310, "{} of {}", done.n_accepted, done.n_drafted);
}

/// A draft model that is the model itself, whose guesses are right, and one of another family, whose guesses are wrong.
#[test]
fn a_draft_model_changes_no_answer() {
    let folder = inglenook_tests::workspace_root().join("tests/reference/families");
    let names = ["llama", "gemma3", "gpt_oss", "qwen3_5", "lfm2"];
    for (at, name) in names.into_iter().enumerate() {
        let mut model = load(&folder.join(name), 200, None);
        let n_vocab = model.info().n_vocab;
        let other = names[(at + 1) % names.len()];
        for (draft, is_itself) in [(name, true), (other, false)] {
            let mut scheduler = Scheduler::new();
            scheduler.draft_with(load(&folder.join(draft), 150, None), &model).unwrap();
            let sampled = Sampling { temperature: 0.6, top_k: 4, seed: Some(3), ..Sampling::default() };
            for (id, sampling) in (0..).zip([greedy(), sampled]) {
                let asked = Request { id, ..request(repetitive(id, 40, n_vocab), sampling) };
                let (expected, done) = run(&mut model, asked.clone());
                for length in LENGTHS {
                    let speculation = Some(Speculation { source: DraftSource::Model, length });
                    let asked = Request { speculation, ..asked.clone() };
                    let (found, guessed) = run_in(&mut scheduler, &mut model, asked);
                    assert_eq!(
                        (found, plain(&guessed)),
                        (expected.clone(), done),
                        "{name} {draft} {length:?}"
                    );
                    if length == DraftLength::Always(5) && id == 0 {
                        let is_right = guessed.n_accepted == guessed.n_drafted;
                        assert_eq!((guessed.n_drafted > 40, is_right), (true, is_itself), "{name} {draft}");
                    }
                }
            }
        }
    }
    let model = llama(64);
    let mut scheduler = Scheduler::new();
    let starter = inglenook_tests::workspace_root().join("models/starter/starter.gguf");
    let error = scheduler.draft_with(load(&starter, 64, None), &model).unwrap_err();
    assert_eq!(error.code(), "model.draft_vocabulary");
}

fn run_in(scheduler: &mut Scheduler, model: &mut Model, request: Request) -> (Tokens, GenerationStats) {
    let (mut tokens, mut ended) = (Tokens::new(), None);
    scheduler.submit(request).unwrap();
    while ended.is_none() {
        scheduler.step(model, &mut |_, event| match event {
            GenEvent::Token { id, text, .. } => tokens.push((id, text)),
            GenEvent::Done(done) => ended = Some(done),
            GenEvent::Prefill { .. } => {}
            GenEvent::Failed(error) => panic!("{error}"),
        });
    }
    (tokens, ended.unwrap())
}
