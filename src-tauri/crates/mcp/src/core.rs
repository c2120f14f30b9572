//! Pending requests to a server, independent of the transport.

use std::collections::HashMap;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use super::elicitation::{Answer, ElicitationHandler, ElicitationRequest, OpenElicitations};
use super::{broken_message, malformed};
use contract::{Error, Result};

/// Lines on stdout that are no messages: a greeting is forgiven, a log is not.
const MAX_JUNK: usize = 100;
/// Characters of such a line that are shown.
const JUNK_SHOWN: usize = 120;
/// Longest part of a server's own words for a failure, in characters.
const MAX_WORDS: usize = 500;

/// A failure as the server words it.
#[derive(Debug)]
pub struct RpcError {
    pub code: i64,
    pub message: String,
    pub data: Value,
}

impl RpcError {
    fn of(error: &Value) -> Self {
        let code = &error["code"];
        let code = code.as_i64().or_else(|| code.as_str()?.trim().parse().ok());
        let message = error.as_str().or_else(|| error["message"].as_str()).filter(|it| !it.trim().is_empty());
        let message = message.unwrap_or_else(|| error["data"].as_str().unwrap_or_default());
        let message = if message.is_empty() { "it doesn't say why" } else { message };
        Self { code: code.unwrap_or_default(), message: words(message), data: error["data"].clone() }
    }
}

