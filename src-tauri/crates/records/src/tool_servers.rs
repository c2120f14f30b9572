//! A tool server as stored: how it is reached, its last listing, and what may run without asking.
//! Secrets lie sealed among the keys, never here.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use session::ToolServerRow;

use contract::types::{
    ToolInfo, ToolPermitArgs, ToolServerInfo, ToolServerSpec, ToolServerState, ToolSignInState,
};
use contract::{Error, Result};
use mcp::server_spec::check;
use mcp::{Launch, ServerUrl};
use secrets::{Keys, Secret};

/// Longest name of a server, in characters.
const MAX_NAME_CHARS: usize = 40;
/// Longest tool name in characters; the longest description shown to a model follows.
const MAX_TOOL_NAME_CHARS: usize = 128;
const MAX_DESCRIPTION_CHARS: usize = 4000;
/// Largest description of a tool's arguments, in bytes of JSON.
const MAX_SCHEMA_BYTES: usize = 64 << 10;

/// What a child process inherits: what programs need to run, none of what is somebody's secret.
const INHERITED: &[&str] = &[
    "HOME",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "USER",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "TZ",
    "XDG_RUNTIME_DIR",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "XDG_DATA_HOME",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "APPDATA",
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "PROGRAMFILES(X86)",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "USERNAME",
    "USERPROFILE",
    "WINDIR",
];

/// A tool as its server describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ListedTool {
    /// Name by which it is called.
    pub name: String,
    /// Name that is shown, or empty.
    pub title: String,
    /// Description for the model.
    pub description: String,
    /// JSON schema of its arguments.
    pub schema: Value,
    /// Its server says that it changes nothing.
    pub read_only: bool,
}

/// All of a server but its name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StoredServer {
    /// Values of `env` and `headers` are empty.
    pub spec: ToolServerSpec,
    /// Its last listing.
    pub tools: Vec<ListedTool>,
    /// Everything runs without asking.
    pub allow_all: bool,
    /// Tools that run without asking.
    pub allowed: BTreeSet<String>,
    /// Tools that the model is not told of.
    pub off: BTreeSet<String>,
    /// The plugin that brought it.
    pub plugin: Option<String>,
    /// The keys hold a sign-in to it.
    pub signed_in: bool,
}

impl StoredServer {
    /// What can't be read any more is as if nothing had been said.
    pub fn of(row: &ToolServerRow) -> Self {
        serde_json::from_str(&row.body).unwrap_or_default()
    }

    /// The body of its row.
    pub fn written(&self) -> Result<String> {
        serde_json::to_string(self).map_err(Error::bug)
    }

    /// The tool runs without asking.
    pub fn is_allowed(&self, tool: &str) -> bool {
        self.allow_all || self.allowed.contains(tool)
    }

    /// Takes over a new list of tools. What was allowed is what was shown: a tool that is new, or described in another way
    /// than before, asks again. Returns the names of those.
    pub fn relist(&mut self, tools: Vec<ListedTool>) -> Vec<String> {
        let is_first = self.tools.is_empty();
        let had_allowed = self.allow_all || !self.allowed.is_empty();
        let (same, other): (Vec<_>, Vec<_>) = tools.iter().partition(|tool| self.tools.contains(tool));
        let mut asking: Vec<String> = Vec::new();
        if !is_first && had_allowed && !other.is_empty() {
            let was_allowed = |tool: &&&ListedTool| self.is_allowed(&tool.name);
            asking = other.iter().filter(was_allowed).map(|tool| tool.name.clone()).collect();
            self.allowed = same.iter().filter(was_allowed).map(|tool| tool.name.clone()).collect();
            self.allow_all = false;
        }
        self.tools = tools;
        asking
    }

    /// Its tools as they are shown.
    pub fn infos(&self) -> Vec<ToolInfo> {
        let info = |tool: &ListedTool| ToolInfo {
            name: tool.name.clone(),
            title: tool.title.clone(),
            description: tool.description.clone(),
            enabled: !self.off.contains(&tool.name),
            allowed: self.is_allowed(&tool.name),
            read_only: tool.read_only,
        };
        self.tools.iter().map(info).collect()
    }

    /// The server as it is shown.
    pub fn info(
        self,
        row: &ToolServerRow,
        state: ToolServerState,
        sign_in: ToolSignInState,
    ) -> ToolServerInfo {
        let (place, leaves_machine) = match (&self.spec.command, &self.spec.url) {
            (Some(command), _) => {
                let words = std::iter::once(command).chain(&self.spec.args);
                (words.map(String::as_str).collect::<Vec<_>>().join(" "), false)
            }
            (None, Some(url)) => (url.clone(), !ServerUrl::parse(url).is_ok_and(|place| place.is_here())),
            (None, None) => (String::new(), false),
        };
        ToolServerInfo {
            id: row.id.clone(),
            name: row.name.clone(),
            place,
            enabled: row.enabled,
            state,
            sign_in,
            tools: self.infos(),
            allowed: self.allow_all,
            leaves_machine,
            plugin: self.plugin,
            spec: self.spec,
        }
    }

