//! A real server on a loopback port, and a client of a few lines.
#![allow(clippy::unwrap_used)] // a failure here fails the test

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use app::{App, AppConfig};
use serde_json::{Value, json};
use server::{Options, RunningServer, serve};

pub const KEY: &str = "a-key-for-tests";

/// Folders made so far: tests of different modules may choose the same name.
static FOLDERS: AtomicUsize = AtomicUsize::new(0);

pub struct Fixture {
    pub app: App,
    pub listening: Option<RunningServer>,
    pub port: u16,
    pub home: PathBuf,
}

impl Fixture {
    pub fn new(name: &str) -> Self {
        let n = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let home = std::env::temp_dir().join(format!("inglenook-server-{name}-{}-{n}", std::process::id()));
        let _ = std::fs::remove_dir_all(&home);
        let app = App::open(AppConfig { data_dir: Some(home.clone()), ..AppConfig::default() }).unwrap();
        app.settings_set("max_tokens", &json!(8)).unwrap();
        app.settings_set("temperature", &json!(0)).unwrap();
        app.settings_set("threads", &json!(1)).unwrap();
        app.settings_set("guide_answers", &json!(false)).unwrap();
        let options = Options { port: 0, api_key: Some(KEY.into()), ..Options::default() };
        let listening = serve(app.clone(), options).unwrap();
        let port = listening.url.rsplit_once(':').unwrap().1.parse().unwrap();
        Self { app, listening: Some(listening), port, home }
    }

    /// Sends the bytes of a request unchanged and leaves the connection open.
    pub fn open(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut request = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "host") {
            request.push_str(&format!("host: 127.0.0.1:{}\r\n", self.port));
        }
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    pub fn raw(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        Answer::read(self.open(method, path, headers, body))
    }

    pub fn ask(&self, method: &str, path: &str, body: &Value) -> Answer {
        let authorization = format!("Bearer {KEY}");
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.raw(method, path, &[("authorization", &authorization)], &body)
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.listening.take();
        let _ = std::fs::remove_dir_all(&self.home);
    }
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: String,
    pub body: String,
}

impl Answer {
    pub fn read(mut stream: TcpStream) -> Self {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let headers = head.to_lowercase();
        let body = if headers.contains("transfer-encoding: chunked") { unchunk(body) } else { body.into() };
        Self { status, headers, body }
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// The data of each server-sent event.
    pub fn events(&self) -> Vec<&str> {
        self.body.split_terminator("\n\n").map(|event| event.strip_prefix("data: ").unwrap()).collect()
    }
}

fn unchunk(body: &str) -> String {
    let mut rest = body;
    let mut whole = String::new();
    while let Some((length, after)) = rest.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap();
        if length == 0 {
            break;
        }
        whole.push_str(&after[..length]);
        rest = &after[length + 2..];
    }
    whole
}
