//! The states of an update as a pure state machine: check, download, install, and what may follow what.

use contract::types::{ErrorInfo, UpdateInfo, UpdateOffer, UpdatePhase};
use contract::{Error, ErrorKind, Result};

use super::installer::{UpdateDownloadEnd, UpdatePlan};

/// Progress is reported at every step of this size where the total is unknown.
const PROGRESS_STEP_BYTES: u64 = 1 << 20;

/// Longest text of notes that is kept: a page of release notes has a few thousand characters.
const MAX_NOTES_CHARS: usize = 20_000;

/// What is known of newer versions.
#[derive(Debug, Default)]
pub(super) struct UpdateStatus {
    phase: UpdatePhase,
    offer: Option<UpdateOffer>,
    checked_ms: Option<i64>,
    error: Option<ErrorInfo>,
    /// Where a running check began, and a failed one returns to.
    before_check: UpdatePhase,
}

impl UpdateStatus {
    pub fn info(&self, plan: UpdatePlan) -> UpdateInfo {
        let UpdatePlan { method, package, hosts, page } = plan;
        UpdateInfo {
            method,
            package,
            hosts,
            page,
            phase: self.phase,
            offer: self.offer.clone(),
            checked_ms: self.checked_ms,
            error: self.error.clone(),
        }
    }

    /// Errors: `update.busy` while something runs, and where a downloaded version waits for a restart.
    pub fn begin_check(&mut self) -> Result<()> {
        match self.phase {
            UpdatePhase::Unknown | UpdatePhase::Current | UpdatePhase::Available => {
                self.before_check = self.phase;
                self.phase = UpdatePhase::Checking;
                self.error = None;
                Ok(())
            }
            UpdatePhase::Checking
            | UpdatePhase::Downloading { .. }
            | UpdatePhase::Ready
            | UpdatePhase::Installing => Err(busy()),
        }
    }

    /// Returns the error of a check that failed.
    pub fn end_check(&mut self, found: Result<Option<UpdateOffer>>, now_ms: i64) -> Option<Error> {
        match found {
            Ok(offer) => {
                self.phase = if offer.is_some() { UpdatePhase::Available } else { UpdatePhase::Current };
                self.offer = offer.map(bounded);
                self.checked_ms = Some(now_ms);
                None
            }
            Err(error) => {
                self.phase = self.before_check;
                Some(error)
            }
        }
    }

    /// Errors: `update.none` without an offer, `update.busy` while something runs.
    pub fn begin_download(&mut self) -> Result<()> {
        match self.phase {
            UpdatePhase::Available => {
                self.phase = UpdatePhase::Downloading { received_bytes: 0, total_bytes: None };
                self.error = None;
                Ok(())
            }
            UpdatePhase::Unknown | UpdatePhase::Current => Err(Error::new(
                ErrorKind::Conflict,
                "update.none",
                "No newer version is known that could be downloaded.",
                "Check for updates first.",
            )),
            UpdatePhase::Checking
            | UpdatePhase::Downloading { .. }
            | UpdatePhase::Ready
            | UpdatePhase::Installing => Err(busy()),
        }
    }

    /// Notes the bytes received so far. Returns whether that is worth telling: each percent once.
    pub fn advance_to(&mut self, received: u64, total: Option<u64>) -> bool {
        let UpdatePhase::Downloading { received_bytes, total_bytes } = &mut self.phase else { return false };
        let step = total.map_or(PROGRESS_STEP_BYTES, |total| (total / 100).max(1));
        let is_news = received / step > *received_bytes / step || *total_bytes != total;
        (*received_bytes, *total_bytes) = (received, total);
        is_news
    }

    pub fn end_download(&mut self, end: Result<UpdateDownloadEnd>) {
        self.phase = match end {
            Ok(UpdateDownloadEnd::Verified) => UpdatePhase::Ready,
            Ok(UpdateDownloadEnd::Cancelled) => UpdatePhase::Available,
            Err(error) => {
                self.error = Some(error.info);
                UpdatePhase::Available
            }
        };
    }

    /// Errors: `update.not_ready` where nothing verified waits.
    pub fn begin_install(&mut self) -> Result<()> {
        if self.phase != UpdatePhase::Ready {
            return Err(Error::new(
                ErrorKind::Conflict,
                "update.not_ready",
                "No downloaded version is ready to be installed.",
                "Check for updates and download the new version first.",
            ));
        }
        self.phase = UpdatePhase::Installing;
        self.error = None;
        Ok(())
    }

    /// The old version is still there, and the new one may be tried again.
    pub fn fail_install(&mut self, error: &Error) {
        self.phase = UpdatePhase::Ready;
        self.error = Some(error.info.clone());
    }
}

