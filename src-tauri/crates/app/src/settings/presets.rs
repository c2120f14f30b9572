//! Presets: a system prompt, sampling and the strategy for long conversations, under a name. A
//! preset file is JSON that names its own format; unknown fields are refused, so that nothing is
//! misread.

use std::path::Path;

use serde::{Deserialize, Serialize};
use session::PresetRow;

use contract::types::{AppEvent, CompactionStrategy, ConversationOptions, ExportedFile, Preset, PresetArgs};
use contract::{Error, Result};
use platform::portable_name;
use prompt::title_text;

use crate::App;

/// What a preset's file says of itself.
const KIND: &str = "inglenook-preset";
const VERSION: u32 = 1;

/// As it is kept.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Body {
    #[serde(default)]
    options: ConversationOptions,
    #[serde(default)]
    compression: Option<CompactionStrategy>,
}

/// As it travels.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PresetFile {
    kind: String,
    version: u32,
    name: String,
    options: ConversationOptions,
    #[serde(default)]
    compression: Option<CompactionStrategy>,
}

impl App {
    /// By name.
    pub fn presets_list(&self) -> Result<Vec<Preset>> {
        Ok(self.store().presets()?.into_iter().map(read).collect())
    }

    /// Keeps a new one, or changes the one that is named. Errors name the value that is out of range.
    pub fn preset_save(&self, args: &PresetArgs) -> Result<Preset> {
        let name = title_text::clean(&args.name);
        if name.is_empty() {
            return Err(Error::input("preset.no_name", "The preset needs a name.", "Enter a name."));
        }
        self.check_options(&args.options)?;
        // Whose options these are is the conversation's to say.
        let options = ConversationOptions { preset: None, project: None, ..args.options.clone() };
        let body = Body { options, compression: args.compression };
        let json = serde_json::to_string(&body).map_err(|error| Error::bug(error.to_string()))?;
        let row = self.store().put_preset(args.id.as_deref(), &name, &json)?;
        let preset = read(row);
        self.ctx().events.publish(AppEvent::PresetChanged { preset: preset.clone() });
        Ok(preset)
    }

    /// Conversations that were given it stay as they are.
    pub fn preset_remove(&self, id: &str) -> Result<()> {
        self.store().remove_preset(id)?;
        self.ctx().events.publish(AppEvent::PresetRemoved { id: id.into() });
        Ok(())
    }

    /// As a text for a file, and (with a path) as that file: whole or not at all.
    pub fn preset_export(&self, id: &str, path: Option<&str>) -> Result<ExportedFile> {
        let row = self.store().preset(id)?;
        let Preset { name, options, compression, .. } = read(row);
        let file = PresetFile { kind: KIND.into(), version: VERSION, name, options, compression };
        let text = serde_json::to_string_pretty(&file).map_err(|error| Error::bug(error.to_string()))?;
        if let Some(path) = path {
            self.ctx().io.write_atomic(Path::new(path), text.as_bytes())?;
        }
        Ok(ExportedFile {
            name: format!("{}.preset.json", portable_name(&file_stem(&file.name), "preset")),
            text,
        })
    }

    /// Imports a preset's file; an existing one of the same name is kept.
    pub fn preset_import(&self, text: &str) -> Result<Preset> {
        let wrong = |cause: String| {
            let message = format!("This is not an Inglenook preset: {cause}.");
            Error::input("preset.broken", message, "Choose a file created with \"Export preset\".")
        };
        let file: PresetFile = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
        if file.kind != KIND || file.version != VERSION {
            return Err(wrong(format!("it is {} with version {}", file.kind, file.version)));
        }
        let PresetFile { name, options, compression, .. } = file;
        self.preset_save(&PresetArgs { id: None, name, options, compression })
    }
}

/// A body that can't be read (of another version, say) counts as one that says nothing.
pub(crate) fn read(row: PresetRow) -> Preset {
    let Body { options, compression } = serde_json::from_str(&row.body).unwrap_or_default();
    Preset { id: row.id, name: row.name, options, compression }
}

fn file_stem(name: &str) -> String {
    let plain = |letter: char| if letter.is_alphanumeric() || letter == '-' { letter } else { '-' };
    let stem: String = name.chars().map(plain).take(60).collect();
    let stem = stem.trim_matches('-');
    if stem.is_empty() { "preset".into() } else { stem.to_lowercase() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_after_presets() {
        let cases = [
            ("Plain talk", "plain-talk"),
            ("../../etc", "etc"),
            ("??", "preset"),
            ("Überblick", "überblick"),
        ];
        for (name, expected) in cases {
            assert_eq!(file_stem(name), expected, "{name}");
        }
    }
}
