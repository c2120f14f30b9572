//! Pre-tokenization: how a text is split before merging.
//!
//! The table holds the pre-tokenizers that GGUF files name, with the patterns of the models' own `tokenizer.json`.
//! Splitting uses the `tokenizers` crate.

use tokenizers::normalizers::NFC;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::tokenizer::{
    NormalizedString, Normalizer, OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer,
    SplitDelimiterBehavior,
};
use tokenizers::{NormalizerWrapper, PreTokenizerWrapper};
use unicode_normalization::char::canonical_combining_class;
use unicode_normalization::{IsNormalized, is_nfc_quick};

use super::vocab::broken;
use crate::error::{EngineError, Result};

/// A row of the table.
struct PreTokenizerRow {
    /// Names in GGUF files.
    names: &'static [&'static str],
    /// Applied in order. Every match is a piece, and so is the text between.
    patterns: &'static [&'static str],
    ignore_merges: bool,
    /// Normalizes the text to NFC first.
    nfc: bool,
    add_bos: bool,
}

const PLAIN: PreTokenizerRow =
    PreTokenizerRow { names: &[], patterns: &[], ignore_merges: false, nfc: false, add_bos: false };

pub const GPT_2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const LLAMA_3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN_2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN_3_5: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const GPT_4O: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const DEEPSEEK_3: &str = r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"##;
const KIMI_K2: &str = r"\p{Han}+|[^\r\n\p{L}\p{N}]?[[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]&&[^\p{Han}]]*[[\p{Ll}\p{Lm}\p{Lo}\p{M}]&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]&&[^\p{Han}]]+[[\p{Ll}\p{Lm}\p{Lo}\p{M}]&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const YOUTU: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const SPARK: &str = r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+"##;
/// Runs of white space in lengths that are powers of two.
const JAIS_2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}";
/// Scripts written without spaces, and related ones.
const ASIAN: &str = "[一-\u{9fff}㐀-\u{4dbf}\u{f900}-\u{faff}\u{3040}-ゟ゠-ヿ･-ﾟ⼀-\u{2fdf}เ-\u{e7f}\u{e80}-\u{eff}ក-\u{17ff}က-႟ꩠ-ꩿꧠ-\u{a9ff}가-\u{d7af}ᄀ-ᇿ]+";
/// Letters with two cases, as of when that vocabulary was made.
const DEEPSEEK_LETTERS: &str = r"\s?[A-Za-z\x{b5}\x{c0}-\x{d6}\x{d8}-\x{f6}\x{f8}-\x{1ba}\x{1bc}-\x{1bf}\x{1c4}-\x{293}\x{295}-\x{2af}\x{370}-\x{373}\x{376}\x{377}\x{37b}-\x{37d}\x{37f}\x{386}\x{388}-\x{38a}\x{38c}\x{38e}-\x{3a1}\x{3a3}-\x{3f5}\x{3f7}-\x{481}\x{48a}-\x{52f}\x{531}-\x{556}\x{10a0}-\x{10c5}\x{13a0}-\x{13f5}\x{13f8}-\x{13fd}\x{1c90}-\x{1cba}\x{1cbd}-\x{1cbf}\x{1d00}-\x{1d2b}\x{1d6b}-\x{1d77}\x{1d79}-\x{1d9a}\x{1e00}-\x{1f15}\x{1f18}-\x{1f1d}\x{1f20}-\x{1f45}\x{1f48}-\x{1f4d}\x{1f50}-\x{1f57}\x{1f59}\x{1f5b}\x{1f5d}\x{1f5f}-\x{1f7d}\x{1f80}-\x{1fb4}\x{1fb6}-\x{1fbc}\x{1fbe}\x{1fc2}-\x{1fc4}\x{1fc6}-\x{1fcc}\x{1fd0}-\x{1fd3}\x{1fd6}-\x{1fdb}\x{1fe0}-\x{1fec}\x{1ff2}-\x{1ff4}\x{1ff6}-\x{1ffc}\x{2102}\x{2107}\x{210a}-\x{2113}\x{2115}\x{2119}-\x{211d}\x{2124}\x{2126}\x{2128}\x{212a}-\x{212d}\x{212f}-\x{2134}\x{2139}\x{213c}-\x{213f}\x{2145}-\x{2149}\x{214e}\x{2183}\x{2184}\x{2c00}-\x{2c7b}\x{2c7e}-\x{2ce4}\x{2ceb}-\x{2cee}\x{2cf2}\x{2cf3}\x{a640}-\x{a66d}\x{a680}-\x{a69b}\x{a722}-\x{a76f}\x{a771}-\x{a787}\x{a78b}-\x{a78e}\x{ab70}-\x{abbf}\x{fb00}-\x{fb06}\x{fb13}-\x{fb17}\x{ff21}-\x{ff3a}\x{ff41}-\x{ff5a}\x{10400}-\x{1044f}\x{104b0}-\x{104d3}\x{104d8}-\x{104fb}\x{10c80}-\x{10cb2}\x{10cc0}-\x{10cf2}\x{118a0}-\x{118df}\x{1e900}-\x{1e943}]+";
pub const DIGIT: &str = r"\p{N}";

