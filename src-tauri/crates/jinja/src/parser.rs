//! Parses statements.
//!
//! Nesting is bounded while reading, so that neither reading, rendering nor freeing a template can overflow the stack.

use std::collections::HashMap;
use std::sync::Arc;

use crate::ast::{Body, Expr, ForLoop, MacroDefinition, Node, NodeKind, Postfix, Symbol, Target};
use crate::failure::SyntaxError;
use crate::lexer::Token;

mod expression;

/// Brackets, blocks and signs within each other. Python itself refuses more than about this many.
const MAX_NESTING: usize = 96;

pub type ParseResult<T> = Result<T, SyntaxError>;

pub struct Parser {
    tokens: Vec<(Token, u32)>,
    at: usize,
    depth: usize,
    names: Vec<String>,
    symbols: HashMap<String, Symbol>,
}

/// Parameters of a macro, and the defaults of the last ones.
type Parameters = (Vec<(Symbol, String)>, Vec<Expr>);

/// A parsed template and the names of its symbols.
pub struct ParsedTemplate {
    pub body: Body,
    pub names: Vec<String>,
}

pub fn parse(tokens: Vec<(Token, u32)>) -> ParseResult<ParsedTemplate> {
    let (names, symbols) = (Vec::new(), HashMap::new());
    let mut parser = Parser { tokens, at: 0, depth: 0, names, symbols };
    for name in crate::SPECIAL_NAMES {
        parser.symbol(name);
    }
    let (body, _) = parser.body(&[])?;
    Ok(ParsedTemplate { body, names: parser.names })
}

impl Parser {
    pub fn symbol(&mut self, name: &str) -> Symbol {
        if let Some(symbol) = self.symbols.get(name) {
            return *symbol;
        }
        let symbol = Symbol(self.names.len() as u32);
        self.names.push(name.to_owned());
        self.symbols.insert(name.to_owned(), symbol);
        symbol
    }

    fn peek(&self) -> &Token {
        self.look(0)
    }

    fn look(&self, ahead: usize) -> &Token {
        &self.tokens[(self.at + ahead).min(self.tokens.len() - 1)].0
    }

    fn line(&self) -> u32 {
        self.tokens[self.at.min(self.tokens.len() - 1)].1
    }

    fn next(&mut self) -> Token {
        let at = self.at.min(self.tokens.len() - 1);
        self.at += 1;
        if at == self.tokens.len() - 1 {
            return Token::End;
        }
        std::mem::replace(&mut self.tokens[at].0, Token::End)
    }

    fn error<T>(&self, message: impl Into<String>) -> ParseResult<T> {
        Err(SyntaxError { message: message.into(), line: self.line() })
    }

    fn is_sign(&self, sign: &str) -> bool {
        matches!(self.peek(), Token::Sign(found) if *found == sign)
    }

    fn is_name(&self, name: &str) -> bool {
        matches!(self.peek(), Token::Name(found) if found == name)
    }

    fn skip_sign(&mut self, sign: &str) -> bool {
        let is_it = self.is_sign(sign);
        if is_it {
            self.next();
        }
        is_it
    }

    fn skip_name(&mut self, name: &str) -> bool {
        let is_it = self.is_name(name);
        if is_it {
            self.next();
        }
        is_it
    }

    fn expect_sign(&mut self, sign: &str) -> ParseResult<()> {
        match self.skip_sign(sign) {
            true => Ok(()),
            false => self.error(format!("expected '{sign}', found {}", self.found())),
        }
    }

    fn expect_name(&mut self) -> ParseResult<String> {
        match self.peek() {
            Token::Name(_) => match self.next() {
                Token::Name(name) => Ok(name),
                _ => self.error("expected a name"),
            },
            _ => self.error(format!("expected a name, found {}", self.found())),
        }
    }

    fn expect_block_end(&mut self) -> ParseResult<()> {
        match self.peek() {
            Token::BlockEnd => {
                self.next();
                Ok(())
            }
            _ => self.error(format!("expected the end of the statement, found {}", self.found())),
        }
    }

    fn found(&self) -> String {
        match self.peek() {
            Token::Name(name) => format!("'{name}'"),
            Token::Sign(sign) => format!("'{sign}'"),
            Token::String(_) => "a string".into(),
            Token::Int(_) | Token::Float(_) => "a number".into(),
            Token::End => "the end of the template".into(),
            _ => "the end of the tag".into(),
        }
    }

