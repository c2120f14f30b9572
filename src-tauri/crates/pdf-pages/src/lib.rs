//! Pages of PDFs as images, for models that see: which pages are scanned, and their pixels.
//!
//! Never runs longer than its limit, and a failure ends only the page it happened in. A hostile file can still take memory
//! before a limit is known, so this runs in the worker process or in a program that does nothing else.
#![forbid(unsafe_code)]

mod encoded_size;
mod inflated_size;
mod page_image;
mod page_measure;
mod render;

pub use page_image::PageImage;
pub use render::{PageChoice, PageLimits, RenderedPages, render};
