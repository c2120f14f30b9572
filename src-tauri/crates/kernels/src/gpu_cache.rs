//! What has been found out about graphics cards: which kernels are right with a driver, which shapes of them are fast,
//! and what the driver made of them. In memory alone: whoever opens devices keeps it from one start to the next.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A card with one driver, and kernels of one version: what was found of it says nothing of another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CardKey {
    pub name: String,
    /// "vulkan", "metal", "dx12"
    pub api: String,
    /// name and version
    pub driver: String,
    /// version of the kernels, and what of the card they use
    pub kernels: String,
}

/// What was found of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// checks that it passed: "product of Q4_K"
    pub right: BTreeSet<String>,
    /// a kernel that computes something else than its reference does, and depends on nothing that can be done without
    pub wrong: Option<String>,
    /// the same of one whose lanes share by subgroups: `Sharing::Memory` is left
    pub subgroups: Option<String>,
    /// the same of a precision that can be done without, by its name
    pub imprecise: BTreeMap<String, String>,
    /// the fastest shape of a kernel, by the kernel's name
    pub tuned: BTreeMap<String, String>,
    /// kernels as its driver compiled them, which only that driver reads
    pub pipelines: Option<Arc<[u8]>>,
}

/// What is known of all cards, shared by those who use it and who keeps it.
#[derive(Clone, Debug, Default)]
pub struct Notebook(Arc<Mutex<BTreeMap<CardKey, Known>>>);

impl Notebook {
    pub fn new(known: BTreeMap<CardKey, Known>) -> Self {
        Self(Arc::new(Mutex::new(known)))
    }

    /// Of one card; nothing where it was never looked at.
    pub fn of(&self, key: &CardKey) -> Known {
        self.lock().get(key).cloned().unwrap_or_default()
    }

    pub fn change(&self, key: &CardKey, change: impl FnOnce(&mut Known)) {
        change(self.lock().entry(key.clone()).or_default());
    }

    pub fn all(&self) -> BTreeMap<CardKey, Known> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<CardKey, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The same one, not one that says the same; where nothing is known there is nothing to tell apart.
impl PartialEq for Notebook {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || (self.lock().is_empty() && other.lock().is_empty())
    }
}

impl Eq for Notebook {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_driver_knows_nothing() {
        let key = |driver: &str| CardKey {
            name: "Card X".into(),
            api: "vulkan".into(),
            driver: driver.into(),
            kernels: "1".into(),
        };
        let notebook = Notebook::default();
        let shared = notebook.clone();
        notebook.change(&key("1.0"), |known| known.wrong = Some("rope".into()));
        assert_eq!(shared.of(&key("1.0")).wrong.as_deref(), Some("rope"));
        assert_eq!(shared.of(&key("1.1")), Known::default());
        assert_eq!(shared.all().len(), 1);
        assert!(shared == notebook && notebook != Notebook::default());
    }
}
