//! The HTTP server: wrong keys, wrong bodies, too much at once, and its end, as clients meet them at `nook serve`.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cli::Home;
use crate::kill9::{KEY, NookServer};

/// What came back.
#[derive(Debug)]
struct Reply {
    status: u16,
    head: String,
    body: String,
}

impl Reply {
    fn error(&self) -> Value {
        let value: Value = serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"));
        value["error"].clone()
    }
}

fn open(server: &NookServer, path: &str, key: Option<&str>, length: usize, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address()).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time");
    let key = key.map(|key| format!("authorization: Bearer {key}\r\n")).unwrap_or_default();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {}\r\n{key}connection: close\r\ncontent-length: {length}\r\n\r\n{body}",
        server.address()
    );
    stream.write_all(head.as_bytes()).expect("it listens");
    stream
}

fn read(mut stream: TcpStream) -> Reply {
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    let (head, body) = text.split_once("\r\n\r\n").expect("a whole head");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    Reply { status, head: head.to_lowercase(), body: body.to_owned() }
}

fn post(server: &NookServer, path: &str, body: &str) -> Reply {
    read(open(server, path, Some(KEY), body.len(), body))
}

fn chat(more: &Value) -> String {
    let mut body = json!({ "model": "starter", "messages": [{ "role": "user", "content": "Hello" }] });
    for (name, value) in more.as_object().expect("fields") {
        body[name] = value.clone();
    }
    body.to_string()
}

/// A figure of `/metrics` without labels.
fn gauge(server: &NookServer, name: &str) -> f64 {
    let mut stream = TcpStream::connect(server.address()).expect("it listens");
    let head = format!(
        "GET /metrics HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {KEY}\r\nconnection: close\r\n\r\n",
        server.address()
    );
    stream.write_all(head.as_bytes()).expect("it listens");
    let reply = read(stream);
    let line = reply.body.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|it| it.parse().ok()).unwrap_or_else(|| panic!("no {name}: {reply:?}"))
}

const CHAT: &str = "/v1/chat/completions";

#[test]
fn f64_ten_wrong_keys_in_a_minute_are_enough_and_the_right_one_is_never_kept_out() {
    let home = Home::new();
    let server = NookServer::start(&home.0);
    let with = |key: Option<&str>| read(open(&server, "/v1/models", key, 0, "")).status;
    for n in 0..10 {
        assert_eq!(with(None), 401, "no key guesses nothing");
        assert_eq!(with(Some("wrong-key")), 401, "wrong key {n}");
    }
    assert_eq!((with(Some("wrong-key")), with(None)), (429, 401));
    assert_ne!(with(Some(KEY)), 429);
    server.kill();
}

#[test]
fn f65_every_bad_request_is_refused_by_its_field_and_the_server_goes_on() {
    let home = Home::new();
    let server = NookServer::start(&home.0);
    let nested =
        format!("{{\"model\":\"starter\",\"messages\":{}1{}}}", "[".repeat(60_000), "]".repeat(60_000));
    let long = chat(&json!({ "messages": [{ "role": "user", "content": "word ".repeat(90_000) }] }));
    for (what, body, status, words) in [
        ("no JSON", "{\"model\":".to_owned(), 400, "JSON"),
        ("not an object", "[1]".to_owned(), 400, ""),
        ("nested", nested, 400, ""),
        ("a wrong type", chat(&json!({ "temperature": "hot" })), 400, "temperature"),
        ("no choice", chat(&json!({ "n": 0 })), 400, ""),
        ("an unknown model", chat(&json!({ "model": "gpt-9" })), 404, "starter"),
        ("too long", long, 400, "tokens"),
    ] {
        let reply = post(&server, CHAT, &body);
        assert_eq!(reply.status, status, "{what}: {reply:?}");
        let error = reply.error();
        assert!(error["message"].as_str().is_some_and(|text| text.contains(words)), "{what}: {error}");
        assert!(error["type"].is_string(), "{what}: {error}");
    }
    let wrong = post(&server, CHAT, &chat(&json!({ "temperature": "hot" }))).error();
    assert_eq!(wrong["param"], "temperature");
    // By its length alone: nothing of it is sent.
    let huge = read(open(&server, CHAT, Some(KEY), 2 << 30, ""));
    assert_eq!(huge.status, 413, "{huge:?}");
    assert_eq!(post(&server, CHAT, &chat(&json!({ "max_tokens": 1 }))).status, 200);
    server.kill();
}

#[test]
fn f68_one_request_too_many_is_told_when_to_come_back() {
    let home = Home::new();
    let server = NookServer::start(&home.0);
    for (key, value) in [("limit_concurrent", 1), ("limit_waiting", 1)] {
        server.call("settings_set", &json!({ "key": key, "value": value }));
    }
    let endless = chat(&json!({ "stream": true, "ignore_eos": true, "max_tokens": 1900 }));
    let again = || open(&server, CHAT, Some(KEY), endless.len(), &endless);
    let mut running = vec![again()];
    running[0].read_exact(&mut [0; 64]).expect("it is being answered");
    running.push(again());
    // A third that came before the second waits would take its place.
    let begin = Instant::now();
    while gauge(&server, "inglenook_answers_queued") < 1.0 {
        assert!(begin.elapsed() < Duration::from_secs(60), "the second never waits");
    }
    let refused = post(&server, CHAT, &chat(&json!({ "max_tokens": 1 })));
    assert_eq!(refused.status, 429, "the queue is bounded: {refused:?}");
    assert!(refused.head.contains("retry-after: 1"), "{refused:?}");
    assert_eq!(refused.error()["type"], "rate_limit_error");
    drop(running);
    let begin = Instant::now();
    while post(&server, CHAT, &chat(&json!({ "max_tokens": 1 }))).status != 200 {
        assert!(begin.elapsed() < Duration::from_secs(60), "the slot stays taken");
    }
    server.kill();
}

#[test]
fn f70_a_form_that_cannot_be_kept_is_refused_by_name_and_never_ignored() {
    let home = Home::new();
    let server = NookServer::start(&home.0);
    for (schema, words) in [
        (json!({ "$ref": "http://example.com/schema" }), "example.com"),
        (json!({ "type": "strange" }), "strange"),
        (json!({ "type": "string", "pattern": "(" }), "regex"),
    ] {
        let form = json!({ "type": "json_schema", "json_schema": { "name": "x", "schema": schema } });
        for stream in [false, true] {
            let reply = post(&server, CHAT, &chat(&json!({ "response_format": form, "stream": stream })));
            assert_eq!(reply.status, 400, "{schema}: {reply:?}");
            assert!(reply.body.contains(words), "{schema}: {reply:?}");
        }
    }
    server.kill();
}

#[test]
fn f71_a_signal_ends_the_server_in_time_and_with_it_what_runs() {
    let home = Home::new();
    let mut server = NookServer::start(&home.0);
    let endless = chat(&json!({ "stream": true, "ignore_eos": true, "max_tokens": 2000 }));
    let mut running = open(&server, CHAT, Some(KEY), endless.len(), &endless);
    running.read_exact(&mut [0; 64]).expect("it is being answered");
    let pid = server.child.id().to_string();
    let began = Instant::now();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("there is kill").success());
    let status = server.child.wait().expect("it ends");
    // Five seconds for what runs, and some for a busy machine.
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert_eq!(status.code(), Some(0), "{status}");
    let mut rest = String::new();
    // The connection is closed, after whole events.
    let _ = running.read_to_string(&mut rest);
    assert!(TcpStream::connect(server.address()).is_err(), "nothing listens any more");
}
