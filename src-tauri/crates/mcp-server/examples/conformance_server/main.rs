//! Serves the fixtures of the official conformance suite from the parts that `nook mcp` is made of.
//!
//! `make mcp-conformance` starts it. Clients need the key of the first argument. Prints the address as JSON.

mod fixture;
mod input_required;
mod prompts;
mod resources;
mod server_requests;
mod tools;

use app::{App, AppConfig};
use mcp_server::NetworkTransport;
use server::Options;

use fixture::Fixture;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(api_key), Some(data_dir)) = (arguments.next(), arguments.next()) else {
        return Err("usage: conformance_server KEY DATA_FOLDER".into());
    };
    let api_key = api_key.into_string().map_err(|_| "the key is not text")?;
    let app = App::open(AppConfig { data_dir: Some(data_dir.into()), ..AppConfig::default() })?;
    let options = Options { port: 0, api_key: Some(api_key), ..Options::default() };
    let listening = mcp_server::listen_with(app, Fixture::default(), NetworkTransport::Http, options)?;
    println!("{}", serde_json::json!({ "listening": listening.url }));
    listening.run_until_signalled();
    Ok(())
}
