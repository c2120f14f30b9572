//! Per-model settings: load options that differ from the global settings.

use serde_json::{Map, Value};

use crate::App;
use crate::settings::per_model::OwnValues;
use contract::protocol::WorkerRequest;
use contract::settings::{self, Setting};
use contract::types::{AppEvent, ModelSettingArgs, SettingKind, SettingRow};
use contract::{Error, Result};
use engine::arch;

/// What an empty field means here, for settings that may be absent.
const AS_FOR_ALL: &str = "use default setting";

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
        let own = self.model_overrides(model)?;
        let mut rows = at_load().map(|setting| self.own_row(setting, &own)).collect::<Result<Vec<_>>>()?;
        if let Some(row) = rows.iter_mut().find(|row| row.key == "draft_model") {
            self.keep_draft_models_for(model, row)?;
        }
        Ok(rows)
    }

    /// Takes from a row of draft models those that cannot draft for a model: itself, and assistants of other models. One
    /// that is selected stays.
    fn keep_draft_models_for(&self, model: &str, row: &mut SettingRow) -> Result<()> {
        let entries = self.models_list()?;
        let Some(target) = entries.iter().find(|entry| entry.id == model) else { return Ok(()) };
        let suits = |id: &str| {
            let drafts = entries.iter().find(|entry| entry.id == id);
            let only_for = drafts.and_then(|entry| arch::drafts_for(&entry.architecture));
            id != model && only_for.is_none_or(|architecture| architecture == target.architecture)
        };
        if let SettingKind::Choice { options } = &mut row.kind {
            options.retain(|option| row.value == option.value.as_str() || suits(&option.value));
        }
        Ok(())
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
        let mut own = self.model_overrides(&args.id)?;
        if args.value.is_null() {
            own.remove(setting.key);
        } else {
            own.insert(setting.key.into(), setting.check(&args.value)?);
        }
        let key = kept_under(&args.id);
        let mut store = self.store();
        if own.is_empty() {
            store.reset_setting(&key)?;
        } else {
            store.set_setting(&key, &Value::Object(own).to_string())?;
        }
        drop(store);
        // Its needs may have changed.
        self.apply_own_load_defaults()?;
        if let Ok(model) = self.model_get(&args.id) {
            self.ctx().events.publish(AppEvent::ModelChanged { model });
        }
        self.model_settings(&args.id)
    }

    /// Unloads a model from memory. It stays in the library, and the next question loads it again.
    pub fn model_unload(&self, id: &str) -> Result<()> {
        self.responder(id)?;
        self.ask(WorkerRequest::Unload { model: id.into() })
    }

    /// Values that are out of range (of another version, say) count as not there.
    pub(crate) fn model_overrides(&self, model: &str) -> Result<OwnValues> {
        let stored = self.store().setting(&kept_under(model))?;
        let stored: Map<_, _> = stored.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default();
        let valid = stored.into_iter().filter_map(|(key, value)| {
            let setting = at_load().find(|setting| setting.key == key)?;
            Some((key, setting.check(&value).ok()?))
        });
        Ok(valid.collect())
    }

    fn own_row(&self, setting: &'static Setting, own: &OwnValues) -> Result<SettingRow> {
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
