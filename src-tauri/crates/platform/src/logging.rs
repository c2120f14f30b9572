//! The log: warnings to stderr, more to a file per day in the log folder. Never prompts or answers.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use io::{Clock, RealClock};
use tracing::Level;
use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_appender::rolling::{RollingFileAppender, Rotation};
use tracing_subscriber::filter::{LevelFilter, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, reload};

/// Days whose files are kept.
const MAX_FILES: usize = 7;

/// Lines that wait for the disk at most; further ones are dropped. Their queue is allocated at the start, and the
/// default of 128,000 lines takes 4 MB.
const MAX_WAITING_LINES: usize = 4096;

/// Libraries that log messages of their clients, or what people type: only their errors are kept.
const QUIET_LIBRARIES: [&str; 4] = ["rmcp", "rustyline", "tokio_tungstenite", "tungstenite"];

/// Whether a line of this target and level may be in the log.
fn may_log(target: &str, level: Level) -> bool {
    let library = target.split("::").next().unwrap_or_default();
    level == Level::ERROR || !QUIET_LIBRARIES.contains(&library)
}

/// The log of a worker's process: what it says on stderr goes into the log of the program that started it.
pub fn to_stderr() {
    // Fails where a log runs in this process already: that one goes on.
    let _ = tracing_subscriber::fmt()
        .with_max_level(LevelFilter::INFO)
        .with_ansi(false)
        .without_time()
        .with_writer(std::io::stderr)
        .try_init();
}

/// The running log. Lines still in memory are written when it is dropped.
pub struct Logging {
    level: reload::Handle<LevelFilter, Registry>,
    _guard: Option<WorkerGuard>,
}

impl Logging {
    /// Starts the log of this process; the first one stays. A folder that can't be written leaves stderr.
    pub fn start(folder: &Path) -> Self {
        let (level, handle) = reload::Layer::new(LevelFilter::INFO);
        let appender = RollingFileAppender::builder()
            .rotation(Rotation::DAILY)
            .filename_prefix("inglenook")
            .filename_suffix("log")
            .max_log_files(MAX_FILES)
            .build(folder)
            .ok();
        let (file, guard) = match appender {
            Some(appender) => {
                let queue = NonBlockingBuilder::default().buffered_lines_limit(MAX_WAITING_LINES);
                let (writer, guard) = queue.finish(PrivateLog::new(appender, folder));
                (Some(tracing_subscriber::fmt::layer().with_ansi(false).with_writer(writer)), Some(guard))
            }
            None => (None, None),
        };
        let stderr = tracing_subscriber::fmt::layer()
            .with_ansi(std::io::stderr().is_terminal())
            .with_writer(std::io::stderr)
            .with_filter(LevelFilter::WARN);
        let quiet = filter_fn(|line| may_log(line.target(), *line.level()));
        // Fails where another log runs in this process already: that one goes on.
        let _ = tracing_subscriber::registry().with(level).with(quiet).with(file).with(stderr).try_init();
        std::panic::set_hook(Box::new(|panic| tracing::error!("{panic}")));
        Self { level: handle, _guard: guard }
    }

    /// A word of the setting `log_level`; others are ignored.
    pub fn set_level(&self, level: &str) {
        if let Ok(level) = level.parse::<LevelFilter>() {
            // The log may have ended with the process.
            let _ = self.level.reload(level);
        }
    }
}

const DAY_MS: i64 = 24 * 3600 * 1000;

/// Log files that only the user may read: the appender makes one per day with the mode that the umask gives.
struct PrivateLog {
    appender: RollingFileAppender,
    folder: PathBuf,
    /// Day whose file was made private, from 1970.
    day: Option<i64>,
}

impl PrivateLog {
    fn new(appender: RollingFileAppender, folder: &Path) -> Self {
        Self { appender, folder: folder.to_owned(), day: None }
    }
}

impl Write for PrivateLog {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let n = self.appender.write(bytes)?;
        let day = Some(RealClock::new().now_utc_ms().div_euclid(DAY_MS));
        if self.day != day {
            self.day = day;
            // The folder itself keeps others out where this fails.
            let _ = io::make_private(&self.folder, &|_| true);
        }
        Ok(n)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.appender.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_clients_stay_out_of_the_log() {
        for (target, level, expected) in [
            ("rmcp::service", Level::WARN, false),
            ("rmcp", Level::TRACE, false),
            ("rustyline", Level::DEBUG, false),
            ("tungstenite::protocol", Level::TRACE, false),
            ("rmcp::service", Level::ERROR, true),
            ("mcp_server::stdio", Level::INFO, true),
            ("rmcp_other", Level::INFO, true),
        ] {
            assert_eq!(may_log(target, level), expected, "{target} {level}");
        }
    }
}
