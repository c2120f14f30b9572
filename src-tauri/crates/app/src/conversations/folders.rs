//! Organises conversations: folders, pins, per-conversation options, and search.

use session::{FolderRow, RemovedFolder, Session};

use crate::conversations::generate::SamplingArgs;
use contract::types::{
    AppEvent, ConversationOptions, ConversationSummary, Folder, SearchArgs, SearchResult, TitleHit,
};
use contract::{Error, Result};
use prompt::answer_options::{check_stop, check_thinking};
use prompt::title_text;

use super::per_chat_options::constraint_of;
use crate::App;
use crate::context::summary;
use records::conversations;

/// Default and maximum number of messages that a search shows.
const HITS: u32 = 50;
const MAX_HITS: u32 = 1000;

/// Longest system prompt, in bytes: as long as any context there is.
const MAX_PROMPT_BYTES: usize = 4 << 20;

impl App {
    pub fn conversation_pin(&self, id: &str, pinned: bool) -> Result<ConversationSummary> {
        self.changed(|store| Ok(store.set_pinned(id, pinned)?))
    }

    /// Into a folder, or (None) out of any.
    pub fn conversation_move(&self, id: &str, folder: Option<&str>) -> Result<ConversationSummary> {
        self.changed(|store| Ok(store.move_to(id, folder)?))
    }

    /// Sets the conversation's own options: its system prompt and its sampling.
    pub fn conversation_set_options(
        &self,
        id: &str,
        options: &ConversationOptions,
    ) -> Result<ConversationSummary> {
        let json = self.options_json(options)?;
        self.changed(|store| Ok(store.set_options(id, json.as_deref())?))
    }

    /// As they are kept; None: they say nothing.
    pub(crate) fn options_json(&self, options: &ConversationOptions) -> Result<Option<String>> {
        self.check_options(options)?;
        let json = serde_json::to_string(options).map_err(|error| Error::bug(error.to_string()))?;
        Ok((*options != ConversationOptions::default()).then_some(json))
    }

    /// Errors name the value that is out of range.
    pub(crate) fn check_options(&self, options: &ConversationOptions) -> Result<()> {
        let n_bytes = options.system_prompt.as_ref().map_or(0, String::len);
        if n_bytes > MAX_PROMPT_BYTES {
            let message = format!("The system prompt has {n_bytes} bytes; the most is {MAX_PROMPT_BYTES}.");
            return Err(Error::input("chat.prompt_too_long", message, "Shorten it."));
        }
        check_thinking(options.thinking.as_deref(), options.reasoning_effort.as_deref())?;
        check_stop(options.stop.as_deref().unwrap_or_default())?;
        constraint_of(options)?;
        self.sampling_with(options).map(|_| ())
    }

    pub(crate) fn options_of(&self, id: &str) -> Result<ConversationOptions> {
        Ok(conversations::options(self.store().conversation(id)?.options))
    }

    /// The settings' sampling with the conversation's own over it.
    pub(crate) fn sampling_with(&self, options: &ConversationOptions) -> Result<contract::Sampling> {
        let own = SamplingArgs {
            temperature: options.temperature,
            top_k: options.top_k,
            top_p: options.top_p,
            min_p: options.min_p,
            repeat_penalty: options.repeat_penalty,
            presence_penalty: options.presence_penalty,
            frequency_penalty: options.frequency_penalty,
            samplers: options.samplers.clone(),
            seed: options.seed,
            ..SamplingArgs::default()
        };
        own.over(self.sampling()?)
    }

    pub(crate) fn max_tokens_with(&self, options: &ConversationOptions) -> Result<Option<usize>> {
        match options.max_tokens {
            Some(most) => Ok(Some(most as usize)),
            None => self.max_tokens(),
        }
    }

    /// By name.
    pub fn folders_list(&self) -> Result<Vec<Folder>> {
        let store = self.store();
        store.folders()?.into_iter().map(|row| conversations::folder(&store, row)).collect()
    }

    /// In another folder, or (None) in none.
    pub fn folder_add(&self, name: &str, parent: Option<&str>) -> Result<Folder> {
        let name = named(name)?;
        self.folder_changed(|store| store.add_folder(&name, parent))
    }

    pub fn folder_rename(&self, id: &str, name: &str) -> Result<Folder> {
        let name = named(name)?;
        self.folder_changed(|store| store.rename_folder(id, &name))
    }

    /// Into another folder, or (None) out of any, with all that lies in it.
    pub fn folder_move(&self, id: &str, parent: Option<&str>) -> Result<Folder> {
        self.folder_changed(|store| store.move_folder(id, parent))
    }

    /// What lies in it stays, and lies where it lay.
    pub fn folder_remove(&self, id: &str) -> Result<()> {
        let mut store = self.store();
        let RemovedFolder { folders, conversations } = store.remove_folder(id)?;
        let inside: Result<Vec<_>> = conversations.into_iter().map(|row| summary(&store, row)).collect();
        let folders: Result<Vec<_>> =
            folders.into_iter().map(|row| conversations::folder(&store, row)).collect();
        drop(store);
        // Of the files of a project that it was.
        self.sweep_images()?;
        for folder in folders? {
            self.ctx().events.publish(AppEvent::FolderChanged { folder });
        }
        for conversation in inside? {
            self.ctx().events.publish(AppEvent::ConversationChanged { conversation });
        }
        self.ctx().events.publish(AppEvent::FolderRemoved { id: id.into() });
        Ok(())
    }

    fn folder_changed(
        &self,
        change: impl FnOnce(&mut Session) -> session::Result<FolderRow>,
    ) -> Result<Folder> {
        let mut store = self.store();
        let row = change(&mut store)?;
        let folder = conversations::folder(&store, row)?;
        drop(store);
        self.ctx().events.publish(AppEvent::FolderChanged { folder: folder.clone() });
        Ok(folder)
    }

    /// Conversations by their titles and messages by their words.
    pub fn search(&self, args: &SearchArgs) -> Result<SearchResult> {
        let limit = args.limit.unwrap_or(HITS).min(MAX_HITS);
        let store = self.store();
        let messages = store.search(&args.query, limit)?.into_iter().map(conversations::hit).collect();
        let words: Vec<String> = args.query.to_lowercase().split_whitespace().map(str::to_owned).collect();
        let titled = |title: &str| {
            let title = title.to_lowercase();
            !words.is_empty() && words.iter().all(|word| title.contains(word.trim_matches('"')))
        };
        let rows = store.conversations()?.into_iter().filter(|row| titled(&row.title));
        let titles = rows.map(|row| TitleHit { conversation: row.id, title: row.title });
        Ok(SearchResult { titles: titles.take(limit as usize).collect(), messages })
    }
}

fn named(name: &str) -> Result<String> {
    let name = title_text::clean(name);
    if name.is_empty() {
        return Err(Error::input("chat.empty_title", "A folder needs a name.", "Enter a name."));
    }
    Ok(name)
}
