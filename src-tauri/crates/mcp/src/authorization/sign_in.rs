//! One sign-in, from the server's demand to tokens among the keys; and signing out.

use std::future::Future;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use super::challenge::BearerChallenge;
use super::challenge_memory::ChallengeMemory;
use super::credentials::{CredentialStore, Credentials, TokenSet};
use super::fault::SignInFault;
use super::gated_http::GatedHttp;
use super::grant::{self, AuthorizationRequest};
use super::metadata::{self, SignInTarget};
use super::redirect_listener::{RedirectListener, RedirectParameters};
use super::redirect_page::RedirectOutcome;
use super::registration::{self, OauthClient};
use crate::ServerUrl;
use crate::core::words;
use contract::{Error, Result};
use io::{Clock, RealClock};
use net::ConnectionGate;

/// How long the user may take in the browser.
const BROWSER_TIMEOUT_MIN: u64 = 5;

/// A server, and how it is reached.
pub struct SignInSite {
    pub gate: ConnectionGate,
    pub runtime: Handle,
    /// For errors.
    pub name: String,
    pub server: ServerUrl,
    pub store: CredentialStore,
    /// What servers have demanded since their last sign-in.
    pub challenges: ChallengeMemory,
}

/// A sign-in that waits for the browser. Dropping it cancels it.
pub struct SignIn {
    address: String,
    name: String,
    store: CredentialStore,
    server: ServerUrl,
    challenges: ChallengeMemory,
    task: AbortHandle,
    outcome: Mutex<Option<Receiver<Result<Credentials>>>>,
}

/// Everything that redeems the browser's return.
struct PendingGrant {
    http: GatedHttp,
    server: ServerUrl,
    target: SignInTarget,
    client: OauthClient,
    scopes: Vec<String>,
    request: AuthorizationRequest,
    listener: RedirectListener,
}

impl SignIn {
    /// Finds out where to sign in, registers if that is needed, and listens for the browser. `given`: the client that
    /// the user has registered.
    pub fn begin(site: &SignInSite, given: Option<OauthClient>) -> Result<Self> {
        let stored = site.store.load(&site.server.url)?;
        let http = GatedHttp::new(site.gate.clone(), &site.name, &site.server);
        let (server, challenge) = (site.server.clone(), site.challenges.last(&site.server.url));
        let challenge = challenge.unwrap_or_default();
        let prepared =
            run(&site.runtime, async move { prepare(http, server, challenge, stored, given).await })?;
        let pending = prepared?;
        let address = pending.request.address.to_string();
        let (send, outcome) = sync_channel(1);
        let task = site.runtime.spawn(async move {
            // The one who began it may have gone.
            let _ = send.send(complete(pending).await);
        });
        Ok(Self {
            address,
            name: site.name.clone(),
            store: site.store.clone(),
            server: site.server.clone(),
            challenges: site.challenges.clone(),
            task: task.abort_handle(),
            outcome: Mutex::new(Some(outcome)),
        })
    }

    /// The address that the browser opens.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Waits for the browser, then keeps the tokens. Error `tools.sign_in_canceled`: it was canceled.
    pub fn finish(&self) -> Result<()> {
        let outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner).take();
        let canceled = || SignInFault::Canceled.error(&self.name, "");
        let kept = outcome.and_then(|outcome| outcome.recv().ok()).ok_or_else(canceled)??;
        self.store.save(&kept)?;
        self.challenges.forget(&self.server.url);
        Ok(())
    }

    /// Ends the waiting.
    pub fn cancel(&self) {
        self.task.abort();
    }
}

impl Drop for SignIn {
    fn drop(&mut self) {
        self.cancel();
    }
}

/// Revokes the tokens where the server offers that, and removes them in any case.
pub fn sign_out(site: &SignInSite) -> Result<()> {
    let kept = site.store.load(&site.server.url);
    site.store.remove()?;
    let Some(kept) = kept?.filter(|kept| !kept.tokens.access.is_empty()) else { return Ok(()) };
    let http = GatedHttp::new(site.gate.clone(), &site.name, &site.server);
    // They are gone from here; the server forgets them by their age.
    if let Err(error) = run(&site.runtime, async move { grant::revoke(&http, &kept).await })? {
        tracing::warn!(code = error.code(), "the tokens of a server were not revoked: {error}");
    }
    Ok(())
}

/// Runs something on the runtime and waits for it, from any thread.
fn run<T: Send + 'static>(runtime: &Handle, work: impl Future<Output = T> + Send + 'static) -> Result<T> {
    let (send, done) = sync_channel(1);
    runtime.spawn(async move {
        // The caller waits below.
        let _ = send.send(work.await);
    });
    done.recv().map_err(|_| Error::bug("a sign-in was dropped while the program ends"))
}

