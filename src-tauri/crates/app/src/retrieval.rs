//! Files with messages: read when chosen, stored with their message, given to the model whole or as
//! the passages that match the question. A file that was chosen but not sent is in memory alone.
//! What a message gave to the model is stored with it and never recomputed.

pub mod embed;
mod embedding_search;
pub(crate) mod images;
mod prompt_plan;
mod scanned_pages;
mod stored_indexes;

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use contract::types::{Attachment, AttachmentCost, AttachmentKind, AttachmentText, Citation, SendArgs};
use contract::{Error, ErrorKind, Finding, Result};
use documents::{ExtractError, base64, blocks, file_name, prompt_injection, readability, sha256};
use io::SpecialFile;
use session::{AttachmentRow, MessageAttachments, NewAttachments, Session};

use crate::App;
use crate::settings::TypedSettings;
use contract::protocol::PromptImage;
use file_search::images::{ImageRecord, place, read_image};
use file_search::scanned_pages::{describe, refused};
use file_search::{EmbeddingIndex, SearchCache, citations};
use prompt::images::from_base64;
pub(crate) use prompt_plan::PromptGround;
use prompt_plan::PromptPlan;
pub(crate) use scanned_pages::check_sight;

/// Files that wait to be sent: those of a few drafts. The oldest give way.
const MAX_PENDING: usize = 64;

/// What they take together. Bytes of text.
const MAX_PENDING_BYTES: usize = 128 << 20;

/// Bytes of a text that are shown at once.
const SHOWN: usize = 256 << 10;

/// Counts that are kept: the files of a few drafts with a few models.
const MAX_COUNTS: usize = 4096;

/// A file that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Document {
    pub id: String,
    pub name: String,
    pub kind: AttachmentKind,
    /// Of the file.
    pub bytes: u64,
    /// Of the text.
    pub sha256: String,
    /// Of an image: its record.
    pub text: Arc<str>,
    /// Bytes of an image that has not been sent.
    pub original: Option<Arc<[u8]>>,
    pub findings: Vec<Finding>,
    pub guessed: Option<&'static str>,
    /// Of the project that a conversation began in.
    pub from_project: bool,
    /// Of a PDF: its scanned pages, which are images of their own.
    pub pages: Vec<Arc<Self>>,
    /// Of such a page: the id of its file.
    pub page_of: Option<String>,
}

/// What a question becomes with its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachedPrompt {
    pub text: String,
    /// Images at its beginning.
    pub images: Vec<PromptImage>,
    pub sources: Vec<Citation>,
    /// Of each file.
    pub costs: Vec<AttachmentCost>,
}

/// Files of messages that have not been sent, and what the search of files keeps between drafts.
#[derive(Default)]
pub(crate) struct Attachments {
    pending: Mutex<PendingFiles>,
    search: Mutex<SearchCache>,
    embeddings: Mutex<EmbeddingIndex>,
}

/// Files that were read for messages that have not been sent.
#[derive(Default)]
struct PendingFiles {
    /// Oldest first.
    documents: VecDeque<Arc<Document>>,
    /// Tokens of blocks, by model and block.
    counts: HashMap<(String, String), u32>,
}

impl Attachments {
    fn pending(&self) -> MutexGuard<'_, PendingFiles> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn search_cache(&self) -> MutexGuard<'_, SearchCache> {
        self.search.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn embedding_index(&self) -> MutexGuard<'_, EmbeddingIndex> {
        self.embeddings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, document: Arc<Document>) {
        let mut pending = self.pending();
        pending.documents.push_back(document);
        let n_bytes = |all: &VecDeque<Arc<Document>>| all.iter().map(|it| it.n_bytes_kept()).sum::<usize>();
        while pending.documents.len() > MAX_PENDING || n_bytes(&pending.documents) > MAX_PENDING_BYTES {
            pending.documents.pop_front();
        }
    }

    fn get(&self, id: &str) -> Option<Arc<Document>> {
        self.pending().documents.iter().find(|document| document.id == id).cloned()
    }

    fn remove(&self, id: &str) {
        self.pending().documents.retain(|document| document.id != id);
    }

