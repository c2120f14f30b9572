//! kill -9 while an answer is written: the conversation is there, with the question whole and the answer at
//! most half a second behind what was seen.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use app::App;
use app::AppConfig;
use contract::types::MessageState;
use engine::shape::Shape;
use inglenook_tests::nook;
use serde_json::{Value, json};

pub const KEY: &str = "a-key-for-tests";

/// What a killed program may lose.
const MAY_LOSE: Duration = Duration::from_millis(500);

/// Kills, at so long after the first text.
const DELAYS_MS: [u64; 5] = [0, 150, 400, 700, 1100];

pub struct NookServer {
    pub child: Child,
    address: String,
}

impl NookServer {
    pub fn start(home: &Path) -> Self {
        Self::start_with(home, &[])
    }

    /// With these environment variables.
    pub fn start_with(home: &Path, variables: &[(&str, &Path)]) -> Self {
        let mut command = Command::new(nook());
        command.envs(variables.iter().copied());
        Self::spawn(command, home)
    }

    /// By another program, such as `nsenter` with its arguments.
    pub fn start_by(words: &[String], home: &Path) -> Self {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).arg(nook());
        Self::spawn(command, home)
    }

    fn spawn(mut command: Command, home: &Path) -> Self {
        let mut child = command
            .args(["serve", "--port", "0", "--api-key", KEY, "--backend", "scalar", "--threads", "1"])
            .arg("--data-dir")
            .arg(home)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("nook runs");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("it is piped");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        let ready: Value = serde_json::from_str(&line).expect("nook serve says where it listens");
        let url = ready["listening"].as_str().expect("an address").to_owned();
        Self { child, address: url.trim_start_matches("http://").to_owned() }
    }

    /// Where it listens, such as `127.0.0.1:8642`.
    pub fn address(&self) -> &str {
        &self.address
    }

    fn open(&self, method: &str, path: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {KEY}\r\nconnection: close\r\n\
             content-length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        stream.write_all(request.as_bytes()).expect("it listens");
        stream
    }

    pub fn call(&self, name: &str, args: &Value) -> Value {
        let mut text = String::new();
        self.open("POST", &format!("/api/{name}"), &args.to_string())
            .read_to_string(&mut text)
            .expect("an answer");
        let body = text.split_once("\r\n\r\n").expect("a body").1;
        serde_json::from_str(body).expect("JSON")
    }

    /// None: the program is gone.
    pub fn try_call(&self, name: &str, args: &Value) -> Option<Value> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        let body = args.to_string();
        let request = format!(
            "POST /api/{name} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {KEY}\r\nconnection: close\r\n\
             content-length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        stream.write_all(request.as_bytes()).ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        serde_json::from_str(text.split_once("\r\n\r\n")?.1).ok()
    }

    /// An answer to its end: the conversation's id, and the text.
    pub fn ask(&self, conversation: Option<&str>, question: &str) -> (String, String) {
        let started = self.call("send", &json!({ "conversation": conversation, "text": question }));
        let turn = started["turn"].as_str().unwrap_or_else(|| panic!("no turn: {started}"));
        let said = self.follow(turn, Duration::from_secs(60)).text();
        (started["conversation"].as_str().expect("a conversation").to_owned(), said)
    }

    /// Follows a turn for so long, or until it or the program ends.
    pub fn follow(&self, turn: &str, limit: Duration) -> AnswerPieces {
        let mut seen = AnswerPieces::default();
        let Ok(mut stream) = TcpStream::connect(&self.address) else { return seen };
        let request = format!(
            "GET /api/turns/{turn}/events?after=0 HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {KEY}\r\n\
             connection: close\r\ncontent-length: 0\r\n\r\n",
            self.address
        );
        if stream.write_all(request.as_bytes()).is_err() {
            return seen;
        }
        let until = Instant::now() + limit;
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            seen.take(&line);
            if seen.is_over || Instant::now() >= until {
                break;
            }
        }
        seen
    }

    /// SIGKILL, by its number.
    pub fn kill_now(&self) {
        let killed = Command::new("kill").args(["-9", &self.child.id().to_string()]).status();
        assert!(killed.expect("there is kill").success());
    }

    pub fn kill(mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
    }
}

impl Drop for NookServer {
    /// A test that fails leaves no server behind.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Random weights in a vocabulary of thousands: its answers make no sense and hardly ever end.
pub fn write_model(path: &Path) {
    let shape = Shape {
        name: "endless",
        architecture: "llama",
        n_layers: 4,
        d_model: 512,
        n_heads: 8,
        n_kv_heads: 4,
        head_dim: 64,
        d_ff: 1536,
        n_vocab: 4096,
        context_length: 8192,
        rope_base: 10_000.0,
        rope_divisors: engine::shape::RopeDivisors::None,
        eps: 1e-5,
        tied_embeddings: true,
        stored: &[],
        more: &[],
    };
    let mut file = std::io::BufWriter::new(std::fs::File::create(path).expect("a temporary file"));
    let mix = engine::shape::mix("q8_0").expect("a dtype");
    engine::shape::write(&shape, mix, 1, &mut file).expect("a temporary file");
    file.flush().expect("a temporary file");
}

/// The text of an answer as it came, each piece with its moment.
#[derive(Debug, Default)]
pub struct AnswerPieces {
    pieces: Vec<(Instant, String)>,
    is_over: bool,
}

impl AnswerPieces {
    fn take(&mut self, line: &str) {
        let Some(event) =
            line.strip_prefix("data: ").and_then(|data| serde_json::from_str::<Value>(data).ok())
        else {
            return;
        };
        match event["kind"]["type"].as_str() {
            Some("text") => {
                let text = event["kind"]["text"].as_str().unwrap_or_default();
                self.pieces.push((Instant::now(), text.to_owned()));
            }
            Some("done" | "failed") => self.is_over = true,
            _ => {}
        }
    }

