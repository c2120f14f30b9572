//! Passages found by meaning, with a real model whose vocabulary makes some words synonyms. A
//! question can be near to a passage without sharing a word with it.
#![allow(clippy::unwrap_used)] // a test

use std::task::{Context, Poll, Waker};

use crate::common::Home;
use app::App;
use app::AppConfig;
use app::Overrides;
use contract::protocol::{Backend, EmbedAs};
use contract::types::{AppEvent, Citation, SendArgs, SettingKind, TurnEventKind};
use contract::{GpuFaultKind, PlannedGpuFault};
use platform::Watch;
use serde_json::json;
use weights::DType;
use weights::write::{GgufWriter, OwnedValue};

/// Synonyms stand together. No word is a prefix of another.
const MEANINGS: [&[&str]; 3] = [&["hound", "canine"], &["vessel", "ship"], &["bread", "loaf"]];

/// Width of the model: a number that all texts have, one for each meaning, and a few that nothing has.
const WIDTH: usize = 8;

/// A vocabulary of bytes and of those words, whose embeddings are their meanings; nothing else says anything, and one
/// layer that adds nothing. Text and vector: how often each meaning occurs.
fn model_of_meanings() -> Vec<u8> {
    let mut pieces: Vec<String> = ["<unk>", "<s>", "</s>"].map(str::to_owned).into();
    pieces.extend((0..=255).map(|byte| format!("<0x{byte:02X}>")));
    pieces.push("▁".into());
    let n_control = 3;
    let mut table = vec![0.0; pieces.len() * WIDTH];
    table[WIDTH] = 1.0; // <s> is in all texts
    for (meaning, words) in MEANINGS.iter().enumerate() {
        for word in *words {
            for end in 1..=word.len() {
                pieces.push(format!("▁{}", &word[..end]));
                let mut row = [0.0; WIDTH];
                row[1 + meaning] = if end == word.len() { 1.0 } else { 0.0 };
                table.extend(row);
            }
        }
    }
    let n = pieces.len();
    let mut kinds = vec![1; n];
    kinds[0] = 2;
    kinds[1..n_control].fill(3);
    kinds[n_control..n_control + 256].fill(6);
    let mut writer = GgufWriter::new();
    let arch = "gemma-embedding";
    let text = |text: &str| OwnedValue::Str(text.into());
    writer.set("general.architecture", text(arch)).set("general.name", text("Meanings"));
    for (key, n) in [
        ("block_count", 1),
        ("context_length", 1024),
        ("embedding_length", WIDTH as u32),
        ("feed_forward_length", WIDTH as u32),
        ("attention.head_count", 1),
        ("attention.head_count_kv", 1),
        ("attention.key_length", WIDTH as u32),
        ("attention.value_length", WIDTH as u32),
        ("attention.sliding_window", 512),
        ("pooling_type", 1),
    ] {
        writer.set(&format!("{arch}.{key}"), OwnedValue::U32(n));
    }
    writer.set(&format!("{arch}.attention.layer_norm_rms_epsilon"), OwnedValue::F32(1e-6));
    writer.set("tokenizer.ggml.model", text("llama"));
    writer.set("tokenizer.ggml.tokens", OwnedValue::Strs(pieces));
    writer.set("tokenizer.ggml.scores", OwnedValue::F32s(vec![0.0; n]));
    writer.set("tokenizer.ggml.token_type", OwnedValue::I32s(kinds));
    writer.set("tokenizer.ggml.bos_token_id", OwnedValue::U32(1));
    writer.set("tokenizer.ggml.eos_token_id", OwnedValue::U32(2));
    writer.set("tokenizer.ggml.add_bos_token", OwnedValue::Bool(true));
    writer.encode("token_embd.weight", DType::F32, &[n, WIDTH], &table);
    writer.encode("output_norm.weight", DType::F32, &[WIDTH], &[1.0; WIDTH]);
    for name in
        ["attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm", "attn_q_norm", "attn_k_norm"]
    {
        writer.encode(&format!("blk.0.{name}.weight"), DType::F32, &[WIDTH], &[1.0; WIDTH]);
    }
    for name in ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"] {
        let nothing = [0.0; WIDTH * WIDTH];
        writer.encode(&format!("blk.0.{name}.weight"), DType::F32, &[WIDTH, WIDTH], &nothing);
    }
    writer.to_bytes()
}

