//! Everything the application can do, once. Doors (window, HTTP, terminal) call `App` and nothing below it.
#![forbid(unsafe_code)]

pub mod bindings;
pub mod calls;
pub mod error;
pub mod settings;
pub mod starter;
pub mod types;

use serde_json::Value;

pub use error::{Error, ErrorKind, Result};
use types::*;

#[derive(Clone)]
pub struct App;

fn later<T>() -> Result<T> { Err(Error::bug("not yet")) }
impl App {
    pub fn app_info(&self) -> AppInfo { AppInfo { version: env!("CARGO_PKG_VERSION").into(), data_dir: String::new(), log_dir: String::new(), cores: 0, isa: String::new() } }
    pub fn conversations_list(&self) -> Result<Vec<ConversationSummary>> { later() }
    pub fn conversation_get(&self, _id: &str) -> Result<Conversation> { later() }
    pub fn conversation_rename(&self, _id: &str, _title: &str) -> Result<ConversationSummary> { later() }
    pub fn conversation_delete(&self, _id: &str) -> Result<()> { later() }
    pub fn conversation_restore(&self, _id: &str) -> Result<ConversationSummary> { later() }
    pub fn conversation_set_model(&self, _id: &str, _model: &str) -> Result<ConversationSummary> { later() }
    pub fn send(&self, _args: SendArgs) -> Result<TurnStarted> { later() }
    pub fn retry(&self, _conversation: &str) -> Result<TurnStarted> { later() }
    pub fn turn_cancel(&self, _turn: &str) -> Result<()> { later() }
    pub fn models_list(&self) -> Result<Vec<ModelEntry>> { later() }
    pub fn model_add(&self, _path: &str) -> Result<ModelEntry> { later() }
    pub fn model_remove(&self, _id: &str) -> Result<()> { later() }
    pub fn settings_list(&self) -> Result<Vec<SettingRow>> { later() }
    pub fn settings_set(&self, _key: &str, _value: &Value) -> Result<SettingRow> { later() }
    pub fn settings_reset(&self, _key: &str) -> Result<SettingRow> { later() }
}
