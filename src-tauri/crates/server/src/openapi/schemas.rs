//! Schemas of the OpenAPI document. Requests have the ranges that the parsers check. Fields that are not listed are
//! ignored, or described in docs/HTTP.md alone.

use serde_json::{Value, json};

use super::contents;
use super::shapes::{self, closed, count, integer, number, object, optional, text};

/// The schemas of OpenAI's interface and the application's by name.
pub fn all() -> Value {
    json!({
        "Error": error(),
        "Object": { "type": "object" },
        "Anything": {},
        "Arguments": { "type": ["object", "null"] },
        "TuneRequest": tune_request(),
        "Metadata": object(json!({ "metadata": metadata() }), &[]),
        "ChatRequest": chat_request(),
        "CompletionRequest": completion_request(),
        "ResponseRequest": response_request(),
        "ConversationRequest": object(json!({ "items": items(), "metadata": metadata() }), &[]),
        "ItemsRequest": object(json!({ "items": some_items() }), &["items"]),
        "EmbeddingsRequest": embeddings_request(),
        "RerankRequest": rerank_request(),
        "ModelList": list("Model"),
        "Model": object(json!({ "id": text(), "object": { "const": "model" } }), &["id", "object"]),
        "List": object(json!({ "object": { "const": "list" }, "data": { "type": "array" } }), &["object", "data"]),
        "Deleted": object(json!({ "id": text(), "deleted": { "const": true } }), &["id", "deleted"]),
        "ChatCompletion": answer("chat.completion"),
        "Completion": answer("text_completion"),
        "Response": object(
            json!({ "id": text(), "object": { "const": "response" }, "status": text(), "output": { "type": "array" } }),
            &["id", "object", "status", "output"],
        ),
        "InputTokens": object(json!({ "input_tokens": { "type": "integer" } }), &["input_tokens"]),
        "Conversation": object(
            json!({ "id": text(), "object": { "const": "conversation" }, "metadata": { "type": "object" } }),
            &["id", "object", "metadata"],
        ),
        "Embedding": object(
            json!({ "index": { "type": "integer" }, "embedding": { "type": ["array", "string"] } }),
            &["index", "embedding"],
        ),
        "EmbeddingList": list("Embedding"),
        "FileForm": form(json!({ "file": bytes(), "purpose": purpose() }), &["file", "purpose"]),
        "PartForm": form(json!({ "data": bytes() }), &["data"]),
        "File": file(),
        "FileList": list("File"),
        "UploadRequest": object(
            json!({ "bytes": size(), "filename": text(), "mime_type": text(), "purpose": purpose() }),
            &["bytes", "filename", "mime_type", "purpose"],
        ),
        "CompleteRequest": object(json!({ "part_ids": { "type": "array", "items": text() } }), &["part_ids"]),
        "Upload": object(
            json!({ "id": text(), "object": { "const": "upload" }, "status": text() }),
            &["id", "object", "status"],
        ),
        "FileBatchRequest": object(
            json!({
                "input_file_id": text(), "endpoint": { "enum": ["/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses", "/v1/rerank"] },
                "completion_window": { "const": "24h" }, "metadata": metadata(),
            }),
            &["input_file_id", "endpoint", "completion_window"],
        ),
        "Batch": object(
            json!({ "id": text(), "object": { "const": "batch" }, "status": text(), "request_counts": { "type": "object" } }),
            &["id", "object", "status", "request_counts"],
        ),
    })
}

fn size() -> Value {
    json!({ "type": "integer", "minimum": 0, "maximum": api_store::MAX_FILE_BYTES })
}

/// A form, whose names stand in headers, between quotation marks.
fn form(properties: Value, required: &[&str]) -> Value {
    const NAME: &str = r"^([^\x00-\x08\x0b\x0c\x0e-\x1f\x7f]*[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f\\])?$";
    let mut form = object(properties, required);
    form["propertyNames"] = json!({ "pattern": NAME });
    form
}

fn bytes() -> Value {
    json!({ "type": "string", "format": "binary" })
}

fn purpose() -> Value {
    json!({ "enum": ["assistants", "batch", "fine-tune", "vision", "user_data", "evals"] })
}

/// A whole number of 32 bits, or null.
fn u32_from(min: i64) -> Value {
    integer(min, i64::from(u32::MAX))
}

fn tune_request() -> Value {
    let ids = json!({ "type": "array", "items": { "type": "string", "minLength": 1 }, "minItems": 1 });
    let name = json!({ "type": "string", "pattern": "^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$" });
    let data = json!({ "oneOf": [
        closed(json!({ "from": { "const": "path" }, "path": text() })),
        closed(json!({ "from": { "const": "text" }, "name": text(), "text": text() })),
        closed(json!({ "from": { "const": "chats" }, "ids": ids })),
    ] });
    let mut request = object(
        json!({
            "model": text(), "name": name, "data": data, "rank": integer(1, 512), "alpha": optional("number"),
            "lr": optional("number"), "epochs": u32_from(1), "max_tokens": u32_from(2), "step_examples": u32_from(1),
            "seed": count(0),
        }),
        &["model", "name", "data"],
    );
    request["additionalProperties"] = json!(false);
    request
}

