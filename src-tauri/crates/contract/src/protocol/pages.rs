//! Scanned pages of a PDF, which become images of a message.

use serde::{Deserialize, Serialize};

use super::Base64Text;
use crate::types::ImageInfo;

/// Asks which pages of a PDF are scanned, and for their images.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenderRequest {
    /// The PDF.
    pub file: Base64Text,
    /// Pages without readable text, counted from 1.
    pub pages: Vec<u32>,
}

/// The scanned pages of a PDF.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageImages {
    /// In the order of the pages.
    pub images: Vec<PageImage>,
    /// Scanned pages that are no images: too many, or damaged. Counted from 1.
    pub left_out: Vec<u32>,
}

/// A page as an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageImage {
    /// From 1.
    pub page: u32,
    /// A PNG or JPEG file.
    pub file: Base64Text,
    /// What lists show of it.
    pub info: ImageInfo,
}
