//! Runs of glyphs, and what each of them stands for.

use super::*;

/// Glyphs as `number=mapped/nominal`, marks with `~` before them. A missing `=` means that it was drawn before.
fn glyphs(run: &str) -> Vec<ClusterGlyph> {
    let glyph = |word: &str| {
        let (is_mark, word) = word.strip_prefix('~').map_or((false, word), |rest| (true, rest));
        let (code, texts) = word.split_once('=').unwrap();
        let (mapped, nominal) = texts.split_once('/').unwrap();
        ClusterGlyph {
            code: code.parse().unwrap(),
            mapped: Some(mapped.to_owned()),
            nominal: Some(nominal.to_owned()).filter(|text| !text.is_empty()),
            is_mark,
            is_ligature: false,
        }
    };
    run.split(' ').map(glyph).collect()
}

fn read(runs: &[&str]) -> Vec<String> {
    let mut texts = ClusterTexts::default();
    let mut read = |run: &&str| texts.read_run(&glyphs(run)).into_iter().map(|it| it.unwrap_or("?".into()));
    runs.iter().map(|run| read(run).collect::<Vec<_>>().join("|")).collect()
}

#[test]
fn ligatures_of_arabic_words_keep_their_letters_beside_accents() {
    let allah = "~24=\u{650}/\u{650} ~18=ل\u{650}ل\u{64e}\u{651}ه/ ~24=\u{650}/\u{650} 62=/ 3=ا/ا";
    assert_eq!(read(&[allah]), ["\u{650}|\u{64e}\u{651}|\u{650}|لله|ا"]);
}

#[test]
fn letters_whose_cluster_is_not_in_the_map_follow_from_their_accents() {
    // Accents that were drawn before keep the text of their first cluster.
    let known = "~1=\u{64e}/\u{64e} 9=ل/ ~2=\u{650}/\u{650}";
    assert_eq!(
        read(&[known, "~1=\u{64e}/\u{64e} 5=/ 9=ل/", "~2=\u{650}/\u{650} 6=/ 9=ل/"])[1..],
        ["\u{64e}|أ|ل", "\u{650}|إ|ل"]
    );
    // Without an accent nothing tells.
    assert_eq!(read(&[known, "5=/ 9=ل/"])[1], "?|ل");
}

#[test]
fn glyphs_that_the_map_lacks_take_no_letters_from_others() {
    let missing = ClusterGlyph { code: 9, ..ClusterGlyph::default() };
    let run = [vec![missing], glyphs("1=ष्/ष् 2=ा/ा")].concat();
    let texts = ClusterTexts::default().read_run(&run);
    assert_eq!(texts, [None, Some("ष्ा".into()), Some(String::new())]);
}

#[test]
fn letters_of_two_glyphs_are_read_once() {
    let runs = ["1=ل/ 2=/ 3=ا/ا", "4=ن/ 2=/ 3=ا/ا", "1=ل/ 2=/"];
    assert_eq!(read(&runs), ["ل||ا", "ن|ل|ا", "ل|"]);
}

#[test]
fn glyphs_are_read_as_their_clusters_say() {
    let cases: &[(&[&str], &[&str])] = &[
        // Short i, then the same glyph beside a letter whose own cluster is not in the map.
        (&["1=/ 2=हि/ह", "3=ख/ख 1=/ 3=ख/ख"], &["हि", "खखि"]),
        // Short i whose cluster has no text in the map.
        (&["2=ह/ह", "7=/ 2=ह/ह"], &["ह", "हि"]),
        // A half letter whose cluster has no text in the map, after a short i.
        (&["2=ह/ह 1=ि/ि", "2=ह/ह 1=ि/ि 7=/ 2=ह/ह"], &["हि", "हि?ह"]),
        // Reph with known letters.
        (&["2=म/म", "2=म/म 5=र्म/"], &["म", "र्म"]),
        // A conjunct that is one glyph, after its own first letter.
        (&["2=क/क", "2=क/क 6=क्ष/"], &["क", "कक्ष"]),
        // Bengali e at the beginning of words.
        (&["2=স/স 3=া/া", "8=/ 2=স/স 3=া/া"], &["সা", "সো"]),
        // Kannada: reph behind a vowel sign; Telugu: second consonant behind one.
        (&["3=ಾ/ಾ", "1=/ 3=ಾ/ಾ 9=ರ್ನಾ/"], &["ಾ", "ರ್ನಾ"]),
        (&["1=తి/", "1=తి/ ~4=త్తి/"], &["తి", "త్తి"]),
        // Khmer: a vowel of two halves, of which the right one is another sign.
        (&["1=/េ 2=ក/ក", "1=/េ 2=ក/ក ~3=កើ/ី", "2=ក/ក ~3=កើ/ី"], &["កេ", "កើ", "កី"]),
        // Khmer: a vowel drawn with the first consonant, the second one below both; and `r` before its consonant.
        (&["1=/ ~2=ស្មា/", "3=ធ/ធ 4=ម/ម ~2=ស្មា/"], &["ស្មា", "ធម្ម"]),
        (&["2=ព/ព", "7=/ 2=ព/ព"], &["ព", "ព្រ"]),
        // Thai am with a tone mark.
        (&["1=น/น ~2=/\u{e4d} ~3=/\u{e49} 4=ำ/า"], &["น\u{e49}ำ"]),
        // A vowel below and a tone mark that take the text of each other.
        (&["1=ผ/ผ ~2=\u{e49}/ ~3=\u{e49}/\u{e39}"], &["ผ\u{e49}\u{e39}"]),
        // Accents that have the text of their whole letter.
        (&["1=e/e ~2=e\u{301}/"], &["e\u{301}"]),
        // Brackets as they look.
        (&["1=)/("], &["("]),
        // A non-joiner after the letter whose form it asks for.
        (&["1=ی\u{200c}/ی 2=م/م"], &["ی\u{200c}م"]),
        // Ligatures of Latin letters.
        (&["1=f/f 2=ffi/", "2=ffi/"], &["fffi", "ffi"]),
    ];
    for (runs, expected) in cases {
        let texts: Vec<String> = read(runs).iter().map(|text| text.replace('|', "")).collect();
        assert_eq!(texts, *expected, "{runs:?}");
    }
}

#[test]
fn accents_that_are_drawn_after_their_letter_are_its_own() {
    let runs = ["1=دٌ/ ~2=/ 3=حَ/ ~4=/", "5=لَّ/ ~6=/ ~4=/ 7=هَ/ ~4=/"];
    assert_eq!(read(&runs), ["د\u{64c}||ح\u{64e}|", "ل\u{651}\u{64e}|||ه\u{64e}|"]);
}

#[test]
fn many_glyphs_without_a_text_take_no_longer_than_they_must() {
    let glyph = |code| ClusterGlyph { code, mapped: Some(String::new()), ..ClusterGlyph::default() };
    let run: Vec<ClusterGlyph> = (0..1 << 16).map(glyph).collect();
    let began = std::time::Instant::now();
    assert_eq!(ClusterTexts::default().read_run(&run).len(), run.len());
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
}
