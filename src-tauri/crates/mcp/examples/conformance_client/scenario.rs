//! What the client does in each scenario.

use std::collections::BTreeMap;
use std::time::Duration;

use contract::{Error, Result};
use mcp::authorization::OauthClient;
use mcp::{Client, Stop};
use serde_json::{Value, json};

use crate::session::Session;

const TIMEOUT: Duration = Duration::from_secs(20);

/// The client metadata document that the suite expects. It does not exist.
const CLIENT_METADATA: &str = "https://conformance-test.local/client-metadata.json";

/// Runs one scenario.
pub fn run(name: &str, address: &str) -> Result<()> {
    let context = match std::env::var("MCP_CONFORMANCE_CONTEXT") {
        Ok(text) => serde_json::from_str(&text).map_err(Error::bug)?,
        Err(_) => Value::Null,
    };
    let given = match context["client_id"].as_str() {
        Some(id) => OauthClient::given(id, context["client_secret"].as_str().map(str::to_owned)),
        None => OauthClient::given(CLIENT_METADATA, None),
    };
    let mut session = Session::new(address, given)?;
    let tools = session.with_client(Client::tools)?;
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    println!("tools: {}", names.join(", "));
    let numbers = json!({ "a": 2, "b": 3 });
    match name {
        "json-schema-ref-no-deref" => Ok(()),
        "http-custom-headers" => {
            for asked in context["toolCalls"].as_array().into_iter().flatten() {
                call(&mut session, asked["name"].as_str().unwrap_or_default(), &asked["arguments"])?;
            }
            Ok(())
        }
        "json-schema-2020-12-preservation" => {
            let focal = tools.iter().find(|tool| tool["name"] == "json_schema_2020_12_tool");
            let schema = focal.map_or(Value::Null, |tool| tool["inputSchema"].clone());
            call(&mut session, "json_schema_echo", &json!({ "schema": schema }))
        }
        _ => {
            for tool in names {
                call(&mut session, tool, &numbers)?;
            }
            read_everything(&mut session)
        }
    }
}

fn call(session: &mut Session, tool: &str, arguments: &Value) -> Result<()> {
    let said =
        session.with_client(|client| client.call(tool, arguments.clone(), TIMEOUT, &Stop::default()))?;
    println!("{tool}: {said}");
    Ok(())
}

/// Reads all resources and prompts, where the server has some.
fn read_everything(session: &mut Session) -> Result<()> {
    for resource in session.with_client(Client::resources)? {
        let uri = resource["uri"].as_str().unwrap_or_default();
        session.with_client(|client| client.read(uri, TIMEOUT))?;
    }
    for prompt in session.with_client(Client::prompts)? {
        let name = prompt["name"].as_str().unwrap_or_default();
        session.with_client(|client| client.prompt(name, &BTreeMap::new(), TIMEOUT))?;
    }
    Ok(())
}
