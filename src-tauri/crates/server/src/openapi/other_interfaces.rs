//! The operations of other programs' interfaces, and their schemas.

use serde_json::{Value, json};

use super::contents;
use super::operations::ResponseKind::{Json, JsonOrEvents, JsonOrLines, Lines};
use super::operations::{Operation, delete, get, post};
use super::shapes::{self, count, integer, number, object, optional, text};

const fn anthropic(operation: Operation) -> Operation {
    Operation { tag: "Anthropic", ..operation }
}

const fn ollama(operation: Operation) -> Operation {
    Operation { tag: "Ollama", ..operation }
}

const fn llama_cpp(operation: Operation) -> Operation {
    Operation { tag: "llama.cpp", ..operation }
}

/// All of them. What downloads and deletes models is left out: programs that try every operation would do so.
pub static OTHER_OPERATIONS: &[Operation] = &[
    anthropic(post(
        "/v1/messages",
        "Answers a conversation.",
        Some("MessagesRequest"),
        JsonOrEvents("Message"),
    )),
    anthropic(post(
        "/v1/messages/count_tokens",
        "Counts the tokens of a conversation.",
        Some("MessagesRequest"),
        Json("InputTokens"),
    )),
    anthropic(post(
        "/v1/messages/batches",
        "Answers many conversations while no client waits.",
        Some("BatchRequest"),
        Json("MessageBatch"),
    )),
    anthropic(Operation {
        query: &["limit", "after_id", "before_id"],
        ..get("/v1/messages/batches", "Lists batches.", Json("BatchList"))
    }),
    anthropic(get("/v1/messages/batches/{id}", "Reads how far a batch is.", Json("MessageBatch"))),
    anthropic(Operation {
        response: Json("Object"),
        ..delete("/v1/messages/batches/{id}", "Deletes a batch that has ended.")
    }),
    anthropic(post(
        "/v1/messages/batches/{id}/cancel",
        "Begins no more of a batch.",
        None,
        Json("MessageBatch"),
    )),
    anthropic(get(
        "/v1/messages/batches/{id}/results",
        "Reads the answers of a batch that has ended.",
        Lines,
    )),
    ollama(post(
        "/api/chat",
        "Answers a conversation.",
        Some("OllamaChatRequest"),
        JsonOrLines("OllamaAnswer"),
    )),
    ollama(post(
        "/api/generate",
        "Answers a prompt, or loads a model.",
        Some("OllamaGenerateRequest"),
        JsonOrLines("OllamaAnswer"),
    )),
    ollama(post("/api/embed", "Computes embedding vectors.", Some("OllamaEmbedRequest"), Json("Object"))),
    ollama(post(
        "/api/embeddings",
        "Computes the embedding vector of a text.",
        Some("OllamaEmbeddingsRequest"),
        Json("Object"),
    )),
    ollama(get("/api/tags", "Lists the models of this machine.", Json("OllamaModels"))),
    ollama(get("/api/ps", "Lists the models in memory.", Json("OllamaModels"))),
    ollama(post("/api/show", "Describes a model.", Some("OllamaModelName"), Json("Object"))),
    ollama(get("/api/version", "Reads the version of Ollama's interface.", Json("Object"))),
    llama_cpp(post("/completion", "Continues a text.", Some("LlamaCppRequest"), JsonOrEvents("Anything"))),
    llama_cpp(post("/completions", "Continues a text.", Some("LlamaCppRequest"), JsonOrEvents("Anything"))),
    llama_cpp(post("/infill", "Fills a gap in a text.", Some("InfillRequest"), JsonOrEvents("Object"))),
    llama_cpp(post(
        "/tokenize",
        "Splits a text into tokens, or counts those of messages.",
        Some("TokenizeRequest"),
        Json("Object"),
    )),
    llama_cpp(post("/detokenize", "Writes the text of tokens.", Some("DetokenizeRequest"), Json("Object"))),
    llama_cpp(post(
        "/apply-template",
        "Renders a conversation with the model's chat template.",
        Some("TemplateRequest"),
        Json("Object"),
    )),
    llama_cpp(get("/props", "Reads the default model's settings.", Json("Object"))),
];

/// The schema of an interface's errors.
pub fn error_schema(tag: &str) -> &'static str {
    match tag {
        "Anthropic" => "AnthropicError",
        "Ollama" => "OllamaError",
        "llama.cpp" => "LlamaCppError",
        _ => "Error",
    }
}

