//! Writes completions of texts: whole, or as a stream of chunks.

use contract::Error;
use contract::types::{Finish, TokenAlternatives, TokenShare, TurnEventKind, TurnStats};
use serde_json::{Map, Value, json};

use crate::fault::OpenAiFault;
use crate::openai::answer_values::{
    FINGERPRINT, Identity, fault_of_turn, finish_reason, finite_logprob, timings, usage,
};
use crate::openai::turn_set::ChoiceEvent;
use crate::stream::event;

/// Probabilities in the form of completions; `offset` is the place of the first token in the text, in characters.
fn logprobs_value(tokens: &[TokenAlternatives], offset: usize) -> Value {
    let mut at = offset;
    let mut offsets = Vec::with_capacity(tokens.len());
    for token in tokens {
        offsets.push(at);
        at += token.token.text.chars().count();
    }
    let top = |token: &TokenAlternatives| {
        let pair = |share: &TokenShare| (share.text.clone(), json!(finite_logprob(share)));
        token.others.iter().map(pair).collect::<Map<String, Value>>()
    };
    json!({
        "tokens": tokens.iter().map(|token| token.token.text.as_str()).collect::<Vec<_>>(),
        "token_logprobs": tokens.iter().map(|token| finite_logprob(&token.token)).collect::<Vec<_>>(),
        "top_logprobs": tokens.iter().map(top).collect::<Vec<_>>(),
        "text_offset": offsets,
    })
}

/// A run's answer so far.
#[derive(Debug, Clone, Default)]
struct TextChoice {
    /// Begins with the prompt where that is echoed.
    text: String,
    n_echoed: usize,
    logprobs: Vec<TokenAlternatives>,
    /// Of the text that follows.
    pending: Vec<TokenAlternatives>,
    stats: Option<TurnStats>,
}

impl TextChoice {
    fn new(echoed: &str) -> Self {
        Self { text: echoed.into(), n_echoed: echoed.chars().count(), ..Self::default() }
    }

    /// Mean log probability of its tokens.
    fn score(&self) -> f64 {
        let sum: f64 = self.logprobs.iter().map(|token| f64::from(finite_logprob(&token.token))).sum();
        sum / (self.logprobs.len().max(1)) as f64
    }
}

/// Collects answers that are sent as one completion.
pub struct TextBuilder {
    runs: Vec<TextChoice>,
    n_runs: usize,
    has_logprobs: bool,
}

impl TextBuilder {
    /// `echoed` has the text that each prompt's answers begin with; each prompt has `n_runs` runs.
    pub fn new(echoed: Vec<String>, n_runs: usize, logprobs: Option<u32>) -> Self {
        let runs =
            echoed.iter().flat_map(|text| std::iter::repeat_n(TextChoice::new(text), n_runs)).collect();
        Self { runs, n_runs, has_logprobs: logprobs.is_some() }
    }

    pub fn take(&mut self, event: ChoiceEvent) -> Result<(), OpenAiFault> {
        let run = &mut self.runs[event.choice];
        match event.kind {
            TurnEventKind::Queued { .. }
            | TurnEventKind::Loading { .. }
            | TurnEventKind::Prefill { .. }
            | TurnEventKind::Compacting { .. }
            | TurnEventKind::Compacted { .. }
            | TurnEventKind::ToolCall { .. }
            | TurnEventKind::Notice { .. } => {}
            TurnEventKind::Logprobs { tokens } => run.pending.extend(tokens),
            // A completion is all that the model writes.
            TurnEventKind::Text { text, .. } | TurnEventKind::Reasoning { text, .. } => {
                if !text.is_empty() {
                    run.logprobs.append(&mut run.pending);
                }
                run.text.push_str(&text);
            }
            TurnEventKind::Revised { .. } => {}
            TurnEventKind::Done { stats } => run.stats = Some(stats),
            TurnEventKind::Failed { error } => return Err(fault_of_turn(&error)),
        }
        Ok(())
    }

