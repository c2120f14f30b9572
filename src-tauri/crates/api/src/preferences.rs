//! The settings in use: stored values over defaults, flags over both.

use std::path::Path;

use engine::kv::requantize::{DEFAULT_REQUANTIZE_AFTER_TOKENS, KvRequantize};
use engine::speculate::{DEFAULT_DRAFT_TOKENS, DraftLength, DraftSource, Speculation};
use engine::template::ChatTemplate;
use engine::{RopeScaling, Sampling};
use serde_json::{Value, json};

use crate::chat::Responder;
use crate::embed::Purpose;
use crate::error::{Error, Result};
use crate::limits::{Limits, Preset};
use crate::machine::{self, Numa, cards};
use crate::settings::{self, DEFAULT_CONTEXT, Setting};
use crate::types::{AppEvent, ChoiceOption, SettingKind, SettingRow};
use crate::worker::protocol::{
    Backend, CardPrecision, ChatOptions, Kv, LoadSpec, ModelRef, Quantize, Speculate,
};
use crate::{App, Running, quantized};

/// What a door's flags say instead of the settings, for this process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    pub backend: Option<Backend>,
    /// Layers on graphics cards. None: as many as fit.
    pub gpu_layers: Option<usize>,
    pub gpu_precision: Option<CardPrecision>,
    /// Graphics cards, by number or a part of their name. Empty: as the settings say.
    pub gpu_devices: Vec<String>,
    pub gpu_spread: Option<cards::Spread>,
    /// of tests
    pub gpu_fault: Option<cards::PlannedFault>,
    pub threads: Option<usize>,
    pub affinity: Option<bool>,
    pub numa: Option<Numa>,
    pub kv: Option<Kv>,
    pub kv_aging: Option<KvRequantize>,
    pub context: Option<usize>,
    pub kv_window: Option<usize>,
    pub rope_scaling: Option<RopeScaling>,
    /// Bytes of weights that may be in memory at once.
    pub resident: Option<u64>,
    /// Weights are loaded in this format: `q4_k_m`, `auto` …
    pub quantize: Option<String>,
    /// Adapters, each as `F[:SCALE]`.
    pub lora: Vec<String>,
    /// The source of a chat template for whatever model answers.
    pub template: Option<String>,
    pub template_fallback: bool,
    pub speculate: Option<Speculate>,
    /// Library id or path.
    pub draft_model: Option<String>,
    /// Most tokens that are guessed ahead.
    pub draft_max: Option<usize>,
    pub preset: Option<Preset>,
    /// Bytes that a model may take in all.
    pub memory: Option<u64>,
}

/// Settings speak of memory in these.
pub(crate) const MB: u64 = 1 << 20;

/// Longer files are no chat templates.
const MOST_TEMPLATE_BYTES: u64 = 1 << 20;

impl App {
    pub fn settings_list(&self) -> Result<Vec<SettingRow>> {
        settings::all().map(|setting| self.row(setting)).collect()
    }

    pub fn settings_get(&self, key: &str) -> Result<SettingRow> {
        self.row(settings::find(key)?)
    }

    /// Errors name the range.
    pub fn settings_set(&self, key: &str, value: &Value) -> Result<SettingRow> {
        let setting = settings::find(key)?;
        let value = setting.check(value)?;
        let is_none = value == "" && setting.key != "model";
        if let Some(purpose) = Purpose::of(setting.key).filter(|_| !is_none) {
            self.check_purpose(value.as_str().unwrap_or_default(), purpose)?;
        }
        if setting.key == "refusal_patterns" {
            crate::guard::patterns(value.as_str().unwrap_or_default())?;
        }
        if setting.key == "chat_templates" {
            for (_, path) in settings::pairs(value.as_str().unwrap_or_default())? {
                template_file(Path::new(path))?;
            }
        }
        self.shared().state().session.set_setting(key, &value.to_string())?;
        self.setting_changed(setting)
    }

    /// Back to the default.
    pub fn settings_reset(&self, key: &str) -> Result<SettingRow> {
        let setting = settings::find(key)?;
        self.shared().state().session.reset_setting(key)?;
        self.setting_changed(setting)
    }

