//! Where a tool server has its users sign in: protected-resource metadata (RFC 9728), then the metadata of its
//! authorization server (RFC 8414, OpenID Connect Discovery).

use reqwest::Url;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::challenge::BearerChallenge;
use super::fault::SignInFault;
use super::gated_http::GatedHttp;
use super::well_known;
use crate::ServerUrl;
use contract::Result;

/// The scope by which OpenID Connect servers issue refresh tokens.
const OFFLINE_ACCESS: &str = "offline_access";

/// Where and for what to sign in.
pub struct SignInTarget {
    /// The `resource` parameter (RFC 8707).
    pub resource: String,
    /// Scopes to ask for. None: the authorization server's default.
    pub scopes: Vec<String>,
    pub server: ServerMetadata,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResourceMetadata {
    resource: Option<String>,
    authorization_servers: Option<Vec<String>>,
    scopes_supported: Option<Vec<String>>,
}

/// Checked metadata of an authorization server.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ServerMetadata {
    pub issuer: String,
    pub authorization_endpoint: String,
    pub token_endpoint: String,
    pub registration_endpoint: Option<String>,
    pub revocation_endpoint: Option<String>,
    pub token_endpoint_auth_methods_supported: Option<Vec<String>>,
    scopes_supported: Option<Vec<String>>,
    code_challenge_methods_supported: Option<Vec<String>>,
    authorization_response_iss_parameter_supported: Option<bool>,
    client_id_metadata_document_supported: Option<bool>,
}

impl ServerMetadata {
    /// Whether its responses name the issuer (RFC 9207).
    pub fn names_issuer(&self) -> bool {
        self.authorization_response_iss_parameter_supported == Some(true)
    }

    /// Whether it takes the address of a metadata document for a client ID (SEP-991).
    pub fn fetches_client_metadata(&self) -> bool {
        self.client_id_metadata_document_supported == Some(true)
    }
}

/// Finds out where to sign in to a server. `remembered`: its last challenge, for a server that greets everyone.
pub async fn discover(
    http: &GatedHttp,
    server: &ServerUrl,
    remembered: BearerChallenge,
) -> Result<SignInTarget> {
    let greeting = http.greet_without_token(&server.url).await?;
    let challenge = BearerChallenge::of(&greeting.headers).unwrap_or(remembered);
    let found = find_resource_metadata(http, server, challenge.resource_metadata.as_deref()).await?;
    let is_found = found.is_some();
    let resource: ResourceMetadata = found.map(|(_, object)| parse(object)).unwrap_or_default();
    let identifier = match resource.resource {
        Some(text) if Url::parse(&text).is_ok_and(|url| well_known::covers(&url, &server.url)) => text,
        Some(other) => return Err(http.fault(SignInFault::WrongResource, &other)),
        None => well_known::resource_identifier(&server.url),
    };
    // Servers of the revision 2025-03-26 have no metadata of the resource: they are the issuer themselves.
    let own = || (!is_found).then(|| server.url.origin().ascii_serialization());
    let issuer = resource.authorization_servers.unwrap_or_default().into_iter().next().or_else(own);
    let issuer = issuer.ok_or_else(|| http.fault(SignInFault::NoMetadata, &identifier))?;
    let metadata = server_metadata(http, &issuer).await?;
    let mut scopes = if challenge.scopes.is_empty() {
        resource.scopes_supported.unwrap_or_default()
    } else {
        challenge.scopes
    };
    let is_offline = metadata.scopes_supported.iter().flatten().any(|scope| scope == OFFLINE_ACCESS);
    if is_offline && !scopes.is_empty() && !scopes.iter().any(|scope| scope == OFFLINE_ACCESS) {
        scopes.push(OFFLINE_ACCESS.to_owned());
    }
    Ok(SignInTarget { resource: identifier, scopes, server: metadata })
}

/// Whether a server that denies access has metadata for a sign-in.
pub async fn has_resource_metadata(http: &GatedHttp, server: &ServerUrl) -> bool {
    find_resource_metadata(http, server, None).await.is_ok_and(|found| found.is_some())
}

/// `named`: the address that the server gave.
async fn find_resource_metadata(
    http: &GatedHttp,
    server: &ServerUrl,
    named: Option<&str>,
) -> Result<Option<(Url, Map<String, Value>)>> {
    if let Some(named) = named {
        let url = http.check_url(named)?.url;
        let object = http.fetch_json(&url).await?;
        let object = object.ok_or_else(|| http.fault(SignInFault::NoMetadata, named))?;
        return Ok(Some((url, object)));
    }
    for url in well_known::resource_metadata_urls(&server.url) {
        if let Some(object) = http.fetch_json(&url).await? {
            return Ok(Some((url, object)));
        }
    }
    Ok(None)
}

async fn server_metadata(http: &GatedHttp, issuer: &str) -> Result<ServerMetadata> {
    let issuer_url = http.check_url(issuer)?.url;
    for url in well_known::issuer_metadata_urls(&issuer_url) {
        if let Some(object) = http.fetch_json(&url).await? {
            return checked(http, issuer, parse(object));
        }
    }
    Err(http.fault(SignInFault::NoMetadata, issuer))
}

/// Errors: another issuer, no PKCE, and addresses that are not encrypted.
fn checked(http: &GatedHttp, issuer: &str, metadata: ServerMetadata) -> Result<ServerMetadata> {
    // Identical by RFC 8414 section 3.3; in practice they differ by a slash at the end.
    if metadata.issuer.trim_end_matches('/') != issuer.trim_end_matches('/') {
        return Err(http.fault(SignInFault::WrongIssuer, &metadata.issuer));
    }
    let methods = metadata.code_challenge_methods_supported.as_deref().unwrap_or_default();
    if !methods.iter().any(|method| method == "S256") {
        return Err(http.fault(SignInFault::NoPkce, issuer));
    }
    let endpoints = [&metadata.authorization_endpoint, &metadata.token_endpoint];
    let optional = [&metadata.registration_endpoint, &metadata.revocation_endpoint];
    for endpoint in endpoints.into_iter().chain(optional.into_iter().flatten()) {
        http.check_url(endpoint)?;
    }
    Ok(metadata)
}

/// A field of another type leaves the document empty: what is missing is reported then.
fn parse<T: Default + for<'a> Deserialize<'a>>(object: Map<String, Value>) -> T {
    serde_json::from_value(Value::Object(object)).unwrap_or_default()
}
