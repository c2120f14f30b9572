//! Files with messages: read when they are chosen, kept with their message, given to the model as a whole or in the
//! passages that match the question.
//!
//! A file that was chosen but not sent is in memory alone. What a message gave to the model is kept with it and never
//! worked out anew.

pub mod given;
mod meaning;
pub mod parts;
mod passages;
mod pdf;
mod plan;
mod read;
mod search;
mod sources;

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::Arc;

use session::{AttachmentRow, MessageAttachments, NewAttachments};

use crate::error::{Error, ErrorKind, Result};
use crate::exchange::base64;
use crate::guard::{self, Finding};
use crate::types::{Attachment, AttachmentCost, AttachmentKind, AttachmentText, SendArgs, Source};
use crate::{App, State};
pub(crate) use meaning::Meanings;
pub(crate) use plan::Ground;
use plan::Planned;
use read::{Kind, Problem};
pub(crate) use search::Searching;
pub(crate) use sources::{files, sources};

/// Files that wait to be sent: those of a few drafts. The oldest give way.
const MOST_PENDING: usize = 64;

/// What they take together. Bytes of text.
const MOST_PENDING_BYTES: usize = 128 << 20;

/// Longer names tell no more. Characters.
const NAME_CHARS: usize = 120;

/// Of a text so much is shown at once. Bytes.
const SHOWN: usize = 256 << 10;

/// Counts that are kept: the files of a few drafts with a few models.
const MOST_COUNTS: usize = 4096;

/// A file that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Document {
    pub id: String,
    pub name: String,
    pub kind: Kind,
    /// Of the file.
    pub bytes: u64,
    /// Of the text.
    pub sha256: String,
    pub text: Arc<str>,
    pub findings: Vec<Finding>,
    pub guessed: Option<&'static str>,
}

/// What a question becomes with its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachedPrompt {
    pub text: String,
    pub sources: Vec<Source>,
    /// Of each file.
    pub costs: Vec<AttachmentCost>,
}

/// Files that were read for messages that have not been sent.
#[derive(Default)]
pub(crate) struct Pending {
    /// Oldest first.
    documents: VecDeque<Arc<Document>>,
    /// Tokens of blocks, by model and block.
    counts: HashMap<(String, String), u32>,
}

impl Pending {
    fn add(&mut self, document: Arc<Document>) {
        self.documents.push_back(document);
        let n_bytes =
            |documents: &VecDeque<Arc<Document>>| documents.iter().map(|it| it.text.len()).sum::<usize>();
        while self.documents.len() > MOST_PENDING || n_bytes(&self.documents) > MOST_PENDING_BYTES {
            self.documents.pop_front();
        }
    }

    fn get(&self, id: &str) -> Option<&Arc<Document>> {
        self.documents.iter().find(|document| document.id == id)
    }

    pub fn remove(&mut self, id: &str) {
        self.documents.retain(|document| document.id != id);
    }
}

impl AttachmentKind {
    /// As it is kept in the database and in exports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Markdown => "markdown",
            Self::Code => "code",
            Self::Csv => "csv",
            Self::Pdf => "pdf",
        }
    }

    /// A word that isn't known is that of some text.
    pub(crate) fn of_name(name: &str) -> Self {
        match name {
            "markdown" => Self::Markdown,
            "code" => Self::Code,
            "csv" => Self::Csv,
            "pdf" => Self::Pdf,
            _ => Self::Text,
        }
    }
}

impl From<Kind> for AttachmentKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Text => Self::Text,
            Kind::Markdown => Self::Markdown,
            Kind::Code => Self::Code,
            Kind::Csv => Self::Csv,
            Kind::Pdf => Self::Pdf,
        }
    }
}

impl Document {
    fn info(&self) -> Attachment {
        Attachment {
            id: self.id.clone(),
            name: self.name.clone(),
            kind: self.kind.into(),
            bytes: self.bytes,
            findings: self.findings.clone(),
            whole: None,
            tokens: None,
            is_about: false,
            guessed: self.guessed.map(Into::into),
        }
    }

    /// As it is kept with a message.
    fn row(&self, is_whole: bool, tokens: u32, is_about: bool) -> AttachmentRow {
        AttachmentRow {
            id: self.id.clone(),
            message: String::new(),
            document: self.sha256.clone(),
            name: self.name.clone(),
            kind: AttachmentKind::from(self.kind).name().into(),
            bytes: i64::try_from(self.bytes).unwrap_or(i64::MAX),
            findings: serde_json::to_string(&self.findings).ok().filter(|_| !self.findings.is_empty()),
            is_whole,
            tokens: Some(tokens),
            is_about,
        }
    }
}

