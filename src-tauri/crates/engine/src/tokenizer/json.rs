//! Builds a tokenizer from `tokenizer.json`, `tokenizer_config.json` and `generation_config.json`.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use tokenizers::{NormalizerWrapper, PreTokenizerWrapper};

use super::added::AddedToken;
use super::bpe::{self, Bpe, BpeOptions};
use super::pre::Splitter;
use super::restarts::restart_points;
use super::source::{TokenRoles, misnamed_marks};
use super::unigram::Unigram;
use super::vocab::{Decoding, TokenKind, Vocab, broken, parse_byte};
use super::wordpiece::{WORD_START, WordPiece};
use super::{MergeModel, TokenId, Tokenizer};
use crate::error::{EngineError, Result};

#[derive(Deserialize)]
struct TokenizerJson {
    #[serde(default)]
    added_tokens: Vec<AddedTokenEntry>,
    normalizer: Option<Value>,
    pre_tokenizer: Option<Value>,
    post_processor: Option<Value>,
    decoder: Option<Value>,
    model: ModelJson,
}

#[derive(Deserialize)]
struct AddedTokenEntry {
    id: TokenId,
    content: String,
    #[serde(default)]
    single_word: bool,
    #[serde(default)]
    lstrip: bool,
    #[serde(default)]
    rstrip: bool,
    #[serde(default)]
    special: bool,
}

#[derive(Deserialize)]
struct ModelJson {
    #[serde(rename = "type")]
    kind: Option<String>,
    vocab: VocabJson,
    #[serde(default)]
    merges: Vec<MergeJson>,
    unk_token: Option<String>,
    unk_id: Option<usize>,
    #[serde(default)]
    fuse_unk: bool,
    #[serde(default)]
    byte_fallback: bool,
    #[serde(default)]
    ignore_merges: bool,
    /// What a token that continues a word begins with (WordPiece).
    continuing_subword_prefix: Option<String>,
}

/// A merge, in either spelling.
#[derive(Deserialize)]
#[serde(untagged)]
enum MergeJson {
    Pair(String, String),
    Joined(String),
}

/// Text and id (BPE), or text and score by id (Unigram).
enum VocabJson {
    Ids(Vec<(String, TokenId)>),
    Scores(Vec<(String, f64)>),
}

impl<'de> Deserialize<'de> for VocabJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct VocabVisitor;
        impl<'de> Visitor<'de> for VocabVisitor {
            type Value = VocabJson;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a map of ids or a list of scores")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<VocabJson, A::Error> {
                let mut tokens = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    tokens.push(entry);
                }
                Ok(VocabJson::Ids(tokens))
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<VocabJson, A::Error> {
                let mut tokens = Vec::new();
                while let Some(entry) = seq.next_element()? {
                    tokens.push(entry);
                }
                Ok(VocabJson::Scores(tokens))
            }
        }
        deserializer.deserialize_any(VocabVisitor)
    }
}

/// Files beside a `tokenizer.json` with further settings.
#[derive(Debug, Clone, Copy, Default)]
pub struct SideFiles<'a> {
    pub tokenizer_config: Option<&'a [u8]>,
    pub generation_config: Option<&'a [u8]>,
    pub config: Option<&'a Value>,
}

/// Ids may have gaps; one this large is damage.
const MAX_MISSING_IDS: usize = 1 << 16;

impl Tokenizer {
    pub(super) fn from_json(bytes: &[u8], side: SideFiles<'_>) -> Result<Self> {
        let mut file: TokenizerJson =
            serde_json::from_slice(bytes).map_err(|e| broken(format!("tokenizer.json: {e}")))?;
        let is_wordpiece = file.model.kind.as_deref() == Some("WordPiece");
        let decoding = match is_wordpiece {
            true => Decoding::SentencePiece { strips_space: true },
            false => decoding(file.decoder.as_ref(), file.pre_tokenizer.as_ref()),
        };
        if is_wordpiece {
            mark_word_starts(&mut file);
        }
        let splitter = splitter(file.normalizer, file.pre_tokenizer, decoding)?;
        let (mut vocab, mut added) = vocabulary(&file.model, file.added_tokens, decoding)?;
        let marks = misnamed_marks(&vocab);
        if !marks.is_empty() {
            marks.iter().for_each(|id| vocab.set_kind(*id, TokenKind::Control));
            vocab.reindex();
        }
        let merging = match file.model.kind.as_deref() {
            Some("Unigram") => unigram(&vocab, &file.model, splitter)?,
            Some("BPE") | None => {
                let bpe = bpe(&vocab, &file.model)?;
                MergeModel::Bpe { splitter, bpe }
            }
            Some("WordPiece") => {
                let unknown = file.model.unk_token.as_deref().and_then(|text| vocab.find_any(text));
                if unknown.is_none() {
                    return Err(broken("tokenizer.json: a WordPiece model without its unknown token"));
                }
                MergeModel::WordPiece { splitter, wordpiece: WordPiece { unknown } }
            }
            Some(other) => return Err(unsupported(other)),
        };
        let roles = roles(&vocab, file.post_processor.as_ref(), side);
        for token in &mut added {
            let has_role = roles.eos == Some(token.id) || roles.bos == Some(token.id);
            token.is_control |= has_role || marks.contains(&token.id);
        }
        Ok(Self::assemble(vocab, merging, added, roles))
    }
}

