//! `nook tools`: tool servers and their contents; `nook plugins`: plugins.

use std::collections::BTreeMap;

use app::App;
use clap::{Args, Subcommand};
use contract::Error;
use contract::Result;
use contract::types::{
    PluginInfo, PluginSwitchArgs, ToolPrompt, ToolPromptArgs, ToolPromptArgument, ToolResources,
    ToolServerAddArgs, ToolServerInfo, ToolServerSpec, ToolServerState, ToolServerUpdateArgs, ToolSignInArgs,
    ToolSignInState,
};
use serde_json::json;

use crate::args::global::Global;
use crate::input::read_stdin;
use crate::{open_model, out};

#[derive(Debug, Args)]
pub struct ToolsArgs {
    #[command(subcommand)]
    pub verb: ToolsVerb,
}

#[derive(Debug, Subcommand)]
pub enum ToolsVerb {
    /// List tool servers, their status and their tools
    List,
    /// Add a server by its command (after --) or by --url
    Add {
        name: String,
        /// URL of the server, such as https://example.org/mcp
        #[arg(long, conflicts_with = "command")]
        url: Option<String>,
        /// Working folder
        #[arg(long, requires = "command")]
        cwd: Option<String>,
        /// Pass on this environment variable with its current value, stored encrypted; may be repeated
        #[arg(long, value_name = "NAME", requires = "command")]
        env: Vec<String>,
        /// Read headers from standard input, one `Name: value` per line; stored encrypted
        #[arg(long, requires = "url")]
        headers_stdin: bool,
        /// Command that starts the server, with its arguments
        #[arg(last = true, required_unless_present = "url")]
        command: Vec<String>,
    },
    /// Add servers from a configuration file in the form {"mcpServers": …}; - reads standard input
    Import { file: std::path::PathBuf },
    /// Start a server and list its tools
    Test { id: String },
    /// Sign in to a server in the browser; waits until you are done
    SignIn {
        id: String,
        /// Client ID, for servers that don't register applications by themselves
        #[arg(long)]
        client_id: Option<String>,
        /// Read the client secret from standard input
        #[arg(long, requires = "client_id")]
        client_secret_stdin: bool,
    },
    /// Sign out of a server: revoke and remove its tokens
    SignOut { id: String },
    /// List the resources of a server
    Resources { id: String },
    /// Print a text resource, by its address from `resources` or from a template
    Read { id: String, uri: String },
    /// List the prompts of a server
    Prompts { id: String },
    /// Print a prompt with its arguments filled in, for use as `nook run --prompt "$(nook tools prompt …)"`
    Prompt {
        id: String,
        name: String,
        /// Argument as NAME=VALUE
        arguments: Vec<String>,
    },
    /// Turn on a server
    On { id: String },
    /// Turn off a server
    Off { id: String },
    /// Remove a server and its secrets
    Rm { id: String },
}

#[derive(Debug, Args)]
pub struct PluginsArgs {
    #[command(subcommand)]
    pub verb: Option<PluginsVerb>,
}

#[derive(Debug, Subcommand)]
pub enum PluginsVerb {
    /// List plugins and their contents
    List,
    /// Turn on a plugin
    On { name: String },
    /// Turn off a plugin
    Off { name: String },
}

/// Flags for the approval of tool calls.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct ToolFlags {
    /// Run every tool call without asking
    #[arg(long)]
    pub allow_tools: bool,
}

