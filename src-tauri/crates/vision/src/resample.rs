//! Resizing as Pillow 12.3 does it: separable, horizontal first, 8-bit samples between the passes, fixed point.
//!
//! Pillow 13.0 sometimes runs the vertical pass first; models were trained with the order kept here.

use std::f64::consts::PI;

use crate::picture::{Picture, PictureSize};

/// The kernel that weights source pixels; the names are Pillow's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResampleFilter {
    /// The source pixel under the centre.
    Nearest,
    /// A rectangle: averages when shrinking.
    Box,
    /// A triangle.
    Bilinear,
    /// A windowed sinc of support 1.
    Hamming,
    /// Cubic convolution with a = −0.5.
    Bicubic,
    /// A sinc windowed by a sinc, of support 3.
    Lanczos,
}

/// How the weights are rounded to integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResampleArithmetic {
    /// Pillow: 22 fractional bits.
    Pillow,
    /// torchvision for 8-bit tensors: the most bits that keep each weight in 16. Differs by one level in few pixels.
    Torchvision,
}

const PILLOW_FRACTION_BITS: u32 = 22;

impl ResampleFilter {
    /// The filter of a `resample` code of Pillow, as preprocessor configurations write it.
    pub fn from_pillow_code(code: u64) -> Option<Self> {
        use ResampleFilter::{Bicubic, Bilinear, Box, Hamming, Lanczos, Nearest};
        [Nearest, Lanczos, Bilinear, Bicubic, Box, Hamming].get(usize::try_from(code).ok()?).copied()
    }

    /// Half the kernel's width in source pixels, at scale 1.
    fn support(self) -> f64 {
        match self {
            ResampleFilter::Nearest | ResampleFilter::Box => 0.5,
            ResampleFilter::Bilinear | ResampleFilter::Hamming => 1.0,
            ResampleFilter::Bicubic => 2.0,
            ResampleFilter::Lanczos => 3.0,
        }
    }

    fn weight(self, x: f64) -> f64 {
        let distance = x.abs();
        match self {
            // The half-open interval decides ties between two pixels.
            ResampleFilter::Nearest | ResampleFilter::Box if x > -0.5 && x <= 0.5 => 1.0,
            ResampleFilter::Nearest | ResampleFilter::Box => 0.0,
            ResampleFilter::Bilinear => (1.0 - distance).max(0.0),
            ResampleFilter::Hamming if distance == 0.0 => 1.0,
            ResampleFilter::Hamming if distance < 1.0 => {
                sinc(distance) * (0.54 + 0.46 * (distance * PI).cos())
            }
            ResampleFilter::Hamming => 0.0,
            ResampleFilter::Bicubic => cubic(distance),
            ResampleFilter::Lanczos if (-3.0..3.0).contains(&x) => sinc(x) * sinc(x / 3.0),
            ResampleFilter::Lanczos => 0.0,
        }
    }
}

fn sinc(x: f64) -> f64 {
    if x == 0.0 {
        return 1.0;
    }
    let x = x * PI;
    x.sin() / x
}

fn cubic(x: f64) -> f64 {
    const A: f64 = -0.5;
    if x < 1.0 {
        ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        (((x - 5.0) * x + 8.0) * x - 4.0) * A
    } else {
        0.0
    }
}

/// Resizes to `to`, whose sides are not zero. A pass is skipped if its side does not change.
pub fn resize(
    picture: &Picture,
    to: PictureSize,
    filter: ResampleFilter,
    arithmetic: ResampleArithmetic,
) -> Picture {
    assert!(to.n_pixels() > 0, "a picture is resized to at least one pixel");
    if filter == ResampleFilter::Nearest {
        return pick_nearest(picture, to);
    }
    let from = picture.size();
    let narrowed = (to.width != from.width)
        .then(|| resize_rows(picture, &Kernels::new(from.width, to.width, filter, arithmetic)));
    let picture = narrowed.as_ref().unwrap_or(picture);
    if to.height == from.height {
        return picture.clone();
    }
    resize_columns(picture, &Kernels::new(from.height, to.height, filter, arithmetic))
}

/// Weights of the source samples of every target sample along one axis.
struct Kernels {
    /// First source sample, and the range of its weights.
    spans: Vec<(usize, std::ops::Range<usize>)>,
    weights: Vec<i32>,
    fraction_bits: u32,
}

