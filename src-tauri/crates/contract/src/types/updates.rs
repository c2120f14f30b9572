//! New versions of the program itself, as the window shows them.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::ErrorInfo;

/// How this copy of the program was installed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum PackageKind {
    AppImage,
    Deb,
    Rpm,
    Flatpak,
    MacApp,
    Nsis,
    Msi,
    /// Built from source, or unpacked by hand.
    #[default]
    Source,
}

impl PackageKind {
    /// Whether the program may replace its own files. The others belong to a package manager or a compiler.
    pub fn can_replace_itself(self) -> bool {
        match self {
            Self::AppImage | Self::MacApp | Self::Nsis | Self::Msi => true,
            Self::Deb | Self::Rpm | Self::Flatpak | Self::Source => false,
        }
    }
}

/// What this copy of the program does about new versions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum UpdateMethod {
    /// It downloads, verifies and installs them.
    Replace,
    /// It only names them: a package manager or the user installs them.
    Name,
    /// It was built without an update address: it sends no requests.
    #[default]
    NoAddress,
    /// The caller is not the window.
    NotHere,
}

/// A newer version. Its texts come from the update server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct UpdateOffer {
    pub version: String,
    /// When it was published.
    #[ts(type = "number | null")]
    pub published_ms: Option<i64>,
    /// Release notes.
    pub notes: Option<String>,
}

/// Where an update is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum UpdatePhase {
    /// No check was made since the program started.
    #[default]
    Unknown,
    Checking,
    /// This is the newest version.
    Current,
    /// A newer version exists. Nothing of it was downloaded.
    Available,
    Downloading {
        #[ts(type = "number")]
        received_bytes: u64,
        /// Absent: the server does not say.
        #[ts(type = "number | null")]
        total_bytes: Option<u64>,
    },
    /// Downloaded and verified: a restart installs it.
    Ready,
    Installing,
}

/// What is known of newer versions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct UpdateInfo {
    pub method: UpdateMethod,
    pub package: PackageKind,
    /// Hosts that a check asks, in order.
    pub hosts: Vec<String>,
    /// A web page where people find new versions.
    pub page: Option<String>,
    pub phase: UpdatePhase,
    /// Present from `available` on.
    pub offer: Option<UpdateOffer>,
    /// The last check that had an answer.
    #[ts(type = "number | null")]
    pub checked_ms: Option<i64>,
    /// Why the last download or installation failed.
    pub error: Option<ErrorInfo>,
}