    /// The completion with the `n_choices` likeliest runs of each prompt.
    ///
    /// Errors: a run hasn't ended.
    pub fn into_value(self, identity: &Identity, n_choices: usize) -> Result<Value, OpenAiFault> {
        let stats: Option<Vec<&TurnStats>> = self.runs.iter().map(|run| run.stats.as_ref()).collect();
        let stats = stats.filter(|stats| !stats.is_empty());
        let stats = stats.ok_or_else(|| OpenAiFault::from(Error::bug("an answer ended without an end")))?;
        let mut choices = Vec::new();
        for runs in self.runs.chunks(self.n_runs) {
            let mut best: Vec<&TextChoice> = runs.iter().collect();
            if runs.len() > n_choices {
                best.sort_by(|a, b| b.score().total_cmp(&a.score()));
            }
            for run in best.into_iter().take(n_choices) {
                let logprobs = match self.has_logprobs {
                    true => logprobs_value(&run.logprobs, run.n_echoed),
                    false => Value::Null,
                };
                let finish = run.stats.as_ref().map(|stats| reason(stats.finish));
                choices.push(json!({
                    "index": choices.len(), "text": run.text, "logprobs": logprobs, "finish_reason": finish,
                }));
            }
        }
        let Identity { id, created, model } = identity;
        Ok(json!({
            "id": id, "object": "text_completion", "created": created, "model": model,
            "system_fingerprint": FINGERPRINT, "choices": choices, "usage": usage(&stats, self.n_runs),
            "timings": timings(stats[0]),
        }))
    }
}

/// Calls of tools mean nothing here.
fn reason(finish: Finish) -> &'static str {
    match finish_reason(finish) {
        "tool_calls" => "stop",
        reason => reason,
    }
}

/// Writes a stream: the echoed prompts, the chunks, one `finish_reason` for each choice, the usage if requested, and
/// `[DONE]`.
pub struct TextStreamWriter {
    identity: Identity,
    choices: Vec<TextChoice>,
    n_per_prompt: usize,
    has_logprobs: bool,
    include_usage: bool,
    has_failed: bool,
}

impl TextStreamWriter {
    pub fn new(
        identity: Identity,
        echoed: Vec<String>,
        n_choices: usize,
        logprobs: Option<u32>,
        include_usage: bool,
    ) -> Self {
        let TextBuilder { runs, n_runs, has_logprobs } = TextBuilder::new(echoed, n_choices, logprobs);
        Self { identity, choices: runs, n_per_prompt: n_runs, has_logprobs, include_usage, has_failed: false }
    }

    /// Writes the echoed prompts.
    pub fn begin(&mut self) -> String {
        let echoed = |(index, choice): (usize, &TextChoice)| {
            (!choice.text.is_empty()).then(|| self.chunk(index, &choice.text, &Value::Null, None))
        };
        self.choices.iter().enumerate().filter_map(echoed).collect()
    }

    pub fn write(&mut self, ChoiceEvent { choice: index, kind }: ChoiceEvent) -> String {
        let choice = &mut self.choices[index];
        match kind {
            TurnEventKind::Queued { .. }
            | TurnEventKind::Loading { .. }
            | TurnEventKind::Prefill { .. }
            | TurnEventKind::Compacting { .. }
            | TurnEventKind::Compacted { .. }
            | TurnEventKind::ToolCall { .. }
            | TurnEventKind::Revised { .. }
            | TurnEventKind::Notice { .. } => String::new(),
            TurnEventKind::Logprobs { tokens } => {
                choice.pending.extend(tokens);
                String::new()
            }
            TurnEventKind::Text { text, .. } | TurnEventKind::Reasoning { text, .. } if text.is_empty() => {
                String::new()
            }
            TurnEventKind::Text { text, .. } | TurnEventKind::Reasoning { text, .. } => {
                let offset = choice.n_echoed;
                choice.n_echoed += text.chars().count();
                let tokens = std::mem::take(&mut choice.pending);
                let logprobs = match self.has_logprobs {
                    true => logprobs_value(&tokens, offset),
                    false => Value::Null,
                };
                self.chunk(index, &text, &logprobs, None)
            }
            TurnEventKind::Done { stats } => self.done(index, stats),
            TurnEventKind::Failed { error } => {
                self.has_failed = true;
                event(&fault_of_turn(&error).body())
            }
        }
    }

    /// Writes `[DONE]`; a failed stream closes without it, since clients have the error.
    pub fn end(&self) -> String {
        if self.has_failed { String::new() } else { "data: [DONE]\n\n".into() }
    }

