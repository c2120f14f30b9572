//! Tools that the suite calls, besides those that need something of the client first.
#![expect(deprecated, reason = "revisions before 2026-07-28 have a log and sampling")]

use std::sync::Arc;
use std::time::Duration;

use mcp_server::{CallNotifiers, ContentChange};
use rmcp::RoleServer;
use rmcp::model::{
    AudioContent, CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock,
    ErrorData, JsonObject, LoggingLevel, ResourceContents, Tool,
};
use rmcp::service::RequestContext;
use serde_json::{Value, json};

use crate::fixture::Fixture;
use crate::input_required::{elicitation, required};
use crate::resources::PNG;
use crate::server_requests;

/// A silent WAV without samples.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";

/// Between two notifications of a call, as the suite wishes.
const STEP: Duration = Duration::from_millis(50);

const WITHOUT_ARGUMENTS: [&str; 16] = [
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_tool_with_logging",
    "test_error_handling",
    "test_tool_with_progress",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_missing_capability",
    "test_streaming_elicitation",
    "test_logging_tool",
    "test_trigger_tool_change",
    "test_trigger_prompt_change",
    "test_reconnection",
];

/// A tool with properties, of which some are required.
pub fn definition(name: &str, properties: Value, required: &[&str]) -> Tool {
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    with_schema(name, schema)
}

fn with_schema(name: &str, schema: Value) -> Tool {
    let schema: JsonObject = schema.as_object().cloned().unwrap_or_default();
    Tool::new(name.to_owned(), "A tool of the conformance suite", Arc::new(schema))
}

/// All tools of this file.
pub fn all() -> Vec<Tool> {
    let text = json!({ "type": "string" });
    let header = json!({ "value": { "type": "string", "x-mcp-header": "Value" } });
    let mut tools: Vec<Tool> = WITHOUT_ARGUMENTS.map(|name| definition(name, json!({}), &[])).to_vec();
    tools.push(definition("test_sampling", json!({ "prompt": text }), &["prompt"]));
    tools.push(definition("test_elicitation", json!({ "message": text }), &["message"]));
    tools.push(definition("test_custom_header", header, &["value"]));
    tools.push(with_schema("json_schema_2020_12_tool", schema_2020_12()));
    tools
}

/// Uses the vocabulary that JSON Schema 2020-12 adds.
fn schema_2020_12() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
            },
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}

fn embedded(uri: &str, mime_type: &str, text: &str) -> ContentBlock {
    ContentBlock::resource(ResourceContents::text(text, uri).with_mime_type(mime_type))
}

/// Calls a tool of this file.
pub async fn call(
    fixture: &Fixture,
    request: CallToolRequestParams,
    notifiers: CallNotifiers,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let text = |text: &str| vec![ContentBlock::text(text)];
    let argument = |name: &str| {
        let value = request.arguments.as_ref().and_then(|all| all.get(name));
        value.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let blocks = match request.name.as_ref() {
        "test_simple_text" => text("This is a simple text response for testing."),
        "test_image_content" => vec![ContentBlock::image(PNG, "image/png")],
        "test_audio_content" => vec![ContentBlock::Audio(AudioContent::new(WAV, "audio/wav"))],
        "test_embedded_resource" => {
            vec![embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")]
        }
        "test_multiple_content_types" => vec![
            ContentBlock::text("Multiple content types test:"),
            ContentBlock::image(PNG, "image/png"),
            embedded("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#),
        ],
        "test_error_handling" => {
            let said = text("This tool intentionally returns an error for testing");
            return Ok(CallToolResult::error(said).into());
        }
        "test_tool_with_logging" => log_three(&notifiers).await,
        "test_logging_tool" => {
            notifiers.log.send(LoggingLevel::Info, json!("The tool was called.")).await;
            text("Done.")
        }
        "test_tool_with_progress" => report_three(&notifiers).await,
        "test_custom_header" => text(&argument("value")),
        "test_trigger_tool_change" => change(fixture, ContentChange::ToolList),
        "test_trigger_prompt_change" => change(fixture, ContentChange::PromptList),
        "test_missing_capability" => {
            let declared = context.meta.client_capabilities().unwrap_or_default();
            if declared.sampling.is_none() {
                let needed = ClientCapabilities::builder().enable_sampling().build();
                return Err(ErrorData::missing_required_client_capability(needed));
            }
            text("The capability was declared.")
        }
        "test_streaming_elicitation" => {
            let asked = elicitation("A value, please", json!({ "value": { "type": "string" } }))?;
            return Ok(required([("value", asked)], None).into());
        }
        "test_reconnection" | "json_schema_2020_12_tool" => text("Done."),
        "test_sampling" => server_requests::sample(&context.peer, &argument("prompt")).await?,
        "test_elicitation" => server_requests::elicit_user(&context.peer, &argument("message")).await?,
        "test_elicitation_sep1034_defaults" => server_requests::elicit_defaults(&context.peer).await?,
        "test_elicitation_sep1330_enums" => server_requests::elicit_enums(&context.peer).await?,
        other => return Err(ErrorData::invalid_params(format!("There is no tool {other}."), None)),
    };
    Ok(CallToolResult::success(blocks).into())
}

async fn log_three(notifiers: &CallNotifiers) -> Vec<ContentBlock> {
    for message in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        notifiers.log.send(LoggingLevel::Info, json!(message)).await;
        tokio::time::sleep(STEP).await;
    }
    vec![ContentBlock::text("Three messages were logged.")]
}

async fn report_three(notifiers: &CallNotifiers) -> Vec<ContentBlock> {
    for progress in [0.0, 50.0, 100.0] {
        if let Some(notifier) = &notifiers.progress {
            notifier.send(progress, Some(100.0), "").await;
        }
        tokio::time::sleep(STEP).await;
    }
    vec![ContentBlock::text("Progress was reported three times.")]
}

fn change(fixture: &Fixture, change: ContentChange) -> Vec<ContentBlock> {
    // Without subscriptions there is no receiver.
    let n_watching = fixture.changes.send(change).unwrap_or_default();
    vec![ContentBlock::text(format!("{n_watching} watches were told."))]
}
