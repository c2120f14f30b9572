//! Rewrites a schema into one that the grammar library takes, and that every valid instance of the first satisfies.
//!
//! Keywords that have an exact equivalent are rewritten (`if`, `dependencies`, most of `not`). The others are dropped, and
//! their schemas are reported, so that values are checked against them when they end.

mod negate;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::any_order;
use super::formats::{CHECKED_FORMATS, GRAMMAR_FORMATS, exact_pattern};
use super::pointer;
use super::relaxation::Relaxation;
use negate::negate;

/// Dependencies of one schema that are expressed; each may double the grammar.
const MAX_EXPRESSED_DEPENDENCIES: usize = 4;

/// Depth of a schema from which on nothing of it is expressed.
const MAX_DEPTH: usize = 128;

/// A schema for the grammar library.
#[derive(Debug)]
pub struct RelaxedSchema {
    /// Every valid instance of the original satisfies it.
    pub schema: Value,
    /// Pointers into the original, of schemas of which something was left out.
    pub checked: BTreeSet<String>,
}

impl RelaxedSchema {
    pub fn new(schema: &Value, relaxation: Relaxation) -> Self {
        let mut rewriter = Rewriter::new(schema, relaxation);
        let mut relaxed = rewriter.rewrite(schema, Some(""), 0);
        if relaxation.keeps_type_only {
            relaxed = type_only(&relaxed);
            rewriter.checked.insert(String::new());
        }
        rewriter.add_moved(&mut relaxed);
        let Rewriter { mut checked, refs_in_branches, .. } = rewriter;
        if !checked.is_empty() {
            checked.extend(refs_in_branches);
        }
        Self { schema: relaxed, checked }
    }
}

fn type_only(schema: &Value) -> Value {
    schema.get("type").map_or_else(|| json!({}), |of| json!({ "type": of }))
}

/// A keyword of a schema.
struct Keyword<'s> {
    name: &'s str,
    value: &'s Value,
    /// The schema that it stands in.
    map: &'s Map<String, Value>,
    /// The schema's place. None: it need not apply.
    pointer: Option<&'s str>,
    depth: usize,
}

impl Keyword<'_> {
    fn at(&self) -> Option<String> {
        self.pointer.map(|pointer| pointer::join(pointer, self.name))
    }
}

struct Rewriter<'a> {
    pub root: &'a Value,
    relaxation: Relaxation,
    /// In this draft, keywords beside `$ref` mean nothing.
    ref_stands_alone: bool,
    checked: BTreeSet<String>,
    /// Schemas that refer to others in alternatives, of which something may have been left out.
    refs_in_branches: BTreeSet<String>,
    /// Something was left out of a schema without a pointer.
    pub is_inexact: bool,
    has_branch_ref: bool,
    /// Targets of references that lie in keywords that are rewritten, in order.
    moved: Vec<String>,
}

/// Keywords whose schemas are not where they were.
const REWRITTEN: [&str; 13] = [
    "not",
    "if",
    "then",
    "else",
    "dependencies",
    "dependentSchemas",
    "propertyNames",
    "contains",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentSchema",
    "oneOf",
    "patternProperties",
];

impl<'a> Rewriter<'a> {
    fn new(root: &'a Value, relaxation: Relaxation) -> Self {
        let draft = root.get("$schema").and_then(Value::as_str).unwrap_or_default();
        let ref_stands_alone =
            ["draft-03", "draft-04", "draft-06", "draft-07"].iter().any(|it| draft.contains(it));
        Self {
            root,
            relaxation,
            ref_stands_alone,
            checked: BTreeSet::new(),
            refs_in_branches: BTreeSet::new(),
            is_inexact: false,
            has_branch_ref: false,
            moved: Vec::new(),
        }
    }

    /// Something is left out of the schema at `pointer`. None: of one that need not apply.
    fn leave_out(&mut self, pointer: Option<&str>) {
        match pointer {
            Some(pointer) => _ = self.checked.insert(pointer.to_owned()),
            None => self.is_inexact = true,
        }
    }

    /// Rewrites alternatives of the schema at `pointer`, which answers for what they leave out.
    fn in_branches<T>(&mut self, pointer: Option<&str>, work: impl FnOnce(&mut Self) -> T) -> T {
        let outer = (self.is_inexact, self.has_branch_ref);
        (self.is_inexact, self.has_branch_ref) = (false, false);
        let done = work(self);
        let (is_inexact, has_branch_ref) = (self.is_inexact, self.has_branch_ref);
        (self.is_inexact, self.has_branch_ref) = outer;
        if is_inexact {
            self.leave_out(pointer);
        }
        match pointer {
            Some(pointer) if has_branch_ref => _ = self.refs_in_branches.insert(pointer.to_owned()),
            Some(_) => {}
            None => self.has_branch_ref |= has_branch_ref,
        }
        done
    }

