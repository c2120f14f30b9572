//! Jinja environment of chat templates: Python features that minijinja lacks, and the bounds.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};

use minijinja::filters;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Rest, ValueOrKwargs};
use minijinja::{Environment, Error, ErrorKind, State, Template, UndefinedBehavior, Value};

use super::rewrite::{ITERABLE, PLUS};
use super::{json, methods, python, strftime};
use crate::error::{EngineError, Result};

/// Instructions of one rendering. Thousands of messages need some millions.
const MAX_STEPS: u64 = 200_000_000;

/// The longest prompt: a million tokens of text.
const MAX_OUTPUT_BYTES: usize = 64 << 20;

const MAX_RECURSION: usize = 400;

pub fn new() -> Environment<'static> {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    environment.set_syntax(syntax.expect("the default delimiters are valid"));
    environment.set_undefined_behavior(UndefinedBehavior::Lenient);
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    environment.set_fuel(Some(MAX_STEPS));
    environment.set_recursion_limit(MAX_RECURSION);
    environment.set_unknown_method_callback(methods::call);
    environment.set_formatter(|out, _, value| Ok(out.write_str(&python::str(value))?));
    environment.add_filter("trim", trim);
    environment.add_filter("indent", indent);
    environment.add_filter("string", |value: &Value| python::str(value));
    environment.add_filter("tojson", tojson);
    environment.add_filter(ITERABLE, iterable);
    environment.add_filter(PLUS, plus);
    environment.add_test("iterable", |value: &Value| !value.is_none() && value.try_iter().is_ok());
    lazy_filters(&mut environment);
    environment.add_function("raise_exception", raise_exception);
    environment
}

/// An error raised by the template itself.
#[derive(Debug)]
struct TemplateException(String);

impl fmt::Display for TemplateException {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TemplateException {}

fn raise_exception(message: &Value) -> Result<Value, Error> {
    let message = message.to_string();
    Err(Error::new(ErrorKind::InvalidOperation, message.clone()).with_source(TemplateException(message)))
}

/// Accepts any value: a list is first converted as Python prints it.
fn trim(value: &Value, characters: Option<&str>) -> String {
    let text = python::str(value);
    match characters {
        Some(characters) => text.trim_matches(|c| characters.contains(c)).to_owned(),
        None => text.trim_matches(python::is_space).to_owned(),
    }
}

/// `width` is a number of spaces or the indentation itself.
fn indent(
    value: &Value,
    width: Option<Value>,
    first: Option<bool>,
    blank: Option<bool>,
    options: Kwargs,
) -> Result<String, Error> {
    let width = match width {
        Some(width) => Some(width),
        None => options.get("width")?,
    };
    let flag = |given: Option<bool>, name| Ok::<_, Error>(given.or(options.get(name)?).unwrap_or(false));
    let (first, blank) = (flag(first, "first")?, flag(blank, "blank")?);
    options.assert_all_used()?;
    let by = match width {
        None => " ".repeat(4),
        Some(width) => match width.as_str() {
            Some(text) => text.to_owned(),
            None => " ".repeat(usize::try_from(width)?.min(MAX_INDENT)),
        },
    };
    Ok(python::indent(&python::str(value), &by, first, blank))
}

const MAX_INDENT: usize = 1024;

/// Checks what a loop iterates over: Python refuses `none`.
fn iterable(value: &Value) -> Result<Value, Error> {
    if value.is_none() {
        return Err(Error::new(ErrorKind::InvalidOperation, "none is not iterable"));
    }
    Ok(value.clone())
}

/// Adds to a safe string: unsafe text is escaped as Python's markupsafe does.
fn plus(left: &Value, right: &Value) -> Result<Value, Error> {
    let (Some(a), Some(b)) = (left.as_str(), right.as_str()) else {
        let message = format!("cannot add {} and {}", left.kind(), right.kind());
        return Err(Error::new(ErrorKind::InvalidOperation, message));
    };
    if !left.is_safe() && !right.is_safe() {
        return Ok(Value::from([a, b].concat()));
    }
    let escaped = |value: &Value, text: &str| match value.is_safe() {
        true => text.to_string(),
        false => text
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;")
            .replace('\'', "&#39;")
            .replace('"', "&#34;"),
    };
    Ok(Value::from_safe_string(escaped(left, a) + &escaped(right, b)))
}

/// Filters that are lazy in Python: their result has no length and is not JSON until `list` converts it.
fn lazy_filters(environment: &mut Environment) {
    fn lazy(items: Vec<Value>) -> Value {
        Value::make_iterable(move || items.clone().into_iter())
    }
    type FilterArguments = Rest<ValueOrKwargs>;
    environment.add_filter("map", |state: &mut State, value: Value, arguments: FilterArguments| {
        filters::map(state, value, arguments).map(lazy)
    });
    type TestName<'a> = Option<Cow<'a, str>>;
    environment.add_filter(
        "select",
        |state: &mut State, value: Value, test: TestName, arguments: FilterArguments| {
            filters::select(state, value, test, arguments).map(lazy)
        },
    );
    environment.add_filter(
        "reject",
        |state: &mut State, value: Value, test: TestName, arguments: FilterArguments| {
            filters::reject(state, value, test, arguments).map(lazy)
        },
    );
    environment.add_filter(
        "selectattr",
        |state: &mut State, value: Value, attr: Cow<'_, str>, test: TestName, arguments: FilterArguments| {
            filters::selectattr(state, value, attr, test, arguments).map(lazy)
        },
    );
    environment.add_filter(
        "rejectattr",
        |state: &mut State, value: Value, attr: Cow<'_, str>, test: TestName, arguments: FilterArguments| {
            filters::rejectattr(state, value, attr, test, arguments).map(lazy)
        },
    );
}

