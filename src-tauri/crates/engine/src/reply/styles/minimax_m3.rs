//! MiniMax M3: elements whose tags follow the token `]<]minimax[>[`. Nested values are elements again; those of lists
//! are called `item`.

use serde_json::{Map, Value};

use super::CallStyle;
use crate::reply::tool_call::{ParameterSchema, ToolCall, ToolSchemas};

pub const STYLE: CallStyle = CallStyle {
    sign: "']<]minimax[>['",
    reasoning: None,
    calls: ("]<]minimax[>[<tool_call>", "]<]minimax[>[</tool_call>"),
    fences: &[],
    inner: &[TOKEN],
    read,
};

/// A tag counts only after this token, so texts may contain tags.
const TOKEN: &str = "]<]minimax[>[";
const ITEM: &str = "item";
/// Deeper than any argument a person would write.
const MAX_DEPTH: usize = 64;

fn read(body: &str, tools: &ToolSchemas) -> Option<Vec<ToolCall>> {
    let mut parts = body.trim().strip_prefix(TOKEN)?.split(TOKEN);
    let mut calls = Vec::new();
    while let Some(part) = parts.next() {
        let (name, text) = part.strip_prefix("<invoke name=\"")?.split_once("\">")?;
        let schema = tools.schema(name);
        let arguments = match value(&mut parts, text, "invoke", schema, 0)? {
            Value::Object(arguments) => arguments,
            Value::String(text) if text.trim().is_empty() => Map::new(),
            _ => return None,
        };
        calls.push(ToolCall::new(name, arguments)?);
    }
    (!calls.is_empty()).then_some(calls)
}

/// Parses an element up to its end. `text` follows its opening tag.
fn value<'a>(
    parts: &mut impl Iterator<Item = &'a str>,
    text: &str,
    element: &str,
    schema: ParameterSchema<'_>,
    depth: usize,
) -> Option<Value> {
    let mut inner: Vec<(&str, Value)> = Vec::new();
    loop {
        let (tag, after) = parts.next()?.strip_prefix('<')?.split_once('>')?;
        if let Some(closed) = tag.strip_prefix('/') {
            // Only a line break may stand between two tags.
            let is_end = closed == element && after.trim().is_empty();
            return if is_end { whole(text, inner, schema) } else { None };
        }
        let is_item = tag == ITEM && !schema.has_property(ITEM);
        let of = if is_item { schema.items() } else { schema.property(tag) };
        if depth == MAX_DEPTH || !text.trim().is_empty() {
            return None;
        }
        inner.push((tag, value(parts, after, tag, of, depth + 1)?));
    }
}

fn whole(text: &str, inner: Vec<(&str, Value)>, schema: ParameterSchema<'_>) -> Option<Value> {
    if inner.is_empty() {
        return Some(schema.value(text));
    }
    let is_list = inner.iter().all(|(tag, _)| *tag == ITEM) && !schema.has_property(ITEM);
    if is_list {
        return Some(inner.into_iter().map(|(_, value)| value).collect());
    }
    let n = inner.len();
    let map: Map<String, Value> = inner.into_iter().map(|(tag, value)| (tag.to_owned(), value)).collect();
    (map.len() == n).then_some(Value::Object(map))
}

#[cfg(test)]
mod tests {
    use super::TOKEN;
    use crate::reply::styles::tests::check;

    #[test]
    fn calls_are_read() {
        let check = |body: &str, expected: &[&str]| check(&body.replace('@', TOKEN), expected);
        let one = "@<invoke name=\"f\">@<x>a <c> 12@</x>@<n>1@</n>@</invoke>\n";
        let expected = [r#"f({"n":1,"x":"a <c> 12"})"#];
        check(one, &expected);
        check(&[one, one].concat(), &[expected[0], expected[0]]);
        check("@<invoke name=\"f\">@<x>12@</x>@</invoke>", &[r#"f({"x":"12"})"#]);
        check(
            "@<invoke name=\"f\">@<o>@<item>@<k>v@</k>@</item>@<item>2@</item>@</o>@</invoke>",
            &[r#"f({"o":[{"k":"v"},2]})"#],
        );
        check("@<invoke name=\"f\">@</invoke>", &["f({})"]);
        for half in [
            "@<invoke name=\"f\">",
            "@<invoke name=\"f\">@<x>a",
            "@<invoke name=\"f\">@<x>a@</x>",
            "@<invoke name=\"f\">@<x>a@</y>@</invoke>",
            "@<invoke name=\"f\">words@<x>a@</x>@</invoke>",
            "@<invoke name=\"f\">@<x>a@</x>@<x>b@</x>@</invoke>",
            "@<invoke name=\"f\">words@</invoke>",
            "<invoke name=\"f\">",
        ] {
            check(half, &[]);
        }
        let deep = format!("@<invoke name=\"f\">{}", "@<k>".repeat(100_000));
        check(&deep, &[]);
    }
}
