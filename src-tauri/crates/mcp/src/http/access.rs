//! What a denied request needs: a sign-in, more permissions, or a key.

use reqwest::StatusCode;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};

use super::{Core, Http};
use crate::authorization::{BearerChallenge, SignInFault, TokenSource, has_resource_metadata};
use contract::{Error, Result};

impl Http {
    /// Signs in with these tokens. A header that the user has entered comes first.
    pub fn with_tokens(mut self, tokens: TokenSource) -> Self {
        self.tokens = Some(tokens).filter(|_| !self.headers.contains_key(AUTHORIZATION));
        self
    }

    /// Why the user has to sign in. None: nothing is known of that.
    pub fn sign_in_fault(&self) -> Option<Error> {
        self.tokens.as_ref()?.fault()
    }

    /// The header of the next request. None: without a sign-in.
    pub(super) async fn token(&self) -> Result<Option<HeaderValue>> {
        match &self.tokens {
            Some(tokens) => tokens.header().await,
            None => Ok(None),
        }
    }

    /// Another token, after the server has rejected this one. None: there is none.
    pub(super) async fn other_token(
        &self,
        status: StatusCode,
        rejected: Option<&HeaderValue>,
    ) -> Result<Option<HeaderValue>> {
        match (&self.tokens, rejected) {
            (Some(tokens), Some(rejected)) if status == StatusCode::UNAUTHORIZED => {
                tokens.replace_header(rejected).await
            }
            _ => Ok(None),
        }
    }

    /// The headers of a request, with its token.
    pub(super) fn headers_with(&self, token: Option<HeaderValue>) -> HeaderMap {
        let mut headers = self.headers.clone();
        if let Some(token) = token {
            headers.insert(AUTHORIZATION, token);
        }
        headers
    }

    /// The error of a denied request that a sign-in can solve. None: it takes a key.
    pub(super) async fn sign_in_error(
        &self,
        core: &Core,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Option<Error> {
        let tokens = self.tokens.as_ref()?;
        let challenge = BearerChallenge::of(headers);
        if let Some(challenge) = &challenge {
            tokens.keep_challenge(challenge);
        }
        let has_token = tokens.last_header().is_some();
        let lacks_scope = challenge.as_ref().is_some_and(BearerChallenge::is_insufficient_scope);
        let fault = |fault: SignInFault| Some(fault.error(core.name(), ""));
        match status {
            StatusCode::FORBIDDEN if lacks_scope && has_token => {
                let scopes = challenge.map(|it| it.scopes).unwrap_or_default();
                let error = tokens.miss_scopes(&scopes).await;
                core.announce_change();
                Some(error)
            }
            StatusCode::FORBIDDEN if lacks_scope => fault(SignInFault::Needed),
            StatusCode::UNAUTHORIZED if has_token => fault(SignInFault::Expired),
            StatusCode::UNAUTHORIZED => {
                let is_named = challenge.is_some_and(|it| it.resource_metadata.is_some());
                let has_metadata = is_named || has_resource_metadata(tokens.http(), &self.place).await;
                if has_metadata { fault(SignInFault::Needed) } else { None }
            }
            _ => None,
        }
    }
}
