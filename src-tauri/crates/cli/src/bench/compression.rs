//! `nook bench --test compression`: recall and perplexity of each compaction strategy at ratios 2, 4 and 8.
//!
//! Recall: the model picks one of eight facts from early messages, by the probability that the conversation adds.
//! Perplexity: scores the last answers, written with the full conversation in context. No strategy removes these.
//! Both use the production strategies, the model's own template and its own summaries.

use compaction::{
    ASK, ASKED, CompactedView, Next, PromptDraft, Strategy, SummaryRequest, TokenBudget, Transcript,
    TurnSummary,
};
use contract::Error;
use contract::ErrorKind;
use contract::Result;
use engine::model::OBSERVATION_TOKENS;
use engine::template::RenderInput;
use engine::{AttentionEviction, Chunk, LogitsSelection, Model, SequenceId, TokenId};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::speed::Bench;
use crate::out;

/// Context in tokens; the uncompressed baseline needs the whole conversation.
pub const CONTEXT_TOKENS: usize = 1024;

const RATIOS: [usize; 3] = [2, 4, 8];

/// Recall of the whole conversation, below which a shorter one can lose nothing: seven of the eight facts.
const MIN_RECALL: f64 = 0.875;

/// Facts stated early and queried at the end.
const FACTS: [(&str, &str); 8] = [
    ("fox", "red"),
    ("whale", "blue"),
    ("frog", "green"),
    ("swan", "white"),
    ("raven", "black"),
    ("lion", "yellow"),
    ("mouse", "grey"),
    ("bear", "brown"),
];

/// Questions between the facts; the model writes the answers.
const QUESTIONS: [&str; 10] = [
    "How do I add a model?",
    "Is it private?",
    "How do I delete a chat?",
    "What is a context?",
    "How do I change the theme?",
    "Can I use it without the internet?",
    "How do I stop an answer?",
    "What is a token?",
    "How do I start a new chat?",
    "Where are my chats kept?",
];

/// Length limit of these answers.
const MAX_ANSWER_TOKENS: usize = 40;

/// Number of final turns whose answers are scored.
const N_SCORED_TURNS: usize = 3;

#[derive(Debug, Serialize)]
struct CompressionRow {
    test: &'static str,
    strategy: &'static str,
    /// Compression factor of the conversation; 1 is uncompressed.
    ratio: usize,
    /// Mean prompt length in tokens.
    tokens: usize,
    /// Share of correctly chosen facts, from 0 to 1.
    recall: f64,
    perplexity: f64,
}

/// Role and text of a message.
type RoleMessage = (&'static str, String);

/// How the conversation is compressed for one measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CompressionCase {
    /// `None` leaves the conversation uncompressed.
    strategy: Option<Strategy>,
    ratio: usize,
}

pub fn compression(bench: &mut Bench) -> Result<()> {
    let Bench { model, json, .. } = bench;
    let mut subject = CompressionSubject {
        model,
        summary_texts: Vec::new(),
        transcript: Transcript::default(),
        answers: Vec::new(),
    };
    subject.converse()?;
    let full = CompressionCase { strategy: None, ratio: 1 };
    let of = |strategy| RATIOS.map(|ratio| CompressionCase { strategy: Some(strategy), ratio });
    let cases = std::iter::once(full).chain(Strategy::ALL.into_iter().flat_map(of));
    let before = subject.priors()?;
    for case in cases {
        let row = subject.measure(case, &before)?;
        if case.strategy.is_none() && row.recall < MIN_RECALL {
            return Err(no_recall(row.recall));
        }
        match *json {
            true => out::json(&row),
            false => out::line(&format!(
                "{:<10} {}x  {:>5} tokens  recall {:>5.1} %  perplexity {:.3}",
                row.strategy,
                row.ratio,
                row.tokens,
                row.recall * 100.0,
                row.perplexity
            )),
        }
    }
    Ok(())
}

struct CompressionSubject<'a> {
    model: &'a mut Model,
    /// Summaries of the current conversation.
    summary_texts: Vec<String>,
    transcript: Transcript,
    /// The model's answers to the questions so far.
    answers: Vec<String>,
}