fn file() -> Value {
    object(
        json!({
            "id": text(), "object": { "const": "file" }, "bytes": { "type": "integer" }, "filename": text(),
            "created_at": { "type": "integer" }, "purpose": text(),
        }),
        &["id", "object", "bytes", "filename", "created_at", "purpose"],
    )
}

fn list(schema: &str) -> Value {
    let items = json!({ "$ref": format!("#/components/schemas/{schema}") });
    object(
        json!({ "object": { "const": "list" }, "data": { "type": "array", "items": items } }),
        &["object", "data"],
    )
}

fn error() -> Value {
    let fields = json!({ "message": text(), "code": { "type": ["string", "null"] } });
    object(json!({ "error": object(fields, &["message", "code"]) }), &["error"])
}

/// An answer with choices.
fn answer(kind: &str) -> Value {
    object(
        json!({
            "id": text(), "object": { "const": kind }, "created": { "type": "integer" }, "model": text(),
            "choices": { "type": "array" }, "usage": { "type": "object" },
        }),
        &["id", "object", "created", "model", "choices"],
    )
}

fn metadata() -> Value {
    json!({ "type": ["object", "null"], "maxProperties": 16, "additionalProperties": { "type": "string" } })
}

fn items() -> Value {
    json!({ "type": ["array", "null"], "items": contents::item(), "maxItems": 20 })
}

fn some_items() -> Value {
    json!({ "type": "array", "items": contents::item(), "minItems": 1, "maxItems": 20 })
}

fn stop() -> Value {
    json!({ "anyOf": [optional("string"), { "type": "array", "items": text(), "maxItems": 16 }] })
}

fn logit_bias() -> Value {
    let bias = json!({ "type": "number", "minimum": -100, "maximum": 100 });
    let token = json!({ "pattern": "^[0-9]{1,9}$" });
    json!({ "type": ["object", "null"], "propertyNames": token, "additionalProperties": bias, "maxProperties": 1024 })
}

/// Fields of every request that generates text.
fn generation() -> Value {
    let own = json!({
        "model": optional("string"), "stream": optional("boolean"), "seed": optional("integer"), "stop": stop(),
        "temperature": number(0.0, 2.0), "top_p": number(0.0, 1.0), "min_p": number(0.0, 1.0), "top_k": count(0),
        "repeat_penalty": number(0.5, 2.0), "presence_penalty": number(-2.0, 2.0),
        "frequency_penalty": number(-2.0, 2.0), "logit_bias": logit_bias(), "ignore_eos": optional("boolean"),
    });
    shapes::merged(own, &shapes::samplers())
}

/// Those fields, and others.
fn with_generation(properties: &Value, required: &[&str]) -> Value {
    object(shapes::merged(generation(), properties), required)
}

fn stream_options() -> Value {
    json!({ "type": ["object", "null"], "properties": { "include_usage": optional("boolean") } })
}

fn chat_request() -> Value {
    let properties = json!({
        "messages": contents::messages(1),
        "max_completion_tokens": count(-1), "max_tokens": count(-1), "n": integer(1, 128),
        "stream_options": stream_options(), "logprobs": optional("boolean"), "top_logprobs": integer(0, 20),
        "tools": shapes::openai_tools(), "tool_choice": tool_choice(),
        "parallel_tool_calls": optional("boolean"), "response_format": contents::format(false),
        "reasoning_effort": effort(), "reasoning_budget": count(0),
        "chat_template_kwargs": optional("object"), "store": optional("boolean"), "metadata": metadata(),
    });
    let mut request = with_generation(&properties, &["messages"]);
    let without_alternatives = json!({ "properties": { "top_logprobs": { "enum": [0, null] } } });
    let with_probabilities =
        json!({ "properties": { "logprobs": { "const": true } }, "required": ["logprobs"] });
    let alternatives = json!({ "anyOf": [without_alternatives, with_probabilities] });
    request["allOf"] = json!([alternatives, contents::tools_where_demanded()]);
    request
}

fn effort() -> Value {
    json!({ "enum": ["none", "minimal", "low", "medium", "high", "xhigh", "max", null] })
}