    /// Sets what runs without asking, and which tools the model is offered.
    pub fn permit(&mut self, args: &ToolPermitArgs) {
        let Some(tool) = &args.tool else {
            if let Some(allowed) = args.allowed {
                self.allow_all = allowed;
                if !allowed {
                    self.allowed.clear();
                }
            }
            return;
        };
        let put = |set: &mut BTreeSet<String>, is_in: bool| {
            if is_in {
                set.insert(tool.clone());
            } else {
                set.remove(tool);
            }
        };
        match args.allowed {
            Some(false) if self.allow_all => {
                // All but this one, from now on.
                self.allow_all = false;
                self.allowed = self.tools.iter().map(|tool| tool.name.clone()).collect();
                self.allowed.remove(tool);
            }
            Some(allowed) => put(&mut self.allowed, allowed),
            None => {}
        }
        if let Some(enabled) = args.enabled {
            put(&mut self.off, !enabled);
        }
    }

    /// What is started, with its secrets. `path`: the folders of programs, instead of the inherited ones.
    pub fn launch(
        &self,
        secrets: &Secrets,
        environment: fn(&str) -> Option<String>,
        path: Option<String>,
    ) -> Option<Launch> {
        let command = self.spec.command.clone()?;
        let value =
            |name: &str| if name == "PATH" { path.clone() } else { None }.or_else(|| environment(name));
        let inherited = INHERITED.iter().filter_map(|name| Some(((*name).to_owned(), value(name)?)));
        let own = secrets.env.iter().map(|(name, value)| (name.clone(), value.clone()));
        let cwd = self.spec.cwd.as_ref().map(Into::into);
        Some(Launch { command, args: self.spec.args.clone(), env: inherited.chain(own).collect(), cwd })
    }
}

/// Secret values, never shown.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Secrets {
    env: BTreeMap<String, String>,
    headers: BTreeMap<String, String>,
}

impl Secrets {
    fn key(id: &str) -> String {
        format!("tools:{id}")
    }

    /// Secrets of the server `id`. None were kept: none.
    pub fn read(keys: &Keys, id: &str) -> Result<Self> {
        let Some(kept) = keys.get(&Self::key(id))? else { return Ok(Self::default()) };
        serde_json::from_str(kept.reveal()).map_err(|_| {
            let message = "The stored secrets of a tool server can't be decrypted.";
            Error::input("tools.secrets", message, "Remove the server and add it again.")
        })
    }

    /// Keeps them. Without any, the entry is removed.
    pub fn write(&self, keys: &Keys, id: &str) -> Result<()> {
        if self.env.is_empty() && self.headers.is_empty() {
            return keys.remove(&Self::key(id));
        }
        keys.put_text(&Self::key(id), &serde_json::to_string(self).map_err(Error::bug)?)
    }

    /// Forgets those of the server `id`.
    pub fn remove(keys: &Keys, id: &str) -> Result<()> {
        keys.remove(&Self::key(id))
    }

    /// Secret headers of requests to it.
    pub fn headers(&self) -> Vec<(String, Secret)> {
        self.headers.iter().map(|(name, value)| (name.clone(), Secret::new(value.clone()))).collect()
    }
}

/// Parts a checked spec from its secrets. An empty value stays as it was in `before`.
pub fn sealed(mut spec: ToolServerSpec, before: &Secrets) -> Result<(ToolServerSpec, Secrets)> {
    check(&mut spec)?;
    let take = |values: &mut BTreeMap<String, String>, before: &BTreeMap<String, String>| {
        let mut taken = BTreeMap::new();
        for (name, value) in values.iter_mut() {
            let value = std::mem::take(value);
            let kept = if value.is_empty() { before.get(name).cloned().unwrap_or_default() } else { value };
            taken.insert(name.clone(), kept);
        }
        taken
    };
    let secrets =
        Secrets { env: take(&mut spec.env, &before.env), headers: take(&mut spec.headers, &before.headers) };
    Ok((spec, secrets))
}

/// As it is shown, and before a tool's name where two servers have one of the same name.
pub fn checked_name(name: &str) -> Result<String> {
    let name = name.trim();
    let is_fine = |c: char| !c.is_control();
    if name.is_empty() || name.chars().count() > MAX_NAME_CHARS || !name.chars().all(is_fine) {
        let message = format!("\"{name}\" is not a valid name for a tool server.");
        return Err(Error::input("tools.name", message, format!("Use up to {MAX_NAME_CHARS} characters.")));
    }
    Ok(name.into())
}