impl Kernels {
    fn new(n_from: usize, n_to: usize, filter: ResampleFilter, arithmetic: ResampleArithmetic) -> Self {
        let scale = n_from as f64 / n_to as f64;
        let stretch = scale.max(1.0);
        let support = filter.support() * stretch;
        let (mut spans, mut exact) = (Vec::with_capacity(n_to), Vec::new());
        for target in 0..n_to {
            let centre = (target as f64 + 0.5) * scale;
            // Truncation towards zero, as C casts.
            let first = (centre - support + 0.5).max(0.0) as usize;
            let end = ((centre + support + 0.5) as usize).min(n_from);
            let start = exact.len();
            let offsets = (first..end).map(|source| (source as f64 - centre + 0.5) * (1.0 / stretch));
            exact.extend(offsets.map(|x| filter.weight(x)));
            let sum: f64 = exact[start..].iter().sum();
            if sum != 0.0 {
                exact[start..].iter_mut().for_each(|weight| *weight /= sum);
            }
            spans.push((first, start..exact.len()));
        }
        let fraction_bits = match arithmetic {
            ResampleArithmetic::Pillow => PILLOW_FRACTION_BITS,
            ResampleArithmetic::Torchvision => most_bits_in_16(&exact),
        };
        let unit = f64::from(1 << fraction_bits);
        // Half away from zero, truncated.
        let weights = exact.iter().map(|w| (w * unit + 0.5_f64.copysign(*w)) as i32).collect();
        Self { spans, weights, fraction_bits }
    }

    fn to_sample(&self, sum: i32) -> u8 {
        (sum >> self.fraction_bits).clamp(0, 255) as u8
    }

    fn half(&self) -> i32 {
        (1 << self.fraction_bits) >> 1
    }
}

/// The fractional bits at which the largest weight still fits into 16 signed bits.
fn most_bits_in_16(weights: &[f64]) -> u32 {
    let largest = weights.iter().copied().fold(0.0, f64::max);
    let fits = |bits: u32| (0.5 + largest * f64::from(1 << (bits + 1))) < f64::from(1 << 15);
    (0..PILLOW_FRACTION_BITS).find(|&bits| !fits(bits)).unwrap_or(PILLOW_FRACTION_BITS)
}

fn resize_rows(picture: &Picture, kernels: &Kernels) -> Picture {
    let from = picture.size();
    let to = PictureSize::new(kernels.spans.len(), from.height);
    let mut rgb = Vec::with_capacity(to.n_pixels() * 3);
    for row in picture.rgb().chunks_exact(from.width * 3) {
        for (first, span) in &kernels.spans {
            let weights = &kernels.weights[span.clone()];
            let mut sums = [kernels.half(); 3];
            for (pixel, &weight) in row[first * 3..].chunks_exact(3).zip(weights) {
                for (sum, &sample) in sums.iter_mut().zip(pixel) {
                    *sum = sum.wrapping_add(i32::from(sample).wrapping_mul(weight));
                }
            }
            rgb.extend(sums.map(|sum| kernels.to_sample(sum)));
        }
    }
    built(to, rgb)
}

fn resize_columns(picture: &Picture, kernels: &Kernels) -> Picture {
    let width = picture.size().width;
    let to = PictureSize::new(width, kernels.spans.len());
    let mut rgb = Vec::with_capacity(to.n_pixels() * 3);
    let mut sums = vec![0_i32; width * 3];
    for (first, span) in &kernels.spans {
        sums.fill(kernels.half());
        let rows = picture.rgb()[first * width * 3..].chunks_exact(width * 3);
        for (row, &weight) in rows.zip(&kernels.weights[span.clone()]) {
            for (sum, &sample) in sums.iter_mut().zip(row) {
                *sum = sum.wrapping_add(i32::from(sample).wrapping_mul(weight));
            }
        }
        rgb.extend(sums.iter().map(|&sum| kernels.to_sample(sum)));
    }
    built(to, rgb)
}

fn pick_nearest(picture: &Picture, to: PictureSize) -> Picture {
    let from = picture.size();
    let (columns, rows) = (nearest_sources(from.width, to.width), nearest_sources(from.height, to.height));
    let mut rgb = Vec::with_capacity(to.n_pixels() * 3);
    for &row in &rows {
        for &column in &columns {
            let start = (row * from.width + column) * 3;
            rgb.extend_from_slice(&picture.rgb()[start..start + 3]);
        }
    }
    built(to, rgb)
}

/// The source under each target's centre; positions are summed up, as Pillow does, not multiplied.
fn nearest_sources(n_from: usize, n_to: usize) -> Vec<usize> {
    let step = n_from as f64 / n_to as f64;
    let positions = std::iter::successors(Some(step * 0.5), |at| Some(at + step));
    positions.take(n_to).map(|at| (at as usize).min(n_from - 1)).collect()
}

fn built(size: PictureSize, rgb: Vec<u8>) -> Picture {
    Picture::new(size, rgb).expect("every sample of a picture that is not empty was written")
}
