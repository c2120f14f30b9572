//! Where this build looks for new versions and whose signatures it trusts, both from variables of the build.
//!
//! A build without them never asks for updates. `build.rs` reads this file too, so that a wrong value fails the build.

/// Name of the variable with the public key, as `tauri signer generate` writes it.
pub const KEY_VARIABLE: &str = "INGLENOOK_UPDATE_PUBLIC_KEY";
/// Name of the variable with the addresses of the list of versions, separated by spaces.
pub const ADDRESS_VARIABLE: &str = "INGLENOOK_UPDATE_URL";
/// Name of the variable with a web page where people find new versions. May be absent.
pub const PAGE_VARIABLE: &str = "INGLENOOK_UPDATE_PAGE";

/// Addresses that are tried one after the other; more are a mistake.
const MAX_ADDRESSES: usize = 4;

/// The update addresses of a build and the key that signs what they name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpdateSource {
    /// Base64 of a minisign public key file.
    pub public_key: String,
    /// HTTPS addresses of a list of versions, in order.
    pub addresses: Vec<String>,
    pub page: Option<String>,
}

impl UpdateSource {
    /// Reads the values of the three variables. None: this build looks for no updates.
    ///
    /// Errors if only one of key and address is there, or one of them cannot be used.
    pub fn parse(
        key: Option<&str>,
        addresses: Option<&str>,
        page: Option<&str>,
    ) -> Result<Option<Self>, String> {
        let value =
            |text: Option<&str>| text.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
        let (public_key, addresses) = match (value(key), value(addresses)) {
            (None, None) => return Ok(None),
            (Some(key), Some(addresses)) => (key, addresses),
            (Some(_), None) => return Err(format!("{ADDRESS_VARIABLE} is missing beside {KEY_VARIABLE}")),
            (None, Some(_)) => return Err(format!("{KEY_VARIABLE} is missing beside {ADDRESS_VARIABLE}")),
        };
        if !is_base64(&public_key) {
            return Err(format!(
                "{KEY_VARIABLE} is not the one line of a .pub file of `tauri signer generate`"
            ));
        }
        let addresses: Vec<String> = addresses.split_whitespace().map(str::to_owned).collect();
        if addresses.len() > MAX_ADDRESSES {
            return Err(format!("{ADDRESS_VARIABLE} has more than {MAX_ADDRESSES} addresses"));
        }
        for address in &addresses {
            check_address(ADDRESS_VARIABLE, address)?;
        }
        let page = value(page);
        if let Some(page) = &page {
            check_address(PAGE_VARIABLE, page)?;
        }
        Ok(Some(Self { public_key, addresses, page }))
    }
}

/// Braces would put the version and the system into the address: nothing is sent but a request for one file.
fn check_address(variable: &str, address: &str) -> Result<(), String> {
    let rest =
        address.strip_prefix("https://").ok_or_else(|| format!("{variable}: {address} is not https"))?;
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.is_empty() || host.contains('@') {
        return Err(format!("{variable}: {address} has no host, or a password"));
    }
    if address.contains(['{', '}']) || address.to_ascii_lowercase().contains("%7b") {
        return Err(format!("{variable}: {address} contains a placeholder"));
    }
    Ok(())
}

/// Whether a text can be the base64 of a public key file, which has some hundred characters.
fn is_base64(text: &str) -> bool {
    let is_character = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
    text.len() >= 80 && text.len().is_multiple_of(4) && text.bytes().all(is_character)
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "https://updates.example/latest.json";

    #[test]
    fn key_and_address_come_together_or_not_at_all() {
        let key = "A".repeat(80);
        let key = Some(key.as_str());
        assert_eq!(UpdateSource::parse(None, None, None), Ok(None));
        assert_eq!(UpdateSource::parse(Some(" "), Some(""), Some(URL)), Ok(None));
        let source = UpdateSource::parse(
            key,
            Some(" https://a.example/l.json\nhttps://b.example "),
            Some("https://b.example"),
        );
        let source = source.unwrap().unwrap();
        assert_eq!(source.addresses, ["https://a.example/l.json", "https://b.example"]);
        assert_eq!(source.page.as_deref(), Some("https://b.example"));
        for (key, addresses, page, part) in [
            (key, None, None, "INGLENOOK_UPDATE_URL is missing"),
            (None, Some(URL), None, "INGLENOOK_UPDATE_PUBLIC_KEY is missing"),
            (Some("RWQ"), Some(URL), None, "is not the one line"),
            (key, Some("http://a.example/l.json"), None, "is not https"),
            (key, Some("https:///l.json"), None, "has no host"),
            (key, Some("https://me:pw@a.example/"), None, "a password"),
            (key, Some("https://a.example/{{current_version}}"), None, "a placeholder"),
            (key, Some("https://a.example/%7B%7Barch%7D%7D"), None, "a placeholder"),
            (key, Some("https://a https://b https://c https://d https://e"), None, "more than 4"),
            (key, Some(URL), Some("http://a.example"), "INGLENOOK_UPDATE_PAGE"),
        ] {
            let error = UpdateSource::parse(key, addresses, page).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
