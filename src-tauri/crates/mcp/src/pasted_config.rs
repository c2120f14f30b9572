//! Configurations of tool servers as people paste them: JSON with comments and trailing commas, in
//! a fence or without its outer braces, or TOML; in the forms of other programs. Each server stands
//! on its own: one that is wrong doesn't keep the others out.

use std::collections::BTreeMap;

use contract::types::ToolServerSpec;
use contract::{Error, Result};
use serde_json::{Map, Value};

use crate::server_spec::check;

/// Longest configuration, in bytes; any is far shorter.
const MAX_BYTES: usize = 1 << 20;
/// Deepest nesting: the parser recurses.
const MAX_DEPTH: usize = 64;

/// Where programs keep their servers. Each is a map, or a list of servers with names.
const ROOTS: &[&str] = &[
    "/mcpServers",
    "/servers",
    "/mcp_servers",
    "/context_servers",
    "/mcp/servers",
    "/mcp/mcpServers",
    "/mcp",
    "/mcp.servers",
    "/experimental/modelContextProtocolServers",
];

/// Names of the address of a server.
const URL_KEYS: &[&str] = &["url", "serverUrl", "httpUrl", "server_url", "uri"];

/// A server of a configuration.
#[derive(Debug)]
pub struct PastedServer {
    pub name: String,
    /// False: it is switched off there, or waits for a value that only its user knows.
    pub is_enabled: bool,
    pub spec: Result<ToolServerSpec>,
}

/// Reads the servers of a configuration.
///
/// Errors: `tools.pasted` where it can't be read, or holds no server with a name.
pub fn pasted(text: &str) -> Result<Vec<PastedServer>> {
    let value = parse(text)?;
    let inner =
        ROOTS.iter().find_map(|root| value.pointer(root)).filter(|it| !it.is_null() && !is_server(it));
    let servers = match inner.unwrap_or(&value) {
        Value::Object(servers) => servers.iter().map(|(name, server)| (name.clone(), server)).collect(),
        Value::Array(servers) => {
            servers.iter().enumerate().map(|(at, it)| (listed_name(it, at), it)).collect()
        }
        _ => return Err(wrong("it is not an object")),
    };
    let servers: Vec<(String, &Value)> = servers;
    if inner.is_none() && is_server(&value) {
        return Err(wrong("the server has no name"));
    }
    if servers.is_empty() {
        return Err(wrong("it contains no servers"));
    }
    Ok(servers.into_iter().map(|(name, server)| read(name, server)).collect())
}

fn wrong(cause: &str) -> Error {
    let remedy =
        "Paste it as shown in the server's documentation: {\"mcpServers\": {\"name\": {\"command\": …}}}.";
    Error::input("tools.pasted", format!("This is not a valid server configuration: {cause}."), remedy)
}

/// Parses a pasted text in each form that people copy. The error is that of strict JSON.
fn parse(text: &str) -> Result<Value> {
    let text = text.trim_start_matches('\u{feff}').trim();
    if text.len() > MAX_BYTES {
        return Err(wrong(&format!("it is larger than {MAX_BYTES} bytes")));
    }
    let spaced = text.replace('\u{a0}', " ");
    let fenced = fenced(&spaced).unwrap_or(&spaced).trim();
    let straight = fenced.replace(['“', '”', '„'], "\"");
    let braced = between_braces(fenced);
    let candidates = [
        fenced.to_owned(),
        format!("{{{fenced}}}"),
        straight.clone(),
        format!("{{{straight}}}"),
        braced.to_owned(),
    ];
    let mut first = None;
    for candidate in candidates {
        match jsonc(&candidate) {
            // a word or a number is no configuration in any form
            Ok(value @ (Value::Object(_) | Value::Array(_))) => return Ok(value),
            Ok(_) => {}
            Err(cause) => _ = first.get_or_insert(cause),
        }
    }
    if let Ok(table) = toml::from_str::<toml::Table>(fenced)
        && !table.is_empty()
    {
        return serde_json::to_value(table).map_err(Error::bug);
    }
    Err(wrong(first.as_deref().unwrap_or("it is not an object")))
}