    fn setting_changed(&self, setting: &'static Setting) -> Result<SettingRow> {
        let row = self.row(setting)?;
        if setting.key == "log_level" {
            self.apply_log_level()?;
        }
        if setting.key == "context_disk" {
            self.apply_disk_budget()?;
        }
        if matches!(setting.key, "context" | "kv" | "threads")
            || setting.key.starts_with("gpu_")
            || setting.key == "backend"
        {
            self.apply_asked();
        }
        self.shared().tell(AppEvent::SettingChanged { row: row.clone() });
        Ok(row)
    }

    fn row(&self, setting: &'static Setting) -> Result<SettingRow> {
        let mut row = setting.row(self.value(setting)?);
        if let Some(purpose) = Purpose::of(setting.key) {
            let models = self.models_list()?.into_iter().filter(|model| purpose.suits(model));
            let models = models.map(|model| ChoiceOption { value: model.id, label: model.name });
            let none = ChoiceOption { value: String::new(), label: "None".into() };
            let none = Some(none).filter(|_| setting.key != "model");
            row.kind = SettingKind::Choice { options: none.into_iter().chain(models).collect() };
        }
        Ok(row)
    }

    /// A stored value that is out of range (of another version, say) counts as not stored.
    fn value(&self, setting: &'static Setting) -> Result<Value> {
        if setting.key == "data_dir" {
            return Ok(Value::String(self.running.dirs.data.display().to_string()));
        }
        let stored = self.shared().state().session.setting(setting.key)?;
        let stored = stored.and_then(|json| serde_json::from_str(&json).ok());
        let valid = stored.and_then(|value| setting.check(&value).ok());
        Ok(valid.unwrap_or_else(setting.default))
    }

    pub(crate) fn value_of(&self, key: &str) -> Result<Value> {
        self.value(settings::find(key)?)
    }

    fn number(&self, key: &str) -> Result<f64> {
        self.value_of(key)?.as_f64().ok_or_else(|| Error::bug(format!("the setting {key} is no number")))
    }

    /// None: absent.
    pub(crate) fn whole(&self, key: &str) -> Result<Option<u64>> {
        Ok(self.value_of(key)?.as_u64())
    }

    /// Library id of the model that answers where nothing else is said.
    pub fn default_model(&self) -> Result<String> {
        let id = self.value_of("model")?.as_str().unwrap_or(crate::starter::ID).to_owned();
        // An entry that was removed since falls back to the one that is always there.
        let is_known = self.responder(&id).is_ok();
        Ok(if is_known { id } else { crate::starter::ID.into() })
    }

    pub(crate) fn sampling(&self) -> Result<Sampling> {
        Ok(Sampling {
            temperature: self.number("temperature")? as f32,
            top_k: self.whole("top_k")?.and_then(|n| u32::try_from(n).ok()).unwrap_or(0),
            top_p: self.number("top_p")? as f32,
            min_p: self.number("min_p")? as f32,
            repeat_penalty: self.number("repeat_penalty")? as f32,
            seed: self.whole("seed")?,
            ..Sampling::default()
        })
    }

    pub(crate) fn max_tokens(&self) -> Result<Option<usize>> {
        Ok(self.whole("max_tokens")?.and_then(|n| usize::try_from(n).ok()))
    }

    /// A flag's preset, the settings' preset, or the settings one by one.
    pub(crate) fn limits(&self) -> Result<Limits> {
        let stored = serde_json::from_value(self.value_of("limits")?).ok();
        if let Some(preset) = self.running.overrides.preset.or(stored) {
            return Ok(preset.limits());
        }
        let whole = |key| Ok::<_, Error>(self.whole(key)?.and_then(|n| usize::try_from(n).ok()));
        Ok(Limits {
            prompt_tokens: whole("limit_prompt_tokens")?,
            characters: whole("limit_characters")?,
            answer_tokens: whole("limit_answer_tokens")?,
            seconds: self.whole("limit_seconds")?,
            concurrent: whole("limit_concurrent")?.unwrap_or(1),
            waiting: whole("limit_waiting")?.unwrap_or(0),
        })
    }

