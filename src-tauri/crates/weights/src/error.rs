//! Errors of model files: which file, where in it, why, and what to do.

use std::fmt;

use io::Fault;
use thiserror::Error;

/// Location of a fault in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultLocation {
    /// The file as a whole, or its header.
    File,
    /// A tensor, by name.
    Tensor(String),
    /// A metadata key, or a field of config.json.
    Key(String),
}

/// Kinds of failure; each has a code and a remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// The file system reported an error.
    Io,
    /// The file is not a model.
    NotAModel,
    /// A model in an unsupported container or version.
    Unsupported,
    /// The file ends too early.
    Truncated,
    /// The file contradicts itself.
    Malformed,
    /// One of several files of a model is missing or wrong.
    Part,
    /// A number exceeds what any real model has.
    Limit,
    /// An unknown block format.
    DType,
    /// A missing key.
    KeyMissing,
    /// A key of the wrong type, or with an impossible value.
    KeyInvalid,
}

/// A model file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct WeightsError {
    /// Name of the file, as it was opened.
    pub file: String,
    /// Where in the file.
    pub place: FaultLocation,
    /// What kind of failure.
    pub kind: FaultKind,
    /// Cause as a sentence part, without file and location.
    pub cause: String,
    /// Remedy of this very case; None uses the kind's remedy.
    advice: Option<String>,
}

impl WeightsError {
    /// A failure of the file as a whole.
    pub fn new(file: impl Into<String>, kind: FaultKind, cause: impl Into<String>) -> Self {
        Self { file: file.into(), place: FaultLocation::File, kind, cause: cause.into(), advice: None }
    }

    /// Replaces the kind's remedy.
    pub fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    /// Sets the location.
    pub fn at(mut self, place: FaultLocation) -> Self {
        self.place = place;
        self
    }

    /// Stable identifier, never translated.
    pub fn code(&self) -> &'static str {
        match self.kind {
            FaultKind::Io => "weights.io",
            FaultKind::NotAModel => "weights.not_a_model",
            FaultKind::Unsupported => "weights.unsupported",
            FaultKind::Truncated => "weights.truncated",
            FaultKind::Malformed => "weights.malformed",
            FaultKind::Part => "weights.part",
            FaultKind::Limit => "weights.limit",
            FaultKind::DType => "weights.dtype",
            FaultKind::KeyMissing => "weights.key_missing",
            FaultKind::KeyInvalid => "weights.key_invalid",
        }
    }

    /// What a person can do about it.
    pub fn remedy(&self) -> String {
        if let Some(advice) = &self.advice {
            return advice.clone();
        }
        match self.kind {
            FaultKind::Io => "Check that the file exists and may be read.",
            FaultKind::NotAModel => {
                "Choose a .gguf file, or a folder with model.safetensors and config.json."
            }
            FaultKind::Unsupported => "Get the model as a GGUF file of version 2 or 3, or as safetensors.",
            FaultKind::Part => {
                "Download all files of the model into one folder, under the names they came with."
            }
            FaultKind::Truncated => "The download is probably incomplete: download the file again.",
            FaultKind::Malformed | FaultKind::Limit => {
                "The file is damaged: download it again, or take it from another source."
            }
            FaultKind::DType => "Choose another quantisation of this model, such as Q4_K_M or Q8_0.",
            FaultKind::KeyMissing | FaultKind::KeyInvalid => {
                "The file was not made for a language model of a known kind: take it from another source."
            }
        }
        .to_owned()
    }
}

impl Fault for WeightsError {
    fn code(&self) -> &str {
        self.code()
    }

    fn remedy(&self) -> String {
        self.remedy()
    }
}

impl fmt::Display for WeightsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.file)?;
        match &self.place {
            FaultLocation::File => {}
            FaultLocation::Tensor(name) => write!(f, "tensor \"{}\": ", shown(name))?,
            FaultLocation::Key(name) => write!(f, "key \"{}\": ", shown(name))?,
        }
        f.write_str(&self.cause)
    }
}

/// A name from a file made printable: escaped to one line and truncated.
pub(crate) fn shown(name: &str) -> String {
    /// Longer names are cut in messages.
    const MAX_CHARS: usize = 80;
    let mut text: String = name.chars().take(MAX_CHARS).flat_map(char::escape_debug).collect();
    if name.chars().nth(MAX_CHARS).is_some() {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_file_place_and_cause_in_one_line() {
        let error = WeightsError::new("m.gguf", FaultKind::Malformed, "overlaps")
            .at(FaultLocation::Tensor("a\nb".into()));
        assert_eq!(error.to_string(), "m.gguf: tensor \"a\\nb\": overlaps");
        let long = "x".repeat(5000);
        let error = WeightsError::new("m.gguf", FaultKind::Limit, "too long").at(FaultLocation::Key(long));
        assert!(error.to_string().len() < 200);
    }
}
