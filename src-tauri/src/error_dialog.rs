//! An error where no page can show it: before the window opens, and after it has closed.

/// Shows an error in the system's own dialog, and waits until it is closed.
pub fn show(message: &str, remedy: &str) {
    rfd::MessageDialog::new()
        .set_level(rfd::MessageLevel::Error)
        .set_title("Inglenook")
        .set_description(format!("{message}\n\n{remedy}"))
        .show();
}
