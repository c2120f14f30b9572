//! A server's prompts: named templates, filled in by the server.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Client, malformed};
use contract::Result;

/// Far more than anybody chooses from.
const MAX_PROMPTS: usize = 512;

impl Client {
    /// Every prompt that it has, as it describes them; none, where it says that it has no such thing.
    pub fn prompts(&self) -> Result<Vec<Value>> {
        if !self.has_prompts {
            return Ok(Vec::new());
        }
        self.pages("prompts/list", "prompts", MAX_PROMPTS)
    }

    /// The messages of a prompt, filled in.
    pub fn prompt(
        &self,
        name: &str,
        arguments: &BTreeMap<String, String>,
        within: Duration,
    ) -> Result<Vec<Value>> {
        let params = json!({ "name": name, "arguments": arguments });
        let mut said = self.ask("prompts/get", params, within, None)?;
        match said.get_mut("messages").map(Value::take) {
            Some(Value::Array(messages)) => Ok(messages),
            Some(one @ Value::Object(_)) => Ok(vec![one]),
            _ => Err(malformed(self.core.name(), "its prompt has no messages")),
        }
    }
}
