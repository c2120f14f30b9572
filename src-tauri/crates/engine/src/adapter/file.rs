//! Adapter files: a GGUF with `general.type` "adapter", or a folder with adapter_config.json and
//! adapter_model.safetensors.

use std::path::Path;

use serde_json::Value;
use weights::{Container, TensorView, WeightFile};

use super::{AdapterBase, refused};
use crate::error::{DAMAGED, EngineError, Result};

/// An opened adapter.
pub struct Adapter {
    file: WeightFile,
    form: AdapterFormat,
}

enum AdapterFormat {
    /// An `alpha` of 0 means none.
    Gguf {
        alpha: f32,
    },
    PeftConfig(PeftConfig),
}

/// Scale settings of adapter_config.json.
struct PeftConfig {
    alpha: f64,
    /// Modules with their own alpha.
    alpha_of: Vec<(String, f64)>,
    by_root: bool,
}

/// Prefix of module names in PEFT files.
const PEFT_ROOT: &str = "base_model.model.";
const PEFT_WEIGHTS: &str = "adapter_model.safetensors";
const PEFT_CONFIG: &str = "adapter_config.json";
/// Published ones have a few KB.
const MAX_CONFIG_BYTES: u64 = 4 << 20;

impl Adapter {
    /// Opens a GGUF file, a PEFT folder, or its `.safetensors` file.
    ///
    /// Errors: those of opening weights; `adapter.*` for files that are not adapters, or of an unsupported kind.
    pub fn open(path: &Path) -> Result<Self> {
        let weights = if path.is_dir() { path.join(PEFT_WEIGHTS) } else { path.to_owned() };
        let file = WeightFile::open(&weights)?;
        let form = match file.container() {
            Container::Gguf { .. } => gguf(&file)?,
            Container::Safetensors => AdapterFormat::PeftConfig(peft(&weights.with_file_name(PEFT_CONFIG))?),
        };
        Ok(Self { file, form })
    }

    /// Opens `F[:SCALE]`. Returns the adapter and its factor, 1 by default.
    pub fn open_scaled(named: &str) -> Result<(Self, f32)> {
        if let Some((path, scale)) = named.rsplit_once(':')
            && let Ok(scale) = scale.parse()
            && !path.is_empty()
        {
            return Ok((Self::open(Path::new(path))?, scale));
        }
        Ok((Self::open(Path::new(named))?, 1.0))
    }

