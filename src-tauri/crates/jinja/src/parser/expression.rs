//! Parses expressions, with Jinja's precedence.

use std::sync::Arc;

use super::{ParseResult, Parser};
use crate::ast::{Arguments, Comparison, Expr, Operator, Postfix};
use crate::lexer::Token;

impl Parser {
    /// An expression or several with commas.
    pub(super) fn tuple(&mut self, with_condition: bool) -> ParseResult<Expr> {
        let item = |parser: &mut Self| match with_condition {
            true => parser.expression(),
            false => parser.without_condition(),
        };
        let first = item(self)?;
        if !self.is_sign(",") {
            return Ok(first);
        }
        let mut items = vec![first];
        while self.skip_sign(",") && !self.ends_tuple() {
            items.push(item(self)?);
        }
        Ok(Expr::Tuple(items))
    }

    fn ends_tuple(&self) -> bool {
        matches!(self.peek(), Token::PrintEnd | Token::BlockEnd | Token::End) || self.is_sign(")")
    }

    pub(super) fn expression(&mut self) -> ParseResult<Expr> {
        self.nested(Self::conditional)
    }

    fn without_condition(&mut self) -> ParseResult<Expr> {
        self.nested(Self::or)
    }

    fn conditional(&mut self) -> ParseResult<Expr> {
        let mut value = self.or()?;
        while self.skip_name("if") {
            let condition = self.or()?;
            // A chain of `else` nests to the right, and is bounded as brackets are.
            let otherwise = if self.skip_name("else") { self.expression()? } else { Expr::Undefined };
            let (condition, otherwise) = (Box::new(condition), Box::new(otherwise));
            value = self.deeper(Expr::Conditional { condition, then: Box::new(value), otherwise })?;
        }
        Ok(value)
    }

    /// Refuses `a if b if c if d …`, whose tree would be as deep as it is long.
    fn deeper(&mut self, value: Expr) -> ParseResult<Expr> {
        let mut depth = 0;
        let mut inner = &value;
        while let Expr::Conditional { then, .. } = inner {
            depth += 1;
            inner = then;
        }
        match depth + self.depth > super::MAX_NESTING {
            true => self.error("the template is nested too deeply"),
            false => Ok(value),
        }
    }

    fn or(&mut self) -> ParseResult<Expr> {
        let first = self.and()?;
        let mut all = vec![first];
        while self.skip_name("or") {
            all.push(self.and()?);
        }
        Ok(single_or(all, Expr::Or))
    }

    fn and(&mut self) -> ParseResult<Expr> {
        let first = self.not()?;
        let mut all = vec![first];
        while self.skip_name("and") {
            all.push(self.not()?);
        }
        Ok(single_or(all, Expr::And))
    }

    fn not(&mut self) -> ParseResult<Expr> {
        if self.skip_name("not") {
            return Ok(Expr::Not(Box::new(self.nested(Self::not)?)));
        }
        self.comparison()
    }

    fn comparison(&mut self) -> ParseResult<Expr> {
        let first = self.sum()?;
        let mut rest = Vec::new();
        loop {
            let comparison = match self.peek() {
                Token::Sign("==") => Comparison::Equal,
                Token::Sign("!=") => Comparison::NotEqual,
                Token::Sign("<") => Comparison::Less,
                Token::Sign("<=") => Comparison::LessOrEqual,
                Token::Sign(">") => Comparison::Greater,
                Token::Sign(">=") => Comparison::GreaterOrEqual,
                Token::Name(name) if name == "in" => Comparison::In,
                Token::Name(name) if name == "not" && matches!(self.look(1), Token::Name(n) if n == "in") => {
                    self.next();
                    Comparison::NotIn
                }
                _ => break,
            };
            self.next();
            rest.push((comparison, self.sum()?));
        }
        Ok(if rest.is_empty() { first } else { Expr::Compare(Box::new(first), rest) })
    }

    /// A chain of operators of one precedence.
    fn chain(
        &mut self,
        operators: &[(&str, Operator)],
        operand: fn(&mut Self) -> ParseResult<Expr>,
    ) -> ParseResult<Expr> {
        let first = operand(self)?;
        let mut rest = Vec::new();
        while let Token::Sign(sign) = *self.peek()
            && let Some((_, operator)) = operators.iter().find(|(known, _)| *known == sign)
        {
            self.next();
            rest.push((*operator, operand(self)?));
        }
        Ok(if rest.is_empty() { first } else { Expr::Arithmetic(Box::new(first), rest) })
    }

