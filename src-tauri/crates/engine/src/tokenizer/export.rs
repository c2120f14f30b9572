//! Exports the tokenizer of a safetensors folder to GGUF keys, verified by reading it back.
//!
//! A tokenizer that would encode texts differently is refused.

use serde_json::Value;
use weights::WeightFile;
use weights::write::OwnedValue;

use super::gguf::GgufVocab;
use super::pre::{NamedPreTokenizer, Splitter};
use super::sentencepiece::SentencePieceModel;
use super::vocab::{Decoding, TokenKind};
use super::{MergeModel, Special, TokenId, Tokenizer};
use crate::error::{EngineError, Result};

/// Texts that distinguish pre-tokenizers: contractions, digits, runs of spaces and lines, scripts, punctuation, code.
const PROBES: &[&str] = &[
    "Hello world! It's 1 test, we'LL see; THEY'RE 12 of 123, 1234 and 1234567.89.",
    "  two spaces,   three\n\n\nlines\r\n\ttab \n end  ",
    "fooBar HTTPServer snake_case x+=1; if(a!=b){return \"c\";} // done\n\n    indented",
    "Größe über naïve cafe\u{301} Å \u{212B} Ελληνικά Русский עברית العربية हिन्दी ไทย 한국어 日本語 中文字符，。！",
    "emoji 👩‍💻🎉 — “quotes” … ½ ² ٣٤٥ \u{a0}nbsp\u{3000}wide ~!@#$%^&*()[]{}<>|`'",
    "a",
    " a",
    "",
    "<|im_end|> </s> <eos> [INST] \u{2581}mark <0x0A>",
];

/// Returns the GGUF number of a token type.
fn number(kind: TokenKind) -> i32 {
    match kind {
        TokenKind::Normal => 1,
        TokenKind::Unknown => 2,
        TokenKind::Control => 3,
        TokenKind::UserDefined => 4,
        TokenKind::Unused => 5,
        TokenKind::Byte => 6,
    }
}

/// A vocabulary with owned texts.
#[derive(Default)]
struct OwnedVocab {
    model: &'static str,
    pre: String,
    tokens: Vec<String>,
    kinds: Vec<i32>,
    scores: Vec<f32>,
    merges: Vec<String>,
    unknown: Option<TokenId>,
    add_space_prefix: Option<bool>,
    remove_extra_whitespaces: bool,
}

/// Returns the keys `tokenizer.ggml.*` of a folder's tokenizer, for an embedding of `n_vocab` rows.
///
/// Errors: `convert.tokenizer` if GGUF cannot express it.
pub fn gguf_pairs(file: &WeightFile, n_vocab: usize) -> Result<Vec<(String, OwnedValue)>> {
    let source = Tokenizer::from_weights(file)?;
    let mut owned = match (file.side_file("tokenizer.json"), file.side_file("tokenizer.model")) {
        (Some(json), model) => from_json(&source, json, model)?,
        (None, Some(model)) => from_sentencepiece(model)?,
        (None, None) => return Err(refused("there is no tokenizer beside the weights")),
    };
    if owned.tokens.len() > n_vocab {
        let n = owned.tokens.len();
        return Err(refused(&format!("it has {n} tokens, the embedding {n_vocab} rows")));
    }
    for id in owned.tokens.len()..n_vocab {
        owned.tokens.push(format!("[PAD{id}]"));
        owned.kinds.push(number(TokenKind::Unused));
        owned.scores.extend(owned.scores.last().is_some().then_some(UNREACHED));
    }
    let roles = ExportRoles::of(&source);
    let back = Tokenizer::from_gguf_vocab(&owned.borrowed(&roles))?;
    compare(&source, &back)?;
    Ok(owned.into_pairs(&roles))
}

fn refused(why: &str) -> EngineError {
    EngineError::new(
        "convert.tokenizer",
        format!("the tokenizer cannot be written into a GGUF file: {why}"),
        "Use the model as it is, or get it as a GGUF file.",
    )
}

/// Score of a token that merging does not reach.
const UNREACHED: f32 = -1e6;

/// Special tokens of the keys.
struct ExportRoles {
    bos: Option<TokenId>,
    eos: Option<TokenId>,
    /// End of turn, end of message.
    ends: [Option<TokenId>; 2],
    add_bos: bool,
    add_eos: bool,
}

impl ExportRoles {
    fn of(source: &Tokenizer) -> Self {
        let mut others = source.eog.iter().copied().filter(|id| Some(*id) != source.eos);
        Self {
            bos: source.bos,
            eos: source.eos,
            ends: [others.next(), others.next()],
            add_bos: source.bos.is_some() && source.before.first() == source.bos.as_ref(),
            add_eos: source.eos.is_some() && source.after.first() == source.eos.as_ref(),
        }
    }
}

