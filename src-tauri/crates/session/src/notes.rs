//! Notes that the user keeps for all conversations.

use rusqlite::Connection;

use crate::conversation::Session;
use crate::error::Result;
use crate::table::note::{self, NoteRow};

impl Session {
    /// Lists notes, oldest first.
    pub fn notes(&self) -> Result<Vec<NoteRow>> {
        note::list(self.db())
    }

    /// Adds a note, or changes the text of the one with `id`. `source`: the conversation that a new one was taken from.
    pub fn put_note(&mut self, id: Option<&str>, text: &str, source: Option<&str>) -> Result<NoteRow> {
        let now_ms = self.now_ms();
        let row = match id {
            Some(id) => NoteRow { text: text.into(), updated_ms: now_ms, ..note::get(self.db(), id)? },
            None => NoteRow {
                id: self.new_id(),
                text: text.into(),
                source: source.map(Into::into),
                created_ms: now_ms,
                updated_ms: now_ms,
            },
        };
        note::put(self.db(), &row)?;
        Ok(row)
    }

    /// Deletes a note. Errors if there is none.
    pub fn remove_note(&mut self, id: &str) -> Result<()> {
        note::get(self.db(), id)?;
        note::remove(self.db(), id)
    }
}

/// Copies the notes of a backup that are missing.
pub(crate) fn restore(from: &Connection, into: &Connection) -> Result<()> {
    for row in note::list(from)? {
        if note::get(into, &row.id).is_err() {
            note::put(into, &row)?;
        }
    }
    Ok(())
}
