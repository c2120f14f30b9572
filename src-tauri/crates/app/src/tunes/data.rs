//! Data of a run as a file for its folder.

use std::path::Path;

use contract::types::{TuneChats, TuneData};
use contract::{Error, Result};
use inference::tune::{ChatData, chat_data};

use crate::App;

/// Longest data: `inference::tune` reads no more.
const MAX_DATA_BYTES: u64 = 256 << 20;

/// What is learned from.
pub(super) struct TuneText {
    pub text: String,
    /// What people call it. Empty: it was made of chats.
    pub name: String,
    /// File in the run's folder; its ending says what the text is.
    pub file: String,
    /// What was taken of chats.
    pub chats: Option<TuneChats>,
}

impl App {
    pub(super) fn tune_text(&self, data: &TuneData) -> Result<TuneText> {
        match data {
            TuneData::Path { path } => {
                let path = Path::new(path.trim());
                let bytes = self.ctx().io.read_within(path, MAX_DATA_BYTES)?;
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let text = String::from_utf8(bytes).map_err(|_| not_text(&name))?;
                Ok(TuneText { text, file: file_of(&name), name, chats: None })
            }
            TuneData::Text { name, text } => {
                Ok(TuneText { text: text.clone(), file: file_of(name), name: name.clone(), chats: None })
            }
            TuneData::Chats { ids } => self.chats_text(ids),
        }
    }

    fn chats_text(&self, ids: &[String]) -> Result<TuneText> {
        let ids = match ids.is_empty() {
            true => self.conversations_list()?.into_iter().map(|it| it.id).collect(),
            false => ids.to_vec(),
        };
        let chats = ids.iter().map(|id| self.conversation_get(id)).collect::<Result<Vec<_>>>()?;
        let ChatData { text, counts } = chat_data(&chats);
        if counts.chats == 0 {
            let message = "These chats have no complete answer to learn from.";
            return Err(Error::input("tune.no_chats", message, "Choose other chats, or a file."));
        }
        Ok(TuneText { text, name: String::new(), file: file_of("chats.jsonl"), chats: Some(counts) })
    }
}

/// A name of ours with the ending of the original, which says what is in it.
fn file_of(name: &str) -> String {
    let ending = name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    match ending.as_str() {
        "jsonl" | "ndjson" | "json" | "csv" | "tsv" => format!("data.{ending}"),
        _ => "data.txt".into(),
    }
}

fn not_text(name: &str) -> Error {
    let message = format!("{name} is not text in UTF-8.");
    Error::input("tune.not_text", message, "Choose a JSONL, CSV or text file, and save it as UTF-8.")
}
