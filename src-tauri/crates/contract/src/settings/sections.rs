//! Sections of the settings page and their groups of rows. A group that is not listed here forms a
//! separate section.

mod attachments;

use super::{Setting, contexts, downloads, gpus, library, limits, network, server, tools, window};

/// Sections and the groups of rows in them, in the order in which a page shows them.
const SECTIONS: &[(&str, &[&str])] = &[
    ("General", &["General"]),
    ("Appearance", &["Display"]),
    ("Chat", &["Writing", "Reading", "Answers", "Thinking", "Safety", "Files"]),
    ("Tools", &["Tools"]),
    ("Models & storage", &["Models", "Downloads"]),
    ("Hardware", &["Hardware", "GPUs"]),
    ("Context & memory", &["Long chats", "Context cache"]),
    ("Local server", &["Server", "Limits"]),
    ("Privacy & network", &["Network"]),
    ("Shortcuts", &["Shortcuts"]),
    ("Data", &["Data"]),
];

/// Rows of the child modules, in display order.
pub fn rows() -> impl Iterator<Item = &'static Setting> {
    let of_use = [library::ROWS, window::ROWS, gpus::ROWS, contexts::ROWS, attachments::ROWS];
    of_use
        .into_iter()
        .chain([server::ROWS, limits::ROWS, downloads::ROWS, network::ROWS, tools::ROWS])
        .flatten()
}

/// The section of a group.
pub fn of(group: &'static str) -> &'static str {
    let section = SECTIONS.iter().find(|(_, groups)| groups.contains(&group));
    section.map_or(group, |(section, _)| section)
}

/// Settings read when a model is loaded: a change takes effect with the next load.
pub const AT_LOAD: &[&str] = &[
    "context",
    "kv",
    "kv_aging",
    "kv_aging_after",
    "kv_window",
    "context_stretch",
    "threads",
    "affinity",
    "numa",
    "backend",
    "gpu_layers",
    "gpu_memory",
    "gpu_precision",
    "gpu_devices",
    "gpu_spread",
    "resident_budget",
    "large_pages",
    "context_memory",
    "draft_model",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_at_loading_is_a_setting() {
        for key in AT_LOAD {
            assert!(crate::settings::find(key).is_ok(), "{key}");
        }
    }

    #[test]
    fn an_unknown_group_is_its_own_section() {
        assert_eq!(of("Thinking"), "Chat");
        assert_eq!(of("Elsewhere"), "Elsewhere");
    }
}
