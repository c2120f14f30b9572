//! The tools on offer: names, descriptions, and schemas of arguments and results.

use serde_json::{Value, json};

use crate::arguments::{DEFAULT_LIMIT, DEFAULT_MAX_TOKENS, DEFAULT_TEMPERATURE};

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

    fn input(self) -> Value {
        match self {
            Self::GenerateText => arguments(generate_text_input(), &["prompt"]),
            Self::Chat => arguments(chat_input(), &[]),
            Self::CountTokens => {
                arguments(json!({ "text": { "type": "string" }, "model": model_input() }), &["text"])
            }
            Self::GetModelInfo => arguments(json!({ "model": model_input() }), &[]),
            Self::ListModels => arguments(json!({}), &[]),
            Self::ListSessions => arguments(
                json!({ "limit": { "type": "integer", "minimum": 0, "default": DEFAULT_LIMIT,
                                   "description": "Most chats to list." } }),
                &[],
            ),
        }
    }

    fn output(self) -> Value {
        match self {
            Self::GenerateText => result(answer_output(json!({}))),
            Self::Chat => result(answer_output(json!({
                "session": { "type": ["string", "null"], "description": "The saved chat; null: not saved." },
            }))),
            Self::CountTokens => result(json!({ "count": count_output() })),
            Self::GetModelInfo => result(json!({
                "id": text_output(),
                "name": text_output(),
                "parameters": count_output(),
                "architecture": text_output(),
                "max_context": { "type": "integer", "minimum": 0, "description": "In tokens; 0: unknown." },
                "backend": { "type": "string", "enum": ["cpu", "gpu", "scalar"] },
            })),
            Self::ListModels => result(json!({ "models": { "type": "array", "items": result(json!({
                "id": text_output(),
                "name": text_output(),
                "parameters": count_output(),
                "architecture": text_output(),
                "max_context": count_output(),
                "format": text_output(),
                "bytes": count_output(),
                "is_loaded": { "type": "boolean" },
                "is_embedding_model": { "type": "boolean" },
            })) } })),
            Self::ListSessions => result(json!({ "sessions": { "type": "array", "items": result(json!({
                "id": text_output(),
                "title": text_output(),
                "model": text_output(),
                "created_ms": { "type": "integer", "description": "Since the Unix epoch, UTC." },
                "updated_ms": { "type": "integer", "description": "Since the Unix epoch, UTC." },
                "uri": { "type": "string", "description": "Of the resource that holds the chat as Markdown." },
            })) } })),
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

    /// The description that clients get.
    pub fn description_value(self) -> Value {
        json!({
            "name": self.name(),
            "title": self.title(),
            "description": self.description(),
            "inputSchema": self.input(),
            "outputSchema": self.output(),
            "annotations": {
                "readOnlyHint": self.is_read_only(),
                "destructiveHint": false,
                "openWorldHint": false,
            },
        })
    }
}

fn generate_text_input() -> Value {
    json!({
        "prompt": { "type": "string" },
        "max_tokens": { "type": "integer", "minimum": 1, "default": DEFAULT_MAX_TOKENS,
                        "description": "Longest answer, in tokens." },
        "temperature": { "type": "number", "minimum": 0, "default": DEFAULT_TEMPERATURE,
                         "description": "0 always picks the most likely token." },
        "stream": stream_input(),
        "model": model_input(),
        "raw": { "type": "boolean", "default": false,
                 "description": "Continues the prompt as it is, without a chat template." },
        "seed": seed_input(),
        "stop": { "type": "array", "items": { "type": "string" }, "default": [],
                  "description": "Texts that end the answer." },
    })
}

fn chat_input() -> Value {
    json!({
        "messages": { "type": "array", "minItems": 1, "items": {
            "type": "object",
            "properties": {
                "role": { "type": "string", "enum": ["system", "user", "assistant"] },
                "content": { "type": "string" },
            },
            "required": ["role", "content"],
            "additionalProperties": false,
        }, "description": "A whole chat, the question last. It is not saved." },
        "message": { "type": "string", "description": "One message of a saved chat." },
        "session": { "type": "string", "description": "Id of the saved chat; absent: a new one." },
        "system": { "type": "string", "description": "System prompt. A saved chat keeps its own." },
        "max_tokens": { "type": "integer", "minimum": 1, "description": "Longest answer, in tokens." },
        "temperature": { "type": "number", "minimum": 0 },
        "stream": stream_input(),
        "model": model_input(),
        "seed": seed_input(),
    })
}

fn answer_output(more: Value) -> Value {
    let mut properties = json!({
        "text": text_output(),
        "reasoning": { "type": "string", "description": "What the model thought before it answered." },
        "finish": { "type": "string", "enum": ["stop", "tool_calls", "length", "cancelled", "context_full", "time_up"] },
        "model": text_output(),
        "prompt_tokens": count_output(),
        "generated_tokens": count_output(),
    });
    if let (Value::Object(properties), Value::Object(more)) = (&mut properties, more) {
        properties.extend(more);
    }
    properties
}

fn model_input() -> Value {
    json!({ "type": "string", "description": "Id as `list_models` gives it; absent: the default model." })
}

fn seed_input() -> Value {
    json!({ "type": "integer", "minimum": 0, "description": "The same seed and prompt give the same answer." })
}

fn stream_input() -> Value {
    json!({ "type": "boolean", "default": false,
            "description": "Progress notifications carry the text while it is written." })
}

fn text_output() -> Value {
    json!({ "type": "string" })
}

fn count_output() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

fn arguments(properties: Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

/// An object whose properties are all required.
fn result(properties: Value) -> Value {
    let required: Vec<&String> = properties.as_object().into_iter().flatten().map(|(name, _)| name).collect();
    json!({ "type": "object", "properties": properties, "required": required })
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
            for schema in [tool.input(), tool.output()] {
                assert_eq!(schema["type"], "object", "{tool:?}");
                for name in schema["required"].as_array().unwrap() {
                    assert!(schema["properties"].get(name.as_str().unwrap()).is_some(), "{tool:?}: {name}");
                }
            }
        }
    }
}
