//! Loads a tokenizer from a model file, or from a vocabulary alone.

use std::path::Path;

use weights::{Container, Metadata, WeightFile};

use super::gguf::GgufVocab;
use super::json::SideFiles;
use super::vocab::broken;
use super::{TokenId, Tokenizer};
use crate::error::{EngineError, Result};

/// The largest known tokenizer files are below 40 MB.
const MAX_BYTES: u64 = 1 << 30;

impl Tokenizer {
    /// Loads the tokenizer of a model file: from GGUF metadata, or `tokenizer.json` beside it.
    ///
    /// Errors: `tokenizer.*`.
    pub fn from_weights(file: &WeightFile) -> Result<Self> {
        match file.container() {
            Container::Gguf { .. } => Self::from_gguf_vocab(&gguf_vocab(file.metadata())?),
            Container::Safetensors => {
                let Some(bytes) = file.side_file("tokenizer.json") else {
                    let model = file.side_file("tokenizer.model").ok_or_else(|| missing(file.path()))?;
                    return Self::from_sentencepiece(model);
                };
                let config = file.metadata().config();
                let side = SideFiles {
                    tokenizer_config: file.side_file("tokenizer_config.json"),
                    generation_config: file.side_file("generation_config.json"),
                    config: Some(config).filter(|config| !config.is_null()),
                };
                Self::from_json(bytes, side)
            }
        }
    }

    /// Loads a GGUF file (a vocabulary alone will do), a directory with a `tokenizer.json`, a `tokenizer.json`, or a
    /// SentencePiece `.model`.
    ///
    /// Errors: `tokenizer.*`, `weights.*`.
    pub fn from_path(path: &Path) -> Result<Self> {
        let json = path.join("tokenizer.json");
        if path.is_dir() && !weights::is_model_folder(path) && json.exists() {
            return Self::from_path(&json);
        }
        let is_json = path.extension().is_some_and(|end| end == "json");
        let is_sentencepiece = path.extension().is_some_and(|end| end == "model");
        if !is_json && !is_sentencepiece {
            return Self::from_weights(&WeightFile::open(path)?);
        }
        let bytes = read(path)?;
        if is_sentencepiece {
            return Self::from_sentencepiece(&bytes);
        }
        let beside = |name| path.parent().and_then(|dir| read(&dir.join(name)).ok());
        let (tokenizer_config, generation_config) =
            (beside("tokenizer_config.json"), beside("generation_config.json"));
        let side = SideFiles {
            tokenizer_config: tokenizer_config.as_deref(),
            generation_config: generation_config.as_deref(),
            config: None,
        };
        Self::from_json(&bytes, side)
    }
}

fn missing(path: &Path) -> EngineError {
    EngineError::new(
        "tokenizer.missing",
        format!("{}: no tokenizer.json beside the weights", path.display()),
        "Put the model's tokenizer.json into the same folder.",
    )
}

fn read(path: &Path) -> Result<Vec<u8>> {
    let unreadable = |cause: String| {
        EngineError::new(
            "tokenizer.unreadable",
            format!("{}: {cause}", path.display()),
            "Check the path and the file's permissions.",
        )
    };
    io::read_regular_file(path, MAX_BYTES).map_err(|error| unreadable(error.source.to_string()))
}

/// Reads the keys `tokenizer.ggml.*`.
///
/// Errors: a key of the wrong type, or no tokens.
fn gguf_vocab(metadata: &Metadata) -> Result<GgufVocab<'_>> {
    let key = |name: &str| format!("tokenizer.ggml.{name}");
    let id = |name: &str| -> Result<Option<TokenId>> { Ok(metadata.opt_u32(&key(name))?) };
    let flag = |name: &str| -> Result<Option<bool>> { Ok(metadata.opt_bool(&key(name))?) };
    let mut vocab = GgufVocab {
        model: metadata.str(&key("model"))?,
        pre: metadata.opt_str(&key("pre"))?,
        tokens: metadata.array(&key("tokens"))?.byte_strs()?.collect(),
        bos: id("bos_token_id")?,
        eos: id("eos_token_id")?,
        unknown: id("unknown_token_id")?,
        class: id("cls_token_id")?,
        // The format's own spelling.
        separator: id("seperator_token_id")?,
        ends: id("eot_token_id")?.into_iter().chain(id("eom_token_id")?).collect(),
        add_bos: flag("add_bos_token")?,
        add_eos: flag("add_eos_token")?,
        add_space_prefix: flag("add_space_prefix")?,
        remove_extra_whitespaces: flag("remove_extra_whitespaces")?.unwrap_or(false),
        ..GgufVocab::default()
    };
    let n_tokens = vocab.tokens.len();
    vocab.unknown = vocab.unknown.filter(|id| (*id as usize) < n_tokens);
    if let Some(scores) = metadata.opt_array(&key("scores"))? {
        vocab.scores = scores.f32s()?;
    }
    if let Some(kinds) = metadata.opt_array(&key("token_type"))? {
        vocab.kinds = kinds.i32s()?.into_iter().map(i64::from).collect();
    }
    if let Some(charsmap) = metadata.opt_array(&key("precompiled_charsmap"))? {
        // Bytes, which some files hold as signed numbers.
        let byte = |number: i32| {
            u8::try_from(number).ok().or_else(|| i8::try_from(number).ok().map(i8::cast_unsigned))
        };
        let bytes: Option<Vec<u8>> = charsmap.i32s()?.into_iter().map(byte).collect();
        vocab.charsmap = bytes
            .ok_or_else(|| broken("tokenizer.ggml.precompiled_charsmap holds numbers that are no bytes"))?;
    }
    if let Some(merges) = metadata.opt_array(&key("merges"))? {
        vocab.merges = merges.byte_strs()?.collect();
    }
    Ok(vocab)
}
