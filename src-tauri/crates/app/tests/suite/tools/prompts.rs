//! Prompts of servers: listed, filled in, refused with a message.

use contract::types::ToolPromptArgs;

use super::home::Home;

#[test]
fn prompts_are_listed_and_filled_in() {
    let home = Home::new("prompts");
    let server = home.add("lab", &["--page", "2"]);
    let offered = home.app().tool_prompts(&server.id).unwrap();
    let names: Vec<&str> = offered.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["greet", "plain", "dialogue", "picture"]);
    assert_eq!((offered[0].title.as_str(), offered[1].title.as_str()), ("Greet somebody", "plain"));
    let wants: Vec<_> = offered[0].arguments.iter().map(|it| (it.name.as_str(), it.required)).collect();
    assert_eq!(wants, [("who", true), ("tone", false)]);

    let ask = |name: &str, given: &[&str]| {
        let given: Vec<String> = given.iter().map(|&it| it.into()).collect();
        let arguments = app::prompt_arguments(&given).unwrap();
        home.app().tool_prompt(&ToolPromptArgs { id: server.id.clone(), name: name.into(), arguments })
    };
    assert_eq!(ask("greet", &["who=Ada"]).unwrap().text, "Greet Ada in a warm tone.");
    assert_eq!(ask("greet", &["who=Ada", "tone=dry"]).unwrap().text, "Greet Ada in a dry tone.");
    assert_eq!(ask("dialogue", &[]).unwrap().text, "User: Ready?\n\nAssistant: Yes.\n\nUser: Then go.");
    assert_eq!(ask("picture", &[]).unwrap_err().code(), "tools.binary");
    let missing = ask("greet", &[]).unwrap_err();
    assert!(missing.message().contains("an argument is missing"), "{missing}");

    let none = home.add("none", &["--no-prompts"]);
    assert_eq!(home.app().tool_prompts(&none.id).unwrap(), Vec::new());
}
