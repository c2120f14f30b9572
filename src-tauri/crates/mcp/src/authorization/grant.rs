//! The grant: authorization code with PKCE, refresh, and revocation (RFC 6749, 7636, 7009), each for one resource.

use oauth2::basic::{BasicClient, BasicErrorResponse, BasicErrorResponseType, BasicTokenResponse};
use oauth2::{
    AuthType, AuthUrl, AuthorizationCode, ClientId, ClientSecret, CsrfToken, PkceCodeChallenge,
    PkceCodeVerifier, RedirectUrl, RefreshToken, RequestTokenError, Scope, TokenResponse, TokenUrl,
};
use reqwest::Url;

use super::credentials::{Credentials, TokenSet};
use super::fault::SignInFault;
use super::gated_http::GatedHttp;
use super::metadata::SignInTarget;
use super::registration::{ClientAuthentication, OauthClient};
use crate::core::words;
use contract::{Error, Result};

const RESOURCE: &str = "resource";

/// What a response in the browser has to match, and what redeems its code.
pub struct AuthorizationRequest {
    /// For the browser.
    pub address: Url,
    pub state: CsrfToken,
    verifier: PkceCodeVerifier,
    redirect: String,
}

/// Builds the address at which the user allows access.
pub fn authorization_request(
    http: &GatedHttp,
    target: &SignInTarget,
    client: &OauthClient,
    scopes: &[String],
    redirect: &str,
) -> Result<AuthorizationRequest> {
    let malformed = |error: oauth2::url::ParseError| http.fault(SignInFault::Malformed, &error.to_string());
    let endpoint = AuthUrl::new(target.server.authorization_endpoint.clone()).map_err(malformed)?;
    let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
    let grant = BasicClient::new(ClientId::new(client.id.clone()))
        .set_auth_uri(endpoint)
        .set_redirect_uri(RedirectUrl::new(redirect.to_owned()).map_err(malformed)?);
    let request = grant
        .authorize_url(CsrfToken::new_random)
        .add_scopes(scopes.iter().cloned().map(Scope::new))
        .set_pkce_challenge(challenge)
        .add_extra_param(RESOURCE, &target.resource);
    let (address, state) = request.url();
    Ok(AuthorizationRequest { address, state, verifier, redirect: redirect.to_owned() })
}

/// Redeems a code for tokens.
pub async fn redeem_code(
    http: &GatedHttp,
    target: &SignInTarget,
    client: &OauthClient,
    request: &AuthorizationRequest,
    code: &str,
) -> Result<TokenSet> {
    let malformed = |error: oauth2::url::ParseError| http.fault(SignInFault::Malformed, &error.to_string());
    let endpoint = TokenUrl::new(target.server.token_endpoint.clone()).map_err(malformed)?;
    let grant = grant_client(client)
        .set_token_uri(endpoint)
        .set_redirect_uri(RedirectUrl::new(request.redirect.clone()).map_err(malformed)?);
    // The request needs the verifier itself, which can't be copied otherwise.
    let verifier = PkceCodeVerifier::new(request.verifier.secret().clone());
    let answered = grant
        .exchange_code(AuthorizationCode::new(code.to_owned()))
        .set_pkce_verifier(verifier)
        .add_extra_param(RESOURCE, &target.resource)
        .request_async(http)
        .await;
    answered.map(|answer| token_set(&answer)).map_err(|error| token_error(http, error, SignInFault::Refused))
}

/// Refreshes tokens. Error `tools.sign_in_expired`: the user has to sign in again.
pub async fn refresh(http: &GatedHttp, kept: &Credentials) -> Result<TokenSet> {
    let expired = || http.fault(SignInFault::Expired, "");
    let token = kept.tokens.refresh.clone().ok_or_else(expired)?;
    http.check_url(&kept.token_endpoint)?;
    let endpoint = TokenUrl::new(kept.token_endpoint.clone()).map_err(|_| expired())?;
    let answered = grant_client(&kept.client)
        .set_token_uri(endpoint)
        .exchange_refresh_token(&RefreshToken::new(token))
        .add_extra_param(RESOURCE, &kept.resource)
        .request_async(http)
        .await;
    answered.map(|answer| token_set(&answer)).map_err(|error| token_error(http, error, SignInFault::Expired))
}

