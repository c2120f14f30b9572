//! Training data as people have it: chats as JSONL, pairs as CSV, or plain text.
//!
//! Every item keeps the number of its line, and one that cannot be used never discards the others.

use serde_json::{Value, json};

use super::csv;

/// One item of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct DataItem {
    /// Line where it starts, from 1.
    pub line: usize,
    /// What it holds, or why it cannot be used.
    pub content: std::result::Result<DataContent, String>,
}

/// What is learned from.
#[derive(Debug, Clone, PartialEq)]
pub enum DataContent {
    /// Messages as templates expect them; answers of the assistant are learned.
    Chat(Vec<Value>),
    /// Text, all of which is learned.
    Text(String),
}

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataFormat {
    /// A JSON object per line: `messages`, `conversations`, `prompt` and `completion`, or `text`.
    Jsonl,
    /// Two columns: prompt and answer.
    Csv,
    /// Plain text.
    Text,
}

impl DataFormat {
    /// Returns the format of a file with this name.
    pub fn of_name(name: &str) -> Self {
        let lower = name.to_ascii_lowercase();
        match lower.rsplit('.').next() {
            Some("jsonl" | "ndjson" | "json") => Self::Jsonl,
            Some("csv" | "tsv") => Self::Csv,
            _ => Self::Text,
        }
    }
}

/// Names of the first column, of which any marks a header.
const PROMPTS: [&str; 6] = ["prompt", "question", "instruction", "input", "user", "query"];
/// Names of the second column.
const ANSWERS: [&str; 7] = ["answer", "completion", "response", "output", "assistant", "reply", "chosen"];

/// 0 in an answer that the model reads and does not learn, as in OpenAI's format for fine-tuning.
const WEIGHT: &str = "weight";

/// Returns whether a message is an answer to learn.
pub fn is_learned_answer(message: &Value) -> bool {
    let has_text = || message["content"].as_str().is_some_and(|text| !text.trim().is_empty());
    message["role"] == "assistant" && message[WEIGHT] != json!(0) && has_text()
}

/// Returns the items of a file, in order.
pub fn parse(text: &str, format: DataFormat) -> Vec<DataItem> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match format {
        DataFormat::Jsonl => jsonl(text),
        DataFormat::Csv => pairs(text),
        DataFormat::Text => match text.trim().is_empty() {
            true => Vec::new(),
            false => vec![DataItem { line: 1, content: Ok(DataContent::Text(text.to_owned())) }],
        },
    }
}

fn jsonl(text: &str) -> Vec<DataItem> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let item = |(i, line): (usize, &str)| {
        let content = serde_json::from_str(line).map_err(|error| format!("it is not JSON: {error}"));
        DataItem { line: i + 1, content: content.and_then(|value: Value| object(&value)) }
    };
    lines.map(item).collect()
}

fn object(value: &Value) -> std::result::Result<DataContent, String> {
    if let Some(messages) = value["messages"].as_array() {
        return chat(messages.iter().map(|message| (&message["role"], &message["content"], message)));
    }
    if let Some(turns) = value["conversations"].as_array() {
        return chat(turns.iter().map(|turn| (&turn["from"], &turn["value"], turn)));
    }
    if let Some(text) = value["text"].as_str() {
        return Ok(DataContent::Text(text.to_owned()));
    }
    let first = |names: &[&str]| names.iter().find_map(|name| value[*name].as_str()).map(str::to_owned);
    match (first(&PROMPTS), first(&ANSWERS)) {
        (Some(prompt), Some(answer)) => Ok(pair(&prompt, &answer)),
        _ => Err("it has no messages, conversations, text, or prompt and answer".into()),
    }
}

fn pair(prompt: &str, answer: &str) -> DataContent {
    let message = |role: &str, content: &str| json!({"role": role, "content": content});
    DataContent::Chat(vec![message("user", prompt), message("assistant", answer)])
}

/// Checks messages and names their roles as templates do. Further fields, such as thoughts, are kept.
fn chat<'a>(
    turns: impl Iterator<Item = (&'a Value, &'a Value, &'a Value)>,
) -> std::result::Result<DataContent, String> {
    let mut messages = Vec::new();
    for (i, (role, content, whole)) in turns.enumerate() {
        let at = i + 1;
        let role = match role.as_str() {
            Some("human" | "user") => "user",
            Some("gpt" | "assistant" | "model" | "bot") => "assistant",
            Some("system" | "developer") => "system",
            Some("tool" | "function" | "observation") => "tool",
            Some(other) => return Err(format!("message {at} has the unknown role \"{other}\"")),
            None => return Err(format!("message {at} has no role")),
        };
        let Some(content) = content.as_str() else {
            return Err(format!("message {at} has no text"));
        };
        let mut message = json!({"role": role, "content": content});
        match whole.get("weight").map(|weight| (weight.as_f64(), weight)) {
            None | Some((Some(1.0), _)) => {}
            Some((Some(0.0), _)) => message[WEIGHT] = json!(0),
            Some((_, other)) => return Err(format!("message {at} has the weight {other}, not 0 or 1")),
        }
        for field in ["reasoning_content", "name"] {
            if let Some(text) = whole[field].as_str() {
                message[field] = json!(text);
            }
        }
        messages.push(message);
    }
    Ok(DataContent::Chat(messages))
}

