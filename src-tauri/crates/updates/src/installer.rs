//! What the application needs of an edge that can replace the program.

use contract::types::{ConnectionPurpose, PackageKind, UpdateMethod, UpdateOffer};
use contract::{Error, Result};
use net::{Connection, ConnectionGate, ProxyAddress};
use tokio_util::sync::CancellationToken;

/// Finds, fetches and installs new versions. The window's is Tauri's updater.
pub trait UpdateInstaller: Send + Sync {
    /// What this copy of the program can do. Never changes.
    fn plan(&self) -> UpdatePlan;

    /// The newest version, if it is newer than this one. Blocks.
    fn check(&self, access: &UpdateAccess) -> Result<Option<UpdateOffer>>;

    /// Fetches and verifies the version that the last check found. `progress` gets the bytes received and their total,
    /// if the server says it. Blocks.
    fn download(
        &self,
        access: &UpdateAccess,
        cancel: &CancellationToken,
        progress: &mut dyn FnMut(u64, Option<u64>),
    ) -> Result<UpdateDownloadEnd>;

    /// Puts the downloaded version in the place of this one, or prepares that for the end of the program.
    fn install(&self) -> Result<()>;
}

/// What a copy of the program can do about new versions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UpdatePlan {
    pub method: UpdateMethod,
    pub package: PackageKind,
    /// Hosts of the update addresses, in order.
    pub hosts: Vec<String>,
    /// A web page about new versions.
    pub page: Option<String>,
}

/// How a download ended that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpdateDownloadEnd {
    /// All bytes are there, and their signature is right.
    Verified,
    Cancelled,
}

/// The gate and the proxy, for requests that look for updates.
#[derive(Clone)]
pub struct UpdateAccess {
    gate: ConnectionGate,
}

impl UpdateAccess {
    pub(super) fn new(gate: ConnectionGate) -> Self {
        Self { gate }
    }

    /// Permission to connect to a host, redirects included. Error `network.offline`: the user wants no connections.
    pub fn connect(&self, host: &str) -> Result<Connection> {
        self.gate.connect(host, ConnectionPurpose::Update)
    }

    /// The proxy that the user has chosen. None: the system's, if it has one.
    pub fn proxy(&self) -> Result<Option<ProxyAddress>, Error> {
        self.gate.proxy()
    }
}
