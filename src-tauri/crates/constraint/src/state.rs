//! A constraint in use: the mask for the next token, and the tokens accepted so far.

use llguidance::Matcher;
use llguidance::toktrie::SimpleVob;

use crate::error::ConstraintError;
use crate::schema::InstanceChecker;
use crate::vocabulary::Vocabulary;

/// What became of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is a part of the text now.
    Accepted,
    /// It may not come next; nothing has changed but the mask, which no longer has it.
    Refused,
}

/// The constraint of one text.
pub struct TokenConstraint {
    matcher: Matcher,
    /// What of a JSON schema the grammar does not cover.
    checker: Option<InstanceChecker>,
    vocabulary: Vocabulary,
    mask: SimpleVob,
    is_mask_current: bool,
    has_ended: bool,
}

impl std::fmt::Debug for TokenConstraint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenConstraint").field("has_ended", &self.has_ended).finish_non_exhaustive()
    }
}

impl Clone for TokenConstraint {
    /// The caches are not shared, so that both may be used by different threads.
    fn clone(&self) -> Self {
        Self {
            matcher: self.matcher.deep_clone(),
            checker: self.checker.clone(),
            vocabulary: self.vocabulary.clone(),
            mask: self.mask.clone(),
            is_mask_current: self.is_mask_current,
            has_ended: self.has_ended,
        }
    }
}

impl TokenConstraint {
    pub(crate) fn new(matcher: Matcher, checker: Option<InstanceChecker>, vocabulary: Vocabulary) -> Self {
        let mask = SimpleVob::new();
        Self { matcher, checker, vocabulary, mask, is_mask_current: false, has_ended: false }
    }

    /// Returns the tokens that may come next, a bit for each, lowest first. The tokens that end the reply are among
    /// them where the text is complete.
    ///
    /// Errors: `constraint.stopped`, `constraint.dead_end`.
    pub fn mask(&mut self) -> Result<&[u32], ConstraintError> {
        if !self.is_mask_current {
            let mask = self.matcher.compute_mask_or_eos();
            self.mask = mask.map_err(|error| ConstraintError::stopped(&error.to_string()))?;
            self.is_mask_current = true;
        }
        if self.mask.is_zero() {
            return Err(ConstraintError::dead_end());
        }
        Ok(self.mask.as_slice())
    }

    /// Takes the next token.
    ///
    /// Errors: `constraint.stopped`.
    pub fn accept(&mut self, token: u32) -> Result<Verdict, ConstraintError> {
        let is_end = self.vocabulary.ends.contains(&token);
        let is_known =
            self.is_mask_current && (token as usize) < self.mask.len() && self.mask.is_allowed(token);
        let may_come = is_known || self.fits_grammar(token, is_end)?;
        let passes = may_come
            && match &mut self.checker {
                None => true,
                Some(checker) if is_end => checker.is_valid_end(),
                Some(checker) => checker.accept(self.vocabulary.bytes(token)),
            };
        if !passes {
            if self.is_mask_current && (token as usize) < self.mask.len() {
                self.mask.disallow_token(token);
            }
            return Ok(Verdict::Refused);
        }
        self.is_mask_current = false;
        self.has_ended = is_end;
        // A grammar that can only end here has stopped already.
        if !(is_end && self.matcher.is_stopped()) {
            self.matcher
                .consume_token(token)
                .map_err(|error| ConstraintError::stopped(&error.to_string()))?;
        }
        Ok(Verdict::Accepted)
    }

    fn fits_grammar(&mut self, token: u32, is_end: bool) -> Result<bool, ConstraintError> {
        if self.matcher.is_stopped() {
            return Ok(is_end && self.matcher.stop_reason().is_ok());
        }
        if is_end {
            return self.is_accepting();
        }
        let n = self.matcher.validate_tokens(&[token]);
        Ok(n.map_err(|error| ConstraintError::stopped(&error.to_string()))? == 1)
    }

    fn is_accepting(&mut self) -> Result<bool, ConstraintError> {
        self.matcher.is_accepting().map_err(|error| ConstraintError::stopped(&error.to_string()))
    }

    /// Returns how many of these tokens the grammar permits, one after the other. Nothing changes.
    ///
    /// Errors: `constraint.stopped`.
    pub fn n_permitted(&mut self, tokens: &[u32]) -> Result<usize, ConstraintError> {
        if self.matcher.is_stopped() {
            return Ok(0);
        }
        let n = self.matcher.validate_tokens(tokens);
        n.map_err(|error| ConstraintError::stopped(&error.to_string()))
    }

    /// Returns whether the text may end here.
    ///
    /// Errors: `constraint.stopped`.
    pub fn is_complete(&mut self) -> Result<bool, ConstraintError> {
        if self.has_ended {
            return Ok(true);
        }
        let fits =
            if self.matcher.is_stopped() { self.matcher.stop_reason().is_ok() } else { self.is_accepting()? };
        Ok(fits && self.checker.as_mut().is_none_or(InstanceChecker::is_valid_end))
    }

    /// Returns whether nothing but the end can follow.
    pub fn is_over(&self) -> bool {
        self.has_ended || self.matcher.is_stopped()
    }

    /// Returns whether a whole text has the form. The constraint must not have been used.
    ///
    /// Errors: `constraint.stopped`.
    pub fn accepts_text(mut self, text: &[u8]) -> Result<bool, ConstraintError> {
        for &byte in text {
            if self.accept(u32::from(byte))? == Verdict::Refused {
                return Ok(false);
            }
        }
        self.is_complete()
    }
}
