//! What is kept of a sign-in: among the keys, never in the database. Belongs to one origin.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use serde::{Deserialize, Serialize};

use super::metadata::SignInTarget;
use super::registration::OauthClient;
use contract::types::KeyPlace;
use contract::{Error, Result};
use io::OperatingSystem;
use secrets::Keys;

/// Longest text for the keychain of a system. Windows holds 2560 bytes of UTF-16; the encrypted file takes what is longer.
const fn max_keychain_bytes(system: OperatingSystem) -> usize {
    match system {
        OperatingSystem::Windows => 1200,
        OperatingSystem::Linux | OperatingSystem::MacOs => 8000,
    }
}

/// Tokens as a server issued them. Deliberately without `Debug`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct TokenSet {
    pub access: String,
    pub refresh: Option<String>,
    pub lifetime: Option<Duration>,
    /// None: what was asked for.
    pub scopes: Option<Vec<String>>,
}

/// Tokens as they are kept.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StoredTokens {
    /// Empty: the user has to sign in.
    pub access: String,
    pub refresh: Option<String>,
    /// UTC, in milliseconds. None: unknown.
    pub expires_ms: Option<i64>,
}

/// A sign-in to one server. Deliberately without `Debug`.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Credentials {
    /// Address of the tool server; tokens go nowhere else.
    pub server: String,
    pub resource: String,
    pub issuer: String,
    pub token_endpoint: String,
    pub revocation_endpoint: Option<String>,
    pub client: OauthClient,
    /// Scopes that were granted.
    pub scopes: Vec<String>,
    /// Scopes that a request lacked; the next sign-in asks for them too.
    pub missing_scopes: Vec<String>,
    pub tokens: StoredTokens,
}

impl Credentials {
    pub fn new(
        server: &Url,
        target: &SignInTarget,
        client: OauthClient,
        asked: Vec<String>,
        tokens: TokenSet,
        now_ms: i64,
    ) -> Self {
        let mut made = Self {
            server: server.to_string(),
            resource: target.resource.clone(),
            issuer: target.server.issuer.clone(),
            token_endpoint: target.server.token_endpoint.clone(),
            revocation_endpoint: target.server.revocation_endpoint.clone(),
            client,
            scopes: asked,
            ..Self::default()
        };
        made.take_tokens(tokens, now_ms);
        made
    }

    /// Takes over new tokens. A server that names no new refresh token keeps the old one valid.
    pub fn take_tokens(&mut self, tokens: TokenSet, now_ms: i64) {
        let lifetime_ms = |it: Duration| i64::try_from(it.as_millis()).unwrap_or(i64::MAX);
        self.tokens = StoredTokens {
            access: tokens.access,
            refresh: tokens.refresh.or_else(|| self.tokens.refresh.take()),
            expires_ms: tokens.lifetime.map(|it| now_ms.saturating_add(lifetime_ms(it))),
        };
        if let Some(scopes) = tokens.scopes {
            self.scopes = scopes;
        }
    }

    /// Whether the access token has less than `margin` left.
    pub fn expires_within(&self, margin: Duration, now_ms: i64) -> bool {
        let margin_ms = i64::try_from(margin.as_millis()).unwrap_or(i64::MAX);
        self.tokens.expires_ms.is_some_and(|end| end <= now_ms.saturating_add(margin_ms))
    }

    /// Whether it was made for this server.
    pub fn belongs_to(&self, server: &Url) -> bool {
        Url::parse(&self.server)
            .is_ok_and(|own| own.origin() == server.origin() && own.path() == server.path())
    }
}

/// Keeps the credentials of one server.
#[derive(Clone)]
pub struct CredentialStore {
    keys: Arc<Keys>,
    name: String,
    /// The user wants no keychain.
    wants_file: bool,
}

impl CredentialStore {
    /// `id`: of the server. `wants_file`: whether or not a keychain runs.
    pub fn new(keys: Arc<Keys>, id: &str, wants_file: bool) -> Self {
        Self { keys, name: format!("tools_sign_in:{id}"), wants_file }
    }