    /// Tokens of a block for a model. None: not counted yet.
    fn token_count(&self, key: &(String, String)) -> Option<u32> {
        self.pending().counts.get(key).copied()
    }

    fn keep_token_count(&self, key: (String, String), n: u32) {
        let counts = &mut self.pending().counts;
        if counts.len() > MAX_COUNTS {
            counts.clear();
        }
        counts.insert(key, n);
    }
}

impl Document {
    fn new(id: String, name: String, kind: AttachmentKind, bytes: u64, text: &str) -> Self {
        Self {
            id,
            name,
            kind,
            bytes,
            sha256: sha256(text),
            text: text.into(),
            original: None,
            findings: Vec::new(),
            guessed: None,
            from_project: false,
            pages: Vec::new(),
            page_of: None,
        }
    }

    fn n_bytes_kept(&self) -> usize {
        let original = self.original.as_ref().map_or(0, |bytes| bytes.len());
        self.text.len() + original + self.pages.iter().map(|page| page.n_bytes_kept()).sum::<usize>()
    }

    fn info(&self) -> Attachment {
        Attachment {
            id: self.id.clone(),
            name: self.name.clone(),
            kind: self.kind,
            bytes: self.bytes,
            findings: self.findings.clone(),
            whole: None,
            tokens: None,
            is_about: false,
            from_project: self.from_project,
            guessed: self.guessed.map(Into::into),
            image: Some(&self.text)
                .filter(|_| self.kind == AttachmentKind::Image)
                .and_then(|text| ImageRecord::parse(text))
                .map(ImageRecord::info),
            scanned: describe(&self.text, self.pages.len()),
        }
    }

    /// As it is kept with a message.
    pub(crate) fn row(&self, is_whole: bool, tokens: u32, is_about: bool) -> AttachmentRow {
        AttachmentRow {
            id: self.id.clone(),
            message: String::new(),
            document: self.sha256.clone(),
            name: self.name.clone(),
            kind: self.kind.name().into(),
            bytes: i64::try_from(self.bytes).unwrap_or(i64::MAX),
            findings: serde_json::to_string(&self.findings).ok().filter(|_| !self.findings.is_empty()),
            is_whole,
            tokens: Some(tokens),
            is_about,
            from_project: self.from_project,
        }
    }
}

impl App {
    /// Reads a file that a page has read: its text is kept in memory until it is sent or removed.
    pub fn attachment_add(&self, name: &str, base64: &str) -> Result<Attachment> {
        Ok(self.keep_pending(self.read_base64(name, base64)?))
    }

    /// A file whose bytes a page has read.
    pub(crate) fn read_base64(&self, name: &str, base64: &str) -> Result<Document> {
        let most = self.most_bytes()?;
        // Four letters are three bytes: what is too large is not unpacked first.
        if (base64.len() as u64) / 4 * 3 > most + 3 {
            return Err(too_large(name, (base64.len() as u64) / 4 * 3, most));
        }
        let bytes = base64::decode(base64)
            .ok_or_else(|| refused(name, &ExtractError::new("it arrived damaged", "Choose it again.")))?;
        self.read_within_limit(name, &bytes)
    }

    /// As `attachment_add`, from a path on this machine.
    pub fn attachment_add_path(&self, path: &str) -> Result<Attachment> {
        Ok(self.keep_pending(self.read_path(path)?))
    }

    /// A file of this machine.
    pub(crate) fn read_path(&self, path: &str) -> Result<Document> {
        let path = Path::new(path);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let (n_bytes, most) = (self.ctx().io.len(path)?, self.most_bytes()?);
        if n_bytes > most {
            return Err(too_large(&name, n_bytes, most));
        }
        let bytes = self.ctx().io.read_within(path, most).map_err(|error| match error.special_file() {
            Some(SpecialFile::Folder) => {
                refused(&name, &ExtractError::new("it is a folder", "Choose the files inside the folder."))
            }
            Some(special) => {
                refused(&name, &ExtractError::new(special.to_string(), "Choose a regular file."))
            }
            None => error.into(),
        })?;
        self.read_within_limit(&name, &bytes)
    }

    /// A file for a message that will be sent. Errors name it, why it can't be used, and what to do.
    pub fn attach(&self, name: &str, bytes: &[u8]) -> Result<Attachment> {
        Ok(self.keep_pending(self.read_within_limit(name, bytes)?))
    }

