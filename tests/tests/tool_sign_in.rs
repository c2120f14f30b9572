//! `nook tools sign-in` and `sign-out` with the stand-in of `tests/mcp/sign_in.py`: a protected tool server and its
//! authorization server. Each fault must end with its own error, and without a token where none belongs.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use inglenook_tests::workspace_root;
use serde_json::{Value, json};

use crate::cli::Home;

fn script(name: &str) -> String {
    workspace_root().join("tests/mcp").join(name).display().to_string()
}

/// The stand-in, on a port.
struct ProtectedServer {
    child: Child,
    port: String,
}

impl ProtectedServer {
    fn new(flags: &[&str]) -> Self {
        let mut command = Command::new("python3");
        command.arg(script("sign_in.py")).args(flags).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self { child, port: port.trim().to_owned() }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    /// The requests that came.
    fn log(&self) -> Vec<Value> {
        let mut stream = TcpStream::connect(format!("127.0.0.1:{}", self.port)).unwrap();
        stream.write_all(b"GET /log HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        let body = response.split_once("\r\n\r\n").unwrap().1;
        serde_json::from_str(body).unwrap()
    }

    fn requests_to(&self, path: &str) -> Vec<Value> {
        self.log().into_iter().filter(|entry| entry["path"] == path).collect()
    }
}

impl Drop for ProtectedServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs `nook tools` with a browser that follows every address. Ok: the JSON value; else the error.
fn tools(home: &Home, browser: &str, args: &[&str], input: &str) -> Result<Value, Value> {
    let mut command = home.command(&[&["tools"], args, &["--json"]].concat());
    command.env("BROWSER", browser).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let (stdout, stderr) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    if output.status.success() {
        return Ok(serde_json::from_str(&stdout).unwrap());
    }
    let line =
        stderr.lines().rfind(|line| line.starts_with('{')).unwrap_or_else(|| panic!("{args:?}: {stderr}"));
    Err(serde_json::from_str::<Value>(line).unwrap()["error"].take())
}

fn run(home: &Home, args: &[&str]) -> Result<Value, Value> {
    tools(home, &script("browser.py"), args, "")
}

fn added(home: &Home, server: &ProtectedServer) -> Value {
    run(home, &["add", "lab", "--url", &server.url()]).unwrap()
}

/// No token stands in a file of the data folder: the database and the logs, above all.
fn assert_nothing_leaked(home: &Home, server: &ProtectedServer) {
    let sent =
        server.log().into_iter().filter_map(|entry| entry["authorization"].as_str().map(str::to_owned));
    let bearers = sent.filter_map(|header| header.strip_prefix("Bearer ").map(str::to_owned));
    let codes = server
        .requests_to("/token")
        .into_iter()
        .filter_map(|it| it["body"]["code"].as_str().map(str::to_owned));
    let secrets: Vec<String> = bearers.chain(codes).collect();
    assert!(!secrets.is_empty());
    let mut folders = vec![home.0.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(bytes) = std::fs::read(&path) {
                let holds = |secret: &String| bytes.windows(secret.len()).any(|it| it == secret.as_bytes());
                assert!(!secrets.iter().any(holds), "a token in {}", path.display());
            }
        }
    }
}

#[test]
fn metadata_is_found_at_each_place_of_the_specification() {
    // Flags, and the code of the server's state before the sign-in.
    let cases: &[(&[&str], &str)] = &[
        (&["--place", "header"], "tools.sign_in"),
        (&["--place", "path"], "tools.sign_in"),
        (&["--place", "root"], "tools.sign_in"),
        // A server of the revision 2025-03-26 looks as one with a key.
        (&["--place", "none"], "tools.key"),
        (&["--issuer-path", "/tenant"], "tools.sign_in"),
        (&["--issuer-path", "/tenant", "--issuer-place", "openid"], "tools.sign_in"),
        (&["--issuer-path", "/tenant", "--issuer-place", "openid-appended"], "tools.sign_in"),
        (&["--issuer-place", "openid"], "tools.sign_in"),
    ];
    for (flags, before) in cases {
        let (home, server) = (Home::new(), ProtectedServer::new(flags));
        let info = added(&home, &server);
        assert_eq!(info["state"]["error"]["code"], *before, "{flags:?}: {info}");
        assert_eq!(info["sign_in"], if *before == "tools.sign_in" { "needed" } else { "none" });
        let info = run(&home, &["sign-in", "lab"]).unwrap_or_else(|error| panic!("{flags:?}: {error}"));
        assert_eq!((&info["state"]["state"], &info["sign_in"]), (&json!("ready"), &json!("signed_in")));
        assert_eq!(info["tools"].as_array().map(Vec::len), Some(2));
    }
}

#[test]
fn a_sign_in_lasts_until_the_user_signs_out() {
    let (home, server) = (Home::new(), ProtectedServer::new(&[]));
    added(&home, &server);
    run(&home, &["sign-in", "lab"]).unwrap();
    assert_eq!(
        run(&home, &["test", "lab"]).unwrap()["sign_in"],
        "signed_in",
        "another process is signed in too"
    );
    assert_nothing_leaked(&home, &server);
    let resource = json!(server.url());
    let asked = &server.requests_to("/authorize")[0]["query"];
    assert_eq!((&asked["resource"], &asked["code_challenge_method"]), (&resource, &json!("S256")));
    assert_eq!(asked["scope"], "look", "the scopes of the metadata");
    assert_eq!(server.requests_to("/token")[0]["body"]["resource"], resource);
    let info = run(&home, &["sign-out", "lab"]).unwrap();
    assert_eq!(info["sign_in"], "none");
    assert_eq!(server.requests_to("/revoke")[0]["body"]["token_type_hint"], "refresh_token");
    assert_eq!(run(&home, &["test", "lab"]).unwrap_err()["code"], "tools.sign_in");
    run(&home, &["sign-in", "lab"]).unwrap();
    run(&home, &["rm", "lab"]).unwrap();
    assert_eq!(added(&home, &server)["sign_in"], "needed", "a removed server leaves no token behind");
}

#[test]
fn faults_of_a_sign_in_have_their_own_errors() {
    // Fault, code, part of the message.
    let cases = [
        ("wrong_state", "tools.sign_in_state", "does not belong to this sign-in"),
        ("wrong_iss", "tools.sign_in_issuer", "https://other.example"),
        ("no_iss", "tools.sign_in_issuer", "it has no name"),
        ("wrong_issuer", "tools.sign_in_issuer", "https://other.example"),
        ("no_s256", "tools.sign_in_pkce", "PKCE with S256"),
        ("registration_refused", "tools.sign_in_client_id", "by invitation only"),
        ("no_registration", "tools.sign_in_client_id", "does not register applications"),
        ("slow", "tools.sign_in_unreachable", "did not respond within 15 seconds"),
        ("moved", "tools.sign_in_moved", "localdomain.invalid"),
        ("token_moved", "tools.sign_in_moved", "http://localhost:9"),
        ("denied", "tools.sign_in_denied", "You did not allow access to lab"),
        ("server_error", "tools.sign_in_refused", "the kettle is empty"),
        ("wrong_resource", "tools.sign_in_resource", "https://other.example/mcp"),
        ("no_metadata", "tools.sign_in_metadata", "has no valid metadata"),
        ("public_endpoint", "tools.sign_in_insecure", "http://tokens.example/token"),
        ("bad_token", "tools.sign_in_malformed", "unexpected response Content-Type"),
    ];
    let check = |(fault, code, part): (&str, &str, &str)| {
        let (home, server) = (Home::new(), ProtectedServer::new(&["--fault", fault]));
        added(&home, &server);
        let error = run(&home, &["sign-in", "lab"]).unwrap_err();
        assert_eq!(error["code"], code, "{fault}: {error}");
        assert!(error["message"].as_str().unwrap().contains(part), "{fault}: {error}");
        let bearers = server.log().into_iter().filter(|it| !it["authorization"].is_null()).count();
        assert_eq!(bearers, 0, "{fault}: no token was sent");
        assert_eq!(run(&home, &["list"]).unwrap()[0]["sign_in"], "none", "{fault}: nothing was kept");
    };
    // One of them waits for a time limit.
    std::thread::scope(|scope| {
        cases.map(|case| scope.spawn(move || check(case))).map(|it| it.join().unwrap())
    });
}

#[test]
fn tokens_are_refreshed_before_they_expire_and_once_when_they_are_rejected() {
    for fault in ["short_lived", "rejected"] {
        let (home, server) = (Home::new(), ProtectedServer::new(&["--fault", fault]));
        added(&home, &server);
        let info = run(&home, &["sign-in", "lab"]).unwrap();
        assert_eq!(info["state"]["state"], "ready", "{fault}: {info}");
        run(&home, &["test", "lab"]).unwrap();
        let tokens = server.requests_to("/token");
        let refreshes: Vec<_> =
            tokens.iter().filter(|it| it["body"]["grant_type"] == "refresh_token").collect();
        assert!(!refreshes.is_empty(), "{fault}: {tokens:?}");
        assert!(fault != "rejected" || refreshes.len() == 1, "{fault}: {tokens:?}");
        assert_eq!(refreshes[0]["body"]["resource"], server.url());
        assert_nothing_leaked(&home, &server);
    }
    let (home, server) = (Home::new(), ProtectedServer::new(&["--fault", "refresh_refused"]));
    added(&home, &server);
    let info = run(&home, &["sign-in", "lab"]).unwrap();
    assert_eq!(info["state"]["error"]["code"], "tools.sign_in_expired", "{info}");
    assert_eq!(info["sign_in"], "needed");
}

#[test]
fn a_request_that_needs_more_permissions_has_the_user_sign_in_again() {
    let (home, server) = (Home::new(), ProtectedServer::new(&["--fault", "insufficient_scope"]));
    added(&home, &server);
    run(&home, &["sign-in", "lab"]).unwrap();
    let error = run(&home, &["resources", "lab"]).unwrap_err();
    assert_eq!(error["code"], "tools.sign_in_scope", "{error}");
    assert!(error["message"].as_str().unwrap().ends_with("for this request: write."), "{error}");
    run(&home, &["sign-in", "lab"]).unwrap();
    assert_eq!(server.requests_to("/authorize")[1]["query"]["scope"], "look write");
    assert_eq!(run(&home, &["resources", "lab"]).unwrap()["resources"][0]["name"], "one");
}

#[test]
fn a_client_that_the_user_has_registered_is_used() {
    let (home, server) = (Home::new(), ProtectedServer::new(&["--client-secret", "s3cret+/="]));
    added(&home, &server);
    assert_eq!(run(&home, &["sign-in", "lab"]).unwrap_err()["code"], "tools.sign_in_client_id");
    let args = ["sign-in", "lab", "--client-id", "given", "--client-secret-stdin"];
    let browser = script("browser.py");
    assert_eq!(tools(&home, &browser, &args, "wrong\n").unwrap_err()["code"], "tools.sign_in_refused");
    assert_eq!(tools(&home, &browser, &args, "s3cret+/=\n").unwrap()["sign_in"], "signed_in");
    run(&home, &["sign-in", "lab"]).expect("the client is kept for the next sign-in");
    assert!(server.requests_to("/register").is_empty());
}

#[test]
fn offline_mode_allows_no_sign_in() {
    let (home, server) = (Home::new(), ProtectedServer::new(&[]));
    added(&home, &server);
    let n = server.log().len();
    home.lines(&["settings", "set", "offline", "true"]);
    assert_eq!(run(&home, &["sign-in", "lab"]).unwrap_err()["code"], "network.offline");
    assert_eq!(server.log().len(), n);
}