    /// What is kept for this server. None: nothing, or it belongs to another address.
    pub fn load(&self, server: &Url) -> Result<Option<Credentials>> {
        let mut text = self.keys.get(&self.name)?;
        if text.is_none() && self.keys.place(false) == KeyPlace::Keychain {
            text = self.keys.get_at(&self.name, KeyPlace::Keychain)?;
        }
        let kept: Option<Credentials> = text.and_then(|text| serde_json::from_str(text.reveal()).ok());
        Ok(kept.filter(|kept| kept.belongs_to(server)))
    }

    /// Keeps them in one place, and nothing in the other.
    pub fn save(&self, kept: &Credentials) -> Result<()> {
        let text = ascii_json(&serde_json::to_string(kept).map_err(Error::bug)?);
        if text.len() > max_keychain_bytes(OperatingSystem::HERE)
            || self.keys.place(self.wants_file) == KeyPlace::File
        {
            self.keys.put_text(&self.name, &text)?;
            return self.remove_from_keychain();
        }
        self.keys.put(&self.name, &text, self.wants_file)?;
        self.keys.remove(&self.name)
    }

    pub fn remove(&self) -> Result<()> {
        self.keys.remove(&self.name)?;
        self.remove_from_keychain()
    }

    fn remove_from_keychain(&self) -> Result<()> {
        match self.keys.place(false) {
            KeyPlace::Keychain => self.keys.remove_at(&self.name, KeyPlace::Keychain),
            KeyPlace::File => Ok(()),
        }
    }
}

/// JSON of printable characters without spaces, as keys are. Outside of strings, `serde_json` writes no others.
fn ascii_json(text: &str) -> String {
    let mut ascii = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii_graphic() {
            ascii.push(c);
        } else {
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| ascii.push_str(&format!("\\u{unit:04x}")));
        }
    }
    ascii
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_hold_no_space_and_nothing_beyond_ascii() {
        let cases = [("a b", r#""a\u0020b""#), ("ä", r#""\u00e4""#), ("🦊", r#""\ud83e\udd8a""#)];
        for (text, expected) in cases {
            let written = ascii_json(&serde_json::to_string(text).unwrap());
            assert_eq!(written, expected);
            assert_eq!(serde_json::from_str::<String>(&written).unwrap(), text);
        }
    }

    #[test]
    fn credentials_belong_to_one_address() {
        let kept = Credentials { server: "https://a.example/mcp".into(), ..Credentials::default() };
        let cases = [
            ("https://a.example/mcp", true),
            ("https://a.example:443/mcp?x=1", true),
            ("https://a.example/other", false),
            ("https://a.example:8443/mcp", false),
            ("http://a.example/mcp", false),
            ("https://b.example/mcp", false),
        ];
        for (server, expected) in cases {
            assert_eq!(kept.belongs_to(&Url::parse(server).unwrap()), expected, "{server}");
        }
    }

    #[test]
    fn a_refresh_keeps_what_the_server_does_not_renew() {
        let mut kept = Credentials { scopes: vec!["a".into()], ..Credentials::default() };
        let tokens = |access: &str, refresh: Option<&str>, lifetime| TokenSet {
            access: access.into(),
            refresh: refresh.map(Into::into),
            lifetime: Some(Duration::from_secs(lifetime)),
            scopes: None,
        };
        kept.take_tokens(tokens("one", Some("r"), 100), 1000);
        kept.take_tokens(tokens("two", None, 100), 1000);
        assert_eq!((kept.tokens.access.as_str(), kept.tokens.refresh.as_deref()), ("two", Some("r")));
        assert_eq!(kept.tokens.expires_ms, Some(101_000));
        assert_eq!(kept.scopes, ["a"]);
        let margin = Duration::from_secs(60);
        for (now_ms, expected) in [(1000, false), (40_999, false), (41_000, true), (200_000, true)] {
            assert_eq!(kept.expires_within(margin, now_ms), expected, "{now_ms}");
        }
    }
}
