//! Keys that open the quick window whichever program has the focus.

use desktop::KeyCombination;
use tauri::AppHandle;

/// The keys, until it is dropped.
#[cfg(target_os = "linux")]
pub struct GlobalKeys {
    _grab: desktop::KeyGrab,
}

#[cfg(target_os = "linux")]
impl GlobalKeys {
    /// Error `window.shortcut`: the keys can't be used.
    pub fn take(shell: &AppHandle, keys: &KeyCombination, pressed: fn(&AppHandle)) -> contract::Result<Self> {
        let shell = shell.clone();
        let variable = |name: &str| std::env::var(name).ok();
        let _grab = desktop::KeyGrab::take(&variable, keys, move || pressed(&shell))?;
        Ok(Self { _grab })
    }
}

/// The keys, until it is dropped.
#[cfg(not(target_os = "linux"))]
pub struct GlobalKeys {
    shell: AppHandle,
    accelerator: String,
}

#[cfg(not(target_os = "linux"))]
impl GlobalKeys {
    /// Error `window.shortcut`: the keys can't be used.
    pub fn take(shell: &AppHandle, keys: &KeyCombination, pressed: fn(&AppHandle)) -> contract::Result<Self> {
        use tauri::{Manager, Wry};
        use tauri_plugin_global_shortcut::{Builder, GlobalShortcut, GlobalShortcutExt, ShortcutState};

        let refused = |error: &dyn std::fmt::Display| {
            contract::Error::input(
                "window.shortcut",
                format!("The shortcut of the quick window can't be used: {error}."),
                "Choose other keys in Settings › Shortcuts.",
            )
        };
        if shell.try_state::<GlobalShortcut<Wry>>().is_none() {
            shell.plugin(Builder::new().build()).map_err(|error| refused(&error))?;
        }
        let accelerator = keys.accelerator();
        let set = shell.global_shortcut().on_shortcut(accelerator.as_str(), move |shell, _, event| {
            if event.state == ShortcutState::Pressed {
                pressed(shell);
            }
        });
        set.map_err(|error| refused(&error))?;
        Ok(Self { shell: shell.clone(), accelerator })
    }
}

#[cfg(not(target_os = "linux"))]
impl Drop for GlobalKeys {
    fn drop(&mut self) {
        use tauri_plugin_global_shortcut::GlobalShortcutExt;
        if let Err(error) = self.shell.global_shortcut().unregister(self.accelerator.as_str()) {
            tracing::warn!("the global shortcut could not be given back: {error}");
        }
    }
}
