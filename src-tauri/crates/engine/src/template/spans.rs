//! Finds the spans of a rendered prompt that are the words of people, files and tools.
//!
//! Renders a second time with unique placeholders for all such texts, and aligns both renderings. If a template
//! inspects a text and renders differently, each text is tried alone, then searched for.
//!
//! A span may be reported where none is needed. Control tokens that the template itself writes are never inside one.

use kernels::Interrupt;
use serde_json::Value;

use super::{ChatTemplate, ContentSpan, RenderBudget, RenderInput, RenderedPrompt};
use crate::error::Result;

/// A placeholder is `open`, a number, `close`: characters absent from the prompt, so that no text can forge one.
#[derive(Debug, Clone, Copy)]
struct MarkChars {
    open: char,
    close: char,
}

impl MarkChars {
    /// Rare letters (CJK extension B): unchanged by JSON and Python, without case, not white space.
    fn absent_from(text: &str) -> Option<Self> {
        let mut absent = ('\u{20000}'..='\u{2a6df}').rev().filter(|c| !text.contains(*c));
        Some(Self { open: absent.next()?, close: absent.next()? })
    }
}

/// Codes of renderings that did not come to an end.
const STOPPED: &[&str] = &["template.limit", "template.cancelled"];

/// Texts that are tried alone: each costs a rendering.
const MAX_RENDERED_ALONE: usize = 64;

/// A text from a message or a tool.
#[derive(Debug, Clone)]
struct TextLeaf {
    text: String,
    message: Option<usize>,
    is_content: bool,
}

pub fn render(
    template: &ChatTemplate,
    input: &RenderInput<'_>,
    interrupt: Option<&Interrupt>,
) -> Result<RenderedPrompt> {
    let text = template.render_text(input, input.messages, input.tools, &RenderBudget::new(interrupt))?;
    let mut leaves = Vec::new();
    let Some(marks) = MarkChars::absent_from(&text) else {
        // All 42,720 rare letters occur: certainly an attempt to evade this.
        let whole = ContentSpan { message: None, range: 0..text.len(), is_content: false };
        return Ok(RenderedPrompt { text, content_spans: vec![whole] });
    };
    let (messages, tools) = marked(input, marks, &mut leaves, &|_| true);
    if leaves.is_empty() {
        return Ok(RenderedPrompt { text, content_spans: Vec::new() });
    }
    // One that was stopped may not pass for one that is impossible: what people wrote would not be found.
    let with_marks = match template.render_text(input, &messages, &tools, &RenderBudget::new(interrupt)) {
        Err(error) if STOPPED.contains(&error.code()) => return Err(error),
        rendered => rendered.ok(),
    };
    let content_spans =
        with_marks.and_then(|marked| align(marks, &marked, &text, &leaves)).unwrap_or_else(|| {
            one_by_one(template, (input, &RenderBudget::new(interrupt)), marks, &text, &leaves)
        });
    Ok(RenderedPrompt { text, content_spans })
}

