//! Deleting conversations: into the trash, out of it, and for good.

use contract::protocol::WorkerRequest;
use contract::types::{AppEvent, ConversationSummary, Count};
use contract::{Error, Result};
use prompt::title_text;

use crate::App;
use records::conversations;

impl App {
    /// Into the trash; its answer, if one is being written, is stopped.
    pub fn conversation_delete(&self, id: &str) -> Result<()> {
        let active = {
            let mut store = self.store();
            let active = store.active_turn(id)?;
            store.delete(id)?;
            active
        };
        if let Some(turn) = active {
            self.turn_cancel(&turn)?;
        }
        self.ask(WorkerRequest::Forget { conversation: id.into() })?;
        self.ctx().events.publish(AppEvent::ConversationRemoved { id: id.into() });
        Ok(())
    }

    /// Out of the trash.
    pub fn conversation_restore(&self, id: &str) -> Result<ConversationSummary> {
        self.changed(|store| Ok(store.restore(id)?))
    }

    /// The last one deleted first.
    pub fn trash_list(&self) -> Result<Vec<ConversationSummary>> {
        let rows = self.store().trash()?;
        Ok(rows.into_iter().map(|row| conversations::summary(row, None)).collect())
    }

    /// For good, from the trash or not: text, index, ids of tokens, and every copy that was kept of them.
    pub fn conversation_forget(&self, id: &str) -> Result<()> {
        self.purge_conversations(&[id.to_owned()])
    }

    /// What lies in the trash goes for good; how many those were.
    pub fn trash_empty(&self) -> Result<Count> {
        let ids: Vec<_> = self.trash_list()?.into_iter().map(|summary| summary.id).collect();
        if !ids.is_empty() {
            self.purge_conversations(&ids)?;
        }
        Ok(Count { count: u32::try_from(ids.len()).unwrap_or(u32::MAX) })
    }

    /// A message for good: text, index, ids of tokens, summaries that know it, stored contexts, and every copy that was
    /// kept of them. What was said after it stays.
    pub fn message_forget(&self, message: &str) -> Result<ConversationSummary> {
        let (conversation, writing) = {
            let store = self.store();
            let conversation = store.conversation_of_message(message)?;
            let mut writing = self.services().summaries.give_up(&conversation)?;
            writing.extend(self.services().titles.give_up(&conversation));
            (conversation, writing)
        };
        for turn in writing {
            self.ask(WorkerRequest::Cancel { turn })?;
        }
        // What the worker keeps of it goes first: it must not be written once the text is gone.
        self.ask(WorkerRequest::Forget { conversation: conversation.clone() })?;
        // An answer comes after everything that the worker has told of: no file is claimed later.
        self.kv_stats()?;
        let _alone = self.services().copying.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let mut traces = None;
        let summary = self.changed(|store| {
            let title = title_text::of_message("");
            let (row, notice) = store.purge_message(message, &title, &*self.ctx().io)?;
            traces = notice;
            Ok(row)
        })?;
        self.sweep_images()?;
        self.conversation_forget_contexts(&conversation)?;
        if let Some(traces) = traces {
            self.ctx().events.notice(Error::from(traces).info);
        }
        Ok(summary)
    }

    fn purge_conversations(&self, ids: &[String]) -> Result<()> {
        // What the worker keeps of them goes first: it must not be written once the rows are gone.
        for id in ids {
            self.ask(WorkerRequest::Forget { conversation: id.clone() })?;
        }
        let _alone = self.services().copying.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let traces = self.store().purge(ids, &*self.ctx().io)?;
        self.sweep_images()?;
        for id in ids {
            self.conversation_forget_contexts(id)?;
            self.ctx().events.publish(AppEvent::ConversationRemoved { id: id.clone() });
        }
        if let Some(traces) = traces {
            self.ctx().events.notice(Error::from(traces).info);
        }
        Ok(())
    }
}