/// Spells WordPiece's tokens as GGUF files do: those that begin a word with `▁`, those that continue one without a mark.
fn mark_word_starts(file: &mut TokenizerJson) {
    let prefix = file.model.continuing_subword_prefix.as_deref().unwrap_or("##");
    let VocabJson::Ids(tokens) = &mut file.model.vocab else { return };
    for (text, id) in tokens {
        let is_special = file.added_tokens.iter().any(|added| added.id == *id);
        match text.strip_prefix(prefix) {
            _ if is_special => {}
            Some(rest) => *text = rest.to_owned(),
            None => text.insert(0, WORD_START),
        }
    }
}

fn unsupported(kind: &str) -> EngineError {
    EngineError::new(
        "tokenizer.unsupported",
        format!("a tokenizer of kind `{kind}` is not supported"),
        "Choose a model with a BPE, SentencePiece, Unigram or WordPiece tokenizer.",
    )
}

/// Returns texts and types by id, including added tokens.
fn vocabulary(
    model: &ModelJson,
    added: Vec<AddedTokenEntry>,
    decoding: Decoding,
) -> Result<(Vocab, Vec<AddedToken>)> {
    let mut texts: Vec<(&str, TokenId)> = match &model.vocab {
        VocabJson::Ids(tokens) => tokens.iter().map(|(text, id)| (text.as_str(), *id)).collect(),
        VocabJson::Scores(tokens) => (0..).zip(tokens).map(|(id, (text, _))| (text.as_str(), id)).collect(),
    };
    let n_known = texts.len();
    texts.extend(added.iter().map(|token| (token.content.as_str(), token.id)));
    let n = texts.iter().map(|(_, id)| *id as usize + 1).max().unwrap_or(0);
    if n > texts.len() + MAX_MISSING_IDS {
        return Err(broken(format!("tokenizer.json: id {} but only {} tokens", n - 1, texts.len())));
    }
    let mut tokens: Vec<(&str, TokenKind)> = vec![("", TokenKind::Unused); n];
    for (index, (text, id)) in texts.iter().enumerate() {
        let kind = match added.get(index.wrapping_sub(n_known)) {
            Some(token) if token.special => TokenKind::Control,
            Some(_) => TokenKind::UserDefined,
            None if model.byte_fallback && parse_byte(text.as_bytes()).is_some() => TokenKind::Byte,
            None => TokenKind::Normal,
        };
        tokens[*id as usize] = (text, kind);
    }
    let scores = match &model.vocab {
        VocabJson::Ids(_) => Vec::new(),
        VocabJson::Scores(scored) => {
            let score = |at: usize| scored.get(at).map_or(0.0, |(_, score)| *score as f32);
            (0..n).map(score).collect()
        }
    };
    let vocab = Vocab::new(tokens.iter().map(|(text, kind)| (text.as_bytes(), *kind)), scores, decoding)?;
    let added = added
        .into_iter()
        .map(|token| AddedToken {
            takes_left: token.lstrip,
            takes_right: token.rstrip,
            single_word: token.single_word,
            ..AddedToken::new(&token.content, token.id, token.special)
        })
        .collect();
    Ok((vocab, added))
}

fn bpe(vocab: &Vocab, model: &ModelJson) -> Result<Bpe> {
    let options = BpeOptions {
        ignore_merges: model.ignore_merges,
        byte_fallback: model.byte_fallback,
        unknown: model.unk_token.as_deref().and_then(|text| vocab.find_any(text)),
        fuse_unknown: model.fuse_unk,
    };
    let merges = model.merges.iter().map(|merge| match merge {
        MergeJson::Pair(left, right) => (left.as_bytes(), right.as_bytes()),
        MergeJson::Joined(both) => split_merge(both.as_bytes()),
    });
    bpe::check_merges(vocab, merges.clone(), "merges of tokenizer.json")?;
    Ok(Bpe::new(vocab, merges, options))
}

/// `"Ġ t"` → `("Ġ", "t")`. The left part is never empty, since a token may be a space.
pub(super) fn split_merge(both: &[u8]) -> (&[u8], &[u8]) {
    let space = both.iter().skip(1).position(|b| *b == b' ').map(|at| at + 1);
    space.map_or((both, &[]), |at| (&both[..at], &both[at + 1..]))
}

fn unigram(vocab: &Vocab, model: &ModelJson, splitter: Splitter) -> Result<MergeModel> {
    let VocabJson::Scores(tokens) = &model.vocab else {
        return Err(broken("tokenizer.json: a Unigram vocabulary needs scores"));
    };
    if model.unk_id.is_some_and(|id| id >= tokens.len()) {
        return Err(broken("tokenizer.json: the unknown token is outside the vocabulary"));
    }
    let unknown = model.unk_id.and_then(|id| TokenId::try_from(id).ok());
    Ok(MergeModel::Unigram { splitter, unigram: Unigram::new(vocab, unknown) })
}

