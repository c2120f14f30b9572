//! Results of the kind `input_required` (MCP 2026-07-28): the request is repeated with what the server asks for.
//!
//! State of the server goes back to it unread, with the same request only.

use serde_json::{Map, Value};

use super::elicitation::{ElicitationForm, ElicitationHandler};
use contract::{Error, Result};

/// Rounds of one request. A server that asks for more does not come to an end.
pub const MAX_ROUNDS: usize = 16;

/// What is added to the parameters of a repeated request.
#[derive(Debug, Default, PartialEq)]
pub struct NextRound {
    responses: Option<Map<String, Value>>,
    state: Option<Value>,
}

impl NextRound {
    /// The parameters of the next round.
    pub fn params(&self, first: &Value) -> Value {
        let mut params = first.clone();
        let additions = [
            ("inputResponses", self.responses.clone().map(Value::Object)),
            ("requestState", self.state.clone()),
        ];
        for (key, value) in additions.into_iter().filter_map(|(key, value)| Some((key, value?))) {
            params[key] = value;
        }
        params
    }
}

/// Reads a result. `None`: it is complete. The user is asked for the rest on this thread.
///
/// Errors: the server asks for something that this client does not give.
pub fn next_round(
    name: &str,
    method: &str,
    said: &Value,
    handler: Option<&ElicitationHandler>,
    is_withdrawn: &dyn Fn() -> bool,
) -> Result<Option<NextRound>> {
    let incomplete = |why: String| {
        let message = format!("{name} did not complete {method}: {why}.");
        Error::input("tools.incomplete", message, "See whether the tool works without asking back.")
    };
    match said["resultType"].as_str() {
        None | Some("complete") => return Ok(None),
        Some("input_required") => {}
        Some(kind) => return Err(incomplete(format!("its result is of the kind \"{kind}\""))),
    }
    let state = said.get("requestState").filter(|state| state.is_string()).cloned();
    let responses = match said["inputRequests"].as_object() {
        Some(requests) => {
            let answer = |(key, request): (&String, &Value)| {
                Ok((key.clone(), response(name, request, handler, is_withdrawn).map_err(incomplete)?))
            };
            Some(requests.iter().map(answer).collect::<Result<Map<_, _>>>()?)
        }
        None if state.is_none() => return Err(incomplete("it does not say what it requires".into())),
        None => None,
    };
    Ok(Some(NextRound { responses, state }))
}

fn response(
    name: &str,
    request: &Value,
    handler: Option<&ElicitationHandler>,
    is_withdrawn: &dyn Fn() -> bool,
) -> Result<Value, String> {
    match (request["method"].as_str(), handler) {
        (Some("elicitation/create"), Some(handler)) => {
            let form = ElicitationForm::parse(name, &request["params"])?;
            form.result(handler(&form, is_withdrawn))
        }
        (Some(method), _) => Err(format!("it requires {method}, which is not supported")),
        (None, _) => Err("it requires something without a method".into()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::super::elicitation::ElicitationAnswer;
    use super::*;

    fn required(state: Value) -> Value {
        let schema = json!({ "properties": { "ok": { "type": "boolean", "default": true } } });
        let params = json!({ "message": "Sure?", "requestedSchema": schema });
        let requests = json!({ "confirm": { "method": "elicitation/create", "params": params } });
        json!({ "resultType": "input_required", "inputRequests": requests, "requestState": state })
    }

    #[test]
    fn the_next_round_has_responses_and_the_same_state() {
        let handler: ElicitationHandler = Arc::new(|_, _| ElicitationAnswer::Accepted(Map::new()));
        let first = json!({ "name": "delete" });
        let confirmed = json!({ "confirm": { "action": "accept", "content": { "ok": true } } });
        for (state, expected) in [
            (
                json!("{ \"a\": 1 }"),
                json!({ "name": "delete", "inputResponses": confirmed, "requestState": "{ \"a\": 1 }" }),
            ),
            (Value::Null, json!({ "name": "delete", "inputResponses": confirmed })),
        ] {
            let next = next_round("lab", "tools/call", &required(state), Some(&handler), &|| false)
                .unwrap()
                .unwrap();
            assert_eq!(next.params(&first), expected);
        }
        let only_state = json!({ "resultType": "input_required", "requestState": "s" });
        let next = next_round("lab", "tools/call", &only_state, None, &|| false).unwrap().unwrap();
        assert_eq!(next.params(&first), json!({ "name": "delete", "requestState": "s" }));
    }

    #[test]
    fn what_is_not_given_is_an_error() {
        for complete in [json!({}), json!({ "resultType": "complete" })] {
            assert_eq!(next_round("lab", "tools/call", &complete, None, &|| false).unwrap(), None);
        }
        let roots = json!({ "a": { "method": "roots/list" } });
        for said in [
            required(Value::Null),
            json!({ "resultType": "input_required", "inputRequests": roots }),
            json!({ "resultType": "input_required" }),
            json!({ "resultType": "task" }),
        ] {
            let error = next_round("lab", "tools/call", &said, None, &|| false).unwrap_err();
            assert_eq!(error.code(), "tools.incomplete", "{said}");
        }
    }
}
