//! The real `nook`, as a person or a program calls it: what it prints, and how it ends.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use inglenook_tests::{nook, reference_dir, workspace_root};
use serde_json::{Value, json};

/// A temporary data folder, removed when dropped.
pub struct Home(pub PathBuf);

impl Home {
    pub fn new() -> Self {
        static N: AtomicUsize = AtomicUsize::new(0);
        let n = N.fetch_add(1, Ordering::Relaxed);
        let folder = workspace_root().join(format!("target/cli-{}-{n}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("target can be written");
        Self(folder)
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(nook());
        command.args(args).env("INGLENOOK_DATA_DIR", &self.0).stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("nook starts")
    }

    /// The one JSON value on stdout of a command that succeeds.
    pub fn json(&self, args: &[&str]) -> Value {
        let lines = self.lines(args);
        assert_eq!(lines.len(), 1, "{args:?}: {lines:?}");
        lines[0].clone()
    }

    pub fn lines(&self, args: &[&str]) -> Vec<Value> {
        let output = self.run(&[args, &["--json"]].concat());
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output.stderr));
        let lines = text(&output.stdout);
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    /// Exit code and error of a command that fails.
    pub fn error(&self, args: &[&str]) -> (i32, Value) {
        Self::error_of(args, &self.run(&[args, &["--json"]].concat()))
    }

    /// As `error`, with other folders for programs.
    pub fn error_with_path(&self, args: &[&str], path: &str) -> (i32, Value) {
        let mut command = self.command(&[args, &["--json"]].concat());
        Self::error_of(args, &command.env("PATH", path).output().expect("nook starts"))
    }

    fn error_of(args: &[&str], output: &Output) -> (i32, Value) {
        assert!(output.stdout.is_empty(), "{args:?}: {}", text(&output.stdout));
        let stderr = text(&output.stderr);
        let line = stderr.lines().rfind(|line| line.starts_with('{'));
        let line = line.unwrap_or_else(|| panic!("{args:?}: no error line: {stderr}"));
        let error: Value = serde_json::from_str(line).expect("JSON");
        for part in ["code", "message", "remedy"] {
            assert!(error["error"][part].as_str().is_some_and(|text| !text.is_empty()), "{args:?}: {line}");
        }
        (output.status.code().expect("no signal"), error["error"].clone())
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn file(name: &str) -> String {
    reference_dir().join(name).to_str().expect("a Unicode path").to_owned()
}

#[test]
fn wrong_usage_ends_with_2_and_says_how() {
    let home = Home::new();
    let cases: &[&[&str]] = &[
        &[],
        &["nonsense"],
        &["run"],
        &["run", "--model", "starter"],
        &["run", "--model", "starter", "--prompt", "a", "--ids", "1"],
        &["run", "--model", "starter", "--prompt", "a", "--nonsense"],
        &["tokenize", "--model", "starter"],
        &["logits", "--model", "starter", "--ids", "1,x"],
        &["logits", "--model", "starter", "--ids", "-1"],
        &["bench"],
        &["bench", "--shape", "nonsense"],
        &["bench", "--shape", "nonsense:q8_0"],
        &["devices", "--threads", "0"],
        &["devices", "--backend", "abacus"],
    ];
    for args in cases {
        assert_eq!(home.error(args).0, 2, "{args:?}");
    }
}

#[test]
fn bad_input_ends_with_3() {
    let home = Home::new();
    let no_text = home.0.join("lines.jsonl");
    std::fs::write(&no_text, "{\"words\": 1}\n").expect("the folder can be written");
    let not_utf8 = home.0.join("bytes.txt");
    std::fs::write(&not_utf8, b"a\xff").expect("the folder can be written");
    let (no_text, not_utf8) = (no_text.to_str().expect("Unicode"), not_utf8.to_str().expect("Unicode"));
    let cases: &[&[&str]] = &[
        &["logits", "--model", "/no/such.gguf", "--ids", "1"],
        &["logits", "--model", "no-such-id", "--ids", "1"],
        &["logits", "--model", "starter", "--ids", "4000000000"],
        &["logits", "--model", "starter", "--ids", ""],
        &["detokenize", "--model", "starter", "--ids", "4000000000"],
        &["tokenize", "--model", "starter", "--file", "/no/such.txt"],
        &["tokenize", "--model", "starter", "--file", not_utf8],
        &["tokenize", "--model", "starter", "--jsonl", no_text],
        &["run", "--model", "starter", "--messages", no_text],
        &["run", "--model", "starter", "--prompt", "a", "--temperature", "-1"],
        &["inspect", not_utf8],
        &["inspect", "starter", "--tensor", "no.such"],
        &["sessions", "show", "no-such-id"],
        &["settings", "get", "no-such-key"],
        &["settings", "set", "temperature", "hot"],
        &["chat", "--model", "no-such-id"],
    ];
    for args in cases {
        assert_eq!(home.error(args).0, 3, "{args:?}");
    }
}

#[test]
fn text_becomes_tokens_and_text_again() {
    let home = Home::new();
    let said = "How do I add a model? Grüße! <|im_end|>";
    let plain = home.json(&["tokenize", "--model", "starter", "--text", said]);
    let parsed = home.json(&["tokenize", "--model", "starter", "--text", said, "--parse-special"]);
    assert_ne!(plain, parsed);
    for ids in [&plain, &parsed] {
        let list =
            ids["ids"].as_array().expect("ids").iter().map(Value::to_string).collect::<Vec<_>>().join(",");
        assert_eq!(home.json(&["detokenize", "--model", "starter", "--ids", &list])["text"], said);
    }
    let lines = home.0.join("lines.jsonl");
    let two = format!("{}\n\n{}\n", json!({ "text": said }), json!({ "text": "" }));
    std::fs::write(&lines, two).expect("the folder can be written");
    let lines = lines.to_str().expect("Unicode");
    assert_eq!(
        home.lines(&["tokenize", "--model", "starter", "--jsonl", lines]),
        [plain, json!({ "ids": [] })]
    );
}

#[test]
fn templates_render_line_by_line() {
    let home = Home::new();
    let template = home.0.join("t.jinja");
    let source = "{% if not messages %}{{ raise_exception('empty') }}{% endif %}{{ messages[0].content }}{{ eos_token }} {{ strftime_now('%Y') }}";
    std::fs::write(&template, source).expect("the folder can be written");
    let lines = home.0.join("lines.jsonl");
    let cases = [
        json!({"messages": [{"role": "user", "content": "hi"}], "eos_token": "<e>", "now": "1999-01-15T12:00:00"}),
        json!({"messages": []}),
        json!({}),
    ];
    std::fs::write(&lines, cases.map(|case| format!("{case}\n")).concat())
        .expect("the folder can be written");
    let (template, lines) = (template.to_str().expect("Unicode"), lines.to_str().expect("Unicode"));
    let out = home.lines(&["render", "--template", template, "--jsonl", lines]);
    assert_eq!(out[0], json!({"text": "hi<e> 1999"}));
    assert_eq!(
        (&out[1]["error"]["code"], &out[1]["error"]["message"]),
        (&json!("template.raised"), &json!("empty"))
    );
    assert_eq!(out[2]["error"]["code"], "input.no_messages");
    assert_eq!(out.len(), 3);
}

#[test]
fn logits_come_for_one_position_or_all() {
    let home = Home::new();
    let model = file("logits/llama/llama.q8_0.gguf");
    let last = home.json(&["logits", "--model", &model, "--ids", "1,2,3"]);
    let all = home.json(&["logits", "--model", &model, "--ids", "1,2,3", "--all"]);
    assert_eq!(
        (last["n_vocab"].as_u64(), all["positions"].as_array().expect("a list").len()),
        (Some(512), 3)
    );
    assert_eq!(last["positions"][0], all["positions"][2]);
    let logits: Vec<f64> =
        last["positions"][0]["logits"].as_array().expect("512").iter().filter_map(Value::as_f64).collect();
    assert_eq!((logits.len(), &last["positions"][0]["pos"]), (512, &json!(2)));
    let top = home.json(&["logits", "--model", &model, "--ids", "1,2,3", "--top", "2"]);
    let best = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let first = &top["positions"][0]["top"][0];
    assert_eq!(first[1].as_f64(), Some(best));
    assert_eq!(logits[first[0].as_u64().expect("an id") as usize], best);
}

#[test]
fn inspect_shows_a_file_and_its_tensors() {
    let home = Home::new();
    let report = home.json(&["inspect", "starter"]);
    assert_eq!((&report["format"], &report["architecture"]), (&json!("gguf v3"), &json!("llama")));
    assert!(report["parameters"].as_u64() > Some(1_000_000) && report["runs"] == true, "{report}");
    assert!(report["memory"][0]["bytes"].as_u64() > report["dtypes"]["Q8_0"]["bytes"].as_u64());
    let name = "output_norm.weight";
    let norm = home.json(&["inspect", "starter", "--tensor", name, "--values"]);
    let n = norm["shape"][0].as_u64().expect("a vector");
    assert_eq!((&norm["dtype"], norm["values"].as_array().map(Vec::len)), (&json!("F32"), Some(n as usize)));
}

#[test]
fn run_answers_the_same_each_time_at_temperature_0() {
    let home = Home::new();
    let args = ["run", "--model", "starter", "--prompt", "How do I add a model?", "--temperature", "0"];
    let first = home.json(&args);
    assert!(first["text"].as_str().is_some_and(|text| text.contains("model")), "{first}");
    assert_eq!((&first["finish"], &first["tool_calls"]), (&json!("stop"), &json!([])));
    assert_eq!(
        first["usage"]["completion_tokens"].as_u64(),
        first["ids"].as_array().map(|ids| ids.len() as u64)
    );
    for timing in ["load_ms", "prefill_tok_s", "decode_tok_s", "ttft_ms"] {
        assert!(first["timings"][timing].as_f64() > Some(0.0), "{timing}: {first}");
    }
    let again = home.json(&args);
    assert_eq!((&first["text"], &first["ids"]), (&again["text"], &again["ids"]));
    let short = home.json(&[&args[..], &["--max-tokens", "3", "--ignore-eos"]].concat());
    assert_eq!((&short["finish"], short["ids"].as_array().map(Vec::len)), (&json!("length"), Some(3)));
    let stopped = home.json(&[&args[..], &["--stop", "model"]].concat());
    assert!(!stopped["text"].as_str().expect("text").contains("model"), "{stopped}");
    let shown = home.run(&args);
    assert_eq!(text(&shown.stdout).trim_end(), first["text"].as_str().expect("text").trim_end());
}

#[test]
fn guesses_change_no_answer() {
    let home = Home::new();
    let text = "Repeat: one two three four five six. One two three four five six. One two";
    let args = ["run", "--model", "starter", "--raw", "--prompt", text, "--max-tokens", "60", "--ignore-eos"];
    for sampling in [["--temperature", "0"], ["--seed", "3"]] {
        let run = |flags: &[&str]| home.json(&[&args[..], &sampling, flags].concat());
        let plain = run(&["--speculate", "off"]);
        assert_eq!(plain["timings"]["drafted_tokens"], 0);
        for flags in [&["--speculate", "lookup"][..], &["--draft-model", "starter", "--draft-max", "4"], &[]]
        {
            let found = run(flags);
            assert_eq!((&found["ids"], &found["text"]), (&plain["ids"], &plain["text"]), "{flags:?}");
        }
    }
    let (code, refused) = home.error(&[&args[..], &["--speculate", "draft"]].concat());
    assert_eq!((code, &refused["code"]), (3, &json!("setting.draft_model")));
    let other = file("logits/llama/llama.q8_0.gguf");
    let (code, refused) = home.error(&[&args[..], &["--draft-model", &other]].concat());
    assert_eq!((code, &refused["code"]), (3, &json!("model.draft_vocabulary")));
}

#[test]
fn a_chat_over_a_pipe_is_saved() {
    let home = Home::new();
    let mut child = home.command(&["chat", "--json"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let child = child.as_mut().expect("nook starts");
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all("Hello\n/help\nWhat can you do?\n/exit\nnever read\n".as_bytes()).expect("nook reads");
    drop(stdin);
    let mut out = String::new();
    child.stdout.take().expect("piped").read_to_string(&mut out).expect("UTF-8");
    assert!(child.wait().expect("nook ends").success());
    let answers: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(answers.len(), 2, "{out}");
    assert_eq!(answers[0]["session"], answers[1]["session"]);
    assert_eq!(answers[0]["stats"]["guide"], json!({ "kind": "small_talk" }), "{out}");
    assert_eq!(answers[1]["stats"]["guide"]["kind"], "article", "{out}");
    let id = answers[0]["session"].as_str().expect("an id");
    let list = home.json(&["sessions", "list"]);
    assert_eq!(list["sessions"].as_array().map(Vec::len), Some(1));
    let saved = home.json(&["sessions", "show", id]);
    let messages = saved["messages"].as_array().expect("messages");
    assert_eq!(messages.len(), 4);
    assert_eq!((&messages[0]["text"], &messages[1]["text"]), (&json!("Hello"), &answers[0]["text"]));
    home.json(&["sessions", "rm", id]);
    assert_eq!(home.json(&["sessions", "list"]), json!({ "sessions": [] }));
}

#[test]
fn settings_are_kept_and_checked() {
    let home = Home::new();
    home.json(&["settings", "set", "temperature", "0.25"]);
    assert_eq!(home.json(&["settings", "get", "temperature"])["value"], 0.25);
    let rows = home.json(&["settings", "list"]);
    assert!(rows["settings"].as_array().is_some_and(|rows| rows.len() > 5), "{rows}");
    assert_eq!(home.error(&["settings", "set", "temperature", "99"]).0, 3);
}

#[test]
fn the_library_has_the_starter_and_takes_files() {
    let home = Home::new();
    assert_eq!(home.json(&["models", "list"])["models"][0]["id"], "starter");
    let entry = home.json(&["models", "add", &file("logits/llama/llama.q8_0.gguf")]);
    let id = entry["id"].as_str().expect("an id");
    home.json(&["logits", "--model", id, "--ids", "1"]);
    home.json(&["models", "rm", id]);
    assert_eq!(home.error(&["logits", "--model", id, "--ids", "1"]).0, 3);
}

#[test]
fn bench_prints_a_row_for_each_test() {
    let home = Home::new();
    let args =
        ["bench", "--model", "starter", "--prompt", "8", "--gen", "4", "--depth", "0,16", "--repeat", "1"];
    let rows = home.lines(&args);
    let tests: Vec<_> = rows.iter().map(|row| (row["test"].as_str(), row["depth"].as_u64())).collect();
    let expected =
        [(Some("pp8"), Some(0)), (Some("tg4"), Some(0)), (Some("pp8"), Some(16)), (Some("tg4"), Some(16))];
    assert_eq!(tests, expected);
    for row in rows {
        assert!(row["tok_s"]["min"].as_f64() > Some(0.0) && row["gb_s"].as_f64() > Some(0.0), "{row}");
        assert!(row["bytes_per_token"].as_u64() > Some(0), "{row}");
    }
}

/// Of the processor as of a GPU, whose own clock is asked.
#[test]
fn a_profile_accounts_for_all_of_a_test() {
    for (backend, line) in [("cpu", 1), ("gpu", 2)] {
        profile(backend, line);
    }
}

fn profile(backend: &str, line: u64) {
    let home = Home::new();
    let trace = home.0.join("trace.json");
    let trace_at = trace.to_str().expect("a path of letters");
    let test = "--model starter --prompt 0 --gen 4 --depth 16 --repeat 2 --profile";
    let args: Vec<&str> =
        ["bench", "--backend", backend, "--trace", trace_at].into_iter().chain(test.split(' ')).collect();
    let rows = home.lines(&args);
    let steps: Vec<_> = rows.iter().filter(|row| row["profile"] == "tg4" && row["depth"] == 16).collect();
    // the commands that a GPU gets for each token have their own row
    let efforts =
        rows.iter().filter(|row| row["effort"] == "tg4" && row["kernels_per_run"].as_u64() > Some(0));
    assert_eq!(efforts.count(), usize::from(backend == "gpu"), "{rows:?}");
    assert!(rows[0]["test"] == "tg4", "{rows:?}");
    let share: f64 = steps.iter().filter_map(|row| row["share"].as_f64()).sum();
    assert!((share - 1.0).abs() < 1e-3, "{share}");
    for op in ["matmul", "attention"] {
        let row = steps.iter().find(|row| row["op"] == op).expect(op);
        assert!(row["calls"].as_f64() >= Some(4.0) && row["gb_s"].as_f64() > Some(0.0), "{row}");
        assert!(row["gops"].as_f64() > Some(0.0) && row["ms"].as_f64() > Some(0.0), "{row}");
    }
    let calls: f64 =
        steps.iter().filter(|row| row["op"] != "rest").filter_map(|row| row["calls"].as_f64()).sum();
    let trace: Value = serde_json::from_slice(&std::fs::read(&trace).expect("written")).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("events");
    let of = |tid: u64| -> Vec<&Value> {
        events.iter().filter(|event| event["ph"] == "X" && event["tid"] == tid).collect()
    };
    // one repetition: each step once, within one of four runs
    assert_eq!((of(line).len() as f64, of(0).len()), (calls, 4), "{backend}");
    let time = |event: &Value, key: &str| event[key].as_f64().expect("a number");
    for step in of(line) {
        let inside = |run: &&Value| {
            time(run, "ts") <= time(step, "ts") && time(step, "ts") < time(run, "ts") + time(run, "dur")
        };
        assert_eq!(of(0).into_iter().filter(inside).count(), 1, "{backend}: {step}");
        assert!(time(step, "dur") >= 0.0 && step["args"]["bytes"].is_u64(), "{step}");
    }
}

#[test]
fn f56_an_absent_gpu_is_reported_and_the_cpu_computes() {
    let home = Home::new();
    for flags in [&["--device", "no such gpu"][..], &["--backend", "gpu", "--device", "99"]] {
        let run = ["run", "--model", "starter", "--prompt", "Hi", "--max-tokens", "1"];
        let done = home.run(&[&run[..], flags].concat());
        let said = text(&done.stderr);
        assert!(done.status.success() && said.contains("Using the CPU instead"), "{flags:?}: {said}");
    }
}

#[test]
fn a_processor_with_wrong_kernels_gets_others_and_is_told_so() {
    let home = Home::new();
    let good = home.json(&["devices"]);
    assert_eq!(
        (&good["cpu"]["wrong_kernels"], good["cpu"]["threads"].as_u64() >= Some(1)),
        (&json!([]), true)
    );
    let auto = &good["auto"];
    let n_chosen = auto["cards"].as_array().map(Vec::len);
    assert!(auto["why"].as_str().is_some_and(|why| !why.is_empty()), "{auto}");
    assert_eq!(auto["backend"] == "gpu", n_chosen > Some(0), "{auto}");
    // as if the check had found something on this processor
    let path = home.0.join("processors.json");
    let mut record: Value = serde_json::from_slice(&std::fs::read(&path).expect("kept")).expect("JSON");
    record["processors"][0]["level"] = json!("portable");
    record["processors"][0]["wrong"] = json!(["product of Q4_K (avx2)"]);
    std::fs::write(&path, record.to_string()).expect("written");
    let bad = home.json(&["devices"]);
    assert_eq!((&bad["cpu"]["level"], &bad["auto"]["level"]), (&json!("portable"), &json!("portable")));
    let logits = ["logits", "--model", "starter", "--ids", "1"];
    // by way of the application, as the window and the server go
    let run = ["run", "--model", "starter", "--prompt", "Hi", "--max-tokens", "1"];
    for args in [&logits[..], &run[..]] {
        let said = text(&home.run(args).stderr);
        let is_said = said.contains("product of Q4_K (avx2)") && said.contains("portable is used");
        assert!(is_said, "{args:?}: {said}");
    }
    let again = home.json(&["devices", "--retune"]);
    assert_eq!((&again["cpu"]["wrong_kernels"], &again["cpu"]["level"]), (&json!([]), &good["cpu"]["level"]));
}

#[test]
fn kernels_are_measured_against_their_reference() {
    let home = Home::new();
    for row in home.lines(&["bench", "--kernels", "activation"]) {
        assert!(row["ratio"]["median"].as_f64() > Some(0.0) && row["bar"].as_f64() == Some(2.0), "{row}");
    }
    let pool = home.lines(&["bench", "--kernels", "pool", "--threads", "2"]);
    assert!(pool[0]["empty_region_ns"]["median"].as_f64() > Some(0.0), "{pool:?}");
    assert_eq!(home.error(&["bench", "--kernels", "nonsense"]).0, 2);
}

#[test]
fn sustained_speed_is_shown_by_the_minute() {
    let home = Home::new();
    let rows = home.lines(&["bench", "--model", "starter", "--sustained", "1"]);
    assert_eq!((rows.len(), rows[0]["minute"].as_u64(), rows[0]["kept"].as_f64()), (1, Some(1), Some(1.0)));
    assert!(rows[0]["tok_s"].as_f64() > Some(0.0), "{rows:?}");
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let home = Home::new();
    let mut child = home.command(&["inspect", "starter", "--json"]);
    let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("nook starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("nook ends");
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
}

/// Kills what it holds.
pub struct RunningNook(pub Child);

impl Drop for RunningNook {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn serve_says_where_it_listens_and_wants_the_key() {
    let home = Home::new();
    let mut command = home.command(&["serve", "--port", "0", "--api-key", "a-key-that-is-long-enough"]);
    let mut running =
        RunningNook(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("nook starts"));
    let mut line = String::new();
    let stdout = running.0.stdout.take().expect("piped");
    BufReader::new(stdout).read_line(&mut line).expect("UTF-8");
    let ready: Value = serde_json::from_str(&line).expect("JSON");
    let url = ready["listening"].as_str().expect("a URL");
    let address = url.strip_prefix("http://").expect("plain HTTP on this machine");
    let ask = |key: &str| {
        let mut stream = TcpStream::connect(address).expect("it listens");
        let request = format!(
            "GET /v1/models HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("UTF-8");
        answer
    };
    let answer = ask("a-key-that-is-long-enough");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("starter"), "{answer}");
    assert!(ask("another").starts_with("HTTP/1.1 401"));
}
