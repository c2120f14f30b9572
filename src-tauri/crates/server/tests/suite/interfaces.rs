//! The interfaces of other programs, asked as their clients ask: Anthropic's, Ollama's, llama.cpp's.
#![allow(clippy::unwrap_used)] // a test

use serde_json::{Value, json};

use crate::fixture::{Answer, Fixture, KEY};

fn message(extra: &Value) -> Value {
    let mut body = json!({
        "model": "starter", "max_tokens": 6, "temperature": 0, "messages": [{ "role": "user", "content": "Hello" }],
    });
    for (name, value) in extra.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

fn text(answer: &Answer) -> String {
    answer.json()["content"][0]["text"].as_str().unwrap().to_owned()
}

/// Data of named server-sent events, whose names are their types.
fn named_events(answer: &Answer) -> Vec<Value> {
    let event = |event: &str| {
        let (name, data) = event.split_once('\n').unwrap();
        let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(name.strip_prefix("event: ").unwrap(), data["type"]);
        data
    };
    answer.body.split_terminator("\n\n").map(event).collect()
}

#[test]
fn a_message_comes_whole_or_in_events() {
    let server = Fixture::new("anthropic");
    let headers = [("x-api-key", KEY), ("anthropic-version", "2023-06-01")];
    let whole = server.raw("POST", "/v1/messages", &headers, &message(&json!({})).to_string());
    assert_eq!(whole.status, 200, "{whole:?}");
    let body = whole.json();
    assert_eq!(
        (&body["type"], &body["role"], &body["model"]),
        (&json!("message"), &json!("assistant"), &json!("starter"))
    );
    assert!(["end_turn", "max_tokens"].contains(&body["stop_reason"].as_str().unwrap()));
    assert_eq!(body["stop_sequence"], Value::Null);
    let usage = &body["usage"];
    let n_prompt =
        usage["input_tokens"].as_u64().unwrap() + usage["cache_read_input_tokens"].as_u64().unwrap();
    let counted = server.ask("POST", "/v1/messages/count_tokens", &message(&json!({})));
    assert_eq!(counted.json(), json!({ "input_tokens": n_prompt }));

    let streamed = server.ask("POST", "/v1/messages", &message(&json!({ "stream": true })));
    let events = named_events(&streamed);
    let mut kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    kinds.dedup();
    let expected = [
        "message_start",
        "ping",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ];
    assert_eq!(kinds, expected);
    assert_eq!(events[0]["message"]["content"], json!([]));
    let pieces: String = events.iter().filter_map(|event| event["delta"]["text"].as_str()).collect();
    assert_eq!(pieces, text(&whole), "the same answer");
}

#[test]
fn the_stop_sequence_that_was_found_is_named() {
    let server = Fixture::new("stop");
    let whole = text(&server.ask("POST", "/v1/messages", &message(&json!({ "max_tokens": 12 }))));
    let middle: String = whole.chars().skip(whole.chars().count() / 2).take(3).collect();
    let stops = json!({ "max_tokens": 12, "stop_sequences": ["never in it", middle] });
    let stopped = server.ask("POST", "/v1/messages", &message(&stops)).json();
    assert_eq!(
        (&stopped["stop_reason"], &stopped["stop_sequence"]),
        (&json!("stop_sequence"), &json!(middle))
    );
    assert!(!stopped["content"][0]["text"].as_str().unwrap().contains(&middle));
    let body = json!({ "prompt": "Hello", "n_predict": 12, "temperature": 0 });
    let whole = server.ask("POST", "/completion", &body).json()["content"].as_str().unwrap().to_owned();
    let middle: String = whole.chars().skip(whole.chars().count() / 2).take(3).collect();
    let body = json!({ "prompt": "Hello", "n_predict": 12, "temperature": 0, "stop": [middle] });
    let stopped = server.ask("POST", "/completion", &body).json();
    assert_eq!(
        (&stopped["stop_type"], &stopped["stopping_word"]),
        (&json!("word"), &json!(middle)),
        "{stopped}"
    );
}

#[test]
fn refusals_have_the_form_of_their_interface() {
    let server = Fixture::new("forms");
    let anthropic = |body: &Value| {
        let answer = server.ask("POST", "/v1/messages", body);
        let body = answer.json();
        assert_eq!(body["type"], "error", "{body}");
        (answer.status, body["error"]["type"].clone(), body["error"]["message"].as_str().unwrap().to_owned())
    };
    let image = json!({ "messages": [{ "role": "user", "content": [{ "type": "image", "source": {} }] }] });
    for (extra, status, kind, part) in [
        (json!({ "max_tokens": 0 }), 400, "invalid_request_error", "max_tokens"),
        (image, 400, "invalid_request_error", "needs a `source`"),
        (json!({ "model": "nobody" }), 404, "not_found_error", "starter"),
    ] {
        let (got, got_kind, got_message) = anthropic(&message(&extra));
        assert_eq!((got, &got_kind), (status, &json!(kind)));
        assert!(got_message.contains(part), "{got_message}");
    }
    let refused = server.raw("POST", "/v1/messages", &[("x-api-key", "wrong")], "{}");
    assert_eq!((refused.status, &refused.json()["type"]), (401, &json!("error")));
    assert_eq!(refused.json()["error"]["type"], "authentication_error");
    let unknown = server.ask("POST", "/api/chat", &json!({ "model": "nobody", "messages": [] }));
    let error = unknown.json()["error"].as_str().unwrap().to_owned();
    assert!(unknown.status == 404 && error.contains("starter"), "{error}");
    let unknown = server.ask("POST", "/completion", &json!({ "model": "nobody", "prompt": "x" })).json();
    assert_eq!(
        (&unknown["error"]["code"], &unknown["error"]["type"]),
        (&json!(404), &json!("not_found_error"))
    );
    let long = json!({ "prompt": "word ".repeat(20_000) });
    let refused = server.ask("POST", "/completion", &long);
    assert_eq!(
        (refused.status, &refused.json()["error"]["type"]),
        (400, &json!("exceed_context_size_error"))
    );
}

const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgAB5Sfe/AAAAABJRU5ErkJggg==";

#[test]
fn every_interface_takes_images() {
    let server = Fixture::new("images");
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/reference/vision");
    let seeing = server.app.model_add(&folder.join("gemma3").display().to_string()).unwrap().id;
    let read =
        |name: &str| documents::base64::encode(&std::fs::read(folder.join("images").join(name)).unwrap());
    let ask = |model: &str, image: &str| {
        let url = format!("data:image/png;base64,{image}");
        let (before, after) = ("Look at this: ", " What is it?");
        let text = |text: &str| json!({ "type": "text", "text": text });
        let part = json!({ "type": "image_url", "image_url": { "url": url } });
        let chat = json!({ "model": model, "messages": [{ "role": "user", "content": [text(before), part, text(after)] }] });
        let source = json!({ "type": "base64", "media_type": "image/png", "data": image });
        let block = json!({ "type": "image", "source": source });
        let anthropic = json!({ "model": model, "max_tokens": 8, "temperature": 0,
            "messages": [{ "role": "user", "content": [text(before), block, text(after)] }] });
        let input = |text: &str| json!({ "type": "input_text", "text": text });
        let item = json!({ "type": "input_image", "image_url": url });
        let responses = json!({ "model": model, "max_output_tokens": 8, "temperature": 0,
            "input": [{ "role": "user", "content": [input(before), item, input(after)] }] });
        let ollama = json!({ "model": model, "stream": false, "options": { "num_predict": 8, "temperature": 0 },
            "messages": [{ "role": "user", "content": after, "images": [image] }] });
        [
            (server.ask("POST", "/v1/chat/completions", &chat), "/choices/0/message/content"),
            (server.ask("POST", "/v1/messages", &anthropic), "/content/0/text"),
            (server.ask("POST", "/v1/responses", &responses), "/output/0/content/0/text"),
            (server.ask("POST", "/api/chat", &ollama), "/message/content"),
        ]
    };
    let texts = |image: &str| {
        ask(&seeing, image).map(|(answer, place)| {
            assert_eq!(answer.status, 200, "{answer:?}");
            answer
                .json()
                .pointer(place)
                .and_then(Value::as_str)
                .unwrap_or_else(|| panic!("{answer:?}"))
                .to_owned()
        })
    };
    let (seen, other) = (texts(&read("gradient.png")), texts(&read("text_palette.png")));
    assert!(seen[0] == seen[1] && seen[1] == seen[2], "{seen:?}");
    assert!(seen.iter().zip(&other).all(|(a, b)| a != b), "{seen:?} {other:?}");
    for (answer, _) in ask("starter", PNG) {
        assert!(answer.status == 400 && answer.body.contains("can't see images"), "{answer:?}");
    }
    for (answer, _) in ask(&seeing, "aGVsbG8gd29ybGQh") {
        assert!(answer.status == 400 && answer.body.contains("PNG, JPEG"), "{answer:?}");
    }
    let counted = json!({ "model": seeing, "messages": [{ "role": "user", "content": [
        { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": PNG } },
    ] }] });
    let counted = server.ask("POST", "/v1/messages/count_tokens", &counted);
    assert!(counted.json()["input_tokens"].as_u64().unwrap() > 16, "{counted:?}");
}

#[test]
fn models_are_listed_in_the_form_of_the_client() {
    let server = Fixture::new("lists");
    let key = format!("Bearer {KEY}");
    let headers = [("authorization", key.as_str()), ("anthropic-version", "2023-06-01")];
    let list = server.raw("GET", "/v1/models?limit=5", &headers, "").json();
    assert_eq!((&list["data"][0]["type"], &list["data"][0]["id"]), (&json!("model"), &json!("starter")));
    assert_eq!((&list["has_more"], &list["first_id"]), (&json!(false), &json!("starter")));
    assert_eq!(server.raw("GET", "/v1/models/starter", &headers, "").json()["display_name"], "starter");
    assert_eq!(server.raw("GET", "/v1/models/nobody", &headers, "").json()["type"], "error");
    assert_eq!(server.ask("GET", "/v1/models", &Value::Null).json()["object"], "list");
    let tags = server.ask("GET", "/api/tags", &Value::Null).json();
    assert_eq!(tags["models"][0]["name"], "starter");
    let shown = server.ask("POST", "/api/show", &json!({ "model": "starter:latest" })).json();
    assert!(shown["capabilities"].as_array().unwrap().contains(&json!("completion")), "{shown}");
    assert!(server.ask("GET", "/api/version", &Value::Null).json()["version"].is_string());
    assert_eq!(
        server.ask("GET", "/api/ps", &Value::Null).json(),
        json!({ "models": [] }),
        "nothing is loaded yet"
    );
}

#[test]
fn ollama_answers_in_lines() {
    let server = Fixture::new("ollama");
    let lines = |answer: &Answer| -> Vec<Value> {
        assert!(answer.headers.contains("application/x-ndjson"), "{answer:?}");
        answer.body.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let options = json!({ "num_predict": 6, "temperature": 0 });
    let messages = json!([{ "role": "user", "content": "Hello" }]);
    let chat = json!({ "model": "starter:latest", "messages": messages, "options": options });
    let streamed = lines(&server.ask("POST", "/api/chat", &chat));
    let (last, pieces) = streamed.split_last().unwrap();
    assert!(pieces.iter().all(|line| line["done"] == false) && last["done"] == true);
    assert!(
        last["eval_count"].as_u64().unwrap() > 0 && last["total_duration"].as_u64().unwrap() > 0,
        "{last}"
    );
    let said: String = pieces.iter().filter_map(|line| line["message"]["content"].as_str()).collect();
    let mut whole = chat;
    whole["stream"] = json!(false);
    let whole = server.ask("POST", "/api/chat", &whole).json();
    assert_eq!((&whole["message"]["content"], &whole["done_reason"]), (&json!(said), &last["done_reason"]));
    let body = json!({ "model": "starter", "prompt": "Hello", "options": options, "stream": false });
    let generated = server.ask("POST", "/api/generate", &body).json();
    assert_eq!(generated["response"], said, "one user message");
    let loaded = server.ask("GET", "/api/ps", &Value::Null).json();
    assert_eq!(loaded["models"][0]["model"], "starter");
    let unloaded =
        server.ask("POST", "/api/generate", &json!({ "model": "starter", "keep_alive": 0 })).json();
    assert_eq!(unloaded["done_reason"], "unload");
    let loaded =
        server.ask("POST", "/api/generate", &json!({ "model": "starter", "keep_alive": "1h" })).json();
    assert_eq!((&loaded["done_reason"], &loaded["response"]), (&json!("load"), &json!("")));
    let listed = server.ask("GET", "/api/ps", &Value::Null).json();
    assert_eq!(listed["models"][0]["model"], "starter", "it is in memory: {listed}");
    let expires = listed["models"][0]["expires_at"].as_str().unwrap();
    assert!(expires > "2026" && expires < "9999", "{expires}");
    let embed = server.ask("POST", "/api/embed", &json!({ "model": "starter", "input": "a" }));
    assert!(
        embed.status == 400 && embed.json()["error"].as_str().unwrap().contains("embedding"),
        "{embed:?}"
    );
    assert_eq!(server.ask("POST", "/api/copy", &json!({ "source": "a", "destination": "b" })).status, 501);
    assert_eq!(server.ask("DELETE", "/api/delete", &json!({ "model": "starter" })).status, 409);
}

#[test]
fn our_own_calls_keep_their_names() {
    let server = Fixture::new("own");
    for path in ["/api/app_info", "/api/v1/app_info"] {
        assert!(server.ask("POST", path, &json!({})).json()["version"].is_string(), "{path}");
    }
    assert_eq!(server.ask("POST", "/api/search", &json!({ "query": "x" })).status, 200);
}

#[test]
fn llama_cpp_completes_raw_prompts() {
    let server = Fixture::new("llama");
    let body = |extra: Value| {
        let mut body = json!({ "prompt": "Hello", "n_predict": 4, "temperature": 0, "seed": 7 });
        for (name, value) in extra.as_object().unwrap() {
            body[name] = value.clone();
        }
        body
    };
    let whole = server.ask("POST", "/completion", &body(json!({ "return_tokens": true }))).json();
    let settings = &whole["generation_settings"];
    assert_eq!((&settings["n_predict"], &settings["seed"]), (&json!(4), &json!(7)), "{whole}");
    let timings = &whole["timings"];
    assert_eq!(
        whole["tokens_evaluated"].as_u64(),
        timings["prompt_n"].as_u64().zip(timings["cache_n"].as_u64()).map(|(a, b)| a + b)
    );
    assert!(!whole["tokens"].as_array().unwrap().is_empty());
    let streamed = server.ask("POST", "/completion", &body(json!({ "stream": true })));
    let events: Vec<Value> =
        streamed.events().iter().map(|data| serde_json::from_str(data).unwrap()).collect();
    let said: String = events.iter().map(|event| event["content"].as_str().unwrap()).collect();
    assert_eq!(said, whole["content"]);
    assert_eq!(events.last().unwrap()["stop"], true);
    let several = server.ask("POST", "/completion", &body(json!({ "prompt": ["Hello", "Hello"] }))).json();
    assert_eq!((&several[0]["content"], &several[1]["content"]), (&whole["content"], &whole["content"]));
    let chosen = server.ask(
        "POST",
        "/completion",
        &body(json!({ "response_fields": ["content", "timings/prompt_n"] })),
    );
    let chosen = chosen.json();
    assert_eq!(chosen.as_object().unwrap().len(), 2, "{chosen}");
    let gap = json!({ "input_prefix": "a", "input_suffix": "b" });
    let refused = server.ask("POST", "/infill", &gap);
    assert!(refused.status == 400 && refused.body.contains("fill-in-the-middle"), "{refused:?}");
    assert_eq!(server.ask("GET", "/slots", &Value::Null).status, 501);
}

#[test]
fn texts_become_tokens_and_messages_become_prompts() {
    let server = Fixture::new("tokens");
    let said = "What is the capital of France? 媽";
    let tokens = server.ask("POST", "/tokenize", &json!({ "content": said })).json()["tokens"].clone();
    assert_eq!(server.ask("POST", "/detokenize", &json!({ "tokens": tokens })).json()["content"], said);
    let pieces = server.ask("POST", "/tokenize", &json!({ "content": said, "with_pieces": true })).json();
    let pieces = pieces["tokens"].as_array().unwrap();
    assert_eq!(pieces.len(), tokens.as_array().unwrap().len());
    assert!(pieces.iter().all(|it| it["id"].is_u64() && (it["piece"].is_string() || it["piece"].is_array())));
    assert_eq!(server.ask("POST", "/detokenize", &json!({ "tokens": [999_999_999] })).status, 400);
    assert_eq!(
        server.ask("POST", "/detokenize", &Value::Null).json()["content"],
        "",
        "its body may be missing"
    );
    let messages = json!({ "messages": [{ "role": "user", "content": "Tell me more" }] });
    let prompt =
        server.ask("POST", "/apply-template", &messages).json()["prompt"].as_str().unwrap().to_owned();
    assert!(prompt.contains("Tell me more"), "{prompt}");
    let props = server.ask("GET", "/props", &Value::Null).json();
    assert!(props["default_generation_settings"]["n_ctx"].as_u64().unwrap() > 0, "{props}");
    assert!(props["chat_template"].as_str().is_some_and(|template| !template.is_empty()));
}

#[test]
fn ollama_clients_read_sizes_templates_probabilities_and_errors() {
    let server = Fixture::new("ollama-details");
    let listed = server.ask("GET", "/api/tags", &Value::Null).json();
    assert!(listed["models"][0]["size"].as_u64().unwrap() > 1_000_000, "{listed}");
    let shown = server.ask("POST", "/api/show", &json!({ "model": "starter" })).json();
    assert!(shown["template"].as_str().unwrap().contains("<|im_start|>"), "{shown}");
    let created = server.ask("GET", "/v1/models", &Value::Null).json()["data"][0]["created"].as_i64();
    assert!(created.unwrap() > 1_700_000_000);

    let asked = |stream: bool| {
        json!({
            "model": "starter", "messages": [{ "role": "user", "content": "Hello" }], "stream": stream,
            "options": { "num_predict": 3, "temperature": 0 }, "logprobs": true, "top_logprobs": 2,
        })
    };
    let whole = server.ask("POST", "/api/chat", &asked(false)).json();
    let tokens = whole["logprobs"].as_array().unwrap();
    assert_eq!(tokens.len() as u64, whole["eval_count"].as_u64().unwrap());
    assert!(tokens.iter().all(|token| token["top_logprobs"].as_array().unwrap().len() == 2), "{whole}");
    let streamed = server.ask("POST", "/api/chat", &asked(true));
    let lines = streamed.body.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let pieces: Vec<Value> =
        lines.flat_map(|line| line["logprobs"].as_array().cloned().unwrap_or_default()).collect();
    assert_eq!(&pieces, tokens);

    for (method, path, status) in [
        ("POST", "/api/create", 501),
        ("POST", "/api/push", 501),
        ("POST", "/api/blobs/sha256:00", 501),
        ("GET", "/api/chat", 405),
    ] {
        let refused = server.ask(method, path, &Value::Null);
        assert_eq!(refused.status, status, "{method} {path}");
        assert!(refused.json()["error"].is_string(), "{refused:?}");
    }
    assert!(server.raw("GET", "/api/tags", &[], "").json()["error"].as_str().unwrap().contains("server.key"));
    let headers = [("x-api-key", KEY), ("anthropic-version", "2023-06-01")];
    let missing = server.raw("GET", "/v1/nothing", &headers, "").json();
    assert_eq!(missing["error"]["type"], "not_found_error");
}

#[test]
fn images_are_fetched_by_their_addresses_only_where_that_is_allowed() {
    use std::io::{Read, Write};
    let server = Fixture::new("image-addresses");
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/reference/vision");
    let model = server.app.model_add(&folder.join("gemma3").display().to_string()).unwrap().id;
    let png = std::fs::read(folder.join("images/gradient.png")).unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/gradient.png", listener.local_addr().unwrap());
    let answer =
        [b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nConnection: close\r\n\r\n", &png[..]].concat();
    std::thread::spawn(move || {
        for stream in listener.incoming().take(8) {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            // The client may have gone.
            let _ = stream.write_all(&answer);
        }
    });
    let ask = |url: &str| {
        let text = |text: &str| json!({ "type": "text", "text": text });
        let part = json!({ "type": "image_url", "image_url": { "url": url } });
        let chat = json!({ "model": model, "max_tokens": 6, "temperature": 0,
            "messages": [{ "role": "user", "content": [text("Look: "), part] }] });
        let block = json!({ "type": "image", "source": { "type": "url", "url": url } });
        let anthropic = json!({ "model": model, "max_tokens": 6, "temperature": 0,
            "messages": [{ "role": "user", "content": [text("Look: "), block] }] });
        let ollama = json!({ "model": model, "stream": false, "options": { "num_predict": 6, "temperature": 0 },
            "messages": [{ "role": "user", "content": "Look", "images": [url] }] });
        [("/v1/chat/completions", chat), ("/v1/messages", anthropic), ("/api/chat", ollama)]
            .map(|(path, body)| server.ask("POST", path, &body))
    };
    let allow = |value: &str| server.app.settings_set("allow_image_urls", &json!(value)).unwrap();
    for (value, reason) in [("off", "allow_image_urls"), ("public", "its network")] {
        allow(value);
        for refused in ask(&url) {
            assert!(refused.status == 400 && refused.body.contains(reason), "{value}: {refused:?}");
        }
    }
    allow("any");
    let own = format!("data:image/png;base64,{}", documents::base64::encode(&png));
    for (fetched, given) in ask(&url).into_iter().zip(ask(&own)) {
        assert_eq!((fetched.status, given.status), (200, 200), "{fetched:?}");
        let said = |answer: &Answer| {
            let json = answer.json();
            let places = ["/choices/0/message/content", "/content/0/text", "/message/content"];
            places.iter().find_map(|place| json.pointer(place)).cloned()
        };
        assert!(said(&fetched).is_some());
        assert_eq!(said(&fetched), said(&given));
    }
    let connections = server.app.connections_list(None).unwrap();
    let images =
        connections.iter().filter(|it| it.purpose == Some(contract::types::ConnectionPurpose::Image));
    // The newest first. Those that were refused are on the record, too, without a byte.
    let n = png.len() as u64;
    assert_eq!(images.map(|it| it.received).collect::<Vec<_>>(), [n, n, n, 0, 0, 0]);
}

/// A PDF whose page is scanned is the page's image behind its name, in every interface that takes files.
#[test]
fn scanned_pdfs_are_seen() {
    let server = Fixture::new("scanned-parts");
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let vision = folder.join("../../../tests/reference/vision/gemma3").display().to_string();
    let model = server.app.model_add(&vision).unwrap().id;
    let read = |name: &str| {
        documents::base64::encode(&std::fs::read(folder.join("../pdf-pages/tests/files").join(name)).unwrap())
    };
    let (pdf, page) = (read("jpeg.pdf"), read("jpeg-page.jpg"));
    let text = |text: &str| json!({ "type": "text", "text": text });
    let named = "File: page 1 of a.pdf";
    let whole = "\n\nFile: a.pdf\n```\n[page 1]\n(This page is scanned. It is an image.)\n```\n\n";
    let chat = |model: &str, content: serde_json::Value| {
        json!({ "model": model, "max_tokens": 6, "temperature": 0,
            "messages": [{ "role": "user", "content": content }] })
    };
    let file = json!({ "type": "file", "file": { "filename": "a.pdf", "file_data": pdf } });
    let image =
        json!({ "type": "image_url", "image_url": { "url": format!("data:image/jpeg;base64,{page}") } });
    let document = json!({ "type": "document", "title": "a.pdf",
        "source": { "type": "base64", "media_type": "application/pdf", "data": pdf } });
    let source = json!({ "type": "base64", "media_type": "image/jpeg", "data": page });
    let block = json!({ "type": "image", "source": source });
    for (path, part, image) in [("/v1/chat/completions", &file, image), ("/v1/messages", &document, block)] {
        let given = json!([part, text("What is it?")]);
        let written = json!([text(named), image, text(whole), text("What is it?")]);
        let [given, written] =
            [given, written].map(|content| server.ask("POST", path, &chat(&model, content)));
        assert_eq!((given.status, written.status), (200, 200), "{given:?}");
        let said = |answer: &Answer| {
            let json = answer.json();
            let places = ["/choices/0/message/content", "/content/0/text"];
            let text = places.iter().find_map(|place| json.pointer(place)).cloned();
            let counts = ["/usage/prompt_tokens", "/usage/input_tokens"];
            (text, counts.iter().find_map(|place| json.pointer(place)).cloned())
        };
        assert!(said(&given).0.is_some() && said(&given).1.is_some());
        assert_eq!(said(&given), said(&written), "{path}");
        let blind = server.ask("POST", path, &chat("starter", json!([part, text("What is it?")])));
        assert!(blind.status == 400 && blind.body.contains("its pages are images"), "{blind:?}");
    }
}
