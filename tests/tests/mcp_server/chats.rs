//! Saved chats and own prompts over the protocol: read, completed, watched.

use serde_json::{Value, json};

use super::{McpHome, StdioClient, stateless_meta};

#[test]
fn chats_are_saved_and_read_as_resources() {
    let home = McpHome::new("chats");
    assert!(home.command(&["settings", "set", "guide_answers", "false"]).status().unwrap().success());
    let mut client = StdioClient::connect(&home);
    let unsaved = client.call(
        "chat",
        json!({ "messages": [{ "role": "user", "content": "What is a token?" }], "max_tokens": 4, "temperature": 0 }),
    );
    assert_eq!(unsaved["structuredContent"]["session"], Value::Null, "{unsaved}");
    let first =
        client.call("chat", json!({ "message": "What is a token?", "max_tokens": 4, "temperature": 0 }));
    let first = &first["structuredContent"];
    let session = first["session"].as_str().unwrap().to_owned();
    assert_eq!(first["finish"], "length", "{first}");
    let second = client.call("chat", json!({ "message": "And a sampler?", "session": session }));
    assert_eq!(second["structuredContent"]["session"], session, "{second}");

    let listed = client.call("list_sessions", json!({}));
    let listed = listed["structuredContent"]["sessions"].as_array().unwrap().clone();
    assert_eq!((listed.len(), &listed[0]["id"]), (1, &json!(session)));
    let (_, resources) = client.ask("resources/list", json!({}));
    let uri = resources["result"]["resources"][0]["uri"].clone();
    assert_eq!(uri, listed[0]["uri"]);
    let (_, read) = client.ask("resources/read", json!({ "uri": uri }));
    let contents = &read["result"]["contents"][0];
    assert_eq!((&contents["mimeType"], &contents["uri"]), (&json!("text/markdown"), &uri));
    let text = contents["text"].as_str().unwrap();
    assert!(text.contains("What is a token?") && text.contains("And a sampler?"), "{text}");
    let (_, templates) = client.ask("resources/templates/list", json!({}));
    assert_eq!(templates["result"]["resourceTemplates"][0]["uriTemplate"], "inglenook://conversations/{id}");
    assert!(client.close());
}

/// Requests that are sent until a notification has come.
const MAX_PINGS: usize = 1000;

#[test]
fn watched_chats_and_own_prompts_are_told_of() {
    let home = McpHome::new("watched");
    let prompts = json!([{ "name": "mail", "text": "Write a mail.\nBe brief." }]).to_string();
    assert!(home.command(&["settings", "set", "prompts", &prompts]).status().unwrap().success());
    let mut client = StdioClient::connect(&home);
    let (_, listed) = client.ask("prompts/list", json!({}));
    let prompt = json!({ "name": "mail", "title": "mail", "description": "Write a mail." });
    assert_eq!(listed["result"]["prompts"], json!([prompt]), "{listed}");
    let (_, got) = client.ask("prompts/get", json!({ "name": "mail" }));
    let message =
        json!({ "role": "user", "content": { "type": "text", "text": "Write a mail.\nBe brief." } });
    assert_eq!(got["result"]["messages"], json!([message]), "{got}");
    let (_, unknown) = client.ask("prompts/get", json!({ "name": "nothing" }));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    assert_eq!(client.ask("logging/setLevel", json!({ "level": "info" })).1["result"], json!({}));

    let first = client.call("chat", json!({ "message": "What is a token?", "max_tokens": 2 }));
    let session = first["structuredContent"]["session"].as_str().unwrap().to_owned();
    let argument = json!({ "name": "id", "value": &session[..4] });
    let reference = json!({ "type": "ref/resource", "uri": "inglenook://conversations/{id}" });
    let (_, completed) = client.ask("completion/complete", json!({ "ref": reference, "argument": argument }));
    assert_eq!(completed["result"]["completion"]["values"], json!([session]), "{completed}");

    let uri = format!("inglenook://conversations/{session}");
    assert_eq!(client.ask("resources/subscribe", json!({ "uri": uri })).1["result"], json!({}));
    let arguments = json!({ "message": "And a sampler?", "session": session });
    let (before, _) = client.ask("tools/call", json!({ "name": "chat", "arguments": arguments }));
    let is_update =
        |it: &Value| it["method"] == "notifications/resources/updated" && it["params"]["uri"] == uri;
    let has_come = before.iter().any(is_update)
        || (0..MAX_PINGS).any(|_| client.ask("ping", json!({})).0.iter().any(is_update));
    assert!(has_come, "no notification came");
    assert_eq!(client.ask("resources/unsubscribe", json!({ "uri": uri })).1["result"], json!({}));
    assert!(client.close());
}

#[test]
fn a_subscription_of_the_stateless_revision_tells_of_new_chats() {
    let home = McpHome::new("listening");
    assert!(home.command(&["settings", "set", "guide_answers", "false"]).status().unwrap().success());
    let mut client = StdioClient::start(&home);
    let wanted = json!({ "resourcesListChanged": true, "toolsListChanged": true });
    let listening =
        client.send("subscriptions/listen", json!({ "_meta": stateless_meta(), "notifications": wanted }));
    let acknowledged = client.read();
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged", "{acknowledged}");
    assert_eq!(acknowledged["params"]["notifications"], json!({ "resourcesListChanged": true }));
    let subscription =
        |message: &Value| message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"].clone();
    assert_eq!(subscription(&acknowledged), listening);

    let arguments = json!({ "message": "What is a token?", "max_tokens": 2 });
    let call = json!({ "_meta": stateless_meta(), "name": "chat", "arguments": arguments });
    let (before, answer) = client.ask("tools/call", call);
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
    let is_told =
        |it: &Value| it["method"] == "notifications/resources/list_changed" && subscription(it) == listening;
    let discover = || json!({ "_meta": stateless_meta() });
    let has_come = before.iter().any(is_told)
        || (0..MAX_PINGS).any(|_| client.ask("server/discover", discover()).0.iter().any(is_told));
    assert!(has_come, "no notification came");
    client.write(&json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": listening },
    }));
    assert!(client.close(), "a subscription does not keep the program");
}
