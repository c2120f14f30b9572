//! Prompts that end inside the last message, so that the model continues it instead of beginning a new one.

use contract::protocol::PromptMessage;
use contract::{Error, Result};
use engine::template::RenderedPrompt;
use serde_json::{Map, Value};

/// The variable that asks for it, as in transformers.
pub const CONTINUE_FINAL_MESSAGE: &str = "continue_final_message";

/// Whether the variables of a template ask for it.
pub fn is_wanted(kwargs: &Map<String, Value>) -> bool {
    kwargs.get(CONTINUE_FINAL_MESSAGE) == Some(&Value::Bool(true))
}

/// Sets the variables of the template for what `is_continued` found.
pub fn set(kwargs: &mut Map<String, Value>, begins: Option<bool>, is_continued: bool) {
    match (is_continued, begins) {
        (true, _) => _ = kwargs.insert(CONTINUE_FINAL_MESSAGE.into(), true.into()),
        (false, Some(begins)) => _ = kwargs.insert("add_generation_prompt".into(), begins.into()),
        (false, None) => {}
    }
}

/// Whether an answer to `messages` continues the last of them. `begins` and `continues` are the fields
/// `add_generation_prompt` and `continue_final_message` of a request. Without them a last message of the assistant is
/// continued, as in llama.cpp and Ollama.
///
/// Errors: a sentence about fields or messages that contradict each other.
pub fn is_continued(
    messages: &[PromptMessage],
    begins: Option<bool>,
    continues: Option<bool>,
) -> std::result::Result<bool, String> {
    let n_last = messages.iter().rev().take_while(|message| message.role == "assistant").count();
    let has_text = messages.last().is_some_and(|last| {
        last.role == "assistant" && last.tool_calls.is_empty() && !last.content.trim().is_empty()
    });
    match (begins, continues) {
        (Some(true), Some(true)) => {
            Err("`add_generation_prompt` and `continue_final_message` can't both be true.".into())
        }
        (_, Some(true)) if !has_text => {
            Err("`continue_final_message` needs a last message of the assistant with a text.".into())
        }
        (_, Some(false)) | (Some(true), None) => Ok(false),
        (_, Some(true) | None) if n_last > 1 && has_text => {
            Err("The last two messages are the assistant's; only one can be continued.".into())
        }
        (_, Some(true)) => Ok(true),
        (None | Some(false), None) => Ok(has_text),
    }
}

/// Ends a rendered prompt after the text of its last message.
///
/// Errors: `template.no_continuation`, the template changes or leaves out that text.
pub fn cut_after_last(rendered: RenderedPrompt, messages: &[PromptMessage]) -> Result<RenderedPrompt> {
    let RenderedPrompt { mut text, mut content_spans } = rendered;
    let last = messages.last().map(|message| message.content.trim()).filter(|content| !content.is_empty());
    let end = last.and_then(|content| {
        let spans = content_spans.iter().rev().filter(|span| span.message == Some(messages.len() - 1));
        let found = spans.map(|span| span.range.clone()).find(|range| text[range.clone()].trim() == content);
        found.map(|range| range.end).or_else(|| Some(text.rfind(content)? + content.len()))
    });
    let Some(end) = end else {
        return Err(Error::input(
            "template.no_continuation",
            "This model's chat template leaves out the text that the answer should continue.",
            "Send the conversation without the beginning of the answer, or set another template.",
        ));
    };
    text.truncate(end);
    content_spans.retain(|span| span.range.end <= end);
    Ok(RenderedPrompt { text, content_spans })
}

#[cfg(test)]
mod tests {
    use engine::template::ContentSpan;

    use super::*;

    fn message(role: &str, content: &str) -> PromptMessage {
        PromptMessage { role: role.into(), content: content.into(), ..PromptMessage::default() }
    }

    #[test]
    fn fields_and_messages_decide() {
        let user = message("user", "Say it");
        let text = message("assistant", "Once");
        let empty = message("assistant", " ");
        let check = |messages: &[&PromptMessage], begins, continues, expected: Option<bool>| {
            let messages: Vec<PromptMessage> = messages.iter().copied().cloned().collect();
            assert_eq!(is_continued(&messages, begins, continues).ok(), expected, "{begins:?} {continues:?}");
        };
        check(&[&user], None, None, Some(false));
        check(&[&user, &text], None, None, Some(true));
        check(&[&user, &text], Some(false), None, Some(true));
        check(&[&user, &text], Some(true), None, Some(false));
        check(&[&user, &text], None, Some(false), Some(false));
        check(&[&user, &text], Some(false), Some(true), Some(true));
        check(&[&user, &text], Some(true), Some(true), None);
        check(&[&user], None, Some(true), None);
        check(&[&user, &empty], None, None, Some(false));
        check(&[&user, &empty], None, Some(true), None);
        check(&[&user, &text, &text], None, None, None);
        check(&[&user, &text, &text], None, Some(false), Some(false));
        check(&[], None, None, Some(false));
    }

    #[test]
    fn a_prompt_ends_after_the_last_message() {
        let messages = [message("user", "Say it"), message("assistant", " Once upon ")];
        let text = "<u>Say it</u><a>Once upon</a><a>";
        let span = |message, range| ContentSpan { message: Some(message), range, is_content: true };
        let rendered =
            RenderedPrompt { text: text.into(), content_spans: vec![span(0, 3..9), span(1, 16..25)] };
        let cut = cut_after_last(rendered, &messages).unwrap();
        assert_eq!((cut.text.as_str(), cut.content_spans.len()), ("<u>Say it</u><a>Once upon", 2));
        let without_spans = RenderedPrompt { text: text.into(), content_spans: Vec::new() };
        assert_eq!(cut_after_last(without_spans, &messages).unwrap().text, "<u>Say it</u><a>Once upon");
    }

    #[test]
    fn a_text_that_the_template_leaves_out_is_an_error() {
        for content in ["Once upon", ""] {
            let messages = [message("user", "Say it"), message("assistant", content)];
            let rendered = RenderedPrompt { text: "<u>Say it</u>".into(), content_spans: Vec::new() };
            let error = cut_after_last(rendered, &messages).unwrap_err();
            assert_eq!(error.code(), "template.no_continuation");
        }
    }
}
