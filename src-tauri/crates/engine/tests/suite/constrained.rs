//! Answers under constraints: valid whatever the model prefers, with every sampler, in company, and with drafts.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;

use engine::constraint::{ConstraintCompiler, ReasoningGate, ReplyConstraint, TextChecker, TextForm};
use engine::speculate::{DraftLength, DraftSource, Script, Speculation};
use engine::tokenizer::Special;
use engine::{
    Devices, Finish, GenEvent, Generation, LoadOptions, Model, Request, Sampling, Scheduler, generate,
};
use serde_json::{Value, json};
use weights::WeightFile;

fn starter() -> Model {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../models/starter/starter.gguf");
    let file = WeightFile::open(&path).unwrap();
    let options =
        LoadOptions { devices: Devices::Cpu, threads: Some(2), ctx: Some(512), ..LoadOptions::default() };
    Model::load(Arc::new(file), &options, &mut |_| {}).unwrap()
}

/// Schemas whose instances are short, with what grammars express and what is checked beside them.
fn schemas() -> Vec<Value> {
    let short = json!({ "type": "string", "maxLength": 8 });
    let digit = json!({ "type": "integer", "minimum": 0, "maximum": 9 });
    vec![
        json!({
            "type": "object",
            "properties": { "name": short, "age": { "type": "integer", "minimum": 0, "maximum": 130 } },
            "required": ["name", "age"],
            "additionalProperties": false,
        }),
        json!({ "enum": ["red", "green", 7, null, { "a": [true] }] }),
        json!({ "type": "array", "items": { "type": "integer", "minimum": 1, "maximum": 999_999_999 }, "uniqueItems": true, "minItems": 2, "maxItems": 4 }),
        json!({
            "type": "object",
            "properties": { "kind": { "enum": ["a", "b"] }, "a": digit, "b": short },
            "required": ["kind"],
            "additionalProperties": false,
            "if": { "properties": { "kind": { "const": "a" } } },
            "then": { "required": ["a"] },
            "else": { "required": ["b"] },
        }),
        json!({ "type": "string", "format": "date" }),
        json!({ "type": "string", "pattern": "^[A-Z]{2}-[0-9]{3}$" }),
        json!({ "oneOf": [{ "type": "number", "multipleOf": 0.5, "minimum": 1, "maximum": 9 }, { "type": "boolean" }] }),
    ]
}

fn compiler(model: &Model) -> ConstraintCompiler {
    ConstraintCompiler::new(model.tokenizer().unwrap(), &[], model.info().n_vocab).unwrap()
}

fn request(model: &Model, id: u64, constraint: Option<ReplyConstraint>, sampling: Sampling) -> Request {
    Request {
        id,
        prompt: model.tokenizer().unwrap().encode("What is a model? Answer with JSON.", Special::Plain),
        sequence: None,
        sampling,
        max_tokens: Some(160),
        stop: Vec::new(),
        ignore_eos: false,
        markup_tokens: Vec::new(),
        budget: None,
        speculation: None,
        script: Script::default(),
        constraint,
        logprobs: None,
        resumed: Vec::new(),
    }
}

fn drawn(seed: u64) -> Sampling {
    let samplings = [
        Sampling { temperature: 0.0, ..Sampling::default() },
        Sampling { temperature: 1.0, top_k: 0, top_p: 1.0, min_p: 0.0, ..Sampling::default() },
        Sampling { temperature: 0.8, top_k: 40, repeat_penalty: 1.1, ..Sampling::default() },
        Sampling { temperature: 1.5, top_k: 5, presence_penalty: 1.0, ..Sampling::default() },
    ];
    Sampling { seed: Some(seed), ..samplings[seed as usize % samplings.len()].clone() }
}

fn speculation(length: usize) -> Option<Speculation> {
    Some(Speculation { source: DraftSource::Lookup, length: DraftLength::Always(length) })
}

