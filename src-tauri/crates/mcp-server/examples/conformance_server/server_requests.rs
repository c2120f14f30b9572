//! Requests to the client during a call, which revisions before 2026-07-28 have: sampling and elicitation.

use rmcp::RoleServer;
use rmcp::model::{ClientResult, ContentBlock, ErrorData, ServerRequest};
use rmcp::service::Peer;
use serde_json::{Value, json};

/// Has the client's model answer a prompt.
pub async fn sample(peer: &Peer<RoleServer>, prompt: &str) -> Result<Vec<ContentBlock>, ErrorData> {
    let message = json!({ "role": "user", "content": { "type": "text", "text": prompt } });
    let params = json!({ "messages": [message], "maxTokens": 100 });
    ask(peer, "sampling/createMessage", params).await
}

/// Asks the user for a name and an address.
pub async fn elicit_user(peer: &Peer<RoleServer>, message: &str) -> Result<Vec<ContentBlock>, ErrorData> {
    let properties = json!({
        "username": { "type": "string", "description": "User's response" },
        "email": { "type": "string", "description": "User's email address" },
    });
    elicit(peer, message, properties, &["username", "email"]).await
}

/// Asks for values that all have a default (SEP-1034).
pub async fn elicit_defaults(peer: &Peer<RoleServer>) -> Result<Vec<ContentBlock>, ErrorData> {
    let properties = json!({
        "name": { "type": "string", "default": "John Doe" },
        "age": { "type": "integer", "default": 30 },
        "score": { "type": "number", "default": 95.5 },
        "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
        "verified": { "type": "boolean", "default": true },
    });
    elicit(peer, "Please review these values", properties, &[]).await
}

/// Asks for choices of every kind (SEP-1330).
pub async fn elicit_enums(peer: &Peer<RoleServer>) -> Result<Vec<ContentBlock>, ErrorData> {
    let titled = |names: [&str; 3]| {
        let options = names.iter().enumerate();
        let options = options.map(|(at, name)| json!({ "const": format!("value{}", at + 1), "title": name }));
        options.collect::<Vec<_>>()
    };
    let options = ["option1", "option2", "option3"];
    let properties = json!({
        "untitledSingle": { "type": "string", "enum": options },
        "titledSingle": { "type": "string", "oneOf": titled(["First Option", "Second Option", "Third Option"]) },
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": { "type": "array", "items": { "type": "string", "enum": options } },
        "titledMulti": {
            "type": "array",
            "items": { "anyOf": titled(["First Choice", "Second Choice", "Third Choice"]) },
        },
    });
    elicit(peer, "Please choose", properties, &[]).await
}

async fn elicit(
    peer: &Peer<RoleServer>,
    message: &str,
    properties: Value,
    required: &[&str],
) -> Result<Vec<ContentBlock>, ErrorData> {
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    ask(peer, "elicitation/create", json!({ "message": message, "requestedSchema": schema })).await
}

/// Sends a request to the client. Its answer becomes the text of the call's result.
async fn ask(peer: &Peer<RoleServer>, method: &str, params: Value) -> Result<Vec<ContentBlock>, ErrorData> {
    let internal = |error: &dyn std::fmt::Display| ErrorData::internal_error(error.to_string(), None);
    let request = json!({ "method": method, "params": params });
    let request: ServerRequest = serde_json::from_value(request).map_err(|error| internal(&error))?;
    let answer = peer.send_request(request).await.map_err(|error| internal(&error))?;
    let text = match &answer {
        ClientResult::CreateMessageResult(it) => serde_json::to_string(it),
        ClientResult::ElicitResult(it) => serde_json::to_string(it),
        other => return Err(internal(&format!("The client answered {other:?}."))),
    };
    Ok(vec![ContentBlock::text(text.map_err(|error| internal(&error))?)])
}