    /// Rewrites a schema that applies at `pointer`, or (None) may apply.
    pub fn rewrite(&mut self, schema: &Value, pointer: Option<&str>, depth: usize) -> Value {
        let Value::Object(map) = schema else { return schema.clone() };
        if depth > MAX_DEPTH {
            self.leave_out(pointer);
            return json!({});
        }
        let mut out = Map::new();
        let mut and = Vec::new();
        let alone = map.contains_key("$ref") && (self.ref_stands_alone || self.relaxation.drops_beside_ref);
        if alone && !self.ref_stands_alone && map.keys().any(|key| is_assertion(key)) {
            self.leave_out(pointer);
        }
        for (name, value) in map.iter().filter(|(name, _)| !alone || !is_assertion(name)) {
            let keyword = Keyword { name, value, map, pointer, depth };
            if let Some(rewritten) = self.keyword(&keyword, (&mut out, &mut and)) {
                out.insert(name.clone(), rewritten);
            }
        }
        if !alone && !self.relaxation.drops_conditions {
            self.conditional(map, pointer, depth, &mut and);
        }
        if !and.is_empty() {
            let all = out.entry("allOf").or_insert_with(|| json!([]));
            if let Value::Array(all) = all {
                all.extend(and);
            }
        }
        Value::Object(out)
    }

    fn keyword(
        &mut self,
        keyword: &Keyword,
        (out, and): (&mut Map<String, Value>, &mut Vec<Value>),
    ) -> Option<Value> {
        match keyword.name {
            "$ref" => Some(self.reference(keyword.value)),
            "allOf" | "anyOf" | "oneOf" | "not" => self.in_place(keyword, and),
            "properties"
            | "$defs"
            | "definitions"
            | "patternProperties"
            | "additionalProperties"
            | "required"
            | "dependencies"
            | "dependentRequired"
            | "dependentSchemas"
            | "propertyNames" => self.of_objects(keyword, (out, and)),
            "items" | "prefixItems" | "additionalItems" | "contains" | "uniqueItems" => {
                self.of_arrays(keyword, and)
            }
            "enum" | "const" | "pattern" | "format" => self.of_scalars(keyword, and),
            "if" if self.relaxation.drops_conditions => self.without(keyword),
            "unevaluatedItems" | "unevaluatedProperties" | "$dynamicRef" | "$recursiveRef" => {
                self.without(keyword)
            }
            "if" | "then" | "else" | "minContains" | "maxContains" | "$dynamicAnchor"
            | "$recursiveAnchor" | "$vocabulary" | "contentSchema" | "deprecated" | "x-guidance" => None,
            _ => Some(keyword.value.clone()),
        }
    }

    /// Leaves a keyword out.
    fn without(&mut self, keyword: &Keyword) -> Option<Value> {
        self.leave_out(keyword.pointer);
        None
    }

    fn in_place(&mut self, keyword: &Keyword, and: &mut Vec<Value>) -> Option<Value> {
        let &Keyword { name, value, pointer, depth, .. } = keyword;
        match name {
            "allOf" => Some(self.schema_or_list(keyword)),
            "not" if self.relaxation.drops_conditions => self.without(keyword),
            "not" => {
                let negated = self.in_branches(pointer, |it| negate(it, value, depth + 1));
                and.push(negated);
                None
            }
            _ => {
                if name == "oneOf" && self.relaxation.one_of_as_any_of {
                    self.leave_out(pointer);
                }
                self.alternatives(value, pointer, depth)
            }
        }
    }

    fn of_objects(
        &mut self,
        keyword: &Keyword,
        (out, and): (&mut Map<String, Value>, &mut Vec<Value>),
    ) -> Option<Value> {
        let &Keyword { name, value, map, pointer, depth } = keyword;
        match name {
            "properties" if self.relaxation.any_order => {
                self.unordered_properties(keyword, out);
                None
            }
            "required" if self.relaxation.any_order => self.without(keyword),
            "required" => Some(value.clone()),
            "patternProperties" if self.drops_patterns_of(map) => self.without(keyword),
            "additionalProperties" if self.drops_patterns_of(map) => None,
            "additionalProperties" => Some(self.schema_or_list(keyword)),
            "propertyNames" => {
                self.property_names(value, map, pointer, and);
                None
            }
            "dependencies" | "dependentRequired" | "dependentSchemas" if self.relaxation.drops_conditions => {
                self.without(keyword)
            }
            "dependencies" | "dependentRequired" | "dependentSchemas" => {
                self.dependencies(value, pointer, depth, and);
                None
            }
            _ => Some(self.schemas(value, keyword.at().as_deref(), depth)),
        }
    }

