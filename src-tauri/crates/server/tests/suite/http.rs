//! The real server on a loopback port, asked by a client of a few lines.
#![allow(clippy::unwrap_used)] // a test

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::Duration;

use app::App;
use app::AppConfig;
use contract::types::ServerState;
use serde_json::{Value, json};
use server::{AllowedSources, Options, serve};

use crate::fixture::{Answer, Fixture, KEY};

/// A body in chunks as they stand.
fn chunked(server: &Fixture, path: &str, chunks: &str) -> Answer {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {KEY}\r\nconnection: close\r\n\
        transfer-encoding: chunked\r\n\r\n"
    );
    stream.write_all((head + chunks).as_bytes()).unwrap();
    Answer::read(stream)
}

#[test]
fn bodies_in_chunks_are_read_and_broken_ones_are_bad_requests() {
    let server = Fixture::new("chunks");
    let whole = "2\r\n{}\r\n0\r\n\r\n";
    assert_eq!(chunked(&server, "/api/server_state", whole).status, 200);
    for broken in ["zz\r\n{}\r\n", "2\r\n{}xx0\r\n\r\n", "-1\r\n", "ffffffffffffffffff\r\n{}"] {
        for path in ["/api/server_state", "/v1/chat/completions", "/tokenize"] {
            let answer = chunked(&server, path, broken);
            assert_eq!(answer.status, 400, "{broken:?}: {answer:?}");
            assert!(answer.body.contains("server.body_broken"), "{answer:?}");
        }
    }
}