impl App {
    /// Reads a file that a page has read: its text is kept in memory until it is sent or removed.
    pub fn attachment_add(&self, name: &str, base64: &str) -> Result<Attachment> {
        let most = self.most_bytes()?;
        // Four letters are three bytes: what is too large is not unpacked first.
        if (base64.len() as u64) / 4 * 3 > most + 3 {
            return Err(too_large(name, (base64.len() as u64) / 4 * 3, most));
        }
        let bytes = base64::decode(base64)
            .ok_or_else(|| refused(name, &Problem::new("it arrived damaged", "Choose it again.")))?;
        self.attach(name, &bytes)
    }

    /// As `attachment_add`, from a path on this machine.
    pub fn attachment_add_path(&self, path: &str) -> Result<Attachment> {
        let path = Path::new(path);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            return Err(refused(
                &name,
                &Problem::new("it is a folder", "Choose the files inside the folder."),
            ));
        }
        let (n_bytes, most) = (self.shared().io.len(path)?, self.most_bytes()?);
        if n_bytes > most {
            return Err(too_large(&name, n_bytes, most));
        }
        self.attach(&name, &self.shared().io.read(path)?)
    }

    /// A file for a message that will be sent. Errors name it, why it can't be used, and what to do.
    pub fn attach(&self, name: &str, bytes: &[u8]) -> Result<Attachment> {
        let most = self.most_bytes()?;
        if bytes.len() as u64 > most {
            return Err(too_large(name, bytes.len() as u64, most));
        }
        let document = Arc::new(self.read_file(name, bytes)?);
        let info = document.info();
        self.shared().state().pending.add(document);
        Ok(info)
    }

    /// A file that will not be sent after all. No error if it is not there.
    pub fn attachment_remove(&self, id: &str) {
        self.shared().state().pending.remove(id);
    }

    /// The text of a file, sent or not: from the line of byte `at` on, with a little before it.
    pub fn attachment_text(&self, id: &str, at: Option<u32>) -> Result<AttachmentText> {
        let (attachment, text) = {
            let state = self.shared().state();
            match state.pending.get(id).cloned() {
                Some(document) => (document.info(), Arc::clone(&document.text)),
                None => {
                    let row = state.session.attachment(id)?;
                    let text = state.session.document(&row.document)?.unwrap_or_default();
                    (sources::info(row), text.into())
                }
            }
        };
        let at = at.map_or(0, |at| at as usize);
        let before = text.floor_char_boundary(at.saturating_sub(SHOWN / 8).min(text.len()));
        let start = if before == 0 { 0 } else { text[..before].rfind('\n').map_or(before, |end| end + 1) };
        let end = text.floor_char_boundary((start + SHOWN).min(text.len()));
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Ok(AttachmentText {
            attachment,
            text: text[start..end].to_owned(),
            start: count(start),
            total: count(text.len()),
        })
    }

    /// Reads, looks through and names a file.
    pub(crate) fn read_file(&self, name: &str, bytes: &[u8]) -> Result<Document> {
        let name = clean_name(name);
        let read = read::read(&name, bytes).map_err(|problem| refused(&name, &problem))?;
        self.guard_text(&read.text)?;
        let marks = self.settings_get("guard_marks")?.value == true;
        let findings = if marks { guard::scan(&read.text) } else { Vec::new() };
        let hides = findings.iter().any(|finding| matches!(finding, Finding::Hidden { .. }));
        let text = if hides { guard::made_visible(&read.text) } else { read.text };
        let id = self.shared().state().session.new_id();
        Ok(Document {
            id,
            name,
            kind: read.kind,
            bytes: bytes.len() as u64,
            sha256: sha256(&text),
            text: text.into(),
            findings,
            guessed: read.guessed,
        })
    }

    /// What the files of a new message become.
    pub(crate) fn plan_message(&self, args: &SendArgs, files: &[Arc<Document>]) -> Result<Planned> {
        let conversation = args.conversation.as_deref();
        let has_files = |id| self.shared().state().session.has_attachments(id);
        if files.is_empty() && !conversation.map(has_files).transpose()?.unwrap_or(false) {
            return Ok(Planned::default());
        }
        let ground = self.ground(conversation, args.model.as_deref(), args.options.as_ref())?;
        self.plan(&ground, &args.text, files)
    }

    /// What the files of a message become when it is written anew. None: nothing is to be given.
    pub(crate) fn plan_edit(&self, conversation: &str, message: &str, text: &str) -> Result<Option<Planned>> {
        let mut ground = self.ground(Some(conversation), None, None)?;
        let before = ground.branch.iter().position(|it| it.row.id == message);
        let rows = match before {
            Some(at) => ground.branch.drain(at..).next().map(|it| it.attachments.files).unwrap_or_default(),
            // On another branch: what comes before it is not at hand, and nothing of it is searched.
            None => self.shared().state().session.attachments_of(message)?.files,
        };
        if before.is_none() {
            ground.branch.clear();
        }
        let files = self.shared().state().copies(&rows)?;
        Ok(Some(self.plan(&ground, text, &files)?)
            .filter(|planned| planned.given != NewAttachments::default()))
    }

    /// A question with its files, for prompts that are kept nowhere: the same each time for the same files.
    pub fn attached_prompt(
        &self,
        model: Option<&str>,
        question: &str,
        ids: &[String],
    ) -> Result<AttachedPrompt> {
        let ground = self.ground(None, model, None)?;
        let planned = self.plan(&ground, question, &self.pending(ids)?)?;
        let text = given::message(&planned.blocks, question);
        let MessageAttachments { files, passages } = planned.given.attachments;
        Ok(AttachedPrompt { text, sources: sources::of_question(&files, &passages), costs: planned.costs })
    }

    /// A message went out with these.
    pub(crate) fn sent(&self, ids: &[String]) {
        {
            let pending = &mut self.shared().state().pending;
            ids.iter().for_each(|id| pending.remove(id));
        }
        // Nothing is kept of what was searched: drafts with the same files make it again.
        self.shared().searching.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).forget();
    }

    fn most_bytes(&self) -> Result<u64> {
        Ok(self.settings_get("attachment_megabytes")?.value.as_u64().unwrap_or(16) << 20)
    }

    /// Those of a draft, in order. Errors: too many, or one that is gone.
    pub(crate) fn pending(&self, ids: &[String]) -> Result<Vec<Arc<Document>>> {
        let most = self.settings_get("attachment_count")?.value.as_u64().unwrap_or(10) as usize;
        if ids.len() > most {
            let message = format!("You attached {} files; a message can have up to {most}.", ids.len());
            let remedy = "Send some of them with another message, or raise \"Files per message\" in the settings (nook settings set attachment_count N).";
            return Err(Error::new(ErrorKind::Limit, "attachment.too_many", message, remedy));
        }
        let state = self.shared().state();
        let find = |id: &String| state.pending.get(id).cloned().ok_or_else(gone);
        ids.iter().map(find).collect()
    }
}

