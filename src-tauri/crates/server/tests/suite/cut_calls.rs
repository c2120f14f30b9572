//! Tool calls that a limit of tokens cuts, in each interface.
#![allow(clippy::unwrap_used)] // a test

use serde_json::{Value, json};

use crate::fixture::{Answer, Fixture};

/// Data of named server-sent events.
fn named_events(answer: &Answer) -> Vec<Value> {
    let data = answer.body.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

/// The text of a message that names so long a list of things that a call of it is cut.
fn forced_call(choice: &Value, limit: &str) -> Value {
    let parameters = json!({
        "type": "object", "required": ["list"], "additionalProperties": false,
        "properties": { "list": { "type": "array", "minItems": 200, "items": { "type": "string", "minLength": 4 } } },
    });
    let function = json!({ "name": "keep_words", "description": "Keeps words", "parameters": parameters });
    let mut body = json!({
        "model": "starter", "temperature": 0, "tool_choice": choice,
        "messages": [{ "role": "user", "content": "Hello" }],
    });
    body[limit] = json!(40);
    body["tools"] = json!([{ "type": "function", "function": function }]);
    if limit == "max_output_tokens" {
        body["input"] = body["messages"].take();
    }
    body
}

/// Checks that a text is the beginning of the arguments, and no more.
fn check_beginning(arguments: &Value) -> String {
    let arguments = arguments.as_str().unwrap().to_owned();
    let dense: String = arguments.chars().filter(|c| !c.is_whitespace()).collect();
    assert!(dense.starts_with("{\"list\""), "{arguments}");
    assert!(serde_json::from_str::<Value>(&arguments).is_err(), "it is cut: {arguments}");
    arguments
}

#[test]
fn a_forced_call_that_is_cut_is_a_call_for_openais_clients() {
    let server = Fixture::new("cut-openai");
    let named = json!({ "type": "function", "function": { "name": "keep_words" } });
    for choice in [json!("required"), named] {
        let mut body = forced_call(&choice, "max_completion_tokens");
        let whole = server.ask("POST", "/v1/chat/completions", &body).json();
        let choice = &whole["choices"][0];
        assert_eq!(
            (&choice["finish_reason"], &choice["message"]["content"]),
            (&json!("length"), &Value::Null)
        );
        let call = &choice["message"]["tool_calls"][0]["function"];
        assert_eq!(call["name"], "keep_words", "{whole}");
        let arguments = check_beginning(&call["arguments"]);
        body["stream"] = json!(true);
        let streamed = server.ask("POST", "/v1/chat/completions", &body);
        let chunks: Vec<Value> =
            streamed.events().iter().filter_map(|event| serde_json::from_str(event).ok()).collect();
        let text = |chunk: &Value| chunk["choices"][0]["delta"]["content"].as_str().map(str::to_owned);
        assert_eq!(chunks.iter().filter_map(text).collect::<String>(), "");
        let calls: Vec<&Value> =
            chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"].get("tool_calls")).collect();
        assert_eq!(calls.len(), 1, "{streamed:?}");
        assert_eq!(calls[0][0]["function"]["arguments"], json!(arguments));
        let ends = |chunk: &&Value| chunk["choices"][0]["finish_reason"].is_string();
        assert_eq!(chunks.iter().find(ends).unwrap()["choices"][0]["finish_reason"], "length");
    }
    let body = forced_call(&json!("required"), "max_output_tokens");
    let response = server.ask("POST", "/v1/responses", &body).json();
    assert_eq!(response["status"], "incomplete", "{response}");
    assert_eq!(response["incomplete_details"], json!({ "reason": "max_output_tokens" }));
    let calls: Vec<&Value> =
        response["output"].as_array().unwrap().iter().filter(|item| item["type"] != "reasoning").collect();
    assert_eq!((calls.len(), &calls[0]["type"]), (1, &json!("function_call")), "{response}");
    assert_eq!(calls[0]["status"], "incomplete");
    check_beginning(&calls[0]["arguments"]);
}

#[test]
fn a_forced_call_that_is_cut_is_a_call_for_other_clients() {
    let server = Fixture::new("cut-others");
    let mut body = forced_call(&json!({ "type": "any" }), "max_tokens");
    let function = body["tools"][0]["function"].take();
    body["tools"] = json!([{ "name": function["name"], "input_schema": function["parameters"] }]);
    let whole = server.ask("POST", "/v1/messages", &body).json();
    assert_eq!(whole["stop_reason"], "max_tokens");
    let blocks = whole["content"].as_array().unwrap();
    assert_eq!((blocks.len(), &blocks[0]["type"]), (1, &json!("tool_use")), "{whole}");
    assert!(blocks[0]["input"].is_object(), "what came whole: {whole}");
    body["stream"] = json!(true);
    let events = named_events(&server.ask("POST", "/v1/messages", &body));
    let deltas: Vec<&Value> = events
        .iter()
        .filter(|event| event["type"] == "content_block_delta")
        .map(|event| &event["delta"])
        .collect();
    assert_eq!((deltas.len(), &deltas[0]["type"]), (1, &json!("input_json_delta")), "{events:?}");
    check_beginning(&deltas[0]["partial_json"]);
    let end = events.iter().find(|event| event["type"] == "message_delta").unwrap();
    assert_eq!(end["delta"]["stop_reason"], "max_tokens");
}
