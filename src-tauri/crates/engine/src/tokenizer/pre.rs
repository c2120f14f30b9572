//! How a text is split into pieces before anything is merged.
//!
//! The table holds the pre-tokenisers that GGUF files name, with the patterns of the models' own
//! `tokenizer.json`; the splitting itself is the `tokenizers` crate's.

use tokenizers::normalizers::NFC;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::tokenizer::{
    NormalizedString, Normalizer, OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer,
    SplitDelimiterBehavior,
};
use tokenizers::{NormalizerWrapper, PreTokenizerWrapper};

use super::vocab::broken;
use crate::error::{EngineError, Result};

/// A row of the table.
struct Pre {
    /// What GGUF files call it.
    names: &'static [&'static str],
    /// Applied one after another; every match is a piece, and so is what lies between.
    patterns: &'static [&'static str],
    ignore_merges: bool,
    /// The text is brought to NFC first.
    nfc: bool,
    add_bos: bool,
}

const PLAIN: Pre = Pre { names: &[], patterns: &[], ignore_merges: false, nfc: false, add_bos: false };

const GPT_2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const LLAMA_3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN_2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN_3_5: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const GPT_4O: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const DEEPSEEK_3: &str = r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"##;
const DIGIT: &str = r"\p{N}";

const PRE_TOKENIZERS: &[Pre] = &[
    Pre {
        names: &["default"],
        patterns: &[r"[\p{P}\$\+<=>\^\~\|]+", GPT_2, r"\p{N}+", "[0-9][0-9][0-9]"],
        ..PLAIN
    },
    Pre {
        names: &[
            "gpt-2",
            "gpt2",
            "phi-2",
            "mpt",
            "olmo",
            "jais",
            "trillion",
            "granite-docling",
            "gigachat",
            "roberta-bpe",
            "jina-es",
            "jina-de",
            "jina-v2-es",
            "jina-v2-de",
            "modern-bert",
            "a.x-4.0",
            "mellum",
        ],
        patterns: &[GPT_2],
        ..PLAIN
    },
    Pre {
        names: &["llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"],
        patterns: &[LLAMA_3],
        ignore_merges: true,
        add_bos: true,
        ..PLAIN
    },
    Pre { names: &["dbrx", "smaug-bpe", "chatglm-bpe", "glm4"], patterns: &[LLAMA_3], ..PLAIN },
    Pre { names: &["qwen2", "deepseek-r1-qwen", "megrez", "kormo"], patterns: &[QWEN_2], nfc: true, ..PLAIN },
    Pre { names: &["stablelm2", "hunyuan", "solar-open", "grok-2"], patterns: &[QWEN_2], ..PLAIN },
    Pre { names: &["qwen35"], patterns: &[QWEN_3_5], nfc: true, ..PLAIN },
    Pre {
        names: &[
            "smollm",
            "starcoder",
            "refact",
            "command-r",
            "codeshell",
            "exaone",
            "minerva-7b",
            "mellum2",
        ],
        patterns: &[DIGIT, GPT_2],
        ..PLAIN
    },
    Pre { names: &["gpt-4o", "kanana2", "minimax-m2"], patterns: &[GPT_4O], ..PLAIN },
    Pre { names: &["llama4"], patterns: &[GPT_4O], add_bos: true, ..PLAIN },
    Pre { names: &["tekken"], patterns: &[TEKKEN], ignore_merges: true, add_bos: true, ..PLAIN },
    Pre {
        names: &["deepseek-llm"],
        patterns: &[
            "[\r\n]",
            r"\s?[\p{Lu}\p{Ll}]+",
            r"\s?[!-/:-~！-／：-～‘-‟\u{3000}-。]+",
            r"\s+$",
            "[一-龥ࠀ-一가-\u{d7ff}]+",
            r"\p{N}+",
        ],
        ..PLAIN
    },
    Pre {
        names: &["deepseek-coder"],
        patterns: &["[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-\u{d7ff}]+", DIGIT],
        ..PLAIN
    },
    Pre {
        names: &["deepseek-v3", "hunyuan-dense", "joyai-llm"],
        patterns: &[r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+", DEEPSEEK_3],
        ..PLAIN
    },
    Pre { names: &["falcon"], patterns: &[r"[\p{P}\$\+<=>\^~\|`]+", GPT_2, "[0-9][0-9][0-9]"], ..PLAIN },
    Pre {
        names: &["seed-coder"],
        patterns: &[
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+",
        ],
        ..PLAIN
    },
    Pre {
        names: &["bailingmoe", "bailingmoe2", "llada-moe"],
        patterns: &[
            r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
        ],
        ..PLAIN
    },
    Pre {
        names: &["bloom", "poro-chat", "gpt3-finnish"],
        patterns: &[r" ?[^(\s|.,!?…。，、।۔،)]+"],
        ..PLAIN
    },
    Pre { names: &["viking"], patterns: &[r" ?[^(\s|.,!?…。，、।۔،)]+", DIGIT], ..PLAIN },
    Pre {
        names: &["exaone4", "exaone-moe"],
        patterns: &[
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+",
        ],
        ..PLAIN
    },
    Pre { names: &["minicpm5"], patterns: &[r"\p{N}{1,3}", LLAMA_3], ..PLAIN },
];

/// A file says nothing of its pre-tokeniser, or it calls it so: the rules of GPT-2's first followers.
const DEFAULT: &str = "default";

/// Prepares a text for merging: normalises it, then splits it.
#[derive(Debug, Clone)]
pub struct Splitter {
    pub normalizer: Option<NormalizerWrapper>,
    pub pre_tokenizer: Option<PreTokenizerWrapper>,
    /// The same for what doesn't begin the text, where that differs.
    pub inner: Option<PreTokenizerWrapper>,
}

/// What a name in the table stands for.
#[derive(Debug)]
pub struct NamedPre {
    pub splitter: Splitter,
    pub ignore_merges: bool,
    pub add_bos: bool,
}

impl NamedPre {
    /// A name of every row.
    pub fn names() -> impl Iterator<Item = &'static str> {
        PRE_TOKENIZERS.iter().filter_map(|row| row.names.first().copied())
    }

    /// `name` as in `tokenizer.ggml.pre`. Error: `tokenizer.unknown_pre`.
    pub fn find(name: Option<&str>) -> Result<Self> {
        let name = name.unwrap_or(DEFAULT);
        let row = PRE_TOKENIZERS.iter().find(|row| row.names.contains(&name)).ok_or_else(|| {
            EngineError::new(
                "tokenizer.unknown_pre",
                format!("the pre-tokeniser `{name}` is unknown"),
                "This model is newer than this program: update it, or choose another model.",
            )
        })?;
        let mut steps = Vec::new();
        for pattern in row.patterns {
            steps.push(PreTokenizerWrapper::Split(split(pattern)?));
        }
        steps.push(PreTokenizerWrapper::ByteLevel(ByteLevel::new(false, false, false)));
        let splitter = Splitter {
            normalizer: row.nfc.then_some(NormalizerWrapper::NFC(NFC)),
            pre_tokenizer: Some(PreTokenizerWrapper::Sequence(Sequence::new(steps))),
            inner: None,
        };
        Ok(Self { splitter, ignore_merges: row.ignore_merges, add_bos: row.add_bos })
    }
}

