//! The context that a request asks for: which messages of a chat go into it, and how long its answer may be.

use app::{App, GenerateArgs};
use contract::protocol::{Prompt, PromptMessage, PromptPart, SpecialTokens};
use contract::{Error, ErrorKind, Result};

use crate::request_fields::{RequestFields, invalid};

/// Shortest context that can be asked for, in tokens.
const MIN_CONTEXT: usize = 4;

/// What a request says about the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextWindow {
    /// `num_ctx`, in tokens. None: the model's.
    pub n_tokens: Option<u32>,
    /// The earliest messages are left out of a chat that is too long.
    pub truncates: bool,
}

impl ContextWindow {
    pub fn parse(fields: RequestFields, options: Option<RequestFields>) -> Result<Self> {
        let n_tokens = options.map(|options| options.count("num_ctx")).transpose()?.flatten();
        if n_tokens.is_some_and(|n| n < MIN_CONTEXT) {
            return Err(invalid(format!("`num_ctx` must be at least {MIN_CONTEXT}.")));
        }
        Ok(Self {
            n_tokens: n_tokens.map(|n| u32::try_from(n).unwrap_or(u32::MAX)),
            truncates: fields.boolean("truncate")?.unwrap_or(true),
        })
    }

    /// Fits a prompt and its answer into the context. Counts the tokens of the prompt for that.
    ///
    /// Errors: `request.context_full`.
    pub fn fit(self, app: &App, model: &str, args: GenerateArgs) -> Result<GenerateArgs> {
        match args.prompt {
            Prompt::Chat(ref messages) => {
                let count = |messages: Vec<PromptMessage>| {
                    let args = GenerateArgs { prompt: Prompt::Chat(messages), ..args.clone() };
                    app.prompt_count(Some(model.to_owned()), args)
                };
                let counted = count(messages.clone())?;
                let most = self.n_tokens.map_or(counted.context_limit, |n| n.min(counted.context_limit));
                if counted.tokens < most {
                    return Ok(self.with_room(args, most - counted.tokens));
                }
                let count = |messages: Vec<PromptMessage>| Ok(count(messages)?.tokens);
                let fitting = if self.truncates { newest(messages, most, count)? } else { None };
                let Some((messages, n_tokens)) = fitting else { return Err(too_long(counted.tokens, most)) };
                Ok(self.with_room(GenerateArgs { prompt: Prompt::Chat(messages), ..args }, most - n_tokens))
            }
            Prompt::Raw(ref text) => {
                let parts = vec![PromptPart::Text(text.clone())];
                let n_tokens = app.tokenize(model, parts, SpecialTokens::Before, true)?.len();
                self.fit_counted(args, n_tokens)
            }
            Prompt::Ids(ref ids) => {
                let n_tokens = ids.len();
                self.fit_counted(args, n_tokens)
            }
        }
    }

    fn fit_counted(self, args: GenerateArgs, n_tokens: usize) -> Result<GenerateArgs> {
        let Some(most) = self.n_tokens else { return Ok(args) };
        let n_tokens = u32::try_from(n_tokens).unwrap_or(u32::MAX);
        match most.checked_sub(n_tokens).filter(|room| *room > 0) {
            Some(room) => Ok(self.with_room(args, room)),
            None => Err(too_long(n_tokens, most)),
        }
    }

    /// Bounds the answer where the request bounds the context.
    fn with_room(self, args: GenerateArgs, room: u32) -> GenerateArgs {
        if self.n_tokens.is_none() {
            return args;
        }
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        GenerateArgs { max_tokens: Some(args.max_tokens.map_or(room, |n| n.min(room))), ..args }
    }
}

/// The system messages and the newest turns that have fewer than `most` tokens, and how many they have. A turn begins with
/// a message of the user; the last one is always there. None: it alone is too long.
fn newest(
    messages: &[PromptMessage],
    most: u32,
    count: impl Fn(Vec<PromptMessage>) -> Result<u32>,
) -> Result<Option<(Vec<PromptMessage>, u32)>> {
    let begins = messages.iter().enumerate().filter(|(_, message)| message.role == "user").map(|(at, _)| at);
    let begins: Vec<usize> = begins.skip(1).collect();
    let from = |at: usize| {
        let is_kept = |(index, message): &(usize, &PromptMessage)| *index >= at || message.role == "system";
        messages.iter().enumerate().filter(is_kept).map(|(_, message)| message.clone()).collect::<Vec<_>>()
    };
    let (mut low, mut high, mut best) = (0, begins.len(), None);
    while low < high {
        let middle = low.midpoint(high);
        let kept = from(begins[middle]);
        let n_tokens = count(kept.clone())?;
        if n_tokens < most {
            (high, best) = (middle, Some((kept, n_tokens)));
        } else {
            low = middle + 1;
        }
    }
    Ok(best)
}

fn too_long(n_tokens: u32, most: u32) -> Error {
    let message = format!("The prompt needs {n_tokens} tokens, but the context of this request has {most}.");
    let remedy = "Shorten it, or raise `num_ctx`.";
    Error::new(ErrorKind::Limit, "request.context_full", message, remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(role: &str, content: &str) -> PromptMessage {
        PromptMessage { role: role.into(), content: content.into(), ..PromptMessage::default() }
    }

    #[test]
    fn the_newest_turns_that_fit_are_kept() {
        let messages = [
            message("system", "s"),
            message("user", "aaaa"),
            message("assistant", "bbbb"),
            message("user", "cccc"),
            message("assistant", "dddd"),
            message("user", "ee"),
        ];
        let count = |messages: Vec<PromptMessage>| {
            Ok(u32::try_from(messages.iter().map(|it| it.content.len()).sum::<usize>()).unwrap())
        };
        for (most, expected) in
            [(12, Some("s cccc dddd ee")), (11, Some("s ee")), (4, Some("s ee")), (3, None)]
        {
            let kept = newest(&messages, most, count).unwrap();
            let kept =
                kept.map(|(kept, _)| kept.into_iter().map(|it| it.content).collect::<Vec<_>>().join(" "));
            assert_eq!(kept.as_deref(), expected, "{most}");
        }
        assert_eq!(newest(&messages[..2], 4, count).unwrap(), None, "the last turn is never left out");
    }
}
