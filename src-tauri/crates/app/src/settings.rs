//! The settings in effect: stored values over defaults, flags over both.

pub mod own_prompts;
pub mod per_model;
pub mod presets;
pub mod profiling;
pub mod typed;

use std::path::Path;
use std::sync::Arc;

use contract::limits::{LimitPreset, Limits};
use contract::protocol::{Backend, ChatOptions, GpuPrecision, Kv, LoadSpec, ModelRef, Quantize, Speculate};
use contract::settings::{self, DEFAULT_CONTEXT, Setting};
use contract::types::{AppEvent, ChoiceOption, SettingKind, SettingRow};
use contract::{
    CpuRequest, DraftLength, DraftSource, Error, GpuRequest, GpuSpread, KvAging, NumaPolicy, PlannedGpuFault,
    Responder, Result, RopeScaling, Sampling, Speculation,
};
use inference::convert::on_load;
use inference::machine::gpus;
use platform::DataDirs;
use serde_json::{Value, json};

use crate::App;
use crate::retrieval::embed::Purpose;
use crate::store::Store;
use per_model::PerModelSettings;
pub(crate) use typed::{SettingSource, TypedSettings};

/// Flags of a frontend that override the settings, for this process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    pub backend: Option<Backend>,
    /// Layers on GPUs. None: as many as fit.
    pub gpu_layers: Option<usize>,
    pub gpu_precision: Option<GpuPrecision>,
    /// GPUs, by number or part of their name. Empty: as the settings say.
    pub gpu_devices: Vec<String>,
    pub gpu_spread: Option<GpuSpread>,
    /// of tests
    pub gpu_fault: Option<PlannedGpuFault>,
    pub threads: Option<usize>,
    pub affinity: Option<bool>,
    pub numa: Option<NumaPolicy>,
    pub kv: Option<Kv>,
    pub kv_aging: Option<KvAging>,
    pub context: Option<usize>,
    pub kv_window: Option<usize>,
    pub rope_scaling: Option<RopeScaling>,
    /// Bytes of weights that may be in memory at once.
    pub resident: Option<u64>,
    /// Weights are loaded in this format: `q4_k_m`, `auto` …
    pub quantize: Option<String>,
    /// Adapters, each as `F[:SCALE]`.
    pub lora: Vec<String>,
    /// File of the vision tower, for any model that answers.
    pub mmproj: Option<String>,
    /// The source of a chat template, for any model that answers.
    pub template: Option<String>,
    pub template_fallback: bool,
    pub speculate: Option<Speculate>,
    /// Library id or path.
    pub draft_model: Option<String>,
    /// Most tokens that are guessed ahead.
    pub draft_max: Option<usize>,
    pub preset: Option<LimitPreset>,
    /// Bytes that a model may take in all.
    pub memory: Option<u64>,
}

/// Settings speak of memory in these.
pub(crate) const MB: u64 = 1 << 20;

/// Longer files are no chat templates.
const MAX_TEMPLATE_BYTES: u64 = 1 << 20;

/// The settings in force. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Settings {
    store: Store,
    overrides: Arc<Overrides>,
    dirs: Arc<DataDirs>,
}

impl Settings {
    pub fn new(store: Store, overrides: Overrides, dirs: Arc<DataDirs>) -> Self {
        Self { store, overrides: Arc::new(overrides), dirs }
    }

    /// What a frontend's flags say.
    pub fn overrides(&self) -> &Overrides {
        &self.overrides
    }

    /// A stored value that is out of range, of another version say, counts as not stored.
    fn value_of(&self, setting: &Setting) -> Result<Value> {
        if setting.key == "data_dir" {
            return Ok(Value::String(self.dirs.data.display().to_string()));
        }
        let stored = self.store.lock().setting(setting.key)?;
        let stored = stored.and_then(|json| serde_json::from_str(&json).ok());
        let valid = stored.and_then(|value| setting.check(&value).ok());
        Ok(valid.unwrap_or_else(setting.default))
    }
}

impl SettingSource for Settings {
    fn value(&self, key: &'static str) -> Result<Value> {
        self.value_of(settings::find(key)?)
    }
}

