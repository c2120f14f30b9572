//! `nook endpoints`: other servers that answer; `nook connections`: what went over the network.

use std::io::Read;

use app::App;
use clap::{Args, Subcommand};
use contract::Error;
use contract::Result;
use contract::types::{
    ConnectionInfo, EndpointAddArgs, EndpointHealth, EndpointInfo, EndpointKey, EndpointUpdateArgs,
};
use platform::calendar;
use serde_json::json;

use crate::args::Global;
use crate::{out, text};

#[derive(Debug, Args)]
pub struct EndpointsArgs {
    #[command(subcommand)]
    pub verb: EndpointsVerb,
}

#[derive(Debug, Subcommand)]
pub enum EndpointsVerb {
    List,
    /// Add an OpenAI-compatible server: vLLM, SGLang, llama.cpp, Ollama, another Inglenook. Several of one name share
    /// the work
    Add {
        name: String,
        /// Such as http://192.168.1.20:8000/v1
        url: String,
        #[command(flatten)]
        key: KeyFlags,
    },
    /// Look whether it answers, and what models it has; all of them without an id
    Test {
        id: Option<String>,
    },
    /// Change an endpoint
    Update {
        /// Its id, or its name where only one has it
        id: String,
        #[arg(long)]
        name: Option<String>,
        #[arg(long)]
        url: Option<String>,
        #[command(flatten)]
        key: KeyFlags,
        /// It wants no key any more
        #[arg(long, conflicts_with_all = ["key_stdin", "key_env"])]
        no_key: bool,
    },
    /// Ask it again from now on
    On {
        id: String,
    },
    /// Ask it no more until it is switched on
    Off {
        id: String,
    },
    /// Forget it and its key
    Rm {
        id: String,
    },
}

/// A key is never an argument: other users of the machine could read it there.
#[derive(Debug, Args)]
pub struct KeyFlags {
    /// Read its key from standard input, and keep it in the system's keychain, or where none runs in an encrypted file
    #[arg(long, conflicts_with = "key_env")]
    pub key_stdin: bool,
    /// Its key is in this environment variable
    #[arg(long, value_name = "NAME")]
    pub key_env: Option<String>,
}

#[derive(Debug, Args)]
pub struct ConnectionsFlags {
    /// How many of the newest
    #[arg(long, value_name = "N")]
    pub limit: Option<u32>,
}

impl KeyFlags {
    fn read(&self) -> Result<Option<String>> {
        if self.key_stdin { read_key().map(Some) } else { Ok(None) }
    }
}

/// From standard input: an argument could be read by others.
pub fn read_key() -> Result<String> {
    let mut key = String::new();
    std::io::stdin().read_to_string(&mut key).map_err(|error| {
        Error::input("input.stdin", format!("Standard input: {error}."), "Write the key to it.")
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
        EndpointsVerb::Add { name, url, key } => show(app.endpoint_add(EndpointAddArgs {
            name: name.clone(),
            url: url.clone(),
            key: key.read()?,
            key_variable: key.key_env.clone(),
        })?),
        EndpointsVerb::Test { id: Some(id) } => show(app.endpoint_test(id)?),
        EndpointsVerb::Test { id: None } => {
            for info in app.endpoint_list()? {
                // What is wrong with one is shown in the list.
                let _ = app.endpoint_test(&info.id);
            }
            list(app.endpoint_list()?, global.json);
        }
        EndpointsVerb::Update { id, name, url, key, no_key } => {
            show(app.endpoint_update(EndpointUpdateArgs {
                id: id_of(&app, id)?,
                name: name.clone(),
                url: url.clone(),
                key: if *no_key { Some(String::new()) } else { key.read()? },
                key_variable: key.key_env.clone(),
                enabled: None,
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

/// An id, or a name that only one has; what is neither is left to the error of the call.
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
            EndpointKey::Environment { variable } => format!("key in {variable}"),
            EndpointKey::Kept => "key in an encrypted file".into(),
            EndpointKey::Keychain => "key in the keychain".into(),
        };
        let state = match &info.health {
            _ if !info.enabled => "off".into(),
            EndpointHealth::Unknown => String::new(),
            EndpointHealth::Up => "up".into(),
            EndpointHealth::Down { error } => error.message.clone(),
        };
        let models: Vec<&str> = info.models.iter().map(|model| model.id.as_str()).collect();
        let leaves = if info.leaves_machine { "leaves this machine" } else { "this machine" };
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
