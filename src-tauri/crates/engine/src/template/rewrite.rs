//! Rewrites a template's source where Python's Jinja and minijinja differ, so that both mean the same.
//! - `{% generation %}` marks what a model is trained on. It becomes a plain block.
//! - `{% for x in y %}`: Python fails on `none`; the rewritten loop checks for it.
//! - `{{ a|safe + b }}`: Python escapes what is added to a safe string; the rewritten sum does too.

use std::ops::Range;

/// Filters that rewritten sources call.
pub const ITERABLE: &str = "__walked";
pub const PLUS: &str = "__plus";

pub fn rewrite(source: &str) -> String {
    let mut out = String::with_capacity(source.len() + 256);
    let mut rest = source;
    while let Some(at) = rest.find("{").filter(|at| at + 1 < rest.len()) {
        let (before, tag) = rest.split_at(at);
        out.push_str(before);
        let end = match tag.as_bytes()[1] {
            b'#' => tag.find("#}").map(|end| end + 2),
            b'%' => tag_end(tag, "%}"),
            b'{' => tag_end(tag, "}}"),
            _ => Some(1),
        };
        // An unclosed tag is left for the parser to report.
        let Some(end) = end else {
            rest = tag;
            break;
        };
        rest = &tag[end..];
        match tag.as_bytes()[1] {
            b'%' if statement_name(&tag[..end]) == "raw" => rest = copy_raw(&tag[..end], rest, &mut out),
            b'%' => out.push_str(&statement(&tag[..end])),
            b'{' => out.push_str(&expression(&tag[..end])),
            _ => out.push_str(&tag[..end]),
        }
    }
    out + rest
}

/// Returns the end of the tag that begins `text`, ignoring strings in it.
fn tag_end(text: &str, close: &str) -> Option<usize> {
    let mut from = 2;
    while let Some(at) = text[from..].find(['\'', '"', close.as_bytes()[0] as char]).map(|at| from + at) {
        if text[at..].starts_with(close) {
            return Some(at + 2);
        }
        let first = text.as_bytes()[at];
        from = if first == b'"' || first == b'\'' { string_end(text, at)? } else { at + 1 };
    }
    None
}

/// Returns the end of the string whose quote is at `at`.
fn string_end(text: &str, at: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut end = at + 1;
    while end < bytes.len() {
        match bytes[end] {
            b'\\' => end += 2,
            b if b == bytes[at] => return Some(end + 1),
            _ => end += 1,
        }
    }
    None
}

/// Returns the inside of a tag, without the marks that control white space.
fn inside(tag: &str) -> Range<usize> {
    let marked = |byte: u8| byte == b'-' || byte == b'+';
    let start = 2 + usize::from(marked(tag.as_bytes()[2]));
    let end = tag.len() - 2;
    start..end - usize::from(end > start && marked(tag.as_bytes()[end - 1]))
}

fn statement_name(tag: &str) -> &str {
    tag[inside(tag)].split_whitespace().next().unwrap_or("")
}

/// Copies up to and including `{% endraw %}`. Returns the rest.
fn copy_raw<'a>(tag: &str, rest: &'a str, out: &mut String) -> &'a str {
    out.push_str(tag);
    let mut from = 0;
    while let Some(at) = rest[from..].find("{%").map(|at| from + at) {
        let end = rest[at..].find("%}").map_or(rest.len(), |end| at + end + 2);
        if end - at > 4 && statement_name(&rest[at..end]) == "endraw" {
            out.push_str(&rest[..end]);
            return &rest[end..];
        }
        from = end;
    }
    out.push_str(rest);
    ""
}

fn statement(tag: &str) -> String {
    if tag.len() <= 4 {
        return tag.to_string();
    }
    match statement_name(tag) {
        "generation" => tag.replacen("generation", "if true", 1),
        "endgeneration" => tag.replacen("endgeneration", "endif", 1),
        "for" => loop_over(tag).unwrap_or_else(|| tag.to_string()),
        _ => tag.to_string(),
    }
}

