//! Tool calls, and what a request's tools say about their arguments.

use serde_json::{Map, Value};

use super::literal::LiteralReader;

/// A function call of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// The model's own id for this call, in notations that have one.
    pub id: Option<String>,
    /// Name of the function.
    pub name: String,
    /// A JSON object; the beginning of one where the reply was cut.
    pub arguments: String,
}

impl ToolCall {
    pub(super) fn new(name: &str, arguments: Map<String, Value>) -> Option<Self> {
        Self::cut(name, Value::Object(arguments).to_string())
    }

    /// A call whose arguments may end early.
    pub(super) fn cut(name: &str, arguments: String) -> Option<Self> {
        let name = name.trim().trim_start_matches("functions.").trim();
        let is_name =
            !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || "<>{}[]()\"'".contains(c));
        is_name.then(|| Self { id: None, name: name.into(), arguments })
    }
}

/// Tools of a request. They tell which arguments are texts, where the notation does not.
#[derive(Debug, Clone, Default)]
pub struct ToolSchemas(Value);

impl ToolSchemas {
    /// Takes the tools of a request: a list of `{"type": "function", "function": {…}}`, or null.
    pub fn new(tools: &Value) -> Self {
        Self(tools.clone())
    }

    /// Returns whether no tool was described.
    pub fn is_empty(&self) -> bool {
        self.0.as_array().is_none_or(Vec::is_empty)
    }

    fn functions(&self) -> impl Iterator<Item = &Value> {
        self.0.as_array().into_iter().flatten().map(|tool| tool.get("function").unwrap_or(tool))
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.functions().filter_map(|function| function["name"].as_str())
    }

    /// Returns the schema of a function's arguments.
    pub(super) fn schema(&self, function: &str) -> ParameterSchema<'_> {
        let found = self.functions().find(|it| it["name"] == function);
        ParameterSchema(found.and_then(|it| it.get("parameters")))
    }

    /// Converts a bare text to the value it stands for.
    pub(super) fn value(&self, function: &str, parameter: &str, text: &str) -> Value {
        self.schema(function).property(parameter).value(text)
    }
}

/// What is known about a value before it is parsed.
#[derive(Debug, Clone, Copy)]
pub struct ParameterSchema<'a>(Option<&'a Value>);

impl ParameterSchema<'_> {
    pub(super) fn property(self, name: &str) -> Self {
        Self(self.0.and_then(|schema| schema.get("properties")?.get(name)))
    }

    pub(super) fn has_property(self, name: &str) -> bool {
        self.property(name).0.is_some()
    }

    pub(super) fn items(self) -> Self {
        Self(self.0.and_then(|schema| schema.get("items")))
    }

    /// Converts a bare text to the value it stands for.
    pub(super) fn value(self, text: &str) -> Value {
        if self.0.is_some_and(|schema| schema["type"] == "string") {
            return Value::String(text.into());
        }
        let mut reader = LiteralReader::new(text);
        // A quoted text keeps its quotes.
        let value = reader.value().filter(|value| reader.is_done() && !value.is_string());
        value.unwrap_or_else(|| Value::String(text.into()))
    }
}

/// Parses the arguments of a call whose name is known.
pub fn parse_arguments(name: &str, arguments: &str) -> Option<ToolCall> {
    let arguments = arguments.trim();
    let value = match arguments {
        "" => Value::Object(Map::new()),
        text => value(text)?,
    };
    ToolCall::new(name, object(value)?)
}

/// Parses all of `text` as one value.
pub(super) fn value(text: &str) -> Option<Value> {
    if let Ok(value) = serde_json::from_str(text) {
        return Some(value);
    }
    let mut reader = LiteralReader::new(text);
    reader.value().filter(|_| reader.is_done())
}

/// Accepts an object or a text that holds one. Nothing is an empty object.
pub(super) fn object(value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(map) => Some(map),
        Value::Null => Some(Map::new()),
        Value::String(text) => match self::value(text.trim())? {
            Value::Object(map) => Some(map),
            _ => None,
        },
        _ => None,
    }
}