impl App {
    /// Stored values that can't be read: their defaults apply, the values are kept under names with `.bad`, and a notice says
    /// so. One of another version, out of range here, stays where it is.
    pub(crate) fn set_damaged_settings_aside(&self) -> Result<()> {
        for setting in settings::all() {
            let mut store = self.store();
            let is_readable = match store.setting(setting.key) {
                Ok(Some(json)) => serde_json::from_str::<Value>(&json).is_ok(),
                Ok(None) => true,
                Err(error) if error.code() == "session.row" => false,
                Err(error) => return Err(error.into()),
            };
            if is_readable {
                continue;
            }
            let aside = store.set_setting_aside(setting.key)?;
            drop(store);
            let message = format!(
                "The stored value of the setting {} was damaged, so its default applies: {}. The old value is kept as {aside}.",
                setting.key,
                (setting.default)()
            );
            let remedy = format!("Set it again: nook settings set {} VALUE.", setting.key);
            self.ctx().events.notice(Error::input("setting.damaged", message, remedy).info);
        }
        Ok(())
    }

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
            documents::prompt_injection::patterns(value.as_str().unwrap_or_default())?;
        }
        if setting.key == "proxy" {
            net::ProxyAddress::parse(value.as_str().unwrap_or_default())?;
        }
        if setting.key == "chat_templates" {
            for (_, path) in settings::pairs(value.as_str().unwrap_or_default())? {
                template_file(Path::new(path))?;
            }
        }
        self.store().set_setting(key, &value.to_string())?;
        self.setting_changed(setting)
    }

    /// Back to the default.
    pub fn settings_reset(&self, key: &str) -> Result<SettingRow> {
        let setting = settings::find(key)?;
        self.store().reset_setting(key)?;
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
        if matches!(setting.key, "context" | "kv" | "threads" | "speculation" | "draft_model")
            || setting.key.starts_with("gpu_")
            || setting.key == "backend"
        {
            self.apply_load_defaults();
            self.services().publish_entries();
        }
        self.ctx().events.publish(AppEvent::SettingChanged { row: row.clone() });
        Ok(row)
    }

    fn row(&self, setting: &'static Setting) -> Result<SettingRow> {
        let mut row = setting.row(self.ctx().settings.value_of(setting)?);
        if let Some(purpose) = Purpose::of(setting.key) {
            let models = self.models_list()?.into_iter().filter(|model| purpose.suits(model));
            let models = models.map(|model| ChoiceOption { value: model.id, label: model.name });
            let none = ChoiceOption { value: String::new(), label: "None".into() };
            let none = Some(none).filter(|_| setting.key != "model");
            row.kind = SettingKind::Choice { options: none.into_iter().chain(models).collect() };
        }
        Ok(row)
    }

    /// Library id of the default model, used unless a chat names another.
    pub fn default_model(&self) -> Result<String> {
        let id = self.ctx().settings.model()?;
        // An entry that was removed since falls back to the one that is always there.
        let is_known = self.responder(&id).is_ok();
        Ok(if is_known { id } else { contract::STARTER_ID.into() })
    }

    pub(crate) fn sampling(&self) -> Result<Sampling> {
        let settings = &self.ctx().settings;
        Ok(Sampling {
            temperature: settings.temperature()? as f32,
            top_k: settings.top_k()?.and_then(|n| u32::try_from(n).ok()).unwrap_or(0),
            top_p: settings.top_p()? as f32,
            min_p: settings.min_p()? as f32,
            repeat_penalty: settings.repeat_penalty()? as f32,
            seed: settings.seed()?,
            ..Sampling::default()
        })
    }

    pub(crate) fn max_tokens(&self) -> Result<Option<usize>> {
        Ok(self.ctx().settings.max_tokens()?.and_then(to_usize))
    }

    /// A flag's preset, the settings' preset, or the settings one by one.
    pub(crate) fn limits(&self) -> Result<Limits> {
        let settings = &self.ctx().settings;
        let preset: Option<LimitPreset> = settings.overrides().preset.or(settings.limits()?);
        if let Some(preset) = preset {
            return Ok(preset.limits());
        }
        Ok(Limits {
            prompt_tokens: settings.limit_prompt_tokens()?.and_then(to_usize),
            characters: settings.limit_characters()?.and_then(to_usize),
            answer_tokens: settings.limit_answer_tokens()?.and_then(to_usize),
            seconds: settings.limit_seconds()?,
            concurrent: settings.limit_concurrent()?.and_then(to_usize).unwrap_or(1),
            waiting: settings.limit_waiting()?.and_then(to_usize).unwrap_or(0),
        })
    }

    /// What a caller says over what the settings say. `model` is a library id or a path.
    pub(crate) fn chat_options(&self, model: &str, asked: ChatOptions) -> Result<ChatOptions> {
        let (mut options, settings) = (asked, &self.ctx().settings);
        match settings.thinking()?.as_str() {
            "on" => _ = options.kwargs.entry("enable_thinking").or_insert(json!(true)),
            "off" => _ = options.kwargs.entry("enable_thinking").or_insert(json!(false)),
            _ => {}
        }
        let effort = settings.reasoning_effort()?;
        if effort != "model" {
            options.kwargs.entry("reasoning_effort").or_insert(json!(effort));
        }
        if options.reasoning_budget.is_none() {
            options.reasoning_budget = settings.reasoning_budget()?.and_then(to_usize);
        }
        let overrides = settings.overrides();
        options.template_fallback |= overrides.template_fallback || settings.template_fallback()?;
        options.template = options.template.or_else(|| overrides.template.clone());
        if options.template.is_none() {
            let named = settings.chat_templates()?;
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
        let own = self.model_overrides(model)?;
        let own_draft = own.contains_key("draft_model");
        let settings = PerModelSettings::new(self.ctx().settings.clone(), own);
        let (overrides, dirs) = (self.ctx().settings.overrides(), self.dirs());
        let after = settings.kv_aging_after()?.and_then(to_usize).unwrap_or(KvAging::DEFAULT_AFTER_TOKENS);
        let requantize = match settings.kv_aging()?.as_str() {
            "pressure" => KvAging::Pressure,
            "after" => KvAging::After(after),
            _ => KvAging::Off,
        };
        let scaling = settings.context_stretch()?.and_then(inference::yarn);
        let context = overrides.context.or(settings.context()?.and_then(to_usize));
        Ok(LoadSpec {
            backend: overrides.backend.or(settings.backend()?).unwrap_or_default(),
            gpus: GpuRequest {
                layers: overrides.gpu_layers.or(settings.gpu_layers()?.and_then(to_usize)),
                precision: overrides.gpu_precision.or(settings.gpu_precision()?).unwrap_or_default(),
                memory: settings.gpu_memory()?.map(|mb| mb * MB),
                devices: match overrides.gpu_devices.is_empty() {
                    true => gpus::listed(&settings.gpu_devices()?),
                    false => overrides.gpu_devices.clone(),
                },
                spread: overrides.gpu_spread.or(settings.gpu_spread()?).unwrap_or_default(),
                cache: Some(dirs.cache.clone()),
                fault: overrides.gpu_fault,
            },
            machine: CpuRequest {
                folder: Some(dirs.data.clone()),
                threads: overrides.threads.or(settings.threads()?.and_then(to_usize)),
                affinity: overrides.affinity.map_or_else(|| settings.affinity(), Ok)?,
                numa: overrides.numa.or(settings.numa()?).unwrap_or_default(),
            },
            kv: overrides.kv.or(settings.kv()?).unwrap_or_default(),
            kv_aging: overrides.kv_aging.unwrap_or(requantize),
            kv_window: overrides.kv_window.or(settings.kv_window()?.and_then(to_usize)),
            rope_scaling: overrides.rope_scaling.or(scaling),
            context: context.or(Some(DEFAULT_CONTEXT as usize)),
            resident: overrides.resident.or(settings.resident_budget()?.map(|mb| mb * MB)),
            memory: overrides.memory,
            context_bytes: settings.context_memory()?.map(|mb| mb * MB),
            small_pages: !settings.large_pages()?,
            lora: self.adapters_of(model)?,
            mmproj: overrides.mmproj.clone(),
            draft: self.draft_model(model, &settings.draft_model()?)?,
            draft_required: overrides.draft_model.is_some() || own_draft,
            draft_block: self.speculate()? == Speculate::Lookup,
            quantize: overrides
                .quantize
                .clone()
                .map(|dtype| Quantize { dtype, folder: on_load::folder(&dirs.data).display().to_string() }),
        })
    }

    /// The adapters that a model is loaded with: that of its fine-tuning run, and those of flags.
    fn adapters_of(&self, model: &str) -> Result<Vec<String>> {
        let own = self.adapter_of(model).map(|folder| folder.display().to_string());
        Ok(own.into_iter().chain(self.ctx().settings.overrides().lora.iter().cloned()).collect())
    }

    /// Other programs' models are listed.
    pub(crate) fn shows_other_programs(&self) -> Result<bool> {
        self.ctx().settings.other_programs()
    }

    fn speculate(&self) -> Result<Speculate> {
        let settings = &self.ctx().settings;
        let overrides = settings.overrides();
        let named = overrides.draft_model.as_ref().map(|_| Speculate::Draft);
        match overrides.speculate.or(named) {
            Some(speculate) => Ok(speculate),
            None => Ok(settings.speculation()?.unwrap_or_default()),
        }
    }

    /// How answers are guessed ahead.
    pub(crate) fn speculation(&self) -> Result<Option<Speculation>> {
        let length = DraftLength::Paying(
            self.ctx().settings.overrides().draft_max.unwrap_or(DraftLength::DEFAULT_TOKENS),
        );
        Ok(match self.speculate()? {
            Speculate::Off => None,
            Speculate::Lookup => Some(Speculation { guesses: DraftSource::Lookup, length }),
            Speculate::Draft => Some(Speculation { guesses: DraftSource::Model, length }),
        })
    }

    /// The draft model of a model. None: there is none to draft with; a model drafts for itself only where a flag says so.
    fn draft_model(&self, model: &str, stored: &str) -> Result<Option<ModelRef>> {
        match self.speculate()? {
            Speculate::Off | Speculate::Lookup => return Ok(None),
            Speculate::Draft => {}
        }
        let overrides = self.ctx().settings.overrides();
        let id = overrides.draft_model.as_deref().unwrap_or(stored);
        if id == model && overrides.draft_model.is_none() {
            return Ok(None);
        }
        if id.is_empty() {
            return Err(Error::input(
                "setting.draft_model",
                "Speculative decoding needs a draft model, but none is selected.",
                "Choose one under \"Smaller model that source\" or by --draft-model, or let source come from the text.",
            ));
        }
        match self.responder(id) {
            Ok(Responder::Local(reference)) => Ok(Some(reference)),
            // As with the default model, a setting may name a model that was removed since.
            Err(error) if overrides.draft_model.is_none() => {
                tracing::info!(code = error.code(), "no draft model: {error}");
                Ok(None)
            }
            Err(error) => Err(error),
            Ok(Responder::Remote(reference)) => Err(inference::model_file::not_here(&reference.id)),
        }
    }

    pub(crate) fn apply_log_level(&self) -> Result<()> {
        if let Some(logging) = &self.running.logging {
            logging.set_level(&self.ctx().settings.log_level()?);
        }
        Ok(())
    }
}

/// Reads a template's source from its file. Errors name the file.
pub fn template_file(path: &Path) -> Result<String> {
    let wrong = |code: &str, cause: String| {
        let message = format!("The chat template {}: {cause}.", path.display());
        Error::input(code, message, "Give a file with a Jinja template.")
    };
    let bytes = io::read_regular_file(path, MAX_TEMPLATE_BYTES)
        .map_err(|error| wrong("template.unreadable", error.source.to_string()))?;
    let source = String::from_utf8(bytes)
        .map_err(|_| wrong("template.unreadable", "it is not UTF-8 text".to_owned()))?;
    match prompt::render::check_template(&source) {
        Ok(()) => Ok(source),
        Err(error) => Err(wrong(error.code(), error.message().to_owned())),
    }
}

fn to_usize(n: u64) -> Option<usize> {
    usize::try_from(n).ok()
}
