//! Interprets a page's content stream and records where its text stands. Pictures and lines are
//! ignored.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use lopdf::content::{Content, Operation};
use lopdf::{Dictionary, Document, Object, ObjectId};

use super::cluster_texts::ClusterTexts;
use super::font_source::{FontSource, GlyphText, number};
use super::fonts::Font;
use super::lines::{Lines, PieceSpan};
use super::marked_content::MarkedContent;
use super::non_joiners::ShownString;
use super::page_clusters::{PageClusters, PageGlyphs};
use super::{MAX_UNPACKED, streams, strings};
use crate::extract_error::TEXT_MOST;

/// Forms within forms.
const MAX_LEVELS: usize = 8;

/// Forms that one page draws, however often.
const MAX_FORMS: usize = 2000;

/// States that are kept to go back to.
const MAX_KEPT: usize = 256;

/// Thousandths of the font's size that a letter is moved to make a space, where widths aren't known.
const MOVED: f32 = 180.0;

/// XeTeX moves to each sign on a letter. What stands farther from the last glyph is another word, in sizes of the font.
const MAX_SIGN_SHIFT: f32 = 0.6;

/// Thousandths of the font's size between the syllables of two words. TeX draws no spaces. Maps of clusters come from
/// programs that do, and move signs instead.
const WORD_GAP: f32 = 250.0;

/// A linear map of points: `[a b c d e f]`.
#[derive(Clone, Copy)]
struct Matrix([f32; 6]);

impl Matrix {
    const ONE: Self = Self([1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);

    /// This one first, then `after`.
    fn then(self, after: Self) -> Self {
        let ([a, b, c, d, e, f], [g, h, i, j, k, l]) = (self.0, after.0);
        Self([
            a * g + b * i,
            a * h + b * j,
            c * g + d * i,
            c * h + d * j,
            e * g + f * i + k,
            e * h + f * j + l,
        ])
    }

    /// How far another origin is away, in this one's units.
    fn distance(self, other: Self) -> f32 {
        let ([_, _, c, d, x, y], [_, _, _, _, u, v]) = (self.0, other.0);
        (u - x).hypot(v - y) / c.hypot(d).max(f32::MIN_POSITIVE)
    }

    fn moved(self, x: f32, y: f32) -> Self {
        Self([1.0, 0.0, 0.0, 1.0, x, y]).then(self)
    }
}

#[derive(Clone, Copy)]
struct TextState {
    page: Matrix,
    font: Option<usize>,
    size: f32,
    /// Added to each letter, and to each blank.
    letters: f32,
    words: f32,
    /// Of the letters' width.
    stretch: f32,
    leading: f32,
}

impl TextState {
    /// Where text that is so wide stands on the page, and how high it is.
    fn span(&self, at: Matrix, width: f32, is_vertical: bool) -> PieceSpan {
        let Matrix([a, b, c, d, x, y]) = at.then(self.page);
        let unit = |x: f32, y: f32| match x.hypot(y) {
            0.0 => (1.0, 0.0),
            length => (x / length, y / length),
        };
        let (along, across) = (a.hypot(b), c.hypot(d));
        let size = self.size.abs();
        match is_vertical {
            true => PieceSpan {
                start: (x, y),
                direction: unit(-c, -d),
                width: width * across,
                height: size * along,
            },
            false => PieceSpan {
                start: (x, y),
                direction: unit(a, b),
                width: width * self.stretch * along,
                height: size * across,
            },
        }
    }
}

/// What a page shows.
#[derive(Default)]
struct PageText {
    lines: Lines,
    clusters: PageClusters,
}

/// Where letters go that are shown.
struct ShownText<'t> {
    at: &'t mut Text,
    marks: &'t mut MarkedContent,
    page: &'t mut PageText,
}

/// Reads pages of one document.
pub struct Walker<'a> {
    document: &'a Document,
    source: FontSource<'a>,
    stop: &'a AtomicBool,
    fonts: Vec<Font>,
    /// By the number of their object, or by where they stand in the resources.
    known: HashMap<Result<ObjectId, usize>, Option<usize>>,
    n_forms: usize,
    /// What the pages so far say of the glyphs of a font.
    cluster_texts: HashMap<usize, ClusterTexts>,
}

/// What draws, and what it names.
struct Drawing<'a> {
    resources: Vec<&'a Dictionary>,
    level: usize,
}

/// Where the next letter stands.
struct Text {
    at: Matrix,
    line: Matrix,
}

impl<'a> Walker<'a> {
    pub fn new(document: &'a Document, stop: &'a AtomicBool) -> Self {
        let source = FontSource::new(document);
        Self {
            document,
            source,
            stop,
            fonts: Vec::new(),
            known: HashMap::new(),
            n_forms: 0,
            cluster_texts: HashMap::new(),
        }
    }

