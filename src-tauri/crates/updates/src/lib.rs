//! New versions of the program: asks for them, fetches one and has it installed, when the user says so. What replaces the
//! program is behind a trait.
//!
//! Never downloads unasked. Every request passes the gate.
#![forbid(unsafe_code)]

mod installer;
mod update_status;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use contract::types::{AppEvent, UpdateInfo, UpdateMethod};
use contract::{Error, ErrorKind, Result};
use io::Clock;
use net::ConnectionGate;
use platform::spawn;
use tokio_util::sync::CancellationToken;

pub use installer::{UpdateAccess, UpdateDownloadEnd, UpdateInstaller, UpdatePlan};
use update_status::UpdateStatus;

/// What updates need of the application.
pub struct UpdateHost {
    /// Every request passes it.
    pub gate: ConnectionGate,
    pub clock: Arc<dyn Clock>,
    /// Tells the application's watchers.
    pub publish: Box<dyn Fn(AppEvent) + Send + Sync>,
    /// Whether the user wants no connections.
    pub is_offline: Box<dyn Fn() -> bool + Send + Sync>,
}

/// Owner of what is known of newer versions.
pub struct Updates {
    host: UpdateHost,
    /// The edge that can replace the program. None: the program is no window.
    installer: OnceLock<Arc<dyn UpdateInstaller>>,
    status: Mutex<UpdateStatus>,
    /// Ends the running download.
    cancel: Mutex<CancellationToken>,
}

impl Updates {
    /// Knows nothing yet, and has no installer.
    pub fn new(host: UpdateHost) -> Self {
        Self { host, installer: OnceLock::new(), status: Mutex::default(), cancel: Mutex::default() }
    }

    fn status(&self) -> MutexGuard<'_, UpdateStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cancel(&self) -> MutexGuard<'_, CancellationToken> {
        self.cancel.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets an edge install updates. Only the first installer counts.
    pub fn install_by(&self, installer: Arc<dyn UpdateInstaller>) {
        let _ = self.installer.set(installer);
    }

    /// What is known of newer versions, without any request.
    pub fn info(&self) -> UpdateInfo {
        match self.installer.get() {
            Some(installer) => self.status().info(installer.plan()),
            None => UpdateInfo { method: UpdateMethod::NotHere, ..UpdateInfo::default() },
        }
    }

    /// Errors: `update.not_here`, `update.no_address`.
    fn installer(&self) -> Result<&dyn UpdateInstaller> {
        let installer = self.installer.get().ok_or_else(not_here)?;
        match installer.plan().method {
            UpdateMethod::Replace | UpdateMethod::Name => Ok(installer.as_ref()),
            UpdateMethod::NoAddress => Err(Error::new(
                ErrorKind::Conflict,
                "update.no_address",
                "This build of Inglenook was made without an update address.",
                "Get a new version where you got this one, or build it from its source.",
            )),
            UpdateMethod::NotHere => Err(not_here()),
        }
    }

    fn publish(&self) {
        (self.host.publish)(AppEvent::UpdateChanged { update: self.info() });
    }

    fn access(&self) -> UpdateAccess {
        UpdateAccess::new(self.host.gate.clone())
    }

    /// Asks the update server for a newer version, and waits for its answer. An earlier offer stays known where that
    /// fails.
    ///
    /// Errors: those of the installer, `network.offline`, `update.busy`, `update.no_address`, `update.not_here`.
    pub fn check(&self) -> Result<UpdateInfo> {
        let installer = self.installer()?;
        self.status().begin_check()?;
        self.publish();
        let found = installer.check(&self.access());
        let failed = self.status().end_check(found, self.host.clock.now_utc_ms());
        self.publish();
        failed.map_or_else(|| Ok(self.info()), Err)
    }

    /// Asks for a newer version without waiting for the answer. A failure is only logged: the user asked for nothing just
    /// now.
    pub fn begin_check(self: &Arc<Self>) -> Result<()> {
        if self.installer().is_err() {
            return Ok(());
        }
        let updates = Arc::clone(self);
        spawn("update-check", move || {
            if let Err(error) = updates.check() {
                tracing::warn!(code = error.code(), "no newer version could be looked for: {error}");
            }
        })
        .map(drop)
    }

    /// Begins to download the version on offer. Events tell how it goes on.
    ///
    /// Errors: `update.by_hand`, `update.none`, `update.busy`, and those of `check`.
    pub fn begin_download(self: &Arc<Self>) -> Result<UpdateInfo> {
        if self.installer()?.plan().method != UpdateMethod::Replace {
            return Err(Error::new(
                ErrorKind::Conflict,
                "update.by_hand",
                "This copy of Inglenook cannot replace itself: it was not installed by its own installer.",
                "Install the new version the way you installed this one.",
            ));
        }
        self.status().begin_download()?;
        let cancel = CancellationToken::new();
        *self.cancel() = cancel.clone();
        self.publish();
        let running = Arc::clone(self);
        let started = spawn("update-download", move || running.download(&cancel));
        if let Err(error) = started {
            self.status().end_download(Err(error.clone()));
            self.publish();
            return Err(error);
        }
        Ok(self.info())
    }

    /// Ends a running download. Nothing of it is kept.
    pub fn cancel_download(&self) -> UpdateInfo {
        self.cancel().cancel();
        self.info()
    }

    /// Installs the downloaded version, or prepares that for the end of the program.
    ///
    /// Errors: `update.not_ready`, and those of the installer. The old version is still there.
    pub fn install(&self) -> Result<()> {
        let installer = self.installer()?;
        self.status().begin_install()?;
        self.publish();
        let installed = installer.install();
        if let Err(error) = &installed {
            self.status().fail_install(error);
            self.publish();
        }
        installed
    }

    /// Returns when the download ends, however it ends.
    fn download(&self, cancel: &CancellationToken) {
        let end = self.installer().and_then(|installer| {
            installer.download(&self.access(), cancel, &mut |received, total| {
                if self.status().advance_to(received, total) {
                    self.publish();
                    // The user may go offline meanwhile.
                    if (self.host.is_offline)() {
                        cancel.cancel();
                    }
                }
            })
        });
        self.status().end_download(end);
        self.publish();
    }
}

/// Refuses an interface that cannot update the program.
pub fn not_here() -> Error {
    Error::new(
        ErrorKind::Conflict,
        "update.not_here",
        "Inglenook is updated in its own window.",
        "Open the window on the computer that runs Inglenook.",
    )
}
