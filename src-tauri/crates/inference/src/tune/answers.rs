//! Held-out prompts, answered by the model as it was and by the tuned one.
//!
//! Guarantees that a failure costs answers, never the adapter: it is saved before.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use contract::Result;
use contract::types::TuneAnswers;
use engine::speculate::Script;
use engine::tokenizer::Special;
use engine::train::{DataContent, Dataset, ExampleEncoder, LabelledExample, is_learned_answer};
use engine::{Adapter, Finish, Generation, LoadOptions, Model, Request, Sampling, TokenId, arch, generate};
use io::Clock;
use weights::WeightFile;

/// Prompts that are answered.
const MAX_PROMPTS: usize = 5;
/// Tokens of an answer: enough to see its style and format.
const MAX_ANSWER_TOKENS: usize = 96;
/// Time of each of the two models for all of its answers.
const TIME_LIMIT: Duration = Duration::from_secs(45);
/// Tokens of a plain text that are its prompt; the model continues it.
const TEXT_PROMPT_TOKENS: usize = 24;
/// Characters of the data that are shown beside the answers.
const MAX_SHOWN_CHARS: usize = 2000;

/// What the answers are made of.
pub struct AnswerSource<'a> {
    /// The model as it was.
    pub file: Arc<WeightFile>,
    /// The data of the run.
    pub dataset: &'a Dataset,
    /// Local time for templates, as in the run.
    pub now: &'a str,
    /// Threads. None: all cores.
    pub threads: Option<usize>,
}

/// A held-out example, cut where its answer begins.
#[derive(Debug, PartialEq)]
struct HeldOutPrompt {
    line: u32,
    ids: Vec<TokenId>,
    /// The last question, or the beginning of a text.
    shown: String,
    /// What the data continues with.
    expected: String,
}

/// Lets both models answer up to five held-out prompts, always with the most likely token. `adapter` is a PEFT folder.
/// Prompts that cannot be answered in time are left out.
///
/// Errors: those of loading the model and the adapter.
pub fn answer_held_out(
    source: &AnswerSource<'_>,
    adapter: &Path,
    clock: &dyn Clock,
) -> Result<Vec<TuneAnswers>> {
    let context = arch::spec(&source.file, arch::find(&source.file)?)?.context_length;
    let encoder = ExampleEncoder::open(&source.file, source.now)?;
    let mut prompts = held_out_prompts(source.dataset, &encoder);
    prompts.retain(|prompt| !prompt.ids.is_empty() && prompt.ids.len() < context);
    prompts.truncate(MAX_PROMPTS);
    let Some(longest) = prompts.iter().map(|prompt| prompt.ids.len()).max() else { return Ok(Vec::new()) };
    let options = LoadOptions {
        threads: source.threads,
        ctx: Some((longest + MAX_ANSWER_TOKENS).min(context)),
        max_sequences: 1,
        ..LoadOptions::default()
    };
    let mut model = Model::load(Arc::clone(&source.file), &options, &mut |_| {})?;
    let base = answers(&mut model, prompts, clock);
    let adapter = Adapter::open(adapter)?;
    model.set_adapters(&[(&adapter, 1.0)])?;
    let (prompts, base): (Vec<HeldOutPrompt>, Vec<String>) = base.into_iter().unzip();
    let lines: Vec<u32> = prompts.iter().map(|prompt| prompt.line).collect();
    let tuned = answers(&mut model, prompts, clock);
    let paired = tuned.into_iter().filter_map(|(prompt, tuned)| {
        let at = lines.iter().position(|line| *line == prompt.line)?;
        let HeldOutPrompt { line, shown, expected, .. } = prompt;
        Some(TuneAnswers { line, prompt: shown, expected, base: base[at].clone(), tuned })
    });
    Ok(paired.collect())
}

/// One prompt per item of the data, in their order.
fn held_out_prompts(dataset: &Dataset, encoder: &ExampleEncoder) -> Vec<HeldOutPrompt> {
    let mut prompts: Vec<HeldOutPrompt> = Vec::new();
    for example in &dataset.held_out {
        let Some(prompt) = held_out_prompt(example, encoder) else { continue };
        if prompts.iter().all(|other| other.line != prompt.line) {
            prompts.push(prompt);
        }
    }
    prompts
}

/// None: the template shows no prompt for it.
fn held_out_prompt(example: &LabelledExample, encoder: &ExampleEncoder) -> Option<HeldOutPrompt> {
    let line = u32::try_from(example.line).unwrap_or(u32::MAX);
    match &example.content {
        DataContent::Chat(messages) => {
            let last = messages.iter().rposition(is_learned_answer)?;
            let text = |at: usize| messages.get(at).and_then(|message| message["content"].as_str());
            let ids = encoder.prompt(&messages[..last]).ok()?;
            let question = last.checked_sub(1).and_then(text).unwrap_or_default();
            Some(HeldOutPrompt { line, ids, shown: cut(question), expected: cut(text(last)?) })
        }
        // A long text is several examples: its own tokens say which part this is.
        DataContent::Text(_) => {
            let tokenizer = encoder.tokenizer();
            let text = tokenizer.decode(&example.tokens.ids);
            let ids = tokenizer.encode(&text, Special::Plain);
            let (prompt, rest) = ids.split_at(TEXT_PROMPT_TOKENS.min(ids.len() / 2));
            Some(HeldOutPrompt {
                line,
                ids: tokenizer.add_special(prompt.to_vec()),
                shown: cut(&tokenizer.decode(prompt)),
                expected: cut(&tokenizer.decode(rest)),
            })
        }
    }
}

