//! The events of a stored response, for clients that come when its stream is over.

use serde_json::{Value, json};

/// The events of a response that ended, as its stream had them, with each text whole.
pub fn replay(response: &Value) -> Vec<Value> {
    let mut events = Vec::new();
    let mut add = |kind: &str, mut fields: Value| {
        fields["type"] = json!(kind);
        fields["sequence_number"] = json!(events.len());
        events.push(fields);
    };
    let mut begun = response.clone();
    for (name, value) in [
        ("status", json!("in_progress")),
        ("output", json!([])),
        ("usage", Value::Null),
        ("completed_at", Value::Null),
    ] {
        begun[name] = value;
    }
    add("response.created", json!({ "response": begun }));
    add("response.in_progress", json!({ "response": begun }));
    for (index, item) in response["output"].as_array().into_iter().flatten().enumerate() {
        let mut added = item.clone();
        added["status"] = json!("in_progress");
        if item["type"] == "function_call" {
            added["arguments"] = json!("");
        } else {
            added["content"] = json!([]);
        }
        add("response.output_item.added", json!({ "output_index": index, "item": added }));
        if let Some(arguments) = item["arguments"].as_str() {
            let id = &item["id"];
            let delta = json!({ "item_id": id, "output_index": index, "delta": arguments });
            add("response.function_call_arguments.delta", delta);
            let done = json!({
                "item_id": id, "output_index": index, "name": item["name"], "arguments": arguments,
            });
            add("response.function_call_arguments.done", done);
        }
        for (content_index, part) in item["content"].as_array().into_iter().flatten().enumerate() {
            let place =
                json!({ "item_id": item["id"], "output_index": index, "content_index": content_index });
            let with = |name: &str, value: &Value| {
                let mut fields = place.clone();
                fields[name] = value.clone();
                fields["logprobs"] = json!([]);
                fields
            };
            let name = if item["type"] == "reasoning" { "reasoning_text" } else { "output_text" };
            add("response.content_part.added", with("part", part));
            add(&format!("response.{name}.delta"), with("delta", &part["text"]));
            add(&format!("response.{name}.done"), with("text", &part["text"]));
            add("response.content_part.done", with("part", part));
        }
        add("response.output_item.done", json!({ "output_index": index, "item": item }));
    }
    let kind = match response["status"].as_str() {
        Some("completed") => "response.completed",
        Some("failed") => "response.failed",
        Some(_) | None => "response.incomplete",
    };
    add(kind, json!({ "response": response }));
    events
}