    /// The text of a page.
    pub fn page(&mut self, page: ObjectId, content: &[u8]) -> String {
        let mut resources = Vec::new();
        if let Ok((own, others)) = self.document.get_page_resources(page) {
            resources.extend(own);
            resources.extend(others.iter().filter_map(|id| self.document.get_dictionary(*id).ok()));
        }
        let state = TextState {
            page: Matrix::ONE,
            font: None,
            size: 0.0,
            letters: 0.0,
            words: 0.0,
            stretch: 1.0,
            leading: 0.0,
        };
        let drawing = Drawing { resources, level: 0 };
        let page = self.draw_page(content, &drawing, state, PageClusters::default());
        if !matches!(page.clusters, PageClusters::Needed) {
            return page.lines.into_text();
        }
        let recording = PageClusters::Recording(PageGlyphs::default());
        let recorded = self.draw_page(content, &drawing, state, recording);
        let PageClusters::Recording(glyphs) = recorded.clusters else { return page.lines.into_text() };
        let texts = glyphs.read(&mut self.cluster_texts);
        self.draw_page(content, &drawing, state, PageClusters::Reading(texts)).lines.into_text()
    }

    /// One pass over a page.
    fn draw_page(
        &mut self,
        content: &[u8],
        drawing: &Drawing<'a>,
        state: TextState,
        clusters: PageClusters,
    ) -> PageText {
        let mut page = PageText { clusters, lines: Lines::default() };
        self.n_forms = 0;
        self.draw(content, drawing, state, &mut page);
        page
    }

    fn draw(&mut self, content: &[u8], drawing: &Drawing<'a>, mut state: TextState, page: &mut PageText) {
        let mut text = Text { at: Matrix::ONE, line: Matrix::ONE };
        let mut kept = Vec::new();
        let mut marks = MarkedContent::default();
        for operation in Content::decode_iter(content) {
            let Ok(Operation { operator, operands }) = operation else { return };
            let is_over = page.lines.len() > TEXT_MOST || matches!(page.clusters, PageClusters::Needed);
            if is_over || self.stop.load(Ordering::Relaxed) {
                return;
            }
            match operator.as_str() {
                "q" if kept.len() < MAX_KEPT => kept.push(state),
                "Q" => state = kept.pop().unwrap_or(state),
                "cm" => state.page = self.matrix(&operands).map_or(state.page, |it| it.then(state.page)),
                "Do" => self.form(&operands, drawing, state, page),
                "BMC" | "BDC" => marks.begin(self.actual_text(&operands, drawing)),
                "EMC" => marks.end(),
                "BT" => {
                    text = Text { at: Matrix::ONE, line: Matrix::ONE };
                    page.clusters.end_run();
                }
                _ => {
                    self.set(&operator, &operands, drawing, &mut state);
                    let before = text.at;
                    if self.place(&operator, &operands, &mut state, &mut text)
                        && before.distance(text.at) > state.size.abs() * MAX_SIGN_SHIFT
                    {
                        page.clusters.end_run();
                    }
                    let mut target = ShownText { at: &mut text, marks: &mut marks, page };
                    self.show(&operator, &operands, &state, &mut target);
                }
            }
        }
    }

    /// What letters look like from now on.
    fn set(&mut self, operator: &str, operands: &[Object], drawing: &Drawing<'a>, state: &mut TextState) {
        let value = |at: usize| operands.get(at).and_then(|it| number(self.document, it));
        match operator {
            "Tf" => {
                state.size = value(1).unwrap_or(state.size);
                let name = operands.first().and_then(|it| it.as_name().ok()).unwrap_or_default();
                state.font = self.font(name, drawing);
            }
            "Tc" => state.letters = value(0).unwrap_or(0.0),
            "Tw" => state.words = value(0).unwrap_or(0.0),
            "Tz" => state.stretch = value(0).unwrap_or(100.0) / 100.0,
            "TL" => state.leading = value(0).unwrap_or(0.0),
            "\"" => {
                state.words = value(0).unwrap_or(0.0);
                state.letters = value(1).unwrap_or(0.0);
            }
            _ => {}
        }
    }

    /// Where letters stand from now on. False: the operator does not say it.
    fn place(&self, operator: &str, operands: &[Object], state: &mut TextState, text: &mut Text) -> bool {
        let value = |at: usize| operands.get(at).and_then(|it| number(self.document, it)).unwrap_or(0.0);
        let line = match operator {
            "Td" => text.line.moved(value(0), value(1)),
            "TD" => {
                state.leading = -value(1);
                text.line.moved(value(0), value(1))
            }
            "Tm" => self.matrix(operands).unwrap_or(text.line),
            "T*" | "'" | "\"" => text.line.moved(0.0, -state.leading),
            _ => return false,
        };
        *text = Text { at: line, line };
        true
    }