impl OwnedVocab {
    fn borrowed<'a>(&'a self, roles: &ExportRoles) -> GgufVocab<'a> {
        GgufVocab {
            model: self.model,
            pre: Some(&self.pre),
            tokens: self.tokens.iter().map(|text| text.as_bytes()).collect(),
            scores: self.scores.clone(),
            kinds: self.kinds.iter().map(|&kind| i64::from(kind)).collect(),
            merges: self.merges.iter().map(|both| both.as_bytes()).collect(),
            bos: roles.bos,
            eos: roles.eos,
            unknown: self.unknown,
            class: None,
            separator: None,
            ends: roles.ends.iter().copied().flatten().collect(),
            add_bos: Some(roles.add_bos),
            add_eos: Some(roles.add_eos),
            add_space_prefix: self.add_space_prefix,
            remove_extra_whitespaces: self.remove_extra_whitespaces,
            charsmap: Vec::new(),
        }
    }

    fn into_pairs(self, roles: &ExportRoles) -> Vec<(String, OwnedValue)> {
        let mut pairs = Vec::new();
        let mut set = |key: &str, value| pairs.push((format!("tokenizer.ggml.{key}"), value));
        set("model", OwnedValue::Str(self.model.into()));
        set("pre", OwnedValue::Str(self.pre));
        set("tokens", OwnedValue::Strs(self.tokens));
        if !self.scores.is_empty() {
            set("scores", OwnedValue::F32s(self.scores));
        }
        set("token_type", OwnedValue::I32s(self.kinds));
        if !self.merges.is_empty() {
            set("merges", OwnedValue::Strs(self.merges));
        }
        let ids = [
            ("bos_token_id", roles.bos),
            ("eos_token_id", roles.eos),
            ("unknown_token_id", self.unknown),
            ("eot_token_id", roles.ends[0]),
            ("eom_token_id", roles.ends[1]),
        ];
        for (key, id) in ids {
            id.into_iter().for_each(|id| set(key, OwnedValue::U32(id)));
        }
        set("add_bos_token", OwnedValue::Bool(roles.add_bos));
        set("add_eos_token", OwnedValue::Bool(roles.add_eos));
        if let Some(prefix) = self.add_space_prefix {
            set("add_space_prefix", OwnedValue::Bool(prefix));
        }
        if self.remove_extra_whitespaces {
            set("remove_extra_whitespaces", OwnedValue::Bool(true));
        }
        pairs
    }
}

/// Checks that every probe has the same ids and these the same text, and that the same tokens end a reply.
fn compare(source: &Tokenizer, back: &Tokenizer) -> Result<()> {
    for text in PROBES {
        for special in [Special::Plain, Special::Parse] {
            let (ours, theirs) = (source.encode(text, special), back.encode(text, special));
            if ours != theirs {
                return Err(refused(&format!("{text:?} would be encoded differently")));
            }
            if source.decode(&ours) != back.decode(&ours) {
                return Err(refused(&format!("the tokens of {text:?} would be decoded differently")));
            }
        }
    }
    if (source.bos, source.eos, &source.eog) != (back.bos, back.eos, &back.eog) {
        return Err(refused("more tokens end a reply than GGUF has keys for"));
    }
    match source.add_special(Vec::new()) == back.add_special(Vec::new()) {
        true => Ok(()),
        false => Err(refused("it adds more tokens to a text than BOS and EOS")),
    }
}

fn from_json(source: &Tokenizer, json: &[u8], model: Option<&[u8]>) -> Result<OwnedVocab> {
    let json: Value = serde_json::from_slice(json).map_err(|error| refused(&error.to_string()))?;
    let MergeModel::Bpe { splitter, .. } = &source.merging else {
        return model.map_or_else(
            || Err(refused("a Unigram tokenizer also needs its tokenizer.model")),
            from_sentencepiece,
        );
    };
    let merges = json["model"]["merges"].as_array().map_or(&[][..], Vec::as_slice);
    let merges = merges.iter().map(merge).collect::<Option<Vec<_>>>();
    let merges = merges.ok_or_else(|| refused("its merges are not pairs of texts"))?;
    match source.vocab.decoding {
        Decoding::ByteLevel => byte_level(source, splitter, merges, &json),
        Decoding::SentencePiece { .. } => match model {
            Some(model) => from_sentencepiece(model),
            None => scored(source, &merges, &json),
        },
    }
}