/// Our number for a request, however a server writes it: `7`, `7.0`, `"7"`.
fn request_id(id: &Value) -> Option<u64> {
    match id {
        Value::Number(number) => number.as_u64().or_else(|| {
            let number = number.as_f64()?;
            // far below where whole numbers can't be told apart
            (number.fract() == 0.0 && (0.0..1e15).contains(&number)).then_some(number as u64)
        }),
        Value::String(text) => text.trim().parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// What somebody hears who waits.
#[derive(Debug)]
pub enum Reply {
    Said(Result<Value, RpcError>),
    /// The server is still at it.
    Progress,
    Failed(Error),
    /// Stopped by the caller.
    Stopped,
}

/// What can wait for one request: its answer, that it was stopped, and progress.
const MAX_WAITING_REPLIES: usize = 4;

/// One server's answers.
pub struct Core {
    name: String,
    /// Its list of tools has changed.
    changed: Box<dyn Fn() + Send + Sync>,
    /// Shows forms to the user. `None`: there is no user to ask.
    elicitation: Option<ElicitationHandler>,
    open_elicitations: OpenElicitations,
    state: Mutex<CoreState>,
}

#[derive(Default)]
struct CoreState {
    n_asked: u64,
    waiting: HashMap<u64, SyncSender<Reply>>,
    over: Option<Error>,
    n_junk: usize,
    junk: Option<String>,
}

impl Core {
    pub fn new(name: &str, changed: impl Fn() + Send + Sync + 'static) -> Self {
        let open_elicitations = OpenElicitations::default();
        let (name, changed, state) = (name.into(), Box::new(changed), Mutex::default());
        Self { name, changed, elicitation: None, open_elicitations, state }
    }

    /// Offers the server to ask the user.
    pub fn with_elicitation(mut self, handler: ElicitationHandler) -> Self {
        self.elicitation = Some(handler);
        self
    }

    /// Shows forms to the user.
    pub(crate) fn elicitation(&self) -> Option<&ElicitationHandler> {
        self.elicitation.as_ref()
    }

    /// Whether a form waits for the user.
    pub(crate) fn is_asking_user(&self) -> bool {
        self.open_elicitations.any()
    }

    /// What this client offers its servers.
    pub(crate) fn capabilities(&self) -> Value {
        if self.elicitation.is_some() { json!({ "elicitation": { "form": {} } }) } else { json!({}) }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Has the server's state shown again.
    pub fn announce_change(&self) {
        (self.changed)();
    }

    fn state(&self) -> MutexGuard<'_, CoreState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number for a request, and where its answer comes.
    pub fn expect(&self) -> Result<(u64, SyncSender<Reply>, Receiver<Reply>)> {
        let mut state = self.state();
        if let Some(error) = &state.over {
            return Err(error.clone());
        }
        state.n_asked += 1;
        let (sender, replies) = mpsc::sync_channel(MAX_WAITING_REPLIES);
        let id = state.n_asked;
        state.waiting.insert(id, sender.clone());
        Ok((id, sender, replies))
    }

    pub fn forget(&self, id: u64) {
        self.state().waiting.remove(&id);
    }

    /// Somebody still waits for it.
    pub fn is_waiting(&self, id: u64) -> bool {
        self.state().waiting.contains_key(&id)
    }

    pub fn fail(&self, id: u64, error: Error) {
        self.reply(id, Reply::Failed(error));
    }

    /// A request makes progress. Where earlier progress waits to be heard, this says nothing new.
    fn progress(&self, params: &Value) {
        let state = self.state();
        let waiting = request_id(&params["progressToken"]).and_then(|id| state.waiting.get(&id));
        // As above.
        let _ = waiting.map(|waiting| waiting.try_send(Reply::Progress));
    }

    fn reply(&self, id: u64, reply: Reply) {
        let waiting = self.state().waiting.remove(&id);
        // the caller may have gone
        let _ = waiting.map(|waiting| waiting.send(reply));
    }

    /// The server answers no more: every pending request receives the reason.
    pub fn end(&self, error: Error) {
        let mut state = self.state();
        let waiting = std::mem::take(&mut state.waiting);
        let error = state.over.get_or_insert(error).clone();
        drop(state);
        self.open_elicitations.withdraw_all();
        for sender in waiting.into_values() {
            // As above.
            let _ = sender.send(Reply::Failed(error.clone()));
        }
    }

    pub fn over(&self) -> Option<Error> {
        self.state().over.clone()
    }

    /// A line that is no message. Error: there are too many.
    pub fn junk(&self, line: &str) -> Result<()> {
        let mut state = self.state();
        state.n_junk += 1;
        let shown: String = line.trim().chars().take(JUNK_SHOWN).collect();
        tracing::debug!(server = self.name, "no message of the protocol: {shown}");
        let n = state.n_junk;
        let last = state.junk.insert(shown).clone();
        drop(state);
        if n > MAX_JUNK {
            return Err(malformed(&self.name, &format!("it keeps printing such as \"{last}\"")));
        }
        Ok(())
    }

    pub fn junk_line(&self) -> Option<String> {
        self.state().junk.clone()
    }

    /// A message, or several as one; what is to be said back.
    pub(crate) fn heard(&self, message: Value) -> Vec<Answer> {
        match message {
            Value::Array(batch) => batch.into_iter().filter_map(|message| self.heard_one(message)).collect(),
            message => self.heard_one(message).into_iter().collect(),
        }
    }

    /// A line that is no JSON. Returns whether it belongs to a request that waits, which then fails with `cause`.
    pub fn heard_broken(&self, line: &str, cause: &str) -> bool {
        let waiting: Vec<u64> = self.state().waiting.keys().copied().collect();
        let Some(id) = broken_message::request_of(line, &waiting) else { return false };
        self.fail(id, malformed(&self.name, cause));
        true
    }

    /// An answer. One without an id can only be that of the only request, which could not be read.
    fn answered(&self, id: &Value, mut message: Value) {
        let outcome = match message.get_mut("error").map(Value::take) {
            // both stand there: what is empty is no error
            Some(Value::Null | Value::Bool(false)) | None => Ok(message["result"].take()),
            Some(error) => Err(RpcError::of(&error)),
        };
        let id = request_id(id).or_else(|| {
            let state = self.state();
            let is_only = state.waiting.len() == 1 && outcome.is_err() && id.is_null();
            state.waiting.keys().next().copied().filter(|_| is_only)
        });
        if let Some(id) = id {
            self.reply(id, Reply::Said(outcome));
        }
    }

    fn heard_one(&self, mut message: Value) -> Option<Answer> {
        if !message.is_object() {
            return None;
        }
        let id = message["id"].take();
        // some servers repeat the method in their answer
        let is_answer = !message["result"].is_null() || !message["error"].is_null();
        let method = message["method"].as_str().filter(|_| !is_answer).map(str::to_owned);
        match (method.as_deref(), id) {
            (None, id) => {
                self.answered(&id, message);
                None
            }
            (Some("notifications/tools/list_changed"), Value::Null) => {
                (self.changed)();
                None
            }
            (Some("notifications/progress"), Value::Null) => {
                self.progress(&message["params"]);
                None
            }
            (Some("notifications/cancelled"), Value::Null) => {
                self.open_elicitations.withdraw(&message["params"]["requestId"]);
                None
            }
            (Some("notifications/message"), Value::Null) => {
                let (level, data) = (&message["params"]["level"], &message["params"]["data"]);
                tracing::debug!(server = self.name, "{level}: {}", words(&data.to_string()));
                None
            }
            (Some(_), Value::Null) => None,
            (Some("ping"), id) => Some(Answer::Ready(json!({ "jsonrpc": "2.0", "id": id, "result": {} }))),
            (Some("elicitation/create"), id) if self.elicitation.is_some() => {
                let (params, open) = (&message["params"], &self.open_elicitations);
                let handler = self.elicitation.as_ref()?;
                Some(ElicitationRequest::begin(&self.name, id, params, handler, open))
            }
            (Some(other), id) => {
                let error =
                    json!({ "code": -32601, "message": format!("{other} is nothing that this client does") });
                Some(Answer::Ready(json!({ "jsonrpc": "2.0", "id": id, "error": error })))
            }
        }
    }
}

/// A server's own words, short enough to be shown.
pub fn words(text: &str) -> String {
    text.chars().take(MAX_WORDS).collect::<String>().trim().trim_end_matches('.').to_owned()
}

/// Ends the waiting for one call.
#[derive(Debug, Default)]
pub struct Stop(Mutex<StopState>);

#[derive(Debug, Default)]
struct StopState {
    is: bool,
    waiting: Option<SyncSender<Reply>>,
}

impl Stop {
    pub fn press(&self) {
        let mut pressed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pressed.is = true;
        // A call that has ended hears nothing.
        let _ = pressed.waiting.take().map(|waiting| waiting.send(Reply::Stopped));
    }

    pub fn is_pressed(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is
    }

    /// Registers a waiter, and notifies it at once if the stop came before.
    pub fn watch(&self, waiting: SyncSender<Reply>) {
        let mut pressed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match pressed.is {
            // As above.
            true => _ = waiting.send(Reply::Stopped),
            false => pressed.waiting = Some(waiting),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn core() -> (Core, Arc<AtomicUsize>) {
        let n_changes = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&n_changes);
        (Core::new("lab", move || _ = counted.fetch_add(1, Ordering::Relaxed)), n_changes)
    }

    /// What is answered at once.
    fn ready(answers: Vec<Answer>) -> Vec<Value> {
        let value = |answer| match answer {
            Answer::Ready(value) => value,
            Answer::Elicitation(_) => panic!("it asks the user"),
        };
        answers.into_iter().map(value).collect()
    }

    #[test]
    fn answers_find_whoever_waits() {
        let (core, _) = core();
        let (a, _, said_to_a) = core.expect().unwrap();
        let (b, _, said_to_b) = core.expect().unwrap();
        let batch = json!([
            { "jsonrpc": "2.0", "id": b, "error": { "code": -32602, "message": "no such tool." } },
            { "jsonrpc": "2.0", "id": a, "result": { "x": 1 } },
            { "jsonrpc": "2.0", "id": 99, "result": {} },
        ]);
        assert!(core.heard(batch).is_empty());
        assert!(matches!(said_to_a.recv(), Ok(Reply::Said(Ok(value))) if value == json!({ "x": 1 })));
        assert!(matches!(said_to_b.recv(), Ok(Reply::Said(Err(error))) if error.message == "no such tool"));
    }

    #[test]
    fn progress_reaches_whoever_waits_and_never_fills_up() {
        let (core, _) = core();
        let (id, _, replies) = core.expect().unwrap();
        let progress = |token: Value| json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progressToken": token } });
        for token in [json!(id), json!(id.to_string()), json!(id + 1), Value::Null] {
            assert!(core.heard(progress(token)).is_empty());
        }
        for _ in 0..10 {
            core.heard(progress(json!(id)));
        }
        let n =
            std::iter::from_fn(|| replies.try_recv().ok()).filter(|it| matches!(it, Reply::Progress)).count();
        assert_eq!(n, MAX_WAITING_REPLIES);
        core.heard(json!({ "jsonrpc": "2.0", "id": id, "result": 1 }));
        assert!(matches!(replies.try_recv(), Ok(Reply::Said(Ok(value))) if value == 1));
    }

    #[test]
    fn answers_are_understood_as_servers_write_them() {
        let said = json!({ "x": 1 });
        let good = [
            json!({ "id": 1, "result": said, "error": null }),
            json!({ "id": "1", "result": said }),
            json!({ "id": 1.0, "result": said, "error": false }),
            json!({ "id": 1, "result": said, "method": "tools/call" }),
            json!([{ "id": 1, "result": said }]),
        ];
        for message in good {
            let (core, _) = core();
            let (_, _, replies) = core.expect().unwrap();
            assert!(core.heard(message.clone()).is_empty(), "{message}");
            assert!(matches!(replies.try_recv(), Ok(Reply::Said(Ok(value))) if value == said), "{message}");
        }
        let bad = [
            (
                json!({ "id": 1, "result": null, "error": { "code": "-32601", "message": "no" } }),
                -32601,
                "no",
            ),
            (json!({ "id": "1", "error": "no" }), 0, "no"),
            (
                json!({ "id": null, "error": { "code": -32700, "message": "Parse error" } }),
                -32700,
                "Parse error",
            ),
            (json!({ "error": { "code": -32700, "data": "odd" } }), -32700, "odd"),
            (json!({ "id": 1, "error": {} }), 0, "it doesn't say why"),
        ];
        for (message, code, words) in bad {
            let (core, _) = core();
            let (_, _, replies) = core.expect().unwrap();
            core.heard(message.clone());
            let Ok(Reply::Said(Err(error))) = replies.try_recv() else { panic!("{message}") };
            assert_eq!((error.code, error.message.as_str()), (code, words), "{message}");
        }
        // Where several requests wait, an error without an id belongs to none.
        let (core, _) = core();
        let (waits, _also) = (core.expect().unwrap().2, core.expect().unwrap());
        core.heard(json!({ "error": { "code": 1, "message": "no" } }));
        core.heard(json!({ "result": {} }));
        core.heard(json!({ "id": -1, "result": {} }));
        assert!(waits.try_recv().is_err());
    }

    #[test]
    fn a_broken_line_fails_its_request_at_once() {
        let (core, _) = core();
        let (a, _, for_a) = core.expect().unwrap();
        let (_, _, for_b) = core.expect().unwrap();
        assert!(!core.heard_broken("Listening on port 1", "no JSON"));
        assert!(core.heard_broken(&format!(r#"{{"jsonrpc":"2.0","id":{a},"result":{{"x":"#), "no JSON"));
        assert!(matches!(for_a.try_recv(), Ok(Reply::Failed(error)) if error.code() == "tools.malformed"));
        assert!(for_b.try_recv().is_err());
    }

    #[test]
    fn what_a_server_asks_is_answered() {
        let (core, n_changes) = core();
        let cases = [
            (json!({ "id": 7, "method": "ping" }), Some(json!({ "jsonrpc": "2.0", "id": 7, "result": {} }))),
            (json!({ "method": "notifications/progress", "params": {} }), None),
            (json!({ "method": "notifications/tools/list_changed" }), None),
            (json!({}), None),
            (json!(3), None),
        ];
        for (said, expected) in cases {
            assert_eq!(ready(core.heard(said.clone())), Vec::from_iter(expected), "{said}");
        }
        let refusal = ready(core.heard(json!({ "id": "a", "method": "sampling/createMessage" }))).remove(0);
        assert_eq!((&refusal["id"], &refusal["error"]["code"]), (&json!("a"), &json!(-32601)));
        assert_eq!(n_changes.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn an_end_is_told_to_all_and_kept() {
        let (core, _) = core();
        let (_, _, waits) = core.expect().unwrap();
        core.end(Error::bug("first"));
        core.end(Error::bug("second"));
        assert!(matches!(waits.recv(), Ok(Reply::Failed(error)) if error.message().contains("first")));
        assert!(core.expect().unwrap_err().message().contains("first"));
    }

    #[test]
    fn stopping_before_or_after_is_heard() {
        for first in [true, false] {
            let (stop, (sender, replies)) = (Stop::default(), mpsc::sync_channel(MAX_WAITING_REPLIES));
            if first {
                stop.press();
            }
            stop.watch(sender);
            stop.press();
            assert!(matches!(replies.recv(), Ok(Reply::Stopped)));
        }
    }

    #[test]
    fn too_much_junk_is_an_error() {
        let (core, _) = core();
        for _ in 0..MAX_JUNK {
            core.junk("Listening …").unwrap();
        }
        assert!(core.junk("Listening …").unwrap_err().message().contains("Listening"));
    }
}