    fn of_arrays(&mut self, keyword: &Keyword, and: &mut Vec<Value>) -> Option<Value> {
        match keyword.name {
            "contains" => {
                let least = keyword.map.get("minContains").and_then(Value::as_u64).unwrap_or(1);
                and.push(json!({ "minItems": least }));
                self.without(keyword)
            }
            "uniqueItems" if keyword.value == &Value::Bool(true) => self.without(keyword),
            "uniqueItems" => None,
            _ => Some(self.schema_or_list(keyword)),
        }
    }

    fn of_scalars(&mut self, keyword: &Keyword, and: &mut Vec<Value>) -> Option<Value> {
        let value = keyword.value;
        match keyword.name {
            "enum" if self.relaxation.any_order => {
                and.push(any_order::values(value.as_array().map_or(&[][..], Vec::as_slice)));
                self.without(keyword)
            }
            "const" if self.relaxation.any_order => {
                and.push(any_order::values(std::slice::from_ref(value)));
                self.without(keyword)
            }
            "pattern" if self.drops_pattern(value) => self.without(keyword),
            "format" => self.format(value, keyword.pointer, and),
            _ => Some(value.clone()),
        }
    }

    fn schema_or_list(&mut self, keyword: &Keyword) -> Value {
        let at = keyword.at();
        match keyword.value {
            Value::Array(list) => self.list(list, at.as_deref(), keyword.depth),
            one => self.rewrite(one, at.as_deref(), keyword.depth + 1),
        }
    }

    fn drops_patterns_of(&self, map: &Map<String, Value>) -> bool {
        let Some(Value::Object(patterns)) = map.get("patternProperties") else { return false };
        let beside_names = self.relaxation.any_order && map.contains_key("properties");
        self.relaxation.drops_patterns || beside_names || patterns.keys().any(|it| looks_around(it))
    }

    fn drops_pattern(&self, pattern: &Value) -> bool {
        self.relaxation.drops_string_patterns || pattern.as_str().is_some_and(looks_around)
    }

    /// Properties as patterns, which may come in any order.
    fn unordered_properties(&mut self, keyword: &Keyword, out: &mut Map<String, Value>) {
        if self.drops_patterns_of(keyword.map) {
            return self.leave_out(keyword.pointer);
        }
        let properties = self.schemas(keyword.value, keyword.at().as_deref(), keyword.depth);
        let Value::Object(properties) = properties else { return };
        let patterns = properties.into_iter().map(|(name, schema)| (any_order::pattern(&name), schema));
        out.insert("patternProperties".into(), Value::Object(patterns.collect()));
    }

    /// References into keywords that are rewritten lead to a copy.
    fn reference(&mut self, value: &Value) -> Value {
        self.has_branch_ref = true;
        let Some((target, _)) = value.as_str().and_then(|reference| pointer::resolve(self.root, reference))
        else {
            return value.clone();
        };
        let moves =
            |step: &str| REWRITTEN.contains(&step) || self.relaxation.any_order && step == "properties";
        if !target.split('/').any(moves) {
            return value.clone();
        }
        let at = self.moved.iter().position(|moved| *moved == target).unwrap_or_else(|| {
            self.moved.push(target);
            self.moved.len() - 1
        });
        json!(format!("#/$defs/{}", moved_name(at)))
    }

    /// Adds the copies that references lead to; they may refer to more.
    fn add_moved(&mut self, relaxed: &mut Value) {
        let mut at = 0;
        while let Some(target) = self.moved.get(at).cloned() {
            let schema = self.root.pointer(&target).cloned().unwrap_or(Value::Bool(true));
            let copy = self.rewrite(&schema, Some(&target), 0);
            if let Some(definitions) = relaxed
                .as_object_mut()
                .and_then(|map| map.entry("$defs").or_insert_with(|| json!({})).as_object_mut())
            {
                definitions.insert(moved_name(at), copy);
            }
            at += 1;
        }
    }

    fn schemas(&mut self, value: &Value, at: Option<&str>, depth: usize) -> Value {
        let Value::Object(map) = value else { return value.clone() };
        let mut out = Map::new();
        for (name, schema) in map {
            let at = at.map(|at| pointer::join(at, name));
            out.insert(name.clone(), self.rewrite(schema, at.as_deref(), depth + 1));
        }
        Value::Object(out)
    }

