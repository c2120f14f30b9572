//! A range of consecutive tasks: its owner takes from the front, others steal from the back.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// On its own cache lines, as each worker updates its range constantly.
#[derive(Default)]
#[repr(align(128))]
pub struct WorkRange {
    /// start << 32 | end
    range: AtomicU64,
}

impl WorkRange {
    /// Sets the tasks, none of which is taken. Task indices have 32 bits.
    pub fn set(&self, tasks: Range<usize>) {
        self.range.store(word(&tasks), Ordering::Relaxed);
    }

    /// Takes the first task; returns it and the one then first.
    pub fn take_first(&self) -> Option<(usize, Option<usize>)> {
        let left = self.take(|tasks| tasks.start + 1..tasks.end)?;
        Some((left.start, Some(left.start + 1).filter(|next| *next < left.end)))
    }

    /// Takes the last task; returns it and the one then last.
    pub fn take_last(&self) -> Option<(usize, Option<usize>)> {
        let left = self.take(|tasks| tasks.start..tasks.end - 1)?;
        let last = left.end - 1;
        Some((last, last.checked_sub(1).filter(|next| *next >= left.start)))
    }

    /// Shrinks the range by `less` and returns what it was before; `None` if it was empty.
    fn take(&self, less: impl Fn(Range<usize>) -> Range<usize>) -> Option<Range<usize>> {
        let mut seen = self.range.load(Ordering::Relaxed);
        loop {
            let tasks = (seen >> 32) as usize..seen as u32 as usize;
            if tasks.is_empty() {
                return None;
            }
            let left = word(&less(tasks.clone()));
            match self.range.compare_exchange_weak(seen, left, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(tasks),
                Err(now) => seen = now,
            }
        }
    }
}

fn word(tasks: &Range<usize>) -> u64 {
    (tasks.start as u64) << 32 | tasks.end as u64
}

#[cfg(test)]
mod tests {
    use super::WorkRange;

    #[test]
    fn each_task_is_taken_once_from_either_end() {
        let range = WorkRange::default();
        assert_eq!(range.take_first(), None);
        range.set(3..7);
        assert_eq!(range.take_first(), Some((3, Some(4))));
        assert_eq!(range.take_last(), Some((6, Some(5))));
        assert_eq!(range.take_last(), Some((5, Some(4))));
        assert_eq!(range.take_first(), Some((4, None)));
        assert_eq!((range.take_first(), range.take_last()), (None, None));
        range.set(0..1);
        assert_eq!(range.take_last(), Some((0, None)));
    }
}
