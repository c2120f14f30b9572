//! Settings of one model: what it is loaded with where that differs from what the settings say for all.

use serde_json::{Map, Value};

use crate::App;
use crate::error::{Error, Result};
use crate::settings::{self, Setting};
use crate::types::{AppEvent, ModelSettingArgs, SettingKind, SettingRow};
use crate::worker::protocol::WorkerRequest;

/// What an empty field means here, for settings that may be absent.
const AS_FOR_ALL: &str = "use default setting";

/// Values by their settings' keys, over those for all models.
#[derive(Debug, Default)]
pub(crate) struct Own(Map<String, Value>);

impl Own {
    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }
}

/// Where they are kept. No setting's key has a colon.
fn kept_under(model: &str) -> String {
    format!("load:{model}")
}

fn at_load() -> impl Iterator<Item = &'static Setting> {
    settings::all().filter(|setting| settings::at_load(setting.key))
}

impl App {
    /// Rows of what a model is loaded with. `default` is what holds for all models, `value` what holds for this one.
    pub fn model_settings(&self, model: &str) -> Result<Vec<SettingRow>> {
        self.responder(model)?;
        let own = self.own_settings(model)?;
        at_load().map(|setting| self.own_row(setting, &own)).collect()
    }

    /// Null: as the settings say for all. Errors name the range.
    pub fn model_setting_set(&self, args: &ModelSettingArgs) -> Result<Vec<SettingRow>> {
        self.responder(&args.id)?;
        let Some(setting) = at_load().find(|setting| setting.key == args.key) else {
            let message = format!("\"{}\" can't be set for a single model.", args.key);
            return Err(Error::not_found(
                "setting.unknown",
                message,
                "Change it in the settings for all models.",
            ));
        };
        let mut own = self.own_settings(&args.id)?;
        if args.value.is_null() {
            own.0.remove(setting.key);
        } else {
            own.0.insert(setting.key.into(), setting.check(&args.value)?);
        }
        let key = kept_under(&args.id);
        let mut state = self.shared().state();
        if own.0.is_empty() {
            state.session.reset_setting(&key)?;
        } else {
            state.session.set_setting(&key, &Value::Object(own.0).to_string())?;
        }
        drop(state);
        // Its needs may have changed.
        if let Ok(model) = self.model_get(&args.id) {
            self.shared().tell(AppEvent::ModelChanged { model });
        }
        self.model_settings(&args.id)
    }

    /// Out of memory; it stays in the library, and the next question loads it again.
    pub fn model_unload(&self, id: &str) -> Result<()> {
        self.responder(id)?;
        self.ask(WorkerRequest::Unload { model: id.into() })
    }

    /// Values that are out of range (of another version, say) count as not there.
    pub(crate) fn own_settings(&self, model: &str) -> Result<Own> {
        let stored = self.shared().state().session.setting(&kept_under(model))?;
        let stored: Map<_, _> = stored.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default();
        let valid = stored.into_iter().filter_map(|(key, value)| {
            let setting = at_load().find(|setting| setting.key == key)?;
            Some((key, setting.check(&value).ok()?))
        });
        Ok(Own(valid.collect()))
    }

    fn own_row(&self, setting: &'static Setting, own: &Own) -> Result<SettingRow> {
        let mut row = self.settings_get(setting.key)?;
        row.default = row.value.clone();
        if let Some(value) = own.get(setting.key) {
            row.value = value.clone();
        }
        if let SettingKind::Integer { absent: Some(absent), .. } = &mut row.kind {
            *absent = AS_FOR_ALL.into();
        }
        Ok(row)
    }
}
