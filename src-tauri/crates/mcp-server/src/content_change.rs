//! Changes of what a server has on offer.

use futures_util::stream::BoxStream;

/// A change that clients may want to know of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContentChange {
    ToolList,
    PromptList,
    ResourceList,
    /// The resource with this URI.
    Resource(String),
}

/// Changes from some moment on, several at a time.
pub type ContentChanges = BoxStream<'static, Vec<ContentChange>>;