/// Revokes the longest-lived token. The crate's own request refuses this computer's addresses, which have no HTTPS.
pub async fn revoke(http: &GatedHttp, kept: &Credentials) -> Result<()> {
    let Some(endpoint) = &kept.revocation_endpoint else { return Ok(()) };
    let request = oauth2::http::Request::post(http.check_url(endpoint)?.url.as_str())
        .header("content-type", "application/x-www-form-urlencoded")
        .body(revocation_form(kept)?.into_bytes())
        .map_err(Error::bug)?;
    let response = http.exchange(request).await?;
    if response.status().is_success() {
        return Ok(());
    }
    Err(http.fault(SignInFault::Refused, &format!("status {}", response.status().as_u16())))
}

/// The form of a revocation (RFC 7009 section 2.1).
fn revocation_form(kept: &Credentials) -> Result<String> {
    let (token, hint) = match &kept.tokens.refresh {
        Some(token) => (token, "refresh_token"),
        None => (&kept.tokens.access, "access_token"),
    };
    let mut form = Url::parse("form:").map_err(Error::bug)?;
    let mut fields = form.query_pairs_mut();
    fields.append_pair("token", token).append_pair("token_type_hint", hint);
    fields.append_pair("client_id", &kept.client.id);
    if let Some(secret) = &kept.client.secret {
        fields.append_pair("client_secret", secret);
    }
    drop(fields);
    Ok(form.query().unwrap_or_default().to_owned())
}

fn grant_client(client: &OauthClient) -> BasicClient {
    let grant =
        BasicClient::new(ClientId::new(client.id.clone())).set_auth_type(match client.authentication {
            ClientAuthentication::Basic => AuthType::BasicAuth,
            ClientAuthentication::Body => AuthType::RequestBody,
        });
    match &client.secret {
        Some(secret) => grant.set_client_secret(ClientSecret::new(secret.clone())),
        None => grant,
    }
}

fn token_set(answer: &BasicTokenResponse) -> TokenSet {
    TokenSet {
        access: answer.access_token().secret().clone(),
        refresh: answer.refresh_token().map(|token| token.secret().clone()),
        lifetime: answer.expires_in(),
        scopes: answer.scopes().map(|scopes| scopes.iter().map(|scope| scope.to_string()).collect()),
    }
}

/// `refusal`: what the server's own refusal means.
fn token_error(
    http: &GatedHttp,
    error: RequestTokenError<Error, BasicErrorResponse>,
    refusal: SignInFault,
) -> Error {
    match error {
        RequestTokenError::ServerResponse(answer) => {
            let is_busy = matches!(answer.error(), BasicErrorResponseType::Extension(word)
                if word == "temporarily_unavailable" || word == "server_error");
            let said = answer.error_description().cloned().unwrap_or_else(|| answer.error().to_string());
            http.fault(if is_busy { SignInFault::Refused } else { refusal }, &words(&said))
        }
        RequestTokenError::Request(error) => error,
        // What it holds may be a token.
        RequestTokenError::Parse(_, _) => {
            http.fault(SignInFault::Malformed, "the response to a request for a token can't be read")
        }
        RequestTokenError::Other(why) => http.fault(SignInFault::Malformed, &words(&why)),
    }
}

#[cfg(test)]
mod tests {
    use oauth2::PkceCodeVerifier;

    use super::*;

    #[test]
    fn pkce_follows_the_example_of_rfc_7636() {
        let verifier = PkceCodeVerifier::new("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".into());
        let challenge = PkceCodeChallenge::from_code_verifier_sha256(&verifier);
        assert_eq!(challenge.as_str(), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        assert_eq!(challenge.method().as_str(), "S256");
    }
}
