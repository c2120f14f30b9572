//! A limit of steps while a file is read that may be damaged: no damage makes an opening or a recovery run without end.

use rusqlite::Connection;

use crate::error::Result;

/// Steps of SQLite's virtual machine between two looks at the count.
const LOOK_STEPS: u32 = 10_000;

/// Steps for any file: opening an empty one takes some thousands.
const MIN_STEPS: u64 = 50_000_000;

/// Steps per byte. A row of 20 bytes takes at most some hundred steps to be checked, copied and indexed.
const STEPS_PER_BYTE: u64 = 20;

/// Interrupts statements of this connection once they have taken more steps together than a file of this size needs. The
/// error then says that the file is damaged.
pub(crate) fn set(db: &mut Connection, file_bytes: u64) -> Result<()> {
    let mut n_left = (MIN_STEPS + file_bytes.saturating_mul(STEPS_PER_BYTE)) / u64::from(LOOK_STEPS);
    let is_over = move || {
        n_left = n_left.saturating_sub(1);
        n_left == 0
    };
    Ok(db.progress_handler(LOOK_STEPS.cast_signed(), Some(is_over))?)
}

/// Removes the limit.
pub(crate) fn remove(db: &mut Connection) -> Result<()> {
    Ok(db.progress_handler(0, None::<fn() -> bool>)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_end_counts_as_damage() {
        let mut db = Connection::open_in_memory().unwrap();
        let endless =
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n";
        set(&mut db, 0).unwrap();
        let error = crate::SessionError::from(db.query_row(endless, [], |_| Ok(())).unwrap_err());
        assert!(error.is_damage() && error.to_string().contains("steps"), "{error}");
        remove(&mut db).unwrap();
        let many = endless.replace("FROM n)", "FROM n LIMIT 10000)");
        db.query_row(&many, [], |_| Ok(())).unwrap();
    }
}
