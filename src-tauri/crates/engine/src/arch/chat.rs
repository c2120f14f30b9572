//! Built-in chat templates for files without one: chosen by vocabulary, then by family, since many families share a
//! format.

use crate::template::ChatTemplate;
use crate::tokenizer::Tokenizer;

/// A built-in template by name.
macro_rules! built_in {
    ($name:literal) => {
        ($name, include_str!(concat!("../template/builtin/", $name, ".jinja")))
    };
}

/// Tokens that must exist, and the template they select. The first match wins.
const BY_VOCABULARY: &[(&[&str], (&str, &str))] = &[
    (&["<|start|>", "<|message|>", "<|channel|>"], built_in!("harmony")),
    (&["<|turn>", "<turn|>"], built_in!("gemma4")),
    (&["<start_of_turn>", "<end_of_turn>"], built_in!("gemma")),
    (&["<|start_header_id|>", "<|eot_id|>"], built_in!("llama3")),
    (&["<|im_start|>", "<|im_end|>"], built_in!("chatml")),
    (&["<|user|>", "<|assistant|>", "<|end|>"], built_in!("phi")),
    (&["[INST]", "[/INST]"], built_in!("mistral")),
];

/// Families that mark turns by the text `[INST]` instead of tokens.
const INST_IN_WORDS: &[&str] = &["llama", "mistral"];

/// Vocabulary size of those families. Smaller models only tell stories.
const MIN_INST_VOCABULARY: usize = 32_000;

/// For models that were never trained to chat: they continue the text.
const PLAIN: (&str, &str) = built_in!("plain");

/// Returns the name and template for a model without one.
pub fn built_in_template(architecture: &str, tokenizer: &Tokenizer) -> (&'static str, ChatTemplate) {
    let fits = |tokens: &[&str]| tokens.iter().all(|token| tokenizer.markup_token(token).is_some());
    let by_vocabulary = BY_VOCABULARY.iter().find(|(tokens, _)| fits(tokens)).map(|(_, template)| *template);
    let has_words = INST_IN_WORDS.contains(&architecture)
        && tokenizer.n_vocab() >= MIN_INST_VOCABULARY
        && tokenizer.is_sentencepiece();
    let by_words = has_words.then_some(built_in!("llama2"));
    let (name, source) = by_vocabulary.or(by_words).unwrap_or(PLAIN);
    (name, ChatTemplate::from_source(source).expect("built-in templates compile: a test compiles each"))
}

/// All built-in templates.
#[cfg(test)]
pub const ALL: &[(&str, &str)] = &[
    built_in!("harmony"),
    built_in!("gemma4"),
    built_in!("gemma"),
    built_in!("llama3"),
    built_in!("chatml"),
    built_in!("phi"),
    built_in!("mistral"),
    built_in!("llama2"),
    PLAIN,
];

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::*;
    use crate::template::RenderInput;

    fn render(source: &str, messages: &Value, tools: &Value) -> String {
        let template = ChatTemplate::from_source(source).expect("compiles");
        let kwargs = Map::from_iter([("add_generation_prompt".to_string(), json!(true))]);
        let messages = messages.as_array().expect("a list");
        let (bos_token, eos_token) = ("<s>", "</s>");
        let input = RenderInput { messages, tools, kwargs: &kwargs, bos_token, eos_token, now: None };
        template.render(&input).unwrap_or_else(|error| panic!("{error}\n{source}")).text
    }

    #[test]
    fn templates_render_every_message() {
        let messages = json!([{"role": "system", "content": "RULES"}, {"role": "user", "content": "ASKED"},
            {"role": "assistant", "content": "SAID"}, {"role": "user", "content": "AGAIN"}]);
        for (name, source) in ALL {
            let text = render(source, &messages, &Value::Null);
            let places: Vec<_> = ["RULES", "ASKED", "SAID", "AGAIN"].iter().map(|it| text.find(it)).collect();
            assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{name}: {text}");
        }
    }

    #[test]
    fn templates_with_tools_render_them() {
        let messages = json!([{"role": "user", "content": "Where?"},
            {"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "look", "arguments": {"at": "map"}}}]},
            {"role": "tool", "content": "HERE"}]);
        let tools = json!([{"type": "function", "function": {"name": "look", "description": "Looks.",
            "parameters": {"type": "object", "properties": {"at": {"type": "string"}}}}}]);
        for (name, source) in ALL.iter().filter(|(_, source)| source.contains("tools")) {
            let text = render(source, &messages, &tools);
            let shows = ["Looks.", "look", "\"at\"", "\"map\"", "HERE"].iter().all(|it| text.contains(it));
            assert!(shows, "{name}: {text}");
        }
    }

    #[test]
    fn chatml_renders_as_specified() {
        let messages = json!([{"role": "user", "content": "Hi"}]);
        let (_, source) = ALL.iter().find(|(name, _)| *name == "chatml").expect("ours");
        assert_eq!(
            render(source, &messages, &Value::Null),
            "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
        );
    }
}
