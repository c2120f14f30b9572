//! A key combination that this program receives whichever window has the focus, on X11.
//!
//! The plugin that Tauri offers for this looks for events twenty times a second. This waits for them, so that it costs
//! nothing while no key is pressed.

use std::sync::Arc;

use contract::{Error, Result};
use x11rb::connection::Connection as _;
use x11rb::errors::ReplyError;
use x11rb::protocol::xproto::{
    AtomEnum, ClientMessageEvent, ConnectionExt as _, CreateWindowAux, EventMask, GetKeyboardMappingReply,
    Grab, GrabMode, ModMask, Window, WindowClass,
};
use x11rb::protocol::{ErrorKind, Event};
use x11rb::rust_connection::RustConnection;
use x11rb::{COPY_DEPTH_FROM_PARENT, COPY_FROM_PARENT};

use crate::key_combination::KeyCombination;

/// Caps Lock and Num Lock, which servers give to the second modifier.
const LOCKS: [ModMask; 2] = [ModMask::LOCK, ModMask::M2];

type DisplayResult<T> = std::result::Result<T, ReplyError>;

/// The keys, until it is dropped.
pub struct KeyGrab {
    display: Arc<Display>,
}

/// A connection to the display.
struct Display {
    connection: RustConnection,
    root: Window,
    /// Never shown: its messages end the thread.
    window: Window,
}

/// Result of a grab.
enum GrabOutcome {
    Taken,
    /// Another program has the keys.
    Occupied,
    /// The keyboard layout has no such key.
    NoSuchKey,
}

impl KeyGrab {
    /// Calls `pressed` from a separate thread whenever the keys are pressed. Error `window.shortcut`: another program
    /// has them, or the desktop gives none away.
    pub fn take(
        variable: &dyn Fn(&str) -> Option<String>,
        keys: &KeyCombination,
        pressed: impl Fn() + Send + 'static,
    ) -> Result<Self> {
        if is_wayland(variable) {
            return Err(refused("Wayland lets no program take keys by itself"));
        }
        let name = variable("DISPLAY").filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| refused("there is no display"))?;
        let display = Arc::new(Display::open(&name)?);
        let (keysym, modifiers) = (keys.keysym, modifiers_of(keys));
        match display.grab(keysym, modifiers).map_err(refused)? {
            GrabOutcome::Taken => {}
            GrabOutcome::Occupied => return Err(refused("another program uses these keys")),
            GrabOutcome::NoSuchKey => return Err(refused("the keyboard layout has no such key")),
        }
        let heard = Arc::clone(&display);
        platform::spawn("global-keys", move || heard.listen(keysym, modifiers, &pressed))?;
        Ok(Self { display })
    }
}

impl Drop for KeyGrab {
    /// Ends the thread. The display releases the keys with the connection.
    fn drop(&mut self) {
        let Display { connection, window, .. } = &*self.display;
        let end = ClientMessageEvent::new(32, *window, AtomEnum::NOTICE, [0; 5]);
        // An error means that the display has gone, and the thread with it.
        let _ = connection.send_event(false, *window, EventMask::NO_EVENT, end);
        let _ = connection.flush();
    }
}

impl Display {
    fn open(name: &str) -> Result<Self> {
        let (connection, screen) = RustConnection::connect(Some(name)).map_err(refused)?;
        let root = connection.setup().roots[screen].root;
        let window = connection.generate_id().map_err(refused)?;
        let this = Self { connection, root, window };
        this.create_window().map_err(refused)?;
        Ok(this)
    }

    fn create_window(&self) -> DisplayResult<()> {
        let (kind, visual, more) = (WindowClass::INPUT_ONLY, COPY_FROM_PARENT, CreateWindowAux::new());
        let depth = COPY_DEPTH_FROM_PARENT;
        self.connection
            .create_window(depth, self.window, self.root, 0, 0, 1, 1, 0, kind, visual, &more)?
            .check()
    }

    /// Grabs the key with this symbol, whatever Caps Lock and Num Lock are. Gives up earlier grabs.
    fn grab(&self, keysym: u32, modifiers: ModMask) -> DisplayResult<GrabOutcome> {
        self.ungrab_all()?;
        let (first, last) = (self.connection.setup().min_keycode, self.connection.setup().max_keycode);
        let n_keys = last.saturating_sub(first).saturating_add(1);
        let mapping = self.connection.get_keyboard_mapping(first, n_keys)?.reply()?;
        let Some((index, needs_shift)) = find_key(&mapping, keysym) else {
            return Ok(GrabOutcome::NoSuchKey);
        };
        let modifiers = if needs_shift { modifiers | ModMask::SHIFT } else { modifiers };
        for locks in [ModMask::default(), LOCKS[0], LOCKS[1], LOCKS[0] | LOCKS[1]] {
            let (modifiers, mode) = (modifiers | locks, GrabMode::ASYNC);
            let key = first.saturating_add(index);
            match self.connection.grab_key(false, self.root, modifiers, key, mode, mode)?.check() {
                Err(ReplyError::X11Error(error)) if error.error_kind == ErrorKind::Access => {
                    self.ungrab_all()?;
                    return Ok(GrabOutcome::Occupied);
                }
                done => done?,
            }
        }
        Ok(GrabOutcome::Taken)
    }

