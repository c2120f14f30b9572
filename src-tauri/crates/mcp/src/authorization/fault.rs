//! Why a sign-in failed, as one table: code, cause and remedy.

use contract::{Error, ErrorKind};

/// The code of every error that a sign-in can solve begins so.
const CODE_PREFIX: &str = "tools.sign_in";

/// Whether signing in can solve this error.
pub fn is_sign_in_error(code: &str) -> bool {
    code.starts_with(CODE_PREFIX)
}

/// Whether a sign-in ended because the user canceled it.
pub fn was_canceled(error: &Error) -> bool {
    error.code() == "tools.sign_in_canceled"
}

/// Kinds of failed sign-ins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignInFault {
    /// The server demands a token, and there is none.
    Needed,
    /// The token is no longer accepted and can't be refreshed.
    Expired,
    /// The token does not cover this request.
    MoreScopes,
    /// An address is neither HTTPS nor on this computer.
    Insecure,
    /// The metadata belongs to another server.
    WrongResource,
    /// No metadata of the authorization server was found.
    NoMetadata,
    WrongIssuer,
    NoPkce,
    NoRegistration,
    RegistrationRefused,
    Denied,
    Refused,
    WrongState,
    TimedOut,
    Canceled,
    Moved,
    Malformed,
    TooLarge,
    Unreachable,
    /// The loopback listener could not be opened.
    NoListener,
}

/// Kind of fault, code, kind of error, cause, remedy. `{name}` is the tool server; `{detail}` says more.
type FaultText = (SignInFault, &'static str, ErrorKind, &'static str, &'static str);

const REPORT: &str = "Report this to the operator of the server.";
const AGAIN: &str = "Sign in again.";

/// In the order of the kinds.
const TEXTS: &[FaultText] = &[
    (
        SignInFault::Needed,
        "tools.sign_in",
        ErrorKind::Conflict,
        "{name} requires you to sign in.",
        "Sign in under Settings > Tools, or with `nook tools sign-in`.",
    ),
    (
        SignInFault::Expired,
        "tools.sign_in_expired",
        ErrorKind::Conflict,
        "Your sign-in to {name} has expired.",
        AGAIN,
    ),
    (
        SignInFault::MoreScopes,
        "tools.sign_in_scope",
        ErrorKind::Conflict,
        "{name} requires more permissions for this request: {detail}.",
        "Sign in again to grant them.",
    ),
    (
        SignInFault::Insecure,
        "tools.sign_in_insecure",
        ErrorKind::Input,
        "Signing in to {name} is not possible: {detail} is not encrypted, or is on your own computer.",
        "Use an address that starts with https://.",
    ),
    (
        SignInFault::WrongResource,
        "tools.sign_in_resource",
        ErrorKind::Input,
        "The sign-in metadata of {name} belongs to another server: {detail}.",
        "Check the address of the server.",
    ),
    (
        SignInFault::NoMetadata,
        "tools.sign_in_metadata",
        ErrorKind::Input,
        "{name} does not say where to sign in: {detail} has no valid metadata.",
        "If the server uses a key, add it as a header instead.",
    ),
    (
        SignInFault::WrongIssuer,
        "tools.sign_in_issuer",
        ErrorKind::Input,
        "The response for {name} comes from another authorization server: {detail}.",
        REPORT,
    ),
    (
        SignInFault::NoPkce,
        "tools.sign_in_pkce",
        ErrorKind::Input,
        "The authorization server {detail} of {name} does not support PKCE with S256.",
        REPORT,
    ),
    (
        SignInFault::NoRegistration,
        "tools.sign_in_client_id",
        ErrorKind::Input,
        "The authorization server {detail} of {name} does not register applications by itself.",
        "Register Inglenook there with the redirect address http://127.0.0.1/callback and enter its client ID.",
    ),
    (
        SignInFault::RegistrationRefused,
        "tools.sign_in_client_id",
        ErrorKind::Input,
        "The authorization server of {name} refused to register Inglenook: {detail}.",
        "Register Inglenook there with the redirect address http://127.0.0.1/callback and enter its client ID.",
    ),
    (
        SignInFault::Denied,
        "tools.sign_in_denied",
        ErrorKind::Conflict,
        "You did not allow access to {name}.",
        AGAIN,
    ),
    (
        SignInFault::Refused,
        "tools.sign_in_refused",
        ErrorKind::Input,
        "The authorization server of {name} refused the request: {detail}.",
        AGAIN,
    ),
    (
        SignInFault::WrongState,
        "tools.sign_in_state",
        ErrorKind::Input,
        "The response in the browser does not belong to this sign-in to {name}.",
        AGAIN,
    ),
    (
        SignInFault::TimedOut,
        "tools.sign_in_timeout",
        ErrorKind::Conflict,
        "The sign-in to {name} was not completed within {detail} minutes.",
        AGAIN,
    ),
    (
        SignInFault::Canceled,
        "tools.sign_in_canceled",
        ErrorKind::Conflict,
        "The sign-in to {name} was canceled.",
        AGAIN,
    ),
    (
        SignInFault::Moved,
        "tools.sign_in_moved",
        ErrorKind::Input,
        "A sign-in address of {name} redirects to another address: {detail}.",
        "Check the address of the server.",
    ),
    (
        SignInFault::Malformed,
        "tools.sign_in_malformed",
        ErrorKind::Input,
        "The authorization server of {name} sent an invalid response: {detail}.",
        REPORT,
    ),
    (
        SignInFault::TooLarge,
        "tools.sign_in_too_large",
        ErrorKind::Limit,
        "A sign-in address of {name} sent a response that is too large: {detail}.",
        REPORT,
    ),
    (
        SignInFault::Unreachable,
        "tools.sign_in_unreachable",
        ErrorKind::Device,
        "A sign-in address of {name} can't be reached: {detail}.",
        "Check your connection and try again.",
    ),
    (
        SignInFault::NoListener,
        "tools.sign_in_listener",
        ErrorKind::Device,
        "No port of this computer could be opened for the sign-in to {name}: {detail}.",
        "Check your firewall and try again.",
    ),
];

impl SignInFault {
    /// The error of the tool server `name`. `detail` must not contain a token.
    pub fn error(self, name: &str, detail: &str) -> Error {
        let (_, code, kind, cause, remedy) = TEXTS[self as usize];
        let message = cause.replace("{detail}", detail).replace("{name}", name);
        Error::new(kind, code, message, remedy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_text() {
        assert!(TEXTS.iter().enumerate().all(|(at, text)| text.0 as usize == at));
        assert_eq!(TEXTS.len(), SignInFault::NoListener as usize + 1);
    }

    #[test]
    fn texts_name_server_cause_and_remedy() {
        let cases = [
            (SignInFault::Needed, "", "tools.sign_in", "lab requires you to sign in."),
            (
                SignInFault::MoreScopes,
                "files:write",
                "tools.sign_in_scope",
                "lab requires more permissions for this request: files:write.",
            ),
            (
                SignInFault::TimedOut,
                "5",
                "tools.sign_in_timeout",
                "The sign-in to lab was not completed within 5 minutes.",
            ),
        ];
        for (fault, detail, code, message) in cases {
            let error = fault.error("lab", detail);
            assert_eq!((error.code(), error.message()), (code, message));
            assert!(is_sign_in_error(error.code()) && !error.info.remedy.is_empty());
        }
        assert!(!is_sign_in_error("tools.key"));
    }
}
