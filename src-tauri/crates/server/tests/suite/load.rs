//! Well and badly behaved clients at once: no request is lost, and nothing is left over.
//!
//! `INGLENOOK_LOAD_ROUNDS` makes it longer; `--nocapture` shows the times to the first token.
#![allow(clippy::unwrap_used)] // a test

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::fixture::{Answer, Fixture, KEY};

/// Requests of each well-behaved client: some seconds.
const DEFAULT_ROUNDS: usize = 12;

const N_CLIENTS: usize = 8;
const N_VANISHING: usize = 3;

/// Memory that may stay after the load: contexts and buffers that the first answers did not need yet.
const MAX_GROWTH_BYTES: u64 = 96 << 20;

/// Descriptors that may stay: connections that are being closed.
const MAX_LEFT_DESCRIPTORS: usize = 16;

/// Questions after the load until it has ended.
const MAX_POLLS: usize = 10_000;

fn asked(stream: bool) -> String {
    json!({
        "model": "starter", "messages": [{ "role": "user", "content": "Hello" }], "max_tokens": 16, "stream": stream,
    })
    .to_string()
}

/// A request that is answered to its end.
fn is_answered(server: &Fixture, authorization: &str) -> bool {
    let answer =
        server.raw("POST", "/v1/chat/completions", &[("authorization", authorization)], &asked(true));
    answer.status == 200 && answer.events().last() == Some(&"[DONE]")
}

/// Reads the beginning of an answer and leaves.
fn vanish(server: &Fixture, authorization: &str) {
    let mut stream =
        server.open("POST", "/v1/chat/completions", &[("authorization", authorization)], &asked(true));
    let _ = stream.read(&mut [0; 16]);
}

/// Sends bytes as they are; the server may answer or hang up.
fn send_raw(server: &Fixture, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    let _ = stream.write_all(bytes);
    stream
}

/// What breaks the rules of HTTP, JSON or the limits.
fn misbehave(server: &Fixture, authorization: &str) {
    for bytes in [
        &b"\x16\x03\x01\x02\x00"[..],
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /v1/messages HTTP/1.1\r\nhost:\r\n\r\n",
    ] {
        let mut stream = send_raw(server, bytes);
        // The server may have hung up already.
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    }
    let broken = server.raw("POST", "/v1/messages", &[("authorization", authorization)], "{\"messages\": [");
    assert_eq!(broken.status, 400, "{broken:?}");
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {KEY}\r\n\
         connection: close\r\ncontent-length: 4000000000\r\n\r\n"
    );
    assert_eq!(Answer::read(send_raw(server, head.as_bytes())).status, 413);
}

/// Descriptors of this process; `None` where the system does not list them.
fn open_descriptors() -> Option<usize> {
    Some(std::fs::read_dir("/proc/self/fd").ok()?.count())
}

fn stats(server: &Fixture) -> Value {
    server.ask("GET", "/api/v1/stats", &Value::Null).json()
}

#[test]
fn misbehaving_clients_cost_the_others_nothing() {
    let rounds = std::env::var("INGLENOOK_LOAD_ROUNDS").map_or(DEFAULT_ROUNDS, |text| text.parse().unwrap());
    let server = Fixture::new("load");
    let authorization = format!("Bearer {KEY}");
    let round = |n_rounds: usize| {
        // Each has sent half of a request and waits, as long as the round lasts.
        let slow = b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\nauthor";
        let _slow: Vec<TcpStream> = (0..N_CLIENTS).map(|_| send_raw(&server, slow)).collect();
        std::thread::scope(|scope| {
            let ask = || (0..n_rounds).filter(|_| is_answered(&server, &authorization)).count();
            let good: Vec<_> = (0..N_CLIENTS).map(|_| scope.spawn(ask)).collect();
            for _ in 0..N_VANISHING {
                scope.spawn(|| (0..n_rounds).for_each(|_| vanish(&server, &authorization)));
            }
            scope.spawn(|| (0..n_rounds).for_each(|_| misbehave(&server, &authorization)));
            good.into_iter().map(|client| client.join().unwrap()).sum::<usize>()
        })
    };
    assert_eq!(round(1), N_CLIENTS, "the first answers");
    let idle = |server: &Fixture| {
        let now = (0..MAX_POLLS).map(|_| stats(server)).find(|now| now["running"] == 0 && now["queued"] == 0);
        now.expect("answers of clients that left still run")
    };
    let before = (idle(&server)["memory_bytes"].as_u64().unwrap(), open_descriptors());

    assert_eq!(round(rounds), N_CLIENTS * rounds, "every request was answered to its end");

    let after = idle(&server);
    println!("{rounds} rounds: time to the first token in ms {}", after["ttft_ms"]);
    let growth = after["memory_bytes"].as_u64().unwrap().saturating_sub(before.0);
    assert!(growth < MAX_GROWTH_BYTES, "{growth} bytes stayed");
    if let (Some(before), Some(now)) = (before.1, open_descriptors()) {
        assert!(now <= before + MAX_LEFT_DESCRIPTORS, "{now} descriptors, {before} before");
    }
    assert_eq!(after["answers"]["failed"].as_u64().unwrap_or(0), 0, "{after}");
}