    /// How long before `killed_at` the saved text had been seen whole.
    pub fn behind(&self, saved: &str, killed_at: Instant) -> Duration {
        let mut n_seen = 0;
        let lost = self.pieces.iter().find(|(_, text)| {
            n_seen += text.len();
            n_seen > saved.len()
        });
        lost.map_or(Duration::ZERO, |(at, _)| killed_at.saturating_duration_since(*at))
    }

    /// All of the text.
    fn text(&self) -> String {
        self.pieces.iter().map(|(_, text)| text.as_str()).collect()
    }

    fn until(&self, moment: Instant) -> String {
        self.pieces.iter().filter(|(at, _)| *at <= moment).map(|(_, text)| text.as_str()).collect()
    }
}

/// Follows the answer until `delay` after its first text (or to its end) and kills the program then.
fn follow_and_kill(serving: NookServer, turn: &str, delay: Duration) -> (AnswerPieces, Instant) {
    let stream = serving.open("GET", &format!("/api/turns/{turn}/events?after=0"), "");
    let mut lines = BufReader::new(stream).lines();
    let mut seen = AnswerPieces::default();
    loop {
        let begun = seen.pieces.first().map(|(at, _)| *at);
        if seen.is_over || begun.is_some_and(|at| at.elapsed() >= delay) {
            break;
        }
        match lines.next() {
            Some(Ok(line)) => seen.take(&line),
            Some(Err(_)) | None => break,
        }
    }
    let killed_at = Instant::now();
    serving.kill();
    // What was on its way was seen too.
    lines.map_while(Result::ok).for_each(|line| seen.take(&line));
    (seen, killed_at)
}

fn open(home: &Path) -> App {
    App::open(AppConfig { data_dir: Some(home.to_owned()), ..AppConfig::default() }).expect("it opens again")
}

#[test]
fn f33_a_kill_while_answering_loses_half_a_second_at_most() {
    let home = std::env::temp_dir().join(format!("inglenook-kill9-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&home);
    std::fs::create_dir_all(&home).expect("a temporary folder");
    let model = home.join("endless.gguf");
    write_model(&model);
    let mut n_killed_midway = 0;
    let mut last: Option<(String, String)> = None;
    for (round, delay) in DELAYS_MS.into_iter().enumerate() {
        let serving = NookServer::start(&home);
        let added = serving.call("model_add", &json!({ "path": model.display().to_string() }));
        let hot = serving.call("settings_set", &json!({ "key": "temperature", "value": 2 }));
        assert_eq!(hot["value"], 2.0);
        if let Some((id, text)) = &last {
            let kept = serving.call("conversation_get", &json!({ "id": id }));
            assert_eq!(kept["messages"][1]["text"], text.as_str(), "a later kill does not touch it");
        }
        let question = format!("Question {round}: tell me all you know");
        let started = serving.call("send", &json!({ "text": question, "model": added["id"] }));
        let turn = started["turn"].as_str().expect("a turn").to_owned();
        let conversation = started["conversation"].as_str().expect("a conversation").to_owned();
        let (seen, killed_at) = follow_and_kill(serving, &turn, Duration::from_millis(delay));

        let app = open(&home);
        let messages = app.conversation_get(&conversation).expect("the conversation is there").messages;
        assert_eq!(messages[0].text, question);
        let saved = &messages[1].text;
        let all = seen.text();
        assert!(all.starts_with(saved.as_str()) || saved.starts_with(&all), "saved {saved:?}\nseen {all:?}");
        let must_have = seen.until(killed_at.checked_sub(MAY_LOSE).expect("the machine runs longer"));
        assert!(
            saved.starts_with(&must_have),
            "saved {saved:?}\nseen half a second before the kill {must_have:?}"
        );
        println!(
            "killed after {delay} ms: {} ms of the answer are missing",
            seen.behind(saved, killed_at).as_millis()
        );
        if !seen.is_over {
            n_killed_midway += 1;
            assert_eq!(messages[1].state, MessageState::Interrupted);
        }
        last = Some((conversation, saved.clone()));
    }
    assert!(n_killed_midway >= 3, "{n_killed_midway} of {} kills came midway", DELAYS_MS.len());
    std::fs::remove_dir_all::<PathBuf>(home).expect("it can be removed");
}
