//! Presets of the session: kept under a name, changed, removed.

use crate::conversation::Session;
use crate::error::Result;
use crate::table::preset::{self, PresetRow};

impl Session {
    /// By name.
    pub fn presets(&self) -> Result<Vec<PresetRow>> {
        preset::list(self.db())
    }

    pub fn preset(&self, id: &str) -> Result<PresetRow> {
        preset::get(self.db(), id)
    }

    /// A new one, or (with an id) what is kept instead under that id. `body` is JSON of the layer above.
    pub fn put_preset(&mut self, id: Option<&str>, name: &str, body: &str) -> Result<PresetRow> {
        let (id, created_ms) = match id {
            Some(id) => (id.to_owned(), preset::get(self.db(), id)?.created_ms),
            None => (self.new_id(), self.now_ms()),
        };
        let row = PresetRow { id, name: name.into(), body: body.into(), created_ms };
        preset::put(self.db(), &row)?;
        Ok(row)
    }

    pub fn remove_preset(&mut self, id: &str) -> Result<()> {
        preset::get(self.db(), id)?;
        preset::remove(self.db(), id)
    }
}