    fn read_within_limit(&self, name: &str, bytes: &[u8]) -> Result<Document> {
        let most = self.most_bytes()?;
        if bytes.len() as u64 > most {
            return Err(too_large(name, bytes.len() as u64, most));
        }
        self.read_file(name, bytes)
    }

    fn keep_pending(&self, document: Document) -> Attachment {
        let info = document.info();
        self.services().attachments.add(Arc::new(document));
        info
    }

    /// A file that will not be sent after all. No error if it is not there.
    pub fn attachment_remove(&self, id: &str) {
        self.services().attachments.remove(id);
    }

    /// The text of a file, sent or not, or of a project: from the line of byte `at` on, with a little before it.
    pub fn attachment_text(&self, id: &str, at: Option<u32>) -> Result<AttachmentText> {
        let (attachment, text) = {
            match self.services().attachments.get(id) {
                Some(document) => (document.info(), Arc::clone(&document.text)),
                None => {
                    let store = self.store();
                    let row = stored_file(&store, id)?;
                    let text = store.document(&row.document)?.unwrap_or_default();
                    (citations::info(row), text.into())
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
        let name = file_name::clean(name);
        let image = read_image(bytes, |file| self.image_info(file)).map_err(|error| {
            let message = format!("{name} can't be attached: {}", error.message());
            Error::new(error.kind, error.code(), message, error.remedy())
        })?;
        if let Some((record, original)) = image {
            return self.image_document(name, &record, original);
        }
        let (read, pages) = self.extract_file(&name, bytes)?;
        self.guard_text(&read.text)?;
        let marks = self.ctx().settings.guard_marks()?;
        let mut findings = if marks { prompt_injection::scan(&read.text) } else { Vec::new() };
        let unreadable = readability::unreadable_percent(&read.text);
        findings.extend(unreadable.map(|percent| Finding::Unreadable { percent }));
        let hides = findings.iter().any(|finding| matches!(finding, Finding::Hidden { .. }));
        let text = if hides { prompt_injection::reveal_hidden(&read.text) } else { read.text };
        let document = Document::new(self.store().new_id(), name, read.kind, bytes.len() as u64, &text);
        let pages = self.page_documents(&document, &pages)?;
        Ok(Document { findings, guessed: read.guessed, pages, ..document })
    }

    fn image_document(&self, name: String, record: &ImageRecord, original: Arc<[u8]>) -> Result<Document> {
        let text = serde_json::to_string(record).map_err(Error::bug)?;
        let (id, kind) = (self.store().new_id(), AttachmentKind::Image);
        let document = Document::new(id, name, kind, original.len() as u64, &text);
        Ok(Document { original: Some(original), ..document })
    }

    /// What the files of a new message become.
    pub(crate) fn plan_message(&self, args: &SendArgs, files: &[Arc<Document>]) -> Result<PromptPlan> {
        let conversation = args.conversation.as_deref();
        let has_attachments = |id| self.store().has_attachments(id);
        if files.is_empty() && !conversation.map(has_attachments).transpose()?.unwrap_or(false) {
            return Ok(PromptPlan::default());
        }
        let ground = self.ground(conversation, args.model.as_deref(), args.options.as_ref())?;
        self.plan(&ground, &args.text, &[&self.late_pages(&ground)?, files].concat())
    }

    /// What the files of a message become when it is edited. None: nothing is to be given.
    pub(crate) fn plan_edit(
        &self,
        conversation: &str,
        message: &str,
        text: &str,
    ) -> Result<Option<PromptPlan>> {
        let mut ground = self.ground(Some(conversation), None, None)?;
        let before = ground.branch.iter().position(|it| it.row.id == message);
        let rows = match before {
            Some(at) => ground.branch.drain(at..).next().map(|it| it.attachments.files).unwrap_or_default(),
            // On another branch: its earlier messages are not available, and none of their files
            // are searched.
            None => self.store().attachments_of(message)?.files,
        };
        if before.is_none() {
            ground.branch.clear();
        }
        let files = copies(&self.store(), &rows)?;
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
        let files = self.pending(ids)?;
        check_sight(&ground.model.id, || Ok(ground.sees()), &files)?;
        let planned = self.plan(&ground, question, &files)?;
        let text = blocks::message(&planned.blocks, question);
        // Their originals are stored nowhere.
        let inline =
            |file: &Document, bytes: &Arc<[u8]>| Ok(file.named_image(from_base64(&base64::encode(bytes))?));
        let images = files.iter().filter_map(|file| Some(inline(file, file.original.as_ref()?)));
        // Without sight there are none but pages, whose file has text as well.
        let images = images.filter(|_| ground.sees());
        let (_, images) = place(images.collect::<Result<_>>()?);
        let MessageAttachments { files, passages } = planned.given.attachments;
        let sources = citations::of_question(&files, &passages);
        Ok(AttachedPrompt { text, images, sources, costs: planned.costs })
    }

    /// A message went out with these.
    pub(crate) fn sent(&self, ids: &[String]) {
        let attachments = &self.services().attachments;
        ids.iter().for_each(|id| attachments.remove(id));
        // Nothing is kept of what was searched: drafts with the same files make it again.
        attachments.search_cache().forget();
    }

    fn most_bytes(&self) -> Result<u64> {
        Ok(self.ctx().settings.attachment_megabytes()?.unwrap_or(16) << 20)
    }

    /// Those of a draft, in order, each before its scanned pages. Errors: too many, or one that is gone.
    pub(crate) fn pending(&self, ids: &[String]) -> Result<Vec<Arc<Document>>> {
        let most = self.ctx().settings.attachment_count()?.unwrap_or(10) as usize;
        if ids.len() > most {
            let message = format!("You attached {} files; a message can have up to {most}.", ids.len());
            let remedy = "Send some of them with another message, or raise \"Files per message\" in the settings (nook settings set attachment_count N).";
            return Err(Error::new(ErrorKind::Limit, "attachment.too_many", message, remedy));
        }
        let find = |id: &String| self.services().attachments.get(id).ok_or_else(gone);
        let with_pages = |file: Arc<Document>| [vec![Arc::clone(&file)], file.pages.clone()].concat();
        Ok(ids.iter().map(|id| find(id).map(with_pages)).collect::<Result<Vec<_>>>()?.concat())
    }
}

/// Copies stored files, under new ids. Scanned pages stand behind their file.
pub(crate) fn copies(session: &Session, rows: &[AttachmentRow]) -> Result<Vec<Arc<Document>>> {
    let mut file = None;
    let copy = |row: &AttachmentRow| -> Result<Arc<Document>> {
        let text = session.document(&row.document)?.ok_or_else(gone)?;
        let (id, name, kind) = (session.new_id(), row.name.clone(), AttachmentKind::of_name(&row.kind));
        let bytes = u64::try_from(row.bytes).unwrap_or(0);
        let is_page = kind == AttachmentKind::Image
            && ImageRecord::parse(&text).is_some_and(|record| record.page.is_some());
        // Late pages stand alone.
        let own = || Some(id.clone());
        let page_of = if is_page { file.clone().or_else(own) } else { file.replace(id.clone()).and(None) };
        let document = Document::new(id, name, kind, bytes, &text);
        let findings = citations::findings(row);
        Ok(Arc::new(Document { findings, from_project: row.from_project, page_of, ..document }))
    };
    rows.iter().map(copy).collect()
}

/// A file of a message, or of a project.
fn stored_file(session: &Session, id: &str) -> Result<AttachmentRow> {
    match session.attachment(id) {
        Err(error) => session.project_file(id).map(citations::of_project).map_err(|_| error.into()),
        found => Ok(found?),
    }
}

fn too_large(name: &str, n_bytes: u64, most: u64) -> Error {
    let message = format!("{name} can't be attached: it has {n_bytes} bytes; the most is {most}.");
    let remedy = "Attach only the part you need, or raise \"Maximum file size\" in the settings (nook settings set attachment_megabytes N).";
    Error::new(ErrorKind::Limit, "attachment.too_large", message, remedy)
}

fn gone() -> Error {
    let message = "A file attached to this message is no longer available.";
    Error::not_found("attachment.gone", message, "Attach it again.")
}