impl CompressionSubject<'_> {
    fn measure(&mut self, case: CompressionCase, before: &[Vec<f64>]) -> Result<CompressionRow> {
        let (mut n_right, mut n_tokens, mut n_prompts) = (0, 0, 0);
        let seq = self.model.new_sequence()?;
        self.start_conversation(QUESTIONS.len());
        let turns = self.conversation(QUESTIONS.len());
        for (at, (animal, _)) in FACTS.iter().enumerate() {
            let prompt = self.prompt(&turns, &format!("Which colour is the {animal}?"), case)?;
            let prompt = self.with_answer_start(prompt, &format!("The {animal} is"))?;
            let (held, n) = self.read(seq, &prompt, case)?;
            (n_tokens, n_prompts) = (n_tokens + n, n_prompts + 1);
            let mut best = (f64::NEG_INFINITY, 0);
            for (candidate, (_, colour)) in FACTS.iter().enumerate() {
                let gain = self.log_p(seq, &held, colour)? - before[at][candidate];
                best = if gain > best.0 { (gain, candidate) } else { best };
            }
            n_right += usize::from(best.1 == at);
        }
        let (mut sum, mut n_scored) = (0.0, 0);
        for (at, question) in QUESTIONS.iter().enumerate().skip(QUESTIONS.len() - N_SCORED_TURNS) {
            self.start_conversation(at);
            let prompt = self.prompt(&self.conversation(at), question, case)?;
            let (held, n) = self.read(seq, &prompt, case)?;
            (n_tokens, n_prompts) = (n_tokens + n, n_prompts + 1);
            let answer = self.encode(&self.answers[at])?;
            n_scored += answer.len();
            sum += self.log_p_of(seq, &held, &answer)?;
        }
        self.model.free(seq);
        Ok(CompressionRow {
            test: "compression",
            strategy: case.strategy.map_or("none", Strategy::name),
            ratio: case.ratio,
            tokens: n_tokens / n_prompts,
            recall: n_right as f64 / FACTS.len() as f64,
            perplexity: (-sum / n_scored as f64).exp(),
        })
    }

    /// Log-probability of each value after each question alone. Recall counts only what the conversation adds to it.
    fn priors(&mut self) -> Result<Vec<Vec<f64>>> {
        let full = CompressionCase { strategy: None, ratio: 1 };
        let seq = self.model.new_sequence()?;
        let mut priors = Vec::new();
        for (animal, _) in FACTS {
            let prompt = self.prompt(&[], &format!("Which colour is the {animal}?"), full)?;
            let prompt = self.with_answer_start(prompt, &format!("The {animal} is"))?;
            let (held, _) = self.read(seq, &prompt, full)?;
            priors
                .push(FACTS.iter().map(|(_, colour)| self.log_p(seq, &held, colour)).collect::<Result<_>>()?);
        }
        self.model.free(seq);
        Ok(priors)
    }

    /// Lets the model answer every question with the full history in context.
    fn converse(&mut self) -> Result<()> {
        for (at, question) in QUESTIONS.iter().enumerate() {
            let prompt = self.render(&chat_messages(&self.conversation(at), &[], question))?;
            let answer = self.write(prompt, MAX_ANSWER_TOKENS)?;
            self.answers.push(answer);
        }
        Ok(())
    }

    /// The turns before question `n`: facts and other questions alternate at first.
    fn conversation(&self, n: usize) -> Vec<[RoleMessage; 2]> {
        let turn = |question: String, answer: String| [("user", question), ("assistant", answer)];
        let mut turns = Vec::new();
        for (at, question) in QUESTIONS.iter().enumerate().take(n) {
            if let Some((animal, colour)) = FACTS.get(at) {
                let fact = format!("The {animal} is {colour}.");
                turns.push(turn(format!("Remember: {fact}"), fact));
            }
            turns.push(turn((*question).into(), self.answers[at].clone()));
        }
        turns
    }

    /// Starts a conversation without summaries.
    fn start_conversation(&mut self, n: usize) {
        self.summary_texts.clear();
        self.transcript = Transcript { n_turns: self.conversation(n).len() + 1, ..Transcript::default() };
    }

    /// Builds the prompt of a question with the strategy applied.
    fn prompt(
        &mut self,
        turns: &[[RoleMessage; 2]],
        question: &str,
        case: CompressionCase,
    ) -> Result<Vec<TokenId>> {
        let full = self.render(&chat_messages(turns, &[], question))?;
        let strategy = match case.strategy {
            Some(strategy @ (Strategy::Window | Strategy::Summary)) => strategy,
            // Attention eviction works on the KV cache; its prompt is complete.
            Some(Strategy::Attention) | None => return Ok(full),
        };
        let max_tokens = full.len() / case.ratio;
        let token_budget = TokenBudget { limit: full.len(), budget: max_tokens, aim: max_tokens };
        loop {
            let (transcript, texts) = (self.transcript.clone(), self.summary_texts.clone());
            let mut count = |sketch: &PromptDraft| self.count(turns, &texts, question, sketch);
            match compaction::next(strategy, &transcript, token_budget, &mut count)? {
                Next::Compact(CompactedView { n_turns, summaries }) => {
                    let summaries: Vec<&str> = summaries.iter().map(|&at| texts[at].as_str()).collect();
                    return self.render(&chat_messages(&turns[n_turns..], &summaries, question));
                }
                Next::SummaryRequest(request) => self.summarize(turns, &request)?,
                Next::Forget { .. } | Next::TooLong { .. } => return Err(too_short(max_tokens)),
            }
        }
    }

    fn count(
        &self,
        turns: &[[RoleMessage; 2]],
        texts: &[String],
        question: &str,
        sketch: &PromptDraft,
    ) -> Result<usize> {
        let summaries =
            |summaries: &[usize]| summaries.iter().map(|&at| texts[at].as_str()).collect::<Vec<_>>();
        let messages = match sketch {
            PromptDraft::Shown(view) => {
                chat_messages(&turns[view.n_turns..], &summaries(&view.summaries), question)
            }
            PromptDraft::Asking(request) => {
                chat_messages(&turns[request.turns.clone()], &summaries(&request.after), ASK)
            }
        };
        Ok(self.render(&messages)?.len())
    }

    /// Lets the model write the requested summary.
    fn summarize(&mut self, turns: &[[RoleMessage; 2]], request: &SummaryRequest) -> Result<()> {
        let summaries: Vec<&str> = request.after.iter().map(|&at| self.summary_texts[at].as_str()).collect();
        let prompt = self.render(&chat_messages(&turns[request.turns.clone()], &summaries, ASK))?;
        let text = self.write(prompt, request.n_tokens)?;
        let written = &self.transcript.summaries;
        let turns = match (request.turns.is_empty(), request.after.first(), request.after.last()) {
            (true, Some(&first), Some(&last)) => written[first].turns.start..written[last].turns.end,
            _ => request.turns.clone(),
        };
        self.transcript.summaries.push(TurnSummary { turns, level: request.level });
        self.summary_texts.push(text);
        Ok(())
    }

    /// Generates an answer greedily.
    fn write(&mut self, prompt: Vec<TokenId>, n_tokens: usize) -> Result<String> {
        let seq = self.model.new_sequence()?;
        let (mut ids, mut text) = (prompt, Vec::new());
        for _ in 0..n_tokens {
            let logits = self.model.forward(&[Chunk { seq, tokens: &ids, logits: LogitsSelection::Last }])?;
            let row = logits.row(0)?;
            let best = (0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap_or(0) as TokenId;
            if self.model.tokenizer().is_some_and(|tokenizer| tokenizer.is_eog(best)) {
                break;
            }
            text.push(best);
            ids = vec![best];
        }
        self.model.free(seq);
        Ok(self.model.tokenizer().map(|tokenizer| tokenizer.decode(&text)).unwrap_or_default())
    }

    /// Prefills all of the prompt but its last token. Returns the prompt as the sequence holds it, and its length in
    /// tokens.
    fn read(
        &mut self,
        seq: SequenceId,
        prompt: &[TokenId],
        case: CompressionCase,
    ) -> Result<(Vec<TokenId>, usize)> {
        let prompt = match case.strategy {
            Some(Strategy::Attention) => {
                let n_most = prompt.len() - OBSERVATION_TOKENS;
                let n_keep = prompt.len() / case.ratio;
                let n_newest = (n_keep / 4).max(OBSERVATION_TOKENS);
                let forget = AttentionEviction { max_tokens: n_most, n_kept: n_keep, n_oldest: 4, n_newest };
                self.model.truncate(seq, 0)?;
                self.model.prefill_evicting(seq, prompt, forget, &mut |_| true)?
            }
            Some(Strategy::Window | Strategy::Summary) | None => prompt.to_vec(),
        };
        let n_held = self.model.tokens(seq)?.iter().zip(&prompt).take_while(|(a, b)| a == b).count();
        let n_held = self.model.truncate(seq, n_held.min(prompt.len() - 1))?;
        let rest = &prompt[n_held..prompt.len() - 1];
        self.model.forward(&[Chunk { seq, tokens: rest, logits: LogitsSelection::None }])?;
        let n = prompt.len();
        Ok((prompt, n))
    }

    fn log_p(&mut self, seq: SequenceId, held: &[TokenId], word: &str) -> Result<f64> {
        let ids = self.encode(&format!(" {word}"))?;
        self.log_p_of(seq, held, &ids)
    }

    /// Natural log-probability of `ids` after the prompt. Leaves the sequence unchanged.
    fn log_p_of(&mut self, seq: SequenceId, held: &[TokenId], ids: &[TokenId]) -> Result<f64> {
        let n_before = self.model.len(seq)?;
        let last = held.last().copied().unwrap_or(0);
        let tokens: Vec<TokenId> = std::iter::once(last).chain(ids.iter().copied()).collect();
        let mut sum = 0.0;
        for (at, token) in ids.iter().enumerate() {
            let chunk = Chunk { seq, tokens: &tokens[at..at + 1], logits: LogitsSelection::Last };
            let logits = self.model.forward(&[chunk])?;
            let row = logits.row(0)?;
            let max = row.iter().fold(f32::NEG_INFINITY, |a, b| a.max(*b));
            let all: f64 = row.iter().map(|logit| f64::from(logit - max).exp()).sum();
            sum += f64::from(row[*token as usize] - max) - all.ln();
        }
        self.model.truncate(seq, n_before)?;
        Ok(sum)
    }

    fn with_answer_start(&self, mut prompt: Vec<TokenId>, words: &str) -> Result<Vec<TokenId>> {
        prompt.extend(self.encode(words)?);
        Ok(prompt)
    }

    fn encode(&self, text: &str) -> Result<Vec<TokenId>> {
        let tokenizer = self.model.tokenizer().ok_or_else(no_template)?;
        Ok(tokenizer.encode(text, engine::tokenizer::Special::Plain))
    }

    fn render(&self, messages: &[RoleMessage]) -> Result<Vec<TokenId>> {
        let (Some(tokenizer), Some(template)) = (self.model.tokenizer(), self.model.template()?) else {
            return Err(no_template());
        };
        let values: Vec<Value> =
            messages.iter().map(|(role, content)| json!({ "role": role, "content": content })).collect();
        let name = |id: Option<TokenId>| id.and_then(|id| tokenizer.token_text(id)).unwrap_or_default();
        let rendered = template.render(&RenderInput {
            messages: &values,
            tools: &Value::Null,
            kwargs: &Map::from_iter([("add_generation_prompt".to_owned(), json!(true))]),
            bos_token: name(tokenizer.bos()),
            eos_token: name(tokenizer.eos()),
            now: None,
        })?;
        Ok(tokenizer.encode_rendered(&rendered, &[]))
    }
}

/// Messages for the summaries, the turns and a question.
fn chat_messages(turns: &[[RoleMessage; 2]], summaries: &[&str], question: &str) -> Vec<RoleMessage> {
    let mut messages = Vec::new();
    if !summaries.is_empty() {
        messages.extend([("user", ASKED.to_owned()), ("assistant", summaries.join("\n\n"))]);
    }
    messages.extend(turns.iter().flatten().cloned());
    messages.push(("user", question.to_owned()));
    messages
}

fn no_template() -> Error {
    let message = "This model has no vocabulary or chat template, so no chat can be measured.";
    Error::input("model.no_tokenizer", message, "Measure a chat model, such as starter.")
}

fn no_recall(recall: f64) -> Error {
    let share = recall * 100.0;
    let message =
        format!("This model recalls {share:.0} % of the facts with the whole conversation in its context.");
    let remedy = "Nothing can be lost from that: measure a larger chat model (--model F.gguf).";
    Error::input("bench.recall", message, remedy)
}

fn too_short(max_tokens: usize) -> Error {
    let message = format!("A message does not fit into {max_tokens} tokens.");
    Error::new(ErrorKind::Limit, "request.context_full", message, "Measure a model with a shorter template.")
}