/// The application with that model in its library; its id.
fn open(home: &Home) -> (App, String) {
    let app = home.open_as(&[("max_tokens", json!(8)), ("context", json!(768)), ("titles", json!(false))]);
    app.settings_set("attachment_passages", &json!(400)).unwrap();
    let path = home.0.join("meanings.gguf");
    std::fs::write(&path, model_of_meanings()).unwrap();
    let entry = app.model_add(path.to_str().unwrap()).unwrap();
    assert!(entry.embeds && entry.architecture == "gemma-embedding", "{entry:?}");
    (app, entry.id)
}

/// Too long for the context, with one passage that is worth finding.
fn diary() -> String {
    let filler = |n: usize| format!("Paragraph {n} says that the weather was the same as on other days.\n\n");
    let mut text: String = (0..60).map(filler).collect();
    text.push_str("Under the old bridge lives a hound with one white ear.\n\n");
    text.extend((60..120).map(filler));
    text
}

fn ask(app: &App, conversation: Option<&str>, text: &str, files: &[String]) -> (String, Vec<Citation>) {
    let args = SendArgs {
        conversation: conversation.map(Into::into),
        text: text.into(),
        attachments: files.to_vec(),
        ..SendArgs::default()
    };
    let started = app.send(args).unwrap();
    let last = app.watch_turn(&started.turn, 0).unwrap().flatten().last().unwrap();
    assert!(matches!(last.kind, TurnEventKind::Done { .. }), "{last:?}");
    let messages = app.conversation_get(&started.conversation).unwrap().messages;
    (started.conversation, messages.last().unwrap().sources.clone())
}

/// The words of the file that a source points to.
fn says(source: &Citation, text: &str) -> String {
    let place = source.passage.as_ref().unwrap();
    text[place.start as usize..place.end as usize].to_owned()
}

/// Codes of the notices that have come since.
fn notices(events: &mut Watch<AppEvent>) -> Vec<String> {
    let mut codes = Vec::new();
    while let Poll::Ready(Some(new)) = events.poll_next(&mut Context::from_waker(Waker::noop())) {
        codes.extend(new.into_iter().filter_map(|event| match event {
            AppEvent::Notice { error } => Some(error.code),
            _ => None,
        }));
    }
    codes
}

#[test]
fn words_of_one_meaning_have_one_direction() {
    let home = Home::new("embed-words");
    let (app, model) = open(&home);
    let texts = ["a hound", "one canine here", "the ship", "nothing"].map(str::to_owned);
    let vectors = app.embed(&model, EmbedAs::Text, &texts).unwrap().vectors;
    let cosine = |a: usize, b: usize| vectors[a].iter().zip(&vectors[b]).map(|(a, b)| a * b).sum::<f32>();
    assert!((cosine(0, 1) - 1.0).abs() < 1e-5, "{vectors:?}");
    assert!((cosine(0, 2) - 0.5).abs() < 1e-5 && (cosine(0, 3) - 0.5f32.sqrt()).abs() < 1e-5);
    let code = |model: &str, text: &str| {
        app.embed(model, EmbedAs::Text, &[text.to_owned()]).unwrap_err().code().to_owned()
    };
    assert_eq!(code("starter", "a"), "model.no_embeddings");
    assert_eq!(code(&model, &"long ".repeat(1000)), "request.context_full");
    assert_eq!(code("nowhere", "a"), "model.unknown");
}

#[test]
fn a_question_finds_a_passage_that_has_none_of_its_words() {
    let home = Home::new("embed-search");
    let (app, model) = open(&home);
    let text = diary();
    let attach = || vec![app.attach("diary.txt", text.as_bytes()).unwrap().id];
    let finds = |sources: &[Citation]| sources.iter().any(|source| says(source, &text).contains("a hound"));
    let question = "canine?";
    let (_, by_words) = ask(&app, None, question, &attach());
    assert!(!by_words.is_empty() && !finds(&by_words), "words alone show the beginning: {by_words:?}");

    app.settings_set("embedding_model", &json!(model)).unwrap();
    let mut events = app.watch_app();
    let (conversation, found) = ask(&app, None, question, &attach());
    assert!(finds(&found), "{found:?}, {:?}", notices(&mut events));
    for source in &found {
        let place = source.passage.as_ref().unwrap();
        let first_line = text[..place.start as usize].matches('\n').count() as u32 + 1;
        assert_eq!((source.name.as_str(), place.first_line), ("diary.txt", first_line), "{source:?}");
    }
    // words still count, and a question near to no passage finds nothing new
    let (_, by_both) = ask(&app, Some(&conversation), "What does paragraph 77 say?", &[]);
    assert!(by_both.iter().any(|source| says(source, &text).contains("Paragraph 77 ")), "{by_both:?}");
    let (_, of_ships) = ask(&app, Some(&conversation), "ship?", &[]);
    assert_eq!(of_ships, [], "there is none in it");
    assert_eq!(notices(&mut events), [""; 0]);
}