async fn prepare(
    http: GatedHttp,
    server: ServerUrl,
    challenge: BearerChallenge,
    stored: Option<Credentials>,
    given: Option<OauthClient>,
) -> Result<PendingGrant> {
    http.check_url(server.url.as_str())?;
    let target = metadata::discover(&http, &server, challenge).await?;
    let mut scopes = target.scopes.clone();
    if let Some(stored) = stored.as_ref().filter(|stored| !stored.missing_scopes.is_empty()) {
        // A token with fewer scopes than before would make the next request fail.
        scopes.extend(stored.scopes.iter().chain(&stored.missing_scopes).cloned());
    }
    let mut seen = std::collections::HashSet::new();
    scopes.retain(|scope| seen.insert(scope.clone()));
    let listener = RedirectListener::open().await;
    let listener = listener.map_err(|error| http.fault(SignInFault::NoListener, &error.to_string()))?;
    // A client belongs to the authorization server that it was registered with.
    let kept = stored.filter(|it| it.client.is_given && it.issuer == target.server.issuer);
    let chosen = given.or(kept.map(|it| it.client)).filter(|client| client.is_known_to(&target.server));
    let client = match chosen {
        Some(client) => client.suited_to(&target.server),
        None => registration::register(&http, &target.server, &listener.address(), &scopes).await?,
    };
    let request = grant::authorization_request(&http, &target, &client, &scopes, &listener.address())?;
    Ok(PendingGrant { http, server, target, client, scopes, request, listener })
}

/// Waits for the browser and redeems its code.
async fn complete(pending: PendingGrant) -> Result<Credentials> {
    let PendingGrant { http, server, target, client, scopes, request, listener } = pending;
    let timeout = Duration::from_secs(BROWSER_TIMEOUT_MIN * 60);
    let returned = tokio::time::timeout(timeout, listener.wait()).await.ok().flatten();
    let timed_out = || http.fault(SignInFault::TimedOut, &BROWSER_TIMEOUT_MIN.to_string());
    let returned = returned.ok_or_else(timed_out)?;
    let tokens = redeem(&http, &target, &client, &request, &returned.parameters).await;
    let outcome = if tokens.is_ok() { RedirectOutcome::Done } else { RedirectOutcome::Failed };
    returned.show(outcome).await;
    let now_ms = RealClock::new().now_utc_ms();
    Ok(Credentials::new(&server.url, &target, client, scopes, tokens?, now_ms))
}

async fn redeem(
    http: &GatedHttp,
    target: &SignInTarget,
    client: &OauthClient,
    request: &AuthorizationRequest,
    returned: &RedirectParameters,
) -> Result<TokenSet> {
    let (issuer, names_issuer) = (&target.server.issuer, target.server.names_issuer());
    let code = code_of(returned, request.state.secret(), issuer, names_issuer);
    let code = code.map_err(|(fault, detail)| http.fault(fault, &detail))?;
    grant::redeem_code(http, target, client, request, code).await
}

/// Checks the browser's return: `state`, then the issuer (RFC 9207 section 2.4), then what it says.
fn code_of<'a>(
    returned: &'a RedirectParameters,
    state: &str,
    issuer: &str,
    names_issuer: bool,
) -> Result<&'a str, (SignInFault, String)> {
    if returned.state.as_deref() != Some(state) {
        return Err((SignInFault::WrongState, String::new()));
    }
    match &returned.iss {
        Some(iss) if iss != issuer => return Err((SignInFault::WrongIssuer, words(iss))),
        None if names_issuer => return Err((SignInFault::WrongIssuer, "it has no name".into())),
        Some(_) | None => {}
    }
    match (returned.error.as_deref(), &returned.code) {
        (Some("access_denied"), _) => Err((SignInFault::Denied, String::new())),
        (Some(error), _) => {
            Err((SignInFault::Refused, words(returned.error_description.as_deref().unwrap_or(error))))
        }
        (None, Some(code)) => Ok(code),
        (None, None) => Err((SignInFault::Malformed, "it has no code".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_return_of_the_browser_is_checked() {
        let issuer = "https://auth.example";
        // state, iss, error, code; whether the issuer must be named; what is expected.
        type Case = ([Option<&'static str>; 4], bool, Result<&'static str, SignInFault>);
        let cases: &[Case] = &[
            ([Some("s"), None, None, Some("c")], false, Ok("c")),
            ([Some("s"), Some(issuer), None, Some("c")], true, Ok("c")),
            ([Some("x"), Some(issuer), None, Some("c")], true, Err(SignInFault::WrongState)),
            ([None, None, None, Some("c")], false, Err(SignInFault::WrongState)),
            (
                [Some("s"), Some("https://auth.example/"), None, Some("c")],
                false,
                Err(SignInFault::WrongIssuer),
            ),
            ([Some("s"), None, None, Some("c")], true, Err(SignInFault::WrongIssuer)),
            ([Some("s"), None, Some("access_denied"), None], false, Err(SignInFault::Denied)),
            ([Some("s"), None, Some("invalid_scope"), Some("c")], false, Err(SignInFault::Refused)),
            ([Some("s"), None, None, None], false, Err(SignInFault::Malformed)),
        ];
        for ([state, iss, error, code], names_issuer, expected) in cases {
            let text = |it: &Option<&str>| it.map(str::to_owned);
            let returned = RedirectParameters {
                code: text(code),
                state: text(state),
                iss: text(iss),
                error: text(error),
                error_description: None,
            };
            let found = code_of(&returned, "s", issuer, *names_issuer).map_err(|(fault, _)| fault);
            assert_eq!(found, *expected, "{returned:?}");
        }
    }
}
