//! Answers outside any conversation: for the OpenAI-compatible interface and one-shot commands.
//! They are ordinary turns, watched and cancelled the same way; nothing is saved.

use contract::{LogitBias, Sampling};
use serde::{Deserialize, Serialize};

use crate::App;
use contract::protocol::{
    ChatOptions, Constraint, GenerateRequest, LoadSpec, Location, ModelRef, ProbabilityReport, Prompt,
    WorkerRequest,
};
use contract::types::{SamplerOptions, TurnEventKind};
use contract::{Error, Result};
use inference::vision_file::VisionSource;
use prompt::images::not_seen;
use prompt::sampler_options;

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
    /// What the answer must look like; None: any text.
    pub constraint: Option<Constraint>,
    /// None: no probabilities.
    pub logprobs: Option<ProbabilityReport>,
}

/// What a caller says about sampling; the settings say the rest.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SamplingArgs {
    pub temperature: Option<f64>,
    pub top_k: Option<u32>,
    pub top_p: Option<f64>,
    pub min_p: Option<f64>,
    pub repeat_penalty: Option<f64>,
    /// From -2 to 2.
    pub presence_penalty: Option<f64>,
    /// From -2 to 2.
    pub frequency_penalty: Option<f64>,
    /// DRY and XTC.
    pub samplers: Option<SamplerOptions>,
    pub logit_bias: Option<Vec<LogitBias>>,
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
        let mut sampling = Sampling {
            temperature: checked("temperature", self.temperature)?.unwrap_or(base.temperature),
            top_k: self.top_k.unwrap_or(base.top_k),
            top_p: checked("top_p", self.top_p)?.unwrap_or(base.top_p),
            min_p: checked("min_p", self.min_p)?.unwrap_or(base.min_p),
            repeat_penalty: checked("repeat_penalty", self.repeat_penalty)?.unwrap_or(base.repeat_penalty),
            presence_penalty: reply_penalty("presence_penalty", self.presence_penalty)?
                .unwrap_or(base.presence_penalty),
            frequency_penalty: reply_penalty("frequency_penalty", self.frequency_penalty)?
                .unwrap_or(base.frequency_penalty),
            logit_bias: self.logit_bias.clone().unwrap_or(base.logit_bias),
            seed: self.seed.or(base.seed),
            ..base
        };
        if let Some(samplers) = &self.samplers {
            sampler_options::apply(samplers, &mut sampling)?;
        }
        Ok(sampling)
    }
}

/// The penalties of OpenAI's interface are no settings, but have its range.
fn reply_penalty(key: &str, value: Option<f64>) -> Result<Option<f32>> {
    match value {
        Some(value) if !(-2.0..=2.0).contains(&value) => {
            let message = format!("{key} is {value}, which is not from -2 to 2.");
            Err(Error::input("request.penalty", message, "Give a number from -2 to 2."))
        }
        value => Ok(value.map(|value| value as f32)),
    }
}

/// Refuses images that a model of this machine can't see, before it is loaded.
///
/// Errors: `model.no_images`; `vision.*` where it has a tower that can't be used.
fn check_images(model: &ModelRef, load: &LoadSpec, prompt: &Prompt) -> Result<()> {
    let has_images = prompt.messages().iter().any(|message| !message.images.is_empty());
    if !has_images || matches!(model.location, Location::Remote { .. }) {
        return Ok(());
    }
    match VisionSource::open(&model.location, load.mmproj.as_deref())? {
        Some(_) => Ok(()),
        None => Err(not_seen(&model.id)),
    }
}

impl App {
    /// What tokens would be sampled with: the settings, and over them what a caller says.
    pub fn effective_sampling(&self, args: &SamplingArgs) -> Result<Sampling> {
        args.over(self.sampling()?)
    }

    /// How long an answer may be, in tokens. None: until the context is full.
    pub fn effective_max_tokens(&self, asked: Option<usize>) -> Result<Option<usize>> {
        let asked = match asked {
            Some(asked) => Some(asked),
            None => self.max_tokens()?,
        };
        Ok(self.limits()?.answer(asked))
    }

    /// How many answers may run at once.
    pub fn answers_at_once(&self) -> Result<usize> {
        Ok(self.limits()?.concurrent)
    }

    /// Starts a turn that belongs to no conversation; its id. Follow it by `watch_turn`.
    pub fn generate(&self, mut args: GenerateArgs) -> Result<String> {
        let model = match args.model {
            Some(model) => model,
            None => self.default_model()?,
        };
        let responder = self.current_responder(&model)?;
        let load = self.load_spec_for(&responder)?;
        let reference = responder.reference();
        let sampling = args.sampling.over(self.sampling()?)?;
        let max_tokens = match args.max_tokens {
            Some(max_tokens) => Some(max_tokens),
            None => self.max_tokens()?,
        };
        let chat = self.chat_options(&model, args.chat)?;
        check_images(&reference, &load, &args.prompt)?;
        let marks = self.guard_prompt(&mut args.prompt)?;
        if let Some(constraint) = &args.constraint {
            inference::constraints::check_constraint(constraint)?;
        }
        let limits = self.limits()?;
        let turn = {
            let (store, turns) = (self.store(), &self.services().turns);
            limits.admit(turns.n_open(), args.prompt.texts())?;
            let id = store.new_id();
            let turn = turns.add(id.clone(), None, None, self.origin(&model));
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
            constraint: args.constraint,
            logprobs: args.logprobs,
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