fn jsonc(text: &str) -> std::result::Result<Value, String> {
    let mut depth = 0_usize;
    for byte in text.bytes() {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Err(format!("it is nested more than {MAX_DEPTH} levels deep"));
        }
    }
    let parsed = jsonc_parser::parse_to_serde_value::<Value>(text, &jsonc_parser::ParseOptions::default());
    parsed.map_err(|error| error.to_string())
}

/// The first fenced block of a page, without its language.
fn fenced(text: &str) -> Option<&str> {
    let (_, after) = text.split_once("```")?;
    let (_, block) = after.split_once('\n')?;
    Some(block.split_once("```").map_or(block, |(block, _)| block))
}

/// From the first brace to the last one: words around are left out.
fn between_braces(text: &str) -> &str {
    match (text.find('{'), text.rfind('}')) {
        (Some(from), Some(to)) if from < to => &text[from..=to],
        _ => text,
    }
}

fn is_server(value: &Value) -> bool {
    let is_there = |key: &&str| value.get(*key).is_some_and(|it| it.is_string() || it.is_array());
    is_there(&"command") || URL_KEYS.iter().any(is_there)
}

fn listed_name(server: &Value, at: usize) -> String {
    let name = ["name", "id"].iter().find_map(|key| server[*key].as_str());
    name.map_or_else(|| format!("server {}", at + 1), str::to_owned)
}

fn read(name: String, server: &Value) -> PastedServer {
    let mut fields = server.as_object().cloned().unwrap_or_default();
    // Continue: what it is reached by stands inside.
    if let Some(Value::Object(transport)) = fields.get("transport").cloned() {
        fields.remove("transport");
        fields.extend(transport);
    }
    let is_true = |key: &str, or: bool| match fields.get(key) {
        Some(Value::Bool(is)) => *is,
        Some(Value::String(word)) => word.trim().eq_ignore_ascii_case("true"),
        Some(_) | None => or,
    };
    let is_on = !is_true("disabled", false) && is_true("enabled", true);
    let spec = match server {
        Value::Object(_) => spec(&fields).map_err(|cause| wrong(&format!("{name}: {cause}"))),
        _ => Err(wrong(&format!("{name} is not an object"))),
    };
    let is_old =
        ["type", "transport", "transportType"].iter().any(|key| fields.get(*key) == Some(&"sse".into()));
    let spec = spec.and_then(|mut spec| check(&mut spec).map(|()| spec));
    let spec = match spec {
        Ok(_) if is_old => Err(wrong(&format!("{name} uses the older SSE transport"))),
        spec => spec,
    };
    let waits = spec
        .as_ref()
        .is_ok_and(|spec| spec.env.values().chain(spec.headers.values()).any(|value| is_input(value)));
    PastedServer { name, is_enabled: is_on && !waits, spec }
}

/// A value that VS Code asks its user for.
fn is_input(value: &str) -> bool {
    value.contains("${input:")
}

type Fields = Map<String, Value>;
type FieldResult<T> = std::result::Result<T, String>;

fn spec(fields: &Fields) -> FieldResult<ToolServerSpec> {
    let get = |keys: &[&str]| keys.iter().find_map(|key| fields.get(*key)).filter(|it| !it.is_null());
    let text = |keys: &[&str]| match get(keys) {
        None => Ok(None),
        Some(value) => word(value).map(Some).ok_or_else(|| format!("{} is not a text", keys[0])),
    };
    let mut args = list("args", get(&["args", "arguments"]))?;
    let mut env = get(&["env", "environment", "envs"]).cloned();
    let command = match get(&["command", "cmd"]) {
        // Zed: path, args and env of a command stand together.
        Some(Value::Object(command)) => {
            args.extend(list("args", command.get("args"))?);
            env = env.or_else(|| command.get("env").cloned());
            let path = command.get("path").or_else(|| command.get("command"));
            Some(path.and_then(word).ok_or("command has no path")?)
        }
        Some(words @ Value::Array(_)) => {
            let mut words = list("command", Some(words))?;
            let command = if words.is_empty() { None } else { Some(words.remove(0)) };
            args.splice(0..0, words);
            command
        }
        _ => text(&["command", "cmd"])?,
    };
    let command = command.map(|line| split_line(line, &mut args));
    Ok(ToolServerSpec {
        command,
        args,
        env: texts("env", env.as_ref())?,
        cwd: text(&["cwd", "workingDirectory", "working_directory"])?,
        url: text(URL_KEYS)?,
        headers: texts("headers", get(&["headers", "http_headers", "requestHeaders"]))?,
    })
}