/// The schemas by name.
pub fn schemas() -> Value {
    let any_object = || json!({ "type": "object" });
    let named = object(json!({ "type": text(), "message": text() }), &["type", "message"]);
    let file = object(json!({ "filename": text(), "text": text() }), &["text"]);
    json!({
        "AnthropicError": object(json!({ "type": { "const": "error" }, "error": named }), &["type", "error"]),
        "OllamaError": object(json!({ "error": { "type": ["string", "object"] } }), &["error"]),
        "LlamaCppError": object(
            json!({ "error": object(json!({ "code": { "type": ["integer", "string", "null"] }, "message": text() }), &["message"]) }),
            &["error"],
        ),
        "MessagesRequest": messages_request(),
        "Message": object(
            json!({
                "id": text(), "type": { "const": "message" }, "role": { "const": "assistant" }, "model": text(),
                "content": { "type": "array", "items": any_object() }, "usage": any_object(),
            }),
            &["id", "type", "role", "model", "content", "usage"],
        ),
        "BatchRequest": object(
            json!({ "requests": { "type": "array", "items": batch_part(), "minItems": 1, "maxItems": 10_000, "uniqueItems": true } }),
            &["requests"],
        ),
        "MessageBatch": batch(),
        "BatchList": object(json!({ "data": { "type": "array", "items": batch() } }), &["data"]),
        "OllamaChatRequest": ollama_request(&json!({ "messages": contents::messages(0), "tools": shapes::chat_tools() })),
        "OllamaGenerateRequest": ollama_request(&json!({
            "prompt": optional("string"), "system": optional("string"), "suffix": optional("string"),
            "raw": optional("boolean"),
        })),
        "OllamaAnswer": object(
            json!({ "model": text(), "created_at": text(), "done": { "type": "boolean" } }),
            &["model", "created_at", "done"],
        ),
        "OllamaModels": object(json!({ "models": { "type": "array", "items": any_object() } }), &["models"]),
        "OllamaModelName": object(json!({ "model": model_name() }), &["model"]),
        "OllamaEmbedRequest": object(
            json!({ "model": model_name(), "input": embedded() }),
            &["model"],
        ),
        "OllamaEmbeddingsRequest": object(json!({ "model": model_name(), "prompt": text() }), &["model", "prompt"]),
        "LlamaCppRequest": llama_cpp_request(&json!({ "prompt": llama_cpp_prompt() }), &["prompt"]),
        "InfillRequest": llama_cpp_request(
            &json!({
                "input_prefix": text(), "input_suffix": text(), "prompt": optional("string"),
                "input_extra": { "type": ["array", "null"], "items": file },
            }),
            &["input_prefix", "input_suffix"],
        ),
        "TokenizeRequest": tokenize_request(),
        "DetokenizeRequest": object(
            json!({ "model": optional("string"), "tokens": { "type": "array", "items": token() } }),
            &[],
        ),
        "TemplateRequest": object(
            json!({
                "model": optional("string"), "messages": contents::messages(1), "add_generation_prompt": optional("boolean"),
                "chat_template_kwargs": optional("object"), "tools": shapes::chat_tools(),
            }),
            &["messages"],
        ),
    })
}

fn tokenize_request() -> Value {
    let mut request = object(
        json!({
            "model": optional("string"), "content": { "anyOf": [mixed(), { "type": "null" }] },
            "add_special": optional("boolean"), "parse_special": optional("boolean"),
            "with_pieces": optional("boolean"),
        }),
        &[],
    );
    let of_messages = object(json!({ "messages": contents::messages(1) }), &["messages"]);
    request["anyOf"] = json!([{ "required": ["content"] }, of_messages]);
    request
}

fn token() -> Value {
    json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX })
}

/// A text, or tokens with texts between them.
fn mixed() -> Value {
    json!({ "anyOf": [text(), { "type": "array", "items": { "anyOf": [text(), token()] } }] })
}

/// A text, tokens, an object with a text, or a list of these.
fn llama_cpp_prompt() -> Value {
    let with_text = object(json!({ "prompt_string": text() }), &["prompt_string"]);
    let list = json!({ "type": "array", "minItems": 1, "maxItems": 128, "items": { "anyOf": [mixed(), with_text] } });
    json!({ "anyOf": [mixed(), with_text, list] })
}

