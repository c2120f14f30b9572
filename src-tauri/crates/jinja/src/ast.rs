//! The parsed template. Chains of operators are flat, so that only brackets and blocks nest.

use std::sync::Arc;

/// A variable's name, as an index into the template's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Symbol(pub u32);

#[derive(Debug)]
pub struct Node {
    pub line: u32,
    pub kind: NodeKind,
}

pub type Body = Vec<Node>;

#[derive(Debug)]
pub enum NodeKind {
    Text(String),
    Print(Expr),
    Do(Expr),
    If {
        branches: Vec<(Expr, Body)>,
        otherwise: Body,
    },
    For(Arc<ForLoop>),
    Set {
        target: Target,
        value: Expr,
    },
    SetBlock {
        target: Target,
        filters: Vec<Postfix>,
        body: Body,
    },
    FilterBlock {
        filters: Vec<Postfix>,
        body: Body,
    },
    With {
        assignments: Vec<(Target, Expr)>,
        body: Body,
    },
    Macro(Arc<MacroDefinition>),
    Call {
        call: Expr,
        caller: Arc<MacroDefinition>,
    },
    /// Statements without a scope of their own.
    Group(Body),
    Break,
    Continue,
}

#[derive(Debug)]
pub struct ForLoop {
    pub target: Target,
    pub items: Expr,
    pub condition: Option<Expr>,
    pub is_recursive: bool,
    pub body: Body,
    pub otherwise: Body,
}

#[derive(Debug)]
pub struct MacroDefinition {
    pub name: String,
    pub symbol: Symbol,
    pub parameters: Vec<(Symbol, String)>,
    /// Of the last parameters.
    pub defaults: Vec<Expr>,
    pub body: Body,
    pub takes_varargs: bool,
    pub takes_kwargs: bool,
    pub takes_caller: bool,
}

/// Where a value is assigned.
#[derive(Debug)]
pub enum Target {
    Name(Symbol),
    Attribute(Symbol, Arc<str>),
    Tuple(Vec<Target>),
}

#[derive(Debug)]
pub enum Expr {
    Undefined,
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(Arc<str>),
    Name(Symbol),
    List(Vec<Expr>),
    Tuple(Vec<Expr>),
    Dict(Vec<(Expr, Expr)>),
    Not(Box<Expr>),
    Negative(Box<Expr>),
    Positive(Box<Expr>),
    /// Of equal precedence, from the left.
    Arithmetic(Box<Expr>, Vec<(Operator, Expr)>),
    Concat(Vec<Expr>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Compare(Box<Expr>, Vec<(Comparison, Expr)>),
    Conditional {
        condition: Box<Expr>,
        then: Box<Expr>,
        otherwise: Box<Expr>,
    },
    Postfix(Box<Expr>, Vec<Postfix>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Remainder,
    Power,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    NotIn,
}

#[derive(Debug)]
pub enum Postfix {
    Attribute(Arc<str>),
    Item(Expr),
    Slice(Box<[Option<Expr>; 3]>),
    Call(Arguments),
    Filter(Arc<str>, Arguments),
    Test { name: Arc<str>, arguments: Arguments, is_negated: bool },
}

#[derive(Debug, Default)]
pub struct Arguments {
    pub positional: Vec<Expr>,
    pub keywords: Vec<(Arc<str>, Expr)>,
    /// `*expression` and `**expression`.
    pub rest: Option<Box<Expr>>,
    pub keyword_rest: Option<Box<Expr>>,
}
