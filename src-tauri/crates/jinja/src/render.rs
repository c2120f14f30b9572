//! Runs one rendering: its variables, its thread and its end.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use crate::ast::Symbol;
use crate::failure::{Failure, RenderError, Result, invalid};
use crate::meter::{Limits, Meter, TextBuilder};
use crate::value::Scope;
use crate::value::{Callable, ListKind, Namespace, Value, from_json};
use crate::{Template, TemplateOutput, Variable, names};

/// Stack of a rendering: [`MAX_CALLS`] levels of the largest frames, several times over.
const STACK_BYTES: usize = 32 << 20;

/// Macros, loops and expressions within each other while rendering. Python stops at 1000 nested calls.
const MAX_CALLS: usize = 1500;

/// State of a rendering.
pub struct Renderer<'t> {
    pub template: &'t Template,
    pub meter: Rc<Meter>,
    /// The line that is rendered.
    pub line: Cell<u32>,
    depth: Cell<usize>,
    /// All that were made: they may hold themselves, and are emptied at the end.
    pub namespaces: RefCell<Vec<Rc<Namespace>>>,
    pub root: Rc<Scope>,
}

pub fn on_own_stack(
    template: &Template,
    variables: &[(&str, Variable<'_>)],
    limits: &Limits,
) -> Result<TemplateOutput, RenderError> {
    let failed = |message: String| RenderError { failure: Failure::Invalid(message), line: 0 };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("template".into()).stack_size(STACK_BYTES);
        let running = thread.spawn_scoped(scope, || render(template, variables, limits));
        let running = running.map_err(|error| failed(format!("no thread for the template: {error}")))?;
        running.join().unwrap_or_else(|_| Err(failed("the template's renderer panicked".into())))
    })
}

fn render(
    template: &Template,
    variables: &[(&str, Variable<'_>)],
    limits: &Limits,
) -> Result<TemplateOutput, RenderError> {
    let meter = Meter::new(limits.clone());
    let line = Cell::new(1);
    let before = |failure| RenderError { failure, line: 1 };
    let root = Scope::new(&meter, None).map_err(before)?;
    let (depth, namespaces) = (Cell::new(0), RefCell::default());
    let renderer = Renderer { template, meter: Rc::clone(&meter), line, depth, namespaces, root };
    let rendered = renderer.run(variables);
    renderer.release();
    let (work, peak_bytes) = (meter.work_done(), meter.peak_bytes());
    match rendered {
        Ok(text) => Ok(TemplateOutput { text, work, peak_bytes }),
        Err(failure) => Err(RenderError { failure, line: renderer.line.get() }),
    }
}

impl<'t> Renderer<'t> {
    fn run(&self, variables: &[(&str, Variable<'_>)]) -> Result<String> {
        for (name, variable) in variables {
            let Some(symbol) = self.template.names.iter().position(|known| **known == **name) else {
                continue;
            };
            let meter = &self.meter;
            let value = match variable {
                Variable::Json(json) => from_json(meter, json)?,
                Variable::List(items) => {
                    let items =
                        items.iter().map(|item| from_json(meter, item)).collect::<Result<Vec<_>>>()?;
                    Value::list(meter, items, ListKind::List)?
                }
                Variable::Text(text) => Value::text(meter, text)?,
                Variable::Function(function) => Value::Callable(Callable::Host(Arc::clone(function))),
            };
            self.root.set(Symbol(symbol as u32), value)?;
        }
        let scope = Scope::new(&self.meter, Some(Rc::clone(&self.root)))?;
        let mut out = TextBuilder::new(&self.meter);
        let done = self.body(&self.template.body, &scope, &mut out);
        scope.clear();
        done.map(|_| out.into_parts().0)
    }

    /// Empties whatever may hold itself. What namespaces hold is freed one by one, so that a chain of them does not
    /// nest.
    fn release(&self) {
        self.root.clear();
        let namespaces = self.namespaces.take();
        let values: Vec<_> = namespaces.iter().flat_map(|namespace| namespace.values.take()).collect();
        drop(values);
    }

    /// Runs one level deeper.
    pub fn deeper<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        if self.depth.get() >= MAX_CALLS {
            return invalid("the template calls itself too deeply");
        }
        self.depth.set(self.depth.get() + 1);
        let done = work();
        self.depth.set(self.depth.get() - 1);
        done
    }

    /// A variable, a global function, or undefined.
    pub fn lookup(&self, symbol: Symbol, scope: &Scope) -> Result<Value> {
        if let Some(value) = scope.get(symbol)? {
            return Ok(value);
        }
        let name = &self.template.names[symbol.0 as usize];
        Ok(match names::GLOBALS.iter().find(|known| ***known == **name) {
            Some(known) => Value::Callable(Callable::Global(known)),
            None => Value::Undefined(Some(Arc::clone(name))),
        })
    }
}
