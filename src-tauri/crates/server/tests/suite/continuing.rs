//! Answers that continue what the client wrote, probabilities after sampling, batches of messages, and models that leave
//! the library.
#![allow(clippy::unwrap_used)] // a test

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::fixture::{Answer, Fixture};

/// Longest time that a batch of three short requests takes.
const BATCH_TIMEOUT: Duration = Duration::from_secs(120);

fn chat(last: &Value, extra: &Value) -> Value {
    let mut body = json!({
        "model": "starter", "max_tokens": 8, "temperature": 0,
        "messages": [{ "role": "user", "content": "How do I add a model?" }, last],
    });
    for (name, value) in extra.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

fn done(answer: &Answer) -> Value {
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

#[test]
fn a_last_message_of_the_assistant_is_continued() {
    let server = Fixture::new("continuing");
    let beginning = json!({ "role": "assistant", "content": "Open the" });
    let whole =
        done(&server.ask("POST", "/v1/chat/completions", &chat(&beginning, &json!({ "verbose": true }))));
    let prompt = whole["__verbose"]["prompt"].as_str().unwrap();
    assert!(prompt.ends_with("Open the"), "{prompt}");
    let continuation = whole["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(!continuation.is_empty());
    // The same tokens as after the same text.
    let raw = json!({ "prompt": prompt, "n_predict": 8, "temperature": 0 });
    assert_eq!(done(&server.ask("POST", "/completion", &raw))["content"], continuation);
    let anthropic = done(&server.ask("POST", "/v1/messages", &chat(&beginning, &json!({}))));
    assert_eq!(anthropic["content"][0]["text"], continuation);
    let ollama = json!({ "stream": false, "options": { "num_predict": 8, "temperature": 0 } });
    let ollama = done(&server.ask("POST", "/api/chat", &chat(&beginning, &ollama)));
    assert_eq!(ollama["message"]["content"], continuation);
    let template = done(&server.ask("POST", "/apply-template", &chat(&beginning, &json!({}))));
    assert_eq!(template["prompt"], prompt);

    let anew = json!({ "add_generation_prompt": true, "verbose": true });
    let anew = done(&server.ask("POST", "/v1/chat/completions", &chat(&beginning, &anew)));
    assert!(!anew["__verbose"]["prompt"].as_str().unwrap().ends_with("Open the"));
    let both = json!({ "add_generation_prompt": true, "continue_final_message": true });
    assert_eq!(server.ask("POST", "/v1/chat/completions", &chat(&beginning, &both)).status, 400);
}

#[test]
fn an_empty_prompt_continues_the_end_of_another_text() {
    let server = Fixture::new("empty");
    let continued = |path: &str, prompt: Value| {
        let body = json!({ "prompt": prompt, "max_tokens": 4.0, "temperature": 0 });
        done(&server.ask("POST", path, &body))
    };
    let whole = continued("/v1/completions", json!(""));
    assert_eq!(whole["usage"]["prompt_tokens"], 1);
    assert_eq!(continued("/completion", json!(""))["content"], whole["choices"][0]["text"]);
    // Without a prompt, and with a list: alike.
    for prompt in [Value::Null, json!([""])] {
        assert_eq!(continued("/v1/completions", prompt)["choices"][0]["text"], whole["choices"][0]["text"]);
    }
}

#[test]
fn a_bias_beyond_32_bits_ends_nothing() {
    let server = Fixture::new("biased");
    let ask = |bias: Value| {
        server.ask("POST", "/completion", &json!({ "prompt": "The", "n_predict": 2, "logit_bias": bias }))
    };
    let raised = done(&ask(json!([[65, 3.8e199]])));
    let forced = done(&ask(json!([[65, 1e30]])));
    assert_eq!(raised["content"], forced["content"]);
    assert!(!raised["content"].as_str().unwrap().is_empty(), "{raised}");
}

#[test]
fn a_prompt_that_is_too_long_is_refused_with_its_sizes() {
    let server = Fixture::new("overflow");
    for extra in [json!({}), json!({ "stream": true })] {
        let long = chat(&json!({ "role": "user", "content": "word ".repeat(20_000) }), &extra);
        let refused = server.ask("POST", "/v1/chat/completions", &long);
        let error = refused.json()["error"].take();
        assert_eq!((refused.status, &error["code"]), (400, &json!("context_length_exceeded")));
        assert_eq!(error["type"], "exceed_context_size_error");
        assert!(error["n_prompt_tokens"].as_u64().unwrap() > error["n_ctx"].as_u64().unwrap(), "{error}");
    }
}

#[test]
fn probabilities_after_sampling_are_those_of_the_candidates() {
    let server = Fixture::new("drawn");
    let ask = |extra: Value| {
        let mut body = json!({ "prompt": "The model", "n_predict": 4, "n_probs": 5, "seed": 1 });
        for (name, value) in extra.as_object().unwrap() {
            body[name] = value.clone();
        }
        let answer = done(&server.ask("POST", "/completion", &body));
        answer["completion_probabilities"].as_array().unwrap().clone()
    };
    let drawn = ask(json!({ "post_sampling_probs": true, "temperature": 1.0, "top_k": 2 }));
    assert!(!drawn.is_empty());
    for token in &drawn {
        let top = token["top_probs"].as_array().unwrap();
        let sum: f64 = top.iter().map(|it| it["prob"].as_f64().unwrap()).sum();
        assert!((1..=2).contains(&top.len()) && (sum - 1.0).abs() < 1e-5, "{token}");
        assert!(top.iter().any(|it| it["id"] == token["id"] && it["prob"] == token["prob"]), "{token}");
    }
    let greedy = ask(json!({ "post_sampling_probs": true, "temperature": 0 }));
    assert!(greedy.iter().all(|token| token["prob"] == 1.0), "{greedy:?}");
    let before = ask(json!({ "temperature": 0 }));
    assert!(!before.is_empty() && !greedy.is_empty());
    assert!(before.iter().all(|token| token["top_logprobs"].as_array().unwrap().len() == 5));
}

#[test]
fn a_chat_of_ollama_fits_the_context_that_it_asks_for() {
    let server = Fixture::new("window");
    let word = |n: usize| "word ".repeat(n);
    let turn = |role: &str, n: usize| json!({ "role": role, "content": word(n) });
    let ask = |messages: Value, extra: Value, n_ctx: Value| {
        let mut body = json!({
            "model": "starter", "stream": false, "messages": messages,
            "options": { "temperature": 0, "num_predict": 8, "num_ctx": n_ctx },
        });
        for (name, value) in extra.as_object().unwrap() {
            body[name] = value.clone();
        }
        server.ask("POST", "/api/chat", &body)
    };
    let last = json!({ "role": "user", "content": "Hello" });
    let alone = done(&ask(json!([last]), json!({}), Value::Null));
    let n_alone = alone["prompt_eval_count"].as_u64().unwrap();
    let long = json!([turn("user", 2000), turn("assistant", 5), last]);
    for n_ctx in [Value::Null, json!(n_alone + 3)] {
        let cut = done(&ask(long.clone(), json!({}), n_ctx.clone()));
        assert_eq!(cut["prompt_eval_count"], n_alone, "{n_ctx}");
        let n_most = if n_ctx.is_null() { 8 } else { 3 };
        assert!(cut["eval_count"].as_u64().unwrap() <= n_most, "{cut}");
        let refused = ask(long.clone(), json!({ "truncate": false }), n_ctx);
        assert_eq!(refused.status, 400, "{refused:?}");
    }
    assert_eq!(ask(json!([turn("user", 2000)]), json!({}), Value::Null).status, 400);
    assert_eq!(ask(json!([last]), json!({}), json!(n_alone)).status, 400, "no room for an answer");
}

#[test]
fn a_batch_of_messages_is_answered_apart() {
    let server = Fixture::new("batches");
    let params = |extra: Value| {
        let mut params = json!({
            "model": "starter", "max_tokens": 4, "temperature": 0,
            "messages": [{ "role": "user", "content": "Hello" }],
        });
        for (name, value) in extra.as_object().unwrap() {
            params[name] = value.clone();
        }
        params
    };
    let request = |name: &str, extra: Value| json!({ "custom_id": name, "params": params(extra) });
    let requests = [
        request("one", json!({})),
        request("two", json!({ "stream": true })),
        request("wrong", json!({ "model": "nobody" })),
    ];
    let created = done(&server.ask("POST", "/v1/messages/batches", &json!({ "requests": requests })));
    let path = format!("/v1/messages/batches/{}", created["id"].as_str().unwrap());
    let since = Instant::now();
    let batch = loop {
        let batch = done(&server.ask("GET", &path, &Value::Null));
        if batch["processing_status"] == "ended" {
            break batch;
        }
        assert!(since.elapsed() < BATCH_TIMEOUT, "{batch}");
        std::thread::yield_now();
    };
    let counts = &batch["request_counts"];
    assert_eq!((&counts["succeeded"], &counts["errored"]), (&json!(2), &json!(1)), "{batch}");
    let results = server.ask("GET", &format!("{path}/results"), &Value::Null);
    let results: Vec<Value> = results.body.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let result = |name: &str| &results.iter().find(|it| it["custom_id"] == name).unwrap()["result"];
    let direct = done(&server.ask("POST", "/v1/messages", &params(json!({}))));
    for name in ["one", "two"] {
        assert_eq!(result(name)["message"]["content"], direct["content"], "{name}");
    }
    assert_eq!(result("wrong")["error"]["error"]["type"], "not_found_error");
    let listed = done(&server.ask("GET", "/v1/messages/batches", &Value::Null));
    assert_eq!((&listed["data"][0], &listed["has_more"]), (&batch, &json!(false)));
    assert_eq!(done(&server.ask("POST", &format!("{path}/cancel"), &Value::Null)), batch, "it has ended");
    let deleted = done(&server.ask("DELETE", &path, &Value::Null));
    assert_eq!(deleted["type"], "message_batch_deleted");
    for (method, path) in [("GET", path.clone()), ("GET", format!("{path}/results")), ("DELETE", path)] {
        let gone = server.ask(method, &path, &Value::Null);
        assert_eq!((gone.status, &gone.json()["error"]["type"]), (404, &json!("not_found_error")));
    }
}

#[test]
fn a_model_leaves_the_library_by_its_own_name_alone() {
    let server = Fixture::new("leaving");
    server.app.settings_set("api_model_alias", &json!(true)).unwrap();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/reference");
    let id = server.app.model_add(&folder.join("embeddings/bert.gguf").display().to_string()).unwrap().id;
    let delete = |id: &str| server.ask("DELETE", &format!("/v1/models/{id}"), &Value::Null);
    assert_eq!(delete("nobody").status, 404, "no other model stands in for it");
    assert_eq!(done(&delete(&id)), json!({ "id": id, "object": "model", "deleted": true }));
    assert_eq!(delete(&id).status, 404);
    assert_eq!(delete("starter").status, 409, "the built-in model stays");
}
