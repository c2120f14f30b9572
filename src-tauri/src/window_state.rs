//! Saves the window's position and size and restores them if a screen still shows them.

use std::cell::Cell;
use std::time::Duration;

use app::window_state::WindowPlace;
use io::{Clock, RealClock};
use tauri::utils::config::WindowConfig;
use tauri::{Manager, Monitor, WebviewWindow, WindowEvent};

use crate::state::OpenApp;

/// Largest plausible window width or height.
const MAX_SIZE_PX: f64 = 16_384.0;

/// Height above the screen's lower edge that the title bar needs, so that it can be dragged.
const MIN_VISIBLE_PX: f64 = 80.0;

/// Left, top, width and height of a screen in logical pixels.
pub type Screen = (f64, f64, f64, f64);

pub fn screen(monitor: &Monitor) -> Screen {
    let scale = monitor.scale_factor();
    let (at, size) = (monitor.position().to_logical::<f64>(scale), monitor.size().to_logical::<f64>(scale));
    (at.x, at.y, size.width, size.height)
}

/// Applies a saved place to the configuration. If no screen shows it, applies only the size.
pub fn restore(config: &mut WindowConfig, place: &WindowPlace, screens: &[Screen]) {
    let least = (config.min_width.unwrap_or(0.0), config.min_height.unwrap_or(0.0));
    config.width = place.width.clamp(least.0, MAX_SIZE_PX);
    config.height = place.height.clamp(least.1, MAX_SIZE_PX);
    config.maximized = place.maximized;
    let can_be_held = |(left, top, width, height): &Screen| {
        let middle = place.x + config.width / 2.0;
        (*left..left + width).contains(&middle)
            && (*top - 1.0..top + height - MIN_VISIBLE_PX).contains(&place.y)
    };
    if screens.iter().any(can_be_held) {
        config.center = false;
        (config.x, config.y) = (Some(place.x), Some(place.y));
    }
}

/// Shortest time between two saves while the window is moved or resized.
const SAVE_INTERVAL: Duration = Duration::from_millis(300);

/// Saves the place on close, on loss of focus, and during changes, so that it survives a forced end.
pub fn save_on_change(window: &WebviewWindow) {
    let (kept, clock, last) = (window.clone(), RealClock::new(), Cell::new(None::<Duration>));
    window.on_window_event(move |event| {
        let is_due = match event {
            WindowEvent::CloseRequested { .. } | WindowEvent::Focused(false) => true,
            WindowEvent::Resized(_) | WindowEvent::Moved(_) => {
                last.get().is_none_or(|last| clock.monotonic() - last >= SAVE_INTERVAL)
            }
            _ => false,
        };
        if is_due {
            last.set(Some(clock.monotonic()));
            // Losing the window position is harmless.
            let _ = save(&kept);
        }
    });
}

/// Saves the current place.
pub fn save(window: &WebviewWindow) -> tauri::Result<()> {
    if window.is_minimized()? {
        return Ok(());
    }
    let scale = window.scale_factor()?;
    let at = window.outer_position()?.to_logical::<f64>(scale);
    let size = window.inner_size()?.to_logical::<f64>(scale);
    let held = window.state::<OpenApp>();
    let Ok(app) = held.app() else { return Ok(()) };
    let mut place = WindowPlace {
        x: at.x,
        y: at.y,
        width: size.width,
        height: size.height,
        maximized: window.is_maximized()?,
    };
    // A maximized window keeps its previous size for unmaximizing.
    if place.maximized
        && let Ok(Some(before)) = app.window_place()
    {
        place = WindowPlace { maximized: true, ..before };
    }
    if let Err(error) = app.keep_window_place(&place) {
        eprintln!("The position of the window could not be saved: {}", error.message());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCREEN: Screen = (0.0, 0.0, 1920.0, 1080.0);

    fn check(place: WindowPlace, screens: &[Screen], expected: (f64, f64, Option<f64>, Option<f64>)) {
        let mut config = WindowConfig {
            min_width: Some(640.0),
            min_height: Some(480.0),
            center: true,
            ..Default::default()
        };
        restore(&mut config, &place, screens);
        assert_eq!((config.width, config.height, config.x, config.y), expected, "{place:?}");
        assert_eq!(config.center, config.x.is_none());
    }

    #[test]
    fn a_place_is_used_where_a_screen_shows_it() {
        let place = WindowPlace { x: 100.0, y: 50.0, width: 1200.0, height: 800.0, maximized: false };
        check(place, &[SCREEN], (1200.0, 800.0, Some(100.0), Some(50.0)));
        check(place, &[], (1200.0, 800.0, None, None));
        let gone = WindowPlace { x: 2500.0, ..place };
        check(gone, &[SCREEN], (1200.0, 800.0, None, None));
        check(gone, &[SCREEN, (1920.0, 0.0, 1920.0, 1080.0)], (1200.0, 800.0, Some(2500.0), Some(50.0)));
        check(WindowPlace { y: 1060.0, ..place }, &[SCREEN], (1200.0, 800.0, None, None));
        check(
            WindowPlace { width: 10.0, height: 1e9, ..place },
            &[SCREEN],
            (640.0, MAX_SIZE_PX, Some(100.0), Some(50.0)),
        );
    }
}