    fn ungrab_all(&self) -> DisplayResult<()> {
        self.connection.ungrab_key(Grab::ANY, self.root, ModMask::ANY)?.check()
    }

    /// Returns when the grab is dropped or the display has gone.
    fn listen(&self, keysym: u32, modifiers: ModMask, pressed: &dyn Fn()) {
        let mut presses = PressFilter::default();
        while let Ok(event) = self.connection.wait_for_event() {
            match event {
                Event::KeyPress(key) if presses.is_new(key.time) => pressed(),
                Event::KeyRelease(key) => presses.release(key.time),
                Event::MappingNotify(_) => match self.grab(keysym, modifiers) {
                    Ok(GrabOutcome::Taken) => {}
                    Ok(_) => {
                        tracing::warn!("the new keyboard layout has no free key for the global shortcut")
                    }
                    Err(error) => {
                        tracing::warn!("the global shortcut was lost with the keyboard layout: {error}")
                    }
                },
                Event::ClientMessage(message) if message.window == self.window => return,
                _ => {}
            }
        }
    }
}

/// Tells presses from the repetitions of a key that is held down, which is released and pressed in the same millisecond.
#[derive(Default)]
struct PressFilter {
    released_ms: Option<u32>,
}

impl PressFilter {
    fn is_new(&self, time_ms: u32) -> bool {
        self.released_ms != Some(time_ms)
    }

    fn release(&mut self, time_ms: u32) {
        self.released_ms = Some(time_ms);
    }
}

/// The index of the key that types a symbol, and whether it needs Shift for it.
fn find_key(mapping: &GetKeyboardMappingReply, keysym: u32) -> Option<(u8, bool)> {
    let n_symbols = usize::from(mapping.keysyms_per_keycode).max(1);
    [(0, false), (1, true)].into_iter().find_map(|(level, needs_shift)| {
        let mut keys = mapping.keysyms.chunks(n_symbols);
        let index = keys.position(|symbols| symbols.get(level) == Some(&keysym))?;
        Some((u8::try_from(index).ok()?, needs_shift))
    })
}

fn modifiers_of(keys: &KeyCombination) -> ModMask {
    let held = [(keys.primary, ModMask::CONTROL), (keys.alt, ModMask::M1), (keys.shift, ModMask::SHIFT)];
    held.into_iter().filter(|(is_held, _)| *is_held).fold(ModMask::default(), |all, (_, mask)| all | mask)
}

/// Under Wayland, X11 programs receive keys only from each other.
fn is_wayland(variable: &dyn Fn(&str) -> Option<String>) -> bool {
    let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
    is_set("WAYLAND_DISPLAY") || variable("XDG_SESSION_TYPE").is_some_and(|kind| kind == "wayland")
}

fn refused(cause: impl std::fmt::Display) -> Error {
    Error::input(
        "window.shortcut",
        format!("The shortcut of the quick window can't be used: {cause}."),
        "Choose other keys, or assign keys to the command `inglenook inglenook://quick` in the settings of your desktop.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_is_found_on_its_key_first_without_shift() {
        // `a`/`A`, `=`/`+`, Space.
        let keysyms = vec![0x61, 0x41, 0x3d, 0x2b, 0x20, 0];
        let mapping = GetKeyboardMappingReply { keysyms_per_keycode: 2, sequence: 0, keysyms };
        assert_eq!(find_key(&mapping, 0x20), Some((2, false)));
        assert_eq!(find_key(&mapping, 0x2b), Some((1, true)));
        assert_eq!(find_key(&mapping, 0xff1b), None);
    }

    #[test]
    fn a_key_that_is_held_down_is_pressed_once() {
        let mut presses = PressFilter::default();
        assert!(presses.is_new(100));
        presses.release(600);
        assert!(!presses.is_new(600), "the display repeats it");
        presses.release(700);
        assert!(presses.is_new(900));
    }

    #[test]
    fn wayland_and_missing_displays_are_refused_with_a_remedy() {
        let keys = KeyCombination::parse("Mod+Shift+Space").unwrap();
        let check = |set: &[(&str, &str)], cause: &str| {
            let set: Vec<(String, String)> =
                set.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
            let variable =
                |name: &str| set.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
            let error = KeyGrab::take(&variable, &keys, || {}).err().unwrap();
            assert_eq!(error.code(), "window.shortcut");
            assert!(error.message().contains(cause), "{}", error.message());
            assert!(error.remedy().contains("inglenook://quick"), "{}", error.remedy());
        };
        check(&[("WAYLAND_DISPLAY", "wayland-0"), ("DISPLAY", ":0")], "Wayland");
        check(&[("XDG_SESSION_TYPE", "wayland"), ("DISPLAY", ":0")], "Wayland");
        check(&[], "no display");
        check(&[("DISPLAY", "nonsense")], "can't be used");
    }
}
