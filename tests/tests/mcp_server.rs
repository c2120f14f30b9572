//! `nook mcp` as its clients see it: over standard input and output, and over streamable HTTP.

mod chats;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use inglenook_tests::nook;
use serde_json::{Value, json};

const KEY: &str = "a-key-for-tests";

/// Keys of a request's `_meta` in the stateless revision.
fn stateless_meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

fn initialize(revision: &str) -> Value {
    json!({
        "protocolVersion": revision,
        "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    })
}

/// Removed at the end.
struct McpHome(PathBuf);

impl McpHome {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("inglenook-mcp-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(nook());
        command.args(args).args(["--backend", "scalar", "--threads", "1", "--data-dir"]).arg(&self.0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        command
    }

    /// `nook --json …`: what it prints.
    fn nook(&self, args: &[&str]) -> Value {
        let output = self.command(&[&["--json"], args].concat()).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

impl Drop for McpHome {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A client over standard input and output.
struct StdioClient {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    n_sent: u64,
}

impl StdioClient {
    /// Starts the program without a handshake.
    fn start(home: &McpHome) -> Self {
        let mut child = home.command(&["mcp"]).spawn().expect("nook runs");
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().expect("it is piped"));
        Self { child, stdin, stdout: BufReader::new(stdout), n_sent: 0 }
    }

    /// Starts the program and shakes hands.
    fn connect(home: &McpHome) -> Self {
        let mut client = Self::start(home);
        let (_, answer) = client.ask("initialize", initialize("2025-11-25"));
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
        assert_eq!(answer["result"]["serverInfo"]["name"], "inglenook");
        client.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    fn write(&mut self, message: &Value) {
        writeln!(self.stdin.as_mut().expect("it is open"), "{message}").expect("it reads");
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("a line");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("no message: {line:?}: {error}"))
    }

    fn send(&mut self, method: &str, params: Value) -> u64 {
        self.n_sent += 1;
        let id = self.n_sent;
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// The notifications before the answer, and the answer.
    fn ask(&mut self, method: &str, params: Value) -> (Vec<Value>, Value) {
        let id = self.send(method, params);
        let mut before = Vec::new();
        loop {
            let message = self.read();
            if message["id"] == id {
                return (before, message);
            }
            before.push(message);
        }
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments })).1["result"].take()
    }

    /// Closes the input. Returns whether the program ended well and printed nothing more.
    fn close(mut self) -> bool {
        drop(self.stdin.take());
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).expect("it ends");
        self.child.wait().expect("it ends").success() && rest.is_empty()
    }
}

#[test]
fn stdio_offers_tools_with_schemas_and_their_results() {
    let home = McpHome::new("tools");
    let ids = home.nook(&["tokenize", "--model", "starter", "--text", "How many tokens are these?"]);
    let n_ids = ids["ids"].as_array().unwrap().len();
    let mut client = StdioClient::connect(&home);
    let (_, listed) = client.ask("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap().clone();
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(
        names,
        ["generate_text", "chat", "count_tokens", "get_model_info", "list_models", "list_sessions"]
    );
    for tool in &tools {
        assert_eq!(
            (&tool["inputSchema"]["type"], &tool["outputSchema"]["type"]),
            (&json!("object"), &json!("object"))
        );
    }
    assert_eq!(tools[0]["inputSchema"]["properties"]["max_tokens"]["default"], 100);
    assert_eq!(tools[0]["inputSchema"]["properties"]["temperature"]["default"], 0.7);

    let counted = client.call("count_tokens", json!({ "text": "How many tokens are these?" }));
    assert_eq!(counted["structuredContent"], json!({ "count": n_ids }), "{counted}");
    assert_eq!(counted["content"][0]["text"], json!({ "count": n_ids }).to_string());
    let info = client.call("get_model_info", json!({}));
    let info = &info["structuredContent"];
    assert_eq!((&info["id"], &info["backend"]), (&json!("starter"), &json!("scalar")), "{info}");
    assert!(info["parameters"].as_u64() > Some(0) && info["max_context"].as_u64() > Some(0), "{info}");
    let models = client.call("list_models", json!({}));
    assert_eq!(models["structuredContent"]["models"][0]["id"], "starter", "{models}");
    assert_eq!(client.call("list_sessions", json!({}))["structuredContent"], json!({ "sessions": [] }));
    assert!(client.close());
}

#[test]
fn a_streamed_answer_arrives_in_progress_notifications() {
    let home = McpHome::new("stream");
    let mut client = StdioClient::connect(&home);
    let arguments =
        json!({ "prompt": "What is a token?", "max_tokens": 12, "temperature": 0, "stream": true });
    let params =
        json!({ "name": "generate_text", "arguments": arguments, "_meta": { "progressToken": "p1" } });
    let (before, answer) = client.ask("tools/call", params);
    let result = &answer["result"];
    let text = result["structuredContent"]["text"].as_str().unwrap();
    assert!(!text.is_empty() && result["content"][0]["text"] == text, "{answer}");
    assert!(before.iter().all(|it| it["method"] == "notifications/progress"), "{before:?}");
    assert!(before.iter().all(|it| it["params"]["progressToken"] == "p1"));
    let values: Vec<f64> = before.iter().filter_map(|it| it["params"]["progress"].as_f64()).collect();
    assert!(values.len() > 1 && values.is_sorted_by(|a, b| a < b), "{values:?}");
    assert!(before.iter().all(|it| it["params"]["total"] == 13.0), "{before:?}");
    let pieces: String = before.iter().filter_map(|it| it["params"]["message"].as_str()).collect();
    assert_eq!(pieces, text);
    // Without `stream`, progress carries no text; without a token there is none.
    let arguments = json!({ "prompt": "What is a token?", "max_tokens": 12, "temperature": 0 });
    let params = json!({ "name": "generate_text", "arguments": arguments, "_meta": { "progressToken": 7 } });
    let (before, answer) = client.ask("tools/call", params);
    assert_eq!(answer["result"]["structuredContent"]["text"], text);
    assert!(before.iter().all(|it| it["params"]["message"].is_null()), "{before:?}");
    let (before, _) = client.ask("tools/call", json!({ "name": "generate_text", "arguments": arguments }));
    assert!(before.is_empty(), "{before:?}");
    assert!(client.close());
}

#[test]
fn wrong_calls_say_what_is_wrong() {
    let home = McpHome::new("errors");
    let mut client = StdioClient::connect(&home);
    for (tool, arguments, expected) in [
        ("generate_text", json!({}), "missing field `prompt`"),
        ("generate_text", json!({ "prompt": "x", "temperature": 99 }), "temperature"),
        ("generate_text", json!({ "prompt": "x", "model": "nothing" }), "nothing"),
        ("count_tokens", json!({ "text": 3 }), "expected a string"),
        ("chat", json!({}), "`messages` or `message`"),
        ("chat", json!({ "messages": [] , "message": "x" }), "`messages` or `message`"),
        ("chat", json!({ "message": "x", "session": "nothing" }), "(session."),
        ("list_models", json!({ "x": 1 }), "unknown field `x`"),
    ] {
        let result = client.call(tool, arguments.clone());
        assert_eq!(result["isError"], true, "{tool} {arguments}: {result}");
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(expected), "{tool} {arguments}: {text}");
    }
    let (_, unknown) = client.ask("tools/call", json!({ "name": "nothing", "arguments": {} }));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    for uri in ["inglenook://conversations/nothing", "inglenook://conversations/", "file:///etc/passwd"] {
        let (_, missing) = client.ask("resources/read", json!({ "uri": uri }));
        assert_eq!(missing["error"]["code"], -32002, "{missing}");
        assert_eq!(missing["error"]["data"]["uri"], uri);
    }
    let (_, cursor) = client.ask("resources/list", json!({ "cursor": "nothing" }));
    assert_eq!(cursor["error"]["code"], -32602, "{cursor}");
    let (_, method) = client.ask("nothing/at/all", json!({}));
    assert_eq!(method["error"]["code"], -32601, "{method}");
    assert!(client.close());
}

#[test]
fn a_cancelled_request_stops_its_turn() {
    let home = McpHome::new("cancel");
    let path = home.0.join("endless.gguf");
    super::kill9::write_model(&path);
    let added = home.nook(&["models", "add", &path.display().to_string()]);
    let mut client = StdioClient::connect(&home);
    let arguments = json!({ "prompt": "1 2 3", "raw": true, "max_tokens": 8000, "model": added["id"] });
    let params = json!({ "name": "generate_text", "arguments": arguments, "_meta": { "progressToken": 1 } });
    let id = client.send("tools/call", params);
    while client.read()["params"]["progress"].as_f64() < Some(2.0) {}
    client.write(&json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id, "reason": "enough" },
    }));
    let (before, answer) = client.ask("tools/call", json!({ "name": "list_models", "arguments": {} }));
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    assert!(before.iter().all(|it| it["id"].is_null()), "the cancelled request has no answer: {before:?}");
    // With one thread the next answer does not wait: the turn has stopped.
    let next = client.call("generate_text", json!({ "prompt": "What is a token?", "max_tokens": 2 }));
    assert_eq!(next["isError"], false, "{next}");
    assert!(client.close());
}

