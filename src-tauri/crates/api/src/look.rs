//! Answers looked at token by token, and taken up again from another token.

use std::sync::mpsc;

use session::{MessageState, NewTurn, Role, TokenLog};

use crate::chat::{Responder, history, with_system};
use crate::error::{Error, ErrorKind, Result};
use crate::types::{Looked, PickArgs, TurnStarted};
use crate::worker::not_here;
use crate::worker::protocol::{ChatOptions, Ids, LookRequest, WorkerRequest};
use crate::{App, Had};

impl App {
    /// Every token of an answer with what was likeliest in its place. Its model has to be in memory.
    pub fn message_tokens(&self, message: &str) -> Result<Vec<Looked>> {
        let log = self.log_of(message)?;
        let (model, conversation, branch) = {
            let state = self.shared().state();
            let row = state.session.message(message)?;
            let mut branch = state.session.branch(&row.conversation)?.messages;
            let Some(at) = branch.iter().position(|it| it.row.id == message) else {
                return Err(other(
                    "This answer belongs to another version of the chat.",
                    "Switch to its version first.",
                ));
            };
            branch.truncate(at);
            let branch = state.with_files(branch)?;
            let model = row.model.unwrap_or_default();
            (model, row.conversation, branch)
        };
        let reference = match self.responder(&model)? {
            Responder::Local(reference) => reference,
            Responder::Remote(reference) => return Err(not_here(&reference.id)),
        };
        let options = self.options_of(&conversation)?;
        let look = LookRequest {
            model: reference,
            load: self.load_spec_of(&model)?,
            messages: with_system(history(branch), options.system_prompt),
            chat: self.chat_options(&model, ChatOptions::default())?,
            had: Ids { fingerprint: log.fingerprint, ids: log.all_ids },
        };
        let (send, answer) = mpsc::channel();
        let request = {
            let mut state = self.shared().state();
            state.n_asked += 1;
            let request = state.n_asked;
            state.looks.insert(request, send);
            request
        };
        self.ask(WorkerRequest::Look { request, look: Box::new(look) })?;
        answer.recv().map_err(|_| Error::bug("the worker ended while it looked"))?
    }

    /// Another version of an answer: the same up to a token, another one there, and on from it.
    pub fn message_pick(&self, args: &PickArgs) -> Result<TurnStarted> {
        let TokenLog { all_ids: mut ids, fingerprint, .. } = self.log_of(&args.message)?;
        let index = usize::try_from(args.index).unwrap_or(usize::MAX);
        if index >= ids.len() {
            let message = format!("Token {index} does not exist: this answer has {} tokens.", ids.len());
            return Err(Error::input("look.no_token", message, "Open \"Inspect tokens\" again."));
        }
        ids.truncate(index);
        ids.push(args.token);
        let row = self.shared().state().session.message(&args.message)?;
        let had = Had { text: String::new(), reasoning: String::new(), ids, fingerprint };
        let (conversation, model) = (Some(&*row.conversation), row.model.as_deref());
        self.start(conversation, model, NewTurn::Regenerate { message: &args.message }, Some(had))
    }

    /// What was generated for an answer that is over.
    fn log_of(&self, message: &str) -> Result<TokenLog> {
        let (row, logs) = {
            let state = self.shared().state();
            (state.session.message(message)?, state.session.token_logs(message)?)
        };
        if row.role != Role::Assistant || row.state == MessageState::Streaming {
            return Err(other(
                "Tokens can be inspected only after the answer is done.",
                "Wait until it is done.",
            ));
        }
        if let Some(Ok(Responder::Remote(reference))) = row.model.map(|model| self.responder(&model)) {
            return Err(not_here(&reference.id));
        }
        logs.into_iter().find(|log| !log.all_ids.is_empty()).ok_or_else(|| {
            other(
                "This answer's tokens were not saved.",
                "Regenerate the answer and inspect the new version.",
            )
        })
    }
}

fn other(message: &str, remedy: &str) -> Error {
    Error::new(ErrorKind::Conflict, "look.nothing", message, remedy)
}
