//! The updater of the window: Tauri's plugin behind `app::UpdateInstaller`.
//!
//! Requests pass the application's gate, its proxy and its TLS. The plugin verifies every byte before it installs.

#[cfg(test)]
mod tests;
mod update_client;
mod update_errors;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use app::{UpdateAccess, UpdateDownloadEnd, UpdateInstaller, UpdatePlan};
use contract::types::{PackageKind, UpdateMethod, UpdateOffer};
use contract::{Error, Result};
use tauri::utils::config::BundleType;
use tauri::{AppHandle, Manager, Runtime, Url};
use tauri_plugin_updater::{Update, Updater, UpdaterExt};
use tokio_util::sync::CancellationToken;

use crate::error_dialog;
use crate::state::OpenApp;
use crate::update_source::UpdateSource;
use crate::window_state;
use update_errors::{UpdateStep, host, not_ready, plugin_error, too_large, unencrypted};

/// Longest wait for the list of versions, a file of some kilobytes.
const CHECK_TIMEOUT: Duration = Duration::from_secs(30);

/// Largest update. A package has some hundred megabytes; it is kept in memory until the restart.
const MAX_UPDATE_BYTES: u64 = 1 << 30;

/// Tauri's updater, and what it found and fetched.
pub struct PluginInstaller<R: Runtime> {
    shell: AppHandle<R>,
    /// None: this build looks for no updates.
    source: Option<UpdateSource>,
    package: PackageKind,
    /// The file that an update replaces. None: as the plugin finds it.
    program: Option<PathBuf>,
    found: Mutex<Option<FoundUpdate>>,
}

struct FoundUpdate {
    update: Update,
    /// The verified package.
    package_bytes: Option<Vec<u8>>,
    /// The package is installed when the application is closed.
    at_exit: bool,
}

/// The installer as commands and events of the window share it.
pub struct WindowUpdates(pub Arc<PluginInstaller<tauri::Wry>>);

impl<R: Runtime> PluginInstaller<R> {
    pub fn new(shell: AppHandle<R>, source: Option<UpdateSource>, package: PackageKind) -> Self {
        Self { shell, source, package, program: None, found: Mutex::default() }
    }

    /// Errors: `update.install` where the plugin cannot work here.
    fn updater(&self, access: &UpdateAccess) -> Result<Updater> {
        let source = self.source.clone().unwrap_or_else(|| UpdateSource {
            public_key: String::new(),
            addresses: Vec::new(),
            page: None,
        });
        let wrong = |error| plugin_error(UpdateStep::Check, &self.hosts(), error);
        let addresses = source.addresses.iter().filter_map(|address| address.parse::<Url>().ok()).collect();
        let client = update_client::configure(access)?;
        let closing = self.shell.clone();
        let mut builder = self.shell.updater_builder();
        if let Some(program) = &self.program {
            builder = builder.executable_path(program);
        }
        builder
            .pubkey(source.public_key)
            .timeout(CHECK_TIMEOUT)
            .configure_client(client)
            // Windows only: the installer ends the program. The application is closed by then.
            .on_before_exit(move || closing.cleanup_before_exit())
            .endpoints(addresses)
            .and_then(tauri_plugin_updater::UpdaterBuilder::build)
            .map_err(wrong)
    }

    fn hosts(&self) -> Vec<String> {
        let addresses = self.source.iter().flat_map(|source| &source.addresses);
        addresses.filter_map(|address| Some(host(&address.parse().ok()?))).collect()
    }

    /// Whether every address is encrypted, as all are that `UpdateSource::parse` accepts.
    fn is_encrypted(&self) -> bool {
        self.source.iter().flat_map(|source| &source.addresses).all(|address| address.starts_with("https://"))
    }

    fn found(&self) -> MutexGuard<'_, Option<FoundUpdate>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Installs what waits for the end of the application, which is closed by now. On Windows this ends the process.
    pub fn install_at_exit(&self) -> Result<()> {
        match self.found().take() {
            Some(FoundUpdate { update, package_bytes: Some(bytes), at_exit: true }) => {
                update.install(bytes).map_err(|error| plugin_error(UpdateStep::Install, &self.hosts(), error))
            }
            _ => Ok(()),
        }
    }
}

impl<R: Runtime> UpdateInstaller for PluginInstaller<R> {
    fn plan(&self) -> UpdatePlan {
        let method = match (&self.source, self.package.can_replace_itself()) {
            (None, _) => UpdateMethod::NoAddress,
            (Some(_), true) => UpdateMethod::Replace,
            (Some(_), false) => UpdateMethod::Name,
        };
        let page = self.source.as_ref().and_then(|source| source.page.clone());
        UpdatePlan { method, package: self.package, hosts: self.hosts(), page }
    }

    fn check(&self, access: &UpdateAccess) -> Result<Option<UpdateOffer>> {
        // All may be asked: the plugin goes on to the next where one has no answer.
        let _asked = self.hosts().iter().map(|host| access.connect(host)).collect::<Result<Vec<_>>>()?;
        let updater = self.updater(access)?;
        let found = tauri::async_runtime::block_on(updater.check());
        let found = found.map_err(|error| plugin_error(UpdateStep::Check, &self.hosts(), error))?;
        if let Some(update) = &found
            && self.is_encrypted()
            && update.download_url.scheme() != "https"
        {
            return Err(unencrypted(&update.download_url));
        }
        let offer = found.as_ref().map(offer);
        *self.found() = found.map(|update| FoundUpdate { update, package_bytes: None, at_exit: false });
        Ok(offer)
    }

