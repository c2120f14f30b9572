//! What a page draws, without drawing it: how much of it images cover, how dense their pixels are, and whether it is too
//! complex to be drawn.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use hayro::hayro_interpret::hayro_syntax::page::Page;
use hayro::hayro_interpret::util::TransformExt;
use hayro::hayro_interpret::{
    BlendMode, ClipPath, Context, Device, DrawMode, DrawProps, Image, ImageDrawProps, InterpreterCache,
    InterpreterSettings, SoftMask, font::GlyphRun, interpret_page,
};
use hayro::kurbo::{BezPath, Rect};

use crate::encoded_size;

/// Drawing operations of a page. Scans have up to some hundred, one per strip.
const MAX_OPERATIONS: usize = 20_000;

/// Elements of all paths of a page: a detailed map has less.
const MAX_PATH_ELEMENTS: usize = 1_000_000;

/// Pixels of all images of a page: an A4 page at 600 dpi has 35 million.
const MAX_IMAGE_PIXELS: u64 = 64_000_000;

/// An image that covers less of the page says nothing about the page's density.
const MIN_DENSE_SHARE: f64 = 0.05;

/// What a page draws.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PageMeasure {
    /// Share of the page that images cover, from 0; overlapping ones count twice.
    pub covered: f64,
    /// Pixels per point of the densest image that covers a noticeable part. 0: there is none.
    pub density: f64,
    /// It draws lines or letters beside images.
    pub has_lines: bool,
}

/// Measures a page. None: it is too complex, or damaged.
pub fn measure<'a>(
    page: &'a Page<'a>,
    cache: &InterpreterCache<'a>,
    settings: &InterpreterSettings,
    stop: &AtomicBool,
) -> Option<PageMeasure> {
    let (width, height) = page.render_dimensions();
    let canvas = Rect::new(0.0, 0.0, f64::from(width), f64::from(height));
    let mut gauge = PageGauge {
        stop,
        canvas,
        n_operations: 0,
        n_path_elements: 0,
        n_pixels: 0,
        measure: PageMeasure::default(),
    };
    let interpreted = catch_unwind(AssertUnwindSafe(|| {
        let transform = page.initial_transform(true).to_kurbo();
        let mut context = Context::new(transform, canvas, cache, page.xref(), settings.clone());
        interpret_page(page, &mut context, &mut gauge);
    }));
    interpreted.ok().map(|()| gauge.measure)
}

/// Unwinds out of the interpreter, which cannot be stopped otherwise.
struct TooComplex;

/// A device that draws nothing.
struct PageGauge<'s> {
    stop: &'s AtomicBool,
    /// The page in points, upright.
    canvas: Rect,
    n_operations: usize,
    n_path_elements: usize,
    n_pixels: u64,
    measure: PageMeasure,
}

impl PageGauge<'_> {
    fn count_operation(&mut self) {
        self.n_operations += 1;
        self.check(self.n_operations <= MAX_OPERATIONS && !self.stop.load(Ordering::Relaxed));
    }

    fn count_path(&mut self, path: &BezPath) {
        self.count_operation();
        self.n_path_elements += path.elements().len();
        self.check(self.n_path_elements <= MAX_PATH_ELEMENTS);
    }

    fn count_pixels(&mut self, n: u64) {
        self.n_pixels = self.n_pixels.saturating_add(n);
        self.check(self.n_pixels <= MAX_IMAGE_PIXELS);
    }

    fn check(&self, is_within: bool) {
        if !is_within {
            resume_unwind(Box::new(TooComplex));
        }
    }
}

impl<'a> Device<'a> for PageGauge<'_> {
    fn draw_path(&mut self, path: &BezPath, _: DrawProps<'a>, _: &DrawMode) {
        self.count_path(path);
        self.measure.has_lines = true;
    }

    fn push_clip_path(&mut self, clip: &ClipPath) {
        self.count_path(&clip.path);
    }

    fn push_transparency_group(&mut self, _: f32, _: Option<SoftMask<'a>>, _: BlendMode) {
        self.count_operation();
    }

    fn draw_glyph_run(&mut self, _: &GlyphRun<'_, 'a>, _: DrawProps<'a>, _: &DrawMode) {
        self.count_operation();
        self.measure.has_lines = true;
    }

    fn draw_image(&mut self, image: Image<'a, '_>, props: ImageDrawProps<'a>) {
        self.count_operation();
        let stream = match &image {
            Image::Stencil(stencil) => stencil.stream(),
            Image::Raster(raster) => raster.stream(),
        };
        self.count_pixels(encoded_size::decoded_pixels(stream));
        let (width, height) = (f64::from(image.width()), f64::from(image.height()));
        let drawn = props.transform.transform_rect_bbox(Rect::new(0.0, 0.0, width, height));
        let seen = drawn.intersect(self.canvas);
        if !seen.overlaps(self.canvas) {
            return;
        }
        let share = seen.area() / self.canvas.area();
        if !share.is_finite() {
            return;
        }
        self.measure.covered += share;
        if share >= MIN_DENSE_SHARE {
            let density = (width * height / drawn.area()).sqrt();
            self.measure.density = self.measure.density.max(density);
        }
    }

    fn pop_clip(&mut self) {}

    fn pop_transparency_group(&mut self) {}
}