pub fn tools(global: &Global, args: ToolsArgs) -> Result<()> {
    let app = App::open(global.app_config()?)?;
    let show = |info: ToolServerInfo| if global.json { out::json(&info) } else { table(&[info]) };
    let switch = |id: String, enabled| {
        let id = id_of(&app, &id)?;
        app.tool_server_update(ToolServerUpdateArgs { id, enabled: Some(enabled), ..Default::default() })
    };
    match args.verb {
        ToolsVerb::List => {
            let list = app.tool_servers_list()?;
            if global.json { out::json(&list) } else { table(&list) }
        }
        ToolsVerb::Add { name, url, cwd, env, headers_stdin, command } => {
            let mut words = command.into_iter();
            let headers = if headers_stdin { headers()? } else { BTreeMap::new() };
            let spec = ToolServerSpec {
                command: words.next(),
                args: words.collect(),
                env: env.iter().map(|name| variable(name)).collect::<Result<_>>()?,
                cwd,
                url,
                headers,
            };
            show(app.tool_server_add(ToolServerAddArgs { name, spec })?);
        }
        ToolsVerb::Import { file } => {
            let imported = app.tool_servers_import(&open_model::read_text(&file)?)?;
            if global.json {
                out::json(&imported);
            } else {
                table(&imported.added);
                imported.refused.iter().for_each(|it| out::log(&format!("{} {}", it.message, it.remedy)));
            }
        }
        ToolsVerb::Test { id } => show(app.tool_server_test(&id)?),
        ToolsVerb::SignIn { id, client_id, client_secret_stdin } => {
            let client_secret = if client_secret_stdin { Some(client_secret()?) } else { None };
            let args = ToolSignInArgs { id: id_of(&app, &id)?, client_id, client_secret };
            show(app.tool_sign_in(args, open_sign_in)?);
        }
        ToolsVerb::SignOut { id } => show(app.tool_sign_out(&id_of(&app, &id)?)?),
        ToolsVerb::Resources { id } => {
            let offered = app.tool_resources(&id)?;
            if global.json { out::json(&offered) } else { resource_lines(&offered) }
        }
        ToolsVerb::Read { id, uri } => {
            let text = app.tool_resource_text(&id, &uri)?;
            if global.json { out::json(&json!({ "uri": uri, "text": text })) } else { out::text(&text) }
        }
        ToolsVerb::Prompts { id } => {
            let offered = app.tool_prompts(&id)?;
            if global.json { out::json(&offered) } else { prompt_lines(&offered) }
        }
        ToolsVerb::Prompt { id, name, arguments } => {
            let arguments = app::prompt_arguments(&arguments)?;
            let prompt = app.tool_prompt(&ToolPromptArgs { id, name, arguments })?;
            if global.json { out::json(&prompt) } else { out::text(&prompt.text) }
        }
        ToolsVerb::On { id } => show(switch(id, true)?),
        ToolsVerb::Off { id } => show(switch(id, false)?),
        ToolsVerb::Rm { id } => {
            app.tool_server_remove(&id)?;
            if global.json {
                out::json(&json!({ "removed": id }));
            }
        }
    }
    Ok(())
}

pub fn plugins(global: &Global, args: &PluginsArgs) -> Result<()> {
    let app = App::open(global.app_config()?)?;
    let switch = |name: &str, enabled| app.plugin_switch(&PluginSwitchArgs { name: name.into(), enabled });
    let list = match &args.verb {
        None | Some(PluginsVerb::List) => app.plugins_list()?,
        Some(PluginsVerb::On { name }) => switch(name, true)?,
        Some(PluginsVerb::Off { name }) => switch(name, false)?,
    };
    if global.json {
        out::json(&list);
    } else {
        list.iter().for_each(plugin_lines);
    }
    Ok(())
}

fn plugin_lines(plugin: &PluginInfo) {
    let state = if plugin.enabled { "on" } else { "off" };
    out::line(&format!("{}  {state}  {} {}", plugin.folder, plugin.name, plugin.version));
    if let Some(error) = &plugin.error {
        out::line(&format!("    {} {}", error.message, error.remedy));
    }
    let parts = [
        ("server", &plugin.servers),
        ("preset", &plugin.presets),
        ("template", &plugin.templates),
        ("model", &plugin.models),
    ];
    for (what, names) in parts {
        names.iter().for_each(|name| out::line(&format!("    {what}: {name}")));
    }
    if plugin.changed {
        out::line("    changed since it was turned on");
    }
}