    /// Returns the file name.
    pub fn name(&self) -> String {
        self.file.path().file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Returns a hash of the adapter's weights and scale settings.
    pub fn fingerprint(&self) -> String {
        match &self.form {
            AdapterFormat::Gguf { .. } => self.file.fingerprint(),
            AdapterFormat::PeftConfig(PeftConfig { alpha, alpha_of, by_root }) => {
                format!("{}-{alpha}-{alpha_of:?}-{by_root}", self.file.fingerprint())
            }
        }
    }

    pub(crate) fn container(&self) -> Container {
        self.file.container()
    }

    /// Checks the family.
    ///
    /// Errors: another architecture, or a GGUF for a safetensors model: their row order may differ.
    pub(super) fn check_family(&self, base: AdapterBase<'_>) -> Result<()> {
        match (&self.form, base.container) {
            (AdapterFormat::PeftConfig(_), _) => Ok(()),
            (AdapterFormat::Gguf { .. }, Container::Safetensors) => Err(refused(
                self,
                "it is a GGUF file, but the model is not: the order of rows may differ".into(),
            )),
            (AdapterFormat::Gguf { .. }, Container::Gguf { .. }) => {
                let (own, wanted) =
                    (self.file.metadata().str("general.architecture")?, base.family.gguf_name());
                if own == wanted {
                    return Ok(());
                }
                Err(refused(self, format!("it is for {own} models, but this is a {wanted} model")))
            }
        }
    }

    pub(crate) fn tensor_names(&self) -> impl Iterator<Item = &str> {
        self.file.tensors().map(|tensor| tensor.name)
    }

    /// Returns the names of the pair that adds to the model's tensor `name`.
    fn names(&self, name: &str) -> [String; 2] {
        match &self.form {
            AdapterFormat::Gguf { .. } => [format!("{name}.lora_a"), format!("{name}.lora_b")],
            AdapterFormat::PeftConfig(_) => {
                let module = name.strip_suffix(".weight").unwrap_or(name);
                ["A", "B"].map(|which| format!("{PEFT_ROOT}{module}.lora_{which}.weight"))
            }
        }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.names(name).iter().any(|name| self.file.tensor(name).is_some())
    }

    /// Returns a [rank, in] and b [out, rank].
    ///
    /// Errors: `adapter.tensor_missing`.
    pub(crate) fn pair(&self, name: &str) -> Result<(TensorView<'_>, TensorView<'_>)> {
        let [a, b] = self.names(name);
        let get = |name: &str| {
            self.file.tensor(name).ok_or_else(|| {
                EngineError::new("adapter.tensor_missing", format!("the tensor {name} is missing"), DAMAGED)
            })
        };
        Ok((get(&a)?, get(&b)?))
    }

    /// Returns the factor on the update of the model's tensor `name`.
    pub(crate) fn scale(&self, name: &str, rank: usize) -> f32 {
        match &self.form {
            AdapterFormat::Gguf { alpha } if *alpha == 0.0 => 1.0,
            AdapterFormat::Gguf { alpha } => alpha / rank as f32,
            AdapterFormat::PeftConfig(PeftConfig { alpha, alpha_of, by_root }) => {
                let module = name.strip_suffix(".weight").unwrap_or(name);
                let own = alpha_of.iter().find(|(key, _)| {
                    module
                        .strip_suffix(key.as_str())
                        .is_some_and(|head| head.is_empty() || head.ends_with('.'))
                });
                let rank = if *by_root { (rank as f64).sqrt() } else { rank as f64 };
                (own.map_or(*alpha, |(_, alpha)| *alpha) / rank) as f32
            }
        }
    }
}

fn gguf(file: &WeightFile) -> Result<AdapterFormat> {
    let metadata = file.metadata();
    let kind = metadata.opt_str("general.type")?.unwrap_or("model");
    if kind != "adapter" {
        let message = format!("{} is a {kind}, not an adapter", file.path().display());
        return Err(EngineError::new("adapter.kind", message, "Choose the file of a LoRA adapter."));
    }
    match metadata.opt_str("adapter.type")?.unwrap_or("lora") {
        "lora" => Ok(AdapterFormat::Gguf {
            alpha: finite("adapter.lora.alpha", metadata.opt_f32("adapter.lora.alpha")?.unwrap_or(0.0))?,
        }),
        other => Err(unsupported(&format!("its kind is \"{other}\""))),
    }
}

fn peft(path: &Path) -> Result<PeftConfig> {
    let config = read(path)?;
    let flag = |key: &str| config[key].as_bool().unwrap_or(false);
    if config["peft_type"].as_str().is_some_and(|kind| kind != "LORA") {
        return Err(unsupported(&format!("its kind is {}", config["peft_type"])));
    }
    for key in ["use_dora", "lora_bias"] {
        if flag(key) {
            return Err(unsupported(key));
        }
    }
    let number = |value: &Value, key: &str| match value.as_f64() {
        Some(x) => Ok(x),
        None => {
            let message = format!("{key} of {} is {value}, not a number", path.display());
            Err(EngineError::new("adapter.config", message, DAMAGED))
        }
    };
    let pattern = config["alpha_pattern"].as_object();
    let own = pattern.into_iter().flatten().map(|(key, value)| {
        match key.contains(['*', '+', '[', '(', '\\', '^', '$', '|', '?']) {
            true => Err(unsupported(&format!("alpha_pattern \"{key}\" is not a plain name"))),
            false => Ok((key.clone(), number(value, "alpha_pattern")?)),
        }
    });
    Ok(PeftConfig {
        alpha: number(&config["lora_alpha"], "lora_alpha")?,
        alpha_of: own.collect::<Result<_>>()?,
        by_root: flag("use_rslora"),
    })
}

fn read(path: &Path) -> Result<Value> {
    let wrong = |cause: String| {
        let message = format!("{}: {cause}", path.display());
        EngineError::new("adapter.config", message, "Keep adapter_config.json beside the adapter's weights.")
    };
    let bytes =
        io::read_regular_file(path, MAX_CONFIG_BYTES).map_err(|error| wrong(error.source.to_string()))?;
    serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))
}

fn finite(key: &str, x: f32) -> Result<f32> {
    match x.is_finite() {
        true => Ok(x),
        false => Err(EngineError::new("adapter.config", format!("{key} is {x}"), DAMAGED)),
    }
}

fn unsupported(what: &str) -> EngineError {
    EngineError::new(
        "adapter.unsupported",
        format!("this adapter cannot be used: {what}"),
        "Use a plain LoRA adapter of linear layers.",
    )
}
