//! Checks values against what the grammar leaves out of their schema, as soon as they end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jsonschema::{Validator, ValidatorMap};
use regex::Regex;
use serde_json::Value;

use super::pointer;
use super::scanner::{JsonScanner, ScanEvent, Step};
use crate::error::ConstraintError;

/// Pointers of the schemas that surely apply to a value.
type Applying = Arc<[String]>;

/// An object or array whose end has not come.
#[derive(Clone)]
struct OpenValue {
    applying: Applying,
    /// It is an item of an array.
    is_item: bool,
    /// Of an array whose items must differ. None: they need not.
    items: Option<Vec<Arc<Value>>>,
}

/// A schema with its validators.
struct CheckedSchema {
    root: Value,
    whole: Validator,
    parts: ValidatorMap,
    /// Pointers of the schemas that the grammar does not cover.
    checked: BTreeSet<String>,
    /// Of `patternProperties`, as far as they are regular expressions of this library.
    patterns: BTreeMap<String, Regex>,
}

/// The check of one text.
#[derive(Clone)]
pub struct InstanceChecker {
    schema: Arc<CheckedSchema>,
    text: Vec<u8>,
    scanner: JsonScanner,
    /// Of the open objects and arrays.
    open: Vec<OpenValue>,
}

impl InstanceChecker {
    /// Prepares the check of a schema, whose parts at these pointers are checked early.
    ///
    /// Errors: `constraint.invalid` for a schema that breaks the rules of JSON Schema.
    pub fn new(schema: &Value, checked: BTreeSet<String>) -> Result<Self, ConstraintError> {
        let options = jsonschema::options().should_validate_formats(true).offline();
        let uncompilable = |reason: String| ConstraintError::uncompilable("JSON schema", &reason);
        let whole = options.build(schema).map_err(|error| uncompilable(error.to_string()))?;
        let parts = options.build_map(schema).map_err(|error| uncompilable(error.to_string()))?;
        let mut patterns = BTreeMap::new();
        collect_patterns(schema, &mut patterns);
        let schema = Arc::new(CheckedSchema { root: schema.clone(), whole, parts, checked, patterns });
        Ok(Self { schema, text: Vec::new(), scanner: JsonScanner::default(), open: Vec::new() })
    }

    /// Takes the next bytes. False: a value that ends with one of them is invalid, and nothing has changed.
    pub fn accept(&mut self, bytes: &[u8]) -> bool {
        let (scanner, n_text) = (self.scanner.clone(), self.text.len());
        let open = self.open.clone();
        for &byte in bytes {
            if !self.accept_byte(byte) {
                (self.scanner, self.open) = (scanner, open);
                self.text.truncate(n_text);
                return false;
            }
        }
        true
    }

    fn accept_byte(&mut self, byte: u8) -> bool {
        self.text.push(byte);
        let mut events = Vec::new();
        self.scanner.advance(&self.text, &mut |event| events.push(event));
        events.into_iter().all(|event| self.follow(event))
    }

    /// Returns whether the text is valid as it is.
    pub fn is_valid_end(&mut self) -> bool {
        serde_json::from_slice(&self.text).is_ok_and(|value| self.schema.whole.is_valid(&value))
    }

    fn follow(&mut self, event: ScanEvent) -> bool {
        match event {
            ScanEvent::Opened(step) => {
                let applying = self.applying(&step);
                let is_item = matches!(step, Step::Index(_));
                let items = self.schema.demands_unique_items(&applying).then(Vec::new);
                self.open.push(OpenValue { applying, is_item, items });
                true
            }
            ScanEvent::Closed { bytes, step } => {
                let (applying, is_item) = match step {
                    Some(step) => (self.applying(&step), matches!(step, Step::Index(_))),
                    None => self
                        .open
                        .pop()
                        .map_or_else(Default::default, |closed| (closed.applying, closed.is_item)),
                };
                let is_root = self.open.is_empty();
                let value = &self.text[bytes];
                let is_new = !is_item || self.open.last_mut().is_none_or(|array| array.take_item(value));
                is_new && self.schema.is_valid(value, &applying, is_root)
            }
        }
    }

    /// Returns the schemas of a part of the innermost open value.
    fn applying(&self, step: &Step) -> Applying {
        let mut found = Vec::new();
        match (step, self.open.last()) {
            (Step::Root, _) => self.schema.add(String::new(), &mut found),
            (_, None) => {}
            (Step::Key(key), Some(parents)) => {
                let parents = &parents.applying;
                parents.iter().for_each(|parent| self.schema.add_property(parent, key, &mut found));
            }
            (Step::Index(index), Some(parents)) => {
                let parents = &parents.applying;
                parents.iter().for_each(|parent| self.schema.add_item(parent, *index, &mut found));
            }
        }
        found.into()
    }
}

