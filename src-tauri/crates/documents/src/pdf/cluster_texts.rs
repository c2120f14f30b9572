//! Texts of glyphs whose `ToUnicode` holds texts of clusters. WeasyPrint gives a glyph the text of the cluster in which it
//! was drawn first, and the other new glyphs of that cluster an empty one. The last glyph of a cluster has its text where
//! the text runs to the right, the first one where it runs to the left.
//!
//! What each glyph stands for is what remains of a cluster's text without that of its known glyphs. The font file
//! knows glyphs that are characters; earlier clusters tell others.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use unicode_bidi::{BidiClass, bidi_class};
use unicode_normalization::UnicodeNormalization as _;

use super::bidi;
use super::brackets;
use super::brahmic::{self, OrderEvidence, SyllableRole};
use super::brahmic_letters;

/// Clusters have fewer glyphs.
const MAX_CLUSTER_GLYPHS: usize = 16;

/// Glyphs before or after a sign that may belong to its cluster.
const MAX_SIGNS_BEFORE: usize = 6;

/// A glyph that was drawn, and what the file says of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClusterGlyph {
    pub code: u32,
    /// By `ToUnicode`. Empty: the map says that it has no text.
    pub mapped: Option<String>,
    /// By the font file.
    pub nominal: Option<String>,
    /// The font file calls it an accent.
    pub is_mark: bool,
    /// The font file calls it a ligature.
    pub is_ligature: bool,
}

impl ClusterGlyph {
    /// The text that the map and the font file agree on. None: it takes its cluster to tell.
    fn certain(&self) -> Option<&str> {
        match (self.nominal.as_deref(), self.mapped.as_deref()) {
            (Some(nominal), Some(mapped)) if is_part(nominal, mapped) => Some(nominal),
            (Some(nominal), None | Some("")) => Some(nominal),
            // How a bracket looks tells more than which one was meant where it was drawn first.
            (Some(nominal), Some(mapped)) if is_mirror(nominal, mapped) => Some(nominal),
            // Signs that are drawn in another order than written take the text of each other.
            (Some(nominal), Some(mapped))
                if brahmic_letters::is_single_sign(nominal) && brahmic_letters::is_single_sign(mapped) =>
            {
                Some(nominal)
            }
            // Tone marks and vowels below, of which each may be drawn first, take the text of each other.
            (Some(nominal), Some(mapped))
                if is_thai_pair(nominal, mapped) || is_thai_pair(mapped, nominal) =>
            {
                Some(nominal)
            }
            (Some(_), Some(mapped)) => Some(mapped),
            (None, _) => None,
        }
    }

    /// The map says that it has no text: another glyph has that of its cluster.
    fn has_no_text(&self) -> bool {
        self.mapped.as_deref().is_some_and(str::is_empty)
    }
}

/// The character of a glyph is a part of its cluster's text, and not all of it.
pub fn is_part(nominal: &str, cluster: &str) -> bool {
    // Selectors ask for a form of the character itself, and a non-joiner ends one.
    let is_selector = |c: char| matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{200c}');
    let parts = |text: &str| parts(text).into_iter().filter(|c| !is_selector(*c)).collect::<Vec<_>>();
    let (whole, part) = (parts(cluster), parts(nominal));
    part.len() < whole.len() && without(&whole, &part).is_some()
}

/// A tone mark, and a vowel below.
fn is_thai_pair(tone: &str, vowel: &str) -> bool {
    brahmic_letters::is_thai_tone(tone) && brahmic_letters::is_thai_vowel_below(vowel)
}

/// The character of a glyph is the mirror image of the one that the map has.
fn is_mirror(nominal: &str, mapped: &str) -> bool {
    brackets::mirror(nominal).is_some_and(|other| mapped.chars().eq([other]))
}

/// The characters of a text without those of another, each from the front. None: they are not all in it.
fn without(whole: &[char], part: &[char]) -> Option<Vec<char>> {
    let mut rest = whole.to_vec();
    for c in part {
        let at = rest.iter().position(|other| other == c)?;
        rest.remove(at);
    }
    Some(rest)
}

/// The parts of a text that signs may have in common: vowels of two halves apart, ligatures as letters.
fn parts(text: &str) -> Vec<char> {
    let halves = |c: char| match brahmic_letters::decompose_vowel(c) {
        Some([first, second]) => [Some(first), Some(second)],
        None => [Some(c), None],
    };
    text.nfkd().flat_map(halves).flatten().collect()
}