/// What a server listed, without what can't be called: nameless, named twice, or described at a length that no model
/// reads.
pub fn listed(tools: &[Value]) -> Vec<ListedTool> {
    let mut read = Vec::<ListedTool>::new();
    for tool in tools {
        let text = |value: &Value| value.as_str().map(str::trim).unwrap_or_default().to_owned();
        let name = text(&tool["name"]);
        let schema = match &tool["inputSchema"] {
            schema @ Value::Object(_) => schema.clone(),
            _ => serde_json::json!({ "type": "object", "properties": {} }),
        };
        let is_new = read.iter().all(|other| other.name != name);
        let fits =
            name.chars().count() <= MAX_TOOL_NAME_CHARS && schema.to_string().len() <= MAX_SCHEMA_BYTES;
        if name.is_empty() || !is_new || !fits {
            tracing::warn!("a tool was left out of a list: \"{name}\"");
            continue;
        }
        let titles = [&tool["title"], &tool["annotations"]["title"]];
        let title = titles.into_iter().map(text).find(|title| !title.is_empty()).unwrap_or_default();
        let description = text(&tool["description"]).chars().take(MAX_DESCRIPTION_CHARS).collect();
        let read_only = tool["annotations"]["readOnlyHint"] == true;
        read.push(ListedTool { name, title, description, schema, read_only });
    }
    read
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_parted_and_kept() {
        let spec = |key: &str, other: &str| ToolServerSpec {
            command: Some(" npx ".into()),
            env: [("KEY".to_owned(), key.to_owned()), ("OTHER".to_owned(), other.to_owned())].into(),
            ..ToolServerSpec::default()
        };
        let (plain, secrets) = sealed(spec("s3cret", "a"), &Secrets::default()).unwrap();
        assert!(!serde_json::to_string(&plain).unwrap().contains("s3cret"));
        assert_eq!((plain.command.as_deref(), secrets.env["KEY"].as_str()), (Some("npx"), "s3cret"));
        let (_, again) = sealed(spec("", "b"), &secrets).unwrap();
        assert_eq!((again.env["KEY"].as_str(), again.env["OTHER"].as_str()), ("s3cret", "b"));
    }

    #[test]
    fn f73_what_changed_after_it_was_allowed_asks_again() {
        let list = |tools: &[(&str, &str)]| -> Vec<ListedTool> {
            let tool = |&(name, text): &(&str, &str)| json!({ "name": name, "description": text });
            listed(&tools.iter().map(tool).collect::<Vec<_>>())
        };
        let before = [("look", "Looks."), ("send", "Sends.")];
        let everything = |allow_all, allowed: &[&str]| StoredServer {
            tools: list(&before),
            allow_all,
            allowed: allowed.iter().map(|&name| name.into()).collect(),
            ..StoredServer::default()
        };
        // What is listed now, what asks again, and what still runs by itself.
        type Case =
            (&'static [(&'static str, &'static str)], &'static [&'static str], &'static [&'static str]);
        let cases: [Case; 4] = [
            (&[("send", "Sends."), ("look", "Looks.")], &[], &["look", "send"]),
            (&[("look", "Looks.")], &[], &["look"]),
            (&[("look", "Looks, and sends it elsewhere."), ("send", "Sends.")], &["look"], &["send"]),
            (&[("look", "Looks."), ("send", "Sends."), ("erase", "Erases.")], &["erase"], &["look", "send"]),
        ];
        for (now, asking, allowed) in cases {
            let mut server = everything(true, &[]);
            assert_eq!(server.relist(list(now)), asking, "{now:?}");
            let still: Vec<_> =
                server.infos().into_iter().filter(|it| it.allowed).map(|it| it.name).collect();
            let mut wanted: Vec<_> =
                now.iter().map(|(name, _)| *name).filter(|it| allowed.contains(it)).collect();
            wanted.retain(|name| !asking.contains(name));
            assert_eq!(still, wanted, "{now:?}");
        }
        let mut one = everything(false, &["look"]);
        assert_eq!(one.relist(list(&[("look", "Looks elsewhere."), ("send", "Sends.")])), ["look"]);
        assert!(!one.is_allowed("look") && !one.is_allowed("send"));
        let mut fresh = StoredServer { allow_all: true, ..StoredServer::default() };
        assert!(fresh.relist(list(&before)).is_empty() && fresh.allow_all, "the first list changes nothing");
    }

    #[test]
    fn lists_are_read_with_care() {
        let long = json!({ "type": "object", "x": "y".repeat(MAX_SCHEMA_BYTES) });
        let tools = [
            json!({ "name": "a", "description": " A. ", "annotations": { "title": "Look", "readOnlyHint": true } }),
            json!({ "name": "a" }),
            json!({ "name": "" }),
            json!({ "name": "big", "inputSchema": long }),
            json!({ "name": "b", "title": "B", "inputSchema": { "type": "object", "properties": { "x": {} } } }),
        ];
        let read = listed(&tools);
        let names: Vec<_> = read.iter().map(|tool| (tool.name.as_str(), tool.title.as_str())).collect();
        assert_eq!(names, [("a", "Look"), ("b", "B")]);
        assert!(read[0].read_only && read[0].schema["type"] == "object" && read[0].description == "A.");
    }
}
