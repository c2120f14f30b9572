//! New versions of the program: asks for them, fetches one and has it installed, when the user says so.
//!
//! Never asks by itself unless `check_updates` is on. Never downloads unasked. Every request passes the gate.

mod installer;
mod update_status;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use contract::types::{AppEvent, UpdateInfo, UpdateMethod, UpdatePhase};
use contract::{Error, ErrorKind, Result};
use platform::spawn;
use tokio_util::sync::CancellationToken;

use crate::App;
use crate::context::Context;
use crate::network::callers::Interface;
use crate::settings::TypedSettings;
pub use installer::{UpdateAccess, UpdateDownloadEnd, UpdateInstaller, UpdatePlan};
use update_status::UpdateStatus;

/// Owner of what is known of newer versions.
pub(crate) struct Updates {
    ctx: Context,
    /// The edge that can replace the program. None: the program is no window.
    installer: OnceLock<Arc<dyn UpdateInstaller>>,
    status: Mutex<UpdateStatus>,
    /// Ends the running download.
    cancel: Mutex<CancellationToken>,
}

impl Updates {
    pub fn new(ctx: Context) -> Self {
        Self { ctx, installer: OnceLock::new(), status: Mutex::default(), cancel: Mutex::default() }
    }

    fn status(&self) -> MutexGuard<'_, UpdateStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cancel(&self) -> MutexGuard<'_, CancellationToken> {
        self.cancel.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn info(&self) -> UpdateInfo {
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
        self.ctx.events.publish(AppEvent::UpdateChanged { update: self.info() });
    }

    fn access(&self) -> UpdateAccess {
        UpdateAccess::new(self.ctx.gate.clone())
    }

    /// Asks for a newer version. An earlier offer stays known where that fails.
    fn check(&self) -> Result<UpdateInfo> {
        let installer = self.installer()?;
        self.status().begin_check()?;
        self.publish();
        let found = installer.check(&self.access());
        let failed = self.status().end_check(found, self.ctx.clock.now_utc_ms());
        self.publish();
        failed.map_or_else(|| Ok(self.info()), Err)
    }

    /// Returns when the download ends, however it ends.
    fn download(&self, cancel: &CancellationToken) {
        let end = self.installer().and_then(|installer| {
            installer.download(&self.access(), cancel, &mut |received, total| {
                if self.status().advance_to(received, total) {
                    self.publish();
                    // The user may go offline meanwhile.
                    if self.ctx.settings.offline().unwrap_or(false) {
                        cancel.cancel();
                    }
                }
            })
        });
        self.status().end_download(end);
        self.publish();
    }
}

fn not_here() -> Error {
    Error::new(
        ErrorKind::Conflict,
        "update.not_here",
        "Inglenook is updated in its own window.",
        "Open the window on the computer that runs Inglenook.",
    )
}

impl App {
    /// Lets this application's window install updates. Only the first installer counts.
    pub fn update_by(&self, installer: Arc<dyn UpdateInstaller>) {
        let _ = self.updates().installer.set(installer);
    }

    /// Asks for a newer version where the setting says so, without waiting for the answer. A failure is only logged: the
    /// user asked for nothing just now.
    pub fn check_for_update_if_set(&self) -> Result<()> {
        if !self.ctx().settings.check_updates()? || self.updates().installer().is_err() {
            return Ok(());
        }
        let updates = Arc::clone(self.updates());
        spawn("update-check", move || {
            if let Err(error) = updates.check() {
                tracing::warn!(code = error.code(), "no newer version could be looked for: {error}");
            }
        })
        .map(drop)
    }

    /// What is known of newer versions, without any request.
    pub fn update_info(&self) -> UpdateInfo {
        match self.own_updates() {
            Ok(updates) => updates.info(),
            Err(_) => UpdateInfo { method: UpdateMethod::NotHere, ..UpdateInfo::default() },
        }
    }

    /// Asks the update server for a newer version, and waits for its answer.
    ///
    /// Errors: those of the installer, `network.offline`, `update.busy`, `update.no_address`, `update.not_here`.
    pub fn update_check(&self) -> Result<UpdateInfo> {
        self.own_updates()?.check()
    }

    /// Begins to download the version on offer. Events tell how it goes on.
    ///
    /// Errors: `update.by_hand`, `update.none`, `update.busy`, and those of `update_check`.
    pub fn update_download(&self) -> Result<UpdateInfo> {
        let updates = self.own_updates()?;
        if updates.installer()?.plan().method != UpdateMethod::Replace {
            return Err(Error::new(
                ErrorKind::Conflict,
                "update.by_hand",
                "This copy of Inglenook cannot replace itself: it was not installed by its own installer.",
                "Install the new version the way you installed this one.",
            ));
        }
        updates.status().begin_download()?;
        let cancel = CancellationToken::new();
        *updates.cancel() = cancel.clone();
        updates.publish();
        let running = Arc::clone(updates);
        let started = spawn("update-download", move || running.download(&cancel));
        if let Err(error) = started {
            updates.status().end_download(Err(error.clone()));
            updates.publish();
            return Err(error);
        }
        Ok(updates.info())
    }

    /// Ends a running download. Nothing of it is kept.
    pub fn update_cancel(&self) -> Result<UpdateInfo> {
        let updates = self.own_updates()?;
        updates.cancel().cancel();
        Ok(updates.info())
    }

    /// Whether a restart would install a new version.
    pub fn is_update_ready(&self) -> bool {
        self.update_info().phase == UpdatePhase::Ready
    }

    /// Installs the downloaded version, or prepares that for the end of the program. The caller then ends or restarts it.
    ///
    /// Errors: `update.not_ready`, and those of the installer. The old version is still there.
    pub fn update_install(&self) -> Result<()> {
        let updates = self.own_updates()?;
        let installer = updates.installer()?;
        updates.status().begin_install()?;
        updates.publish();
        let installed = installer.install();
        if let Err(error) = &installed {
            updates.status().fail_install(error);
            updates.publish();
        }
        installed
    }

    fn updates(&self) -> &Arc<Updates> {
        &self.services().updates
    }

    /// Only for the window: a page that a server shows must not restart it.
    fn own_updates(&self) -> Result<&Arc<Updates>> {
        match self.caller().interface {
            Interface::Window => Ok(self.updates()),
            _ => Err(not_here()),
        }
    }
}