/// Tries each text alone, then searches for the rest.
fn one_by_one(
    template: &ChatTemplate,
    (input, budget): (&RenderInput<'_>, &RenderBudget),
    marks: MarkChars,
    text: &str,
    leaves: &[TextLeaf],
) -> Vec<ContentSpan> {
    let mut spans = Vec::new();
    let mut from = 0;
    for (at, leaf) in leaves.iter().enumerate() {
        let by_itself =
            (at < MAX_RENDERED_ALONE).then(|| marked(input, marks, &mut Vec::new(), &|leaf| leaf == at));
        let found = by_itself
            .and_then(|(messages, tools)| template.render_text(input, &messages, &tools, budget).ok())
            .and_then(|marked| align(marks, &marked, text, leaves));
        match found {
            Some(found) => {
                from = found.last().map_or(from, |span| span.range.end);
                spans.extend(found);
            }
            None => spans.extend(search(text, leaf, &mut from)),
        }
    }
    spans.sort_by_key(|span| (span.range.start, span.range.end));
    // Of overlapping spans the first stays: both are someone's words.
    let mut end = 0;
    spans.retain(|span| {
        let apart = span.range.start >= end;
        end = end.max(if apart { span.range.end } else { end });
        apart
    });
    spans
}

fn search(text: &str, leaf: &TextLeaf, from: &mut usize) -> Option<ContentSpan> {
    let mut places = forms(&leaf.text).into_iter().filter_map(|form| {
        let at = text[*from..].find(&form).map(|at| *from + at).or_else(|| text.find(&form))?;
        Some(at..at + form.len())
    });
    let range = places.next()?;
    *from = range.end;
    Some(ContentSpan { message: leaf.message, range, is_content: false })
}

/// Returns the spans of the placeholders of `marked` in `text`. `None` if the renderings differ otherwise.
fn align(marks: MarkChars, marked: &str, text: &str, leaves: &[TextLeaf]) -> Option<Vec<ContentSpan>> {
    let mut spans = Vec::new();
    let mut parts = marked.split(marks.open);
    let first = parts.next()?;
    let mut at = text.starts_with(first).then_some(first.len())?;
    let mut parts = parts.peekable();
    while let Some(part) = parts.next() {
        let (number, literal) = part.split_once(marks.close)?;
        let leaf = leaves.get(number.parse::<usize>().ok()?)?;
        let ends = parts.peek().is_none();
        let fits = |form: &String| {
            text[at..].strip_prefix(form.as_str()).is_some_and(|rest| match ends {
                true => rest == literal,
                false => rest.starts_with(literal),
            })
        };
        let form = forms(&leaf.text).into_iter().find(fits)?;
        let range = at..at + form.len();
        at = range.end + literal.len();
        if !range.is_empty() {
            let is_content = leaf.is_content && form.trim() == leaf.text.trim();
            spans.push(ContentSpan { message: leaf.message, range, is_content });
        }
    }
    (at == text.len()).then_some(spans)
}

/// Returns the forms in which a template may write a text: as is, trimmed, as JSON, as Python prints it in a list.
fn forms(text: &str) -> Vec<String> {
    let mut forms = vec![text.to_string()];
    let mut add = |form: String| {
        if !forms.contains(&form) {
            forms.push(form);
        }
    };
    add(text.trim().to_string());
    add(text.trim_start().to_string());
    add(text.trim_end().to_string());
    add(text.trim_matches('\n').to_string());
    for text in [text, text.trim()] {
        add(jinja::escaped(text));
        let shown = jinja::repr_json(&text.into());
        add(shown.get(1..shown.len().saturating_sub(1)).unwrap_or(text).to_string());
    }
    forms
}

/// Returns messages and tools with placeholders for the texts that `wanted` accepts by number. Appends all texts to
/// `leaves`.
fn marked(
    input: &RenderInput<'_>,
    marks: MarkChars,
    leaves: &mut Vec<TextLeaf>,
    wanted: &dyn Fn(usize) -> bool,
) -> (Vec<Value>, Value) {
    let mut marker = MarkInserter { marks, leaves, wanted, message: None };
    let mut messages = input.messages.to_vec();
    for (at, message) in messages.iter_mut().enumerate() {
        marker.message = Some(at);
        marker.message(message);
    }
    marker.message = None;
    let mut tools = input.tools.clone();
    marker.described(&mut tools);
    (messages, tools)
}

struct MarkInserter<'a> {
    marks: MarkChars,
    leaves: &'a mut Vec<TextLeaf>,
    wanted: &'a dyn Fn(usize) -> bool,
    message: Option<usize>,
}

/// Keys of a tool description whose values are prose or data, not structure.
const PROSE: &[&str] = &["description", "title", "default", "enum", "examples", "const", "pattern"];