impl OpenValue {
    /// Adds an item of the array. False: it has the same already, and must not.
    fn take_item(&mut self, item: &[u8]) -> bool {
        let Some(items) = &mut self.items else { return true };
        let Ok(item) = serde_json::from_slice::<Value>(item) else { return false };
        let is_new = !items.iter().any(|other| **other == item);
        items.push(Arc::new(item));
        is_new
    }
}

impl CheckedSchema {
    fn demands_unique_items(&self, applying: &[String]) -> bool {
        let demands = |pointer: &String| {
            self.root.pointer(pointer).and_then(|it| it.get("uniqueItems")) == Some(&Value::Bool(true))
        };
        applying.iter().any(demands)
    }

    /// Returns whether a value is valid under those of its schemas that the grammar does not cover.
    fn is_valid(&self, bytes: &[u8], applying: &[String], is_root: bool) -> bool {
        let mut due = applying.iter().filter(|pointer| self.checked.contains(*pointer)).peekable();
        if due.peek().is_none() && !is_root {
            return true;
        }
        let Ok(value) = serde_json::from_slice::<Value>(bytes) else { return false };
        if is_root {
            return self.whole.is_valid(&value);
        }
        // A part without a validator is checked when the whole text ends.
        due.all(|pointer| self.validator(pointer).is_none_or(|validator| validator.is_valid(&value)))
    }

    fn validator(&self, pointer: &str) -> Option<&Validator> {
        self.parts
            .get(&format!("#{pointer}"))
            .or_else(|| self.parts.get(&format!("#{}", percent_encode(pointer))))
    }

    /// Adds a schema and those that apply wherever it does.
    fn add(&self, pointer: String, found: &mut Vec<String>) {
        let Some(Value::Object(schema)) = self.root.pointer(&pointer) else { return };
        if found.contains(&pointer) {
            return;
        }
        found.push(pointer.clone());
        if let Some(target) = schema.get("$ref").and_then(Value::as_str).and_then(pointer::of_reference) {
            self.add(target, found);
        }
        let n_all = schema.get("allOf").and_then(Value::as_array).map_or(0, Vec::len);
        (0..n_all).for_each(|at| self.add(format!("{pointer}/allOf/{at}"), found));
    }

    fn add_property(&self, parent: &str, key: &str, found: &mut Vec<String>) {
        let Some(Value::Object(schema)) = self.root.pointer(parent) else { return };
        let mut is_named = false;
        if schema.get("properties").and_then(|it| it.get(key)).is_some() {
            is_named = true;
            self.add(pointer::join(&format!("{parent}/properties"), key), found);
        }
        for pattern in
            schema.get("patternProperties").and_then(Value::as_object).into_iter().flat_map(|it| it.keys())
        {
            match self.patterns.get(pattern) {
                Some(regex) if regex.is_match(key) => {
                    is_named = true;
                    self.add(pointer::join(&format!("{parent}/patternProperties"), pattern), found);
                }
                Some(_) => {}
                // It may match.
                None => is_named = true,
            }
        }
        if !is_named {
            self.add(format!("{parent}/additionalProperties"), found);
        }
    }

    fn add_item(&self, parent: &str, index: usize, found: &mut Vec<String>) {
        let Some(Value::Object(schema)) = self.root.pointer(parent) else { return };
        let n_in = |key: &str| schema.get(key).and_then(Value::as_array).map(Vec::len);
        let (tuple, rest) = match (n_in("items"), n_in("prefixItems")) {
            (Some(n), _) => (Some(("items", n)), "additionalItems"),
            (None, Some(n)) => (Some(("prefixItems", n)), "items"),
            (None, None) => (None, "items"),
        };
        match tuple {
            Some((key, n)) if index < n => self.add(format!("{parent}/{key}/{index}"), found),
            Some(_) | None => self.add(format!("{parent}/{rest}"), found),
        }
    }
}

fn collect_patterns(schema: &Value, patterns: &mut BTreeMap<String, Regex>) {
    match schema {
        Value::Object(map) => {
            let own = map.get("patternProperties").and_then(Value::as_object);
            for pattern in own.into_iter().flat_map(|it| it.keys()) {
                if let Ok(regex) = Regex::new(pattern) {
                    patterns.insert(pattern.clone(), regex);
                }
            }
            map.values().for_each(|value| collect_patterns(value, patterns));
        }
        Value::Array(list) => list.iter().for_each(|value| collect_patterns(value, patterns)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// As in a URI's fragment.
fn percent_encode(pointer: &str) -> String {
    let mut encoded = String::new();
    for byte in pointer.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' | b'$' => {
                encoded.push(char::from(byte));
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}
