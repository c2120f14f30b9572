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

/// Code behind the prefix, kind, cause, remedy. `{name}` is the tool server; `{detail}` says more.
type FaultText = (&'static str, ErrorKind, &'static str, &'static str);

const REPORT: &str = "Report this to the operator of the server.";
const AGAIN: &str = "Sign in again.";

impl SignInFault {
    const fn text(self) -> FaultText {
        use ErrorKind::{Conflict, Device, Input, Limit};
        match self {
            Self::Needed => (
                "",
                Conflict,
                "{name} requires you to sign in.",
                "Sign in under Settings > Tools, or with `nook tools sign-in`.",
            ),
            Self::Expired => ("_expired", Conflict, "Your sign-in to {name} has expired.", AGAIN),
            Self::MoreScopes => (
                "_scope",
                Conflict,
                "{name} requires more permissions for this request: {detail}.",
                "Sign in again to grant them.",
            ),
            Self::Insecure => (
                "_insecure",
                Input,
                "Signing in to {name} is not possible: {detail} is not encrypted, or is on your own computer.",
                "Use an address that starts with https://.",
            ),
            Self::WrongResource => (
                "_resource",
                Input,
                "The sign-in metadata of {name} belongs to another server: {detail}.",
                "Check the address of the server.",
            ),
            Self::NoMetadata => (
                "_metadata",
                Input,
                "{name} does not say where to sign in: {detail} has no valid metadata.",
                "If the server uses a key, add it as a header instead.",
            ),
            Self::WrongIssuer => (
                "_issuer",
                Input,
                "The response for {name} comes from another authorization server: {detail}.",
                REPORT,
            ),
            Self::NoPkce => (
                "_pkce",
                Input,
                "The authorization server {detail} of {name} does not support PKCE with S256.",
                REPORT,
            ),
            Self::NoRegistration => (
                "_client_id",
                Input,
                "The authorization server {detail} of {name} does not register applications by itself.",
                "Register Inglenook there with the redirect address http://127.0.0.1/callback and enter its client ID.",
            ),
            Self::RegistrationRefused => (
                "_client_id",
                Input,
                "The authorization server of {name} refused to register Inglenook: {detail}.",
                "Register Inglenook there with the redirect address http://127.0.0.1/callback and enter its client ID.",
            ),
            Self::Denied => ("_denied", Conflict, "You did not allow access to {name}.", AGAIN),
            Self::Refused => (
                "_refused",
                Input,
                "The authorization server of {name} refused the request: {detail}.",
                AGAIN,
            ),
            Self::WrongState => (
                "_state",
                Input,
                "The response in the browser does not belong to this sign-in to {name}.",
                AGAIN,
            ),
            Self::TimedOut => (
                "_timeout",
                Conflict,
                "The sign-in to {name} was not completed within {detail} minutes.",
                AGAIN,
            ),
            Self::Canceled => ("_canceled", Conflict, "The sign-in to {name} was canceled.", AGAIN),
            Self::Moved => (
                "_moved",
                Input,
                "A sign-in address of {name} redirects to another address: {detail}.",
                "Check the address of the server.",
            ),
            Self::Malformed => (
                "_malformed",
                Input,
                "The authorization server of {name} sent an invalid response: {detail}.",
                REPORT,
            ),
            Self::TooLarge => (
                "_too_large",
                Limit,
                "A sign-in address of {name} sent a response that is too large: {detail}.",
                REPORT,
            ),
            Self::Unreachable => (
                "_unreachable",
                Device,
                "A sign-in address of {name} can't be reached: {detail}.",
                "Check your connection and try again.",
            ),
            Self::NoListener => (
                "_listener",
                Device,
                "No port of this computer could be opened for the sign-in to {name}: {detail}.",
                "Check your firewall and try again.",
            ),
        }
    }

    /// The error of the tool server `name`. `detail` must not contain a token.
    pub fn error(self, name: &str, detail: &str) -> Error {
        let (code, kind, cause, remedy) = self.text();
        let message = cause.replace("{detail}", detail).replace("{name}", name);
        Error::new(kind, format!("{CODE_PREFIX}{code}"), message, remedy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
