//! Counts exactly how many tokens a conversation with a draft would be, while the draft is written.
//! Needs only a model's vocabulary and template, so that it works before the model is loaded.
//! Counts are cached: the next one encodes only what changed.

use engine::arch;
use engine::template::ChatTemplate;
use engine::tokenizer::{IncrementalEncoder, Special, Tokenizer};

use super::gap_tokens::GapTokens;
use super::model::images::{VisionSettings, image_input};
use crate::model_file;
use crate::vision_file::VisionSource;
use compaction::TokenBudget;
use prompt::render::{Vocabulary, no_vocabulary};

use contract::Result;
use contract::protocol::{CountRequest, FitOutcome, FitRequest, LoadSpec, ModelRef, TokenCounts};
use prompt::context_fit::{Fit, Fitting, Why};

/// Drafts whose ids are kept: the one that is written, and a few that are gone back to.
const MAX_DRAFTS: usize = 4;

/// A model's vocabulary and the drafts that are counted with it.
pub struct Counter {
    pub reference: ModelRef,
    pub(super) tokenizer: Tokenizer,
    pub(super) template: engine::Result<Option<ChatTemplate>>,
    pub(super) architecture: &'static str,
    fingerprint: String,
    /// Tokens the model was trained for.
    pub(super) context_length: usize,
    pub(super) gap: GapTokens,
    mmproj: Option<String>,
    vision: VisionSettings,
    /// By conversation, least recently used first.
    drafts: Vec<(Option<String>, IncrementalEncoder)>,
}

impl Counter {
    /// `mmproj`: the file of its vision tower, where one is named.
    pub fn open(reference: ModelRef, mmproj: Option<&str>) -> Result<Self> {
        let file = model_file::open(&reference.location)?;
        let spec = arch::spec(&file, arch::find(&file)?)?;
        let tokenizer = Tokenizer::from_weights(&file).map_err(|_| no_vocabulary(&reference.id))?;
        let vision = VisionSource::open(&reference.location, mmproj);
        Ok(Self {
            reference,
            mmproj: mmproj.map(str::to_owned),
            vision: vision.map(|source| source.map(|source| source.settings)),
            gap: GapTokens::find(&tokenizer, |key| file.metadata().opt_u32(key).ok().flatten()),
            tokenizer,
            template: ChatTemplate::from_weights(&file),
            architecture: spec.architecture,
            fingerprint: file.fingerprint(),
            context_length: spec.context_length,
            drafts: Vec::new(),
        })
    }

    /// Whether it counts for a model with this vision tower.
    pub fn is_of(&self, model: &ModelRef, mmproj: Option<&str>) -> bool {
        self.reference == *model && self.mmproj.as_deref() == mmproj
    }

    /// `now` as templates want it.
    pub fn count(&mut self, request: &CountRequest, now: &str) -> Result<TokenCounts> {
        let kept = self.drafts.iter().position(|(conversation, _)| *conversation == request.conversation);
        let mut encoder = kept.map_or_else(IncrementalEncoder::new, |at| self.drafts.remove(at).1);
        let vocabulary = self.vocabulary(now);
        let shown = request.compression.as_ref().map(|compression| {
            let room = TokenBudget::new(self.limit(&request.load), None);
            Fitting::new(&vocabulary, &request.chat, compression, &request.messages, room).messages_now()
        });
        let messages = shown.as_ref().unwrap_or(&request.messages);
        let overlong = vocabulary.estimate_overlong(messages, self.limit(&request.load));
        let counted = match overlong {
            Some(n_about) => vocabulary.template_source(&request.chat).map(|source| (n_about, source)),
            None => vocabulary.count(messages, &request.chat, &mut encoder),
        };
        self.drafts.push((request.conversation.clone(), encoder));
        if self.drafts.len() > MAX_DRAFTS {
            self.drafts.remove(0);
        }
        let (tokens, source) = counted?;

        let limit = self.limit(&request.load);
        let clamp = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let of_text = |text: &String| clamp(self.tokenizer.encode(text, Special::Plain).len());
        Ok(TokenCounts {
            tokens: clamp(tokens),
            context_limit: clamp(limit),
            can_think_or_not: source.contains("enable_thinking"),
            has_efforts: source.contains("reasoning_effort"),
            is_about: overlong.is_some(),
            texts: request.texts.iter().map(of_text).collect(),
        })
    }

    /// Makes a conversation shorter, or looks ahead.
    pub fn fit(&self, request: &FitRequest, now: &str) -> Result<FitOutcome> {
        let FitRequest { count, max_tokens, ahead } = request;
        let Some(compression) = &count.compression else { return Ok(FitOutcome::Nothing) };
        let vocabulary = self.vocabulary(now);
        let room = TokenBudget::new(self.limit(&count.load), *max_tokens);
        let fitting = Fitting::new(&vocabulary, &count.chat, compression, &count.messages, room);
        if *ahead {
            let wanted = fitting.ahead()?;
            return Ok(
                wanted.map_or(FitOutcome::Nothing, |wanted| FitOutcome::Wanting { wanted: Box::new(wanted) })
            );
        }
        Ok(match fitting.fit(Why::Asked)? {
            Fit::Ready { compacted: Some(range), .. } => FitOutcome::Compacted { range },
            Fit::Ready { compacted: None, .. } => FitOutcome::Nothing,
            Fit::Wanting(wanted) => FitOutcome::Wanting { wanted: Box::new(wanted) },
        })
    }

    /// Tokens of context that the model would have.
    fn limit(&self, load: &LoadSpec) -> usize {
        load.context.unwrap_or(self.context_length).min(self.context_length)
    }

    /// `now` as templates want it.
    pub(super) fn vocabulary<'a>(&'a self, now: &'a str) -> Vocabulary<'a> {
        Vocabulary {
            tokenizer: &self.tokenizer,
            template: self.template.as_ref().map(Option::as_ref).map_err(Clone::clone),
            architecture: self.architecture,
            fingerprint: &self.fingerprint,
            now,
            interrupt: None,
            images: image_input(&self.vision, None),
            model: &self.reference.id,
        }
    }

    pub fn forget(&mut self, conversation: &str) {
        self.drafts.retain(|(kept, _)| kept.as_deref() != Some(conversation));
    }
}
