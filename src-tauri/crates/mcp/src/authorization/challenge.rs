//! The `WWW-Authenticate` header of a server that denies access (RFC 9110 section 11.6.1, RFC 6750 section 3).

use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};

/// Parameters of a `Bearer` challenge.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BearerChallenge {
    /// Address of the protected-resource metadata (RFC 9728 section 5.1).
    pub resource_metadata: Option<String>,
    /// Scopes that the request requires.
    pub scopes: Vec<String>,
    /// Such as `insufficient_scope`.
    pub error: Option<String>,
}

impl BearerChallenge {
    /// The first `Bearer` challenge of a response. Other schemes are ignored.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let values = headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
        values.filter_map(Self::parse).next()
    }

    /// Parses one header value, which may hold several challenges.
    pub fn parse(value: &str) -> Option<Self> {
        let mut found: Option<Self> = None;
        let mut is_bearer = false;
        for item in items(value) {
            let mut parameter = item;
            if let Some((scheme, rest)) = scheme_of(item) {
                if found.is_some() {
                    break;
                }
                is_bearer = scheme.eq_ignore_ascii_case("bearer");
                parameter = rest;
            }
            if is_bearer {
                found.get_or_insert_default().take_parameter(parameter);
            }
        }
        found
    }

    pub fn is_insufficient_scope(&self) -> bool {
        self.error.as_deref() == Some("insufficient_scope")
    }

    fn take_parameter(&mut self, parameter: &str) {
        let Some((name, value)) = parameter.split_once('=') else { return };
        let value = unquoted(value.trim());
        match name.trim().to_ascii_lowercase().as_str() {
            "resource_metadata" => self.resource_metadata = Some(value),
            "scope" => self.scopes = value.split_whitespace().map(str::to_owned).collect(),
            "error" => self.error = Some(value),
            _ => {}
        }
    }
}

/// Parts between commas that stand outside of quotes.
fn items(value: &str) -> Vec<&str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let parts = value.split(move |c: char| {
        let was_escaped = std::mem::take(&mut is_escaped);
        match c {
            '\\' if is_quoted && !was_escaped => is_escaped = true,
            '"' if !was_escaped => is_quoted = !is_quoted,
            _ => {}
        }
        c == ',' && !is_quoted
    });
    parts.map(str::trim).filter(|part| !part.is_empty()).collect()
}

/// The scheme that begins a challenge, and what follows it. None: a parameter.
fn scheme_of(item: &str) -> Option<(&str, &str)> {
    let end = item.find(|c: char| c.is_whitespace() || c == '=').unwrap_or(item.len());
    let (word, rest) = item.split_at(end);
    let rest = rest.trim_start();
    (!rest.starts_with('=')).then_some((word, rest))
}

fn unquoted(value: &str) -> String {
    let Some(inner) = value.strip_prefix('"') else { return value.to_owned() };
    let (mut text, mut is_escaped) = (String::new(), false);
    for c in inner.chars() {
        match c {
            '\\' if !is_escaped => {
                is_escaped = true;
                continue;
            }
            '"' if !is_escaped => break,
            c => text.push(c),
        }
        is_escaped = false;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_parsed() {
        let address = Some("https://a.example/.well-known/oauth-protected-resource");
        // Header, address of the metadata, scopes, error.
        type Case = (&'static str, Option<&'static str>, &'static [&'static str], Option<&'static str>);
        let cases: &[Case] = &[
            (
                r#"Bearer resource_metadata="https://a.example/.well-known/oauth-protected-resource""#,
                address,
                &[],
                None,
            ),
            (
                r#"bearer realm="a, b", error="invalid_token" , scope="read  write""#,
                None,
                &["read", "write"],
                Some("invalid_token"),
            ),
            ("Bearer error=insufficient_scope,scope=admin", None, &["admin"], Some("insufficient_scope")),
            (r#"Basic realm="x", Bearer scope="a \"b\"", Digest scope="no""#, None, &["a", "\"b\""], None),
            (r#"Bearer scope = "a""#, None, &["a"], None),
            ("Bearer", None, &[], None),
            (r#"Bearer scope="never ends"#, None, &["never", "ends"], None),
        ];
        for (value, metadata, scopes, error) in cases {
            let found = BearerChallenge::parse(value).unwrap();
            let got = (found.resource_metadata.as_deref(), found.error.as_deref());
            assert_eq!(
                (got, found.scopes),
                ((*metadata, *error), scopes.iter().map(|it| (*it).to_owned()).collect()),
                "{value}"
            );
        }
        for other in ["", "Basic realm=\"Bearer\"", "Negotiate", ",,", "=,=", "Bearerish scope=a"] {
            assert_eq!(BearerChallenge::parse(other), None, "{other}");
        }
    }
}
