//! Opens an address in the user's browser.

use std::process::{Command, Stdio};

/// Opens an address. Returns false where no browser could be started; the user opens it then.
pub fn open(address: &str) -> bool {
    let mut command = match std::env::var_os("BROWSER").filter(|it| !it.is_empty()) {
        Some(program) => Command::new(program),
        None if cfg!(windows) => {
            let mut command = Command::new("rundll32");
            command.arg("url.dll,FileProtocolHandler");
            command
        }
        None if cfg!(target_os = "macos") => Command::new("open"),
        None => Command::new("xdg-open"),
    };
    // Its output would stand between ours.
    let command = command.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().is_ok()
}