/// A command that holds its arguments too: a program's name has no spaces, a path may have.
fn split_line(line: String, args: &mut Vec<String>) -> String {
    let mut words = line.split_whitespace().map(str::to_owned);
    let first = words.next().unwrap_or_default();
    if !args.is_empty() || first.contains(['/', '\\', '"', '\'']) || line.contains(['"', '\'']) {
        return line;
    }
    args.extend(words);
    first
}

/// Numbers and switches are written as texts too.
fn word(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(is) => Some(is.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn list(key: &str, value: Option<&Value>) -> FieldResult<Vec<String>> {
    let values = match value {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(values)) => values.as_slice(),
        Some(one) => std::slice::from_ref(one),
    };
    let values = values.iter().filter(|value| !value.is_null());
    values
        .map(|value| word(value).ok_or_else(|| format!("{key} holds something that is not a text")))
        .collect()
}

fn texts(key: &str, value: Option<&Value>) -> FieldResult<BTreeMap<String, String>> {
    let values = match value {
        None | Some(Value::Null) => return Ok(BTreeMap::new()),
        Some(Value::Object(values)) => values,
        Some(_) => return Err(format!("{key} is not an object")),
    };
    let values = values.iter().filter(|(_, value)| !value.is_null());
    let text = |(name, value): (&String, &Value)| {
        let text = word(value).ok_or_else(|| format!("{key} {name} is not a text"))?;
        Ok((name.clone(), text))
    };
    values.map(text).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Checks the only server of a configuration.
    fn check_one(text: &str, expected: &Value, is_enabled: bool) {
        let read = pasted(text).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!(read.len(), 1, "{text}");
        let spec = read[0].spec.as_ref().unwrap_or_else(|error| panic!("{error}: {text}"));
        let written: Fields = json!(spec)
            .as_object()
            .unwrap()
            .iter()
            .filter(|(_, value)| !value.is_null() && **value != json!([]) && **value != json!({}))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        assert_eq!((read[0].name.as_str(), &Value::Object(written)), ("a", expected), "{text}");
        assert_eq!(read[0].is_enabled, is_enabled, "{text}");
    }

    #[test]
    fn forms_of_other_programs_are_read() {
        let one = r#"{"command": "npx", "args": ["-y", "x"], "env": {"KEY": "s"}}"#;
        let expected = json!({ "command": "npx", "args": ["-y", "x"], "env": { "KEY": "s" } });
        let forms = [
            format!(r#"{{"mcpServers": {{"a": {one}}}}}"#),
            format!(r#"{{"servers": {{"a": {one}}}, "inputs": []}}"#),
            format!(r#"{{"mcp": {{"servers": {{"a": {one}}}}}}}"#),
            format!(r#"{{"mcp": {{"a": {one}}}}}"#),
            format!(r#"{{"context_servers": {{"a": {one}}}}}"#),
            format!(r#" {{"a": {one}}} "#),
            format!(r#""a": {one}"#),
            format!(r#""mcpServers": {{"a": {one},}},"#),
            format!("```json\n{{\"mcpServers\": {{\"a\": {one}}}}}\n```"),
            format!("Add this:\n\n```\n{{\"a\": {one}}}\n```\n\nand restart."),
            format!("Add {{\"a\": {one}}} to it."),
            format!("// servers\n{{\"a\": /* this */ {one},}}"),
            format!(r#"{{"mcpServers": {{"a": {one}}}}}"#).replace('"', "“"),
            r#"{"mcpServers": [{"name": "a", "command": "npx", "args": ["-y", "x"], "env": {"KEY": "s"}}]}"#.into(),
            r#"{"context_servers": {"a": {"command": {"path": "npx", "args": ["-y", "x"], "env": {"KEY": "s"}}, "settings": {}}}}"#.into(),
            r#"{"mcp": {"a": {"type": "local", "command": ["npx", "-y", "x"], "environment": {"KEY": "s"}, "enabled": true}}}"#.into(),
            r#"{"a": {"command": "npx -y x", "env": {"KEY": "s", "NONE": null}, "type": "stdio"}}"#.into(),
            r#"{"experimental": {"modelContextProtocolServers": [{"name": "a", "transport": {"type": "stdio", "command": "npx", "args": ["-y", "x"], "env": {"KEY": "s"}}}]}}"#.into(),
            "[mcp_servers.a]\ncommand = \"npx\"\nargs = [\"-y\", \"x\"]\nenv = { KEY = \"s\" }\n".into(),
        ];
        for form in forms {
            check_one(&form, &expected, true);
        }
        let expected = json!({ "url": "https://x.org/mcp", "headers": { "A": "b" } });
        for key in ["url", "serverUrl", "httpUrl"] {
            let text = json!({ "mcpServers": { "a": { key: "https://x.org/mcp", "type": "http", "headers": { "A": "b" } } } });
            check_one(&text.to_string(), &expected, true);
        }
        let folder = r#"{"a": {"command": "C:\\Program Files\\node\\npx.cmd", "cwd": "/tmp"}}"#;
        check_one(folder, &json!({ "command": "C:\\Program Files\\node\\npx.cmd", "cwd": "/tmp" }), true);
    }

    #[test]
    fn configurations_of_the_field_are_read() {
        let expected = json!({ "command": "python3", "args": ["server.py"] });
        for text in [
            include_str!("../tests/data/fenced.json"),
            include_str!("../tests/data/jsonc.json"),
            include_str!("../tests/data/vscode.json"),
        ] {
            check_one(text, &expected, true);
        }
    }

    #[test]
    fn numbers_and_switches_are_texts() {
        let text = r#"{"a": {"command": "x", "args": ["--port", 8080, true, null],
            "env": {"N": 3, "F": 1.5, "B": false}, }}"#;
        let expected = json!({ "command": "x", "args": ["--port", "8080", "true"], "env": { "B": "false", "F": "1.5", "N": "3" } });
        check_one(text, &expected, true);
    }

    #[test]
    fn servers_that_are_switched_off_stay_off() {
        let expected = json!({ "command": "x" });
        for (switch, is_enabled) in [
            (r#""disabled": true"#, false),
            (r#""disabled": "true""#, false),
            (r#""enabled": false"#, false),
            (r#""disabled": false"#, true),
            (r#""enabled": true, "autoApprove": []"#, true),
            (r#""disabled": null"#, true),
        ] {
            check_one(&format!(r#"{{"a": {{"command": "x", {switch}}}}}"#), &expected, is_enabled);
        }
        let asks = r#"{"servers": {"a": {"command": "x", "env": {"K": "${input:key}"}}}}"#;
        assert!(!pasted(asks).unwrap()[0].is_enabled, "it needs its key first");
    }

    #[test]
    fn what_is_wrong_is_named_and_keeps_nothing_else_out() {
        let one = r#"{"command": "npx"}"#;
        let deep = "[".repeat(100_000);
        for wrong in
            ["", "[]", "{}", "3", one, r#"{"mcpServers": {}}"#, "{\"a\": ", "hello", &deep, "```\n```"]
        {
            assert_eq!(pasted(wrong).unwrap_err().code(), "tools.pasted", "{wrong:.40}");
        }
        let mixed = json!({ "good": { "url": "https://x.org/mcp" }, "none": {}, "old": { "url": "https://x.org/sse", "type": "sse" },
            "both": { "url": "https://x.org", "command": "x" }, "odd": { "command": [[3]] }, "text": "x",
            "env": { "command": "x", "env": { "A": [1] } } });
        let read = pasted(&mixed.to_string()).unwrap();
        let good: Vec<&str> = read.iter().filter(|it| it.spec.is_ok()).map(|it| it.name.as_str()).collect();
        assert_eq!((good, read.len()), (vec!["good"], 7));
        let error = |name: &str| read.iter().find(|it| it.name == name).unwrap().spec.as_ref().unwrap_err();
        assert!(error("env").message().contains("env A"), "{}", error("env"));
        assert!(error("old").message().contains("SSE"));
    }
}
