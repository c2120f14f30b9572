//! Global functions of templates.

use std::rc::Rc;

use crate::arguments::{CallArguments, flag, int, text};
use crate::failure::{Failure, Result, invalid};
use crate::meter::{Meter, TextBuilder};
use crate::ops::check_hashable;
use crate::python;
use crate::render::Renderer;
use crate::value::{ListKind, Namespace, Value, is_equal};

/// The longest range that Jinja's sandbox allows.
const MAX_RANGE: i128 = 100_000;

/// Paragraphs and words per paragraph of `lipsum`.
const MAX_LIPSUM: i128 = 1000;

const LIPSUM: &str = "lorem ipsum dolor sit amet consectetuer adipiscing elit sed diam nonummy nibh euismod \
    tincidunt ut laoreet magna aliquam erat volutpat";

pub fn call(renderer: &Renderer<'_>, name: &str, given: CallArguments) -> Result<Value> {
    let meter = &renderer.meter;
    match name {
        "range" => range(meter, &given),
        "dict" => dict(renderer, given),
        "namespace" => namespace(renderer, given),
        "cycler" => match given.positional.is_empty() {
            true => invalid("at least one item has to be provided"),
            false => Value::cycler(meter, given.positional),
        },
        "joiner" => {
            let [separator] = given.bind("joiner", ["sep"])?;
            Value::joiner(meter, separator.map_or_else(|| Value::text(meter, ", "), Ok)?)
        }
        "lipsum" => lipsum(meter, &given),
        _ => {
            let [message] = given.bind("raise_exception", ["message"])?;
            let mut out = TextBuilder::new(meter);
            python::write_str(&message.unwrap_or(Value::undefined()), &mut out)?;
            Err(Failure::Raised(out.into_parts().0))
        }
    }
}

fn range(meter: &Rc<Meter>, given: &CallArguments) -> Result<Value> {
    if given.positional.is_empty() || !given.keywords.is_empty() {
        return invalid("range() takes one to three numbers");
    }
    let [first, second, step] = given.bind("range", ["start", "stop", "step"])?;
    let (start, stop) = match &second {
        None => (0, int(&first, 0)?),
        Some(_) => (int(&first, 0)?, int(&second, 0)?),
    };
    let step = int(&step, 1)?;
    if step == 0 {
        return invalid("range() arg 3 must not be zero");
    }
    let distance = if step > 0 { stop.saturating_sub(start) } else { start.saturating_sub(stop) };
    let n = if distance > 0 { (distance - 1) / step.saturating_abs() + 1 } else { 0 };
    if n > MAX_RANGE {
        return invalid(format!("range too big: the sandbox allows {MAX_RANGE} numbers"));
    }
    let _room = meter.charge(n as usize * size_of::<Value>())?;
    let items = (0..n).map(|at| Value::Int(start + at * step)).collect();
    Value::list(meter, items, ListKind::Range { start, stop, step })
}

/// A dictionary of entries, of which later ones replace earlier ones.
pub fn dict_of(meter: &Rc<Meter>, entries: Vec<(Value, Value)>) -> Result<Value> {
    let mut unique: Vec<(Value, Value)> = Vec::with_capacity(entries.len());
    let mut places = std::collections::HashMap::new();
    for (key, value) in entries {
        check_hashable(&key)?;
        let place = match key.as_str() {
            Some(text) => {
                let next = unique.len();
                Some(*places.entry(text.to_owned()).or_insert(next)).filter(|at| *at < next)
            }
            None => {
                meter.work(unique.len() as u64)?;
                unique.iter().position(|(known, _)| known.as_str().is_none() && is_equal(known, &key))
            }
        };
        match place {
            Some(at) => unique[at].1 = value,
            None => unique.push((key, value)),
        }
    }
    Value::dict(meter, unique)
}

fn dict(renderer: &Renderer<'_>, given: CallArguments) -> Result<Value> {
    let meter = &renderer.meter;
    let mut entries = Vec::new();
    match given.positional.first() {
        None => {}
        Some(Value::Dict(dict)) => entries.extend(dict.entries.iter().cloned()),
        Some(pairs) => {
            for pair in &renderer.iterate(pairs)?.items {
                let pair = renderer.iterate(pair)?;
                let [key, value] = &pair.items[..] else { return invalid("dict() needs pairs") };
                entries.push((key.clone(), value.clone()));
            }
        }
    }
    for (name, value) in given.keywords {
        entries.push((Value::text(meter, &name)?, value));
    }
    dict_of(meter, entries)
}

fn namespace(renderer: &Renderer<'_>, given: CallArguments) -> Result<Value> {
    let meter = &renderer.meter;
    let Value::Dict(dict) = dict(renderer, given)? else { return invalid("namespace() needs a dictionary") };
    let namespace = Rc::new(Namespace { values: Default::default(), charges: Default::default() });
    namespace
        .charges
        .borrow_mut()
        .push(meter.charge(size_of::<Namespace>() + size_of::<Rc<Namespace>>() * 2)?);
    renderer.namespaces.borrow_mut().push(Rc::clone(&namespace));
    for (key, value) in &dict.entries {
        let Some(name) = key.as_str() else { return invalid("the names of a namespace are strings") };
        namespace.set(meter, name, value.clone())?;
    }
    Ok(Value::Namespace(namespace))
}

/// Filler text: Python's is random, this one always the same.
fn lipsum(meter: &Rc<Meter>, given: &CallArguments) -> Result<Value> {
    let [n, html, min, max] = given.bind("lipsum", ["n", "html", "min", "max"])?;
    let n = int(&n, 5)?.clamp(0, MAX_LIPSUM);
    let min = int(&min, 20)?;
    let n_words = min.midpoint(int(&max, 100)?).clamp(1, MAX_LIPSUM) as usize;
    let is_html = flag(&html, true);
    let mut out = TextBuilder::new(meter);
    out.push_str("")?;
    for paragraph in 0..n {
        out.push_str(match (paragraph, is_html) {
            (0, _) => "",
            (_, true) => "\n",
            (_, false) => "\n\n",
        })?;
        out.push_str(if is_html { "<p>" } else { "" })?;
        for (at, word) in LIPSUM.split(' ').cycle().take(n_words).enumerate() {
            match at {
                0 => out.push_str("Lorem")?,
                _ => {
                    out.push(' ')?;
                    out.push_str(word)?;
                }
            }
        }
        out.push_str(if is_html { ".</p>" } else { "." })?;
    }
    let filler = Value::built(out);
    Ok(if is_html { crate::ops::safe(filler) } else { filler })
}

/// A text argument, or its default.
pub fn text_or<'a>(value: &'a Option<Value>, default: &'a str) -> Result<&'a str> {
    text(value, default)
}
