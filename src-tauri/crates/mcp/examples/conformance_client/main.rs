//! Goes through the client scenarios of the official conformance suite with the client that the application uses.
//!
//! `make mcp-conformance` has the suite start it, with the server's address as the last argument.

mod browser;
mod scenario;
mod session;

use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(address) = std::env::args().next_back() else { return ExitCode::FAILURE };
    let name = std::env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    match scenario::run(&name, &address) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error} ({})", error.code());
            ExitCode::FAILURE
        }
    }
}
