//! Tools that need something of the client first: results of the kind `input_required` (SEP-2322).
//!
//! The state between rounds stays here. Clients get a handle that can't be guessed, and hand it back.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, InputRequest,
    InputRequiredResult, InputResponses, Tool,
};
use rmcp::service::RequestContext;
use serde_json::{Value, json};

use crate::tools::definition;

const PREFIX: &str = "test_input_required_result_";

const NAMES: [&str; 8] = [
    "elicitation",
    "sampling",
    "list_roots",
    "request_state",
    "tampered_state",
    "multiple_inputs",
    "multi_round",
    "capabilities",
];

/// Rounds that calls have reached, by the handle that their client holds.
#[derive(Clone, Default)]
pub struct StateHandles {
    rounds: Arc<Mutex<HashMap<String, u32>>>,
    random: RandomState,
}

impl StateHandles {
    fn keep(&self, round: u32) -> String {
        let mut rounds = self.rounds.lock().unwrap_or_else(PoisonError::into_inner);
        let handle = format!("{:016x}", self.random.hash_one(rounds.len()));
        rounds.insert(handle.clone(), round);
        handle
    }

    /// The round of a handle, 0 without one. Errors: the handle is not ours.
    fn round(&self, handle: Option<&String>) -> Result<u32, ErrorData> {
        let Some(handle) = handle else { return Ok(0) };
        let rounds = self.rounds.lock().unwrap_or_else(PoisonError::into_inner);
        let unknown = || ErrorData::invalid_params("The requestState is not one of this server.", None);
        rounds.get(handle).copied().ok_or_else(unknown)
    }
}

/// All tools of this kind.
pub fn tools() -> Vec<Tool> {
    NAMES.iter().map(|name| definition(&format!("{PREFIX}{name}"), json!({}), &[])).collect()
}

/// Whether a tool is of this kind.
pub fn is_tool(name: &str) -> bool {
    name.strip_prefix(PREFIX).is_some_and(|rest| NAMES.contains(&rest))
}

/// What the client has answered under a key. What is no object counts as no answer.
pub fn response<'a>(responses: Option<&'a InputResponses>, key: &str) -> Option<&'a Value> {
    responses.and_then(|all| all.get(key)).filter(|value| value.is_object())
}

/// A result that asks for something.
pub fn required<const N: usize>(
    asked: [(&str, InputRequest); N],
    state: Option<String>,
) -> InputRequiredResult {
    let requests = asked.into_iter().map(|(key, request)| (key.to_owned(), request)).collect();
    InputRequiredResult::new(Some(requests), state)
}

/// Asks the user to fill in a form.
pub fn elicitation(message: &str, properties: Value) -> Result<InputRequest, ErrorData> {
    let names: Vec<&String> = properties.as_object().into_iter().flat_map(|it| it.keys()).collect();
    let schema = json!({ "type": "object", "properties": properties, "required": names });
    request("elicitation/create", json!({ "mode": "form", "message": message, "requestedSchema": schema }))
}

fn sampling(question: &str) -> Result<InputRequest, ErrorData> {
    let message = json!({ "role": "user", "content": { "type": "text", "text": question } });
    request("sampling/createMessage", json!({ "messages": [message], "maxTokens": 100 }))
}

fn request(method: &str, params: Value) -> Result<InputRequest, ErrorData> {
    let request = serde_json::from_value(json!({ "method": method, "params": params }));
    request.map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

fn complete(text: String) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}

/// Calls a tool of this kind.
pub fn call(
    states: &StateHandles,
    call: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let answered = |key: &str| response(call.input_responses.as_ref(), key);
    let round = states.round(call.request_state.as_ref())?;
    let ask_name = |message: &str| elicitation(message, json!({ "name": { "type": "string" } }));
    let roots = || request("roots/list", json!({}));
    let asked = match call.name.strip_prefix(PREFIX).unwrap_or_default() {
        "elicitation" => match answered("user_name") {
            Some(answer) => {
                let name = answer["content"]["name"].as_str().unwrap_or_default();
                return Ok(complete(format!("Hello, {name}!")));
            }
            None => required([("user_name", ask_name("What is your name?")?)], None),
        },
        "sampling" => match answered("capital_question") {
            Some(answer) => return Ok(complete(answer["content"]["text"].to_string())),
            None => required([("capital_question", sampling("What is the capital of France?")?)], None),
        },
        "list_roots" => match answered("client_roots") {
            Some(answer) => return Ok(complete(answer["roots"].to_string())),
            None => required([("client_roots", roots()?)], None),
        },
        "request_state" | "tampered_state" => match round {
            0 => {
                let confirm = elicitation("Please confirm", json!({ "ok": { "type": "boolean" } }))?;
                required([("confirm", confirm)], Some(states.keep(1)))
            }
            _ => return Ok(complete("state-ok".into())),
        },
        "multiple_inputs" => {
            let keys = ["user_name", "greeting", "client_roots"];
            if round > 0 && keys.into_iter().all(|key| answered(key).is_some()) {
                return Ok(complete("All inputs were received.".into()));
            }
            let asked = [ask_name("What is your name?")?, sampling("Generate a greeting")?, roots()?];
            let [name, greeting, roots] = asked;
            let asked = [("user_name", name), ("greeting", greeting), ("client_roots", roots)];
            required(asked, Some(states.keep(1)))
        }
        "multi_round" => match round {
            0 => required([("step1", ask_name("Step 1: what is your name?")?)], Some(states.keep(1))),
            1 => {
                let colour = json!({ "color": { "type": "string" } });
                let asked = elicitation("Step 2: what is your favorite color?", colour)?;
                required([("step2", asked)], Some(states.keep(2)))
            }
            _ => return Ok(complete("All rounds are complete.".into())),
        },
        _ => {
            let declared = context.meta.client_capabilities().unwrap_or_default();
            let all = [
                ("user_name", declared.elicitation.is_some(), ask_name("What is your name?")?),
                ("greeting", declared.sampling.is_some(), sampling("Generate a greeting")?),
                ("client_roots", declared.roots.is_some(), roots()?),
            ];
            let asked = all.into_iter().filter(|(_, is_declared, _)| *is_declared);
            let asked: Vec<_> = asked.map(|(key, _, request)| (key.to_owned(), request)).collect();
            if asked.is_empty() || call.input_responses.is_some() {
                return Ok(complete("Nothing more is needed.".into()));
            }
            InputRequiredResult::new(Some(asked.into_iter().collect()), None)
        }
    };
    Ok(asked.into())
}
