//! Questions to a server of this data folder, on this computer's own address.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use contract::{Error, Result};
use serde_json::Value;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// A server whose worker is busy answers these questions all the same.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// Largest answer; that of a server has some kilobytes.
const MAX_ANSWER_BYTES: u64 = 16 << 20;

/// Sends a GET request and returns the JSON of its answer.
///
/// Errors: no server answers there; it refuses the key; its answer is no JSON.
pub fn get_json(port: u16, path: &str, key: Option<&str>) -> Result<Value> {
    let answer = ask(port, path, key).map_err(|error| unanswered(port, &error.to_string()))?;
    let (head, body) = split_answer(&answer).ok_or_else(|| unanswered(port, "its answer is not HTTP"))?;
    let status = head.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
    match status {
        b"200" => serde_json::from_slice(body)
            .map_err(|error| unanswered(port, &format!("its answer is not JSON: {error}"))),
        b"401" | b"403" => Err(Error::input(
            "server.key_refused",
            format!("The server on port {port} refuses the key."),
            "Pass the key that it was started with, with --api-key-file or in INGLENOOK_API_KEY.",
        )),
        status => Err(unanswered(port, &format!("status {}", String::from_utf8_lossy(status)))),
    }
}

fn ask(port: u16, path: &str, key: Option<&str>) -> std::io::Result<Vec<u8>> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, CONNECT_TIMEOUT)?;
    stream.set_read_timeout(Some(READ_TIMEOUT))?;
    let key = key.map(|key| format!("Authorization: Bearer {key}\r\n")).unwrap_or_default();
    // Version 1.0: the answer comes whole and ends with the connection.
    write!(stream, "GET {path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\n{key}\r\n")?;
    let mut answer = Vec::new();
    stream.take(MAX_ANSWER_BYTES).read_to_end(&mut answer)?;
    Ok(answer)
}

/// Head and body of an answer.
fn split_answer(answer: &[u8]) -> Option<(&[u8], &[u8])> {
    const BLANK_LINE: &[u8] = b"\r\n\r\n";
    let at = answer.windows(BLANK_LINE.len()).position(|bytes| bytes == BLANK_LINE)?;
    answer.starts_with(b"HTTP/1.").then(|| (&answer[..at], &answer[at + BLANK_LINE.len()..]))
}

fn unanswered(port: u16, cause: &str) -> Error {
    Error::input(
        "server.no_answer",
        format!("The server on port {port} does not answer: {cause}."),
        "Start `nook serve` again.",
    )
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// Answers one request, and returns what `get_json` makes of it with the request's head.
    fn exchange(answer: &'static str) -> (Result<Value>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                head.push(byte[0]);
            }
            stream.write_all(answer.as_bytes()).unwrap();
            String::from_utf8(head).unwrap()
        });
        (get_json(port, "/x", Some("k")), server.join().unwrap())
    }

    #[test]
    fn answers_are_read_whole() {
        let (answer, head) = exchange("HTTP/1.0 200 OK\r\nContent-Length: 7\r\n\r\n{\"a\":1}");
        assert_eq!(answer.unwrap()["a"], 1);
        assert!(
            head.starts_with("GET /x HTTP/1.0\r\n") && head.contains("Authorization: Bearer k\r\n"),
            "{head}"
        );
        for (answer, code) in [
            ("HTTP/1.0 401 Unauthorized\r\n\r\n{}", "server.key_refused"),
            ("HTTP/1.0 500 Wrong\r\n\r\n{}", "server.no_answer"),
            ("HTTP/1.0 200 OK\r\n\r\n{", "server.no_answer"),
            ("SSH-2.0-OpenSSH", "server.no_answer"),
        ] {
            assert_eq!(exchange(answer).0.unwrap_err().code(), code, "{answer}");
        }
    }
}
