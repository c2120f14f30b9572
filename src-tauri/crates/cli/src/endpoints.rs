//! `nook endpoints`: OpenAI-compatible servers; `nook connections`: the log of network connections.

use app::App;
use clap::{Args, Subcommand};
use contract::Error;
use contract::Result;
use contract::types::{
    ConnectionInfo, EndpointAddArgs, EndpointHealth, EndpointInfo, EndpointKey, EndpointUpdateArgs,
};
use platform::calendar;
use serde_json::json;

use crate::args::global::Global;
use crate::input::read_stdin;
use crate::{out, text};

#[derive(Debug, Args)]
pub struct EndpointsArgs {
    #[command(subcommand)]
    pub verb: EndpointsVerb,
}

#[derive(Debug, Subcommand)]
pub enum EndpointsVerb {
    /// List servers, their status and their models
    List,
    /// Add an OpenAI-compatible server: vLLM, SGLang, llama.cpp, Ollama or another Inglenook. Servers with the same
    /// name share the load
    Add {
        name: String,
        /// Base URL, such as http://192.168.1.20:8000/v1
        url: String,
        #[command(flatten)]
        key: KeyFlags,
        /// Name of a model, for a server that doesn't list its models (repeatable)
        #[arg(long = "model", value_name = "NAME")]
        models: Vec<String>,
    },
    /// Test the connection and refresh the models; without an id, of all servers
    Test { id: Option<String> },
    /// Change a server
    Update {
        /// Its id, or its name if unique
        id: String,
        #[arg(long)]
        name: Option<String>,
        #[arg(long)]
        url: Option<String>,
        #[command(flatten)]
        key: KeyFlags,
        /// Remove the API key
        #[arg(long, conflicts_with_all = ["key_stdin", "key_env"])]
        no_key: bool,
        /// Name of a model, for a server that doesn't list its models (repeatable)
        #[arg(long = "model", value_name = "NAME")]
        models: Vec<String>,
    },
    /// Turn the server on
    On { id: String },
    /// Turn the server off
    Off { id: String },
    /// Remove the server and its key
    Rm { id: String },
}

/// Sources of an API key. Never an argument: other users could read it in the process list.
#[derive(Debug, Args)]
pub struct KeyFlags {
    /// Read the API key from standard input and store it in the system keychain, or in an encrypted file if
    /// unavailable
    #[arg(long, conflicts_with = "key_env")]
    pub key_stdin: bool,
    /// Read the API key from this environment variable
    #[arg(long, value_name = "NAME")]
    pub key_env: Option<String>,
}

#[derive(Debug, Args)]
pub struct ConnectionsFlags {
    /// Number of newest entries to show
    #[arg(long, value_name = "N")]
    pub limit: Option<u32>,
}

impl KeyFlags {
    fn read(&self) -> Result<Option<String>> {
        if self.key_stdin { read_key().map(Some) } else { Ok(None) }
    }
}

/// Of a key with what may stand around it.
const MAX_KEY_BYTES: u64 = 64 << 10;

/// Reads a key from standard input.
pub fn read_key() -> Result<String> {
    let bytes = read_stdin(MAX_KEY_BYTES)?;
    let key = String::from_utf8(bytes).map_err(|_| {
        let message = "Standard input is not UTF-8 text.";
        Error::input("input.stdin", message, "Pipe the key to standard input.")
    })?;
    Ok(key.trim().to_owned())
}

