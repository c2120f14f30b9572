//! The window's position when it was last closed. Stored with the data but excluded from backups:
//! another computer has other screens.

use serde::{Deserialize, Serialize};

use crate::App;
use contract::{Error, Result};

/// Under `internal.` it is this folder's alone.
const KEY: &str = "internal.window";

/// In pixels of the desktop, before any scaling.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct WindowPlace {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
    pub maximized: bool,
}

impl App {
    /// None: never kept, or by a version that wrote it otherwise.
    pub fn window_place(&self) -> Result<Option<WindowPlace>> {
        let stored = self.store().setting(KEY)?;
        Ok(stored.and_then(|json| serde_json::from_str(&json).ok()))
    }

    pub fn keep_window_place(&self, place: &WindowPlace) -> Result<()> {
        let json = serde_json::to_string(place).map_err(|error| Error::bug(error.to_string()))?;
        Ok(self.store().set_setting(KEY, &json)?)
    }
}