const PRE_TOKENIZERS: &[PreTokenizerRow] = &[
    PreTokenizerRow {
        names: &["default"],
        patterns: &[r"[\p{P}\$\+<=>\^\~\|]+", GPT_2, r"\p{N}+", "[0-9][0-9][0-9]"],
        ..PLAIN
    },
    PreTokenizerRow {
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
            "jina-v1-en",
            "jina-v2-code",
            "modern-bert",
            "a.x-4.0",
            "mellum",
        ],
        patterns: &[GPT_2],
        ..PLAIN
    },
    PreTokenizerRow {
        names: &[
            "llama-bpe",
            "llama3",
            "llama-v3",
            "falcon3",
            "falcon-h1",
            "pixtral",
            "midm-2.0",
            "lfm2",
            "jina-v5-nano",
        ],
        patterns: &[LLAMA_3],
        ignore_merges: true,
        add_bos: true,
        ..PLAIN
    },
    PreTokenizerRow { names: &["dbrx", "smaug-bpe", "chatglm-bpe", "glm4"], patterns: &[LLAMA_3], ..PLAIN },
    PreTokenizerRow {
        names: &["qwen2", "deepseek-r1-qwen", "megrez", "kormo", "f2llmv2"],
        patterns: &[QWEN_2],
        nfc: true,
        ..PLAIN
    },
    PreTokenizerRow {
        names: &["stablelm2", "hunyuan", "solar-open", "grok-2"],
        patterns: &[QWEN_2],
        ..PLAIN
    },
    PreTokenizerRow { names: &["qwen35"], patterns: &[QWEN_3_5], nfc: true, ..PLAIN },
    PreTokenizerRow {
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
    PreTokenizerRow { names: &["gpt-4o", "kanana2", "minimax-m2", "talkie"], patterns: &[GPT_4O], ..PLAIN },
    PreTokenizerRow { names: &["llama4"], patterns: &[GPT_4O], add_bos: true, ..PLAIN },
    PreTokenizerRow { names: &["tekken"], patterns: &[TEKKEN], ignore_merges: true, add_bos: true, ..PLAIN },
    PreTokenizerRow {
        names: &["deepseek-llm"],
        patterns: &[
            "[\r\n]",
            DEEPSEEK_LETTERS,
            r"\s?[!-/:-~！-／：-～‘-‟\u{3000}-。]+",
            r"\s+$",
            "[一-龥ࠀ-一가-\u{d7ff}]+",
            r"\p{N}+",
        ],
        ..PLAIN
    },
    PreTokenizerRow {
        names: &["deepseek-coder"],
        patterns: &["[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-\u{d7ff}]+", DIGIT],
        ..PLAIN
    },
    PreTokenizerRow {
        names: &["deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"],
        patterns: &[r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+", DEEPSEEK_3],
        ..PLAIN
    },
    PreTokenizerRow {
        names: &["falcon"],
        patterns: &[r"[\p{P}\$\+<=>\^~\|`]+", GPT_2, "[0-9][0-9][0-9]"],
        ..PLAIN
    },
    PreTokenizerRow {
        names: &["seed-coder"],
        patterns: &[
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+",
        ],
        ..PLAIN
    },
    PreTokenizerRow {
        names: &["bailingmoe", "bailingmoe2", "llada-moe"],
        patterns: &[
            r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
        ],
        ..PLAIN
    },
    PreTokenizerRow {
        names: &["bloom", "poro-chat", "gpt3-finnish"],
        patterns: &[r" ?[^(\s|.,!?…。，、।۔،)]+"],
        ..PLAIN
    },
    PreTokenizerRow {
        names: &["viking"], patterns: &[r" ?[^(\s|.,!?…。，、।۔،)]+", DIGIT], ..PLAIN
    },
    PreTokenizerRow {
        names: &["exaone4", "exaone-moe"],
        patterns: &[
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+",
        ],
        ..PLAIN
    },
    PreTokenizerRow {
        names: &["minicpm5"],
        patterns: &[r"\p{N}{1,3}", LLAMA_3],
        ignore_merges: true,
        ..PLAIN
    },
    PreTokenizerRow { names: &["kimi-k2"], patterns: &[KIMI_K2], ..PLAIN },
    PreTokenizerRow { names: &["superbpe"], patterns: &[r"\p{N}+", r"\d{1,3}(?=(?:\d{3})*(?!\d))"], ..PLAIN },
    PreTokenizerRow {
        names: &["tiny_aya", "cohere2moe"],
        patterns: &[r"\d{1,3}(?=(?:\d{3})*\b)", GPT_4O],
        ..PLAIN
    },
    PreTokenizerRow {
        names: &["afmoe"],
        patterns: &[r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))", ASIAN, DEEPSEEK_3],
        ..PLAIN
    },
    PreTokenizerRow { names: &["laguna"], patterns: &[r"\n+", QWEN_2], ..PLAIN },
    PreTokenizerRow {
        names: &["ufakzeka"],
        patterns: &[r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"],
        ..PLAIN
    },
    PreTokenizerRow {
        names: &["granite-embed-multi-97m"],
        patterns: &[GPT_4O],
        ignore_merges: true,
        ..PLAIN
    },
    PreTokenizerRow {
        names: &["youtu"],
        patterns: &["[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥\u{3040}-ゟ゠-ヿ]+", YOUTU],
        ignore_merges: true,
        ..PLAIN
    },
    PreTokenizerRow {
        names: &["spark2_5"],
        patterns: &[r"\p{N}{1,3}", "[一-龥\u{3040}-ゟ゠-ヿ]+", SPARK, DIGIT],
        ..PLAIN
    },
    PreTokenizerRow { names: &["jais-2"], patterns: &[JAIS_2], ..PLAIN },
];

/// For files that name no pre-tokenizer, or this one: the rules of GPT-2's first successors.
const DEFAULT: &str = "default";

/// Where encoding may restart in the middle of a text with the same ids as a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestartPoints {
    /// Wherever a piece begins.
    AtPieces,
    /// Between characters that are adjacent in no token. By then, spaces are `▁`.
    BetweenUnpairedChars,
    Never,
}