    fn show(&self, operator: &str, operands: &[Object], state: &TextState, target: &mut ShownText) {
        let shown = match operator {
            "Tj" | "'" | "TJ" => operands.first(),
            "\"" => operands.get(2),
            _ => None,
        };
        let Some(font_at) = state.font else { return };
        let Some(font) = self.fonts.get(font_at) else { return };
        let pieces = match shown {
            Some(Object::Array(pieces)) => pieces.as_slice(),
            Some(piece) => std::slice::from_ref(piece),
            None => return,
        };
        let moved = |at: Matrix, width: f32| match font.is_vertical() {
            true => at.moved(0.0, -width),
            false => at.moved(width * state.stretch, 0.0),
        };
        let mut last_text = String::new();
        for (at, piece) in pieces.iter().enumerate() {
            match piece {
                Object::String(bytes, _) => {
                    let mut glyphs = GlyphText::default();
                    let advance = font.read(bytes, &mut glyphs);
                    let width = advance.width / 1000.0 * state.size
                        + state.letters * advance.n_codes as f32
                        + state.words * advance.n_spaces as f32;
                    let span = state.span(target.at.at, width, font.is_vertical());
                    let is_replaced = target.marks.is_replaced();
                    target.page.clusters.show((font_at, font), bytes, is_replaced, &mut glyphs);
                    let shown =
                        ShownString { glyphs: &glyphs, before: &last_text, follow: &pieces[at + 1..] };
                    glyphs = shown.with_non_joiner(self.document, font).unwrap_or(glyphs);
                    target.marks.with_actual_text(&mut glyphs);
                    target.page.lines.put(span, &glyphs);
                    last_text = glyphs.text;
                    target.at.at = moved(target.at.at, width);
                }
                gap => {
                    let Some(back) = number(self.document, gap) else { continue };
                    if back < -WORD_GAP && font.of_clusters().is_some_and(|font| !font.has_cluster_map) {
                        target.page.clusters.end_run();
                    }
                    if !font.is_measured() && back < -MOVED && !target.marks.is_replaced() {
                        target.page.lines.space();
                    }
                    target.at.at = moved(target.at.at, -back / 1000.0 * state.size);
                }
            }
        }
    }

    /// `ActualText` of marked content: what its glyphs stand for.
    fn actual_text(&self, operands: &[Object], drawing: &Drawing<'a>) -> Option<String> {
        let document = self.document;
        let properties = match operands.get(1)? {
            Object::Name(name) => drawing.resources.iter().find_map(|resources| {
                let all: &'a Dictionary =
                    resources.get_deref(b"Properties", document).ok()?.as_dict().ok()?;
                all.get_deref(name, document).ok()?.as_dict().ok()
            })?,
            object => object.as_dict().ok()?,
        };
        strings::text(document, properties.get(b"ActualText").ok()?)
    }

    /// A font by the name that what draws has for it.
    fn font(&mut self, name: &[u8], drawing: &Drawing<'a>) -> Option<usize> {
        let document = self.document;
        let resource = drawing.resources.iter().find_map(|resources| {
            let fonts: &'a Dictionary = resources.get_deref(b"Font", document).ok()?.as_dict().ok()?;
            fonts.get(name).ok()
        })?;
        let which = resource.as_reference().map_err(|_| std::ptr::from_ref(resource).addr());
        if let Some(known) = self.known.get(&which) {
            return *known;
        }
        let at = Font::new(&mut self.source, resource).map(|font| {
            self.fonts.push(font);
            self.fonts.len() - 1
        });
        self.known.insert(which, at);
        at
    }

    /// A drawing that is drawn in this one.
    fn form(&mut self, operands: &[Object], drawing: &Drawing<'a>, state: TextState, page: &mut PageText) {
        self.n_forms += 1;
        if drawing.level >= MAX_LEVELS || self.n_forms > MAX_FORMS {
            return;
        }
        let document = self.document;
        let name = operands.first().and_then(|it| it.as_name().ok()).unwrap_or_default();
        let form = drawing.resources.iter().find_map(|resources| {
            let forms: &'a Dictionary = resources.get_deref(b"XObject", document).ok()?.as_dict().ok()?;
            forms.get_deref(name, document).ok()?.as_stream().ok()
        });
        let Some(form) = form else { return };
        if !form.dict.get(b"Subtype").and_then(Object::as_name).is_ok_and(|kind| kind == b"Form") {
            return;
        }
        let Some(content) = streams::unpack(document, form, MAX_UNPACKED) else { return };
        let own = form.dict.get_deref(b"Resources", document).and_then(Object::as_dict).ok();
        let resources = match own {
            Some(own) => vec![own],
            None => drawing.resources.clone(),
        };
        let matrix = form.dict.get_deref(b"Matrix", document).and_then(Object::as_array).ok();
        let matrix = matrix.and_then(|list| self.matrix(list)).unwrap_or(Matrix::ONE);
        let state = TextState { page: matrix.then(state.page), ..state };
        self.draw(&content, &Drawing { resources, level: drawing.level + 1 }, state, page);
    }

    fn matrix(&self, operands: &[Object]) -> Option<Matrix> {
        let mut matrix = [0.0; 6];
        for (at, value) in matrix.iter_mut().enumerate() {
            *value = number(self.document, operands.get(at)?)?;
        }
        Some(Matrix(matrix))
    }
}