    /// What a caller says over what the settings say. `model` is a library id or a path.
    pub(crate) fn chat_options(&self, model: &str, asked: ChatOptions) -> Result<ChatOptions> {
        let mut options = asked;
        let text = |key| Ok::<_, Error>(self.value_of(key)?.as_str().unwrap_or_default().to_owned());
        match text("thinking")?.as_str() {
            "on" => _ = options.kwargs.entry("enable_thinking").or_insert(json!(true)),
            "off" => _ = options.kwargs.entry("enable_thinking").or_insert(json!(false)),
            _ => {}
        }
        let effort = text("reasoning_effort")?;
        if effort != "model" {
            options.kwargs.entry("reasoning_effort").or_insert(json!(effort));
        }
        if options.reasoning_budget.is_none() {
            options.reasoning_budget = self.whole("reasoning_budget")?.and_then(|n| usize::try_from(n).ok());
        }
        let overrides = &self.running.overrides;
        options.template_fallback |=
            overrides.template_fallback || self.value_of("template_fallback")? == true;
        options.template = options.template.or_else(|| overrides.template.clone());
        if options.template.is_none() {
            let named = text("chat_templates")?;
            let path =
                settings::pairs(&named)?.into_iter().find(|(id, _)| *id == model).map(|(_, path)| path);
            options.template = path.map(|path| template_file(Path::new(path))).transpose()?;
        }
        if options.template.is_none() {
            options.template = self.plugin_template(model)?;
        }
        Ok(options)
    }

    /// How another server loads a model is its own affair.
    pub(crate) fn load_spec_for(&self, responder: &Responder) -> Result<LoadSpec> {
        match responder {
            Responder::Local(reference) => self.load_spec_of(&reference.id),
            Responder::Remote(_) => Ok(LoadSpec::default()),
        }
    }

    /// As the settings say, and over them what is kept for this model alone. `model` is a library id or a path.
    pub(crate) fn load_spec_of(&self, model: &str) -> Result<LoadSpec> {
        let own = self.own_settings(model)?;
        let Running { overrides, .. } = &*self.running;
        let value = |key: &str| own.get(key).map_or_else(|| self.value_of(key), |value| Ok(value.clone()));
        let number = |key: &str| Ok::<_, Error>(value(key)?.as_u64());
        let whole = |key: &str| Ok::<_, Error>(number(key)?.and_then(|n| usize::try_from(n).ok()));
        let kv = serde_json::from_value(value("kv")?).unwrap_or_default();
        let after = whole("kv_aging_after")?.unwrap_or(DEFAULT_REQUANTIZE_AFTER_TOKENS);
        let aging = match value("kv_aging")?.as_str() {
            Some("pressure") => KvRequantize::Pressure,
            Some("after") => KvRequantize::After(after),
            Some(_) | None => KvRequantize::Off,
        };
        let numa = serde_json::from_value(value("numa")?).unwrap_or_default();
        let backend = serde_json::from_value(value("backend")?).unwrap_or_default();
        let precision = serde_json::from_value(value("gpu_precision")?).unwrap_or_default();
        let spread = serde_json::from_value(value("gpu_spread")?).unwrap_or_default();
        let stretch = value("context_stretch")?.as_f64().and_then(RopeScaling::yarn);
        Ok(LoadSpec {
            backend: overrides.backend.unwrap_or(backend),
            cards: cards::Asked {
                layers: overrides.gpu_layers.or(whole("gpu_layers")?),
                precision: overrides.gpu_precision.unwrap_or(precision),
                memory: number("gpu_memory")?.map(|mb| mb * MB),
                devices: match overrides.gpu_devices.is_empty() {
                    true => cards::listed(value("gpu_devices")?.as_str().unwrap_or_default()),
                    false => overrides.gpu_devices.clone(),
                },
                spread: overrides.gpu_spread.unwrap_or(spread),
                cache: Some(self.running.dirs.cache.clone()),
                fault: overrides.gpu_fault,
            },
            machine: machine::Asked {
                folder: Some(self.running.dirs.data.clone()),
                threads: overrides.threads.or(whole("threads")?),
                affinity: overrides.affinity.unwrap_or(value("affinity")? == true),
                numa: overrides.numa.unwrap_or(numa),
            },
            kv: overrides.kv.unwrap_or(kv),
            kv_aging: overrides.kv_aging.unwrap_or(aging),
            kv_window: overrides.kv_window.or(whole("kv_window")?),
            rope_scaling: overrides.rope_scaling.or(stretch),
            context: overrides.context.or(whole("context")?).or(Some(DEFAULT_CONTEXT as usize)),
            resident: overrides.resident.or(number("resident_budget")?.map(|mb| mb * MB)),
            memory: overrides.memory,
            context_bytes: number("context_memory")?.map(|mb| mb * MB),
            small_pages: value("large_pages")? == false,
            lora: overrides.lora.clone(),
            draft: self.draft_model(&value("draft_model")?)?,
            quantize: overrides.quantize.clone().map(|dtype| Quantize {
                dtype,
                folder: quantized::folder(&self.running.dirs.data).display().to_string(),
            }),
        })
    }

