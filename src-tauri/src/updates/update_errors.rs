//! What failures of the updater mean to people: code, cause with place, and remedy.

use contract::{Error, ErrorKind};
use tauri::Url;
use tauri_plugin_updater::Error as PluginError;

/// What was being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpdateStep {
    Check,
    Download,
    Install,
}

const TRY_LATER: &str = "Try again later. This version keeps working.";

/// An error of the plugin, in words for people.
pub fn plugin_error(step: UpdateStep, hosts: &[String], error: PluginError) -> Error {
    let place = hosts.join(", ");
    match error {
        PluginError::Reqwest(error) if error.is_decode() && step == UpdateStep::Check => {
            not_a_list(&place, &error)
        }
        PluginError::Serialization(error) => not_a_list(&place, &error),
        PluginError::Reqwest(error) => match gate_error(&error) {
            Some(refused) => refused,
            None => unanswered(step, &place, &cause_chain(&error.without_url())),
        },
        PluginError::Network(cause) => unanswered(step, &place, cause.trim_matches('`')),
        PluginError::ReleaseNotFound => Error::new(
            ErrorKind::NotFound,
            "update.no_list",
            format!("{place} has no list of versions."),
            TRY_LATER,
        ),
        PluginError::TargetNotFound(_) | PluginError::TargetsNotFound(_) => Error::new(
            ErrorKind::NotFound,
            "update.platform",
            format!("{place} has a newer version, but not for this kind of computer or package."),
            TRY_LATER,
        ),
        PluginError::Minisign(_)
        | PluginError::Base64(_)
        | PluginError::SignatureUtf8(_)
        | PluginError::SignedVersionMismatch { .. }
        | PluginError::MissingSignedVersion => Error::input(
            "update.signature",
            format!("The new version from {place} was not accepted: {}.", cause_chain(&error)),
            "Do not install it by hand. Nothing was changed. Try again later, or tell those who publish Inglenook.",
        ),
        other => not_installed(&cause_chain(&other)),
    }
}

/// What the gate, or our rule for redirects, said.
fn gate_error(error: &(dyn std::error::Error + 'static)) -> Option<Error> {
    std::iter::successors(Some(error), |error| error.source())
        .find_map(|error| error.downcast_ref::<Error>())
        .cloned()
}

fn not_a_list(place: &str, error: &dyn std::error::Error) -> Error {
    let message = format!("{place} sent no list of versions: {}.", cause_chain(error));
    Error::input("update.format", message, TRY_LATER)
}

fn unanswered(step: UpdateStep, place: &str, cause: &str) -> Error {
    let remedy = "Check your internet connection and the proxy, then try again.";
    match step {
        UpdateStep::Check => {
            let message = match is_distrust(cause) {
                true => format!("The connection to {place} can't be trusted: {cause}."),
                false => format!("{place} can't be reached: {cause}."),
            };
            Error::new(ErrorKind::Device, "update.unreachable", message, remedy)
        }
        UpdateStep::Download | UpdateStep::Install => {
            let message = format!("The download from {place} broke off: {cause}.");
            Error::new(ErrorKind::Device, "update.download", message, remedy)
        }
    }
}

/// Whether a certificate is the cause.
fn is_distrust(cause: &str) -> bool {
    let lower = cause.to_lowercase();
    lower.contains("certificate") || lower.contains("unknownissuer")
}

fn not_installed(cause: &str) -> Error {
    Error::new(
        ErrorKind::Device,
        "update.install",
        format!("The new version could not be installed: {cause}."),
        "Check that you may write to the folder of the program and that its disk has space. This version keeps working.",
    )
}

/// No version was found or downloaded that could be used.
pub fn not_ready() -> Error {
    Error::new(
        ErrorKind::Conflict,
        "update.not_ready",
        "No downloaded version is ready to be installed.",
        "Check for updates and download the new version first.",
    )
}

pub fn too_large(host: &str, max_bytes: u64) -> Error {
    Error::new(
        ErrorKind::Limit,
        "update.too_large",
        format!("The update from {host} is larger than {} MB.", max_bytes >> 20),
        "This is no package of Inglenook. Try again later.",
    )
}

/// An address that a list of versions or a redirect names.
pub fn unencrypted(url: &Url) -> Error {
    Error::input(
        "update.redirect",
        format!("The update server leads to {}, which is not encrypted.", host(url)),
        "Check the network that you are in: it may want you to log in first.",
    )
}

/// Host name of a URL, with the port if it is not the usual one.
pub fn host(url: &Url) -> String {
    let name = url.host_str().unwrap_or_default();
    url.port().map_or(name.to_owned(), |port| format!("{name}:{port}"))
}

/// An error with its causes, without a full stop at the end.
fn cause_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    text.trim_end_matches('.').to_owned()
}
