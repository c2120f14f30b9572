//! Outlines of glyphs, to tell whether two of them draw the same sign in another size.

use ttf_parser::{Face, GlyphId, OutlineBuilder};

/// Outlines that are closer than this part of their size are of the same sign.
pub const SAME_SHAPE: f32 = 0.06;

/// Points that are taken of each line or curve of an outline.
const POINTS_OF_SEGMENT: u8 = 6;

/// Signs have simple outlines.
const MAX_SHAPE_POINTS: usize = 1000;

/// Points on an outline.
#[derive(Default)]
pub struct GlyphShape {
    points: Vec<(f32, f32)>,
}

impl GlyphShape {
    /// Measured in parts of its width and height. None: the glyph is empty, or no sign.
    pub fn of(face: &Face, glyph: u16) -> Option<Self> {
        let mut shape = Self::default();
        let bounds = face.outline_glyph(GlyphId(glyph), &mut shape)?;
        let (left, bottom) = (f32::from(bounds.x_min), f32::from(bounds.y_min));
        let width = f32::from(bounds.x_max) - left;
        let height = f32::from(bounds.y_max) - bottom;
        if width <= 0.0 || height <= 0.0 || shape.points.len() > MAX_SHAPE_POINTS {
            return None;
        }
        shape.points.iter_mut().for_each(|(x, y)| (*x, *y) = ((*x - left) / width, (*y - bottom) / height));
        Some(shape)
    }

    /// How far the points of each outline are from the other one on average.
    pub fn distance(&self, other: &Self) -> f32 {
        let one_way = |from: &Self, to: &Self| {
            let nearest = |(x, y): &(f32, f32)| {
                to.points.iter().map(|(u, v)| (x - u).hypot(y - v)).fold(f32::INFINITY, f32::min)
            };
            from.points.iter().map(nearest).sum::<f32>() / from.points.len().max(1) as f32
        };
        one_way(self, other).max(one_way(other, self))
    }

    /// Points on a curve from the last one on, by its place at a part of its way.
    fn trace(&mut self, at: impl Fn((f32, f32), f32) -> (f32, f32)) {
        let start = self.points.last().copied().unwrap_or_default();
        self.points
            .extend((1..=POINTS_OF_SEGMENT).map(|n| at(start, f32::from(n) / f32::from(POINTS_OF_SEGMENT))));
    }
}

impl OutlineBuilder for GlyphShape {
    fn move_to(&mut self, x: f32, y: f32) {
        self.points.push((x, y));
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.trace(|(u, v), t| (u + (x - u) * t, v + (y - v) * t));
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let mix =
            |a: f32, b: f32, c: f32, t: f32| a * (1.0 - t) * (1.0 - t) + 2.0 * b * t * (1.0 - t) + c * t * t;
        self.trace(|(u, v), t| (mix(u, x1, x, t), mix(v, y1, y, t)));
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let mix = |a: f32, b: f32, c: f32, d: f32, t: f32| {
            let s = 1.0 - t;
            a * s * s * s + 3.0 * b * t * s * s + 3.0 * c * t * t * s + d * t * t * t
        };
        self.trace(|(u, v), t| (mix(u, x1, x2, x, t), mix(v, y1, y2, y, t)));
    }

    fn close(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(corners: &[(f32, f32)]) -> GlyphShape {
        let mut shape = GlyphShape::default();
        shape.move_to(corners[0].0, corners[0].1);
        corners[1..].iter().for_each(|(x, y)| shape.line_to(*x, *y));
        shape
    }

    #[test]
    fn corners_in_between_make_no_other_sign() {
        let square = shape(&[(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0), (0.0, 0.0)]);
        let same = shape(&[(0.0, 0.0), (0.5, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0), (0.0, 0.0)]);
        let triangle = shape(&[(0.0, 0.0), (1.0, 0.0), (0.5, 1.0), (0.0, 0.0)]);
        assert!(square.distance(&same) < SAME_SHAPE, "{}", square.distance(&same));
        assert!(square.distance(&triangle) > SAME_SHAPE, "{}", square.distance(&triangle));
    }
}
