//! Which variables a template reads.

use std::collections::HashSet;

use crate::ast::{Arguments, Expr, MacroDefinition, Node, NodeKind, Postfix, Symbol, Target};

/// Names that are read and not set before, by scope.
#[derive(Default)]
pub struct Reads {
    found: HashSet<Symbol>,
    scopes: Vec<HashSet<Symbol>>,
}

impl Reads {
    pub fn has(&self, symbol: Symbol) -> bool {
        self.found.contains(&symbol)
    }

    pub fn into_found(self) -> HashSet<Symbol> {
        self.found
    }

    fn scoped(&mut self, work: impl FnOnce(&mut Self)) {
        self.scopes.push(HashSet::new());
        work(self);
        self.scopes.pop();
    }

    fn read(&mut self, symbol: Symbol) {
        if !self.scopes.iter().any(|scope| scope.contains(&symbol)) {
            self.found.insert(symbol);
        }
    }

    fn set(&mut self, symbol: Symbol) {
        if self.scopes.is_empty() {
            self.scopes.push(HashSet::new());
        }
        let scope = self.scopes.last_mut();
        scope.map(|scope| scope.insert(symbol));
    }

    fn target(&mut self, target: &Target) {
        match target {
            Target::Name(symbol) => self.set(*symbol),
            Target::Attribute(symbol, _) => self.read(*symbol),
            Target::Tuple(targets) => targets.iter().for_each(|target| self.target(target)),
        }
    }

    pub fn body(&mut self, body: &[Node]) {
        body.iter().for_each(|node| self.node(node));
    }

    fn macro_body(&mut self, definition: &MacroDefinition) {
        self.scoped(|reads| {
            definition.parameters.iter().for_each(|(symbol, _)| reads.set(*symbol));
            definition.defaults.iter().for_each(|value| reads.expr(value));
            reads.body(&definition.body);
        });
    }

    fn node(&mut self, node: &Node) {
        match &node.kind {
            NodeKind::Text(_) | NodeKind::Break | NodeKind::Continue => {}
            NodeKind::Print(value) | NodeKind::Do(value) => self.expr(value),
            NodeKind::If { branches, otherwise } => {
                // What only one branch sets may be read where it did not run.
                for (condition, body) in branches {
                    self.expr(condition);
                    self.scoped(|reads| reads.body(body));
                }
                self.scoped(|reads| reads.body(otherwise));
            }
            NodeKind::For(it) => {
                self.expr(&it.items);
                self.scoped(|reads| {
                    reads.target(&it.target);
                    it.condition.iter().for_each(|condition| reads.expr(condition));
                    reads.set(crate::special("loop"));
                    reads.body(&it.body);
                });
                self.scoped(|reads| reads.body(&it.otherwise));
            }
            NodeKind::Set { target, value } => {
                self.expr(value);
                self.target(target);
            }
            NodeKind::SetBlock { target, filters, body } => {
                self.scoped(|reads| reads.body(body));
                self.parts(filters);
                self.target(target);
            }
            NodeKind::FilterBlock { filters, body } => {
                self.parts(filters);
                self.scoped(|reads| reads.body(body));
            }
            NodeKind::With { assignments, body } => self.scoped(|reads| {
                for (target, value) in assignments {
                    reads.expr(value);
                    reads.target(target);
                }
                reads.body(body);
            }),
            NodeKind::Macro(definition) => {
                self.set(definition.symbol);
                self.macro_body(definition);
            }
            NodeKind::Call { call, caller } => {
                self.expr(call);
                self.macro_body(caller);
            }
            NodeKind::Group(body) => self.body(body),
        }
    }

    fn expr(&mut self, expr: &Expr) {
        match expr {
            Expr::Undefined | Expr::None | Expr::Bool(_) | Expr::Int(_) | Expr::Float(_) | Expr::Text(_) => {}
            Expr::Name(symbol) => self.read(*symbol),
            Expr::List(items) | Expr::Tuple(items) => items.iter().for_each(|item| self.expr(item)),
            Expr::Concat(items) | Expr::And(items) | Expr::Or(items) => {
                items.iter().for_each(|item| self.expr(item));
            }
            Expr::Dict(entries) => entries.iter().for_each(|(key, value)| {
                self.expr(key);
                self.expr(value);
            }),
            Expr::Not(value) | Expr::Negative(value) | Expr::Positive(value) => self.expr(value),
            Expr::Arithmetic(first, rest) => {
                self.expr(first);
                rest.iter().for_each(|(_, value)| self.expr(value));
            }
            Expr::Compare(first, rest) => {
                self.expr(first);
                rest.iter().for_each(|(_, value)| self.expr(value));
            }
            Expr::Conditional { condition, then, otherwise } => {
                [condition, then, otherwise].into_iter().for_each(|value| self.expr(value));
            }
            Expr::Postfix(base, parts) => {
                self.expr(base);
                self.parts(parts);
            }
        }
    }

    fn parts(&mut self, parts: &[Postfix]) {
        for part in parts {
            match part {
                Postfix::Attribute(_) => {}
                Postfix::Item(value) => self.expr(value),
                Postfix::Slice(bounds) => bounds.iter().flatten().for_each(|value| self.expr(value)),
                Postfix::Call(arguments) | Postfix::Filter(_, arguments) => self.arguments(arguments),
                Postfix::Test { arguments, .. } => self.arguments(arguments),
            }
        }
    }

    fn arguments(&mut self, arguments: &Arguments) {
        let Arguments { positional, keywords, rest, keyword_rest } = arguments;
        positional.iter().for_each(|value| self.expr(value));
        keywords.iter().for_each(|(_, value)| self.expr(value));
        [rest, keyword_rest].into_iter().flatten().for_each(|value| self.expr(value));
    }
}
