//! Scores of how well passages answer a query: by a cross-encoder's head, or by a generative model that was trained to
//! answer "yes" or "no" (Qwen3-Reranker).

use kernels::OutputSelection;

use super::{Chunk, LogitsSelection, Model};
use crate::TokenId;
use crate::error::{EngineError, Result};
use crate::kv::sequence_id::SequenceId;
use crate::spec::PairForm;
use crate::tokenizer::{Special, Tokenizer};

/// What Qwen3-Reranker's prompt asks when its user gives no instruction.
const INSTRUCTION: &str = "Given a web search query, retrieve relevant passages that answer the query";

/// A passage's score, and whether the passage had to be cut to fit the context.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PassageScore {
    /// A cross-encoder's raw logit, or the probability of "yes".
    pub score: f32,
    /// Tokens of query and passage together.
    pub n_tokens: usize,
    /// The end of the passage did not count.
    pub is_cut: bool,
}

/// How a model ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ranking {
    /// Its head scores pairs.
    Head(PairForm),
    /// The next token after a question is one of these.
    Answer { yes: TokenId, no: TokenId },
}

/// The tokens of a pair.
struct PairTokens {
    ids: Vec<TokenId>,
    /// Position of the second text's first token.
    second: usize,
    is_cut: bool,
}

impl Model {
    /// Checks that the model ranks passages.
    ///
    /// Errors: `model.no_ranking`, `model.no_vocabulary`.
    pub fn check_ranks(&self) -> Result<()> {
        self.ranking().map(drop)
    }

    fn ranking(&self) -> Result<Ranking> {
        if let Some(rank) = self.spec.embeds.as_ref().and_then(|embeds| embeds.rank) {
            return Ok(Ranking::Head(rank.pair));
        }
        let tokenizer = self.vocabulary()?;
        let one = |text: &str| match tokenizer.encode(text, Special::Plain)[..] {
            [id] => Some(id),
            _ => None,
        };
        match (self.embeds(), self.spec.architecture, one("yes"), one("no")) {
            (false, "qwen3", Some(yes), Some(no)) => Ok(Ranking::Answer { yes, no }),
            _ => Err(EngineError::new(
                "model.no_ranking",
                format!("this {} model does not rank passages", self.spec.architecture),
                "Choose a reranker, such as bge-reranker or Qwen3-Reranker.",
            )),
        }
    }

    fn vocabulary(&self) -> Result<&Tokenizer> {
        self.tokenizer.as_ref().ok_or_else(|| {
            EngineError::new(
                "model.no_vocabulary",
                "the model's file contains no vocabulary",
                "Put its tokenizer.json beside it, or choose another file of the model.",
            )
        })
    }

    /// Scores a passage for a query: the higher, the better it answers. A passage that does not fit is cut at its end.
    ///
    /// Errors: `model.no_ranking`, `model.no_vocabulary`, `request.context_full` when the query alone does not fit, a
    /// failed kernel.
    pub fn rank(&mut self, query: &str, passage: &str) -> Result<PassageScore> {
        let ranking = self.ranking()?;
        let pair = match ranking {
            Ranking::Head(form) => self.pair_tokens(form, query, passage)?,
            Ranking::Answer { .. } => self.question_tokens(query, passage)?,
        };
        let seq = self.new_sequence()?;
        let score = self.score(ranking, &pair, seq);
        self.free(seq);
        Ok(PassageScore { score: score?, n_tokens: pair.ids.len(), is_cut: pair.is_cut })
    }

    fn score(&mut self, ranking: Ranking, pair: &PairTokens, seq: SequenceId) -> Result<f32> {
        let tokens = &pair.ids;
        match ranking {
            Ranking::Head(form) => {
                let second = match form {
                    PairForm::OneSeparator => Some(pair.second),
                    PairForm::TwoSeparators => None,
                };
                let chunk = Chunk { seq, tokens, logits: LogitsSelection::All };
                let rows = self.forward_pair(&[chunk], second, OutputSelection::Rows, None)?.0;
                finite(rows.row(0)?[0])
            }
            Ranking::Answer { yes, no } => {
                let rows = self.forward(&[Chunk { seq, tokens, logits: LogitsSelection::Last }])?;
                let row = rows.row(0)?;
                let (yes, no) = (f64::from(row[yes as usize]), f64::from(row[no as usize]));
                finite((1.0 / (1.0 + (no - yes).exp())) as f32)
            }
        }
    }

    fn pair_tokens(&self, form: PairForm, query: &str, passage: &str) -> Result<PairTokens> {
        let tokenizer = self.vocabulary()?;
        let around = tokenizer.add_special(Vec::new());
        let (&[start, ref end @ ..], Some(&separator)) = (&around[..], around.last()) else {
            return Err(no_separator());
        };
        if end.is_empty() {
            return Err(no_separator());
        }
        let mut ids = vec![start];
        ids.extend(tokenizer.encode(query, Special::Plain));
        ids.push(separator);
        if form == PairForm::TwoSeparators {
            ids.push(separator);
        }
        self.with_passage(ids, &tokenizer.encode(passage, Special::Plain), &[separator])
    }

    /// The prompt that Qwen3-Reranker was trained with: prefix, pair and suffix are tokenized apart.
    fn question_tokens(&self, query: &str, passage: &str) -> Result<PairTokens> {
        let tokenizer = self.vocabulary()?;
        let before = "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and \
                      the Instruct provided. Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n\
                      <|im_start|>user\n";
        let after = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";
        let pair = format!("<Instruct>: {INSTRUCTION}\n<Query>: {query}\n<Document>: {passage}");
        let pair = tokenizer.encode(&pair, Special::Plain);
        let prefix = tokenizer.encode(before, Special::Parse);
        self.with_passage(prefix, &pair, &tokenizer.encode(after, Special::Parse))
    }

    fn with_passage(
        &self,
        mut ids: Vec<TokenId>,
        passage: &[TokenId],
        end: &[TokenId],
    ) -> Result<PairTokens> {
        let n_fixed = ids.len() + end.len();
        let n_max = self.n_ctx();
        if n_fixed > n_max {
            return Err(EngineError::new(
                "request.context_full",
                format!("the query takes {n_fixed} tokens, but the model reads at most {n_max}"),
                "Shorten the query.",
            ));
        }
        let second = ids.len();
        let n_kept = passage.len().min(n_max - n_fixed);
        ids.extend(&passage[..n_kept]);
        ids.extend(end);
        Ok(PairTokens { ids, second, is_cut: n_kept < passage.len() })
    }
}

fn finite(score: f32) -> Result<f32> {
    if score.is_finite() { Ok(score) } else { Err(super::nan_logits()) }
}

fn no_separator() -> EngineError {
    EngineError::new(
        "model.no_vocabulary",
        "the model's vocabulary names no tokens that begin and end a text",
        "Get the model again with its tokenizer.json, or choose another file of it.",
    )
}