#[test]
fn stdio_serves_the_stateless_revision() {
    let home = McpHome::new("stateless");
    let mut client = StdioClient::start(&home);
    let (_, discovered) = client.ask("server/discover", json!({ "_meta": stateless_meta() }));
    let versions = discovered["result"]["supportedVersions"].as_array().unwrap().clone();
    assert!(
        versions.contains(&json!("2026-07-28")) && versions.contains(&json!("2025-11-25")),
        "{discovered}"
    );
    let params = json!({ "name": "count_tokens", "arguments": { "text": "one" }, "_meta": stateless_meta() });
    let (_, counted) = client.ask("tools/call", params);
    assert_eq!(counted["result"]["resultType"], "complete", "{counted}");
    assert!(counted["result"]["structuredContent"]["count"].as_u64() > Some(0));
    // The revision has no such methods, whatever their parameters are; of others wrong parameters are named.
    for (method, expected) in [
        ("initialize", -32601),
        ("logging/setLevel", -32601),
        ("resources/subscribe", -32601),
        ("tools/call", -32602),
    ] {
        let (_, refused) = client.ask(method, json!({ "_meta": stateless_meta() }));
        assert_eq!(refused["error"]["code"], expected, "{method}: {refused}");
    }
    assert!(client.close());
}

/// `nook mcp` on a port. Killed at the end.
struct McpServer {
    child: Child,
    address: String,
}

