//! Draws pages of a PDF on white, within limits of pages, pixels and time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use documents::timed;
use documents::{ExtractError, pdf};
use hayro::hayro_interpret::hayro_syntax::{LoadPdfError, Pdf, page::Page};
use hayro::hayro_interpret::util::TransformExt;
use hayro::hayro_interpret::{InterpreterCache, InterpreterSettings};
use hayro::kurbo::Affine;
use hayro::vello_cpu::color::palette::css::WHITE;
use hayro::vello_cpu::{self, Pixmap, RenderContext};
use hayro::{RenderCache, RenderSettings, render_into};

use crate::inflated_size;
use crate::page_image::PageImage;
use crate::page_measure::{PageMeasure, measure};

/// A page whose images cover less is not scanned.
const MIN_SCANNED_SHARE: f64 = 0.5;

/// Pixels per point where a page has lines or letters: 150 dpi.
const LINES_DENSITY: f64 = 150.0 / 72.0;

/// What rendering may take at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLimits {
    /// Pages that become images: the first ones.
    pub max_pages: usize,
    /// Pixels of a page's longer side.
    pub longest_side: u16,
    /// Bytes that one stream of the file unpacks to.
    pub max_stream_bytes: usize,
    pub timeout: Duration,
}

impl Default for PageLimits {
    /// Twenty pages are some ten thousand tokens for most models; 2,048 pixels show 9-point print on A4.
    fn default() -> Self {
        Self {
            max_pages: 20,
            longest_side: 2048,
            max_stream_bytes: 192 << 20,
            timeout: Duration::from_secs(60),
        }
    }
}

/// Which pages become images.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageChoice {
    All,
    /// Of these pages, counted from 1, those that images cover.
    Scanned(Vec<u32>),
}

/// Pages as images.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RenderedPages {
    /// In their order.
    pub images: Vec<PageImage>,
    /// Chosen pages that are no images: beyond the limit, or damaged. Counted from 1.
    pub left_out: Vec<u32>,
}

/// Renders pages of a PDF.
///
/// Errors: the file is no readable PDF, needs a password, unpacks to too much, or takes too long.
pub fn render(bytes: &[u8], choice: PageChoice, limits: PageLimits) -> Result<RenderedPages, ExtractError> {
    let bytes = bytes.to_vec();
    timed::run(limits.timeout, pdf::damaged, move |stop| render_file(bytes, &choice, &limits, stop))
}

fn render_file(
    bytes: Vec<u8>,
    choice: &PageChoice,
    limits: &PageLimits,
    stop: &AtomicBool,
) -> Result<RenderedPages, ExtractError> {
    if !inflated_size::is_within(&bytes, limits.max_stream_bytes) {
        return Err(ExtractError::new(
            format!("a part of it unpacks to more than {} MB", limits.max_stream_bytes >> 20),
            "Save the pages you need as a separate PDF and attach that.",
        ));
    }
    let document = Pdf::new(bytes).map_err(|error| match error {
        LoadPdfError::Decryption(_) => ExtractError::locked(),
        LoadPdfError::Invalid => pdf::damaged(),
    })?;
    let settings = InterpreterSettings::default();
    let mut rendered = RenderedPages::default();
    for (number, page) in (1..).zip(document.pages().iter()) {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        if matches!(choice, PageChoice::Scanned(candidates) if !candidates.contains(&number)) {
            continue;
        }
        // A cache for each page: what many pages hold together has no limit.
        let Some(measured) = measure(page, &InterpreterCache::new(), &settings, stop) else { continue };
        if matches!(choice, PageChoice::Scanned(_)) && measured.covered < MIN_SCANNED_SHARE {
            continue;
        }
        let has_room = rendered.images.len() < limits.max_pages;
        match has_room.then(|| render_page(page, number, &measured, limits)).flatten() {
            Some(image) => rendered.images.push(image),
            None => rendered.left_out.push(number),
        }
    }
    Ok(rendered)
}

/// None: its content is damaged, or nothing of it could be drawn.
fn render_page(
    page: &Page<'_>,
    number: u32,
    measured: &PageMeasure,
    limits: &PageLimits,
) -> Option<PageImage> {
    let drawn = catch_unwind(AssertUnwindSafe(|| {
        let is_broken = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_broken);
        let settings = InterpreterSettings {
            warning_sink: Arc::new(move |warning| {
                use hayro::hayro_interpret::InterpreterWarning::ImageDecodeFailure;
                seen.fetch_or(matches!(warning, ImageDecodeFailure), Ordering::Relaxed);
            }),
            ..InterpreterSettings::default()
        };
        let pixmap = draw(page, &settings, size_of(page, measured, limits.longest_side));
        // An image that can't be decoded leaves a white page, which would mislead.
        (!is_broken.load(Ordering::Relaxed)).then_some(pixmap)
    }));
    PageImage::encode(number, &drawn.ok()??).ok()
}

/// Width and height in pixels: as dense as the page's images, as far as the limit allows.
fn size_of(page: &Page<'_>, measured: &PageMeasure, longest_side: u16) -> (u16, u16) {
    let (width, height) = page.render_dimensions();
    let (width, height) = (f64::from(width), f64::from(height));
    let wanted = match measured.density {
        density if measured.has_lines || density <= 0.0 => density.max(LINES_DENSITY),
        density => density,
    };
    let scale = wanted.min(f64::from(longest_side) / width.max(height));
    // Casts of floats saturate.
    let side = |side: f64| ((side * scale).round() as u16).clamp(1, longest_side);
    (side(width), side(height))
}

fn draw(page: &Page<'_>, settings: &InterpreterSettings, (width, height): (u16, u16)) -> Pixmap {
    let (page_width, page_height) = page.render_dimensions();
    let scale = Affine::scale_non_uniform(
        f64::from(width) / f64::from(page_width),
        f64::from(height) / f64::from(page_height),
    );
    let transform = scale * page.initial_transform(true).to_kurbo();
    let mut context = RenderContext::new(width, height);
    let (cache, drawing) = (RenderCache::new(), RenderSettings::default());
    render_into(page, &cache, settings, &drawing, &mut context, transform);
    context.flush();
    let mut pixmap = Pixmap::new(width, height);
    let target = vello_cpu::RasterizerSettings {
        target_init: vello_cpu::TargetInit::Clear(WHITE),
        ..vello_cpu::RasterizerSettings::default()
    };
    context.render_with(&mut pixmap, &mut vello_cpu::Resources::default(), target);
    pixmap
}
