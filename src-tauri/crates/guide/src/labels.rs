//! What the interface calls its settings, sections, commands, keys and buttons, per language.
//!
//! `labels/*.json` is made from the page's catalogues (`make guide`), and a test of the page compares it with them.

use std::collections::BTreeMap;

use contract::settings;
use contract::types::SettingKind;
use serde::Deserialize;

use crate::Language;
use crate::placeholder::Placeholder;

/// Between the parts of a path through the interface.
const PATH_SEPARATOR: &str = " › ";

/// Labels in one language.
#[derive(Debug, Deserialize)]
pub struct Labels {
    /// Sections of the settings by the page's key.
    sections: BTreeMap<String, SectionLabel>,
    /// Settings by key. English ones are in `contract`.
    #[serde(default)]
    settings: BTreeMap<String, SettingLabel>,
    commands: BTreeMap<String, String>,
    /// Keys as they are written on Linux and Windows.
    keys: BTreeMap<String, String>,
    /// Other texts that articles name.
    texts: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
struct SectionLabel {
    /// The application's English name, as in `contract::settings`.
    name: String,
    label: String,
}

#[derive(Debug, Deserialize)]
struct SettingLabel {
    label: String,
    #[serde(default)]
    options: BTreeMap<String, String>,
}

impl Labels {
    /// The labels of a language.
    ///
    /// # Panics
    /// If the embedded file is not as described here, which a test rules out.
    pub fn of(language: Language) -> Self {
        let json = match language {
            Language::English => include_str!("../labels/en.json"),
            Language::German => include_str!("../labels/de.json"),
            Language::Japanese => include_str!("../labels/ja.json"),
            Language::Arabic => include_str!("../labels/ar.json"),
        };
        serde_json::from_str(json).expect("labels/*.json is made by `make guide` and tested")
    }

    /// What a placeholder stands for; `None` if the interface has no such thing.
    pub fn text_of(&self, placeholder: &Placeholder) -> Option<String> {
        match placeholder {
            Placeholder::Setting(key) => self.setting_path(key),
            Placeholder::Section(key) => Some(self.bold_path(&[&self.sections.get(key)?.label])),
            Placeholder::Value(key, value) => self.option_label(key, value),
            Placeholder::Command(id) => Some(bold(self.commands.get(id)?)),
            Placeholder::Keys(id) => Some(bold(self.keys.get(id)?)),
            Placeholder::Text(path) => Some(bold(self.texts.get(path)?)),
            Placeholder::Terminal(words) => Some(format!("`nook {words}`")),
        }
    }

    /// Ids of all commands.
    #[cfg(test)]
    pub fn command_ids(&self) -> impl Iterator<Item = &String> {
        self.commands.keys()
    }

    fn setting_path(&self, key: &str) -> Option<String> {
        let setting = settings::find(key).ok()?;
        let section_name = setting.row((setting.default)()).section;
        let section = self.sections.values().find(|it| it.name == section_name)?;
        let label = self.settings.get(key).map_or(setting.label, |it| it.label.as_str());
        Some(self.bold_path(&[&section.label, label]))
    }

    fn bold_path(&self, parts: &[&str]) -> String {
        let settings = self.commands.get("settings").map_or("Settings", String::as_str);
        let parts: Vec<_> = std::iter::once(settings).chain(parts.iter().copied()).collect();
        bold(&parts.join(PATH_SEPARATOR))
    }

    fn option_label(&self, key: &str, value: &str) -> Option<String> {
        if let Some(label) = self.settings.get(key).and_then(|it| it.options.get(value)) {
            return Some(bold(label));
        }
        match (settings::find(key).ok()?.kind)() {
            SettingKind::Choice { options } => {
                options.iter().find(|option| option.value == value).map(|option| bold(&option.label))
            }
            _ => None,
        }
    }
}

fn bold(text: &str) -> String {
    format!("**{text}**")
}