#[test]
fn where_the_model_fails_words_count_and_the_user_is_told_once() {
    let home = Home::new("embed-fails");
    let (app, model) = open(&home);
    app.settings_set("embedding_model", &json!(model)).unwrap();
    std::fs::write(home.0.join("meanings.gguf"), b"no model at all").unwrap();
    let text = diary();
    let mut events = app.watch_app();
    for _ in 0..2 {
        let file = app.attach("diary.txt", text.as_bytes()).unwrap().id;
        let (_, found) = ask(&app, None, "Which one has a white ear?", &[file]);
        assert!(found.iter().any(|source| says(source, &text).contains("white ear")), "{found:?}");
    }
    let told = notices(&mut events);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("weights."), "{told:?}");
}

#[test]
fn models_are_offered_for_what_they_are_made_for() {
    let home = Home::new("embed-offered");
    let (app, model) = open(&home);
    let offered = |key: &str| match app.settings_get(key).unwrap().kind {
        SettingKind::Choice { options } => options.into_iter().map(|it| it.value).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    assert_eq!(offered("model"), ["starter"]);
    assert_eq!(offered("draft_model"), ["", "starter"]);
    assert_eq!(offered("embedding_model"), ["", &*model]);
    for (key, value, code) in [
        ("model", model.as_str(), "model.embeds_only"),
        ("draft_model", model.as_str(), "model.embeds_only"),
        ("embedding_model", "starter", "model.no_embeddings"),
        ("embedding_model", "nowhere", "model.unknown"),
    ] {
        let error = app.settings_set(key, &json!(value)).unwrap_err();
        assert_eq!(error.code(), code, "{error:?}");
        assert!(!error.remedy().is_empty());
    }
    let args = SendArgs { text: "Hello".into(), model: Some(model), ..SendArgs::default() };
    let started = app.send(args).unwrap();
    let last = app.watch_turn(&started.turn, 0).unwrap().flatten().last().unwrap();
    let TurnEventKind::Failed { error } = last.kind else { panic!("{last:?}") };
    assert_eq!(error.code, "model.embeds_only", "{error:?}");
}

/// Vectors of the texts, and the notices sent meanwhile.
fn vectors(app: &App, id: &str) -> (Vec<Vec<f32>>, Vec<String>) {
    let mut events = app.watch_app();
    let texts = ["a hound", "the canine", "some bread"].map(str::to_owned);
    let vectors = app.embed(id, EmbedAs::Text, &texts).unwrap().vectors;
    (vectors, notices(&mut events))
}

#[test]
fn a_graphics_card_makes_vectors_too() {
    let home = Home::new("embeddings-card");
    let (app, id) = open(&home);
    let (expected, told) = vectors(&app, &id);
    assert!(told.is_empty(), "{told:?}");
    drop(app);
    let on = |fault: Option<PlannedGpuFault>, card: &str| {
        let overrides = Overrides {
            backend: Some(Backend::Gpu),
            gpu_devices: inference::machine::gpus::listed(card),
            gpu_fault: fault,
            ..Overrides::default()
        };
        let config = AppConfig { data_dir: Some(home.0.clone()), overrides, ..AppConfig::default() };
        vectors(&App::open(config).unwrap(), &id)
    };
    // one that is lost was there, and the vectors are made all the same
    let lost = PlannedGpuFault { kind: GpuFaultKind::Lost, before: 1, n_times: 1 };
    let plain: &[&str] = &[];
    for (fault, card, expected_told) in [
        (None, "", plain),
        (Some(lost), "", &["kernels.gpu_lost"]),
        (None, "no such card", &["kernels.gpu_absent"]),
    ] {
        let (found, told) = on(fault, card);
        assert_eq!(told, expected_told, "{fault:?} {card}");
        for (a, b) in found.iter().zip(&expected) {
            let cosine: f32 = a.iter().zip(b).map(|(x, y)| x * y).sum();
            assert!((cosine - 1.0).abs() < 1e-4, "{fault:?} {card}: {cosine}");
        }
    }
}