    fn sum(&mut self) -> ParseResult<Expr> {
        self.chain(&[("+", Operator::Add), ("-", Operator::Subtract)], Self::concat)
    }

    fn concat(&mut self) -> ParseResult<Expr> {
        let first = self.product()?;
        let mut all = vec![first];
        while self.skip_sign("~") {
            all.push(self.product()?);
        }
        Ok(single_or(all, Expr::Concat))
    }

    fn product(&mut self) -> ParseResult<Expr> {
        let operators = [
            ("*", Operator::Multiply),
            ("/", Operator::Divide),
            ("//", Operator::FloorDivide),
            ("%", Operator::Remainder),
        ];
        self.chain(&operators, Self::power)
    }

    fn power(&mut self) -> ParseResult<Expr> {
        self.chain(&[("**", Operator::Power)], |parser| parser.unary(true))
    }

    fn unary(&mut self, with_filters: bool) -> ParseResult<Expr> {
        let value = if self.skip_sign("-") {
            Expr::Negative(Box::new(self.nested(|parser| parser.unary(false))?))
        } else if self.skip_sign("+") {
            Expr::Positive(Box::new(self.nested(|parser| parser.unary(false))?))
        } else {
            self.primary()?
        };
        let mut parts = Vec::new();
        self.accesses(&mut parts)?;
        if with_filters {
            self.filters_and_tests(&mut parts)?;
        }
        Ok(if parts.is_empty() { value } else { Expr::Postfix(Box::new(value), parts) })
    }

    fn primary(&mut self) -> ParseResult<Expr> {
        match self.peek() {
            Token::Name(_) => Ok(match self.expect_name()?.as_str() {
                "true" | "True" => Expr::Bool(true),
                "false" | "False" => Expr::Bool(false),
                "none" | "None" => Expr::None,
                name => Expr::Name(self.symbol(name)),
            }),
            Token::String(_) => {
                let mut text = String::new();
                while let Token::String(part) = self.peek() {
                    text.push_str(part);
                    self.next();
                }
                Ok(Expr::Text(text.into()))
            }
            Token::Int(value) => {
                let value = Expr::Int(*value);
                self.next();
                Ok(value)
            }
            Token::Float(value) => {
                let value = Expr::Float(*value);
                self.next();
                Ok(value)
            }
            Token::Sign("(") => {
                self.next();
                if self.skip_sign(")") {
                    return Ok(Expr::Tuple(Vec::new()));
                }
                let inner = self.tuple(true)?;
                self.expect_sign(")")?;
                Ok(inner)
            }
            Token::Sign("[") => {
                self.next();
                Ok(Expr::List(self.items("]", Self::expression)?))
            }
            Token::Sign("{") => {
                self.next();
                let pair = |parser: &mut Self| {
                    let key = parser.expression()?;
                    parser.expect_sign(":")?;
                    Ok((key, parser.expression()?))
                };
                Ok(Expr::Dict(self.items("}", pair)?))
            }
            _ => self.error(format!("unexpected {}", self.found())),
        }
    }