/// Biases of tokens or of the tokens of texts. `false`: it must not appear.
fn llama_cpp_biases() -> Value {
    let bias = json!({ "anyOf": [{ "type": "number" }, { "const": false }] });
    let pair = json!([{ "anyOf": [text(), token()] }, bias]);
    let pair = json!({ "type": "array", "minItems": 2, "maxItems": 2, "prefixItems": pair });
    json!({ "anyOf": [
        { "type": "array", "items": pair }, { "type": "object", "additionalProperties": bias }, { "type": "null" },
    ] })
}

fn anthropic_choice() -> Value {
    let mut choice = object(json!({ "type": { "enum": ["auto", "any", "none"] } }), &["type"]);
    choice["type"] = json!(["object", "null"]);
    choice
}

fn batch_part() -> Value {
    let name = json!({ "type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$" });
    object(json!({ "custom_id": name, "params": { "type": "object" } }), &["custom_id", "params"])
}

fn batch() -> Value {
    object(
        json!({
            "id": text(), "type": { "const": "message_batch" }, "request_counts": { "type": "object" },
            "processing_status": { "enum": ["in_progress", "canceling", "ended"] },
        }),
        &["id", "type", "request_counts", "processing_status"],
    )
}

/// Ollama's interface needs a name.
fn model_name() -> Value {
    json!({ "type": "string", "minLength": 1 })
}

/// A text, some texts, or null.
fn some_texts() -> Value {
    json!({ "anyOf": [optional("string"), { "type": "array", "items": text(), "maxItems": 64 }] })
}

/// One text or several.
fn embedded() -> Value {
    json!({ "anyOf": [text(), { "type": "array", "items": text(), "maxItems": 2048 }] })
}

fn messages_request() -> Value {
    let thinking = object(
        json!({ "type": { "enum": ["enabled", "disabled", "adaptive"] }, "budget_tokens": count(0) }),
        &["type"],
    );
    let effort = json!({ "enum": ["low", "medium", "high", "xhigh", "max", null] });
    let mut request = object(
        json!({
            "model": optional("string"), "messages": contents::anthropic_messages(), "max_tokens": count(1),
            "system": { "anyOf": [contents::content(&["text"]), { "type": "null" }] },
            "temperature": number(0.0, 2.0), "top_p": number(0.0, 1.0), "top_k": count(0),
            "stop_sequences": some_texts(),
            "stream": optional("boolean"), "tools": shapes::anthropic_tools(), "tool_choice": anthropic_choice(),
            "thinking": { "anyOf": [thinking, { "type": "null" }] },
            "output_config": { "type": ["object", "null"], "properties": { "effort": effort } },
        }),
        &["messages"],
    );
    let is_free =
        json!({ "type": ["object", "null"], "properties": { "type": { "enum": ["auto", "none"] } } });
    let free = json!({ "properties": { "tool_choice": is_free } });
    request["anyOf"] = json!([free, contents::with_tools()]);
    request
}

/// Fields of every request to Ollama's interface that answers, and others.
fn ollama_request(properties: &Value) -> Value {
    let shared = json!({
        "model": model_name(), "stream": optional("boolean"), "options": optional("object"),
        "format": { "anyOf": [{ "enum": ["", "json", null] }, { "type": "object" }] },
        "think": { "enum": [true, false, "low", "medium", "high", null] },
        "keep_alive": { "type": ["number", "string", "null"], "pattern": "^-?([0-9]{1,9}(ms|s|m|h))+$" },
    });
    object(shapes::merged(shared, properties), &["model"])
}

/// Fields of every request to llama.cpp's interface that answers, and others.
fn llama_cpp_request(properties: &Value, required: &[&str]) -> Value {
    let shared = json!({
        "model": optional("string"), "n_predict": count(-1), "max_tokens": count(-1),
        "max_completion_tokens": count(-1), "n": integer(1, 1), "n_cmpl": integer(1, 1), "temperature": { "type": ["number", "null"], "maximum": 2 },
        "top_k": optional("integer"), "top_p": number(0.0, 1.0), "min_p": number(0.0, 1.0),
        "repeat_penalty": number(0.5, 2.0), "presence_penalty": number(-2.0, 2.0),
        "frequency_penalty": number(-2.0, 2.0), "seed": optional("integer"),
        "stop": some_texts(),
        "n_probs": integer(0, 100), "post_sampling_probs": optional("boolean"), "stream": optional("boolean"),
        "ignore_eos": optional("boolean"),
        "json_schema": optional("object"),
        "return_tokens": optional("boolean"),
        "response_fields": some_texts(),
        "logit_bias": llama_cpp_biases(),
    });
    object(shapes::merged(shapes::merged(shared, &shapes::samplers()), properties), required)
}
