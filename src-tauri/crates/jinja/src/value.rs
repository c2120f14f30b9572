//! Values of templates. They never change once made, except namespaces, cyclers and joiners.
//!
//! Containers know how deep they are, so that neither printing nor freeing one overflows the stack.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use crate::ast::{ForLoop, MacroDefinition};
use crate::failure::{Failure, Result, invalid};
use crate::meter::{Charge, Meter, TextBuilder};

mod scope;

pub use scope::Scope;

/// Containers within containers. Python gives up at about 1000, JSON readers at 128.
const MAX_DEPTH: u32 = 200;

/// Entries up to which a dictionary is searched from its start.
const SMALL_DICT: usize = 12;

/// A value of a template.
#[derive(Clone)]
pub enum Value {
    /// With the name that was looked for.
    Undefined(Option<Arc<str>>),
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(Text),
    List(Rc<List>),
    Dict(Rc<Dict>),
    Namespace(Rc<Namespace>),
    Callable(Callable),
    Loop(Rc<LoopState>),
    Cycler(Rc<Cycler>),
    Joiner(Rc<Joiner>),
}

/// A text. A safe one was escaped already.
#[derive(Clone)]
pub struct Text {
    inner: Rc<(String, Charge)>,
    pub is_safe: bool,
}

impl Text {
    pub fn as_str(&self) -> &str {
        &self.inner.0
    }
}

/// What a list is in Python.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListKind {
    List,
    Tuple,
    Range {
        start: i128,
        stop: i128,
        step: i128,
    },
    /// What filters such as `map` return: it has no length.
    Generator,
    /// `dict_items` and its like.
    View(&'static str),
}

pub struct List {
    pub items: Vec<Value>,
    pub kind: ListKind,
    depth: u32,
    _charge: Charge,
}

pub struct Dict {
    pub entries: Vec<(Value, Value)>,
    /// Entries of text keys, where there are many.
    index: Option<HashMap<Rc<str>, usize>>,
    depth: u32,
    _charge: Charge,
}

pub struct Namespace {
    pub values: RefCell<Vec<(Rc<str>, Value)>>,
    pub charges: RefCell<Vec<Charge>>,
}

pub struct Cycler {
    pub items: Vec<Value>,
    pub at: Cell<usize>,
    depth: u32,
    _charge: Charge,
}

pub struct Joiner {
    pub separator: Value,
    pub is_used: Cell<bool>,
    _charge: Charge,
}

/// The variable `loop`.
pub struct LoopState {
    pub items: Rc<List>,
    pub index: Cell<usize>,
    pub depth: usize,
    pub changed: RefCell<Option<Value>>,
    /// What `loop(…)` runs again.
    pub recursion: Option<(Arc<ForLoop>, Weak<Scope>)>,
    pub is_running: Cell<bool>,
    /// Held for as long as the value.
    pub _charge: Charge,
}

#[derive(Clone)]
pub enum Callable {
    Macro(Rc<MacroValue>),
    Global(&'static str),
    /// A method that was looked up and not called yet.
    Method(Rc<MethodValue>),
    Host(HostFunction),
}

pub struct MethodValue {
    pub receiver: Value,
    pub name: Arc<str>,
    _charge: Charge,
}

/// A function of the caller: text in, text out.
pub type HostFunction = Arc<dyn Fn(&str) -> String + Send + Sync>;

pub struct MacroValue {
    pub definition: Arc<MacroDefinition>,
    /// Where it was defined.
    pub scope: Weak<Scope>,
    /// Held for as long as the value.
    pub _charge: Charge,
}

impl Value {
    pub fn undefined() -> Self {
        Self::Undefined(None)
    }

    pub fn text(meter: &Rc<Meter>, text: &str) -> Result<Self> {
        let mut out = TextBuilder::new(meter);
        out.push_str(text)?;
        Ok(Self::built(out))
    }

    /// As [`Value::text`], of a string that is there already.
    pub fn string(meter: &Rc<Meter>, text: String) -> Result<Self> {
        let charge = meter.charge(text.capacity() + size_of::<(String, Charge)>())?;
        Ok(Self::Text(Text { inner: Rc::new((text, charge)), is_safe: false }))
    }

    pub fn built(out: TextBuilder) -> Self {
        Self::Text(Text { inner: Rc::new(out.into_parts()), is_safe: false })
    }

    pub fn list(meter: &Rc<Meter>, items: Vec<Self>, kind: ListKind) -> Result<Self> {
        let depth = deepest(&items)?;
        let _charge = meter.charge(items.capacity() * size_of::<Self>() + size_of::<List>())?;
        Ok(Self::List(Rc::new(List { items, kind, depth, _charge })))
    }

