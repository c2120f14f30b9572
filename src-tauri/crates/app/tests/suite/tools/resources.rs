//! Resources of servers: listed, attached, refused with a message.

use contract::types::{DraftArgs, SendArgs, ToolServerUpdateArgs};
use serde_json::json;

use super::home::{Home, model};

#[test]
fn resources_are_listed_and_go_with_a_message_as_files_do() {
    let home = Home::new("resources");
    let server = home.add("lab", &["--page", "2"]);
    let offered = home.app().tool_resources(&server.id).unwrap();
    let uris: Vec<&str> = offered.resources.iter().map(|it| it.uri.as_str()).collect();
    let all =
        ["note://today", "note://table", "note://picture", "note://folder", "note://slow", "note://escapes"];
    assert_eq!(uris, all);
    let today = &offered.resources[0];
    assert_eq!((today.name.as_str(), today.kind.as_deref()), ("Today's note", Some("text/markdown")));
    assert_eq!(offered.resources[1].bytes, Some(8));
    assert_eq!(offered.templates[0].template, "note://named/{name}");

    let attach = |uri: &str| home.app().tool_resource_attach(&server.id, uri);
    let file = attach("note://today").unwrap();
    assert_eq!(file.name, "today.md");
    let shown = home.app().attachment_text(&file.id, None).unwrap().text;
    assert_eq!(shown, "# Today\n\nFeed the fox.\n");
    let named = attach("note://named/ann").unwrap();
    assert_eq!(home.app().attachment_text(&named.id, None).unwrap().text, "A note called ann.");
    let both = home.app().tool_resource_text("lab", "note://folder").unwrap();
    assert_eq!(both, "note://folder/1:\none\n\nnote://folder/2:\ntwo");

    // Its cost is counted as a file's is, and it goes with the message.
    let starter = home.app().default_model().unwrap();
    let draft =
        DraftArgs { attachments: vec![file.id.clone()], model: Some(starter), ..DraftArgs::default() };
    let cost = home.app().draft_count(&draft).unwrap().attachments.remove(0);
    assert!(cost.whole && cost.tokens_whole > 0, "{cost:?}");
    let fake = model(|_| Vec::new());
    home.endpoint(&fake);
    let args = SendArgs {
        text: "What is to be done?".into(),
        model: Some("lab/m".into()),
        attachments: vec![file.id],
        ..SendArgs::default()
    };
    home.follow(&home.app().send(args).unwrap().turn);
    assert!(fake.has_heard("Feed the fox.") && fake.has_heard("today.md"));
}

#[test]
fn what_can_t_be_read_is_refused_in_words() {
    let home = Home::new("resources-refused");
    home.app().settings_set("tool_seconds", &json!(1)).unwrap();
    let server = home.add("lab", &["--no-templates"]);
    assert_eq!(home.app().tool_resources(&server.id).unwrap().templates, Vec::new());
    let refused = |uri: &str| home.app().tool_resource_attach(&server.id, uri).unwrap_err();
    let binary = refused("note://picture");
    assert_eq!(binary.code(), "tools.binary");
    assert!(binary.message().contains("note://picture as binary data (image/png)"), "{binary}");
    assert!(refused("note://nothing").message().contains("Resource not found"));
    assert_eq!(refused("  ").code(), "tools.resource");
    assert_eq!(refused("note://slow").code(), "tools.silent");

    let args = ToolServerUpdateArgs { id: server.id.clone(), enabled: Some(false), ..Default::default() };
    home.app().tool_server_update(args).unwrap();
    assert_eq!(home.app().tool_resources(&server.id).unwrap_err().code(), "tools.off");
    let none = home.add("none", &["--no-resources"]);
    assert_eq!(home.app().tool_resources(&none.id).unwrap().resources, Vec::new());
    let asked = home.app().tool_resource_attach(&none.id, "note://today").unwrap_err();
    assert_eq!(asked.code(), "tools.no_method");
}