    fn list(&mut self, list: &[Value], at: Option<&str>, depth: usize) -> Value {
        let rewrite = |(index, schema): (usize, &Value)| {
            let at = at.map(|at| format!("{at}/{index}"));
            self.rewrite(schema, at.as_deref(), depth + 1)
        };
        list.iter().enumerate().map(rewrite).collect()
    }

    fn alternatives(&mut self, value: &Value, pointer: Option<&str>, depth: usize) -> Option<Value> {
        let Value::Array(list) = value else { return Some(value.clone()) };
        Some(self.in_branches(pointer, |it| {
            list.iter().map(|schema| it.rewrite(schema, None, depth + 1)).collect()
        }))
    }

    /// `if`, `then` and `else` as two alternatives.
    fn conditional(
        &mut self,
        map: &Map<String, Value>,
        pointer: Option<&str>,
        depth: usize,
        and: &mut Vec<Value>,
    ) {
        let Some(condition) = map.get("if") else { return };
        let (then, or_else) = (map.get("then"), map.get("else"));
        if then.is_none() && or_else.is_none() {
            return;
        }
        let always = Value::Bool(true);
        let either = self.in_branches(pointer, |it| {
            let holds = it.rewrite(condition, None, depth + 1);
            let then = it.rewrite(then.unwrap_or(&always), None, depth + 1);
            let fails = negate(it, condition, depth + 1);
            let or_else = it.rewrite(or_else.unwrap_or(&always), None, depth + 1);
            json!({ "anyOf": [{ "allOf": [holds, then] }, { "allOf": [fails, or_else] }] })
        });
        and.push(either);
    }

    /// Each dependency as two alternatives: without the property, or with what it needs.
    fn dependencies(&mut self, value: &Value, pointer: Option<&str>, depth: usize, and: &mut Vec<Value>) {
        let Value::Object(map) = value else { return };
        if map.len() > MAX_EXPRESSED_DEPENDENCIES {
            return self.leave_out(pointer);
        }
        for (name, needed) in map {
            let needed = match needed {
                Value::Array(names) => json!({ "required": names }),
                schema => self.in_branches(pointer, |it| it.rewrite(schema, None, depth + 1)),
            };
            let (absent, present) = (json!({ "properties": { name: false } }), json!({ "required": [name] }));
            and.push(json!({ "anyOf": [absent, { "allOf": [present, needed] }] }));
        }
    }

    /// Names from a list are expressed, unless patterns stand beside them; others are checked.
    fn property_names(
        &mut self,
        value: &Value,
        map: &Map<String, Value>,
        pointer: Option<&str>,
        and: &mut Vec<Value>,
    ) {
        let names = value.get("enum").and_then(Value::as_array);
        match (value, names) {
            (Value::Bool(true), _) => {}
            (Value::Bool(false), _) => and.push(json!({ "maxProperties": 0 })),
            (_, Some(names)) if value.as_object().is_some_and(|it| it.len() == 1) => {
                let known = |name: &&str| map.get("properties").is_none_or(|it| it.get(*name).is_none());
                let own = map.get("properties").and_then(Value::as_object);
                let mut properties: Map<String, Value> = own
                    .into_iter()
                    .flat_map(|it| it.keys())
                    .map(|name| (name.clone(), Value::Bool(true)))
                    .collect();
                let others = names.iter().filter_map(Value::as_str).filter(known);
                properties.extend(others.map(|name| (name.to_owned(), Value::Bool(true))));
                for (name, allowed) in &mut properties {
                    *allowed = names.iter().any(|it| it == name).into();
                }
                and.push(json!({ "properties": properties, "additionalProperties": false }));
            }
            _ => self.leave_out(pointer),
        }
    }

    fn format(&mut self, value: &Value, pointer: Option<&str>, and: &mut Vec<Value>) -> Option<Value> {
        let name = value.as_str()?;
        and.extend(exact_pattern(name).map(|pattern| json!({ "pattern": pattern })));
        if CHECKED_FORMATS.contains(&name) {
            self.leave_out(pointer);
        }
        // Others are annotations.
        GRAMMAR_FORMATS.contains(&name).then(|| value.clone())
    }
}

/// Whether a pattern needs more than a regular language.
fn looks_around(pattern: &str) -> bool {
    ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|it| pattern.contains(it))
}

fn moved_name(at: usize) -> String {
    format!("moved-{at}")
}

/// Whether a keyword beside `$ref` asserts something, other than where schemas are.
fn is_assertion(key: &str) -> bool {
    !matches!(
        key,
        "$ref"
            | "$defs"
            | "definitions"
            | "$id"
            | "id"
            | "$schema"
            | "$comment"
            | "title"
            | "description"
            | "default"
            | "examples"
            | "$anchor"
    )
}
