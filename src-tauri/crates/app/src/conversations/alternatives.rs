//! Answers inspected token by token, and continued from an alternative token.

use session::{MessageState, NewTurn, Role, TokenLog};

use crate::App;
use crate::retrieval::images::can_see;
use crate::turns::turn::ContinuedFrom;
use contract::Responder;
use contract::protocol::{ChatOptions, Ids, LogprobsRequest, WorkerRequest};
use contract::types::{PickArgs, TokenAlternatives, TurnStarted};
use contract::{Error, ErrorKind, Result};
use file_search::injected::with_files;
use inference::model_file::not_here;
use prompt::history::{history, with_system};
use records::conversations::history_messages;

impl App {
    /// Every token of an answer with what was likeliest in its place. Its model has to be in memory.
    pub fn message_tokens(&self, message: &str) -> Result<Vec<TokenAlternatives>> {
        let log = self.log_of(message)?;
        let (model, conversation, branch) = {
            let store = self.store();
            let row = store.message(message)?;
            let mut branch = store.branch(&row.conversation)?.messages;
            let Some(at) = branch.iter().position(|it| it.row.id == message) else {
                return Err(other(
                    "This answer belongs to another version of the chat.",
                    "Switch to its version first.",
                ));
            };
            branch.truncate(at);
            let model = row.model.unwrap_or_default();
            (model, row.conversation, branch)
        };
        let reference = match self.responder(&model)? {
            Responder::Local(reference) => reference,
            Responder::Remote(reference) => return Err(not_here(&reference.id)),
        };
        let options = self.options_of(&conversation)?;
        let load = self.load_spec_of(&model)?;
        let system = self.system_of(&options)?;
        let branch = with_files(&self.store(), branch, &|| can_see(&reference, &load))?;
        let logprobs = LogprobsRequest {
            model: reference,
            load,
            messages: with_system(history(history_messages(branch)), system),
            chat: self.chat_options(&model, ChatOptions::default())?,
            had: Ids { fingerprint: log.fingerprint, ids: log.all_ids },
        };
        let backends = &self.ctx().backends;
        backends.replies.call(&backends.replies.token_logprobs, |request| {
            backends.ask(WorkerRequest::Logprobs { request, logprobs: Box::new(logprobs) })
        })?
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
        let row = self.store().message(&args.message)?;
        let continued = ContinuedFrom { text: String::new(), reasoning: String::new(), ids, fingerprint };
        let (conversation, model) = (Some(&*row.conversation), row.model.as_deref());
        self.start(conversation, model, NewTurn::Regenerate { message: &args.message }, Some(continued))
    }

    /// The token log of an answer that is over.
    fn log_of(&self, message: &str) -> Result<TokenLog> {
        let (row, logs) = {
            let store = self.store();
            (store.message(message)?, store.token_logs(message)?)
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