/// Glyphs that were drawn in one go.
#[derive(Clone, Copy)]
struct Run<'a> {
    glyphs: &'a [ClusterGlyph],
    /// They were not drawn before.
    is_new: &'a [bool],
}

fn is_rtl(text: &str) -> bool {
    let is_rtl = |c: char| match bidi_class(c) {
        BidiClass::R | BidiClass::AL => true,
        BidiClass::NSM => matches!(c, '\u{590}'..='\u{8ff}' | '\u{fb1e}'),
        _ => false,
    };
    text.chars().any(is_rtl)
}

/// Moves accents to the right-to-left letter before them: Graphite draws them after it, and other programs before it.
fn join_accents(texts: &mut [Option<String>]) {
    let mut letter = None;
    for at in 0..texts.len() {
        let Some(text) = texts[at].as_deref().filter(|text| !text.is_empty()) else { continue };
        let accent = text.to_owned();
        match (letter, bidi::is_mark(text)) {
            (Some(letter), true) => {
                let letter: &mut Option<String> = &mut texts[letter];
                letter.get_or_insert_default().push_str(&accent);
                texts[at] = Some(String::new());
            }
            (_, is_mark) => letter = Some(at).filter(|_| !is_mark && is_rtl(text)),
        }
    }
}

/// What is known of the glyphs of one font after some pages.
#[derive(Debug, Default)]
pub struct ClusterTexts {
    seen: HashSet<u32>,
    own: HashMap<u32, String>,
    evidence: OrderEvidence,
    /// Two glyphs of one letter, as they stand on the page.
    letter_pairs: HashSet<(u32, u32)>,
    /// Clusters of right-to-left letters that begin with their letter, less those that begin with an accent.
    n_letter_first: isize,
}

impl ClusterTexts {
    /// The texts of glyphs that were drawn in one go, with nothing between them. None: nothing tells it.
    pub fn read_run(&mut self, run: &[ClusterGlyph]) -> Vec<Option<String>> {
        self.learn(run);
        let mut known: Vec<Option<String>> =
            run.iter().map(|glyph| self.text(glyph).map(str::to_owned)).collect();
        for (at, pair) in run.windows(2).enumerate() {
            if self.letter_pairs.contains(&(pair[0].code, pair[1].code)) {
                known[at + 1] = Some(String::new());
            }
        }
        if self.n_letter_first > 0 {
            join_accents(&mut known);
        }
        let texts: Vec<&str> = known.iter().map(|text| text.as_deref().unwrap_or_default()).collect();
        self.evidence.add(&texts);
        if !texts.iter().any(|text| brahmic_letters::is_reordered(text)) {
            return known;
        }
        let mut ordered: Vec<String> = texts.into_iter().map(str::to_owned).collect();
        if self.evidence.is_visual() {
            brahmic::in_logical_order(&mut ordered);
        }
        brahmic::join_am(&mut ordered);
        ordered.into_iter().zip(known).map(|(text, known)| known.map(|_| text)).collect()
    }

    fn text<'a>(&'a self, glyph: &'a ClusterGlyph) -> Option<&'a str> {
        glyph
            .certain()
            .or_else(|| self.own.get(&glyph.code).map(String::as_str))
            .or_else(|| glyph.mapped.as_deref().filter(|text| !text.is_empty()))
    }

    /// The text of a glyph, as far as it is known without the cluster that is looked at.
    fn known<'a>(&'a self, glyph: &'a ClusterGlyph, is_new: bool) -> Option<&'a str> {
        let learned = || self.own.get(&glyph.code).map(String::as_str);
        let mapped = || glyph.mapped.as_deref().filter(|text| !is_new && !text.is_empty());
        glyph.certain().or_else(learned).or_else(mapped)
    }

    /// Finds the clusters whose texts the map holds: those with a glyph that was not drawn before.
    fn learn(&mut self, run: &[ClusterGlyph]) {
        let is_new: Vec<bool> = run.iter().map(|glyph| self.seen.insert(glyph.code)).collect();
        let run = Run { glyphs: run, is_new: &is_new };
        // New glyphs without a text wait for the one that has that of their cluster.
        let mut waiting: Vec<usize> = Vec::new();
        let mut at = 0;
        while at < run.glyphs.len() {
            let glyph = &run.glyphs[at];
            match (run.is_new[at], glyph.mapped.as_deref().filter(|text| !text.is_empty())) {
                (true, Some(text)) if is_rtl(text) => at = self.learn_rtl(run, at, text),
                (true, Some(text)) => {
                    self.learn_ltr(run, &waiting, at, text);
                    waiting.clear();
                    at += 1;
                }
                (true, None) if glyph.has_no_text() => {
                    waiting.push(at);
                    at += 1;
                }
                (true, None) | (false, _) => at += 1,
            }
        }
        self.guess_lost(run, &waiting);
    }