/// Reads a merge, in either spelling of a tokenizer.json.
fn merge(value: &Value) -> Option<(String, String)> {
    match value {
        Value::String(both) => {
            let (left, right) = super::json::split_merge(both.as_bytes());
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
            Some((text(left)?, text(right)?))
        }
        Value::Array(pair) => match pair.as_slice() {
            [Value::String(left), Value::String(right)] => Some((left.clone(), right.clone())),
            _ => None,
        },
        _ => None,
    }
}

/// Returns texts and types of all tokens.
///
/// Errors: invalid UTF-8.
fn tokens(source: &Tokenizer) -> Result<(Vec<String>, Vec<i32>)> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|_| refused("a token is not UTF-8"));
    let all = source.vocab.ids().map(|(_, bytes, kind)| Ok((text(bytes)?, number(kind))));
    Ok(all.collect::<Result<Vec<_>>>()?.into_iter().unzip())
}

fn byte_level(
    source: &Tokenizer,
    splitter: &Splitter,
    merges: Vec<(String, String)>,
    json: &Value,
) -> Result<OwnedVocab> {
    let ignore_merges = json["model"]["ignore_merges"].as_bool().unwrap_or(false);
    let named = NamedPreTokenizer::names().find(|name| {
        NamedPreTokenizer::find(Some(name))
            .is_ok_and(|pre| pre.ignore_merges == ignore_merges && same_pieces(splitter, &pre.splitter))
    });
    let pre = named.ok_or_else(|| refused("GGUF has no name for its pre-tokenizer"))?.to_owned();
    let (tokens, kinds) = tokens(source)?;
    let merges = merges.into_iter().map(|(left, right)| format!("{left} {right}")).collect();
    Ok(OwnedVocab { model: "gpt2", pre, tokens, kinds, merges, ..OwnedVocab::default() })
}

fn same_pieces(a: &Splitter, b: &Splitter) -> bool {
    let pieces = |splitter: &Splitter, text: &str, begins: bool| {
        let mut all = Vec::new();
        splitter.for_each(text, begins, |_, piece| all.push(piece.to_owned()));
        all
    };
    PROBES.iter().all(|text| [true, false].iter().all(|&at| pieces(a, text, at) == pieces(b, text, at)))
}

/// Converts merge ranks to SentencePiece scores: the earlier the merge, the higher.
fn scored(source: &Tokenizer, merges: &[(String, String)], json: &Value) -> Result<OwnedVocab> {
    let (tokens, kinds) = tokens(source)?;
    let mut scores = vec![UNREACHED; tokens.len()];
    for (rank, (left, right)) in merges.iter().enumerate().rev() {
        if let Some(id) = source.vocab.find(format!("{left}{right}").as_bytes()) {
            scores[id as usize] = -(rank as f32);
        }
    }
    let unknown = json["model"]["unk_token"].as_str().and_then(|text| source.vocab.find_any(text));
    let pre = "default".to_owned();
    let add_space_prefix = Some(first_has_mark(source));
    Ok(OwnedVocab {
        model: "llama",
        pre,
        tokens,
        kinds,
        scores,
        unknown,
        add_space_prefix,
        ..OwnedVocab::default()
    })
}

/// Returns whether a space is added before a text.
fn first_has_mark(source: &Tokenizer) -> bool {
    let first = source.encode("a", Special::Plain).first().copied();
    first.is_some_and(|id| source.vocab.text(id).starts_with("▁".as_bytes()))
}

fn from_sentencepiece(model: &[u8]) -> Result<OwnedVocab> {
    let description = SentencePieceModel::parse(model)?;
    if !description.charsmap.is_empty() && description.is_unigram {
        return Err(refused("it normalizes texts with a custom table"));
    }
    let mut owned = OwnedVocab {
        model: if description.is_unigram { "t5" } else { "llama" },
        pre: "default".into(),
        unknown: description.unknown,
        add_space_prefix: Some(description.prefix),
        remove_extra_whitespaces: description.collapse,
        ..OwnedVocab::default()
    };
    for (text, score, kind) in &description.pieces {
        let text = std::str::from_utf8(text).map_err(|_| refused("a token is not UTF-8"))?;
        owned.tokens.push(match kind {
            TokenKind::UserDefined => text.replace('▁', " "),
            TokenKind::Normal
            | TokenKind::Unknown
            | TokenKind::Control
            | TokenKind::Unused
            | TokenKind::Byte => text.to_owned(),
        });
        owned.kinds.push(number(*kind));
        owned.scores.push(*score);
    }
    Ok(owned)
}