    /// Parses one level deeper.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> ParseResult<T>) -> ParseResult<T> {
        if self.depth >= MAX_NESTING {
            return self.error("the template is nested too deeply");
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    /// Parses up to a statement with one of these names, whose name is read and returned.
    fn body(&mut self, ends: &[&str]) -> ParseResult<(Body, String)> {
        let mut body = Body::new();
        loop {
            let line = self.line();
            match self.next() {
                Token::Text(text) => body.push(Node { line, kind: NodeKind::Text(text) }),
                Token::PrintBegin => {
                    let value = self.tuple(true)?;
                    if !matches!(self.peek(), Token::PrintEnd) {
                        return self
                            .error(format!("expected the end of the expression, found {}", self.found()));
                    }
                    self.next();
                    body.push(Node { line, kind: NodeKind::Print(value) });
                }
                Token::BlockBegin => {
                    let name = self.expect_name()?;
                    if ends.contains(&name.as_str()) {
                        return Ok((body, name));
                    }
                    let kind = self.nested(|parser| parser.statement(&name))?;
                    body.push(Node { line, kind });
                }
                Token::End if ends.is_empty() => return Ok((body, String::new())),
                Token::End => return self.error(format!("expected '{}'", ends[ends.len() - 1])),
                _ => return self.error("unexpected text"),
            }
        }
    }

    /// Parses the body of a block and the tag that ends it.
    fn block(&mut self, end: &str) -> ParseResult<Body> {
        self.expect_block_end()?;
        let (body, _) = self.body(&[end])?;
        // `{% endblock name %}` and `{% endmacro name %}`
        if matches!(self.peek(), Token::Name(_)) {
            self.next();
        }
        self.expect_block_end()?;
        Ok(body)
    }

    fn statement(&mut self, name: &str) -> ParseResult<NodeKind> {
        match name {
            "if" => self.if_statement(),
            "for" => self.for_statement(),
            "set" => self.set_statement(),
            "macro" => {
                let name = self.expect_name()?;
                let definition = self.macro_definition(name, "endmacro")?;
                Ok(NodeKind::Macro(Arc::new(definition)))
            }
            "call" => self.call_statement(),
            "filter" => {
                let filters = self.filters()?;
                Ok(NodeKind::FilterBlock { filters, body: self.block("endfilter")? })
            }
            "with" => self.with_statement(),
            "do" => {
                let value = self.tuple(true)?;
                self.expect_block_end()?;
                Ok(NodeKind::Do(value))
            }
            "break" | "continue" => {
                self.expect_block_end()?;
                Ok(if name == "break" { NodeKind::Break } else { NodeKind::Continue })
            }
            "generation" => Ok(NodeKind::Group(self.block("endgeneration")?)),
            "block" => {
                self.expect_name()?;
                Ok(NodeKind::Group(self.block("endblock")?))
            }
            "autoescape" => {
                self.expression()?;
                Ok(NodeKind::Group(self.block("endautoescape")?))
            }
            other => self.error(format!("the statement '{other}' is unknown")),
        }
    }

    fn if_statement(&mut self) -> ParseResult<NodeKind> {
        let (mut branches, mut otherwise) = (Vec::new(), Body::new());
        loop {
            let condition = self.tuple(false)?;
            self.expect_block_end()?;
            let (body, end) = self.body(&["elif", "else", "endif"])?;
            branches.push((condition, body));
            if end == "elif" {
                continue;
            }
            if end == "else" {
                self.expect_block_end()?;
                (otherwise, _) = self.body(&["endif"])?;
            }
            self.expect_block_end()?;
            return Ok(NodeKind::If { branches, otherwise });
        }
    }

    fn for_statement(&mut self) -> ParseResult<NodeKind> {
        let target = self.target_list("in")?;
        if !self.skip_name("in") {
            return self.error(format!("expected 'in', found {}", self.found()));
        }
        let items = self.tuple(false)?;
        let condition = if self.skip_name("if") { Some(self.expression()?) } else { None };
        let is_recursive = self.skip_name("recursive");
        self.expect_block_end()?;
        let (body, end) = self.body(&["else", "endfor"])?;
        let mut otherwise = Body::new();
        if end == "else" {
            self.expect_block_end()?;
            (otherwise, _) = self.body(&["endfor"])?;
        }
        self.expect_block_end()?;
        let items = ForLoop { target, items, condition, is_recursive, body, otherwise };
        Ok(NodeKind::For(Arc::new(items)))
    }

    fn set_statement(&mut self) -> ParseResult<NodeKind> {
        let target = self.target_list("=")?;
        if self.skip_sign("=") {
            let value = self.tuple(true)?;
            self.expect_block_end()?;
            return Ok(NodeKind::Set { target, value });
        }
        let filters = if self.skip_sign("|") { self.filters()? } else { Vec::new() };
        Ok(NodeKind::SetBlock { target, filters, body: self.block("endset")? })
    }

    fn with_statement(&mut self) -> ParseResult<NodeKind> {
        let mut assignments = Vec::new();
        while !matches!(self.peek(), Token::BlockEnd) {
            if !assignments.is_empty() {
                self.expect_sign(",")?;
            }
            let target = self.target()?;
            self.expect_sign("=")?;
            assignments.push((target, self.expression()?));
        }
        Ok(NodeKind::With { assignments, body: self.block("endwith")? })
    }

    fn call_statement(&mut self) -> ParseResult<NodeKind> {
        let (parameters, defaults) = match self.is_sign("(") {
            true => self.parameters()?,
            false => Default::default(),
        };
        let call = self.expression()?;
        let is_call =
            matches!(&call, Expr::Postfix(_, parts) if matches!(parts.last(), Some(Postfix::Call(_))));
        if !is_call {
            return self.error("expected a call");
        }
        let body = self.block("endcall")?;
        let symbol = crate::special("caller");
        let caller = definition(("caller".into(), symbol), parameters, defaults, body);
        Ok(NodeKind::Call { call, caller: Arc::new(caller) })
    }

    fn macro_definition(&mut self, name: String, end: &str) -> ParseResult<MacroDefinition> {
        let (parameters, defaults) = self.parameters()?;
        let body = self.block(end)?;
        let symbol = self.symbol(&name);
        Ok(definition((name, symbol), parameters, defaults, body))
    }

    fn parameters(&mut self) -> ParseResult<Parameters> {
        let (mut parameters, mut defaults) = (Vec::new(), Vec::new());
        self.expect_sign("(")?;
        while !self.skip_sign(")") {
            if !parameters.is_empty() {
                self.expect_sign(",")?;
                if self.skip_sign(")") {
                    break;
                }
            }
            let name = self.expect_name()?;
            parameters.push((self.symbol(&name), name));
            if self.skip_sign("=") {
                defaults.push(self.expression()?);
            } else if !defaults.is_empty() {
                return self.error("a parameter without a default follows one with a default");
            }
        }
        Ok((parameters, defaults))
    }

    /// One target, or several with commas.
    fn target_list(&mut self, end: &str) -> ParseResult<Target> {
        let first = self.target()?;
        if !self.is_sign(",") {
            return Ok(first);
        }
        let mut targets = vec![first];
        while self.skip_sign(",") && !self.is_name(end) && !self.is_sign(end) {
            targets.push(self.target()?);
        }
        Ok(Target::Tuple(targets))
    }

    fn target(&mut self) -> ParseResult<Target> {
        if self.skip_sign("(") {
            let inner = self.nested(|parser| parser.target_list(")"))?;
            self.expect_sign(")")?;
            return Ok(inner);
        }
        let name = self.expect_name()?;
        if ["true", "false", "none", "True", "False", "None"].contains(&name.as_str()) {
            return self.error(format!("cannot assign to '{name}'"));
        }
        let symbol = self.symbol(&name);
        if self.skip_sign(".") {
            return Ok(Target::Attribute(symbol, self.expect_name()?.into()));
        }
        Ok(Target::Name(symbol))
    }
}

fn definition(
    (name, symbol): (String, Symbol),
    parameters: Vec<(Symbol, String)>,
    defaults: Vec<Expr>,
    body: Body,
) -> MacroDefinition {
    let mut names = crate::variables::Reads::default();
    names.body(&body);
    let reads = |special: &str| names.has(crate::special(special));
    let (takes_varargs, takes_kwargs, takes_caller) = (reads("varargs"), reads("kwargs"), reads("caller"));
    MacroDefinition { name, symbol, parameters, defaults, body, takes_varargs, takes_kwargs, takes_caller }
}
