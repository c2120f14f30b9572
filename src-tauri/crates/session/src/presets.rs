//! Named presets of per-chat options.

use crate::conversation::Session;
use crate::error::Result;
use crate::table::preset::{self, PresetRow};

impl Session {
    /// Lists presets by name.
    pub fn presets(&self) -> Result<Vec<PresetRow>> {
        preset::list(self.db())
    }

    /// Reads a preset.
    pub fn preset(&self, id: &str) -> Result<PresetRow> {
        preset::get(self.db(), id)
    }

    /// Adds a preset, or replaces the one with `id`. `body` is JSON of the layer above.
    pub fn put_preset(&mut self, id: Option<&str>, name: &str, body: &str) -> Result<PresetRow> {
        let (id, created_ms) = match id {
            Some(id) => (id.to_owned(), preset::get(self.db(), id)?.created_ms),
            None => (self.new_id(), self.now_ms()),
        };
        let row = PresetRow { id, name: name.into(), body: body.into(), created_ms };
        preset::put(self.db(), &row)?;
        Ok(row)
    }

    /// Removes a preset. Errors if there is none.
    pub fn remove_preset(&mut self, id: &str) -> Result<()> {
        preset::get(self.db(), id)?;
        preset::remove(self.db(), id)
    }
}
