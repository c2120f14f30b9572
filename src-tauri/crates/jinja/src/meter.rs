//! What a rendering may use: memory that is alive at once, work, and time.
//!
//! Every value that can grow carries a [`Charge`]; every loop and every copied byte counts as work. Nothing that a
//! template can write allocates before it was charged.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use crate::failure::{Failure, Result};

/// Why a rendering has to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Its time is over.
    Deadline,
    /// It is not wanted any more.
    Cancelled,
}

/// Asked now and then, with the work done so far, whether to stop.
pub type StopCheck = Arc<dyn Fn(u64) -> Option<Stop> + Send + Sync>;

/// Bounds of one rendering.
#[derive(Clone)]
pub struct Limits {
    /// Bytes of values and output that are alive at once, the variables given among them.
    pub max_bytes: usize,
    /// Units of work: about one per node evaluated, and one per 64 bytes copied.
    pub max_work: u64,
    /// Ends a rendering early.
    pub stop: StopCheck,
}

impl Limits {
    /// Bounds without a clock.
    pub fn new(max_bytes: usize, max_work: u64) -> Self {
        Self { max_bytes, max_work, stop: Arc::new(|_| None) }
    }
}

/// Work between two questions whether to stop: some microseconds.
const CHECK_INTERVAL: u64 = 512;

/// Bytes that count as one unit of work.
const BYTES_PER_UNIT: usize = 64;

/// Bytes of a text beside its letters.
const TEXT_OVERHEAD: usize = 64;

/// Counts what one rendering uses.
pub struct Meter {
    limits: Limits,
    bytes: Cell<usize>,
    peak: Cell<usize>,
    work: Cell<u64>,
    next_check: Cell<u64>,
}

impl Meter {
    pub fn new(limits: Limits) -> Rc<Self> {
        let zero = Cell::new(0);
        let (bytes, peak, work) = (zero.clone(), zero, Cell::new(0));
        Rc::new(Self { limits, bytes, peak, work, next_check: Cell::new(CHECK_INTERVAL) })
    }

    /// Counts work.
    ///
    /// Errors: there was too much of it, or the rendering has to stop.
    pub fn work(&self, units: u64) -> Result<()> {
        let work = self.work.get().saturating_add(units);
        self.work.set(work);
        if work < self.next_check.get() {
            return Ok(());
        }
        self.next_check.set(work + CHECK_INTERVAL);
        if work > self.limits.max_work {
            return Err(Failure::TooSlow);
        }
        match (self.limits.stop)(work) {
            None => Ok(()),
            Some(Stop::Deadline) => Err(Failure::TooSlow),
            Some(Stop::Cancelled) => Err(Failure::Cancelled),
        }
    }

    /// Counts work of reading or writing bytes.
    pub fn bytes_work(&self, bytes: usize) -> Result<()> {
        self.work((bytes / BYTES_PER_UNIT) as u64 + 1)
    }

    /// Takes memory.
    ///
    /// Errors: there is not enough left.
    pub fn charge(self: &Rc<Self>, bytes: usize) -> Result<Charge> {
        let mut charge = Charge { meter: Rc::clone(self), bytes: 0 };
        charge.grow(bytes)?;
        Ok(charge)
    }

    /// Work so far.
    pub fn work_done(&self) -> u64 {
        self.work.get()
    }

    /// The most bytes that were alive at once.
    pub fn peak_bytes(&self) -> usize {
        self.peak.get()
    }
}

/// Memory taken from a meter. It is given back on drop.
pub struct Charge {
    meter: Rc<Meter>,
    bytes: usize,
}

impl Charge {
    pub fn meter(&self) -> &Rc<Meter> {
        &self.meter
    }

    /// Takes more.
    pub fn grow(&mut self, bytes: usize) -> Result<()> {
        let meter = &self.meter;
        let total = meter.bytes.get().saturating_add(bytes);
        if total > meter.limits.max_bytes {
            return Err(Failure::TooLarge);
        }
        meter.bytes_work(bytes)?;
        meter.bytes.set(total);
        meter.peak.set(meter.peak.get().max(total));
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.meter.bytes.set(self.meter.bytes.get().saturating_sub(self.bytes));
    }
}

/// A growing text, charged before it grows.
pub struct TextBuilder {
    text: String,
    charge: Charge,
}

impl TextBuilder {
    pub fn new(meter: &Rc<Meter>) -> Self {
        Self { text: String::new(), charge: Charge { meter: Rc::clone(meter), bytes: 0 } }
    }

    pub fn push_str(&mut self, text: &str) -> Result<()> {
        let needed = self.text.len() + text.len();
        if self.charge.bytes == 0 {
            self.charge.grow(TEXT_OVERHEAD)?;
        }
        if needed > self.text.capacity() {
            // A growing string doubles its capacity: that is charged, not the length.
            let capacity = needed.max(self.text.capacity() * 2).max(16);
            self.charge.grow(capacity - self.text.capacity())?;
            self.text.reserve_exact(capacity - self.text.len());
        }
        self.charge.meter.bytes_work(text.len())?;
        self.text.push_str(text);
        Ok(())
    }

    pub fn push(&mut self, c: char) -> Result<()> {
        self.push_str(c.encode_utf8(&mut [0; 4]))
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn into_parts(self) -> (String, Charge) {
        (self.text, self.charge)
    }
}
