//! Arguments of tools that HTTP headers repeat, because the tool's schema says so with `x-mcp-header` (MCP 2026-07-28).

use std::collections::{HashMap, HashSet};

use reqwest::header::{HeaderName, HeaderValue};
use serde_json::Value;

use super::stateless::header_value;

const ANNOTATION: &str = "x-mcp-header";
const PREFIX: &str = "mcp-param-";

/// Objects within objects of a schema that are searched.
const MAX_DEPTH: usize = 8;

/// One argument that a header repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ParamHeader {
    /// Names of properties, the outermost first.
    path: Vec<String>,
    name: HeaderName,
}

/// The headers of all tools, by the tool's name.
#[derive(Debug, Default)]
pub struct ParamHeaders(HashMap<String, Vec<ParamHeader>>);

impl ParamHeaders {
    /// Reads the annotations of listed tools. Tools with an invalid annotation are removed from the list.
    pub fn read(server: &str, tools: &mut Vec<Value>) -> Self {
        let mut all = HashMap::new();
        tools.retain(|tool| {
            let name = tool["name"].as_str().unwrap_or_default();
            match headers_of_schema(&tool["inputSchema"]) {
                Ok(headers) if headers.is_empty() => true,
                Ok(headers) => {
                    all.insert(name.to_owned(), headers);
                    true
                }
                Err(why) => {
                    tracing::warn!(server, "the tool {name} is left out: {why}");
                    false
                }
            }
        });
        Self(all)
    }

    /// The headers of a call. Arguments that are missing or null have none.
    pub fn of(&self, message: &Value) -> Vec<(HeaderName, HeaderValue)> {
        let params = &message["params"];
        let is_call = message["method"] == "tools/call";
        let headers = params["name"].as_str().filter(|_| is_call).and_then(|name| self.0.get(name));
        let value = |header: &ParamHeader| {
            let argument = header.path.iter().try_fold(&params["arguments"], |value, key| value.get(key))?;
            let text = match argument {
                Value::String(text) => text.clone(),
                Value::Bool(_) | Value::Number(_) => argument.to_string(),
                Value::Null | Value::Array(_) | Value::Object(_) => return None,
            };
            Some((header.name.clone(), header_value(&text)?))
        };
        headers.into_iter().flatten().filter_map(value).collect()
    }
}

/// Errors: an annotation that is not valid.
fn headers_of_schema(schema: &Value) -> Result<Vec<ParamHeader>, String> {
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    collect(schema, &mut Vec::new(), &mut found)?;
    match found.iter().find(|header| !seen.insert(header.name.as_str())) {
        Some(twice) => Err(format!("two arguments have the header {}", twice.name)),
        None => Ok(found),
    }
}

fn collect(schema: &Value, path: &mut Vec<String>, found: &mut Vec<ParamHeader>) -> Result<(), String> {
    if path.len() >= MAX_DEPTH {
        return Ok(());
    }
    for (key, property) in schema["properties"].as_object().into_iter().flatten() {
        path.push(key.clone());
        match property.get(ANNOTATION) {
            Some(annotation) => {
                found.push(ParamHeader { path: path.clone(), name: name_of(annotation, property)? })
            }
            None => collect(property, path, found)?,
        }
        path.pop();
    }
    Ok(())
}

/// The header of an annotated property: a token of RFC 9110, on a property of a primitive type.
fn name_of(annotation: &Value, property: &Value) -> Result<HeaderName, String> {
    let kind = property["type"].as_str().unwrap_or_default();
    if !["string", "integer", "boolean"].contains(&kind) {
        return Err(format!("{ANNOTATION} stands on the type \"{kind}\""));
    }
    let name =
        annotation.as_str().filter(|name| !name.is_empty()).ok_or(format!("{ANNOTATION} has no name"))?;
    let invalid = |_| format!("\"{}\" is not the name of a header", name.escape_debug());
    HeaderName::try_from(format!("{PREFIX}{name}")).map_err(invalid)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(name: &str, properties: Value) -> Value {
        json!({ "name": name, "inputSchema": { "type": "object", "properties": properties } })
    }

    #[test]
    fn annotated_arguments_are_repeated() {
        let annotated = |kind: &str, header: &str| json!({ "type": kind, "x-mcp-header": header });
        let nested = json!({ "type": "object", "properties": { "b": annotated("string", "Inner") } });
        let properties = json!({
            "region": annotated("string", "Region"), "n": annotated("integer", "Count"),
            "flag": annotated("boolean", "Flag"), "none": annotated("string", "None"), "a": nested,
            "query": { "type": "string" },
        });
        let mut tools = vec![tool("find", properties)];
        let headers = ParamHeaders::read("lab", &mut tools);
        let arguments = json!({
            "region": " a\n", "n": 42, "flag": false, "none": null, "query": "x", "a": { "b": "in" },
        });
        let call = |name: &str| json!({ "method": "tools/call", "params": { "name": name, "arguments": arguments } });
        let mut sent: Vec<_> = headers.of(&call("find"));
        sent.sort_by(|a, b| a.0.as_str().cmp(b.0.as_str()));
        let sent: Vec<_> =
            sent.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        let expected = [
            ("mcp-param-count", "42"),
            ("mcp-param-flag", "false"),
            ("mcp-param-inner", "in"),
            ("mcp-param-region", "=?base64?IGEK?="),
        ];
        assert_eq!(sent, expected);
        assert!(headers.of(&call("other")).is_empty());
    }

    #[test]
    fn tools_with_an_invalid_annotation_are_left_out() {
        let one = |kind: &str, header: Value| json!({ "a": { "type": kind, "x-mcp-header": header } });
        let two = json!({
            "a": { "type": "string", "x-mcp-header": "Name" }, "b": { "type": "string", "x-mcp-header": "name" },
        });
        let mut tools = vec![
            tool("empty", one("string", json!(""))),
            tool("space", one("string", json!("a b"))),
            tool("colon", one("string", json!("a:b"))),
            tool("umlaut", one("string", json!("ä"))),
            tool("control", one("string", json!("a\r\nb"))),
            tool("number", one("string", json!(3))),
            tool("object", one("object", json!("A"))),
            tool("float", one("number", json!("A"))),
            tool("twice", two),
            tool("good", one("string", json!("A"))),
            json!({ "name": "plain" }),
        ];
        ParamHeaders::read("lab", &mut tools);
        let left: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(left, ["good", "plain"]);
    }
}