impl MarkInserter<'_> {
    fn leaf(&mut self, value: &mut Value, is_content: bool) {
        let Value::String(text) = value else { return };
        // Templates ask whether a text is empty.
        if text.trim().is_empty() {
            return;
        }
        let number = self.leaves.len();
        let leaf = TextLeaf { text: text.clone(), message: self.message, is_content };
        self.leaves.push(leaf);
        if (self.wanted)(number) {
            let MarkChars { open, close } = self.marks;
            *text = format!("{open}{number}{close}");
        }
    }

    fn message(&mut self, message: &mut Value) {
        let Value::Object(fields) = message else { return };
        for (key, value) in fields.iter_mut() {
            match (key.as_str(), &mut *value) {
                ("content", Value::String(_)) => self.leaf(value, true),
                ("content", Value::Array(parts)) => {
                    for part in parts {
                        match part {
                            Value::String(_) => self.leaf(part, false),
                            part => part.get_mut("text").into_iter().for_each(|text| self.leaf(text, false)),
                        }
                    }
                }
                ("content", _) => self.every(value),
                ("reasoning_content" | "reasoning" | "thinking", _) => self.leaf(value, false),
                ("tool_calls", Value::Array(calls)) => calls.iter_mut().for_each(|call| self.call(call)),
                _ => {}
            }
        }
    }

    fn call(&mut self, call: &mut Value) {
        let function = match call.get_mut("function") {
            Some(function) => function,
            None => call,
        };
        if let Some(arguments) = function.get_mut("arguments") {
            self.every(arguments);
        }
    }

    /// Handles every string in a value.
    fn every(&mut self, value: &mut Value) {
        match value {
            Value::String(_) => self.leaf(value, false),
            Value::Array(values) => values.iter_mut().for_each(|value| self.every(value)),
            Value::Object(fields) => fields.values_mut().for_each(|value| self.every(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Handles the prose in a tool description.
    fn described(&mut self, value: &mut Value) {
        match value {
            Value::Array(values) => values.iter_mut().for_each(|value| self.described(value)),
            Value::Object(fields) => {
                for (key, value) in fields.iter_mut() {
                    if PROSE.contains(&key.as_str()) && !value.is_object() {
                        self.every(value);
                    } else {
                        self.described(value);
                    }
                }
            }
            Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    const CHATML: &str =
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{{ tools }}";

    fn check(source: &str, messages: Value, tools: Value, expected: &[(Option<usize>, &str, bool)]) {
        let template = ChatTemplate::from_source(source).expect("compiles");
        let messages = messages.as_array().expect("a list").clone();
        let kwargs = Map::new();
        let input = RenderInput {
            messages: &messages,
            tools: &tools,
            kwargs: &kwargs,
            bos_token: "<s>",
            eos_token: "</s>",
            now: None,
        };
        let rendered = template.render(&input).expect("renders");
        let spans: Vec<_> = rendered
            .content_spans
            .iter()
            .map(|span| (span.message, &rendered.text[span.range.clone()], span.is_content))
            .collect();
        assert_eq!(spans, expected, "{source}\n{}", rendered.text);
    }

    #[test]
    fn contents_are_found() {
        let two =
            json!([{"role": "user", "content": "user"}, {"role": "assistant", "content": "<|im_end|> é"}]);
        check(CHATML, two, Value::Null, &[(Some(0), "user", true), (Some(1), "<|im_end|> é", true)]);
        let blank = json!([{"role": "user", "content": " "}, {"role": "user", "content": ""}]);
        check(CHATML, blank, Value::Null, &[]);
    }

    #[test]
    fn trimmed_and_escaped_contents_are_found() {
        let one = json!([{"role": "user", "content": " a \"b\" \n"}]);
        let trimmed = "[{{ messages[0].content | trim }}]";
        check(trimmed, one.clone(), Value::Null, &[(Some(0), "a \"b\"", true)]);
        let as_json = "{{ messages[0] | tojson }}";
        check(as_json, one.clone(), Value::Null, &[(Some(0), " a \\\"b\\\" \\n", false)]);
        let twice = "{{ messages[0].content }}|{{ messages[0].content }}";
        check(twice, one, Value::Null, &[(Some(0), " a \"b\" \n", true), (Some(0), " a \"b\" \n", true)]);
    }

    #[test]
    fn marks_can_neither_be_written_nor_hidden() {
        let typed = "\u{2a6df}0\u{2a6de}\u{f5f0a}<|im_end|>";
        let one = json!([{"role": "user", "content": typed}]);
        check(CHATML, one, Value::Null, &[(Some(0), typed, true)]);
        let shown_whole = json!([{"role": "user", "content": "a<|im_end|>"}]);
        check("{{ messages[0] }}", shown_whole, Value::Null, &[(Some(0), "a<|im_end|>", true)]);
    }

    #[test]
    fn templates_that_inspect_a_text_do_not_hide_it() {
        let peeks =
            "{% for m in messages %}<{% if 'x' in m.content %}has x: {% endif %}{{ m.content }}>{% endfor %}";
        let two = json!([{"role": "user", "content": "x </s>"}, {"role": "user", "content": "y </s>"}]);
        check(peeks, two, Value::Null, &[(Some(0), "x </s>", false), (Some(1), "y </s>", true)]);
    }

    #[test]
    fn tools_and_calls_are_content_too() {
        let source = "{% for t in tools %}{{ t | tojson }}{% endfor %}{% for m in messages %}{{ m.reasoning_content }}{% for c in m.tool_calls %}{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}";
        let tools = json!([{"type": "function", "function": {"name": "f", "description": "<d>",
            "parameters": {"type": "object", "properties": {"description": {"type": "string", "enum": ["<e>"]}}}}}]);
        let messages = json!([{"role": "assistant", "content": null, "reasoning_content": "<r>",
            "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": {"a": ["<x>", 1]}}}]}]);
        let expected =
            [(None, "<d>", false), (None, "<e>", false), (Some(0), "<r>", false), (Some(0), "<x>", false)];
        check(source, messages, tools, &expected);
    }
}
