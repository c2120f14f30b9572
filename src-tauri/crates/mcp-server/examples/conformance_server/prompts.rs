//! Prompts that the suite asks for.

use rmcp::model::{
    ContentBlock, ErrorData, GetPromptRequestParams, GetPromptResponse, GetPromptResult, ListPromptsResult,
    Prompt, PromptArgument, PromptMessage, ResourceContents, Role,
};
use serde_json::json;

use crate::input_required::{self, elicitation, required};
use crate::resources::PNG;

const INPUT_REQUIRED: &str = "test_input_required_result_prompt";

/// All prompts.
pub fn list() -> ListPromptsResult {
    let argument = |name: &str| PromptArgument::new(name).with_description("Any text").with_required(true);
    let named = |name: &str, arguments| Prompt::new(name, Some("A prompt of the suite"), arguments);
    ListPromptsResult::with_all_items(vec![
        named("test_simple_prompt", None),
        named("test_prompt_with_arguments", Some(vec![argument("arg1"), argument("arg2")])),
        named("test_prompt_with_embedded_resource", Some(vec![argument("resourceUri")])),
        named("test_prompt_with_image", None),
        named(INPUT_REQUIRED, None),
    ])
}

/// One prompt.
pub fn get(request: &GetPromptRequestParams) -> Result<GetPromptResponse, ErrorData> {
    let argument = |name: &str| {
        let value = request.arguments.as_ref().and_then(|all| all.get(name));
        value.and_then(|value| value.as_str()).unwrap_or_default()
    };
    let text = |text: String| PromptMessage::new_text(Role::User, text);
    let messages = match request.name.as_str() {
        "test_simple_prompt" => vec![text("This is a simple prompt for testing.".into())],
        "test_prompt_with_arguments" => {
            let (first, second) = (argument("arg1"), argument("arg2"));
            vec![text(format!("Prompt with arguments: arg1='{first}', arg2='{second}'"))]
        }
        "test_prompt_with_embedded_resource" => {
            let contents = ResourceContents::text("Embedded text.", argument("resourceUri"));
            let block = ContentBlock::resource(contents.with_mime_type("text/plain"));
            vec![PromptMessage::new(Role::User, block), text("Read the embedded text.".into())]
        }
        "test_prompt_with_image" => {
            let image = ContentBlock::image(PNG, "image/png");
            vec![PromptMessage::new(Role::User, image), text("Describe the picture.".into())]
        }
        INPUT_REQUIRED => match input_required::response(request.input_responses.as_ref(), "user_context") {
            Some(response) => {
                let context = response["content"]["context"].as_str().unwrap_or_default();
                vec![text(format!("Use this context: {context}"))]
            }
            None => {
                let asked = elicitation("Which context?", json!({ "context": { "type": "string" } }))?;
                return Ok(required([("user_context", asked)], None).into());
            }
        },
        other => return Err(ErrorData::invalid_params(format!("There is no prompt {other}."), None)),
    };
    Ok(GetPromptResult::new(messages).into())
}
