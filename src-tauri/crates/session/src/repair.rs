//! Repair while the program runs: damage that only shows where rows are used, such as an index that does not fit its table.

use io::Io;
use rusqlite::Connection;

use crate::conversation::Session;
use crate::db::inspect::{full_check, quick_check};
use crate::db::{self, Notice};
use crate::error::{Result, SessionError};
use crate::table::{search, turn};

impl Session {
    /// Repairs the database after an error said that it is damaged. Indexes are rebuilt; of damaged tables the file is set
    /// aside, and everything readable is carried over. None: the file is whole. Error: it stays as it was.
    pub fn repair(&mut self, io: &dyn Io) -> Result<Option<Notice>> {
        if self.is_read_only || full_check(&self.db).is_ok() {
            return Ok(None);
        }
        if self.rebuild_indexes().is_ok() {
            return Ok(Some(SessionError::new(
                "session.index_rebuilt",
                "An index of the chat database was damaged and has been rebuilt. Nothing is missing.",
                "Try again what failed. If it happens repeatedly, check the disk.",
            )));
        }
        if self.owner.others(io)?.is_any_alive {
            return Err(SessionError::new(
                "session.damaged",
                "The chat database is damaged, and another Inglenook uses it.",
                "Quit every Inglenook, then start one: everything readable is recovered.",
            ));
        }
        self.replace_database(io).map(Some)
    }

    /// Error if anything but indexes is damaged.
    fn rebuild_indexes(&self) -> Result<()> {
        quick_check(&self.db)?;
        self.db.execute_batch("REINDEX")?;
        full_check(&self.db)
    }

    /// Sets the file aside and makes a new one of what can be read. Nothing else has it open.
    pub(crate) fn replace_database(&mut self, io: &dyn Io) -> Result<Notice> {
        let turns = turn::all(&self.db).unwrap_or_default();
        let path = self.folder.join(db::inspect::FILE_NAME);
        // Closes the damaged file before it is moved.
        self.db = Connection::open_in_memory()?;
        match db::replace_damaged(&path, io, &*self.clock) {
            Ok((db, notice)) => {
                self.db = db;
                search::complete(&mut self.db)?;
                // Answers of this process go on. One whose message is lost has nowhere to go.
                for row in turns.iter().filter(|row| row.owner == self.owner.id) {
                    let _ = turn::insert(&self.db, row);
                }
                Ok(notice)
            }
            Err(error) => {
                // The damaged file has its name again.
                self.db = db::reopen(&path)?;
                Err(error)
            }
        }
    }
}
