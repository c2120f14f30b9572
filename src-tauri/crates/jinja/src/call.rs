//! Attributes, items and calls.

use std::rc::Rc;
use std::sync::Arc;

use crate::arguments::CallArguments;
use crate::failure::{Result, invalid};
use crate::meter::TextBuilder;
use crate::render::Renderer;
use crate::value::Scope;
use crate::value::undefined_error;
use crate::value::{Callable, ListKind, LoopState, MacroValue, Value};
use crate::{globals, methods, slices, special};

impl Renderer<'_> {
    /// `value.name`: an attribute, else the item of that name.
    pub fn attribute(&self, value: &Value, name: &Arc<str>) -> Result<Value> {
        if methods::has(value, name) {
            return Value::method(&self.meter, value, name);
        }
        let found = match value {
            Value::Undefined(_) => return Err(undefined_error(value)),
            Value::Dict(dict) => dict.get_text(name).cloned(),
            Value::Namespace(namespace) => namespace.get(&self.meter, name)?,
            Value::Loop(state) => self.loop_attribute(state, name)?,
            Value::Cycler(cycler) if **name == *"current" => Some(cycler.items[cycler.at.get()].clone()),
            Value::Callable(Callable::Macro(it)) if **name == *"name" => {
                Some(Value::text(&self.meter, &it.definition.name)?)
            }
            _ => None,
        };
        Ok(found.unwrap_or_else(|| Value::Undefined(Some(Arc::clone(name)))))
    }

    /// `value[index]`: an item, else the attribute of that name.
    pub fn item(&self, value: &Value, index: &Value) -> Result<Value> {
        let missing = |name: Option<&str>| Value::Undefined(name.map(Arc::from));
        Ok(match (value, index) {
            (Value::Undefined(_), _) => return Err(undefined_error(value)),
            (Value::Dict(dict), _) => match dict.counted_get(&self.meter, index)? {
                Some(found) => found.clone(),
                None => self.attribute_of_item(value, index)?,
            },
            (Value::List(list), _) if index.as_int().is_some() => {
                let is_indexed =
                    matches!(list.kind, ListKind::List | ListKind::Tuple | ListKind::Range { .. });
                let at =
                    slices::position(index.as_int().unwrap_or(0), list.items.len()).filter(|_| is_indexed);
                at.map_or(missing(None), |at| list.items[at].clone())
            }
            (Value::Text(text), _) if index.as_int().is_some() => {
                self.meter.bytes_work(text.as_str().len())?;
                let n = text.as_str().chars().count();
                let at = slices::position(index.as_int().unwrap_or(0), n);
                match at.and_then(|at| text.as_str().chars().nth(at)) {
                    Some(c) => Value::text(&self.meter, c.encode_utf8(&mut [0; 4]))?,
                    None => missing(None),
                }
            }
            _ => self.attribute_of_item(value, index)?,
        })
    }

    fn attribute_of_item(&self, value: &Value, index: &Value) -> Result<Value> {
        match index {
            Value::Text(name) => {
                let name: Arc<str> = name.as_str().into();
                match value {
                    // The item was looked for already.
                    Value::Dict(_) if !methods::has(value, &name) => Ok(Value::Undefined(Some(name))),
                    _ => self.attribute(value, &name),
                }
            }
            _ => Ok(Value::undefined()),
        }
    }

    fn loop_attribute(&self, state: &Rc<LoopState>, name: &str) -> Result<Option<Value>> {
        let (at, n) = (state.index.get(), state.items.items.len());
        let neighbor = |at: Option<usize>| {
            at.and_then(|at| state.items.items.get(at)).cloned().unwrap_or(Value::Undefined(None))
        };
        let int = |value: usize| Value::Int(value as i128);
        Ok(Some(match name {
            "index" => int(at + 1),
            "index0" => int(at),
            "revindex" => int(n - at),
            "revindex0" => int(n - at - 1),
            "first" => Value::Bool(at == 0),
            "last" => Value::Bool(at + 1 == n),
            "length" => int(n),
            "depth" => int(state.depth + 1),
            "depth0" => int(state.depth),
            "previtem" => neighbor(at.checked_sub(1)),
            "nextitem" => neighbor(Some(at + 1)),
            _ => return Ok(None),
        }))
    }

    pub fn call(&self, function: &Value, given: CallArguments) -> Result<Value> {
        self.meter.work(given.positional.len() as u64 + 1)?;
        match function {
            Value::Callable(Callable::Macro(it)) => self.deeper(|| self.call_macro(it, given)),
            Value::Callable(Callable::Global(name)) => globals::call(self, name, given),
            Value::Callable(Callable::Method(method)) => {
                methods::call(self, &method.receiver, &method.name, given)
            }
            Value::Callable(Callable::Host(function)) => {
                let [text] = given.bind("function", ["format"])?;
                Value::string(&self.meter, function(crate::arguments::required_text(text.as_ref())?))
            }
            Value::Joiner(joiner) => match joiner.is_used.replace(true) {
                true => Ok(joiner.separator.clone()),
                false => Value::text(&self.meter, ""),
            },
            Value::Loop(state) => self.call_loop(state, given),
            Value::Undefined(_) => Err(undefined_error(function)),
            other => invalid(format!("'{}' object is not callable", other.type_name())),
        }
    }

    fn call_loop(&self, state: &Rc<LoopState>, given: CallArguments) -> Result<Value> {
        let [items] = given.bind("loop", ["iterable"])?;
        let Some((it, scope)) = &state.recursion else {
            return invalid("the loop must have the 'recursive' marker to be called");
        };
        let Some(scope) = scope.upgrade() else { return invalid("the loop has ended") };
        let mut out = TextBuilder::new(&self.meter);
        out.push_str("")?;
        let items = items.unwrap_or(Value::undefined());
        self.deeper(|| self.for_loop(it, &items, &scope, state.depth + 1, &mut out))?;
        Ok(Value::built(out))
    }

    fn call_macro(&self, it: &MacroValue, given: CallArguments) -> Result<Value> {
        let definition = &*it.definition;
        let parent = it.scope.upgrade().unwrap_or_else(|| Rc::clone(&self.root));
        let scope = Scope::new(&self.meter, Some(parent))?;
        let CallArguments { positional, mut keywords } = given;
        let n = definition.parameters.len();
        let first_default = n - definition.defaults.len();
        let mut positional = positional.into_iter();
        for (at, (symbol, name)) in definition.parameters.iter().enumerate() {
            self.meter.work(keywords.len() as u64 + 1)?;
            let named = keywords.iter().position(|(known, _)| **known == **name);
            let value = match (positional.next(), named) {
                (Some(_), Some(_)) => {
                    return invalid(format!("macro '{}' got two values for '{name}'", definition.name));
                }
                (Some(value), None) => value,
                (None, Some(at)) => keywords.remove(at).1,
                (None, None) => match at.checked_sub(first_default) {
                    Some(default) => self.eval(&definition.defaults[default], &scope)?,
                    None => Value::Undefined(Some(name.as_str().into())),
                },
            };
            scope.set(*symbol, value)?;
        }
        self.rest_of_arguments(definition, &scope, positional.collect(), keywords)?;
        let mut out = TextBuilder::new(&self.meter);
        out.push_str("")?;
        self.body(&definition.body, &scope, &mut out)?;
        Ok(Value::built(out))
    }

    fn rest_of_arguments(
        &self,
        definition: &crate::ast::MacroDefinition,
        scope: &Scope,
        positional: Vec<Value>,
        mut keywords: Vec<(Arc<str>, Value)>,
    ) -> Result<()> {
        let (meter, name) = (&self.meter, &definition.name);
        if definition.takes_caller {
            let at = keywords.iter().position(|(known, _)| **known == *"caller");
            let caller = at.map_or(Value::Undefined(Some("caller".into())), |at| keywords.remove(at).1);
            scope.set(special("caller"), caller)?;
        }
        if definition.takes_varargs {
            scope.set(special("varargs"), Value::list(meter, positional, ListKind::Tuple)?)?;
        } else if !positional.is_empty() {
            let n = definition.parameters.len();
            return invalid(format!("macro '{name}' takes not more than {n} argument(s)"));
        }
        if definition.takes_kwargs {
            let entry = |(key, value): (Arc<str>, Value)| Ok((Value::text(meter, &key)?, value));
            let entries = keywords.into_iter().map(entry).collect::<Result<Vec<_>>>()?;
            scope.set(special("kwargs"), Value::dict(meter, entries)?)?;
        } else if let Some((keyword, _)) = keywords.first() {
            return invalid(format!("macro '{name}' takes no keyword argument '{keyword}'"));
        }
        Ok(())
    }
}