/// Python's `json.dumps(…, ensure_ascii=False)`.
fn tojson(value: &Value, indent: Option<Value>, options: Kwargs) -> Result<Value, Error> {
    let indent = match indent {
        Some(indent) => Some(indent),
        None => options.get("indent")?,
    };
    let indent = indent.filter(|value| !value.is_none()).map(usize::try_from).transpose()?;
    let ascii: Option<bool> = options.get("ensure_ascii")?;
    let sort_keys: Option<bool> = options.get("sort_keys")?;
    let separators: Option<Vec<String>> = options.get("separators")?;
    options.assert_all_used()?;
    let style = json::JsonStyle {
        indent,
        sort_keys: sort_keys.unwrap_or(false),
        separators,
        ascii: ascii.unwrap_or(false),
    };
    json::dumps(value, &style).map(Value::from)
}

/// Returns the function `strftime_now(format)`. Undefined without a time.
pub fn strftime_now(now: Option<&str>) -> Value {
    let Some(time) = now.and_then(strftime::LocalTime::parse) else { return Value::UNDEFINED };
    Value::from_function(move |format: &str| time.format(format))
}

/// Collects the output, up to the longest prompt.
struct BoundedOutput(Vec<u8>);

impl Write for BoundedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_OUTPUT_BYTES {
            return Err(io::Error::other("the rendered prompt is too long"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub fn render(template: &Template<'_, '_>, variables: Value) -> Result<String> {
    let mut out = BoundedOutput(Vec::new());
    template.render_captured_to(variables, &mut out).map_err(|error| failure(&error))?;
    Ok(String::from_utf8(out.0).expect("a template writes strings"))
}

/// Returns the cause without minijinja's description of the place.
pub fn cause(error: &Error) -> String {
    match error.detail() {
        Some(detail) => detail.to_string(),
        None => error.kind().to_string(),
    }
}

pub fn failure(error: &Error) -> EngineError {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(at) = source {
        if let Some(TemplateException(message)) = at.downcast_ref() {
            return EngineError::new(
                "template.raised",
                message.clone(),
                "Change the conversation as the message says, or choose another model.",
            );
        }
        source = at.source();
    }
    let line = error.line().map_or(String::new(), |line| format!(", line {line}"));
    EngineError::new(
        "template.failed",
        format!("the chat template failed{line}: {}", cause(error)),
        "This model's template does not support such a conversation: start a new one, or choose another model.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_answer_as_in_python() {
        let cases = [
            ("'abc'.removeprefix('a')", "bc"),
            ("'abc'.removesuffix('c').removesuffix('x')", "ab"),
            ("'a=b=c'.partition('=')[2]", "b=c"),
            ("'a=b=c'.rpartition('=')[0]", "a=b"),
            ("'a'.partition('=')[1]", ""),
            ("'a b  c '.rsplit(none, 1)", "['a b', 'c']"),
            ("'a.b.c'.rsplit('.', 1)", "['a.b', 'c']"),
            ("'-7'.zfill(4)", "-007"),
            ("'é'.ljust(3, '.')", "é.."),
            ("'é'.rjust(3)", "  é"),
            ("'aéb'.index('b')", "2"),
            ("['a', 'b'].index('b')", "1"),
            ("{'a': 1}.copy()", "{'a': 1}"),
            ("'a-b'.split('-')", "['a', 'b']"),
        ];
        for (expression, expected) in cases {
            let mut environment = new();
            environment.add_template_owned("t", format!("{{{{ {expression} }}}}")).expect(expression);
            let template = environment.get_template("t").expect("added");
            let text = render(&template, Value::UNDEFINED).expect(expression);
            assert_eq!(text, expected, "{expression}");
        }
    }
}
