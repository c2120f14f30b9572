//! A server's request for a form, from its message to the answer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use super::{ElicitationForm, ElicitationHandler};

/// Forms of one server at the same time: each waits on a thread, and the user sees one at a time.
const MAX_OPEN: usize = 4;

/// Codes of JSON-RPC 2.0.
const INVALID_PARAMS: i64 = -32602;
const INTERNAL_ERROR: i64 = -32603;

/// The requests whose forms wait for the user.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpenElicitations(Arc<Mutex<Vec<Value>>>);

impl OpenElicitations {
    fn ids(&self) -> MutexGuard<'_, Vec<Value>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the user is being asked.
    pub fn any(&self) -> bool {
        !self.ids().is_empty()
    }

    /// Takes a request back, by its id.
    pub fn withdraw(&self, id: &Value) {
        self.ids().retain(|other| other != id);
    }

    /// Takes all requests back: the server has ended.
    pub fn withdraw_all(&self) {
        self.ids().clear();
    }

    fn is_withdrawn(&self, id: &Value) -> bool {
        !self.ids().contains(id)
    }

    /// Adds a request. Returns whether there is room for it.
    fn add(&self, id: &Value) -> bool {
        let mut ids = self.ids();
        let has_room = ids.len() < MAX_OPEN && !ids.contains(id);
        if has_room {
            ids.push(id.clone());
        }
        has_room
    }
}

/// An answer to a server's request.
pub(crate) enum Answer {
    Ready(Value),
    /// It needs the user first.
    Elicitation(ElicitationRequest),
}

impl Answer {
    /// Sends the answer: at once, or from a thread that waits for the user. A request that was withdrawn gets none.
    pub fn deliver(self, send: impl FnOnce(Value) + Send + 'static) {
        match self {
            Self::Ready(answer) => send(answer),
            Self::Elicitation(request) => {
                let waiting = platform::spawn("tools-form", move || _ = request.answer().map(send));
                if let Err(error) = waiting {
                    tracing::warn!(code = error.code(), "a form was not shown: {error}");
                }
            }
        }
    }
}

/// A form that is about to be shown.
pub(crate) struct ElicitationRequest {
    id: Value,
    form: ElicitationForm,
    handler: ElicitationHandler,
    open: OpenElicitations,
}

impl ElicitationRequest {
    /// Reads a request. Its answer is ready where it is no form, or too many are open.
    pub fn begin(
        server: &str,
        id: Value,
        params: &Value,
        handler: &ElicitationHandler,
        open: &OpenElicitations,
    ) -> Answer {
        let form = match ElicitationForm::parse(server, params) {
            Ok(form) => form,
            Err(why) => return Answer::Ready(refusal(&id, INVALID_PARAMS, &why)),
        };
        if !open.add(&id) {
            return Answer::Ready(refusal(&id, INTERNAL_ERROR, "the user is answering other questions"));
        }
        Answer::Elicitation(Self { id, form, handler: Arc::clone(handler), open: open.clone() })
    }

    /// Waits for the user. `None`: the request was withdrawn.
    fn answer(&self) -> Option<Value> {
        let given = (self.handler)(&self.form, &|| self.open.is_withdrawn(&self.id));
        let answer = match self.form.result(given) {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": self.id, "result": result }),
            Err(why) => refusal(&self.id, INTERNAL_ERROR, &why),
        };
        Some(answer).filter(|_| !self.open.is_withdrawn(&self.id))
    }
}

impl Drop for ElicitationRequest {
    fn drop(&mut self) {
        self.open.withdraw(&self.id);
    }
}

fn refusal(id: &Value, code: i64, why: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": why } })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::super::ElicitationAnswer;
    use super::*;

    fn begin(id: Value, open: &OpenElicitations) -> Answer {
        let handler: ElicitationHandler = Arc::new(|_, _| ElicitationAnswer::Declined);
        let params = json!({ "message": "?", "requestedSchema": { "properties": {} } });
        ElicitationRequest::begin("lab", id, &params, &handler, open)
    }

    /// What is sent. `None`: nothing.
    fn sent(answer: Answer) -> Option<Value> {
        let (send, answers) = mpsc::channel();
        answer.deliver(move |answer| send.send(answer).unwrap());
        answers.recv().ok()
    }

    #[test]
    fn the_number_of_open_forms_is_bounded() {
        let open = OpenElicitations::default();
        let mut waiting: Vec<Answer> = (0..MAX_OPEN).map(|id| begin(json!(id), &open)).collect();
        assert!(waiting.iter().all(|it| matches!(it, Answer::Elicitation(_))) && open.any());
        let one_more = sent(begin(json!("a"), &open)).unwrap();
        assert_eq!(one_more["error"]["code"], INTERNAL_ERROR);
        waiting.pop();
        let expected = json!({ "jsonrpc": "2.0", "id": "a", "result": { "action": "decline" } });
        assert_eq!(sent(begin(json!("a"), &open)), Some(expected));
        drop(waiting);
        assert!(!open.any());
    }

    #[test]
    fn what_was_withdrawn_is_not_answered() {
        let open = OpenElicitations::default();
        let (first, second) = (begin(json!(1), &open), begin(json!(2), &open));
        open.withdraw(&json!(1));
        assert_eq!(sent(first), None);
        open.withdraw_all();
        assert_eq!(sent(second), None);
        let handler: ElicitationHandler = Arc::new(|_, _| ElicitationAnswer::Declined);
        let broken = ElicitationRequest::begin("lab", json!(1), &json!({}), &handler, &open);
        assert_eq!(sent(broken).unwrap()["error"]["code"], INVALID_PARAMS);
    }
}
