//! Runs statements and evaluates expressions.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use crate::arguments::CallArguments;
use crate::ast::{Arguments, Expr, ForLoop, Node, NodeKind, Postfix, Target};
use crate::failure::{Result, invalid};
use crate::meter::TextBuilder;
use crate::ops;
use crate::render::Renderer;
use crate::value::Scope;
use crate::value::undefined_error;
use crate::value::{Callable, ListKind, LoopState, MacroValue, Value};
use crate::{filters, predicates, python, slices};

/// How a body ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    Next,
    Break,
    Continue,
}

impl Renderer<'_> {
    pub fn body(&self, body: &[Node], scope: &Rc<Scope>, out: &mut TextBuilder) -> Result<Flow> {
        for node in body {
            self.line.set(node.line);
            self.meter.work(1)?;
            match self.node(&node.kind, scope, out)? {
                Flow::Next => {}
                flow => return Ok(flow),
            }
        }
        Ok(Flow::Next)
    }

    fn inner(&self, scope: &Rc<Scope>) -> Result<Rc<Scope>> {
        Scope::new(&self.meter, Some(Rc::clone(scope)))
    }

    fn node(&self, node: &NodeKind, scope: &Rc<Scope>, out: &mut TextBuilder) -> Result<Flow> {
        match node {
            NodeKind::Text(text) => out.push_str(text)?,
            NodeKind::Print(value) => python::write_str(&self.eval(value, scope)?, out)?,
            NodeKind::Do(value) => _ = self.eval(value, scope)?,
            NodeKind::If { branches, otherwise } => {
                for (condition, body) in branches {
                    if self.eval(condition, scope)?.is_true() {
                        return self.deeper(|| self.body(body, scope, out));
                    }
                }
                return self.deeper(|| self.body(otherwise, scope, out));
            }
            NodeKind::For(it) => {
                let items = self.eval(&it.items, scope)?;
                self.deeper(|| self.for_loop(it, &items, scope, 0, out))?;
            }
            NodeKind::Set { target, value } => {
                let value = self.eval(value, scope)?;
                self.assign(target, value, scope)?;
            }
            NodeKind::SetBlock { target, filters, body } => {
                let text = self.captured(body, scope)?;
                let value = self.parts(text, filters, scope)?;
                self.assign(target, value, scope)?;
            }
            NodeKind::FilterBlock { filters, body } => {
                let text = self.captured(body, scope)?;
                python::write_str(&self.parts(text, filters, scope)?, out)?;
            }
            NodeKind::With { assignments, body } => {
                let inner = self.inner(scope)?;
                for (target, value) in assignments {
                    let value = self.eval(value, scope)?;
                    self.assign(target, value, &inner)?;
                }
                return self.deeper(|| self.body(body, &inner, out));
            }
            NodeKind::Macro(definition) => {
                let value = self.macro_value(definition, scope)?;
                scope.set(definition.symbol, value)?;
            }
            NodeKind::Call { call, caller } => {
                let caller = self.macro_value(caller, scope)?;
                let value = self.eval_with_caller(call, caller, scope)?;
                python::write_str(&value, out)?;
            }
            NodeKind::Group(body) => return self.deeper(|| self.body(body, scope, out)),
            NodeKind::Break => return Ok(Flow::Break),
            NodeKind::Continue => return Ok(Flow::Continue),
        }
        Ok(Flow::Next)
    }

    fn macro_value(&self, definition: &Arc<crate::ast::MacroDefinition>, scope: &Rc<Scope>) -> Result<Value> {
        let _charge = self.meter.charge(size_of::<MacroValue>())?;
        let (definition, scope) = (Arc::clone(definition), Rc::downgrade(scope));
        Ok(Value::Callable(Callable::Macro(Rc::new(MacroValue { definition, scope, _charge }))))
    }

    /// The output of a body, in a new scope.
    fn captured(&self, body: &[Node], scope: &Rc<Scope>) -> Result<Value> {
        let inner = self.inner(scope)?;
        let mut text = TextBuilder::new(&self.meter);
        text.push_str("")?;
        self.deeper(|| self.body(body, &inner, &mut text))?;
        Ok(Value::built(text))
    }

    pub fn assign(&self, target: &Target, value: Value, scope: &Rc<Scope>) -> Result<()> {
        match target {
            Target::Name(symbol) => scope.set(*symbol, value),
            Target::Attribute(symbol, name) => match scope.get(*symbol)? {
                Some(Value::Namespace(namespace)) => namespace.set(&self.meter, name, value),
                _ => invalid("cannot assign attribute on non-namespace object"),
            },
            Target::Tuple(targets) => {
                let items = self.iterate(&value)?;
                if items.items.len() != targets.len() {
                    let (n, wanted) = (items.items.len(), targets.len());
                    return invalid(format!("cannot unpack {n} values into {wanted} names"));
                }
                let pairs = targets.iter().zip(&items.items);
                pairs.into_iter().try_for_each(|(target, item)| self.assign(target, item.clone(), scope))
            }
        }
    }

    pub fn for_loop(
        &self,
        it: &Arc<ForLoop>,
        items: &Value,
        scope: &Rc<Scope>,
        depth: usize,
        out: &mut TextBuilder,
    ) -> Result<()> {
        let mut items = self.iterate(items)?;
        if let Some(condition) = &it.condition {
            items = self.filtered(it, condition, &items, scope)?;
        }
        if items.items.is_empty() {
            let inner = self.inner(scope)?;
            self.body(&it.otherwise, &inner, out)?;
            return Ok(());
        }
        let state = Rc::new(LoopState {
            items: Rc::clone(&items),
            index: Cell::new(0),
            depth,
            changed: RefCell::new(None),
            recursion: it.is_recursive.then(|| (Arc::clone(it), Rc::downgrade(scope))),
            is_running: Cell::new(true),
            _charge: self.meter.charge(size_of::<LoopState>())?,
        });
        let done = self.iterations(it, &state, scope, out);
        state.is_running.set(false);
        state.changed.take();
        done
    }

    fn iterations(
        &self,
        it: &ForLoop,
        state: &Rc<LoopState>,
        scope: &Rc<Scope>,
        out: &mut TextBuilder,
    ) -> Result<()> {
        for (at, item) in state.items.items.iter().enumerate() {
            state.index.set(at);
            let inner = self.inner(scope)?;
            inner.set(crate::special("loop"), Value::Loop(Rc::clone(state)))?;
            self.assign(&it.target, item.clone(), &inner)?;
            if self.body(&it.body, &inner, out)? == Flow::Break {
                break;
            }
        }
        Ok(())
    }

    fn filtered(
        &self,
        it: &ForLoop,
        condition: &Expr,
        items: &crate::value::List,
        scope: &Rc<Scope>,
    ) -> Result<Rc<crate::value::List>> {
        let mut kept = Vec::new();
        for item in &items.items {
            let inner = self.inner(scope)?;
            self.assign(&it.target, item.clone(), &inner)?;
            if self.eval(condition, &inner)?.is_true() {
                kept.push(item.clone());
            }
        }
        self.iterate(&Value::list(&self.meter, kept, ListKind::Generator)?)
    }

    pub fn eval(&self, expr: &Expr, scope: &Rc<Scope>) -> Result<Value> {
        self.meter.work(1)?;
        self.deeper(|| self.eval_here(expr, scope))
    }

    fn all(&self, exprs: &[Expr], scope: &Rc<Scope>) -> Result<Vec<Value>> {
        exprs.iter().map(|expr| self.eval(expr, scope)).collect()
    }

    fn eval_here(&self, expr: &Expr, scope: &Rc<Scope>) -> Result<Value> {
        let meter = &self.meter;
        Ok(match expr {
            Expr::Undefined => Value::undefined(),
            Expr::None => Value::None,
            Expr::Bool(value) => Value::Bool(*value),
            Expr::Int(value) => Value::Int(*value),
            Expr::Float(value) => Value::Float(*value),
            Expr::Text(text) => Value::text(meter, text)?,
            Expr::Name(symbol) => self.lookup(*symbol, scope)?,
            Expr::List(items) => Value::list(meter, self.all(items, scope)?, ListKind::List)?,
            Expr::Tuple(items) => Value::list(meter, self.all(items, scope)?, ListKind::Tuple)?,
            Expr::Dict(entries) => {
                let entry =
                    |(key, value): &(Expr, Expr)| Ok((self.eval(key, scope)?, self.eval(value, scope)?));
                let entries = entries.iter().map(entry).collect::<Result<Vec<_>>>()?;
                crate::globals::dict_of(meter, entries)?
            }
            Expr::Not(value) => Value::Bool(!self.eval(value, scope)?.is_true()),
            Expr::Negative(value) => ops::negative(&self.eval(value, scope)?)?,
            Expr::Positive(value) => ops::positive(&self.eval(value, scope)?)?,
            Expr::Arithmetic(first, rest) => {
                let mut value = self.eval(first, scope)?;
                for (operator, right) in rest {
                    value = ops::arithmetic(meter, *operator, &value, &self.eval(right, scope)?)?;
                }
                value
            }
            Expr::Concat(items) => ops::concat(meter, &self.all(items, scope)?)?,
            Expr::And(items) => self.first_where(items, scope, |value| !value.is_true())?,
            Expr::Or(items) => self.first_where(items, scope, Value::is_true)?,
            Expr::Compare(first, rest) => {
                let mut left = self.eval(first, scope)?;
                for (comparison, right) in rest {
                    let right = self.eval(right, scope)?;
                    if !ops::compare(meter, *comparison, &left, &right)? {
                        return Ok(Value::Bool(false));
                    }
                    left = right;
                }
                Value::Bool(true)
            }
            Expr::Conditional { condition, then, otherwise } => {
                let chosen = if self.eval(condition, scope)?.is_true() { then } else { otherwise };
                self.eval(chosen, scope)?
            }
            Expr::Postfix(base, parts) => {
                let value = self.eval(base, scope)?;
                self.parts(value, parts, scope)?
            }
        })
    }

    /// The first value that ends a chain of `and` or `or`, or the last.
    fn first_where(&self, items: &[Expr], scope: &Rc<Scope>, ends: fn(&Value) -> bool) -> Result<Value> {
        let mut value = Value::undefined();
        for item in items {
            value = self.eval(item, scope)?;
            if ends(&value) {
                break;
            }
        }
        Ok(value)
    }

    fn parts(&self, mut value: Value, parts: &[Postfix], scope: &Rc<Scope>) -> Result<Value> {
        for part in parts {
            self.meter.work(1)?;
            value = match part {
                Postfix::Attribute(name) => self.attribute(&value, name)?,
                Postfix::Item(index) => self.item(&value, &self.eval(index, scope)?)?,
                Postfix::Slice(bounds) => {
                    let mut values = [const { None }; 3];
                    for (slot, bound) in values.iter_mut().zip(bounds.iter()) {
                        *slot = bound.as_ref().map(|bound| self.eval(bound, scope)).transpose()?;
                    }
                    slices::slice(&self.meter, &value, &values)?
                }
                Postfix::Call(arguments) => {
                    let given = self.arguments(arguments, scope)?;
                    self.call(&value, given)?
                }
                Postfix::Filter(name, arguments) => {
                    let given = self.arguments(arguments, scope)?;
                    filters::apply(self, name, &value, given)?
                }
                Postfix::Test { name, arguments, is_negated } => {
                    let given = self.arguments(arguments, scope)?;
                    Value::Bool(predicates::apply(&self.meter, name, &value, &given)? != *is_negated)
                }
            };
        }
        Ok(value)
    }

    /// Evaluates the call of a `{% call %}` block, with its body as `caller`.
    fn eval_with_caller(&self, call: &Expr, caller: Value, scope: &Rc<Scope>) -> Result<Value> {
        let Expr::Postfix(base, parts) = call else { return invalid("expected a call") };
        let Some((Postfix::Call(arguments), before)) = parts.split_last() else {
            return invalid("expected a call");
        };
        let base = self.eval(base, scope)?;
        let function = self.parts(base, before, scope)?;
        let mut given = self.arguments(arguments, scope)?;
        given.keywords.push(("caller".into(), caller));
        self.call(&function, given)
    }

    fn arguments(&self, arguments: &Arguments, scope: &Rc<Scope>) -> Result<CallArguments> {
        let mut given =
            CallArguments { positional: self.all(&arguments.positional, scope)?, keywords: Vec::new() };
        for (name, value) in &arguments.keywords {
            given.keywords.push((Arc::clone(name), self.eval(value, scope)?));
        }
        if let Some(rest) = &arguments.rest {
            let rest = self.eval(rest, scope)?;
            let items = self.iterate(&rest)?;
            self.meter.work(items.items.len() as u64)?;
            given.positional.extend(items.items.iter().cloned());
        }
        if let Some(rest) = &arguments.keyword_rest {
            let Value::Dict(dict) = self.eval(rest, scope)? else { return invalid("** needs a dictionary") };
            for (key, value) in &dict.entries {
                self.meter.work(1)?;
                let Some(name) = key.as_str() else { return invalid("keywords must be strings") };
                given.keywords.push((name.into(), value.clone()));
            }
        }
        Ok(given)
    }

    /// What a loop runs over.
    pub fn iterate(&self, value: &Value) -> Result<Rc<crate::value::List>> {
        let items = match value {
            Value::List(list) => return Ok(Rc::clone(list)),
            Value::Undefined(_) => Vec::new(),
            Value::Dict(dict) => dict.entries.iter().map(|(key, _)| key.clone()).collect(),
            Value::Text(text) => {
                let chars = text.as_str().chars();
                chars.map(|c| Value::text(&self.meter, c.encode_utf8(&mut [0; 4]))).collect::<Result<_>>()?
            }
            Value::Loop(state) => return Ok(Rc::clone(&state.items)),
            other => return invalid(format!("'{}' object is not iterable", other.type_name())),
        };
        match Value::list(&self.meter, items, ListKind::List)? {
            Value::List(list) => Ok(list),
            other => Err(undefined_error(&other)),
        }
    }
}