fn busy() -> Error {
    Error::new(
        ErrorKind::Conflict,
        "update.busy",
        "An update is already in progress.",
        "Wait for its end, cancel the download, or restart Inglenook where it is ready.",
    )
}

/// The offer with notes of a bounded length: they are foreign text.
fn bounded(mut offer: UpdateOffer) -> UpdateOffer {
    if let Some(notes) = &mut offer.notes
        && let Some((end, _)) = notes.char_indices().nth(MAX_NOTES_CHARS)
    {
        notes.truncate(end);
        notes.push('…');
    }
    offer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(version: &str) -> UpdateOffer {
        UpdateOffer { version: version.into(), published_ms: None, notes: None }
    }

    fn failure() -> Error {
        Error::new(ErrorKind::Limit, "update.check", "no answer", "try again")
    }

    #[test]
    fn a_version_is_found_downloaded_and_installed() {
        let mut status = UpdateStatus::default();
        assert_eq!(status.begin_download().unwrap_err().code(), "update.none");
        status.begin_check().unwrap();
        assert_eq!(status.begin_check().unwrap_err().code(), "update.busy");
        assert_eq!(status.end_check(Ok(Some(offer("2.0.0"))), 7), None);
        assert_eq!(status.info(UpdatePlan::default()).offer, Some(offer("2.0.0")));
        assert_eq!(status.begin_install().unwrap_err().code(), "update.not_ready");
        status.begin_download().unwrap();
        assert_eq!(status.begin_check().unwrap_err().code(), "update.busy");
        status.end_download(Ok(UpdateDownloadEnd::Verified));
        assert_eq!(status.phase, UpdatePhase::Ready);
        assert_eq!(status.begin_check().unwrap_err().code(), "update.busy");
        status.begin_install().unwrap();
        status.fail_install(&failure());
        assert_eq!((status.phase, status.error.as_ref()), (UpdatePhase::Ready, Some(&failure().info)));
        status.begin_install().unwrap();
        assert_eq!((status.phase, status.error), (UpdatePhase::Installing, None));
    }

    #[test]
    fn a_failed_check_returns_to_what_was_known() {
        let mut status = UpdateStatus::default();
        status.begin_check().unwrap();
        assert_eq!(status.end_check(Err(failure()), 1), Some(failure()));
        assert_eq!((status.phase, status.checked_ms), (UpdatePhase::Unknown, None));
        status.begin_check().unwrap();
        status.end_check(Ok(Some(offer("2.0.0"))), 2);
        status.begin_check().unwrap();
        status.end_check(Err(failure()), 3);
        let info = status.info(UpdatePlan::default());
        assert_eq!((info.phase, info.checked_ms), (UpdatePhase::Available, Some(2)));
        assert_eq!(info.offer, Some(offer("2.0.0")));
        status.begin_check().unwrap();
        status.end_check(Ok(None), 4);
        assert_eq!((status.phase, status.offer), (UpdatePhase::Current, None));
    }

    #[test]
    fn a_cancelled_or_failed_download_can_be_started_again() {
        let mut status =
            UpdateStatus { phase: UpdatePhase::Available, offer: Some(offer("2.0.0")), ..Default::default() };
        status.begin_download().unwrap();
        status.end_download(Ok(UpdateDownloadEnd::Cancelled));
        assert_eq!((status.phase, status.error.clone()), (UpdatePhase::Available, None));
        status.begin_download().unwrap();
        status.end_download(Err(failure()));
        assert_eq!((status.phase, status.error.clone()), (UpdatePhase::Available, Some(failure().info)));
        status.begin_download().unwrap();
        assert_eq!(status.error, None);
    }

    #[test]
    fn progress_is_told_once_a_percent() {
        let mut status =
            UpdateStatus { phase: UpdatePhase::Available, offer: Some(offer("2.0.0")), ..Default::default() };
        assert!(!status.advance_to(5, Some(1000)));
        status.begin_download().unwrap();
        assert!(status.advance_to(5, Some(1000)));
        assert!(!status.advance_to(9, Some(1000)));
        assert!(status.advance_to(10, Some(1000)));
        let told = (11..=1000).filter(|received| status.advance_to(*received, Some(1000))).count();
        assert_eq!(told, 99);
    }

    #[test]
    fn long_notes_are_cut_between_characters() {
        let mut status = UpdateStatus::default();
        status.begin_check().unwrap();
        let notes = Some("ä".repeat(MAX_NOTES_CHARS + 1));
        status.end_check(Ok(Some(UpdateOffer { notes, ..offer("2.0.0") })), 1);
        let notes = status.offer.and_then(|offer| offer.notes).unwrap();
        assert_eq!(notes.chars().count(), MAX_NOTES_CHARS + 1);
        assert!(notes.ends_with('…'));
    }
}