    /// Items with commas, up to a bracket.
    fn items<T>(&mut self, end: &str, item: impl Fn(&mut Self) -> ParseResult<T>) -> ParseResult<Vec<T>> {
        let mut items = Vec::new();
        while !self.skip_sign(end) {
            if !items.is_empty() {
                self.expect_sign(",")?;
                if self.skip_sign(end) {
                    break;
                }
            }
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn accesses(&mut self, parts: &mut Vec<Postfix>) -> ParseResult<()> {
        loop {
            if self.skip_sign(".") {
                parts.push(match self.next() {
                    Token::Name(name) => Postfix::Attribute(name.into()),
                    Token::Int(index) => Postfix::Item(Expr::Int(index)),
                    _ => return self.error("expected a name or a number after '.'"),
                });
            } else if self.skip_sign("[") {
                parts.push(self.subscript()?);
            } else if self.is_sign("(") {
                parts.push(Postfix::Call(self.arguments()?));
            } else {
                return Ok(());
            }
        }
    }

    fn subscript(&mut self) -> ParseResult<Postfix> {
        let mut bounds = [None, None, None];
        let (mut n, mut is_slice) = (0, false);
        while !self.skip_sign("]") {
            if self.skip_sign(":") {
                (n, is_slice) = (n + 1, true);
            } else if n < 3 && bounds[n].is_none() {
                bounds[n] = Some(self.expression()?);
            } else {
                return self.error(format!("expected ']', found {}", self.found()));
            }
            if n > 2 {
                return self.error("a slice has at most three parts");
            }
            if self.is_sign(",") {
                return self.error("subscripts with several values are not supported");
            }
        }
        match bounds {
            bounds if is_slice => Ok(Postfix::Slice(Box::new(bounds))),
            [Some(index), ..] => Ok(Postfix::Item(index)),
            _ => self.error("expected a subscript"),
        }
    }

    fn filters_and_tests(&mut self, parts: &mut Vec<Postfix>) -> ParseResult<()> {
        loop {
            if self.skip_sign("|") {
                parts.push(self.filter()?);
            } else if self.skip_name("is") {
                parts.push(self.test()?);
            } else if self.is_sign("(") {
                parts.push(Postfix::Call(self.arguments()?));
            } else {
                return Ok(());
            }
        }
    }

    /// Filters of a block: `upper | trim`.
    pub(super) fn filters(&mut self) -> ParseResult<Vec<Postfix>> {
        let mut filters = vec![self.filter()?];
        while self.skip_sign("|") {
            filters.push(self.filter()?);
        }
        Ok(filters)
    }

    fn dotted_name(&mut self) -> ParseResult<Arc<str>> {
        let mut name = self.expect_name()?;
        while self.skip_sign(".") {
            name = format!("{name}.{}", self.expect_name()?);
        }
        Ok(name.into())
    }

    fn filter(&mut self) -> ParseResult<Postfix> {
        let name = self.dotted_name()?;
        let arguments = if self.is_sign("(") { self.arguments()? } else { Arguments::default() };
        Ok(Postfix::Filter(name, arguments))
    }

    fn test(&mut self) -> ParseResult<Postfix> {
        let is_negated = self.skip_name("not");
        let name = self.dotted_name()?;
        let mut arguments = Arguments::default();
        let is_argument = match self.peek() {
            Token::Name(name) => {
                !["else", "or", "and", "is", "if", "not", "in", "recursive"].contains(&name.as_str())
            }
            Token::String(_) | Token::Int(_) | Token::Float(_) => true,
            Token::Sign(sign) => ["[", "{"].contains(sign),
            _ => false,
        };
        if self.is_sign("(") {
            arguments = self.arguments()?;
        } else if is_argument {
            let value = self.primary()?;
            let mut parts = Vec::new();
            self.accesses(&mut parts)?;
            let value = if parts.is_empty() { value } else { Expr::Postfix(Box::new(value), parts) };
            arguments.positional.push(value);
        }
        Ok(Postfix::Test { name, arguments, is_negated })
    }

    fn arguments(&mut self) -> ParseResult<Arguments> {
        self.expect_sign("(")?;
        let mut arguments = Arguments::default();
        let mut is_first = true;
        while !self.skip_sign(")") {
            if !is_first {
                self.expect_sign(",")?;
                if self.skip_sign(")") {
                    break;
                }
            }
            is_first = false;
            if self.skip_sign("**") {
                arguments.keyword_rest = Some(Box::new(self.expression()?));
            } else if self.skip_sign("*") {
                arguments.rest = Some(Box::new(self.expression()?));
            } else if matches!(self.peek(), Token::Name(_)) && matches!(self.look(1), Token::Sign("=")) {
                let name = self.expect_name()?;
                self.next();
                let value = self.expression()?;
                arguments.keywords.push((name.into(), value));
            } else if arguments.keywords.is_empty() {
                let value = self.expression()?;
                arguments.positional.push(value);
            } else {
                return self.error("an argument without a name follows one with a name");
            }
        }
        Ok(arguments)
    }
}

fn single_or(mut all: Vec<Expr>, many: fn(Vec<Expr>) -> Expr) -> Expr {
    match all.len() {
        1 => all.pop().unwrap_or(Expr::Undefined),
        _ => many(all),
    }
}
