//! Keeping conversations in order: folders, pins, options of their own, and finding what was said.

use session::RemovedFolder;

use crate::error::{Error, Result};
use crate::generate::SamplingArgs;
use crate::types::{
    AppEvent, ConversationOptions, ConversationSummary, Folder, SearchArgs, SearchResult, TitleHit,
};
use crate::{App, convert, title};

/// Messages that a search shows unless it is told otherwise, and at most.
const HITS: u32 = 50;
const MOST_HITS: u32 = 1000;

/// Longest system prompt, in bytes: as long as any context there is.
const MOST_PROMPT_BYTES: usize = 4 << 20;

impl App {
    pub fn conversation_pin(&self, id: &str, pinned: bool) -> Result<ConversationSummary> {
        self.changed(|state| Ok(state.session.set_pinned(id, pinned)?))
    }

    /// Into a folder, or (None) out of any.
    pub fn conversation_move(&self, id: &str, folder: Option<&str>) -> Result<ConversationSummary> {
        self.changed(|state| Ok(state.session.move_to(id, folder)?))
    }

    /// What the conversation has of its own: its system prompt, how its answers are sampled.
    pub fn conversation_set_options(
        &self,
        id: &str,
        options: &ConversationOptions,
    ) -> Result<ConversationSummary> {
        let json = self.options_json(options)?;
        self.changed(|state| Ok(state.session.set_options(id, json.as_deref())?))
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
        if n_bytes > MOST_PROMPT_BYTES {
            let message =
                format!("The system prompt has {n_bytes} bytes; the maximum is {MOST_PROMPT_BYTES}.");
            return Err(Error::input("chat.prompt_too_long", message, "Shorten it."));
        }
        self.sampling_with(options).map(|_| ())
    }

    pub(crate) fn options_of(&self, id: &str) -> Result<ConversationOptions> {
        Ok(convert::options(self.shared().state().session.conversation(id)?.options))
    }

    /// The settings' sampling with the conversation's own over it.
    pub(crate) fn sampling_with(&self, options: &ConversationOptions) -> Result<engine::Sampling> {
        let own = SamplingArgs {
            temperature: options.temperature,
            top_k: options.top_k,
            top_p: options.top_p,
            min_p: options.min_p,
            repeat_penalty: options.repeat_penalty,
            seed: options.seed,
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
        let rows = self.shared().state().session.folders()?;
        Ok(rows.into_iter().map(convert::folder).collect())
    }

    /// In another folder, or (None) in none.
    pub fn folder_add(&self, name: &str, parent: Option<&str>) -> Result<Folder> {
        let name = named(name)?;
        let row = self.shared().state().session.add_folder(&name, parent)?;
        Ok(self.told_folder(convert::folder(row)))
    }

    pub fn folder_rename(&self, id: &str, name: &str) -> Result<Folder> {
        let name = named(name)?;
        let row = self.shared().state().session.rename_folder(id, &name)?;
        Ok(self.told_folder(convert::folder(row)))
    }

    /// Into another folder, or (None) out of any, with all that lies in it.
    pub fn folder_move(&self, id: &str, parent: Option<&str>) -> Result<Folder> {
        let row = self.shared().state().session.move_folder(id, parent)?;
        Ok(self.told_folder(convert::folder(row)))
    }

    /// What lies in it stays, and lies where it lay.
    pub fn folder_remove(&self, id: &str) -> Result<()> {
        let mut state = self.shared().state();
        let RemovedFolder { folders, conversations } = state.session.remove_folder(id)?;
        let inside: Result<Vec<_>> = conversations.into_iter().map(|row| state.summary(row)).collect();
        drop(state);
        for folder in folders {
            self.told_folder(convert::folder(folder));
        }
        for conversation in inside? {
            self.shared().tell(AppEvent::ConversationChanged { conversation });
        }
        self.shared().tell(AppEvent::FolderRemoved { id: id.into() });
        Ok(())
    }

    fn told_folder(&self, folder: Folder) -> Folder {
        self.shared().tell(AppEvent::FolderChanged { folder: folder.clone() });
        folder
    }

    /// Conversations by their titles and messages by their words.
    pub fn search(&self, args: &SearchArgs) -> Result<SearchResult> {
        let limit = args.limit.unwrap_or(HITS).min(MOST_HITS);
        let state = self.shared().state();
        let messages = state.session.search(&args.query, limit)?.into_iter().map(convert::hit).collect();
        let words: Vec<String> = args.query.to_lowercase().split_whitespace().map(str::to_owned).collect();
        let titled = |title: &str| {
            let title = title.to_lowercase();
            !words.is_empty() && words.iter().all(|word| title.contains(word.trim_matches('"')))
        };
        let rows = state.session.conversations()?.into_iter().filter(|row| titled(&row.title));
        let titles = rows.map(|row| TitleHit { conversation: row.id, title: row.title });
        Ok(SearchResult { titles: titles.take(limit as usize).collect(), messages })
    }
}

fn named(name: &str) -> Result<String> {
    let name = title::clean(name);
    if name.is_empty() {
        return Err(Error::input("chat.empty_title", "The folder needs a name.", "Enter a name."));
    }
    Ok(name)
}