impl McpServer {
    fn start(home: &McpHome, transport: &str) -> Self {
        let args = ["mcp", "--transport", transport, "--port", "0", "--api-key", KEY];
        let mut child = home.command(&args).spawn().expect("nook runs");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("it is piped")).read_line(&mut line).expect("a line");
        let ready: Value = serde_json::from_str(&line).expect("it says where it listens");
        let url = ready["listening"].as_str().expect("an address");
        let (_, rest) = url.split_once("://").expect("a scheme");
        let address = rest.strip_suffix("/mcp").expect("the path of the protocol").to_owned();
        Self { child, address }
    }

    /// Status, head and body of the answer to a POST.
    fn post(&self, headers: &[(&str, &str)], body: &Value) -> (u16, String, String) {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let body = body.to_string();
        let mut request = format!(
            "POST /mcp HTTP/1.1\r\nconnection: close\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\ncontent-length: {}\r\n",
            body.len()
        );
        if !headers.iter().any(|(name, _)| *name == "host") {
            request.push_str(&format!("host: {}\r\n", self.address));
        }
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        stream.write_all(format!("{request}\r\n{body}").as_bytes()).expect("it listens");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer");
        let (head, body) = text.split_once("\r\n\r\n").expect("a body");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        (status, head.to_lowercase(), body.to_owned())
    }
}

impl Drop for McpServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The messages in an answer: JSON, or events.
fn messages(body: &str) -> Vec<Value> {
    let lines = body.lines().map(|line| line.strip_prefix("data:").unwrap_or(line).trim());
    lines.filter_map(|line| serde_json::from_str(line).ok()).filter(Value::is_object).collect()
}

#[test]
fn http_checks_who_asks() {
    let home = McpHome::new("guard");
    let server = McpServer::start(&home, "http");
    let key = format!("Bearer {KEY}");
    let first =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize("2025-11-25") });
    let cases = [
        (vec![], 401),
        (vec![("authorization", "Bearer wrong-key")], 401),
        (vec![("authorization", key.as_str()), ("host", "evil.com")], 403),
        (vec![("authorization", key.as_str()), ("origin", "http://evil.com")], 403),
        (vec![("authorization", key.as_str())], 200),
    ];
    for (headers, expected) in cases {
        let (status, _, body) = server.post(&headers, &first);
        assert_eq!(status, expected, "{headers:?}: {body}");
    }
}

#[test]
fn http_serves_sessions_and_the_stateless_revision() {
    let home = McpHome::new("http");
    let server = McpServer::start(&home, "http");
    let key = format!("Bearer {KEY}");
    let authorization = ("authorization", key.as_str());
    let first =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize("2025-11-25") });
    let (_, head, body) = server.post(&[authorization], &first);
    let answer = messages(&body).pop().unwrap();
    assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{body}");
    let session = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap().to_owned();
    let revision = ("mcp-protocol-version", "2025-11-25");
    let in_session = [authorization, ("mcp-session-id", session.as_str()), revision];
    let (status, ..) =
        server.post(&in_session, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    assert_eq!(status, 202);
    let arguments =
        json!({ "prompt": "What is a token?", "max_tokens": 6, "temperature": 0, "stream": true });
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "generate_text", "arguments": arguments, "_meta": { "progressToken": "p" },
    } });
    let (_, _, body) = server.post(&in_session, &call);
    let (answers, progress): (Vec<Value>, Vec<Value>) =
        messages(&body).into_iter().partition(|message| message["id"] == 2);
    let text = answers[0]["result"]["structuredContent"]["text"].as_str().unwrap();
    let pieces: String = progress.iter().filter_map(|it| it["params"]["message"].as_str()).collect();
    assert!(!text.is_empty() && pieces == text, "{body}");

    let revision = ("mcp-protocol-version", "2026-07-28");
    let (method, name) = (("mcp-method", "tools/call"), ("mcp-name", "count_tokens"));
    let params = json!({ "name": "count_tokens", "arguments": { "text": "one" }, "_meta": stateless_meta() });
    let call = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params });
    let (status, head, body) = server.post(&[authorization, revision, method, name], &call);
    assert_eq!(status, 200, "{body}");
    assert!(!head.contains("mcp-session-id"), "{head}");
    let answer = messages(&body).pop().unwrap();
    assert!(answer["result"]["structuredContent"]["count"].as_u64() > Some(0), "{body}");
}