    fn done(&mut self, index: usize, stats: TurnStats) -> String {
        let mut text = self.chunk(index, "", &Value::Null, Some(reason(stats.finish)));
        self.choices[index].stats = Some(stats);
        let all: Vec<&TurnStats> = self.choices.iter().filter_map(|choice| choice.stats.as_ref()).collect();
        if all.len() == self.choices.len() && self.include_usage {
            let mut last = self.envelope(&json!([]), &usage(&all, self.n_per_prompt));
            last["timings"] = timings(all[0]);
            text.push_str(&event(&last));
        }
        text
    }

    fn chunk(&self, index: usize, text: &str, logprobs: &Value, finish: Option<&str>) -> String {
        let choice = json!({ "index": index, "text": text, "logprobs": logprobs, "finish_reason": finish });
        event(&self.envelope(&json!([choice]), &Value::Null))
    }

    fn envelope(&self, choices: &Value, usage: &Value) -> Value {
        let Identity { id, created, model } = &self.identity;
        let mut chunk = json!({
            "id": id, "object": "text_completion", "created": created, "model": model,
            "system_fingerprint": FINGERPRINT, "choices": choices,
        });
        if self.include_usage {
            chunk["usage"] = usage.clone();
        }
        chunk
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openai::answer_values::tests::stats;

    fn identity() -> Identity {
        Identity { id: "x".into(), created: 1, model: "m".into() }
    }

    fn logprobs(text: &str, logprob: f32) -> TurnEventKind {
        let share = TokenShare { id: 1, text: text.into(), probability: 0.5, logprob, bytes: Vec::new() };
        TurnEventKind::Logprobs {
            tokens: vec![TokenAlternatives { token: share.clone(), others: vec![share] }],
        }
    }

    fn text(text: &str) -> TurnEventKind {
        TurnEventKind::Text { text: text.into(), ids: Vec::new() }
    }

    fn done() -> TurnEventKind {
        TurnEventKind::Done { stats: stats(Finish::Length) }
    }

    #[test]
    fn the_likeliest_run_is_chosen() {
        let mut whole = TextBuilder::new(vec!["Ä".into()], 2, Some(1));
        for (choice, word, logprob) in [(0, "bad", -2.0), (1, "good", -1.0)] {
            for kind in [logprobs(word, logprob), text(word), logprobs("</s>", -9.0), done()] {
                whole.take(ChoiceEvent { choice, kind }).unwrap();
            }
        }
        let value = whole.into_value(&identity(), 1).unwrap();
        assert_eq!(value["choices"].as_array().map(Vec::len), Some(1));
        let choice = &value["choices"][0];
        assert_eq!((&choice["text"], &choice["finish_reason"]), (&json!("Ägood"), &json!("length")));
        let expected = json!({
            "tokens": ["good"], "token_logprobs": [-1.0], "top_logprobs": [{ "good": -1.0 }], "text_offset": [1],
        });
        assert_eq!(choice["logprobs"], expected);
        assert_eq!(value["usage"]["completion_tokens"], 4);
    }

    #[test]
    fn streams_have_the_same_text() {
        let mut writer = TextStreamWriter::new(identity(), vec!["P".into(), "Q".into()], 1, Some(0), true);
        let mut all = writer.begin();
        for choice in [1, 0] {
            for kind in [logprobs("ab", -1.0), text("ab"), logprobs("c", -1.0), text("c"), done()] {
                all.push_str(&writer.write(ChoiceEvent { choice, kind }));
            }
        }
        let data = all.split("\n\n").filter_map(|it| it.strip_prefix("data: "));
        let chunks: Vec<Value> = data.map(|it| serde_json::from_str(it).unwrap()).collect();
        let text_of = |index: u64| -> String {
            let of = |chunk: &&Value| chunk["choices"][0]["index"] == index;
            chunks.iter().filter(of).filter_map(|chunk| chunk["choices"][0]["text"].as_str()).collect()
        };
        assert_eq!((text_of(0), text_of(1)), ("Pabc".into(), "Qabc".into()));
        let offsets: Vec<_> = chunks
            .iter()
            .map(|it| it["choices"][0]["logprobs"]["text_offset"].clone())
            .filter(|it| !it.is_null())
            .collect();
        assert_eq!(offsets, [json!([1]), json!([3]), json!([1]), json!([3])]);
        assert_eq!(chunks.last().unwrap()["usage"]["prompt_tokens"], 6);
        assert!(writer.end().contains("[DONE]"));
    }
}
