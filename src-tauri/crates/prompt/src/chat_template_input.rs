//! Messages in the forms that chat templates expect. Some want a call's arguments as an object,
//! some as its JSON; some want no content in an answer that only calls, some an empty one. Each
//! form is tried until one renders well; without calls there is only one.

use engine::template::RenderedPrompt;
use serde_json::{Value, json};

use crate::image_runs::ImageForm;
use contract::protocol::PromptMessage;

/// How calls are shown to the template.
#[derive(Clone, Copy)]
struct ContentForm {
    /// Arguments as an object.
    objects: bool,
    /// An answer without words has the content `none`.
    none: bool,
}

const WAYS: [ContentForm; 4] = [
    ContentForm { objects: true, none: true },
    ContentForm { objects: true, none: false },
    ContentForm { objects: false, none: true },
    ContentForm { objects: false, none: false },
];

/// `render` is the template. Error: that of the first way.
pub fn render(
    messages: &[PromptMessage],
    source: &str,
    images: ImageForm,
    render: &dyn Fn(&[Value]) -> engine::Result<RenderedPrompt>,
) -> engine::Result<RenderedPrompt> {
    let values = |way: ContentForm| {
        messages.iter().map(|message| value(message, way, source, images)).collect::<Vec<_>>()
    };
    let mut first = None;
    for way in WAYS {
        let values = values(way);
        let rendered = render(&values);
        let is_well = match &rendered {
            Ok(rendered) => !way.objects || !shows_python(&rendered.text, &values),
            // A template that was stopped would be stopped again.
            Err(error) if ["template.limit", "template.cancelled"].contains(&error.code()) => {
                return rendered;
            }
            Err(_) => false,
        };
        let has_calls = messages.iter().any(|message| !message.tool_calls.is_empty());
        if is_well || !has_calls {
            return rendered;
        }
        first.get_or_insert(rendered);
    }
    first.expect("there are ways")
}

fn value(message: &PromptMessage, way: ContentForm, source: &str, images: ImageForm) -> Value {
    let has_calls = !message.tool_calls.is_empty();
    let mut value = json!({ "role": message.role, "content": images.content(message) });
    // SmolLM3's shows an answer's content alone: what it called has to stand there, as its model writes it.
    if has_calls && !source.contains("tool_calls") {
        value["content"] = json!(with_calls(&message.content, &message.tool_calls));
        return value;
    }
    if has_calls && message.content.is_empty() && way.none {
        value["content"] = Value::Null;
    }
    if !message.reasoning.is_empty() {
        value["reasoning_content"] = json!(message.reasoning);
        // Harmony's name for it; its template refuses it together with the content of an answer
        // that calls.
        if source.contains("message.thinking") && (!has_calls || message.content.is_empty()) {
            value["thinking"] = json!(message.reasoning);
        }
    }
    if has_calls {
        value["tool_calls"] = message.tool_calls.iter().map(|call| self::call(call, way)).collect();
    }
    if let Some(id) = &message.tool_call_id {
        value["tool_call_id"] = json!(id);
    }
    if let Some(name) = &message.name {
        value["name"] = json!(name);
    }
    value
}

/// `<tool_call>` with a name and arguments as JSON, for each call behind the text.
fn with_calls(text: &str, calls: &[Value]) -> String {
    let written = calls.iter().map(|call| {
        let function = &self::call(call, WAYS[0])["function"];
        let call = json!({ "name": function["name"], "arguments": function["arguments"] });
        format!("<tool_call>\n{}\n</tool_call>", spaced(&call))
    });
    let parts = [text].into_iter().filter(|text| !text.is_empty()).map(str::to_owned);
    parts.chain(written).collect::<Vec<_>>().join("\n")
}

/// JSON with spaces behind its signs, as models learn it.
fn spaced(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let entry = |(key, value): (&String, &Value)| format!("{}: {}", json!(key), spaced(value));
            format!("{{{}}}", map.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
        Value::Array(list) => format!("[{}]", list.iter().map(spaced).collect::<Vec<_>>().join(", ")),
        plain => plain.to_string(),
    }
}

fn call(call: &Value, way: ContentForm) -> Value {
    let mut call = call.clone();
    let arguments = &mut call["function"]["arguments"];
    match (way.objects, &*arguments) {
        (true, Value::String(text)) => {
            if let Ok(object @ Value::Object(_)) = serde_json::from_str(text) {
                *arguments = object;
            }
        }
        (false, Value::Object(object)) => *arguments = json!(Value::Object(object.clone()).to_string()),
        _ => {}
    }
    call
}

/// Whether arguments came out as Python shows a dictionary: the template wanted them as JSON.
fn shows_python(text: &str, values: &[Value]) -> bool {
    let calls = values.iter().filter_map(|value| value["tool_calls"].as_array()).flatten();
    let first_keys = calls.filter_map(|call| call["function"]["arguments"].as_object()?.keys().next());
    first_keys.into_iter().any(|key| text.contains(&format!("{{'{key}': ")))
}

#[cfg(test)]
mod tests {
    use engine::template::{ChatTemplate, RenderInput};
    use serde_json::Map;

    use super::*;

    fn check(source: &str, expected: &str) {
        let template = ChatTemplate::from_source(source).unwrap();
        let call =
            json!({"id": "1", "type": "function", "function": {"name": "f", "arguments": "{\"x\": 1}"}});
        let message =
            PromptMessage { role: "assistant".into(), tool_calls: vec![call], ..Default::default() };
        let by = |values: &[Value]| {
            let (tools, kwargs) = (Value::Null, Map::new());
            let (bos_token, eos_token) = ("", "");
            template.render(&RenderInput {
                messages: values,
                tools: &tools,
                kwargs: &kwargs,
                bos_token,
                eos_token,
                now: None,
            })
        };
        assert_eq!(
            render(&[message], source, ImageForm::Parts, &by).map(|it| it.text).as_deref(),
            Ok(expected),
            "{source}"
        );
    }

    #[test]
    fn each_template_gets_calls_as_it_wants_them() {
        let arguments = "messages[0].tool_calls[0].function.arguments";
        check(&format!("{{{{ {arguments} | tojson }}}}"), "{\"x\": 1}");
        check(&format!("{{{{ {arguments} }}}}"), "{\"x\": 1}");
        check(&format!("{{{{ 'a' + {arguments} }}}}"), "a{\"x\": 1}");
        check(&format!("{{% for k, v in {arguments}.items() %}}{{{{ k }}}}{{% endfor %}}"), "x");
        check("{# tool_calls #}{% if messages[0].content is none %}none{% endif %}", "none");
        check("{# tool_calls #}{{ '<' + messages[0].content + '>' }}", "<>");
        // One that knows no calls gets them as text.
        let written = "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n</tool_call>";
        check("{{ messages[0].content }}", written);
    }
}