impl State {
    /// Files of a message that is written anew: the same, under new ids.
    pub(crate) fn copies(&self, rows: &[AttachmentRow]) -> Result<Vec<Arc<Document>>> {
        let copy = |row: &AttachmentRow| -> Result<Arc<Document>> {
            let text = self.session.document(&row.document)?.ok_or_else(gone)?;
            Ok(Arc::new(Document {
                id: self.session.new_id(),
                name: row.name.clone(),
                kind: match AttachmentKind::of_name(&row.kind) {
                    AttachmentKind::Text => Kind::Text,
                    AttachmentKind::Markdown => Kind::Markdown,
                    AttachmentKind::Code => Kind::Code,
                    AttachmentKind::Csv => Kind::Csv,
                    AttachmentKind::Pdf => Kind::Pdf,
                },
                bytes: u64::try_from(row.bytes).unwrap_or(0),
                sha256: row.document.clone(),
                text: text.into(),
                findings: sources::findings(row),
                guessed: None,
            }))
        };
        rows.iter().map(copy).collect()
    }
}

/// Of a text: what it is kept under.
pub(crate) fn sha256(text: &str) -> String {
    let hash = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The last part of a path, without what doesn't show.
fn clean_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let shown = guard::made_visible(last);
    let clean: String = shown.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let short: String = clean.trim().chars().take(NAME_CHARS).collect();
    if short.is_empty() { "file".into() } else { short }
}

fn refused(name: &str, problem: &Problem) -> Error {
    let message = format!("{name} can't be attached: {}.", problem.why);
    Error::input("attachment.refused", message, problem.remedy.clone())
}

fn too_large(name: &str, n_bytes: u64, most: u64) -> Error {
    let message = format!("{name} can't be attached: it has {n_bytes} bytes, and the maximum is {most}.");
    let remedy = "Attach only the part you need, or raise \"Maximum file size\" in the settings (nook settings set attachment_megabytes N).";
    Error::new(ErrorKind::Limit, "attachment.too_large", message, remedy)
}

fn gone() -> Error {
    let message = "A file attached to this message is no longer available.";
    Error::not_found("attachment.gone", message, "Attach it again.")
}