    fn download(
        &self,
        access: &UpdateAccess,
        cancel: &CancellationToken,
        progress: &mut dyn FnMut(u64, Option<u64>),
    ) -> Result<UpdateDownloadEnd> {
        let update = self.found().as_ref().map(|found| found.update.clone()).ok_or_else(not_ready)?;
        let place = host(&update.download_url);
        let connection = access.connect(&place)?;
        let (mut received, mut is_too_large) = (0, false);
        let stop = cancel.child_token();
        let on_chunk = |n_bytes: usize, total: Option<u64>| {
            connection.received(n_bytes);
            received += n_bytes as u64;
            if received.max(total.unwrap_or(0)) > MAX_UPDATE_BYTES {
                is_too_large = true;
                stop.cancel();
            }
            progress(received, total);
        };
        let download = stop.run_until_cancelled(update.download(on_chunk, || {}));
        let Some(end) = tauri::async_runtime::block_on(download) else {
            return if is_too_large {
                Err(too_large(&place, MAX_UPDATE_BYTES))
            } else {
                Ok(UpdateDownloadEnd::Cancelled)
            };
        };
        let bytes = end.map_err(|error| plugin_error(UpdateStep::Download, &[place], error))?;
        if let Some(found) = &mut *self.found() {
            found.package_bytes = Some(bytes);
        }
        Ok(UpdateDownloadEnd::Verified)
    }

    fn install(&self) -> Result<()> {
        let mut found = self.found();
        let Some(FoundUpdate { update, package_bytes: Some(bytes), at_exit }) = &mut *found else {
            return Err(not_ready());
        };
        let wrong = |error| plugin_error(UpdateStep::Install, &self.hosts(), error);
        match self.package {
            // Their installer ends the process: what runs has to be saved first.
            PackageKind::Nsis | PackageKind::Msi => {
                update.verify(bytes).map_err(wrong)?;
                *at_exit = true;
                Ok(())
            }
            PackageKind::AppImage | PackageKind::MacApp => update.install(bytes).map_err(wrong),
            PackageKind::Deb | PackageKind::Rpm | PackageKind::Flatpak | PackageKind::Source => {
                Err(Error::bug("a package of the system was to replace itself"))
            }
        }
    }
}

/// What people are shown of a version before anything of it is downloaded.
fn offer(update: &Update) -> UpdateOffer {
    UpdateOffer {
        version: update.version.clone(),
        published_ms: update.date.map(|date| date.unix_timestamp().saturating_mul(1000)),
        notes: update.body.clone().filter(|notes| !notes.trim().is_empty()),
    }
}

/// The package that this program was bundled into, by what the bundler wrote into it.
fn bundled_package() -> PackageKind {
    match tauri::utils::platform::bundle_type() {
        Some(BundleType::AppImage) => PackageKind::AppImage,
        Some(BundleType::Deb) => PackageKind::Deb,
        Some(BundleType::Rpm) => PackageKind::Rpm,
        Some(BundleType::App | BundleType::Dmg) => PackageKind::MacApp,
        Some(BundleType::Nsis) => PackageKind::Nsis,
        Some(BundleType::Msi) => PackageKind::Msi,
        None => PackageKind::Source,
    }
}

/// Gives the application its updater, and looks for a newer version if the setting says so.
pub fn start(shell: &AppHandle) {
    let source = UpdateSource::parse(
        option_env!("INGLENOOK_UPDATE_PUBLIC_KEY"),
        option_env!("INGLENOOK_UPDATE_URL"),
        option_env!("INGLENOOK_UPDATE_PAGE"),
    );
    let source = source.unwrap_or_else(|error| {
        tracing::error!("this build's update address is wrong: {error}");
        None
    });
    let program = std::env::current_exe().unwrap_or_default();
    let package = desktop::package_kind(bundled_package(), &program, &|name| std::env::var(name).ok());
    let installer = Arc::new(PluginInstaller::new(shell.clone(), source, package));
    shell.manage(WindowUpdates(Arc::clone(&installer)));
    let Ok(app) = shell.state::<OpenApp>().app() else { return };
    app.update_by(installer);
    if let Err(error) = app.check_for_update_if_set() {
        tracing::warn!(code = error.code(), "no newer version could be looked for: {error}");
    }
}

/// Installs the downloaded version and ends the program, which then starts again. Blocks.
pub fn install_and_restart(window: &tauri::WebviewWindow) -> Result<()> {
    let shell = window.app_handle();
    let app = shell.state::<OpenApp>().app().map_err(Error::from)?;
    app.update_install()?;
    // Losing the window position is harmless.
    let _ = window_state::save(window);
    let is_at_exit = shell.state::<WindowUpdates>().0.found().as_ref().is_some_and(|found| found.at_exit);
    if is_at_exit {
        shell.exit(0);
    } else {
        shell.request_restart();
    }
    Ok(())
}

/// The last step on systems whose installer ends the process: the application is closed by now.
pub fn finish_at_exit(shell: &AppHandle) {
    let Some(updates) = shell.try_state::<WindowUpdates>() else { return };
    if let Err(error) = updates.0.install_at_exit() {
        tracing::error!(code = error.code(), "the update was not installed: {error}");
        error_dialog::show(error.message(), error.remedy());
    }
}