    /// Other programs' models are listed.
    pub(crate) fn shows_other_programs(&self) -> Result<bool> {
        Ok(self.value_of("other_programs")? == true)
    }

    fn speculate(&self) -> Result<Speculate> {
        let overrides = &self.running.overrides;
        let named = overrides.draft_model.as_ref().map(|_| Speculate::Draft);
        match overrides.speculate.or(named) {
            Some(speculate) => Ok(speculate),
            None => Ok(serde_json::from_value(self.value_of("speculation")?).unwrap_or_default()),
        }
    }

    /// How answers are guessed ahead.
    pub(crate) fn speculation(&self) -> Result<Option<Speculation>> {
        let length = DraftLength::Paying(self.running.overrides.draft_max.unwrap_or(DEFAULT_DRAFT_TOKENS));
        Ok(match self.speculate()? {
            Speculate::Off => None,
            Speculate::Lookup => Some(Speculation { source: DraftSource::Lookup, length }),
            Speculate::Draft => Some(Speculation { source: DraftSource::Model, length }),
        })
    }

    fn draft_model(&self, stored: &Value) -> Result<Option<ModelRef>> {
        match self.speculate()? {
            Speculate::Off | Speculate::Lookup => return Ok(None),
            Speculate::Draft => {}
        }
        let named = self.running.overrides.draft_model.as_deref().or(stored.as_str());
        let Some(id) = named.filter(|id| !id.is_empty()) else {
            return Err(Error::input(
                "setting.draft_model",
                "Speculative decoding needs a draft model, but none is selected.",
                "Choose one under \"Draft model\" in the settings or with --draft-model, or predict from the chat.",
            ));
        };
        match self.responder(id)? {
            Responder::Local(reference) => Ok(Some(reference)),
            Responder::Remote(reference) => Err(crate::worker::not_here(&reference.id)),
        }
    }

    pub(crate) fn apply_log_level(&self) -> Result<()> {
        if let Some(logging) = &self.running.logging {
            logging.set_level(self.value_of("log_level")?.as_str().unwrap_or("info"));
        }
        Ok(())
    }
}

/// The source of a template in a file of its own. Errors name the file.
pub fn template_file(path: &Path) -> Result<String> {
    let wrong = |code: &str, cause: String| {
        let message = format!("The chat template {}: {cause}.", path.display());
        Error::input(code, message, "Give a file with a Jinja template.")
    };
    let unreadable = |error: std::io::Error| wrong("template.unreadable", error.to_string());
    let n = std::fs::metadata(path).map_err(unreadable)?.len();
    if n > MOST_TEMPLATE_BYTES {
        return Err(wrong("template.unreadable", format!("{n} bytes are too many for one")));
    }
    let source = std::fs::read_to_string(path).map_err(unreadable)?;
    match ChatTemplate::from_source(&source) {
        Ok(_) => Ok(source),
        Err(error) => Err(wrong(error.code(), error.to_string())),
    }
}
