//! Why fetching a file ended before all of it had arrived.

use io::IoError;

use crate::error::HubError;

/// Ends all connections of a file.
#[derive(Debug)]
pub(crate) enum FetchEnd {
    /// The caller stopped the download.
    Stopped,
    /// The server's file is not the one that this download began with.
    Changed,
    /// The server sends whole files only.
    NoRanges,
    /// The download failed for good.
    Failed(HubError),
}

impl From<IoError> for FetchEnd {
    fn from(error: IoError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<HubError> for FetchEnd {
    fn from(error: HubError) -> Self {
        Self::Failed(error)
    }
}