fn resource_lines(offered: &ToolResources) {
    let row = |address: &str, name: &str, kind: &Option<String>, description: &str| {
        let kind = kind.as_ref().map_or(String::new(), |kind| format!(", {kind}"));
        out::line(&format!("{address}  {name}{kind}"));
        description.lines().take(1).for_each(|line| out::line(&format!("    {line}")));
    };
    for it in &offered.resources {
        row(&it.uri, &it.name, &it.kind, &it.description);
    }
    for it in &offered.templates {
        row(&it.template, &it.name, &it.kind, &it.description);
    }
    if offered.resources.is_empty() && offered.templates.is_empty() {
        out::log("this server offers no resources");
    }
}

fn prompt_lines(offered: &[ToolPrompt]) {
    for it in offered {
        let argument = |it: &ToolPromptArgument| match it.required {
            true => format!(" {}=…", it.name),
            false => format!(" [{}=…]", it.name),
        };
        out::line(&format!("{}{}", it.name, it.arguments.iter().map(argument).collect::<String>()));
        it.description.lines().take(1).for_each(|line| out::line(&format!("    {line}")));
    }
    if offered.is_empty() {
        out::log("this server has no prompts");
    }
}

fn table(list: &[ToolServerInfo]) {
    for server in list {
        let state = match (&server.state, server.enabled) {
            (_, false) => "off".to_owned(),
            (ToolServerState::Failed { error }, true) => format!("{} {}", error.message, error.remedy),
            (ToolServerState::Ready, true) if server.sign_in == ToolSignInState::SignedIn => {
                "works, signed in".into()
            }
            (ToolServerState::Ready, true) => "works".into(),
            (ToolServerState::Idle | ToolServerState::Starting, true) => "starts on demand".into(),
        };
        out::line(&format!("{}  {}  {state}", server.name, server.place));
        for tool in &server.tools {
            let allowed = if tool.allowed { ", runs without asking" } else { "" };
            let about = tool.description.lines().next().unwrap_or_default();
            out::line(&format!("    {}{allowed}: {about}", tool.name));
        }
    }
}

fn id_of(app: &App, id: &str) -> Result<String> {
    let list = app.tool_servers_list()?;
    let found = list.into_iter().find(|server| server.id == id || server.name == id);
    Ok(found.map_or_else(|| id.to_owned(), |server| server.id))
}

fn variable(name: &str) -> Result<(String, String)> {
    let value = std::env::var(name).map_err(|_| {
        let message = format!("The environment variable {name} is not set.");
        Error::input("tools.variable", message, "Set it before you run the command.")
    })?;
    Ok((name.to_owned(), value))
}

fn open_sign_in(address: &str) {
    out::log(&format!("Sign in at this address:\n{address}"));
    match platform::open_outside(address, std::env::var(platform::BROWSER_VARIABLE).ok().as_deref()) {
        true => out::log("Waiting for the browser…"),
        false => out::log("No browser could be opened. Open the address yourself."),
    }
}

/// Longest secret of a client.
const MAX_SECRET_BYTES: u64 = 8 << 10;

fn client_secret() -> Result<String> {
    let text = String::from_utf8(read_stdin(MAX_SECRET_BYTES)?).map_err(|_| {
        Error::input("input.stdin", "Standard input is not UTF-8 text.", "Write the client secret.")
    })?;
    Ok(text.trim().to_owned())
}

/// Of all headers of a server together.
const MAX_HEADERS_BYTES: u64 = 1 << 20;

fn headers() -> Result<BTreeMap<String, String>> {
    let wrong = |cause: String| Error::input("input.stdin", cause, "Write one `Name: value` per line.");
    let text = String::from_utf8(read_stdin(MAX_HEADERS_BYTES)?)
        .map_err(|_| wrong("Standard input is not UTF-8 text.".into()))?;
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let header = |line: &str| {
        let parts = line.split_once(':').map(|(name, value)| (name.trim().into(), value.trim().into()));
        parts.ok_or_else(|| wrong("A line of standard input is not a header.".into()))
    };
    lines.map(header).collect()
}
