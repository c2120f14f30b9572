//! What the program needs of the operating system: folders and who else writes there, logs, threads, memory figures,
//! and dates. Also event logs with several watchers, and other programs that open an address.
#![forbid(unsafe_code)]

pub mod calendar;
pub mod data_dirs;
pub mod event_log;
pub mod logging;
pub mod memory;
mod outside;
pub mod port_owner;
mod portable_name;
pub mod spawn;
pub mod synced_folder;

pub use data_dirs::{DATA_DIR_VARIABLE, DataDirs};
pub use event_log::{EventLog, Watch};
pub use logging::Logging;
pub use outside::{BROWSER_VARIABLE, is_link, open_outside};
pub use port_owner::port_owner;
pub use portable_name::portable_name;
pub use spawn::spawn;
pub use synced_folder::{conflict_copies, sync_risk};