#[test]
fn halves_of_characters_become_one_that_says_so() {
    let server = Fixture::new("halves");
    let authorization = format!("Bearer {KEY}");
    let headers = [("authorization", authorization.as_str())];
    let body = r#"{"model":"starter","messages":[{"role":"user","content":"Hi \ud83d"}]}"#;
    assert_eq!(server.raw("POST", "/v1/chat/completions", &headers, body).status, 200);
    assert_eq!(server.raw("POST", "/tokenize", &headers, body).status, 200);
    let sent = server.raw("POST", "/api/send", &headers, r#"{"text":"Hi \ud83d"}"#);
    assert_eq!(sent.status, 200, "{sent:?}");
    assert_eq!(server.raw("POST", "/api/send", &headers, r#"{"text":"Hi \ud83}"#).status, 400);
}

fn hello(extra: &Value) -> Value {
    let mut body = json!({ "model": "starter", "messages": [{ "role": "user", "content": "Hello" }] });
    for (name, value) in extra.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

/// A window beside the server sees that it listens, and that it is gone.
#[test]
fn a_server_is_seen_from_beside_it_until_it_ends() {
    let mut server = Fixture::new("seen");
    let asked = server.ask("POST", "/api/server_state", &json!({})).json();
    assert_eq!(asked, json!({ "state": "running", "ports": [server.port] }));
    let second =
        serve(server.app.clone(), Options { port: 0, api_key: Some(KEY.into()), ..Options::default() })
            .unwrap();
    let ServerState::Running { ports } = server.app.server_state().unwrap() else { panic!("two listen") };
    assert_eq!((ports.len(), ports.contains(&server.port), ports.is_sorted()), (2, true, true));
    drop(second);
    server.listening = None;
    assert_eq!(server.app.server_state().unwrap(), ServerState::Off);
    // a stale lock file of a killed process
    std::fs::write(server.home.join("serving/8642.lock"), b"").unwrap();
    std::fs::write(server.home.join("serving/notes.txt"), b"").unwrap();
    assert_eq!(server.app.server_state().unwrap(), ServerState::Failed { port: 8642 });
    let again = App::open(AppConfig { data_dir: Some(server.home.clone()), ..AppConfig::default() }).unwrap();
    assert_eq!(again.server_state().unwrap(), ServerState::Off, "what died before is no news");
}

#[test]
fn a_whole_completion() {
    let server = Fixture::new("whole");
    let answer = server.ask("POST", "/v1/chat/completions", &hello(&json!({ "max_completion_tokens": 5 })));
    assert_eq!(answer.status, 200, "{answer:?}");
    let body = answer.json();
    assert_eq!(body["object"], "chat.completion");
    assert!(body["id"].as_str().unwrap().starts_with("chatcmpl-"));
    assert_eq!(body["model"], "starter");
    assert!(body["created"].as_i64().unwrap() > 1_600_000_000);
    let choice = &body["choices"][0];
    assert_eq!(choice["message"]["role"], "assistant");
    assert!(choice["message"]["content"].is_string());
    assert!(["stop", "length"].contains(&choice["finish_reason"].as_str().unwrap()));
    let usage = &body["usage"];
    let count = |name: &str| usage[name].as_u64().unwrap();
    assert_eq!(count("total_tokens"), count("prompt_tokens") + count("completion_tokens"));
    assert!(count("completion_tokens") <= 5);
}

#[test]
fn tokens_are_counted_as_a_completion_counts_them() {
    let server = Fixture::new("tokenize");
    let tools = json!([{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]);
    for more in [json!({}), json!({ "tools": tools })] {
        let mut body = hello(&more);
        let counted = server.ask("POST", "/tokenize", &body);
        assert_eq!(counted.status, 200, "{counted:?}");
        body["max_completion_tokens"] = json!(1);
        let usage = server.ask("POST", "/v1/chat/completions", &body).json()["usage"].clone();
        assert_eq!(counted.json()["count"], usage["prompt_tokens"], "{usage}");
        assert!(counted.json()["max_model_len"].as_u64().is_some_and(|n| n > 0));
    }
    let refused = |body: &Value| {
        let answer = server.ask("POST", "/tokenize", body);
        (answer.status, answer.json()["error"]["code"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(refused(&json!({ "model": "no-such", "messages": [] })).0, 400);
    let other = json!({ "model": "no-such", "messages": [{ "role": "user", "content": "Hi" }] });
    assert_eq!(refused(&other).0, 404);
    assert_eq!(server.raw("POST", "/tokenize", &[], &other.to_string()).status, 401, "it wants the key");
}

#[test]
fn a_streamed_completion_has_the_shape_that_clients_check() {
    let server = Fixture::new("stream");
    let whole = server.ask("POST", "/v1/chat/completions", &hello(&json!({}))).json();
    for include_usage in [true, false] {
        let options = json!({ "stream": true, "stream_options": { "include_usage": include_usage } });
        let answer = server.ask("POST", "/v1/chat/completions", &hello(&options));
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(answer.headers.contains("content-type: text/event-stream"));
        let mut events = answer.events();
        assert_eq!(events.pop(), Some("[DONE]"));
        let mut chunks: Vec<Value> =
            events.iter().map(|event| serde_json::from_str(event).unwrap()).collect();
        assert_eq!(chunks[0]["choices"][0]["delta"], json!({ "role": "assistant", "content": null }));
        if include_usage {
            let last = chunks.pop().unwrap();
            assert_eq!(last["choices"], json!([]));
            assert_eq!(last["usage"]["completion_tokens"], whole["usage"]["completion_tokens"]);
        }
        let has_usage = |chunk: &Value| chunk.as_object().unwrap().contains_key("usage");
        assert!(chunks.iter().all(|chunk| has_usage(chunk) == include_usage && chunk["usage"].is_null()));
        let reasons: Vec<_> =
            chunks.iter().filter_map(|chunk| chunk["choices"][0]["finish_reason"].as_str()).collect();
        assert_eq!(reasons, [whole["choices"][0]["finish_reason"].as_str().unwrap()], "once");
        assert!(chunks.last().unwrap()["choices"][0]["finish_reason"].is_string());
        let text: String =
            chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
        assert_eq!(text, whole["choices"][0]["message"]["content"].as_str().unwrap());
        assert!(
            chunks
                .iter()
                .all(|chunk| chunk["id"] == chunks[0]["id"] && chunk["object"] == "chat.completion.chunk")
        );
    }
}

#[test]
fn f65_refusals_have_openais_form() {
    let server = Fixture::new("refusals");
    server.app.settings_set("context", &json!(64)).unwrap();
    let cases = [
        (hello(&json!({ "n": 0 })), 400, "n"),
        (hello(&json!({ "response_format": { "type": "json_schema" } })), 400, "response_format"),
        (hello(&json!({ "model": "gpt-4" })), 404, "model"),
        (hello(&json!({ "model": "/etc/passwd" })), 404, "model"),
        (
            hello(&json!({ "messages": [{ "role": "user", "content": "word ".repeat(900) }] })),
            400,
            "messages",
        ),
        (
            hello(
                &json!({ "stream": true, "messages": [{ "role": "user", "content": "word ".repeat(900) }] }),
            ),
            400,
            "messages",
        ),
    ];
    for (body, status, param) in cases {
        let answer = server.ask("POST", "/v1/chat/completions", &body);
        let error = answer.json()["error"].clone();
        assert_eq!((answer.status, error["param"].as_str()), (status, Some(param)), "{answer:?}");
        assert!(error["message"].is_string() && error["type"].is_string());
    }
    let overflow = server.ask(
        "POST",
        "/v1/chat/completions",
        &hello(&json!({ "messages": [{ "role": "user", "content": "word ".repeat(900) }] })),
    );
    assert_eq!(overflow.json()["error"]["code"], "context_length_exceeded");
    for body in ["", "{", "[1]", "null", "\u{0}"] {
        let key = format!("Bearer {KEY}");
        let answer = server.raw("POST", "/v1/chat/completions", &[("authorization", &key)], body);
        assert_eq!(answer.status, 400, "{body:?} {answer:?}");
    }
}

#[test]
fn an_address_that_cannot_be_read_is_refused_in_the_clients_form() {
    let server = Fixture::new("addresses");
    for (path, kind) in [
        ("/api/turns/00/events?after=", "invalid_request_error"),
        ("/api/turns/00/events?after=-1", "invalid_request_error"),
        ("/v1/models/%ff", "invalid_request_error"),
        ("/v1/responses/%ff", "invalid_request_error"),
        ("/v1/messages/batches/%ff", "invalid_request_error"),
    ] {
        let answer = server.ask("GET", path, &json!(null));
        let error = answer.json()["error"].clone();
        assert_eq!((answer.status, error["type"].as_str()), (400, Some(kind)), "{path}: {answer:?}");
        let message = error["message"].as_str().unwrap_or_default();
        assert!(message.starts_with("The address can't be read"), "{path}: {message}");
    }
}

#[test]
fn models_and_routes() {
    let server = Fixture::new("routes");
    let list = server.ask("GET", "/v1/models", &Value::Null).json();
    assert_eq!(list["object"], "list");
    assert_eq!(list["data"][0]["id"], "starter");
    assert_eq!(server.ask("GET", "/v1/models/starter", &Value::Null).json()["object"], "model");
    assert_eq!(server.ask("GET", "/v1/models/a%2Fb/c", &Value::Null).status, 404);
    for (method, path, status) in [
        ("GET", "/nowhere", 404),
        ("GET", "/api/nowhere/at/all", 404),
        ("POST", "/api/launch", 404),
        ("PUT", "/v1/chat/completions", 405),
        ("DELETE", "/api/app_info", 405),
        ("GET", "/health", 200),
        ("GET", "/%2e%2e/%2e%2e/etc/passwd", 404),
    ] {
        let answer = server.ask(method, path, &Value::Null);
        assert_eq!(answer.status, status, "{method} {path} {answer:?}");
        assert!(answer.json().is_object());
    }
    let page = server.raw("GET", "/", &[], "");
    assert_eq!(page.status, 200);
    assert!(page.headers.contains("content-security-policy: default-src 'none'"));
    assert!(page.headers.contains("x-content-type-options: nosniff"));
}

#[test]
fn f63_nobody_else_is_let_in() {
    let server = Fixture::new("guard");
    let key = format!("Bearer {KEY}");
    let own = format!("http://127.0.0.1:{}", server.port);
    let routes = ["/v1/models", "/v1/chat/completions", "/api/app_info", "/api/events", "/", "/health", "/x"];
    for path in routes {
        for method in ["GET", "POST", "OPTIONS"] {
            for (name, value) in [
                ("host", "evil.com"),
                ("host", "127.0.0.1.evil.com"),
                ("origin", "http://evil.com"),
                ("origin", "null"),
                ("origin", "http://127.0.0.1:1"),
            ] {
                let answer = server.raw(method, path, &[("authorization", &key), (name, value)], "");
                assert_eq!(answer.status, 403, "{method} {path} {name}: {value}");
                assert!(!answer.headers.contains("access-control"), "{answer:?}");
                assert_eq!(answer.json()["error"]["code"], "server.foreign");
            }
        }
    }
    let log = std::fs::read_to_string(server.home.join("audit/audit.jsonl")).unwrap();
    let recorded: Vec<&str> = log.lines().filter(|line| line.contains("\"server.foreign\"")).collect();
    assert!(recorded[0].contains("host evil.com"), "{log}");
    assert_eq!(recorded.len(), 10, "a page that goes on asking fills no log");
    let answer = server.raw("POST", "/api/app_info", &[("authorization", &key), ("origin", &own)], "");
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(!answer.headers.contains("access-control"));
    let refused = |header: &[(&str, &str)]| server.raw("GET", "/v1/models", header, "").status;
    for _ in 0..10 {
        assert_eq!(refused(&[]), 401, "no key guesses nothing");
        assert_eq!(refused(&[("authorization", "Bearer wrong-key")]), 401);
    }
    assert_eq!(refused(&[("authorization", "Bearer wrong-key")]), 429);
    assert_eq!(refused(&[("authorization", &key)]), 200, "the right key is never kept out");
}

#[test]
fn hosts_and_origins_that_the_user_allows_are_let_in() {
    let server = Fixture::new("allowed");
    let allowed = AllowedSources::new(&["box.internal".into()], &["http://localhost:3000".into()]).unwrap();
    let options = Options { port: 0, api_key: Some(KEY.into()), sources: allowed, ..Options::default() };
    let listening = serve(server.app.clone(), options).unwrap();
    let port = listening.url.rsplit_once(':').unwrap().1.parse().unwrap();
    let ask = |method: &str, headers: &[(&str, &str)]| {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        let lines: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        write!(stream, "{method} /v1/models HTTP/1.1\r\nconnection: close\r\n{lines}\r\n").unwrap();
        Answer::read(stream)
    };
    let (key, host) = (("x-api-key", KEY), ("host", "box.internal:80"));
    assert_eq!(ask("GET", &[key, host]).status, 200);
    assert_eq!(ask("GET", &[key, ("host", "other.internal")]).status, 403);
    let origin = ("origin", "http://localhost:3000");
    let read = ask("GET", &[key, host, origin]);
    assert_eq!(read.status, 200);
    assert!(read.headers.contains("access-control-allow-origin: http://localhost:3000"), "{read:?}");
    let without_key = ask("GET", &[host, origin]);
    assert_eq!(without_key.status, 401, "an origin is no key");
    assert!(without_key.headers.contains("access-control-allow-origin"), "the page can read why");
    let question =
        [("access-control-request-method", "POST"), ("access-control-request-headers", "authorization")];
    let permitted = ask("OPTIONS", &[host, origin, question[0], question[1]]);
    assert_eq!(permitted.status, 204, "browsers ask without a key");
    assert!(permitted.headers.contains("access-control-allow-headers: authorization"));
    let foreign = ask("OPTIONS", &[host, ("origin", "http://localhost:3001"), question[0]]);
    assert_eq!(foreign.status, 403);
    assert!(!foreign.headers.contains("access-control"));
}

#[test]
fn use_cases_and_events() {
    let server = Fixture::new("calls");
    let info = server.ask("POST", "/api/app_info", &json!({})).json();
    assert_eq!(info["version"], env!("CARGO_PKG_VERSION"));
    let started = server.ask("POST", "/api/send", &json!({ "text": "Hello" })).json();
    let turn = started["turn"].as_str().unwrap();
    let answer = server.ask("GET", &format!("/api/turns/{turn}/events?after=0"), &Value::Null);
    let events: Vec<Value> =
        answer.events().iter().map(|event| serde_json::from_str(event).unwrap()).collect();
    let seqs: Vec<_> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=events.len() as u64).collect::<Vec<_>>());
    assert_eq!(events.last().unwrap()["kind"]["type"], "done");
    let missing = server.ask("GET", "/api/turns/none/events", &Value::Null);
    assert_eq!((missing.status, missing.json()["error"]["code"].as_str()), (404, Some("turn.unknown")));
    let wrong = server.ask("POST", "/api/settings_set", &json!({ "key": "temperature", "value": 9 }));
    assert_eq!((wrong.status, wrong.json()["error"]["code"].as_str()), (400, Some("setting.out_of_range")));
    let large = "x".repeat(33 << 20);
    let key = format!("Bearer {KEY}");
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    let head = format!(
        "POST /api/send HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: {key}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        large.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    assert_eq!(Answer::read(stream).status, 413, "refused by its length alone");
}

#[test]
fn events_beside_turns_are_streamed_until_the_server_stops() {
    let mut server = Fixture::new("events");
    let key = format!("Bearer {KEY}");
    let mut reader = BufReader::new(server.open("GET", "/api/events", &[("authorization", &key)], ""));
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        reader.read_line(&mut line).unwrap();
    }
    server.app.settings_set("theme", &json!("dark")).unwrap();
    // The first watcher hears what came before it, too.
    while !(line.starts_with("data: ") && line.contains("\"theme\"")) {
        line.clear();
        assert!(reader.read_line(&mut line).unwrap() > 0);
    }
    let event: Value = serde_json::from_str(line.trim_start_matches("data: ")).unwrap();
    assert_eq!(
        (event["type"].as_str(), event["row"]["value"].as_str()),
        (Some("setting_changed"), Some("dark"))
    );
    server.listening.take();
    let mut rest = String::new();
    reader.read_to_string(&mut rest).unwrap();
}

#[test]
fn f66_a_client_that_leaves_stops_its_answer() {
    let server = Fixture::new("leave");
    server.app.settings_reset("max_tokens").unwrap();
    for stream in [true, false] {
        let key = format!("Bearer {KEY}");
        let body = hello(&json!({ "stream": stream, "ignore_eos": true })).to_string();
        let mut connection = server.open("POST", "/v1/chat/completions", &[("authorization", &key)], &body);
        if stream {
            let mut begin = [0; 200];
            connection.read_exact(&mut begin).unwrap();
        }
        drop(connection);
        // The next one is answered soon: the first does not go on to the end of its context.
        let answer = server.ask("POST", "/v1/chat/completions", &hello(&json!({ "max_tokens": 2 })));
        assert_eq!(answer.status, 200, "{answer:?}");
    }
}

#[test]
fn f62_a_port_in_use_is_named_with_its_program_and_a_free_one() {
    let server = Fixture::new("port");
    let options = Options { port: server.port, api_key: Some(KEY.into()), ..Options::default() };
    let error = serve(server.app.clone(), options).err().unwrap();
    assert_eq!(error.code(), "server.port_in_use");
    assert!(error.message().contains(&server.port.to_string()));
    let suggested = error.remedy().split("--port ").nth(1).unwrap().split(',').next().unwrap().to_owned();
    let suggested: u16 = suggested.parse().unwrap();
    assert!(suggested > server.port && std::net::TcpListener::bind(("127.0.0.1", suggested)).is_ok());
    if cfg!(target_os = "linux") {
        assert!(!error.message().starts_with("Another program"), "{error}");
    }
}

/// A small model with random weights, as `tests/reference/embed.py` makes it.
fn embeds() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../tests/reference/embeddings/gemma.gguf")
}

#[test]
fn vectors_of_texts() {
    let fixture = Fixture::new("embeddings");
    let refused = fixture.ask("POST", "/v1/embeddings", &json!({ "input": "a" }));
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (404, &json!("model.none_embeds")));
    let model = fixture.app.model_add(embeds().to_str().unwrap()).unwrap().id;
    let ask = |body: Value| fixture.ask("POST", "/v1/embeddings", &body);
    let answer = ask(json!({ "model": model, "input": ["some words", "others"], "user": "u" })).json();
    assert_eq!((&answer["object"], &answer["model"]), (&json!("list"), &json!(model)));
    let data = answer["data"].as_array().unwrap();
    assert_eq!(data.len(), 2);
    let floats = |value: &Value| -> Vec<f32> {
        value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap() as f32).collect()
    };
    for (index, one) in data.iter().enumerate() {
        assert_eq!((&one["object"], &one["index"]), (&json!("embedding"), &json!(index)));
        let length: f32 = floats(&one["embedding"]).iter().map(|x| x * x).sum();
        assert!((length - 1.0).abs() < 1e-5, "{one}");
    }
    // some, words, others: a token for each byte, each text with its beginning and end
    let n_tokens = answer["usage"]["prompt_tokens"].as_u64().unwrap();
    assert!((16..=24).contains(&n_tokens), "{answer}");
    assert_eq!(answer["usage"]["total_tokens"], n_tokens);

    fixture.app.settings_set("embedding_model", &json!(model)).unwrap();
    let packed = ask(json!({ "input": "some words", "encoding_format": "base64" })).json();
    let text = packed["data"][0]["embedding"].as_str().unwrap();
    assert_eq!(text.len(), (4 * floats(&data[0]["embedding"]).len()).div_ceil(3) * 4);

    let fails = |body: Value, status: u16, param: &str| {
        let answer = ask(body);
        let error = answer.json()["error"].clone();
        assert_eq!((answer.status, error["param"].as_str()), (status, Some(param)), "{error}");
    };
    fails(json!({ "model": model, "input": "x".repeat(20_000) }), 400, "input");
    fails(json!({ "model": "nowhere", "input": "x" }), 404, "model");
    let chat = json!({ "model": model, "messages": [{ "role": "user", "content": "Hi" }] });
    let error = fixture.ask("POST", "/v1/chat/completions", &chat).json()["error"].clone();
    assert_eq!(error["code"], "model.embeds_only", "{error}");
    let starter = ask(json!({ "model": "starter", "input": "x" })).json()["error"].clone();
    assert_eq!(starter["code"], "model.no_embeddings", "{starter}");
}

#[test]
fn assistants_are_not_listed_and_refused_by_name() {
    let fixture = Fixture::new("assistants");
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../tests/reference/assistants");
    let models = fixture.app.model_folder_add(folder.to_str().unwrap()).unwrap().models;
    assert_eq!(models.iter().filter(|entry| entry.only_drafts).count(), 2, "{models:?}");
    let listed = fixture.ask("GET", "/v1/models", &Value::Null).json();
    assert_eq!(listed["data"].as_array().unwrap().len(), 1, "{listed}");
    let tags = fixture.ask("GET", "/api/tags", &Value::Null).json();
    assert_eq!(tags["models"].as_array().unwrap().len(), 1, "{tags}");
    let chat = json!({ "model": "gemma4", "messages": [{ "role": "user", "content": "Hi" }] });
    let error = fixture.ask("POST", "/v1/chat/completions", &chat).json()["error"].clone();
    assert_eq!(error["code"], "model.drafts_only", "{error}");
}