    /// The cluster that ends at `end`.
    fn learn_ltr(&mut self, run: Run, waiting: &[usize], end: usize, text: &str) {
        let whole = parts(text);
        let is_near = |start: &&usize| end - **start < MAX_CLUSTER_GLYPHS;
        let found = waiting.iter().filter(is_near).find_map(|start| {
            let (rest, unknown) = self.subtract(run, *start..end + 1, &whole)?;
            // What is unknown stands for something.
            if rest.is_empty() && !unknown.is_empty() || !self.is_begun_by(run, *start..end, text) {
                return None;
            }
            Some((*start, rest, unknown))
        });
        let n_lost =
            waiting.iter().take_while(|at| found.as_ref().is_none_or(|(start, ..)| *at < start)).count();
        self.guess_lost(run, &waiting[..n_lost]);
        let (start, rest, unknown) = found.unwrap_or_else(|| match run.glyphs[end].certain() {
            Some(_) => (end, Vec::new(), Vec::new()),
            None => (end, whole.clone(), vec![end]),
        });
        if unknown.is_empty() {
            return;
        }
        let rest = self.without_signs_before(run, start, rest);
        let rest = match start == end {
            true => self.without_base(run, end, &rest).unwrap_or(rest),
            false => rest,
        };
        if rest.len() == whole.len() && unknown.len() == 1 {
            self.own.insert(run.glyphs[end].code, text.to_owned());
            return;
        }
        self.assign(run, unknown, rest);
    }

    /// The first letter that is known of a cluster is the first one of its text, but for signs and a first `r`.
    fn is_begun_by(&self, run: Run, mut cluster: Range<usize>, text: &str) -> bool {
        let text = &text[brahmic_letters::reph_bytes(text).unwrap_or(0)..];
        let base = cluster.find_map(|at| {
            let known = self.known(&run.glyphs[at], run.is_new[at])?;
            known.chars().next().filter(|c| brahmic_letters::is_base(*c))
        });
        base.is_none_or(|base| text.starts_with(base))
    }

    /// The cluster that begins at `start` on the page, and where it ends.
    fn learn_rtl(&mut self, run: Run, start: usize, text: &str) -> usize {
        let whole = parts(text);
        let last = run.glyphs.len().min(start + MAX_CLUSTER_GLYPHS);
        let is_waiting = |at: usize| run.is_new[at] && run.glyphs[at].has_no_text();
        let ends = (start + 1..last).filter(|at| is_waiting(*at)).map(|at| at + 1);
        let found = ends.rev().find_map(|end| {
            let is_whole = (start + 1..end).all(|at| !run.is_new[at] || is_waiting(at));
            let found = self.subtract(run, start..end, &whole).filter(|_| is_whole)?;
            Some((end, found))
        });
        let glyph = &run.glyphs[start];
        let Some((end, (rest, unknown))) = found else {
            if glyph.certain().is_none() {
                let rest = match glyph.is_mark {
                    true => self.without_letter(run, start, &whole),
                    false => self.without_accents(run, start, &whole),
                };
                let own = rest.map_or_else(|| text.to_owned(), |rest| rest.into_iter().nfc().collect());
                self.own.insert(glyph.code, own);
            }
            return start + 1;
        };
        let is_letter_first = !glyph.is_mark && run.glyphs[start + 1..end].iter().all(|it| it.is_mark);
        self.n_letter_first += isize::from(is_letter_first) - isize::from(glyph.is_mark);
        let without_seen = self.without_accents(run, end - 1, &rest).filter(|_| is_letter_first);
        self.assign(run, unknown, without_seen.unwrap_or(rest));
        end
    }

    /// What remains of a cluster's text without that of its known glyphs, and the glyphs that are unknown.
    /// None: the glyphs say something else.
    fn subtract(&self, run: Run, cluster: Range<usize>, whole: &[char]) -> Option<(Vec<char>, Vec<usize>)> {
        let mut rest = whole.to_vec();
        let mut unknown = Vec::new();
        for at in cluster {
            match self.known(&run.glyphs[at], run.is_new[at]) {
                Some(known) => rest = without(&rest, &parts(known))?,
                None => unknown.push(at),
            }
        }
        Some((rest, unknown))
    }