/// Answers prompts until the time is up; returns those that were answered.
fn answers(
    model: &mut Model,
    prompts: Vec<HeldOutPrompt>,
    clock: &dyn Clock,
) -> Vec<(HeldOutPrompt, String)> {
    let end = clock.monotonic() + TIME_LIMIT;
    let answered = prompts.into_iter().filter_map(|prompt| {
        let answer = answer(model, prompt.ids.clone(), &|| clock.monotonic() < end)?;
        Some((prompt, answer))
    });
    answered.collect()
}

/// None: the time is up, or the model failed.
fn answer(model: &mut Model, prompt: Vec<TokenId>, is_in_time: &dyn Fn() -> bool) -> Option<String> {
    if !is_in_time() {
        return None;
    }
    match generate(model, request(prompt), &mut |_| is_in_time()) {
        Ok(Generation { done, .. }) if done.finish == Finish::Cancelled => None,
        Ok(Generation { text, .. }) => Some(text.trim().to_owned()),
        Err(error) => {
            tracing::warn!("a held-out prompt is not answered: {error}");
            None
        }
    }
}

/// Always the most likely token.
fn request(prompt: Vec<TokenId>) -> Request {
    Request {
        id: 0,
        prompt,
        sequence: None,
        sampling: Sampling { temperature: 0.0, ..Sampling::default() },
        max_tokens: Some(MAX_ANSWER_TOKENS),
        stop: Vec::new(),
        ignore_eos: false,
        markup_tokens: Vec::new(),
        budget: None,
        speculation: None,
        script: Script::default(),
        constraint: None,
        logprobs: None,
        resumed: Vec::new(),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use engine::train::{DataFormat, parse};
    use io::ManualClock;

    use super::*;
    use crate::starter;

    fn source(text: &str, name: &str) -> (Arc<WeightFile>, Dataset) {
        let file = Arc::new(WeightFile::from_static(starter::ID, starter::bytes()).expect("the starter"));
        let encoder = ExampleEncoder::open(&file, "").expect("an encoder");
        let dataset = Dataset::new(parse(text, DataFormat::of_name(name)), &encoder, 256, 0);
        (file, dataset.expect("a dataset"))
    }

    #[test]
    fn prompts_end_where_the_answer_begins() {
        let text = "\"What is red?\",\"A colour.\"\n\"What is two?\",\"A number.\"\n";
        let (file, dataset) = source(text, "a.csv");
        let encoder = ExampleEncoder::open(&file, "").expect("an encoder");
        let [held_out] = &dataset.held_out[..] else { panic!("{:?}", dataset.held_out) };
        let prompts = held_out_prompts(&dataset, &encoder);
        let [prompt] = &prompts[..] else { panic!("{prompts:?}") };
        assert!(held_out.tokens.ids.starts_with(&prompt.ids));
        assert!(held_out.tokens.is_learned[prompt.ids.len()]);
        assert!(!held_out.tokens.is_learned[..prompt.ids.len()].contains(&true));
        let wanted = [("What is red?", "A colour."), ("What is two?", "A number.")];
        assert!(wanted.contains(&(&prompt.shown, &prompt.expected)), "{prompt:?}");
    }

    #[test]
    fn a_text_is_continued() {
        let words: String = (0..400).map(|i| format!("word{i} ")).collect();
        let (file, dataset) = source(&words, "a.txt");
        let encoder = ExampleEncoder::open(&file, "").expect("an encoder");
        let prompts = held_out_prompts(&dataset, &encoder);
        let [prompt] = &prompts[..] else { panic!("{prompts:?}") };
        assert!(words.contains(prompt.shown.trim()) && words.contains(prompt.expected.trim()), "{prompt:?}");
        assert!(words.contains(format!("{}{}", prompt.shown, prompt.expected).trim()), "{prompt:?}");
    }

    #[test]
    fn nothing_is_answered_when_the_time_is_up() {
        let (file, _) = source("a,b\nc,d\n", "a.csv");
        let options = LoadOptions { ctx: Some(128), max_sequences: 1, ..LoadOptions::default() };
        let mut model = Model::load(file, &options, &mut |_| {}).expect("the starter");
        assert_eq!(answer(&mut model, vec![5, 6, 7], &|| false), None);
        let left = std::cell::Cell::new(3);
        let is_in_time = || left.replace(left.get() - 1) > 1;
        assert_eq!(answer(&mut model, vec![5, 6, 7], &is_in_time), None, "it is cancelled midway");
        assert!(answer(&mut model, vec![5, 6, 7], &|| true).is_some());
        let clock = ManualClock::new(0);
        let prompt = HeldOutPrompt { line: 1, ids: vec![5], shown: String::new(), expected: String::new() };
        assert_eq!(answers(&mut model, vec![prompt], &clock).len(), 1);
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(cut("äöü"), "äöü");
        let long = "ä".repeat(MAX_SHOWN_CHARS + 1);
        assert_eq!(cut(&long), format!("{}…", "ä".repeat(MAX_SHOWN_CHARS)));
    }
}