fn pairs(text: &str) -> Vec<DataItem> {
    let mut records = csv::records(text);
    let names =
        |fields: &[String]| fields.iter().map(|name| name.trim().to_ascii_lowercase()).collect::<Vec<_>>();
    let find =
        |header: &[String], known: &[&str]| header.iter().position(|name| known.contains(&name.as_str()));
    let header = records.first().map(|record| names(&record.fields)).unwrap_or_default();
    let (mut prompt, mut answer) = (0, 1);
    if let (Some(first), Some(second)) = (find(&header, &PROMPTS), find(&header, &ANSWERS)) {
        (prompt, answer) = (first, second);
        records.remove(0);
    }
    let item = |record: csv::Record| {
        let content = match (record.fields.get(prompt), record.fields.get(answer)) {
            (Some(prompt), Some(answer)) => Ok(pair(prompt, answer)),
            _ => Err(format!("it has {} of at least two columns", record.fields.len())),
        };
        DataItem { line: record.line, content }
    };
    records.into_iter().map(item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chat_of(pairs: &[(&str, &str)]) -> DataContent {
        let message = |(role, content): &(&str, &str)| json!({"role": role, "content": content});
        DataContent::Chat(pairs.iter().map(message).collect())
    }

    #[test]
    fn lines_of_json() {
        let text = concat!(
            r#"{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}"#,
            "\n\n",
            r#"{"conversations":[{"from":"system","value":"s"},"#,
            r#"{"from":"human","value":"a"},{"from":"gpt","value":"b"}]}"#,
            "\n{\"text\":\"plain\"}\n{\"prompt\":\"p\",\"completion\":\"c\"}\nnot json\n",
            r#"{"messages":[{"role":"wizard","content":"a"}]}"#,
            "\n",
            r#"{"messages":[{"role":"user","content":5}]}"#,
            "\n{}\n",
            r#"{"messages":[{"role":"assistant","content":"a","weight":0.5}]}"#,
        );
        let items = parse(text, DataFormat::Jsonl);
        let lines: Vec<usize> = items.iter().map(|item| item.line).collect();
        assert_eq!(lines, [1, 3, 4, 5, 6, 7, 8, 9, 10]);
        let good: Vec<&DataContent> = items.iter().filter_map(|item| item.content.as_ref().ok()).collect();
        assert_eq!(*good[0], chat_of(&[("user", "a"), ("assistant", "b")]));
        assert_eq!(*good[1], chat_of(&[("system", "s"), ("user", "a"), ("assistant", "b")]));
        assert_eq!(*good[2], DataContent::Text("plain".into()));
        assert_eq!(*good[3], chat_of(&[("user", "p"), ("assistant", "c")]));
        let why: Vec<&String> = items.iter().filter_map(|item| item.content.as_ref().err()).collect();
        for (found, part) in
            why.iter().zip(["not JSON", "wizard", "message 1 has no text", "no messages", "weight 0.5"])
        {
            assert!(found.contains(part), "{found}");
        }
    }

    #[test]
    fn answers_of_weight_0_are_not_learned() {
        let line = |weight: &str| {
            let text = format!(r#"{{"messages":[{{"role":"assistant","content":"a"{weight}}}]}}"#);
            let Ok(DataContent::Chat(messages)) = parse(&text, DataFormat::Jsonl).remove(0).content else {
                panic!("{text}")
            };
            is_learned_answer(&messages[0])
        };
        assert!(line("") && line(r#","weight":1"#));
        assert!(!line(r#","weight":0"#));
        assert!(!is_learned_answer(&json!({"role": "user", "content": "a"})));
        assert!(!is_learned_answer(&json!({"role": "assistant", "content": " "})));
    }

    #[test]
    fn pairs_with_and_without_a_header() {
        let one = chat_of(&[("user", "Hi, you"), ("assistant", "Hello\nthere")]);
        for text in [
            "\"Hi, you\",\"Hello\nthere\"\nalone\n",
            "id,answer,question\n1,\"Hello\nthere\",\"Hi, you\"\n2\n",
        ] {
            let items = parse(text, DataFormat::Csv);
            assert_eq!(items.len(), 2, "{text}");
            assert_eq!(items[0].content, Ok(one.clone()), "{text}");
            assert!(items[1].content.is_err(), "{text}");
        }
        assert_eq!(
            parse("a;b", DataFormat::Csv)[0].content,
            Ok(chat_of(&[("user", "a"), ("assistant", "b")]))
        );
    }

    #[test]
    fn formats_by_name() {
        assert_eq!(DataFormat::of_name("a/B.JSONL"), DataFormat::Jsonl);
        assert_eq!(DataFormat::of_name("x.csv"), DataFormat::Csv);
        assert_eq!(DataFormat::of_name("notes"), DataFormat::Text);
    }
}