fn completion_request() -> Value {
    let token = json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX });
    let tokens = json!({ "type": "array", "minItems": 1, "items": token });
    let several =
        json!({ "type": "array", "minItems": 1, "maxItems": 20, "items": { "anyOf": [text(), tokens] } });
    let properties = json!({
        "prompt": { "anyOf": [{ "type": ["string", "null"] }, tokens, several] },
        "suffix": optional("string"), "echo": optional("boolean"),
        "max_tokens": count(-1), "n": integer(1, 128),
        "logprobs": { "type": ["integer", "boolean", "null"], "minimum": 0, "maximum": 20 },
        "stream_options": stream_options(),
    });
    with_generation(&properties, &[])
}

fn response_request() -> Value {
    let conversation = object(json!({ "id": text() }), &["id"]);
    let properties = json!({
        "input": { "anyOf": [{ "type": ["string", "null"] }, { "type": "array", "items": contents::item() }] },
        "instructions": optional("string"), "previous_response_id": optional("string"),
        "conversation": { "anyOf": [{ "type": ["string", "null"] }, conversation] },
        "max_output_tokens": count(-1), "store": optional("boolean"), "background": optional("boolean"),
        "tools": shapes::openai_tools(), "tool_choice": tool_choice(),
        "parallel_tool_calls": optional("boolean"),
        "reasoning": { "type": ["object", "null"], "properties": { "effort": effort() } },
        "text": { "type": ["object", "null"], "properties": { "format": contents::format(true) } },
        "include": optional("array"), "top_logprobs": integer(0, 20),
        "metadata": metadata(),
    });
    let mut request = with_generation(&properties, &[]);
    let without = |name: &str| json!({ "properties": { name: { "type": "null" } } });
    let one_predecessor = json!({ "anyOf": [without("previous_response_id"), without("conversation")] });
    let stored = json!({ "properties": { "store": { "enum": [true, null] } } });
    let at_once = json!({ "properties": { "background": { "enum": [false, null] } } });
    let kept = json!({ "anyOf": [stored, at_once] });
    request["allOf"] = json!([one_predecessor, kept, contents::tools_where_demanded()]);
    request
}

fn tool_choice() -> Value {
    json!({ "enum": ["none", "auto", "required", "any", null] })
}

fn rerank_request() -> Value {
    let document = json!({ "anyOf": [text(), object(json!({ "text": text() }), &["text"])] });
    let documents = json!({ "type": "array", "minItems": 1, "maxItems": 2048, "items": document });
    let texts = documents.clone();
    let mut request = object(
        json!({
            "model": optional("string"), "query": text(), "documents": documents, "texts": texts, "top_n": u32_from(1),
            "return_documents": optional("boolean"), "return_text": optional("boolean"),
        }),
        &["query"],
    );
    request["anyOf"] = json!([{ "required": ["documents"] }, { "required": ["texts"] }]);
    request
}

fn embeddings_request() -> Value {
    object(
        json!({
            "model": optional("string"), "input": embedded_input(),
            "encoding_format": { "enum": ["float", "base64", null] }, "dimensions": u32_from(1),
        }),
        &["input"],
    )
}

/// A text, an object with one, tokens with texts between them, or a list of these.
fn embedded_input() -> Value {
    let part = object(json!({ "type": { "const": "text" }, "text": text() }), &["type", "text"]);
    let parts = json!({ "type": "array", "items": part });
    let objects = [
        object(json!({ "prompt_string": text() }), &["prompt_string"]),
        object(json!({ "content": parts }), &["content"]),
    ];
    let token = json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX });
    let others = json!({ "anyOf": [token, text()] });
    let tokens = json!({ "type": "array", "minItems": 1, "prefixItems": [token], "items": others });
    let one = [text(), objects[0].clone(), objects[1].clone(), tokens];
    let list = json!({ "type": "array", "minItems": 1, "maxItems": 2048, "items": { "anyOf": one } });
    json!({ "anyOf": [text(), objects[0], objects[1], one[3], list] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_say_what_parsers_take() {
        let all = all();
        // A reranker answers without being named; either list of documents will do.
        assert_eq!(all["RerankRequest"]["required"], json!(["query"]));
        assert_eq!(
            all["RerankRequest"]["anyOf"],
            json!([{ "required": ["documents"] }, { "required": ["texts"] }])
        );
        // Names of functions are free.
        let name = json!({ "type": "string", "minLength": 1 });
        let tools = |request: &str| all[request]["properties"]["tools"]["items"].clone();
        for request in ["ChatRequest", "ResponseRequest"] {
            let forms = &tools(request)["anyOf"];
            assert_eq!(forms[0]["properties"]["function"]["properties"]["name"], name);
            assert_eq!(forms[1]["properties"]["name"], name);
        }
        // -1 searches all tokens.
        let last_n = &all["ChatRequest"]["properties"]["dry_penalty_last_n"];
        assert_eq!((&last_n["minimum"], &last_n["maximum"]), (&json!(-1), &json!(2_147_483_647)));
    }
}