/// A frame of text as a client sends it.
fn masked(text: &str) -> Vec<u8> {
    let mask = [9, 8, 7, 6];
    let length = u16::try_from(text.len()).unwrap();
    let mut frame = vec![0x81, 0x80 | 126];
    frame.extend(length.to_be_bytes());
    frame.extend(mask);
    frame.extend(text.bytes().enumerate().map(|(at, byte)| byte ^ mask[at % 4]));
    frame
}

/// The first byte of the next frame, and its payload.
fn frame(stream: &mut impl Read) -> (u8, Vec<u8>) {
    let mut head = [0; 2];
    stream.read_exact(&mut head).expect("a frame");
    let n = match head[1] {
        126 => {
            let mut length = [0; 2];
            stream.read_exact(&mut length).expect("a length");
            usize::from(u16::from_be_bytes(length))
        }
        short => usize::from(short),
    };
    let mut payload = vec![0; n];
    stream.read_exact(&mut payload).expect("a payload");
    (head[0], payload)
}

impl McpServer {
    /// Sends the handshake of a WebSocket. Returns the connection and the answer's head.
    fn upgrade(&self, headers: &str) -> (BufReader<TcpStream>, String) {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let request = format!(
            "GET /mcp HTTP/1.1\r\nhost: {}\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\
             sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
             sec-websocket-protocol: mcp\r\n{headers}\r\n",
            self.address
        );
        stream.write_all(request.as_bytes()).expect("it listens");
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).expect("a line") > 0 {}
        (reader, head.to_lowercase())
    }
}

#[test]
fn websocket_carries_the_same_messages() {
    let home = McpHome::new("ws");
    let server = McpServer::start(&home, "ws");
    for (headers, expected) in [
        (String::new(), "401"),
        ("authorization: Bearer wrong-key\r\n".into(), "401"),
        (format!("authorization: Bearer {KEY}\r\norigin: http://evil.com\r\n"), "403"),
    ] {
        let (_, head) = server.upgrade(&headers);
        assert_eq!(head.split(' ').nth(1), Some(expected), "{headers}");
    }
    // `:a-key-for-tests`, as clients send it that take nothing but an address.
    let (mut stream, head) = server.upgrade("authorization: Basic OmEta2V5LWZvci10ZXN0cw==\r\n");
    assert!(head.starts_with("http/1.1 101"), "{head}");
    assert!(head.contains("sec-websocket-protocol: mcp"), "{head}");
    let mut ask = |message: Value| {
        stream.get_mut().write_all(&masked(&message.to_string())).expect("it reads");
        let (first, payload) = frame(&mut stream);
        assert_eq!(first, 0x81);
        serde_json::from_slice::<Value>(&payload).expect("a message")
    };
    let first =
        ask(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize("2025-11-25") }));
    assert_eq!(first["result"]["serverInfo"]["name"], "inglenook", "{first}");
    let params = json!({ "name": "count_tokens", "arguments": { "text": "one" } });
    let counted = ask(json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params }));
    assert!(counted["result"]["structuredContent"]["count"].as_u64() > Some(0), "{counted}");
    let broken = ask(json!([1]));
    assert_eq!(broken["error"]["code"], -32600, "{broken}");
    // An unmasked frame breaks the protocol of frames: 1002.
    stream.get_mut().write_all(&[0x81, 1, b'x']).expect("it reads");
    assert_eq!(frame(&mut stream), (0x88, 1002_u16.to_be_bytes().to_vec()));
    // The head of a frame that is longer than a message may be: 1009.
    let (mut stream, _) = server.upgrade(&format!("authorization: Bearer {KEY}\r\n"));
    let mut head = vec![0x81, 0x80 | 127];
    head.extend((17_u64 << 20).to_be_bytes());
    stream.get_mut().write_all(&[head, vec![1, 2, 3, 4]].concat()).expect("it reads");
    assert_eq!(frame(&mut stream), (0x88, 1009_u16.to_be_bytes().to_vec()));
}