    pub fn dict(meter: &Rc<Meter>, entries: Vec<(Self, Self)>) -> Result<Self> {
        let depth = entries.iter().map(|(key, value)| key.depth().max(value.depth())).max().unwrap_or(0) + 1;
        check_depth(depth)?;
        let bytes = entries.capacity() * size_of::<(Self, Self)>() + size_of::<Dict>();
        let mut charge = meter.charge(bytes)?;
        let mut index = None;
        if entries.len() > SMALL_DICT {
            let texts = entries.iter().enumerate().filter_map(|(at, (key, _))| Some((key.as_str()?, at)));
            let bytes: usize = texts.clone().map(|(text, _)| text.len() + 64).sum();
            charge.grow(bytes)?;
            index = Some(texts.map(|(text, at)| (Rc::from(text), at)).collect());
        }
        Ok(Self::Dict(Rc::new(Dict { entries, index, depth, _charge: charge })))
    }

    pub fn cycler(meter: &Rc<Meter>, items: Vec<Self>) -> Result<Self> {
        let depth = deepest(&items)?;
        let _charge = meter.charge(items.capacity() * size_of::<Self>() + size_of::<Cycler>())?;
        Ok(Self::Cycler(Rc::new(Cycler { items, at: Cell::new(0), depth, _charge })))
    }

    pub fn method(meter: &Rc<Meter>, value: &Self, name: &Arc<str>) -> Result<Self> {
        check_depth(value.depth() + 1)?;
        let _charge = meter.charge(size_of::<MethodValue>())?;
        let method = MethodValue { receiver: value.clone(), name: Arc::clone(name), _charge };
        Ok(Self::Callable(Callable::Method(Rc::new(method))))
    }

    pub fn joiner(meter: &Rc<Meter>, separator: Self) -> Result<Self> {
        separator.check_nesting()?;
        let _charge = meter.charge(size_of::<Joiner>())?;
        Ok(Self::Joiner(Rc::new(Joiner { separator, is_used: Cell::new(false), _charge })))
    }

    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text.as_str()),
            _ => None,
        }
    }

    pub fn is_undefined(&self) -> bool {
        matches!(self, Self::Undefined(_))
    }

    pub fn is_safe(&self) -> bool {
        matches!(self, Self::Text(text) if text.is_safe)
    }

    /// Python's `bool(value)`.
    pub fn is_true(&self) -> bool {
        match self {
            Self::Undefined(_) | Self::None => false,
            Self::Bool(value) => *value,
            Self::Int(value) => *value != 0,
            Self::Float(value) => *value != 0.0,
            Self::Text(text) => !text.as_str().is_empty(),
            Self::List(list) => list.kind == ListKind::Generator || !list.items.is_empty(),
            Self::Dict(dict) => !dict.entries.is_empty(),
            _ => true,
        }
    }

    /// The number that this is: Python's booleans are numbers.
    pub fn as_int(&self) -> Option<i128> {
        match self {
            Self::Int(value) => Some(*value),
            Self::Bool(value) => Some(i128::from(*value)),
            _ => None,
        }
    }

    pub fn as_number(&self) -> Option<f64> {
        match self {
            Self::Float(value) => Some(*value),
            _ => self.as_int().map(|value| value as f64),
        }
    }

    /// Python's name of the type.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Undefined(_) => "Undefined",
            Self::None => "NoneType",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Float(_) => "float",
            Self::Text(_) => "str",
            Self::List(list) => match list.kind {
                ListKind::List => "list",
                ListKind::Tuple => "tuple",
                ListKind::Range { .. } => "range",
                ListKind::Generator => "generator",
                ListKind::View(name) => name,
            },
            Self::Dict(_) => "dict",
            Self::Namespace(_) => "Namespace",
            Self::Callable(Callable::Macro(_)) => "Macro",
            Self::Callable(_) => "function",
            Self::Loop(_) => "LoopContext",
            Self::Cycler(_) => "Cycler",
            Self::Joiner(_) => "Joiner",
        }
    }

    fn depth(&self) -> u32 {
        match self {
            Self::List(list) => list.depth,
            Self::Dict(dict) => dict.depth,
            Self::Cycler(cycler) => cycler.depth,
            Self::Joiner(joiner) => joiner.separator.depth() + 1,
            Self::Callable(Callable::Method(method)) => method.receiver.depth() + 1,
            Self::Loop(state) => state.items.depth + 1,
            _ => 0,
        }
    }

    /// Checks that a value may be held by another.
    pub fn check_nesting(&self) -> Result<()> {
        check_depth(self.depth() + 1)
    }
}

fn deepest(items: &[Value]) -> Result<u32> {
    let depth = items.iter().map(Value::depth).max().unwrap_or(0) + 1;
    check_depth(depth)?;
    Ok(depth)
}

