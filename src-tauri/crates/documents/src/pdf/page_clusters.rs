//! Two passes over a page whose fonts map clusters: the first one records its glyphs, the second one reads their texts.
//! Both draw the same glyphs in the same order.

use std::collections::{HashMap, VecDeque};

use super::cluster_texts::{ClusterGlyph, ClusterTexts};
use super::font_source::GlyphText;
use super::fonts::Font;

/// Glyphs of one page that are recorded; the others keep the texts that the map has.
const MAX_GLYPHS: usize = 1 << 20;

/// Which pass draws.
#[derive(Default)]
pub enum PageClusters {
    /// No font of the page so far maps clusters.
    #[default]
    Unneeded,
    /// One does: the page has to be drawn twice more.
    Needed,
    Recording(PageGlyphs),
    Reading(VecDeque<Option<String>>),
}

/// The glyphs of a page.
#[derive(Default)]
pub struct PageGlyphs {
    /// The font of each run, and its glyphs.
    runs: Vec<(usize, Vec<ClusterGlyph>)>,
    n_glyphs: usize,
    is_ended: bool,
}

impl PageGlyphs {
    /// The texts of all glyphs in the order in which they were drawn.
    pub fn read(self, known: &mut HashMap<usize, ClusterTexts>) -> VecDeque<Option<String>> {
        let texts = self.runs.iter().flat_map(|(font, run)| known.entry(*font).or_default().read_run(run));
        texts.collect()
    }
}

impl PageClusters {
    /// What follows stands elsewhere.
    pub fn end_run(&mut self) {
        if let Self::Recording(page) = self {
            page.is_ended = true;
        }
    }

    /// Glyphs that a font draws. `is_replaced`: they have no text of their own.
    pub fn show(
        &mut self,
        (at, font): (usize, &Font),
        bytes: &[u8],
        is_replaced: bool,
        glyphs: &mut GlyphText,
    ) {
        let Some(font) = font.of_clusters().filter(|_| !is_replaced) else {
            self.end_run();
            return;
        };
        match self {
            Self::Unneeded => *self = Self::Needed,
            Self::Needed => {}
            Self::Recording(page) => {
                let run = font.cluster_glyphs(bytes);
                if page.n_glyphs + run.len() > MAX_GLYPHS {
                    return;
                }
                page.n_glyphs += run.len();
                let is_ended = std::mem::take(&mut page.is_ended);
                match page.runs.last_mut() {
                    Some((last, glyphs)) if *last == at && !is_ended => glyphs.extend(run),
                    Some(_) | None => page.runs.push((at, run)),
                }
            }
            Self::Reading(texts) => {
                let n = glyphs.ends.len().min(texts.len());
                let texts: Vec<_> = texts.drain(..n).collect();
                *glyphs = glyphs.with_texts(&texts);
            }
        }
    }
}