/// Generates `n` answers under each schema. All that end by themselves must be valid, and most must.
fn generate_all(n: u64) -> (usize, usize) {
    let mut model = starter();
    let compiler = compiler(&model);
    let (mut n_valid, mut n_long) = (0, 0);
    for schema in schemas() {
        let form = TextForm::JsonSchema(schema.clone());
        let checker = TextChecker::new(&form).unwrap();
        let compiled = compiler.compile(&form, ReasoningGate::none()).unwrap();
        for seed in 0..n {
            let asked = request(&model, seed, Some(compiled.clone()), drawn(seed));
            let asked = Request { speculation: speculation(4).filter(|_| seed % 2 == 1), ..asked };
            let generated = generate(&mut model, asked, &mut |_| true);
            let Generation { text, done, .. } =
                generated.unwrap_or_else(|error| panic!("{schema}, {seed}: {error}"));
            match done.finish {
                Finish::Stop => {
                    assert!(checker.accepts(&text).unwrap(), "{schema}: {text}");
                    n_valid += 1;
                }
                _ => {
                    println!("too long under {schema}, {seed}: {text}");
                    n_long += 1;
                }
            }
        }
    }
    (n_valid, n_long)
}

#[test]
fn answers_under_schemas_are_valid() {
    let (n_valid, n_long) = generate_all(7);
    assert_eq!((n_valid, n_long), (49, 0));
}

#[test]
#[ignore = "takes minutes: 1,001 answers"]
fn a_thousand_answers_under_schemas_are_valid() {
    let (n_valid, n_long) = generate_all(143);
    assert_eq!((n_valid, n_long), (1001, 0));
}

#[test]
fn drafts_and_company_change_no_constrained_answer() {
    let mut model = starter();
    let compiler = compiler(&model);
    let form = TextForm::JsonSchema(json!({
        "type": "array",
        "items": { "enum": ["a model", "a modest model", "no model"] },
        "minItems": 6,
        "maxItems": 12,
    }));
    let compiled = compiler.compile(&form, ReasoningGate::none()).unwrap();
    let sampling = |seed| Sampling { temperature: 0.9, seed: Some(seed), ..Sampling::default() };
    let alone: Vec<Generation> = (0..4)
        .map(|id| {
            let asked = request(&model, id, Some(compiled.clone()), sampling(id));
            generate(&mut model, asked, &mut |_| true).unwrap()
        })
        .collect();
    let mut n_accepted = 0;
    for (id, expected) in (0..).zip(&alone) {
        let asked = request(&model, id, Some(compiled.clone()), sampling(id));
        let asked = Request { speculation: speculation(6), ..asked };
        let found = generate(&mut model, asked, &mut |_| true).unwrap();
        assert_eq!((&found.ids, &found.text), (&expected.ids, &expected.text));
        n_accepted += found.done.n_accepted;
    }
    assert!(n_accepted > 0, "no draft was right");
    let mut scheduler = Scheduler::new();
    for id in 0..4 {
        scheduler.submit(request(&model, id, Some(compiled.clone()), sampling(id))).unwrap();
    }
    scheduler.submit(request(&model, 9, None, sampling(9))).unwrap();
    let mut ids = vec![Vec::new(); 10];
    while scheduler.step(&mut model, &mut |id, event| match event {
        GenEvent::Token { id: token, .. } => ids[id as usize].push(token),
        GenEvent::Failed(error) => panic!("{error}"),
        GenEvent::Prefill { .. } | GenEvent::Done(_) => {}
    }) {}
    for (found, expected) in ids.iter().zip(&alone) {
        assert_eq!(found, &expected.ids);
    }
    assert!(!ids[9].is_empty());
}

#[test]
fn a_constraint_that_nothing_satisfies_fails_its_own_turn() {
    let mut model = starter();
    let form =
        TextForm::JsonSchema(json!({ "not": { "type": ["string", "number", "object", "array", "null"] },
        "type": ["boolean"], "enum": [true, false] }));
    let compiled = compiler(&model).compile(&form, ReasoningGate::none()).unwrap();
    let banned: Vec<engine::sampler::LogitBias> = (0..model.info().n_vocab as u32)
        .map(|token| engine::sampler::LogitBias { token, bias: -100.0 })
        .collect();
    let sampling = Sampling { logit_bias: banned, ..drawn(0) };
    let asked = request(&model, 1, Some(compiled), sampling);
    let error = generate(&mut model, asked, &mut |_| true).unwrap_err();
    assert_eq!(error.code(), "constraint.dead_end");
    let asked = request(&model, 2, None, drawn(0));
    assert!(generate(&mut model, asked, &mut |_| true).is_ok());
}
