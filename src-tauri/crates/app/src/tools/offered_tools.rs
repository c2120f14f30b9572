//! The tools that a conversation is offered: those of enabled servers, under names that every model
//! can write.

use serde_json::{Value, json};

use crate::App;
use crate::settings::TypedSettings;
use contract::Result;
use contract::types::ConversationOptions;
use records::tool_servers::StoredServer;

/// Longest tool name, in characters: the limit of OpenAI's interface, which models were trained on.
const MAX_NAME_CHARS: usize = 64;

/// A tool as the model knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedTool {
    /// Letters, digits, `_` and `-`; no other tool of the offer has it.
    pub name: String,
    /// Id and name of its server.
    pub server: String,
    pub server_name: String,
    /// As its server calls it.
    pub tool: String,
    description: String,
    schema: Value,
}

/// The tools offered to a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OfferedTools {
    pub tools: Vec<OfferedTool>,
}

impl OfferedTools {
    /// As in OpenAI's requests; null where there are none.
    pub fn definitions(&self) -> Value {
        let definition = |tool: &OfferedTool| {
            json!({ "type": "function", "function": {
                "name": tool.name, "description": tool.description, "parameters": tool.schema,
            } })
        };
        match self.tools.is_empty() {
            true => Value::Null,
            false => self.tools.iter().map(definition).collect(),
        }
    }

    pub fn find(&self, name: &str) -> Option<&OfferedTool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// For a model that names one there isn't.
    pub(super) fn names(&self) -> String {
        self.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>().join(", ")
    }

    fn add(&mut self, tool: OfferedTool) {
        let mut name = plain(&tool.tool);
        if self.find(&name).is_some() {
            name = plain(&format!("{}_{name}", tool.server_name));
        }
        for n in 2.. {
            if self.find(&name).is_none() {
                break;
            }
            name = format!("{}_{n}", plain(&tool.tool).chars().take(MAX_NAME_CHARS - 8).collect::<String>());
        }
        self.tools.push(OfferedTool { name, ..tool });
    }
}

fn plain(name: &str) -> String {
    let fits = |c: char| if c.is_ascii_alphanumeric() || "_-".contains(c) { c } else { '_' };
    name.chars().map(fits).take(MAX_NAME_CHARS).collect()
}

impl App {
    /// Lists the tools offered to a conversation with these options. None: as the settings say.
    pub fn tools_offer(&self, options: Option<&ConversationOptions>) -> Result<OfferedTools> {
        let chosen = options.and_then(|options| options.tools.as_ref());
        if chosen.is_none() && !self.ctx().settings.tools()? {
            return Ok(OfferedTools::default());
        }
        let mut offer = OfferedTools::default();
        let rows = self.store().tool_servers()?;
        for row in rows.iter().filter(|row| row.enabled) {
            if chosen.is_some_and(|chosen| !chosen.contains(&row.id)) {
                continue;
            }
            let kept = StoredServer::of(row);
            for tool in kept.tools.iter().filter(|tool| !kept.off.contains(&tool.name)) {
                offer.add(OfferedTool {
                    name: String::new(),
                    server: row.id.clone(),
                    server_name: row.name.clone(),
                    tool: tool.name.clone(),
                    description: tool.description.clone(),
                    schema: tool.schema.clone(),
                });
            }
        }
        Ok(offer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f76_names_are_plain_and_each_its_own() {
        let mut offer = OfferedTools::default();
        let long = "x".repeat(80);
        let tools =
            [("lab", "look.up"), ("lab 2", "look_up"), ("lab 2", "look/up"), ("a", &long), ("b", &long)];
        for (server, tool) in tools {
            offer.add(OfferedTool {
                name: String::new(),
                server: server.into(),
                server_name: server.into(),
                tool: tool.into(),
                description: String::new(),
                schema: json!({}),
            });
        }
        let names: Vec<&str> = offer.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names[..3], ["look_up", "lab_2_look_up", "look_up_2"]);
        assert!(names.iter().all(|name| name.len() <= MAX_NAME_CHARS));
        let mut once = names.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), names.len());
        assert_eq!(offer.find("lab_2_look_up").map(|tool| tool.tool.as_str()), Some("look_up"));
        assert_eq!(OfferedTools::default().definitions(), Value::Null);
        assert_eq!(offer.definitions()[0]["function"]["name"], "look_up");
    }
}