/// Every match of `pattern` is a piece, and so is what lies between.
pub fn split(pattern: &str) -> Result<Split> {
    Split::new(SplitPattern::Regex(pattern.to_string()), SplitDelimiterBehavior::Isolated, false).map_err(
        |error| broken(format!("the pattern of the pre-tokeniser is no regular expression: {error}")),
    )
}

impl Splitter {
    /// Calls `each` with every piece of `text`, in order. `begins`: nothing stands before `text`.
    pub fn for_each(&self, text: &str, begins: bool, mut each: impl FnMut(&str)) {
        let mut normalized = NormalizedString::from(text);
        if let Some(normalizer) = &self.normalizer
            && normalizer.normalize(&mut normalized).is_err()
        {
            normalized = NormalizedString::from(text);
        }
        let pre_tokenizer = match (&self.inner, begins) {
            (Some(inner), false) => Some(inner),
            _ => self.pre_tokenizer.as_ref(),
        };
        let mut pieces = PreTokenizedString::from(normalized.clone());
        if let Some(pre_tokenizer) = pre_tokenizer
            && pre_tokenizer.pre_tokenize(&mut pieces).is_err()
        {
            pieces = PreTokenizedString::from(normalized);
        }
        for (piece, _, _) in pieces.get_splits(OffsetReferential::Normalized, OffsetType::None) {
            each(piece);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, text: &str, expected: &[&str]) {
        let pre = NamedPre::find(Some(name)).expect("known");
        let mut pieces = Vec::new();
        pre.splitter.for_each(text, true, |piece| pieces.push(piece.replace('Ġ', " ").replace('Ċ', "\n")));
        assert_eq!(pieces, expected, "{name}");
    }

    #[test]
    fn every_row_compiles_and_keeps_the_text() {
        let text = "It's 12345 tests, IT'S\n\n  done\t— über 你好 \n ";
        for name in PRE_TOKENIZERS.iter().flat_map(|row| row.names) {
            let pre = NamedPre::find(Some(name)).expect("compiles");
            let mut n_bytes = 0;
            pre.splitter.for_each(text, true, |piece| n_bytes += piece.chars().count());
            assert_eq!(n_bytes, text.len(), "{name}: every byte is one character of a piece");
        }
    }

    #[test]
    fn splits_as_the_models_do() {
        check("gpt-2", "It's 123 a  b", &["It", "'s", " 123", " a", " ", " b"]);
        check("llama-bpe", "IT'S 12345\n\nx", &["IT", "'S", " ", "123", "45", "\n\n", "x"]);
        check("qwen2", "a 12", &["a", " ", "1", "2"]);
        check("smollm", "a 12", &["a", " ", "1", "2"]);
        check("gpt-4o", "helloWorld HTTPServer", &["hello", "World", " HTTPServer"]);
        check("default", "a,b 1234", &["a", ",", "b", " ", "123", "4"]);
        check("llama-bpe", "", &[]);
    }

    #[test]
    fn an_unknown_name_is_an_error() {
        let error = NamedPre::find(Some("nonesuch")).expect_err("unknown");
        assert_eq!(error.code(), "tokenizer.unknown_pre");
        assert!(NamedPre::find(None).is_ok());
    }
}
