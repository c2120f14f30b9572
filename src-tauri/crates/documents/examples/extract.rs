//! Prints the text of files as chats read them.
//!
//! cargo run -p documents --example extract FILE…

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut exit = ExitCode::SUCCESS;
    for path in std::env::args().skip(1) {
        let text = std::fs::read(&path)
            .map_err(|error| error.to_string())
            .and_then(|bytes| documents::extract::read(&path, &bytes).map_err(|error| format!("{error:?}")));
        match text {
            Ok(extracted) => println!("{}", extracted.text),
            Err(error) => {
                eprintln!("{path}: {error}");
                exit = ExitCode::FAILURE;
            }
        }
    }
    exit
}
