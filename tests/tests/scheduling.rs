//! What the scheduler promises: the same answers alone and together, an end for every reason, and no more
//! tokens after it.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::speculate::{DraftLength, DraftSource, Speculation};
use engine::{
    Devices, EngineError, Finish, GenEvent, GenerationStats, LoadOptions, Model, Request, RopeScaling,
    Sampling, Scheduler, TokenId, generate,
};
use test_support::{Missing, skip_part};
use weights::WeightFile;

const MODEL: &str = "logits/llama/llama.q8_0.gguf";

fn load(file: &str, ctx: usize) -> Model {
    load_as(file, LoadOptions { ctx: Some(ctx), max_rows: Some(16), ..LoadOptions::default() })
}

fn load_as(file: &str, options: LoadOptions) -> Model {
    let file = Arc::new(WeightFile::open(&inglenook_tests::reference_dir().join(file)).unwrap());
    let options = LoadOptions { devices: Devices::Cpu, threads: Some(2), ..options };
    Model::load(file, &options, &mut |_| {}).unwrap()
}

/// A request for ten random tokens, told apart by `id`.
fn request(id: u64) -> Request {
    Request {
        id,
        prompt: (0..10 + 7 * id as u32).map(|i| (i * 37 + id as u32) % 500).collect(),
        sequence: None,
        sampling: Sampling { temperature: 1.0, seed: Some(id), ..Sampling::default() },
        max_tokens: Some(10),
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

/// What became of one request.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    ids: Vec<TokenId>,
    text: String,
    done: Option<GenerationStats>,
    failed: Option<EngineError>,
    prefill: Vec<usize>,
}

impl Outcome {
    fn take(&mut self, event: GenEvent) {
        assert!(self.done.is_none() && self.failed.is_none(), "nothing follows the end");
        match event {
            GenEvent::Prefill { done, .. } => self.prefill.push(done),
            GenEvent::Token { id, text, .. } => {
                self.ids.push(id);
                self.text.push_str(&text);
            }
            GenEvent::Done(done) => self.done = Some(done),
            GenEvent::Failed(error) => self.failed = Some(error),
        }
    }

    fn finish(&self) -> Option<Finish> {
        self.done.as_ref().map(|done| done.finish)
    }
}

/// Sees the number of the step and what has come of the requests.
type BeforeStep<'a> = dyn FnMut(usize, &mut Scheduler, &BTreeMap<u64, Outcome>) + 'a;

/// Steps to the end; `before` may act before each step.
fn run(model: &mut Model, requests: Vec<Request>, before: &mut BeforeStep) -> BTreeMap<u64, Outcome> {
    let mut scheduler = Scheduler::new();
    let mut outcomes = BTreeMap::new();
    for request in requests {
        outcomes.insert(request.id, Outcome::default());
        scheduler.submit(request).unwrap();
    }
    for step in 0.. {
        assert!(step < 10_000, "it comes to an end");
        before(step, &mut scheduler, &outcomes);
        let work_left =
            scheduler.step(model, &mut |id, event| outcomes.get_mut(&id).expect("a known id").take(event));
        if !work_left {
            break;
        }
    }
    assert_eq!(scheduler.n_in_flight(), 0);
    assert!(model.has_free_sequence(), "sequences are given back");
    outcomes
}

fn alone(model: &mut Model, request: Request) -> Outcome {
    let id = request.id;
    run(model, vec![request], &mut |_, _, _| {}).remove(&id).unwrap()
}

#[test]
fn answers_are_the_same_alone_and_together() {
    let mut model = load(MODEL, 256);
    let single: Vec<Outcome> = (0..7).map(|id| alone(&mut model, request(id))).collect();
    // more requests than sequences: some wait
    let together = run(&mut model, (0..7).map(request).collect(), &mut |_, _, _| {});
    for (id, outcome) in together {
        let expected = &single[id as usize];
        assert_eq!((&outcome.ids, &outcome.text), (&expected.ids, &expected.text), "request {id}");
        assert_eq!(outcome.done, expected.done);
        assert_eq!(outcome.ids.len(), 10);
        assert_eq!(outcome.finish(), Some(Finish::Length));
        assert_eq!(outcome.prefill.last(), Some(&request(id).prompt.len()));
        assert!(outcome.prefill.is_sorted(), "{:?}", outcome.prefill);
    }
}

#[test]
fn an_answer_that_was_broken_off_goes_on_as_it_would_have() {
    let mut model = load(MODEL, 64);
    let speculation = Some(Speculation { source: DraftSource::Lookup, length: DraftLength::Always(3) });
    let greedy = Sampling { temperature: 0.0, ..Sampling::default() };
    for (name, whole) in [
        ("drawn", Request { max_tokens: Some(20), ..request(3) }),
        ("greedy", Request { sampling: greedy, max_tokens: Some(20), ..request(1) }),
        ("guessed ahead", Request { speculation, max_tokens: Some(20), ..request(2) }),
        ("to the end of the context", Request { max_tokens: None, ..request(2) }),
    ] {
        let expected = alone(&mut model, whole.clone());
        for n in 0..=expected.ids.len() {
            let resumed = expected.ids[..n].to_vec();
            let outcome = alone(&mut model, Request { resumed, ..whole.clone() });
            assert_eq!((&outcome.ids, &outcome.text), (&expected.ids, &expected.text), "{name} after {n}");
            assert_eq!(outcome.finish(), expected.finish(), "{name} after {n}");
            let computed = if n < expected.ids.len() { expected.prefill.last() } else { Some(&0) };
            assert_eq!(outcome.prefill.last(), computed, "{name} after {n}");
        }
    }
}

#[test]
fn a_cancelled_request_yields_no_further_token() {
    let mut model = load(MODEL, 256);
    let expected = alone(&mut model, request(2));
    let mut n_before = None;
    let outcomes = run(&mut model, vec![request(1), request(2), request(3)], &mut |step, scheduler, seen| {
        if step == 0 {
            scheduler.cancel(3);
            scheduler.cancel(77);
        }
        if seen[&1].ids.len() == 4 && n_before.is_none() {
            n_before = Some(4);
            scheduler.cancel(1);
        }
    });
    assert_eq!((outcomes[&1].finish(), outcomes[&1].ids.len()), (Some(Finish::Cancelled), 4));
    assert_eq!((outcomes[&3].finish(), outcomes[&3].ids.len()), (Some(Finish::Cancelled), 0));
    assert_eq!(outcomes[&2].ids, expected.ids);
}

#[test]
fn a_stop_text_ends_the_answer_before_it() {
    let mut model = load(MODEL, 256);
    let whole = alone(&mut model, Request { max_tokens: Some(40), ..request(1) });
    let (at, _) = whole.text.char_indices().nth(10).unwrap();
    let (end, _) = whole.text.char_indices().nth(13).unwrap();
    let stop = whole.text[at..end].to_owned();
    let at = whole.text.find(&stop).unwrap();
    let stopped = alone(&mut model, Request { max_tokens: Some(40), stop: vec![stop], ..request(1) });
    assert_eq!(stopped.text, whole.text[..at]);
    assert_eq!(stopped.finish(), Some(Finish::Stop));
    assert!(stopped.ids.len() < 40);
    // one that never comes holds nothing back in the end
    let other =
        alone(&mut model, Request { max_tokens: Some(40), stop: vec!["\u{1F40C}".repeat(9)], ..request(1) });
    assert_eq!(other.text, whole.text);
}

#[test]
fn an_end_of_generation_token_ends_the_answer() {
    let mut model = load(MODEL, 1024);
    let eos = model.tokenizer().unwrap().eos().unwrap();
    let sampling =
        Sampling { temperature: 5.0, top_k: 0, top_p: 1.0, min_p: 0.0, seed: Some(0), ..Default::default() };
    let long = Request { sampling, max_tokens: Some(900), ..request(0) };
    let ignored = alone(&mut model, long.clone());
    let at = ignored.ids.iter().position(|&id| id == eos).expect("nearly uniform draws meet every token");
    let stopped = alone(&mut model, Request { ignore_eos: false, ..long });
    assert_eq!(stopped.ids, ignored.ids[..=at]);
    assert_eq!(stopped.finish(), Some(Finish::Stop));
}

#[test]
fn limits_are_told_with_numbers() {
    let mut model = load(MODEL, 40);
    let full = alone(&mut model, Request { max_tokens: None, ..request(1) });
    assert_eq!(full.finish(), Some(Finish::ContextFull));
    assert_eq!(full.ids.len(), 40 - 17 + 1, "the last token needs no place");
    let none = alone(&mut model, Request { max_tokens: Some(0), ..request(1) });
    assert_eq!((none.finish(), none.ids.len()), (Some(Finish::Length), 0));
    let cases = [
        (Request { prompt: vec![1; 41], ..request(1) }, "request.context_full"),
        (Request { prompt: vec![], ..request(1) }, "request.empty_prompt"),
        (Request { prompt: vec![1, 512], ..request(1) }, "request.token_unknown"),
        (Request { sequence: Some(engine::SequenceId(99)), ..request(1) }, "kv.unknown_sequence"),
    ];
    for (bad, code) in cases {
        let outcomes = run(&mut model, vec![bad, request(2)], &mut |_, _, _| {});
        assert_eq!(outcomes[&1].failed.as_ref().unwrap().code(), code);
        assert_eq!(outcomes[&2].ids.len(), 10, "the other goes on after {code}");
    }
}

#[test]
fn what_a_sequence_holds_is_not_computed_again() {
    let mut model = load(MODEL, 256);
    let seq = model.new_sequence().unwrap();
    let first = Request { sequence: Some(seq), ..request(1) };
    let n_prompt = first.prompt.len();
    let answer = alone(&mut model, first.clone());
    // the last token was never fed back
    let held = [&first.prompt[..], &answer.ids[..9]].concat();
    assert_eq!(model.tokens(seq).unwrap(), held);

    let prompt = [&held[..], &[5, 6, 7]].concat();
    let longer = Request { prompt, sequence: Some(seq), ..request(2) };
    let fresh = alone(&mut model, Request { sequence: None, ..longer.clone() });
    let reused = alone(&mut model, longer);
    assert_eq!(reused.ids, fresh.ids);
    assert_eq!(reused.done.as_ref().unwrap().n_reused, held.len());
    assert_eq!(fresh.done.as_ref().unwrap().n_reused, 0);

    let again = alone(&mut model, first);
    assert_eq!(again.ids, answer.ids);
    assert_eq!(again.done.as_ref().unwrap().n_reused, n_prompt - 1, "the last token's logits are wanted");
}

/// Layers that forget come back to where they were kept: before the reply, after it, and along a long prompt.
#[test]
fn models_that_forget_go_back_without_reading_all_again() {
    let folder = inglenook_tests::reference_dir().join("logits");
    for name in ["gpt_oss", "lfm2", "qwen3_5"] {
        if !folder.join(name).exists() && inglenook_tests::reference_is_small() {
            skip_part!(Missing::Reference, "{name} is not in the small set");
            continue;
        }
        // longer than they were trained for
        let rope_scaling = RopeScaling::yarn(4.0);
        let options = LoadOptions { ctx: Some(2048), rope_scaling, ..LoadOptions::default() };
        let mut model = load_as(&format!("logits/{name}"), options);
        assert_eq!(model.n_ctx(), 2048);
        let seq = model.new_sequence().unwrap();
        let ask = |id: u64, prompt: Vec<u32>| Request { prompt, sequence: Some(seq), ..request(id) };
        let check = |model: &mut Model, request: Request, n_reused: usize| {
            let n_prompt = request.prompt.len();
            let answer = alone(model, request.clone());
            let fresh = alone(model, Request { sequence: None, ..request });
            assert_eq!(answer.ids, fresh.ids, "{name}");
            assert_eq!(answer.done.as_ref().unwrap().n_reused, n_reused, "{name}: of {n_prompt}");
            answer.ids
        };
        let text = |n: u32| -> Vec<u32> { (0..n).map(|i| i * 37 % 500).collect() };
        let first = ask(1, text(1300));
        let reply = check(&mut model, first.clone(), 0);
        assert_eq!(check(&mut model, first.clone(), 1299), reply, "regenerated");
        // the next turn, whose template drops the last tokens of the prompt and the reply: old reasoning
        let rewound = if name == "gpt_oss" { 1298 } else { 1284 };
        check(&mut model, ask(2, [&first.prompt[..1298], &[9; 40]].concat()), rewound);
        // the first turn again, and on from its end
        check(&mut model, first.clone(), rewound);
        let held = [&first.prompt[..], &reply[..9]].concat();
        check(&mut model, ask(3, [&held[..], &[5; 30]].concat()), held.len());
        // its message is edited
        check(&mut model, ask(4, [&held[..], &[6; 50]].concat()), held.len());
        // an early edit of a long prompt
        check(&mut model, ask(5, [&first.prompt[..1100], &[6; 50]].concat()), 1024);
    }
}

#[test]
fn f60_numbers_that_are_none_fail_their_request() {
    let mut model = load("malformed/gguf-f32_nan_norm.gguf", 32);
    let prompt = vec![1, 2, 3];
    let outcome = alone(&mut model, Request { prompt: prompt.clone(), ..request(0) });
    assert_eq!(outcome.failed.unwrap().code(), "model.nan_logits");
    let error = generate(&mut model, Request { prompt, ..request(0) }, &mut |_| true).unwrap_err();
    assert_eq!(error.code(), "model.nan_logits");
}

/// Memory for that many pages of contexts of `MODEL` in all.
fn load_within(n_pages: u64) -> Model {
    let bytes = load(MODEL, 256).info().kv_bytes_per_token * kernels::PAGE_LEN as u64 * n_pages;
    let options =
        LoadOptions { ctx: Some(256), max_rows: Some(16), max_sequences: 8, ..LoadOptions::default() };
    load_as(MODEL, LoadOptions { kv_bytes: Some(bytes), ..options })
}

#[test]
fn where_memory_is_short_the_youngest_wait_and_answers_stay_the_same() {
    let mut model = load(MODEL, 256);
    let asked = |id| Request { max_tokens: Some(90), ..request(id) };
    let expected: Vec<Outcome> = (0..6).map(|id| alone(&mut model, asked(id))).collect();
    for n_pages in [9, 12, 20] {
        let mut model = load_within(n_pages);
        let speculation = Some(Speculation { source: DraftSource::Lookup, length: DraftLength::Always(3) });
        let requests =
            (0..6).map(|id| Request { speculation: speculation.filter(|_| id % 2 == 0), ..asked(id) });
        let outcomes = run(&mut model, requests.collect(), &mut |_, _, _| {});
        for (id, outcome) in outcomes {
            let expected = &expected[id as usize];
            assert_eq!(
                (&outcome.ids, &outcome.text),
                (&expected.ids, &expected.text),
                "{id}, {n_pages} pages"
            );
            assert_eq!(outcome.finish(), Some(Finish::Length));
        }
        assert_eq!(model.n_free_pages(), n_pages as usize, "all is given back");
    }
}

#[test]
fn a_paused_request_can_be_cancelled() {
    let mut model = load_within(9);
    let asked = |id| Request { max_tokens: Some(200), ..request(id) };
    let outcomes = run(&mut model, (0..4).map(asked).collect(), &mut |_, scheduler, outcomes| {
        // by then the first has taken what the last had
        if outcomes[&0].ids.len() == 150 {
            assert!(outcomes[&3].ids.len() < 120, "it has waited");
            scheduler.cancel(3);
        }
    });
    assert_eq!(outcomes[&3].finish(), Some(Finish::Cancelled));
    assert!((0..3).all(|id| outcomes[&id].ids.len() == 200));
}

#[test]
fn a_long_prompt_beside_answers_and_other_prompts_goes_in_small_pieces() {
    let options = LoadOptions { ctx: Some(512), max_rows: Some(128), ..LoadOptions::default() };
    let mut model = load_as(MODEL, options);
    let mut scheduler = Scheduler::new();
    let mut outcomes: BTreeMap<u64, Outcome> = BTreeMap::new();
    let long = |id| Request { prompt: (0..400).map(|i| i * 11 % 500).collect(), ..request(id) };
    let answering = Request { max_tokens: Some(60), ..request(0) };
    scheduler.submit(answering).unwrap();
    let step = |scheduler: &mut Scheduler, model: &mut Model, outcomes: &mut BTreeMap<u64, Outcome>| {
        scheduler.step(model, &mut |id, event| outcomes.entry(id).or_default().take(event));
        // a machine on which a row of a prompt takes ten milliseconds
        scheduler.record_step(1.0);
    };
    step(&mut scheduler, &mut model, &mut outcomes);
    scheduler.submit(long(1)).unwrap();
    scheduler.submit(Request { prompt: vec![3; 30], ..request(2) }).unwrap();
    step(&mut scheduler, &mut model, &mut outcomes);
    let mut last = 0;
    while outcomes[&1].ids.is_empty() {
        step(&mut scheduler, &mut model, &mut outcomes);
        let now = *outcomes[&1].prefill.last().unwrap();
        assert!(now - last <= 128, "{last} then {now}");
        last = now;
    }
    let pieces = outcomes[&1].prefill.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<_>>();
    assert!(pieces[1..].iter().all(|&n| n <= 40), "{pieces:?}");
    assert!(outcomes[&0].ids.len() > 10, "the answer went on beside it");
    assert!(outcomes[&2].ids.len() > 3, "a short prompt isn't behind the long one");
}