    /// Known signs that stand before the cluster on the page, and belong to it.
    fn without_signs_before(&self, run: Run, start: usize, mut rest: Vec<char>) -> Vec<char> {
        let mut between = rest.clone();
        for at in (start.saturating_sub(MAX_SIGNS_BEFORE)..start).rev() {
            let Some(known) = self.known(&run.glyphs[at], run.is_new[at]) else { break };
            match SyllableRole::of(known) {
                SyllableRole::VowelBefore | SyllableRole::ConsonantBefore => {
                    match (without(&rest, &parts(known)), rest.first()) {
                        (Some(without), Some(first)) if !known.starts_with(*first) => rest = without,
                        _ => break,
                    }
                }
                _ => match without(&between, &parts(known)) {
                    Some(without) => between = without,
                    None => break,
                },
            }
        }
        rest
    }

    /// The text of a sign or second consonant, from that of its cluster with known glyphs before it.
    fn without_base(&self, run: Run, end: usize, whole: &[char]) -> Option<Vec<char>> {
        let mut rest = whole.to_vec();
        for at in (end.saturating_sub(MAX_SIGNS_BEFORE)..end).rev() {
            let known = self.known(&run.glyphs[at], run.is_new[at])?;
            if matches!(SyllableRole::of(known), SyllableRole::VowelBefore | SyllableRole::ConsonantBefore) {
                return None;
            }
            rest = without(&rest, &parts(known))?;
            let text: String = rest.iter().collect();
            let is_sign = run.glyphs[end].is_mark && bidi::is_mark(&text);
            if is_sign || brahmic::is_second_form(&text) || brahmic_letters::is_right_half(&text) {
                return Some(rest);
            }
        }
        None
    }

    /// The accents of a cluster without its known letter, which follows them on the page.
    fn without_letter(&self, run: Run, start: usize, whole: &[char]) -> Option<Vec<char>> {
        let mut rest = whole.to_vec();
        for at in start + 1..run.glyphs.len().min(start + MAX_SIGNS_BEFORE) {
            rest = without(&rest, &parts(self.known(&run.glyphs[at], run.is_new[at])?))?;
            if bidi::is_mark(&rest.iter().collect::<String>()) {
                return Some(rest);
            }
        }
        None
    }

    /// The letter of a cluster without its known accents, where those follow it on the page.
    fn without_accents(&self, run: Run, start: usize, whole: &[char]) -> Option<Vec<char>> {
        let follow = run.glyphs[start + 1..].iter().take(MAX_SIGNS_BEFORE).take_while(|glyph| glyph.is_mark);
        let accents: Option<String> =
            follow.filter(|_| self.n_letter_first > 0).map(|glyph| self.known(glyph, false)).collect();
        without(whole, &parts(&accents?))
    }

    /// Divides what remains of a cluster's text among its unknown glyphs.
    fn assign(&mut self, run: Run, mut unknown: Vec<usize>, mut rest: Vec<char>) {
        let mut own = |at: usize, text: Vec<char>| {
            self.own.insert(run.glyphs[at].code, text.into_iter().nfc().collect());
        };
        if let [first, _, ..] = unknown[..]
            && !run.glyphs[first].is_mark
            && let Some(at) = rest.iter().skip(1).position(|c| brahmic_letters::is_vowel_before(*c))
        {
            own(first, vec![rest.remove(at + 1)]);
            unknown.remove(0);
        }
        if let [.., _, last] = unknown[..]
            && let Some(n) = brahmic_letters::reph_chars(&rest)
        {
            own(last, rest.drain(..n).collect());
            unknown.pop();
        }
        // Telugu, Kannada and Khmer draw vowel signs with the first consonant, and the second one after or below both.
        if let [first, second] = unknown[..]
            && let is_below = run.glyphs[second].is_mark
            && let Some(at) =
                rest.iter().position(|c| matches!(c, '\u{c4d}' | '\u{ccd}') || *c == '\u{17d2}' && is_below)
            && at + 1 < rest.len()
            && at > 0
        {
            own(second, rest.drain(at..at + 2).collect());
            own(first, rest);
            return;
        }
        let is_accent = |c: &char| bidi::is_mark(c.encode_utf8(&mut [0; 4]));
        let mut marks: Vec<usize> = unknown.iter().copied().filter(|at| run.glyphs[*at].is_mark).collect();
        if unknown.len() > 1 && !marks.is_empty() && rest.iter().any(is_accent) {
            let is_rtl = rest.iter().any(|c| is_rtl(c.encode_utf8(&mut [0; 4])));
            let accents: Vec<char> = if is_rtl {
                // From right to left the accents come before their letter, the last one first.
                marks.reverse();
                let accents = rest.iter().copied().filter(is_accent).collect();
                rest.retain(|c| !is_accent(c));
                accents
            } else {
                let n_last = rest.iter().rev().take_while(|c| is_accent(c)).count();
                rest.split_off(rest.len() - n_last)
            };
            unknown.retain(|at| !marks.contains(at));
            let last = marks.len() - 1;
            for (n, mark) in marks.into_iter().enumerate() {
                let end = if n == last { accents.len() } else { (n + 1).min(accents.len()) };
                own(mark, accents.get(n..end).unwrap_or_default().to_vec());
            }
        }
        unknown.sort_by_key(|at| run.glyphs[*at].is_mark);
        // Amiri draws some letters with two glyphs, of which one stands alone elsewhere.
        if let [first, second] = unknown[..]
            && let [letter] = rest[..]
            && first + 1 == second
            && is_rtl(letter.encode_utf8(&mut [0; 4]))
            && !run.glyphs[second].is_mark
        {
            own(first, rest.clone());
            own(second, rest);
            self.letter_pairs.insert((run.glyphs[first].code, run.glyphs[second].code));
            return;
        }
        for at in unknown {
            own(at, std::mem::take(&mut rest));
        }
    }

