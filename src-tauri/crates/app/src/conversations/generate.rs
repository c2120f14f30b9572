//! Answers outside any conversation: for the OpenAI-compatible interface and one-shot commands.
//! They are ordinary turns, watched and cancelled the same way; nothing is saved.

use contract::Sampling;
use serde::{Deserialize, Serialize};

use crate::App;
use contract::protocol::{ChatOptions, GenerateRequest, Prompt, WorkerRequest};
use contract::types::TurnEventKind;
use contract::{Error, Result};

/// One prompt to answer.
#[derive(Debug, Clone)]
pub struct GenerateArgs {
    /// Library id or path; None: the default model.
    pub model: Option<String>,
    pub prompt: Prompt,
    pub sampling: SamplingArgs,
    /// None: the setting.
    pub max_tokens: Option<usize>,
    /// Texts that end the answer; they are not part of it.
    pub stop: Vec<String>,
    pub ignore_eos: bool,
    /// Over the settings, where it says something.
    pub chat: ChatOptions,
}

/// What a caller says about sampling; the settings say the rest.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SamplingArgs {
    pub temperature: Option<f64>,
    pub top_k: Option<u32>,
    pub top_p: Option<f64>,
    pub min_p: Option<f64>,
    pub repeat_penalty: Option<f64>,
    pub seed: Option<u64>,
}

impl SamplingArgs {
    /// Over `base`; values outside their setting's range are an error that names it.
    pub(crate) fn over(&self, base: Sampling) -> Result<Sampling> {
        let checked = |key: &str, value: Option<f64>| -> Result<Option<f32>> {
            let Some(value) = value else { return Ok(None) };
            let number = serde_json::Number::from_f64(value).ok_or_else(|| {
                Error::input("setting.out_of_range", format!("{key} is not a number."), "Give a number.")
            })?;
            contract::settings::find(key)?.check(&number.into())?;
            Ok(Some(value as f32))
        };
        Ok(Sampling {
            temperature: checked("temperature", self.temperature)?.unwrap_or(base.temperature),
            top_k: self.top_k.unwrap_or(base.top_k),
            top_p: checked("top_p", self.top_p)?.unwrap_or(base.top_p),
            min_p: checked("min_p", self.min_p)?.unwrap_or(base.min_p),
            repeat_penalty: checked("repeat_penalty", self.repeat_penalty)?.unwrap_or(base.repeat_penalty),
            repeat_last_n: base.repeat_last_n,
            seed: self.seed.or(base.seed),
        })
    }
}

impl App {
    /// Starts a turn that belongs to no conversation; its id. Follow it by `watch_turn`.
    pub fn generate(&self, mut args: GenerateArgs) -> Result<String> {
        let model = match args.model {
            Some(model) => model,
            None => self.default_model()?,
        };
        let responder = self.responder(&model)?;
        let load = self.load_spec_for(&responder)?;
        let reference = responder.reference();
        let sampling = args.sampling.over(self.sampling()?)?;
        let max_tokens = match args.max_tokens {
            Some(max_tokens) => Some(max_tokens),
            None => self.max_tokens()?,
        };
        let chat = self.chat_options(&model, args.chat)?;
        let marks = self.guard_prompt(&mut args.prompt)?;
        let limits = self.limits()?;
        let turn = {
            let (store, turns) = (self.store(), &self.services().turns);
            limits.admit(turns.n_open(), args.prompt.texts())?;
            let id = store.new_id();
            let turn = turns.add(id.clone(), None, None);
            marks.into_iter().for_each(|mark| turn.publish(TurnEventKind::Notice { error: mark.info }));
            id
        };
        self.ask(WorkerRequest::Generate(Box::new(GenerateRequest {
            turn: turn.clone(),
            model: reference,
            load,
            conversation: None,
            prompt: args.prompt,
            sampling,
            max_tokens: limits.answer(max_tokens),
            stop: args.stop,
            ignore_eos: args.ignore_eos,
            chat,
            speculation: self.speculation()?,
            resume: None,
            bounds: limits.bounds(),
            compression: None,
            had: None,
            keeping: Some(self.keeping()?),
            profile: self.is_profiling(),
        })))?;
        Ok(turn)
    }
}
