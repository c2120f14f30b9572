//! The token of requests to one server: refreshed before it expires, and once when the server rejects it. Never
//! leaves for another origin, since only requests to its server ask for it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use reqwest::header::HeaderValue;

use super::challenge::BearerChallenge;
use super::challenge_memory::ChallengeMemory;
use super::credentials::{CredentialStore, Credentials, StoredTokens};
use super::fault::SignInFault;
use super::gated_http::GatedHttp;
use super::grant;
use super::sign_in::SignInSite;
use crate::ServerUrl;
use contract::{Error, Result};
use io::{Clock, RealClock};

/// A token with less left is refreshed: a request takes its time too.
const REFRESH_MARGIN: Duration = Duration::from_secs(60);

/// Tokens for one server.
pub struct TokenSource {
    http: GatedHttp,
    store: CredentialStore,
    server: ServerUrl,
    challenges: ChallengeMemory,
    clock: RealClock,
    /// One refresh at a time: a second would use a token that the first has replaced.
    kept: tokio::sync::Mutex<Option<Credentials>>,
    state: Mutex<TokenState>,
}

#[derive(Default)]
struct TokenState {
    /// Last sent.
    header: Option<HeaderValue>,
    /// Why the user has to sign in.
    fault: Option<Error>,
}

impl TokenSource {
    /// Without a token: it only knows whether a server demands one.
    pub fn signed_out(site: &SignInSite) -> Self {
        Self {
            http: GatedHttp::new(site.gate.clone(), &site.name, &site.server),
            store: site.store.clone(),
            server: site.server.clone(),
            challenges: site.challenges.clone(),
            clock: RealClock::new(),
            kept: tokio::sync::Mutex::default(),
            state: Mutex::default(),
        }
    }

    /// With the token that is kept for the server, if there is one.
    pub fn signed_in(site: &SignInSite) -> Result<Self> {
        let kept = site.store.load(&site.server.url)?.filter(|kept| !kept.tokens.access.is_empty());
        Ok(Self { kept: tokio::sync::Mutex::new(kept), ..Self::signed_out(site) })
    }

    /// For requests that may ask for a sign-in.
    pub fn http(&self) -> &GatedHttp {
        &self.http
    }

    /// The header that was sent last.
    pub fn last_header(&self) -> Option<HeaderValue> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).header.clone()
    }

    /// Why the user has to sign in. None: nothing is known of that.
    pub fn fault(&self) -> Option<Error> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).fault.clone()
    }

    /// The header of the next request. None: the user is not signed in.
    pub async fn header(&self) -> Result<Option<HeaderValue>> {
        let mut kept = self.kept.lock().await;
        let Some(current) = kept.as_mut() else { return Ok(None) };
        let is_old = current.expires_within(REFRESH_MARGIN, self.clock.now_utc_ms());
        if is_old && current.tokens.refresh.is_some() {
            let refreshed = self.refresh(current).await;
            // A token that still holds is used where its refresh does not work now.
            let still_holds = !current.expires_within(Duration::ZERO, self.clock.now_utc_ms());
            if let Err(error) = refreshed
                && (!still_holds || current.tokens.access.is_empty())
            {
                return Err(error);
            }
        }
        self.header_of(current).map(Some)
    }

    /// The header of a second try, after the server has rejected `rejected`. None: there is no other token.
    pub async fn replace_header(&self, rejected: &HeaderValue) -> Result<Option<HeaderValue>> {
        let mut kept = self.kept.lock().await;
        let Some(current) = kept.as_mut() else { return Ok(None) };
        let now = self.header_of(current)?;
        if now != rejected {
            // Another request has refreshed it meanwhile.
            return Ok(Some(now));
        }
        if current.tokens.refresh.is_none() {
            return Ok(None);
        }
        self.refresh(current).await?;
        self.header_of(current).map(Some)
    }

    /// Remembers what the server demands, for the next sign-in.
    pub fn keep_challenge(&self, challenge: &BearerChallenge) {
        self.challenges.keep(&self.server.url, challenge);
    }

    /// Remembers the scopes that a request lacked, for the next sign-in. Returns the error of that request.
    pub async fn miss_scopes(&self, scopes: &[String]) -> Error {
        let error = self.http.fault(SignInFault::MoreScopes, &scopes.join(" "));
        if let Some(current) = self.kept.lock().await.as_mut() {
            current.missing_scopes = scopes.to_vec();
            if let Err(error) = self.store.save(current) {
                tracing::warn!(code = error.code(), "missing scopes were not kept: {error}");
            }
        }
        self.state.lock().unwrap_or_else(PoisonError::into_inner).fault = Some(error.clone());
        error
    }

    async fn refresh(&self, current: &mut Credentials) -> Result<()> {
        // Another process may have refreshed it, which replaces the refresh token too.
        if let Ok(Some(stored)) = self.store.load(&self.server.url)
            && stored.tokens != current.tokens
        {
            let is_fresh = !stored.tokens.access.is_empty()
                && !stored.expires_within(REFRESH_MARGIN, self.clock.now_utc_ms());
            *current = stored;
            if is_fresh {
                return Ok(());
            }
        }
        match grant::refresh(&self.http, current).await {
            Ok(tokens) => current.take_tokens(tokens, self.clock.now_utc_ms()),
            Err(error) if error.code() == self.http.fault(SignInFault::Expired, "").code() => {
                current.tokens = StoredTokens::default();
                self.store.save(current)?;
                return Err(error);
            }
            Err(error) => return Err(error),
        }
        self.store.save(current)
    }

    fn header_of(&self, current: &Credentials) -> Result<HeaderValue> {
        if current.tokens.access.is_empty() {
            return Err(self.http.fault(SignInFault::Expired, ""));
        }
        let malformed = |_| self.http.fault(SignInFault::Malformed, "the token can't be sent as a header");
        let text = format!("Bearer {}", current.tokens.access);
        let mut header = HeaderValue::try_from(text).map_err(malformed)?;
        header.set_sensitive(true);
        self.state.lock().unwrap_or_else(PoisonError::into_inner).header = Some(header.clone());
        Ok(header)
    }
}
