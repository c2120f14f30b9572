//! Whether a file that this thread used turned out to be damaged, whatever became of the error.

use std::cell::Cell;

thread_local! {
    static HAS_DAMAGE: Cell<bool> = const { Cell::new(false) };
}

/// Notes that a database said that it is damaged.
pub fn report_damage() {
    HAS_DAMAGE.set(true);
}

/// Whether damage was reported on this thread since the last call. The owner of a database asks after each use, and has the
/// database repaired.
pub fn take_damage_report() -> bool {
    HAS_DAMAGE.replace(false)
}
