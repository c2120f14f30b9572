//! OpenAI's interface through the real server: choices, probabilities, completions of texts, responses with state,
//! conversations, stored answers, aliases of models, the OpenAPI document.
#![allow(clippy::unwrap_used)] // a test

use std::io::Read;
use std::path::PathBuf;

use crate::fixture::{Answer, Fixture, KEY};
use serde_json::{Value, json};
use server::{Options, serve};

fn chat(extra: &Value) -> Value {
    merged(&json!({ "model": "starter", "messages": [{ "role": "user", "content": "Hello" }] }), extra)
}

fn merged(base: &Value, extra: &Value) -> Value {
    let mut body = base.clone();
    for (name, value) in extra.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

fn done(answer: Answer) -> Value {
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

fn fails(answer: &Answer, status: u16, param: Option<&str>) {
    let error = answer.json()["error"].clone();
    assert_eq!((answer.status, error["param"].as_str()), (status, param), "{answer:?}");
    assert!(!error["message"].as_str().unwrap().is_empty());
}

/// Type and data of each event of a response.
fn named_events(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{answer:?}");
    let event = |text: &str| {
        let (name, data) = text.split_once('\n').unwrap();
        let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(name.strip_prefix("event: "), data["type"].as_str());
        data
    };
    answer.body.split_terminator("\n\n").map(event).collect()
}

#[test]
fn choices_differ_and_are_counted_together() {
    let server = Fixture::new("choices");
    let body = chat(&json!({ "n": 3, "temperature": 1.5, "seed": 7, "ignore_eos": true, "max_tokens": 8 }));
    let whole = done(server.ask("POST", "/v1/chat/completions", &body));
    let texts: Vec<&str> = whole["choices"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["message"]["content"].as_str().unwrap())
        .collect();
    assert_eq!(texts.len(), 3);
    assert!(texts[0] != texts[1] || texts[1] != texts[2], "{texts:?}");
    let n_prompt = done(server.ask("POST", "/v1/chat/completions", &chat(&json!({ "max_tokens": 1 }))))["usage"]
        ["prompt_tokens"]
        .clone();
    assert_eq!(
        (&whole["usage"]["prompt_tokens"], &whole["usage"]["completion_tokens"]),
        (&n_prompt, &json!(24))
    );
    let streamed = server.ask("POST", "/v1/chat/completions", &merged(&body, &json!({ "stream": true })));
    let mut again = vec![String::new(); 3];
    for event in streamed.events().iter().filter(|event| **event != "[DONE]") {
        let chunk: Value = serde_json::from_str(event).unwrap();
        let choice = &chunk["choices"][0];
        let index = usize::try_from(choice["index"].as_u64().unwrap()).unwrap();
        again[index].push_str(choice["delta"]["content"].as_str().unwrap_or_default());
    }
    assert_eq!(again, texts);
}

#[test]
fn probabilities_belong_to_the_text() {
    let server = Fixture::new("probabilities");
    let body = chat(&json!({ "logprobs": true, "top_logprobs": 3 }));
    let whole = done(server.ask("POST", "/v1/chat/completions", &body));
    let choice = &whole["choices"][0];
    let content = choice["logprobs"]["content"].as_array().unwrap();
    let text: String = content.iter().map(|it| it["token"].as_str().unwrap()).collect();
    assert_eq!(text, choice["message"]["content"].as_str().unwrap());
    for token in content {
        let top = token["top_logprobs"].as_array().unwrap();
        assert_eq!(top.len(), 3);
        // at temperature 0 the most likely token is taken
        assert_eq!(token["logprob"], top[0]["logprob"]);
        assert!(token["logprob"].as_f64().unwrap() <= 0.0);
    }
    let first = &content[0];
    let bytes: Vec<u8> = serde_json::from_value(first["bytes"].clone()).unwrap();
    assert_eq!(String::from_utf8(bytes).unwrap(), first["token"].as_str().unwrap());
}

#[test]
fn texts_are_continued() {
    let server = Fixture::new("texts");
    let ask = |body: Value| server.ask("POST", "/v1/completions", &body);
    let one = done(ask(json!({ "prompt": "The model", "max_tokens": 6, "logprobs": 2, "echo": true })));
    assert_eq!(one["object"], "text_completion");
    let choice = &one["choices"][0];
    let text = choice["text"].as_str().unwrap();
    let generated = text.strip_prefix("The model").unwrap();
    let tokens: String =
        choice["logprobs"]["tokens"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
    assert_eq!(tokens, generated);
    assert_eq!(choice["logprobs"]["text_offset"][0], 9);
    let ids = done(server.ask("POST", "/tokenize", &json!({ "content": "The model" })))["tokens"].clone();
    let from_ids = done(ask(json!({ "prompt": ids, "max_tokens": 6, "echo": true })));
    assert_eq!(from_ids["choices"][0]["text"], text, "tokens continue as their text does");
    let many = done(ask(json!({ "prompt": ["The model", "A chat"], "n": 2, "max_tokens": 2 })));
    let choices = many["choices"].as_array().unwrap();
    assert_eq!(choices.iter().map(|it| it["index"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(choices[0]["text"], choices[1]["text"], "at temperature 0");
    let best = done(ask(json!({ "prompt": "The", "best_of": 3, "temperature": 1.2, "max_tokens": 4 })));
    assert_eq!(best["choices"].as_array().map(Vec::len), Some(1));
    assert!(best["choices"][0]["logprobs"].is_null());
    let echo = done(ask(json!({ "prompt": "Just this", "echo": true, "max_tokens": 0 })));
    assert_eq!(echo["choices"][0]["text"], "Just this");
    let streamed = ask(json!({ "prompt": "The model", "max_tokens": 6, "stream": true, "echo": true }));
    let parts: String = streamed
        .events()
        .iter()
        .filter(|event| **event != "[DONE]")
        .map(|event| {
            serde_json::from_str::<Value>(event).unwrap()["choices"][0]["text"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(parts, text);
    fails(&ask(json!({ "prompt": "a", "suffix": "b" })), 400, Some("suffix"));
    fails(&ask(json!({ "prompt": 7 })), 400, Some("prompt"));
    fails(&ask(json!({ "prompt": "a", "model": "gpt-3" })), 404, Some("model"));
}

#[test]
fn responses_go_on_from_each_other() {
    let mut server = Fixture::new("responses");
    let create = |server: &Fixture, body: Value| server.ask("POST", "/v1/responses", &body);
    let first = done(create(&server, json!({ "input": "What is a token?", "instructions": "Be brief." })));
    assert_eq!(
        (&first["object"], first["id"].as_str().unwrap().starts_with("resp_")),
        (&json!("response"), true)
    );
    assert_eq!(first["output"][0]["role"], "assistant");
    let second =
        done(create(&server, json!({ "input": "And a model?", "previous_response_id": first["id"] })));
    assert!(
        second["usage"]["input_tokens"].as_u64() > first["usage"]["input_tokens"].as_u64(),
        "the first question and its answer are before it"
    );
    let path = format!("/v1/responses/{}", second["id"].as_str().unwrap());
    let id = first["id"].as_str().unwrap();
    // What is stored survives the server.
    server.listening.take();
    let options = Options { port: 0, api_key: Some(KEY.into()), ..Options::default() };
    let again = serve(server.app.clone(), options).unwrap();
    server.port = again.url.rsplit_once(':').unwrap().1.parse().unwrap();
    server.listening = Some(again);
    assert_eq!(done(server.ask("GET", &path, &Value::Null)), second);
    let items = done(server.ask("GET", &format!("{path}/input_items"), &Value::Null));
    assert_eq!(items["data"][0]["content"][0]["text"], "And a model?");
    let replayed = named_events(&server.ask("GET", &format!("{path}?stream=true"), &Value::Null));
    assert_eq!(replayed.last().unwrap()["response"], second);
    let deleted = done(server.ask("DELETE", &format!("/v1/responses/{id}"), &Value::Null));
    assert_eq!(deleted, json!({ "id": id, "object": "response", "deleted": true }));
    fails(&server.ask("GET", &format!("/v1/responses/{id}"), &Value::Null), 404, None);
    let broken = create(&server, json!({ "input": "x", "previous_response_id": id }));
    fails(&broken, 400, Some("previous_response_id"));
    let unkept = done(create(&server, json!({ "input": "x", "store": false })));
    fails(
        &server.ask("GET", &format!("/v1/responses/{}", unkept["id"].as_str().unwrap()), &Value::Null),
        404,
        None,
    );
}

#[test]
fn a_response_streams_what_it_becomes() {
    let server = Fixture::new("response-stream");
    let body = json!({ "input": "What is a token?", "stream": true });
    let events = named_events(&server.ask("POST", "/v1/responses", &body));
    let types: Vec<&str> = events.iter().map(|it| it["type"].as_str().unwrap()).collect();
    assert_eq!(
        types[..4],
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added"
        ]
    );
    let n = types.len();
    assert_eq!(
        types[n - 4..n - 1],
        ["response.output_text.done", "response.content_part.done", "response.output_item.done"]
    );
    let text: String = events.iter().filter_map(|it| it["delta"].as_str()).collect();
    let last = &events[n - 1]["response"];
    assert_eq!(last["output"][0]["content"][0]["text"], text);
    let stored =
        done(server.ask("GET", &format!("/v1/responses/{}", last["id"].as_str().unwrap()), &Value::Null));
    assert_eq!(stored, *last);
    let path = format!("/v1/responses/{}?stream=true&starting_after=2", last["id"].as_str().unwrap());
    assert_eq!(named_events(&server.ask("GET", &path, &Value::Null)), events[3..]);
}

#[test]
fn a_response_in_the_background_is_cancelled() {
    let server = Fixture::new("background");
    server.app.settings_reset("max_tokens").unwrap();
    let endless = json!({ "input": "Hello", "background": true, "ignore_eos": true });
    let begun = done(server.ask("POST", "/v1/responses", &endless));
    assert!(["queued", "in_progress"].contains(&begun["status"].as_str().unwrap()), "{begun}");
    let path = format!("/v1/responses/{}", begun["id"].as_str().unwrap());
    let seen = done(server.ask("GET", &path, &Value::Null));
    assert!(["queued", "in_progress", "incomplete"].contains(&seen["status"].as_str().unwrap()), "{seen}");
    let cancelled = done(server.ask("POST", &format!("{path}/cancel"), &Value::Null));
    assert_eq!(cancelled["status"], "cancelled");
    assert_eq!(done(server.ask("GET", &path, &Value::Null))["status"], "cancelled");
    let other = done(server.ask("POST", "/v1/responses", &json!({ "input": "x", "max_output_tokens": 1 })));
    assert_eq!(other["incomplete_details"]["reason"], "max_output_tokens");
    let path = format!("/v1/responses/{}/cancel", other["id"].as_str().unwrap());
    fails(&server.ask("POST", &path, &Value::Null), 409, None);
}

#[test]
fn clients_that_leave_stop_all_their_turns() {
    let server = Fixture::new("leave-all");
    server.app.settings_reset("max_tokens").unwrap();
    let key = format!("Bearer {KEY}");
    for (path, body) in [
        ("/v1/chat/completions", chat(&json!({ "n": 4, "ignore_eos": true, "stream": true }))),
        (
            "/v1/completions",
            json!({ "prompt": ["a", "b"], "max_tokens": -1, "ignore_eos": true, "stream": true }),
        ),
        ("/v1/responses", json!({ "input": "x", "ignore_eos": true, "stream": true })),
        ("/v1/responses", json!({ "input": "x", "ignore_eos": true })),
    ] {
        let mut connection = server.open("POST", path, &[("authorization", &key)], &body.to_string());
        if body["stream"] == true {
            connection.read_exact(&mut [0; 200]).unwrap();
        }
        drop(connection);
        // The next one is answered soon: the others do not go on to the end of their contexts.
        done(server.ask("POST", "/v1/chat/completions", &chat(&json!({ "max_tokens": 2 }))));
    }
}

#[test]
fn conversations_grow_by_their_responses() {
    let server = Fixture::new("conversations");
    let body = json!({ "items": [{ "role": "user", "content": "I am Ada." }], "metadata": { "a": "b" } });
    let made = done(server.ask("POST", "/v1/conversations", &body));
    let path = format!("/v1/conversations/{}", made["id"].as_str().unwrap());
    assert_eq!(done(server.ask("GET", &path, &Value::Null)), made);
    done(server.ask("POST", "/v1/responses", &json!({ "input": "Who am I?", "conversation": made["id"] })));
    let texts = || {
        let items = done(server.ask("GET", &format!("{path}/items?order=asc"), &Value::Null));
        let text = |it: &Value| {
            (it["id"].as_str().unwrap().to_owned(), it["content"][0]["text"].as_str().unwrap().to_owned())
        };
        items["data"].as_array().unwrap().iter().map(text).collect::<Vec<_>>()
    };
    let all = texts();
    assert_eq!((all.len(), all[0].1.as_str(), all[1].1.as_str()), (3, "I am Ada.", "Who am I?"));
    let added = json!({ "items": [{ "role": "user", "content": "Bye." }] });
    assert_eq!(
        done(server.ask("POST", &format!("{path}/items"), &added))["data"][0]["content"][0]["text"],
        "Bye."
    );
    let item = format!("{path}/items/{}", all[1].0);
    assert_eq!(done(server.ask("GET", &item, &Value::Null))["role"], "user");
    assert_eq!(done(server.ask("DELETE", &item, &Value::Null)), made);
    assert_eq!(texts().len(), 3);
    let changed = done(server.ask("POST", &path, &json!({ "metadata": { "c": "d" } })));
    assert_eq!(changed["metadata"], json!({ "c": "d" }));
    assert_eq!(done(server.ask("DELETE", &path, &Value::Null))["deleted"], true);
    fails(&server.ask("GET", &item, &Value::Null), 404, None);
    fails(
        &server.ask("POST", "/v1/responses", &json!({ "conversation": made["id"] })),
        404,
        Some("conversation"),
    );
    fails(
        &server.ask("POST", "/v1/conversations", &json!({ "items": [{ "type": "odd" }] })),
        400,
        Some("items"),
    );
}

#[test]
fn completions_are_stored_where_clients_want_it() {
    let server = Fixture::new("stored");
    let kept = chat(&json!({ "store": true, "metadata": { "for": "test" } }));
    let whole = done(server.ask("POST", "/v1/chat/completions", &kept));
    done(server.ask("POST", "/v1/chat/completions", &chat(&json!({}))));
    let list = done(server.ask("GET", "/v1/chat/completions?metadata[for]=test", &Value::Null));
    assert_eq!(
        list["data"].as_array().unwrap().iter().map(|it| it["id"].clone()).collect::<Vec<_>>(),
        [whole["id"].clone()]
    );
    assert_eq!(
        done(server.ask("GET", "/v1/chat/completions", &Value::Null))["data"].as_array().map(Vec::len),
        Some(1)
    );
    let path = format!("/v1/chat/completions/{}", whole["id"].as_str().unwrap());
    assert_eq!(done(server.ask("GET", &path, &Value::Null))["choices"], whole["choices"]);
    let messages = done(server.ask("GET", &format!("{path}/messages"), &Value::Null));
    assert_eq!(messages["data"][0]["content"], "Hello");
    let changed = done(server.ask("POST", &path, &json!({ "metadata": { "x": "y" } })));
    assert_eq!(changed["metadata"], json!({ "x": "y" }));
    assert_eq!(done(server.ask("DELETE", &path, &Value::Null))["deleted"], true);
    fails(&server.ask("GET", &path, &Value::Null), 404, None);
    let streamed = server.ask("POST", "/v1/chat/completions", &merged(&kept, &json!({ "stream": true })));
    assert_eq!(streamed.events().last(), Some(&"[DONE]"));
    fails(&server.ask("GET", "/v1/chat/completions?limit=x", &Value::Null), 400, Some("limit"));
}

#[test]
fn unknown_models_are_answered_where_the_setting_says_so() {
    let server = Fixture::new("alias");
    let body = chat(&json!({ "model": "gpt-4", "max_tokens": 1 }));
    let refused = server.ask("POST", "/v1/chat/completions", &body);
    fails(&refused, 404, Some("model"));
    assert!(refused.json()["error"]["message"].as_str().unwrap().contains("starter"), "it lists the models");
    server.app.settings_set("api_model_alias", &json!(true)).unwrap();
    assert_eq!(done(server.ask("POST", "/v1/chat/completions", &body))["model"], "starter");
    assert_eq!(done(server.ask("GET", "/v1/models/gpt-4", &Value::Null))["id"], "starter");
}

#[test]
fn routes_exist_with_and_without_v1() {
    let server = Fixture::new("prefixes");
    for path in ["/chat/completions", "/completions", "/responses", "/conversations", "/embeddings"] {
        for prefix in ["", "/v1"] {
            let answer = server.ask(
                "POST",
                &format!("{prefix}{path}"),
                &json!({ "metadata": 7, "input": 7, "prompt": 7 }),
            );
            assert_eq!(answer.status, 400, "{prefix}{path} {answer:?}");
            assert_eq!(
                server.raw("POST", &format!("{prefix}{path}"), &[], "{}").status,
                401,
                "{prefix}{path}"
            );
        }
    }
    assert_eq!(done(server.ask("GET", "/models", &Value::Null))["data"][0]["id"], "starter");
}

#[test]
fn what_is_not_offered_says_what_to_do_instead() {
    let server = Fixture::new("not-offered");
    for (method, path, remedy) in [
        ("POST", "/v1/moderations", "/v1/chat/completions"),
        ("GET", "/v1/vector_stores/x/files", "/v1/embeddings"),
        ("POST", "/v1/fine_tuning/jobs", "nook tune"),
        ("GET", "/v1/evals", "/v1/batches"),
        ("GET", "/v1/organizations/api_keys", "nook keys"),
    ] {
        let answer = server.ask(method, path, &json!({ "purpose": "batch" }));
        assert_eq!(answer.status, 501, "{answer:?}");
        let error = answer.json()["error"].clone();
        assert_eq!(error["code"], "server.not_offered");
        assert!(error["message"].as_str().unwrap().contains(path), "{error}");
        assert!(answer.headers.contains("x-should-retry: false"), "{answer:?}");
        assert!(error.to_string().contains(remedy), "{error}");
    }
    assert_eq!(server.raw("GET", "/v1/evals", &[], "").status, 401, "it wants the key");
}

#[test]
fn every_operation_of_the_document_has_a_route() {
    let server = Fixture::new("openapi");
    let document = done(server.ask("GET", "/openapi.json", &Value::Null));
    for (path, operations) in document["paths"].as_object().unwrap() {
        for method in operations.as_object().unwrap().keys() {
            // Streams without an end are known to exist by their other tests.
            if path.ends_with("events") {
                continue;
            }
            let path: String = path.replace('{', "no-").replace('}', "");
            let answer = server.ask(&method.to_uppercase(), &path, &json!({ "messages": 7 }));
            assert_ne!(answer.status, 405, "{method} {path}");
            assert!(!answer.body.contains("server.no_route"), "{method} {path}");
            assert!(answer.status < 500, "{method} {path} {answer:?}");
        }
    }
}

/// A small model with random weights, as `tests/reference/embed.py` makes it.
fn embeds() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../tests/reference/embeddings/gemma.gguf")
}

#[test]
fn vectors_of_tokens_and_shorter_vectors() {
    let server = Fixture::new("vectors");
    let model = server.app.model_add(embeds().to_str().unwrap()).unwrap().id;
    let ask =
        |extra: Value| server.ask("POST", "/v1/embeddings", &merged(&json!({ "model": model }), &extra));
    let floats = |value: &Value| -> Vec<f64> {
        value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
    };
    let whole = done(ask(json!({ "input": "some words" })));
    let vector = floats(&whole["data"][0]["embedding"]);
    let short = floats(&done(ask(json!({ "input": "some words", "dimensions": 2 })))["data"][0]["embedding"]);
    assert_eq!(short.len(), 2);
    assert!((short[0] * vector[1] - short[1] * vector[0]).abs() < 1e-6, "the same direction");
    assert!((short.iter().map(|x| x * x).sum::<f64>() - 1.0).abs() < 1e-5);
    fails(&ask(json!({ "input": "a", "dimensions": 100_000 })), 400, Some("dimensions"));
    let ids = done(ask(json!({ "input": [[5, 6], [5, 6]] })));
    assert_eq!(ids["data"][0]["embedding"], ids["data"][1]["embedding"]);
    assert_eq!(ids["usage"]["prompt_tokens"], 4);
    fails(&ask(json!({ "input": [4_000_000] })), 400, Some("input"));
}