/// Normalizes a text and splits it.
#[derive(Debug, Clone)]
pub struct Splitter {
    pub normalizer: Option<NormalizerWrapper>,
    pub pre_tokenizer: Option<PreTokenizerWrapper>,
    /// Pre-tokenizer for text that does not begin a text, if different.
    pub inner: Option<PreTokenizerWrapper>,
    pub restarts: RestartPoints,
}

/// A row of the table, compiled.
#[derive(Debug)]
pub struct NamedPreTokenizer {
    pub splitter: Splitter,
    pub ignore_merges: bool,
    pub add_bos: bool,
}

impl NamedPreTokenizer {
    /// Returns one name of every row.
    pub fn names() -> impl Iterator<Item = &'static str> {
        PRE_TOKENIZERS.iter().filter_map(|row| row.names.first().copied())
    }

    /// Returns whether a row splits by exactly these patterns, so that its pieces are known to begin anywhere.
    pub fn splits_by(patterns: &[&str]) -> bool {
        PRE_TOKENIZERS.iter().any(|row| row.patterns == patterns)
    }

    /// Finds a pre-tokenizer by `tokenizer.ggml.pre`.
    ///
    /// Errors: `tokenizer.unknown_pre`.
    pub fn find(name: Option<&str>) -> Result<Self> {
        let name = name.unwrap_or(DEFAULT);
        let row = PRE_TOKENIZERS.iter().find(|row| row.names.contains(&name)).ok_or_else(|| {
            EngineError::new(
                "tokenizer.unknown_pre",
                format!("the pre-tokenizer `{name}` (tokenizer.ggml.pre) is unknown"),
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
            restarts: RestartPoints::AtPieces,
        };
        Ok(Self { splitter, ignore_merges: row.ignore_merges, add_bos: row.add_bos })
    }
}

/// Splits so that every match of `pattern` is a piece, and so is the text between.
pub fn split(pattern: &str) -> Result<Split> {
    Split::new(SplitPattern::Regex(pattern.to_string()), SplitDelimiterBehavior::Isolated, false).map_err(
        |error| broken(format!("the pattern of the pre-tokenizer is not a regular expression: {error}")),
    )
}

impl Splitter {
    /// Returns whether normalization surely does not join text across `at`. Knows NFC alone.
    pub fn is_apart(&self, text: &str, at: usize) -> bool {
        // No character before it changes such a character or moves past it, however many marks there are.
        let begins_apart = |c: char| {
            canonical_combining_class(c) == 0 && is_nfc_quick(std::iter::once(c)) == IsNormalized::Yes
        };
        match (&self.normalizer, text[at..].chars().next()) {
            (None, _) => true,
            (Some(NormalizerWrapper::NFC(_)), Some(c)) => begins_apart(c),
            (Some(_), _) => false,
        }
    }

    /// Calls `each` with every piece of `text` and its byte offset, in order. `begins`: nothing precedes `text`.
    pub fn for_each(&self, text: &str, begins: bool, mut each: impl FnMut(usize, &str)) {
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
        for (piece, (start, _), _) in pieces.get_splits(OffsetReferential::Original, OffsetType::None) {
            each(start, piece);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, text: &str, expected: &[&str]) {
        let pre = NamedPreTokenizer::find(Some(name)).expect("known");
        let mut pieces = Vec::new();
        pre.splitter.for_each(text, true, |_, piece| pieces.push(piece.replace('Ġ', " ").replace('Ċ', "\n")));
        assert_eq!(pieces, expected, "{name}");
    }

    #[test]
    fn every_row_compiles_and_keeps_the_text() {
        let text = "It's 12345 tests, IT'S\n\n  done\t— über 你好 \n ";
        for name in PRE_TOKENIZERS.iter().flat_map(|row| row.names) {
            let pre = NamedPreTokenizer::find(Some(name)).expect("compiles");
            let mut n_bytes = 0;
            pre.splitter.for_each(text, true, |_, piece| n_bytes += piece.chars().count());
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
        let error = NamedPreTokenizer::find(Some("nonesuch")).expect_err("unknown");
        assert_eq!(error.code(), "tokenizer.unknown_pre");
        assert!(NamedPreTokenizer::find(None).is_ok());
    }
}
