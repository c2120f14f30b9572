//! The settings that one model is loaded with.

use contract::Result;
use serde_json::{Map, Value};

use super::{SettingSource, Settings};

/// A model's own values, by their settings' keys.
pub(crate) type OwnValues = Map<String, Value>;

/// The settings that a model is loaded with: its own values over those for all models.
pub(crate) struct PerModelSettings {
    settings: Settings,
    own: OwnValues,
}

impl PerModelSettings {
    pub fn new(settings: Settings, own: OwnValues) -> Self {
        Self { settings, own }
    }
}

impl SettingSource for PerModelSettings {
    fn value(&self, key: &'static str) -> Result<Value> {
        self.own.get(key).map_or_else(|| self.settings.value(key), |value| Ok(value.clone()))
    }
}
