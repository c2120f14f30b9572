//! Dynamic client registration (RFC 7591), for users who have no client ID.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::fault::SignInFault;
use super::gated_http::GatedHttp;
use super::metadata::ServerMetadata;
use crate::core::words;
use contract::Result;

/// How a client with a secret authenticates at the token endpoint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientAuthentication {
    #[default]
    Basic,
    Body,
}

/// What identifies us at an authorization server. Deliberately without `Debug`.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OauthClient {
    pub id: String,
    pub secret: Option<String>,
    pub authentication: ClientAuthentication,
    /// The user entered it; it outlives a sign-in.
    pub is_given: bool,
}

impl OauthClient {
    /// A client that the user has registered.
    pub fn given(id: &str, secret: Option<String>) -> Self {
        Self { id: id.trim().to_owned(), secret, is_given: true, ..Self::default() }
    }

    /// Whether an authorization server can know this client: the address of a metadata document (SEP-991) is an ID only
    /// where the server fetches such documents.
    pub fn is_known_to(&self, server: &ServerMetadata) -> bool {
        !self.id.starts_with("https://") || server.fetches_client_metadata()
    }

    /// Takes the way to authenticate that the server supports.
    pub fn suited_to(mut self, server: &ServerMetadata) -> Self {
        let supported = server.token_endpoint_auth_methods_supported.as_deref().unwrap_or_default();
        let has = |method: &str| supported.iter().any(|it| it == method);
        if has("client_secret_post") && !has("client_secret_basic") {
            self.authentication = ClientAuthentication::Body;
        }
        self
    }
}

#[derive(Deserialize)]
struct Registration {
    client_id: String,
    client_secret: Option<String>,
    token_endpoint_auth_method: Option<String>,
}

/// Registers this program for one redirect address.
///
/// Errors: `tools.sign_in_client_id`.
pub async fn register(
    http: &GatedHttp,
    server: &ServerMetadata,
    redirect: &str,
    scopes: &[String],
) -> Result<OauthClient> {
    let Some(endpoint) = &server.registration_endpoint else {
        return Err(http.fault(SignInFault::NoRegistration, &server.issuer));
    };
    let mut document = json!({
        "client_name": "Inglenook",
        "redirect_uris": [redirect],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "application_type": "native",
    });
    if !scopes.is_empty() {
        document["scope"] = json!(scopes.join(" "));
    }
    let response = http.post_json(&http.check_url(endpoint)?.url, &document).await?;
    let refused = |why: &str| http.fault(SignInFault::RegistrationRefused, why);
    if !matches!(response.status, 200 | 201) {
        let object = response.object().unwrap_or_default();
        let said = ["error_description", "error"].into_iter().find_map(|key| object.get(key)?.as_str());
        let said = said.map_or_else(|| format!("status {}", response.status), words);
        return Err(refused(&said));
    }
    let registration: Registration =
        serde_json::from_slice(&response.body).map_err(|_| refused("its response has no client ID"))?;
    let authentication = match registration.token_endpoint_auth_method.as_deref() {
        Some("client_secret_post") => ClientAuthentication::Body,
        _ => ClientAuthentication::Basic,
    };
    let secret = registration.client_secret.filter(|secret| !secret.is_empty());
    Ok(OauthClient { id: registration.client_id, secret, authentication, is_given: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_document_is_an_id_where_it_is_fetched() {
        let server = |fetches: Option<bool>| {
            serde_json::from_value::<ServerMetadata>(
                json!({ "client_id_metadata_document_supported": fetches }),
            )
            .unwrap()
        };
        let (document, plain) =
            (OauthClient::given("https://a.example/client.json", None), OauthClient::given("abc", None));
        for (fetches, is_known) in [(Some(true), true), (Some(false), false), (None, false)] {
            assert_eq!(document.is_known_to(&server(fetches)), is_known, "{fetches:?}");
            assert!(plain.is_known_to(&server(fetches)));
        }
    }
}
