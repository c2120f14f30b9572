//! A server's resources: texts under URIs, and templates of such URIs.

use std::time::Duration;

use serde_json::{Value, json};

use super::param_headers::ParamHeaders;
use super::{Client, LIST_WITHIN, MAX_PAGES, Transport, malformed};
use contract::Result;

/// Of one list; far more than anybody looks through.
const MAX_LISTED: usize = 2048;

impl Client {
    /// Every tool that it has, as it describes them.
    pub fn tools(&self) -> Result<Vec<Value>> {
        let mut tools = self.pages("tools/list", "tools", super::MAX_TOOLS)?;
        if let (Transport::Http(http), true) = (&self.transport, self.is_stateless) {
            http.set_param_headers(ParamHeaders::read(self.core.name(), &mut tools));
        }
        Ok(tools)
    }

    /// Every resource that it has, as it describes them; none, where it says that it has no such thing.
    pub fn resources(&self) -> Result<Vec<Value>> {
        if !self.has_resources {
            return Ok(Vec::new());
        }
        self.pages("resources/list", "resources", MAX_LISTED)
    }

    /// As `resources`, where parts of the address are the reader's to fill in. Many servers know no such list.
    pub fn resource_templates(&self) -> Result<Vec<Value>> {
        if !self.has_resources {
            return Ok(Vec::new());
        }
        match self.pages("resources/templates/list", "resourceTemplates", MAX_LISTED) {
            Err(error) if error.code() == "tools.no_method" => Ok(Vec::new()),
            listed => listed,
        }
    }

    /// The contents of a resource.
    pub fn read(&self, uri: &str, within: Duration) -> Result<Vec<Value>> {
        let mut said = self.ask("resources/read", json!({ "uri": uri }), within, None)?;
        match said.get_mut("contents").map(Value::take) {
            Some(Value::Array(contents)) => Ok(contents),
            Some(one @ Value::Object(_)) => Ok(vec![one]),
            Some(text @ Value::String(_)) => Ok(vec![json!({ "uri": uri, "text": text })]),
            _ => Err(malformed(self.core.name(), "what it read has no contents")),
        }
    }

    /// A list that comes in pages; `key` holds those of each.
    pub(super) fn pages(&self, method: &str, key: &str, most: usize) -> Result<Vec<Value>> {
        let (mut all, mut cursor) = (Vec::new(), None::<String>);
        for _ in 0..MAX_PAGES {
            let params = cursor.as_ref().map_or(json!({}), |cursor| json!({ "cursor": cursor }));
            let mut said = self.ask(method, params, LIST_WITHIN, None)?;
            let Some(Value::Array(page)) = said.get_mut(key).map(Value::take) else {
                return Err(malformed(self.core.name(), &format!("its list of {key} is none")));
            };
            all.extend(page);
            cursor = said["nextCursor"].as_str().map(str::to_owned);
            if cursor.is_none() || all.len() >= most {
                break;
            }
        }
        all.truncate(most);
        Ok(all)
    }
}