fn loop_over(tag: &str) -> Option<String> {
    let inside = inside(tag);
    let words = top_level(&tag[inside.clone()]);
    let at = |word: &str| words.iter().find(|(_, w)| *w == word).map(|(at, _)| inside.start + at);
    let start = at("in")? + 2;
    let end = [at("if"), at("recursive")].into_iter().flatten().filter(|at| *at > start).min();
    let end = end.unwrap_or(inside.end);
    Some(format!("{} ({})|{ITERABLE} {}", &tag[..start], tag[start..end].trim(), &tag[end..]))
}

/// Returns words and `+` signs outside strings and brackets, with their offsets.
fn top_level(text: &str) -> Vec<(usize, &str)> {
    let (mut found, mut depth, mut at) = (Vec::new(), 0usize, 0);
    let bytes = text.as_bytes();
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80;
    while at < bytes.len() {
        let start = at;
        match bytes[at] {
            b'"' | b'\'' => at = string_end(text, at).unwrap_or(bytes.len()),
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b'+' if depth == 0 => found.push((at, "+")),
            b if is_word(b) => {
                at += bytes[at..].iter().take_while(|b| is_word(**b)).count();
                if depth == 0 {
                    found.push((start, &text[start..at]));
                }
            }
            _ => {}
        }
        at = at.max(start + 1).min(bytes.len());
    }
    found
}

/// `{{ a|safe + b + c }}` → `{{ (a|safe)|__plus(b)|__plus(c) }}`. Other expressions stay.
fn expression(tag: &str) -> String {
    let inside = inside(tag);
    let text = &tag[inside.clone()];
    let words = top_level(text);
    let has = |word: &str| words.iter().any(|(_, w)| *w == word);
    let is_sum =
        has("safe") && has("+") && !["if", "else", "and", "or", "not", "in", "is"].iter().any(|w| has(w));
    if !is_sum {
        return tag.to_string();
    }
    let mut terms = Vec::new();
    let mut from = 0;
    for (at, _) in words.iter().filter(|(_, word)| *word == "+") {
        terms.push(text[from..*at].trim());
        from = at + 1;
    }
    let last = text[from..].trim();
    let sum = terms.iter().skip(1).chain([&last]).map(|term| format!("|{PLUS}({term})"));
    format!("{} ({}){} {}", &tag[..inside.start], terms[0], sum.collect::<String>(), &tag[inside.end..])
}

#[cfg(test)]
mod tests {
    use super::rewrite;

    fn check(source: &str, expected: &str) {
        assert_eq!(rewrite(source), expected);
    }

    #[test]
    fn rewrites_what_differs() {
        check("{%- generation -%}a{% endgeneration %}", "{%- if true -%}a{% endif %}");
        check("{% for a in b %}", "{% for a in (b)|__walked %}");
        check(
            "{%- for a, b in c.items() if a in d -%}",
            "{%- for a, b in (c.items())|__walked if a in d -%}",
        );
        check(
            "{% for a in [x if y else z] recursive %}",
            "{% for a in ([x if y else z])|__walked recursive %}",
        );
        check("{% for a in b + ' if %}' %}", "{% for a in (b + ' if %}')|__walked %}");
        check("{{ 'a + b'|safe + c['+'] + d | e }}", "{{ ('a + b'|safe)|__plus(c['+'])|__plus(d | e) }}");
    }

    #[test]
    fn leaves_the_rest_alone() {
        let same = [
            "",
            "{",
            "{{",
            "{%",
            "a {b} {# {% for x in y %} #} {{ a + b }} {{ a|safe }}",
            "{% raw %}{% for a in b %}{{ a|safe + b }}{% endraw %}",
            "{% for %}",
            "{%%}",
            "{{}}",
            "{{ 'unclosed }}",
            "{% if a in b %}é{% endif %}",
            "{{ a|safe + b if c else d }}",
        ];
        same.iter().for_each(|source| check(source, source));
    }
}