fn splitter(normalizer: Option<Value>, pre_tokenizer: Option<Value>, decoding: Decoding) -> Result<Splitter> {
    let bad = |error| broken(format!("tokenizer.json: {error}"));
    let normalizer: Option<NormalizerWrapper> =
        normalizer.map(serde_json::from_value).transpose().map_err(bad)?;
    let inner = pre_tokenizer.clone().filter(mentions_first).map(never_first);
    let inner: Option<PreTokenizerWrapper> = inner.map(serde_json::from_value).transpose().map_err(bad)?;
    let pre_tokenizer: Option<PreTokenizerWrapper> =
        pre_tokenizer.map(serde_json::from_value).transpose().map_err(bad)?;
    let restarts = restart_points(normalizer.as_ref(), pre_tokenizer.as_ref(), decoding);
    Ok(Splitter { normalizer, pre_tokenizer, inner, restarts })
}

/// Returns whether a space is added only before the first piece: text after an added token is split without it.
fn mentions_first(value: &Value) -> bool {
    match value {
        Value::Object(map) => {
            map.get("prepend_scheme").is_some_and(|scheme| scheme == "first")
                || map.values().any(mentions_first)
        }
        Value::Array(values) => values.iter().any(mentions_first),
        _ => false,
    }
}

fn never_first(mut value: Value) -> Value {
    match &mut value {
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                if key == "prepend_scheme" && value == "first" {
                    *value = Value::from("never");
                }
                *value = never_first(value.take());
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| *value = never_first(value.take())),
        _ => {}
    }
    value
}

/// Byte-level if decoder or pre-tokenizer say so, else SentencePiece.
fn decoding(decoder: Option<&Value>, pre_tokenizer: Option<&Value>) -> Decoding {
    let names = |value: Option<&Value>, name| value.is_some_and(|value| mentions(value, name));
    if names(decoder, "ByteLevel") || (decoder.is_none() && names(pre_tokenizer, "ByteLevel")) {
        return Decoding::ByteLevel;
    }
    let strips_space = names(decoder, "Strip") || names(decoder, "Metaspace");
    Decoding::SentencePiece { strips_space }
}

/// Returns whether some part of `value` has this `type`.
fn mentions(value: &Value, name: &str) -> bool {
    match value {
        Value::Object(map) => {
            map.get("type").is_some_and(|kind| kind == name)
                || map.values().any(|value| mentions(value, name))
        }
        Value::Array(values) => values.iter().any(|value| mentions(value, name)),
        _ => false,
    }
}

fn roles(vocab: &Vocab, post_processor: Option<&Value>, side: SideFiles<'_>) -> TokenRoles {
    let parse = |bytes: Option<&[u8]>| bytes.and_then(|bytes| serde_json::from_slice::<Value>(bytes).ok());
    let config = parse(side.tokenizer_config).unwrap_or_default();
    let generation = parse(side.generation_config).unwrap_or_default();
    let named = |key: &str| {
        let token = &config[key];
        let text = token.as_str().or_else(|| token["content"].as_str())?;
        vocab.find_any(text)
    };
    let numbered = |key: &str| -> Vec<TokenId> {
        let both = [Some(&generation), side.config];
        let values = both.into_iter().flatten().map(|file| &file[key]).find(|value| !value.is_null());
        let id = |value: &Value| value.as_u64().and_then(|id| TokenId::try_from(id).ok());
        values.map_or_else(Vec::new, |value| match value {
            Value::Array(ids) => ids.iter().filter_map(id).collect(),
            other => id(other).into_iter().collect(),
        })
    };
    let ends = numbered("eos_token_id");
    let bos = named("bos_token").or_else(|| numbered("bos_token_id").first().copied());
    let eos = named("eos_token").or_else(|| ends.first().copied());
    let (mut before, mut after) = post_processor.map(|value| around(vocab, value)).unwrap_or_default();
    let wants = |key: &str| config[key].as_bool();
    if post_processor.is_none() && wants("add_bos_token") == Some(true) {
        before.extend(bos);
    }
    if post_processor.is_none() && wants("add_eos_token") == Some(true) {
        after.extend(eos);
    }
    TokenRoles { bos, eos, ends, before, after }
}

/// Returns the special tokens that a template post-processor puts around one text.
fn around(vocab: &Vocab, value: &Value) -> (Vec<TokenId>, Vec<TokenId>) {
    if let Some(processors) = value["processors"].as_array() {
        let found = processors.iter().map(|value| around(vocab, value));
        return found.fold(Default::default(), |mut all: (Vec<_>, Vec<_>), (before, after)| {
            all.0.extend(before);
            all.1.extend(after);
            all
        });
    }
    let (mut before, mut after, mut passed) = (Vec::new(), Vec::new(), false);
    for item in value["single"].as_array().into_iter().flatten() {
        passed |= item.get("Sequence").is_some();
        let id = item["SpecialToken"]["id"].as_str().and_then(|text| vocab.find_any(text));
        if passed { after.extend(id) } else { before.extend(id) }
    }
    (before, after)
}
