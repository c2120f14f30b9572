//! `nook mcp`: serves models and saved chats over the Model Context Protocol until the client leaves or a signal comes.
//!
//! Over stdio nothing but messages of the protocol goes to stdout.

use app::App;
use clap::{Args, ValueEnum};
use contract::Result;
use mcp_server::NetworkTransport;
use serde_json::json;

use crate::args::global::Global;
use crate::out;
use crate::server_key::{self, ServerKeyFlags};
use crate::source_flags::SourceFlags;

#[derive(Debug, Args)]
pub struct McpArgs {
    /// How clients connect: over this program's input and output, streamable HTTP, or WebSocket
    #[arg(long, value_enum, default_value_t)]
    pub transport: TransportArg,
    /// Port of http and ws; 0 picks a free one
    #[arg(long, default_value_t = server::DEFAULT_PORT)]
    pub port: u16,
    #[command(flatten)]
    pub key: ServerKeyFlags,
    #[command(flatten)]
    pub sources: SourceFlags,
}

/// How clients connect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum TransportArg {
    #[default]
    Stdio,
    Http,
    Ws,
}

pub fn mcp(global: &Global, args: &McpArgs) -> Result<()> {
    let transport = match args.transport {
        TransportArg::Stdio => return mcp_server::serve_stdio(App::open(global.app_config_apart()?)?),
        TransportArg::Http => NetworkTransport::Http,
        TransportArg::Ws => NetworkTransport::WebSocket,
    };
    let sources = args.sources.parsed()?;
    let api_key = server_key::api_key(&args.key, &|name| std::env::var(name).ok())?;
    let app = App::open(global.app_config_apart()?)?;
    let own_key = api_key.is_some();
    let data_dir = app.dirs().data.display().to_string();
    let options = server::Options { port: args.port, api_key, sources, ..server::Options::default() };
    let listening = mcp_server::listen(app, transport, options)?;
    out::json(&json!({ "listening": listening.url }));
    if !own_key {
        out::log(&format!("clients send `Authorization: Bearer KEY`; the key is stored in {data_dir}"));
    }
    listening.run_until_signalled();
    Ok(())
}
