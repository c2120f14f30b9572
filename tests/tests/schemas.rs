//! JSON schemas of the reference: every valid instance is accepted, every invalid one refused, each in several
//! spellings.

use engine::constraint::{TextChecker, TextForm};
use inglenook_tests::reference_dir;
use serde_json::{Value, json};
use test_support::{Missing, skip};

use crate::cli::Home;

/// What is wrong with a schema of the reference, by its id.
fn faults_of(line: &Value) -> Vec<String> {
    let checker = match TextChecker::new(&TextForm::JsonSchema(line["schema"].clone())) {
        Ok(checker) => checker,
        Err(error) => return vec![format!("{}: {error}", line["id"])],
    };
    let mut faults = Vec::new();
    for (key, is_valid) in [("valid", true), ("invalid", false)] {
        for instance in line[key].as_array().expect("a list") {
            let spaced = serde_json::to_string_pretty(instance).expect("JSON");
            for text in [instance.to_string(), spaced] {
                match checker.accepts(&text) {
                    Ok(accepted) if accepted == is_valid => {}
                    Ok(_) => faults.push(format!("{}: {key} {text}", line["id"])),
                    Err(error) => faults.push(format!("{}: {error} at {text}", line["id"])),
                }
            }
        }
    }
    faults
}

#[test]
fn valid_instances_are_accepted_and_invalid_ones_refused() {
    let path = reference_dir().join("schemas/schemas.jsonl");
    let Ok(text) = std::fs::read_to_string(&path) else {
        skip!(Missing::Reference, "no {}", path.display());
    };
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(lines.len() >= 400, "{}", lines.len());
    let faults: Vec<String> = lines.iter().flat_map(faults_of).collect();
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn the_terminal_tells_which_texts_a_schema_accepts() {
    let home = Home::new();
    let (schema, lines) = (home.0.join("schema.json"), home.0.join("lines.jsonl"));
    let path = |path: &std::path::Path| path.to_str().expect("a Unicode path").to_owned();
    let properties = json!({ "n": { "type": "integer", "minimum": 3 }, "tags": { "uniqueItems": true } });
    let written = json!({ "type": "object", "properties": properties, "required": ["n"] });
    std::fs::write(&schema, written.to_string()).expect("the folder can be written");
    let instances =
        "{\"n\":3}\n\n {\"n\": 2}\n{\"n\": 7, \"tags\": [1, 2]}\n{\"n\": 7, \"tags\": [1, 1]}\nnot JSON\n";
    std::fs::write(&lines, instances).expect("the folder can be written");
    let (schema, lines) = (path(&schema), path(&lines));
    let accepted = home.lines(&["schema", "--schema", &schema, "--jsonl", &lines]);
    let accepted: Vec<&Value> = accepted.iter().map(|line| &line["accepted"]).collect();
    assert_eq!(accepted, [true, false, true, false, false]);
    std::fs::write(&schema, "{\"type\": \"strange\"}").expect("the folder can be written");
    let (code, error) = home.error(&["schema", "--schema", &schema, "--jsonl", &lines]);
    assert_eq!((code, &error["code"]), (3, &json!("constraint.invalid")));
    assert!(error["message"].as_str().is_some_and(|message| message.contains("strange")), "{error}");
}
