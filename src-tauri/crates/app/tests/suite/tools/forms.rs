//! Servers that ask the user: the form is shown, and the tool ends with what the user says.

use contract::types::{
    ToolFieldKind, ToolFormAction, ToolFormAnswerArgs, ToolRunState, ToolServerAddArgs, ToolServerSpec,
};
use serde_json::{Value, json};

use crate::remote::fake::Fake;

use super::home::{Home, calling, results, spec, states};
use super::servers::Behind;

/// A home whose model calls the tool that asks. Returns the message with the call, and the model.
fn asked(name: &str, spec: ToolServerSpec) -> (Home, String, Fake) {
    let home = Home::new(name);
    let args = ToolServerAddArgs { name: "restaurant".into(), spec };
    let info = home.app().tool_server_add(args).unwrap();
    home.allow(&info);
    let fake = calling(&[("book", json!({}))]);
    let (_, message) = home.send(&fake, "Book a table");
    (home, message, fake)
}

fn answer(id: &str, action: ToolFormAction, values: Value) -> ToolFormAnswerArgs {
    let values = values.as_object().unwrap().clone().into_iter().collect();
    ToolFormAnswerArgs { id: id.into(), action, values }
}

#[test]
fn a_form_is_shown_and_answered_over_either_transport() {
    let flags: [&[&str]; 2] = [&["--asks", "--stream"], &["--asks", "--stateless", "2026-07-28"]];
    for flags in flags {
        let behind = Behind::new(flags);
        let there = ToolServerSpec { url: Some(behind.url.clone()), ..Default::default() };
        for (place, spec) in [("here", spec(flags)), ("there", there)] {
            let (home, message, _fake) = asked(&format!("form-{place}-{}", flags.len()), spec);
            let form = home.form();
            assert_eq!(
                (form.server_name.as_str(), form.message.as_str()),
                ("restaurant", "For whom is the table?")
            );
            let name = form.fields.iter().find(|field| field.name == "name").unwrap();
            assert!(name.required && name.label == "Name" && matches!(name.kind, ToolFieldKind::Text { .. }));
            assert_eq!(home.app().tool_forms(), std::slice::from_ref(&form));

            let incomplete = answer(&form.id, ToolFormAction::Accept, json!({ "guests": 3 }));
            assert_eq!(home.app().tool_form_answer(incomplete).unwrap_err().code(), "tools.form");
            let complete = answer(&form.id, ToolFormAction::Accept, json!({ "name": "Ada" }));
            home.app().tool_form_answer(complete.clone()).unwrap();
            assert_eq!(results(&home.answered(&message).0), ["accept 2 Ada"], "{place} {flags:?}");
            assert!(home.app().tool_forms().is_empty());
            assert_eq!(home.app().tool_form_answer(complete).unwrap_err().code(), "tools.form_closed");
        }
    }
}

#[test]
fn a_user_may_decline_and_a_server_may_end() {
    let (home, message, _fake) = asked("form-decline", spec(&["--asks"]));
    let form = home.form();
    home.app().tool_form_answer(answer(&form.id, ToolFormAction::Decline, json!({}))).unwrap();
    assert_eq!(results(&home.answered(&message).0), ["decline"]);

    let (home, message, _fake) = asked("form-end", spec(&["--asks"]));
    home.form();
    let server = home.app().tool_servers_list().unwrap().remove(0).id;
    home.app().tool_server_remove(&server).unwrap();
    assert_eq!(states(&home.answered(&message).0), [ToolRunState::Failed]);
    assert!(home.app().tool_forms().is_empty());
}
