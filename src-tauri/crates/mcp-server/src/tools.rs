//! The tools on offer: names, descriptions, and which schemas their arguments and results have.

use std::sync::Arc;
use std::{mem, slice};

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use rmcp::schemars::Schema;
use rmcp::schemars::transform::{RecursiveTransform, Transform as _};
use serde_json::{Value, json};

use crate::arguments::{
    ChatArgs, CountTokensArgs, GenerateTextArgs, ListModelsArgs, ListSessionsArgs, ModelInfoArgs,
};
use crate::results::{ChatAnswer, GeneratedText, ModelInfo, ModelList, SessionList, TokenCount};

/// A tool of this server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolName {
    GenerateText,
    Chat,
    CountTokens,
    GetModelInfo,
    ListModels,
    ListSessions,
}

impl ToolName {
    /// Every tool, in the order in which clients see them.
    pub const ALL: [Self; 6] = [
        Self::GenerateText,
        Self::Chat,
        Self::CountTokens,
        Self::GetModelInfo,
        Self::ListModels,
        Self::ListSessions,
    ];

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::GenerateText => "generate_text",
            Self::Chat => "chat",
            Self::CountTokens => "count_tokens",
            Self::GetModelInfo => "get_model_info",
            Self::ListModels => "list_models",
            Self::ListSessions => "list_sessions",
        }
    }

    /// The tool of a name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    fn title(self) -> &'static str {
        match self {
            Self::GenerateText => "Generate text",
            Self::Chat => "Chat",
            Self::CountTokens => "Count tokens",
            Self::GetModelInfo => "Model information",
            Self::ListModels => "List models",
            Self::ListSessions => "List saved chats",
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::GenerateText => {
                "Answers a prompt with a language model on this computer. Nothing is saved. With `stream`, progress \
                 notifications carry the text while it is written, if the request has a progress token."
            }
            Self::Chat => {
                "Chats with a language model on this computer. `messages` is a whole chat, which is not saved. \
                 `message` is one message of a saved chat: of `session`, or of a new one."
            }
            Self::CountTokens => "Counts the tokens of a text with a model's tokenizer.",
            Self::GetModelInfo => {
                "Describes a model: size, architecture, longest context, and what computes it."
            }
            Self::ListModels => "Lists the models of this computer.",
            Self::ListSessions => "Lists saved chats, the most recently used first.",
        }
    }

    fn with_schemas(self, tool: Tool) -> Tool {
        match self {
            Self::GenerateText => {
                tool.with_input_schema::<GenerateTextArgs>().with_output_schema::<GeneratedText>()
            }
            Self::Chat => tool.with_input_schema::<ChatArgs>().with_output_schema::<ChatAnswer>(),
            Self::CountTokens => {
                tool.with_input_schema::<CountTokensArgs>().with_output_schema::<TokenCount>()
            }
            Self::GetModelInfo => tool.with_input_schema::<ModelInfoArgs>().with_output_schema::<ModelInfo>(),
            Self::ListModels => tool.with_input_schema::<ListModelsArgs>().with_output_schema::<ModelList>(),
            Self::ListSessions => {
                tool.with_input_schema::<ListSessionsArgs>().with_output_schema::<SessionList>()
            }
        }
    }

    /// Whether a call changes nothing that is saved.
    fn is_read_only(self) -> bool {
        match self {
            Self::Chat => false,
            Self::GenerateText
            | Self::CountTokens
            | Self::GetModelInfo
            | Self::ListModels
            | Self::ListSessions => true,
        }
    }

    /// What clients get to know of it.
    pub fn definition(self) -> Tool {
        let hints =
            ToolAnnotations::new().read_only(self.is_read_only()).destructive(false).open_world(false);
        let tool = Tool::new(self.name(), self.description(), JsonObject::new());
        let mut tool = self.with_schemas(tool.with_title(self.title()).with_annotations(hints));
        // Model servers refuse an object without the field, even where it has no properties.
        Arc::make_mut(&mut tool.input_schema).entry("properties").or_insert_with(|| json!({}));
        remove_number_formats(&mut tool.input_schema);
        if let Some(schema) = &mut tool.output_schema {
            remove_number_formats(schema);
        }
        tool
    }
}

/// Removes the names of Rust's number types from a schema: clients warn about formats that they do not know. Its bounds
/// say the same.
fn remove_number_formats(schema: &mut Arc<JsonObject>) {
    let is_number = |kind: &Value| matches!(kind.as_str(), Some("integer" | "number"));
    let mut remove = RecursiveTransform(|part: &mut Schema| {
        let kinds = part.get("type").map(|kind| kind.as_array().map_or(slice::from_ref(kind), Vec::as_slice));
        if kinds.is_some_and(|kinds| kinds.iter().any(is_number)) {
            part.remove("format");
        }
    });
    let mut whole = Schema::from(mem::take(Arc::make_mut(schema)));
    remove.transform(&mut whole);
    *schema = Arc::new(mem::take(whole.ensure_object()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_is_found_by_its_name() {
        for tool in ToolName::ALL {
            assert_eq!(ToolName::of_name(tool.name()), Some(tool));
        }
        assert_eq!(ToolName::of_name("generate-text"), None);
    }

    #[test]
    fn schemas_are_objects_whose_required_properties_exist() {
        for tool in ToolName::ALL {
            let definition = serde_json::to_value(tool.definition()).unwrap();
            for schema in [&definition["inputSchema"], &definition["outputSchema"]] {
                assert_eq!(schema["type"], "object", "{tool:?}");
                assert!(!schema.to_string().contains("$ref"), "models read a schema in one piece: {tool:?}");
                for number in ["int", "uint", "float", "double"] {
                    let format = format!("\"format\":\"{number}");
                    assert!(!schema.to_string().contains(&format), "clients warn about it: {schema}");
                }
                let properties = schema["properties"].as_object().unwrap();
                for name in schema["required"].as_array().into_iter().flatten() {
                    assert!(properties.contains_key(name.as_str().unwrap()), "{tool:?}: {name}");
                }
            }
            assert_eq!(definition["inputSchema"]["additionalProperties"], false, "{tool:?}");
        }
    }

    #[test]
    fn schemas_name_what_is_required_and_what_is_the_default() {
        let input = |tool: ToolName| Value::Object(tool.definition().input_schema.as_ref().clone());
        let generate = input(ToolName::GenerateText);
        assert_eq!(generate["required"], json!(["prompt"]));
        let max_tokens = &generate["properties"]["max_tokens"];
        assert_eq!((&max_tokens["minimum"], &max_tokens["default"]), (&json!(1), &json!(100)));
        assert_eq!(generate["properties"]["temperature"]["default"], 0.7);
        let messages = &input(ToolName::Chat)["properties"]["messages"];
        assert_eq!(messages["items"]["required"], json!(["role", "content"]), "{messages}");
        let output = ToolName::Chat.definition().output_schema.unwrap();
        assert_eq!(output["properties"]["session"]["type"], json!(["string", "null"]));
        assert!(output["required"].as_array().unwrap().contains(&json!("text")), "{output:?}");
    }
}
