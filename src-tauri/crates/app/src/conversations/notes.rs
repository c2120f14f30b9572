//! Memory: notes that the user writes, or takes from a chat one by one. Nothing is noted by itself.

use contract::types::{AppEvent, ConversationOptions, Note, NoteArgs};
use contract::{Error, ErrorKind, Result};
use prompt::memory::{memory_block, with_memory};
use session::NoteRow;

use crate::App;
use crate::settings::TypedSettings;

/// Notes: as many as a page shows well. All of them are in every prompt.
const MAX_NOTES: usize = 200;

/// Longest note, in bytes: a few paragraphs.
const MAX_NOTE_BYTES: usize = 4 << 10;

impl App {
    /// Oldest first.
    pub fn notes_list(&self) -> Result<Vec<Note>> {
        Ok(self.store().notes()?.into_iter().map(note).collect())
    }

    /// Adds a note, or changes one. Errors: it is empty, too long, or there are too many.
    pub fn note_save(&self, args: &NoteArgs) -> Result<Note> {
        let text = args.text.trim();
        if text.is_empty() {
            return Err(Error::input("note.empty", "The note is empty.", "Write a note first."));
        }
        if text.len() > MAX_NOTE_BYTES {
            let message = format!("The note has {} bytes; the maximum is {MAX_NOTE_BYTES}.", text.len());
            return Err(Error::input(
                "note.too_long",
                message,
                "Shorten it: notes are part of every prompt.",
            ));
        }
        let mut store = self.store();
        if args.id.is_none() && store.notes()?.len() >= MAX_NOTES {
            let message = format!("There are {MAX_NOTES} notes, which is the maximum.");
            return Err(Error::new(ErrorKind::Limit, "note.too_many", message, "Delete one first."));
        }
        let row = store.put_note(args.id.as_deref(), text, args.source.as_deref())?;
        drop(store);
        self.publish_notes()?;
        Ok(note(row))
    }

    /// Deletes a note.
    pub fn note_remove(&self, id: &str) -> Result<()> {
        self.store().remove_note(id)?;
        self.publish_notes()
    }

    /// The notes as a block of the prompts of a conversation with these options. None: there are none, or they are off.
    pub(crate) fn memory_of(&self, options: &ConversationOptions) -> Result<Option<String>> {
        let is_on = match options.memory {
            Some(is_on) => is_on,
            None => self.ctx().settings.memory()?,
        };
        let notes = if is_on { self.store().notes()? } else { Vec::new() };
        Ok(memory_block(notes.iter().map(|note| note.text.as_str())))
    }

    /// The system prompt of a conversation with these options, with the notes.
    pub(crate) fn system_of(&self, options: &ConversationOptions) -> Result<Option<String>> {
        Ok(with_memory(options.system_prompt.clone(), self.memory_of(options)?))
    }

    fn publish_notes(&self) -> Result<()> {
        self.ctx().events.publish(AppEvent::NotesChanged { notes: self.notes_list()? });
        Ok(())
    }
}

fn note(row: NoteRow) -> Note {
    let NoteRow { id, text, source, created_ms, updated_ms } = row;
    Note { id, text, source, created_ms, updated_ms }
}
