//! What the program needs of the operating system: folders, logs, threads, memory figures, dates,
//! and event logs with several watchers.
#![forbid(unsafe_code)]

pub mod calendar;
pub mod data_dirs;
pub mod event_log;
pub mod logging;
pub mod memory;
pub mod spawn;

pub use data_dirs::{DATA_DIR_VARIABLE, DataDirs};
pub use event_log::{EventLog, Watch};
pub use logging::Logging;
pub use spawn::spawn;
