//! Well-known addresses of metadata, in the order of the specification (MCP 2025-11-25, "Authorization Server
//! Discovery").

use reqwest::Url;

/// Addresses of a server's protected-resource metadata (RFC 9728 section 3): with its path, then at its root.
pub fn resource_metadata_urls(server: &Url) -> Vec<Url> {
    let path = server.path().trim_end_matches('/');
    let mut urls = vec![inserted(server, "oauth-protected-resource", path)];
    if !path.is_empty() {
        urls.push(inserted(server, "oauth-protected-resource", ""));
    }
    urls
}

/// Addresses of an issuer's metadata: RFC 8414 with its path inserted, then OpenID Connect inserted and appended.
pub fn issuer_metadata_urls(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let mut urls = vec![
        inserted(issuer, "oauth-authorization-server", path),
        inserted(issuer, "openid-configuration", path),
    ];
    if !path.is_empty() {
        let appended = format!("{path}/.well-known/openid-configuration");
        urls.push(with_path(issuer, &appended));
    }
    urls
}

/// Whether a resource identifier covers a server: the same origin, and a path that holds it.
pub fn covers(resource: &Url, server: &Url) -> bool {
    let (outer, inner) = (resource.path().trim_end_matches('/'), server.path());
    let rest = inner.strip_prefix(outer);
    resource.origin() == server.origin() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A server's resource identifier (RFC 8707): no fragment, and no slash that says nothing.
pub fn resource_identifier(server: &Url) -> String {
    let mut url = server.clone();
    url.set_fragment(None);
    let is_bare = url.path() == "/" && url.query().is_none();
    if is_bare { url.as_str().trim_end_matches('/').to_owned() } else { url.into() }
}

fn inserted(base: &Url, name: &str, path: &str) -> Url {
    with_path(base, &format!("/.well-known/{name}{path}"))
}

fn with_path(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(path);
    url.set_query(None);
    url.set_fragment(None);
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn addresses_follow_the_order_of_the_specification() {
        let texts = |urls: Vec<Url>| urls.into_iter().map(String::from).collect::<Vec<_>>();
        let resource: &[(&str, &[&str])] = &[
            (
                "https://example.com/public/mcp?x=1",
                &[
                    "https://example.com/.well-known/oauth-protected-resource/public/mcp",
                    "https://example.com/.well-known/oauth-protected-resource",
                ],
            ),
            ("https://example.com:8443/", &["https://example.com:8443/.well-known/oauth-protected-resource"]),
        ];
        for (server, expected) in resource {
            assert_eq!(texts(resource_metadata_urls(&url(server))), *expected);
        }
        let issuer: &[(&str, &[&str])] = &[
            (
                "https://auth.example.com/tenant1",
                &[
                    "https://auth.example.com/.well-known/oauth-authorization-server/tenant1",
                    "https://auth.example.com/.well-known/openid-configuration/tenant1",
                    "https://auth.example.com/tenant1/.well-known/openid-configuration",
                ],
            ),
            (
                "https://auth.example.com",
                &[
                    "https://auth.example.com/.well-known/oauth-authorization-server",
                    "https://auth.example.com/.well-known/openid-configuration",
                ],
            ),
        ];
        for (issuer, expected) in issuer {
            assert_eq!(texts(issuer_metadata_urls(&url(issuer))), *expected);
        }
    }

    #[test]
    fn a_resource_covers_its_own_paths_only() {
        let cases = [
            ("https://a.example/mcp", "https://a.example/mcp", true),
            ("https://a.example", "https://a.example/mcp", true),
            ("https://a.example/mcp/", "https://a.example/mcp", true),
            ("https://a.example/mcp", "https://a.example/mcp2", false),
            ("https://a.example/mcp/x", "https://a.example/mcp", false),
            ("https://b.example/mcp", "https://a.example/mcp", false),
            ("http://a.example/mcp", "https://a.example/mcp", false),
        ];
        for (resource, server, expected) in cases {
            assert_eq!(covers(&url(resource), &url(server)), expected, "{resource} {server}");
        }
        for (server, expected) in [
            ("https://a.example/", "https://a.example"),
            ("https://a.example/mcp#x", "https://a.example/mcp"),
            ("https://a.example/?x=1", "https://a.example/?x=1"),
        ] {
            assert_eq!(resource_identifier(&url(server)), expected);
        }
    }
}
