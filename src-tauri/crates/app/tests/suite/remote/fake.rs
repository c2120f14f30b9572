//! A minimal server: a function of the request decides what it says.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use serde_json::{Value, json};

/// What is said, and then the connection ends.
#[derive(Clone)]
pub enum Say {
    Bytes(String),
    /// Says this, then nothing until the client leaves.
    Wait(Box<Say>),
    /// Events without end.
    Flood,
}

const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

impl Say {
    /// Headers, and no word.
    pub fn begin() -> Self {
        Self::Bytes(STREAM.into())
    }

    pub fn events(data: &[&str]) -> Self {
        let events: String = data.iter().map(|data| format!("data: {data}\n\n")).collect();
        Self::Bytes(format!("{STREAM}{events}"))
    }

    /// One piece of an answer, and no end.
    pub fn piece(delta: &Value) -> Self {
        Self::events(&[&chunk(delta, None).to_string()])
    }
}

fn chunk(delta: &Value, finish: Option<&str>) -> Value {
    json!({ "object": "chat.completion.chunk", "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] })
}

/// A whole answer, with what it cost.
pub fn answer(deltas: &[Value], finish: &str, usage: Option<(u32, u32)>) -> Say {
    let mut data: Vec<String> = deltas.iter().map(|delta| chunk(delta, None).to_string()).collect();
    data.push(chunk(&json!({}), Some(finish)).to_string());
    if let Some((prompt, generated)) = usage {
        let usage = json!({ "prompt_tokens": prompt, "completion_tokens": generated });
        data.push(json!({ "choices": [], "usage": usage }).to_string());
    }
    data.push("[DONE]".into());
    Say::events(&data.iter().map(String::as_str).collect::<Vec<_>>())
}

pub fn models(entries: &[Value]) -> Say {
    json_body(&json!({ "object": "list", "data": entries }).to_string())
}

pub fn json_body(body: &str) -> Say {
    with_status("200 OK", "", body)
}

/// A body of a content type.
pub fn with_type(code: u16, kind: &str, body: &str) -> Say {
    let n = body.len();
    Say::Bytes(format!(
        "HTTP/1.1 {code} X\r\ncontent-type: {kind}\r\ncontent-length: {n}\r\nconnection: close\r\n\r\n{body}"
    ))
}

/// `headers` end with `\r\n` each.
pub fn status(code: u16, headers: &str, body: &Value) -> Say {
    with_status(&format!("{code} X"), headers, &body.to_string())
}

fn with_status(status: &str, headers: &str, body: &str) -> Say {
    Say::Bytes(format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n{headers}connection: close\r\n\r\n{body}",
        body.len()
    ))
}

/// The connection is closed without a word.
pub fn gone() -> Say {
    Say::Bytes(String::new())
}

#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Of those for an answer, from 1.
    pub n: usize,
    line: String,
    headers: Vec<(String, String)>,
    pub body: Value,
}

impl Request {
    pub fn path(&self) -> &str {
        self.line.split(' ').nth(1).unwrap_or_default()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

#[derive(Default)]
struct ReceivedRequests {
    requests: Vec<Request>,
    /// Clients that left while the server waited.
    n_left: usize,
}

pub struct Fake {
    pub url: String,
    heard: Arc<(Mutex<ReceivedRequests>, Condvar)>,
    over: Arc<AtomicBool>,
}

impl Fake {
    pub fn new(say: impl Fn(&Request) -> Say + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let heard: Arc<(Mutex<ReceivedRequests>, Condvar)> = Arc::default();
        let over = Arc::new(AtomicBool::new(false));
        let (say, told, ends) = (Arc::new(say), Arc::clone(&heard), Arc::clone(&over));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if ends.load(Ordering::SeqCst) {
                    return;
                }
                let (say, told) = (Arc::clone(&say), Arc::clone(&told));
                std::thread::spawn(move || serve(stream, &*say, &told));
            }
        });
        Self { url, heard, over }
    }

    pub fn place(&self) -> &str {
        self.url.trim_start_matches("http://")
    }

    fn with<T>(&self, read: impl FnOnce(&ReceivedRequests) -> T) -> T {
        read(&self.heard.0.lock().unwrap())
    }

    pub fn last(&self) -> Request {
        self.with(|heard| heard.requests.last().cloned().unwrap_or_default())
    }

    pub fn n_requests(&self) -> usize {
        self.with(|heard| heard.requests.len())
    }

    /// Requests for an answer.
    pub fn n_asked(&self) -> usize {
        self.with(|heard| heard.requests.iter().filter(|it| it.path() == "/v1/chat/completions").count())
    }

    pub fn has_heard(&self, text: &str) -> bool {
        self.with(|heard| heard.requests.iter().any(|request| request.body.to_string().contains(text)))
    }

    pub fn wait_until_left(&self) {
        let (heard, changed) = &*self.heard;
        drop(changed.wait_while(heard.lock().unwrap(), |heard| heard.n_left == 0).unwrap());
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        // Its listener wakes, and closes.
        drop(TcpStream::connect(self.place()));
    }
}

fn serve(stream: TcpStream, say: &dyn Fn(&Request) -> Say, told: &(Mutex<ReceivedRequests>, Condvar)) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let Some(mut request) = read(&mut reader) else { return };
    {
        let mut heard = told.0.lock().unwrap();
        let is_answer = |it: &&Request| it.path() == "/v1/chat/completions";
        request.n = heard.requests.iter().filter(is_answer).count() + 1;
        heard.requests.push(request.clone());
    }
    speak(stream, reader, say(&request), told);
}

fn speak(
    mut stream: TcpStream,
    mut reader: BufReader<TcpStream>,
    say: Say,
    told: &(Mutex<ReceivedRequests>, Condvar),
) {
    match say {
        Say::Bytes(bytes) => {
            // A client may have left.
            let _ = stream.write_all(bytes.as_bytes());
            let _ = stream.shutdown(Shutdown::Write);
            let _ = reader.read_to_end(&mut Vec::new());
        }
        Say::Wait(first) => {
            let Say::Bytes(bytes) = *first else { return };
            let _ = stream.write_all(bytes.as_bytes());
            let _ = reader.read_to_end(&mut Vec::new());
            told.0.lock().unwrap().n_left += 1;
            told.1.notify_all();
        }
        Say::Flood => {
            let piece = format!("data: {}\n\n", chunk(&json!({ "content": "x".repeat(1 << 16) }), None));
            let _ = stream.write_all(STREAM.as_bytes());
            while stream.write_all(piece.as_bytes()).is_ok() {}
        }
    }
}

/// None: the client left.
fn read(reader: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut request = Request::default();
    reader.read_line(&mut request.line).ok().filter(|n| *n > 0)?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((key, value)) = line.trim_end().split_once(": ") else { break };
        request.headers.push((key.to_lowercase(), value.to_owned()));
    }
    let n: usize = request.header("content-length").and_then(|n| n.parse().ok()).unwrap_or(0);
    let mut body = vec![0; n];
    reader.read_exact(&mut body).ok()?;
    request.body = serde_json::from_slice(&body).unwrap_or_default();
    Some(request)
}
