//! New versions of the program, for the window alone. Never asks by itself unless `check_updates` is on.

use std::sync::Arc;

use contract::Result;
use contract::types::{UpdateInfo, UpdateMethod, UpdatePhase};
use updates::{UpdateHost, UpdateInstaller, Updates, not_here};

use crate::App;
use crate::context::Context;
use crate::network::callers::Interface;
use crate::settings::TypedSettings;

/// What updates need of this application.
pub(crate) fn host(ctx: &Context) -> UpdateHost {
    let (events, settings) = (ctx.events.clone(), ctx.settings.clone());
    UpdateHost {
        gate: ctx.gate.clone(),
        clock: ctx.clock.clone(),
        publish: Box::new(move |event| events.publish(event)),
        is_offline: Box::new(move || settings.offline().unwrap_or(false)),
    }
}

impl App {
    /// Lets this application's window install updates. Only the first installer counts.
    pub fn update_by(&self, installer: Arc<dyn UpdateInstaller>) {
        self.updates().install_by(installer);
    }

    /// Asks for a newer version where the setting says so, without waiting for the answer.
    pub fn check_for_update_if_set(&self) -> Result<()> {
        if self.ctx().settings.check_updates()? { self.updates().begin_check() } else { Ok(()) }
    }

    /// What is known of newer versions, without any request.
    pub fn update_info(&self) -> UpdateInfo {
        match self.own_updates() {
            Ok(updates) => updates.info(),
            Err(_) => UpdateInfo { method: UpdateMethod::NotHere, ..UpdateInfo::default() },
        }
    }

    /// Asks the update server for a newer version. Errors: those of `Updates::check`.
    pub fn update_check(&self) -> Result<UpdateInfo> {
        self.own_updates()?.check()
    }

    /// Begins to download the version on offer. Errors: those of `Updates::begin_download`.
    pub fn update_download(&self) -> Result<UpdateInfo> {
        self.own_updates()?.begin_download()
    }

    /// Ends a running download. Nothing of it is kept.
    pub fn update_cancel(&self) -> Result<UpdateInfo> {
        Ok(self.own_updates()?.cancel_download())
    }

    /// Whether a restart would install a new version.
    pub fn is_update_ready(&self) -> bool {
        self.update_info().phase == UpdatePhase::Ready
    }

    /// Installs the downloaded version. The caller then ends or restarts the program. Errors: those of `Updates::install`.
    pub fn update_install(&self) -> Result<()> {
        self.own_updates()?.install()
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