    /// An Arabic letter without a text whose accents were drawn before, so that they have that of another cluster.
    /// Letters make one cluster with their accents where they are ligatures, or can be taken apart: those with a hamza,
    /// whose carrier follows from the vowels.
    fn guess_arabic(&self, run: Run, at: usize) -> Option<&'static str> {
        let known = |at: usize| run.glyphs.get(at).and_then(|glyph| self.known(glyph, false));
        let is_accent = |at: &usize| known(*at).is_some_and(bidi::is_mark);
        let follow = at + 1..run.glyphs.len().min(at + MAX_SIGNS_BEFORE);
        let accents = (at.saturating_sub(MAX_SIGNS_BEFORE)..at).rev().take_while(is_accent);
        let accents: String = accents.filter_map(known).collect();
        if !accents.chars().any(|c| matches!(c, '\u{64b}'..='\u{652}')) {
            return None;
        }
        let has_kasra = accents.contains(['\u{64d}', '\u{650}']);
        if run.glyphs[at].is_ligature {
            return Some(match accents.contains('\u{651}') {
                true => "لله",
                false if has_kasra => "لإ",
                false => "لا",
            });
        }
        let before: String = follow.clone().take_while(is_accent).filter_map(known).collect();
        let letter = follow.clone().find(|at| !is_accent(at)).and_then(known);
        let is_first = letter.is_none_or(|letter| letter.trim().is_empty() || letter.ends_with(['ل', 'ا']));
        Some(match is_first {
            true if has_kasra => "إ",
            true => "أ",
            false if has_kasra || before.contains('\u{650}') => "ئ",
            false if accents.contains('\u{64f}') || before.contains('\u{64f}') => "ؤ",
            false => "أ",
        })
    }

    /// Glyphs without a text before a letter whose cluster is not in the map. The only sign of a script that stands
    /// before its letter is drawn in several widths.
    fn guess_lost(&mut self, run: Run, lost: &[usize]) {
        for at in lost {
            let glyph = &run.glyphs[*at];
            let is_first = at.checked_sub(1).is_none_or(|before| lost.binary_search(&before).is_err());
            if !is_first || self.known(glyph, true).is_some() {
                continue;
            }
            let follow = *at + 1..run.glyphs.len().min(at + MAX_SIGNS_BEFORE);
            let next =
                follow.clone().find(|next| lost.binary_search(next).is_err()).map(|next| &run.glyphs[next]);
            let next = next.and_then(|next| self.known(next, false));
            if let Some(text) = self.guess_arabic(run, *at) {
                self.own.insert(glyph.code, text.to_owned());
                continue;
            }
            let before = at.checked_sub(1).and_then(|at| run.glyphs.get(at));
            let before = before.and_then(|glyph| self.known(glyph, false));
            let is_word_start = before.is_none_or(|text| !text.ends_with(char::is_alphanumeric));
            let is_vowel = |text: &str| SyllableRole::of(text) == SyllableRole::VowelBefore;
            let sign = next.and_then(|next| brahmic_letters::usual_sign_before(next, is_word_start));
            // A syllable has one such vowel.
            if let Some(sign) = sign.filter(|sign| !(is_vowel(sign) && before.is_some_and(is_vowel))) {
                self.own.insert(glyph.code, sign.to_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests;