pub fn endpoints(global: &Global, args: &EndpointsArgs) -> Result<()> {
    let app = App::open(global.app_config()?)?;
    let show = |info: EndpointInfo| if global.json { out::json(&info) } else { table(&[info]) };
    let switch = |id: &str, enabled| {
        let (id, enabled) = (id_of(&app, id)?, Some(enabled));
        app.endpoint_update(EndpointUpdateArgs { id, enabled, ..EndpointUpdateArgs::default() })
    };
    match &args.verb {
        EndpointsVerb::List => list(app.endpoint_list()?, global.json),
        EndpointsVerb::Add { name, url, key, models } => show(app.endpoint_add(EndpointAddArgs {
            name: name.clone(),
            url: url.clone(),
            key: key.read()?,
            key_variable: key.key_env.clone(),
            models: Some(models.clone()),
        })?),
        EndpointsVerb::Test { id: Some(id) } => show(app.endpoint_test(id)?),
        EndpointsVerb::Test { id: None } => {
            for info in app.endpoint_list()? {
                // The list shows each error.
                let _ = app.endpoint_test(&info.id);
            }
            list(app.endpoint_list()?, global.json);
        }
        EndpointsVerb::Update { id, name, url, key, no_key, models } => {
            show(app.endpoint_update(EndpointUpdateArgs {
                id: id_of(&app, id)?,
                name: name.clone(),
                url: url.clone(),
                key: if *no_key { Some(String::new()) } else { key.read()? },
                key_variable: key.key_env.clone(),
                enabled: None,
                models: (!models.is_empty()).then(|| models.clone()),
            })?)
        }
        EndpointsVerb::On { id } => show(switch(id, true)?),
        EndpointsVerb::Off { id } => show(switch(id, false)?),
        EndpointsVerb::Rm { id } => {
            app.endpoint_remove(id)?;
            if global.json {
                out::json(&json!({ "removed": id }))
            }
        }
    }
    Ok(())
}

/// Resolves a unique name to its id. Returns anything else unchanged, so that the call reports the error.
fn id_of(app: &App, id: &str) -> Result<String> {
    let infos = app.endpoint_list()?;
    let named: Vec<_> = infos.iter().filter(|info| info.name == id).collect();
    Ok(match named.as_slice() {
        [only] => only.id.clone(),
        _ => id.to_owned(),
    })
}

fn list(infos: Vec<EndpointInfo>, as_json: bool) {
    if as_json {
        return out::json(&json!({ "endpoints": infos }));
    }
    table(&infos);
}

fn table(infos: &[EndpointInfo]) {
    let row = |info: &EndpointInfo| {
        let key = match &info.key {
            EndpointKey::None => "no key".into(),
            EndpointKey::Environment { variable } => format!("key from {variable}"),
            EndpointKey::File => "key in an encrypted file".into(),
            EndpointKey::Keychain => "key in the keychain".into(),
        };
        let state = match &info.health {
            _ if !info.enabled => "off".into(),
            EndpointHealth::Unknown => String::new(),
            EndpointHealth::Up => "up".into(),
            EndpointHealth::Down { error } => error.message.clone(),
        };
        let models: Vec<&str> = info.models.iter().map(|model| model.id.as_str()).collect();
        let leaves = if info.leaves_machine { "leaves this computer" } else { "this computer" };
        let (name, url, id) = (info.name.clone(), info.url.clone(), info.id.clone());
        vec![name, url, leaves.into(), key, models.join(" "), state, id]
    };
    out::text(&text::table(&infos.iter().map(row).collect::<Vec<_>>()));
}

pub fn connections(global: &Global, flags: &ConnectionsFlags) -> Result<()> {
    let infos = App::open(global.app_config()?)?.connections_list(flags.limit)?;
    if global.json {
        out::json(&json!({ "connections": infos }));
        return Ok(());
    }
    let row = |info: &ConnectionInfo| {
        let purpose = info.purpose.and_then(|purpose| serde_json::to_value(purpose).ok());
        vec![
            calendar::date_time(info.at_ms),
            info.host.clone(),
            purpose.as_ref().and_then(|it| it.as_str()).unwrap_or("-").to_owned(),
            format!("{} sent", text::bytes(info.sent)),
            format!("{} received", text::bytes(info.received)),
        ]
    };
    out::text(&text::table(&infos.iter().map(row).collect::<Vec<_>>()));
    Ok(())
}