fn check_depth(depth: u32) -> Result<()> {
    if depth > MAX_DEPTH { invalid("values are nested too deeply") } else { Ok(()) }
}

impl Dict {
    /// As [`Dict::get`], with its work counted: keys that are no texts are compared one by one.
    pub fn counted_get(&self, meter: &Meter, key: &Value) -> Result<Option<&Value>> {
        meter.work(if key.as_str().is_some() { 1 } else { self.entries.len() as u64 + 1 })?;
        Ok(self.get(key))
    }

    pub fn get(&self, key: &Value) -> Option<&Value> {
        match (key.as_str(), &self.index) {
            (Some(text), Some(index)) => index.get(text).map(|at| &self.entries[*at].1),
            (Some(text), None) => self.get_text(text),
            (None, _) => {
                let equal = |(other, _): &&(Value, Value)| other.as_str().is_none() && is_equal(other, key);
                self.entries.iter().find(equal).map(|(_, value)| value)
            }
        }
    }

    /// The entries as tuples.
    pub fn pairs(&self, meter: &Rc<Meter>) -> Result<Vec<Value>> {
        let pair = |(key, value): &(Value, Value)| {
            Value::list(meter, vec![key.clone(), value.clone()], ListKind::Tuple)
        };
        self.entries.iter().map(pair).collect()
    }

    pub fn get_text(&self, key: &str) -> Option<&Value> {
        match &self.index {
            Some(index) => index.get(key).map(|at| &self.entries[*at].1),
            None => {
                self.entries.iter().find(|(other, _)| other.as_str() == Some(key)).map(|(_, value)| value)
            }
        }
    }
}

impl Namespace {
    /// Errors: looking for it took too long.
    pub fn get(&self, meter: &Meter, name: &str) -> Result<Option<Value>> {
        let values = self.values.borrow();
        meter.work(values.len() as u64 / 8)?;
        Ok(values.iter().find(|(known, _)| **known == *name).map(|(_, value)| value.clone()))
    }

    pub fn set(&self, meter: &Rc<Meter>, name: &str, value: Value) -> Result<()> {
        value.check_nesting()?;
        let mut values = self.values.borrow_mut();
        meter.work(values.len() as u64 / 8)?;
        match values.iter_mut().find(|(known, _)| **known == *name) {
            Some((_, slot)) => *slot = value,
            None => {
                self.charges.borrow_mut().push(meter.charge(name.len() + size_of::<(Rc<str>, Value)>() * 2)?);
                values.push((name.into(), value));
            }
        }
        Ok(())
    }
}

/// Error for the use of something undefined.
pub fn undefined_error(value: &Value) -> Failure {
    let name = match value {
        Value::Undefined(name) => name.as_deref(),
        _ => None,
    };
    Failure::Invalid(name.map_or("a value is undefined".into(), |name| format!("'{name}' is undefined")))
}

/// Equality of values that hold no others.
pub fn is_equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Undefined(_), Value::Undefined(_)) | (Value::None, Value::None) => true,
        (Value::Text(a), Value::Text(b)) => a.as_str() == b.as_str(),
        (Value::List(a), Value::List(b)) => {
            a.items.len() == b.items.len() && a.items.iter().zip(&b.items).all(|(a, b)| is_equal(a, b))
        }
        (Value::Dict(a), Value::Dict(b)) => Rc::ptr_eq(a, b),
        (Value::Namespace(a), Value::Namespace(b)) => Rc::ptr_eq(a, b),
        (Value::Loop(a), Value::Loop(b)) => Rc::ptr_eq(a, b),
        _ => match (left.as_int(), right.as_int()) {
            (Some(a), Some(b)) => a == b,
            _ => matches!((left.as_number(), right.as_number()), (Some(a), Some(b)) if a == b),
        },
    }
}

/// Converts JSON to a value.
pub fn from_json(meter: &Rc<Meter>, json: &serde_json::Value) -> Result<Value> {
    use serde_json::Value as Json;
    Ok(match json {
        Json::Null => Value::None,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(value), _) => Value::Int(value.into()),
            (None, Some(value)) => Value::Int(value.into()),
            (None, None) => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::text(meter, text)?,
        Json::Array(items) => {
            let items = items.iter().map(|item| from_json(meter, item)).collect::<Result<Vec<_>>>()?;
            Value::list(meter, items, ListKind::List)?
        }
        Json::Object(map) => {
            let entry =
                |(key, value): (&String, &Json)| Ok((Value::text(meter, key)?, from_json(meter, value)?));
            Value::dict(meter, map.iter().map(entry).collect::<Result<Vec<_>>>()?)?
        }
    })
}
