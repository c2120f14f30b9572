//! Encoding while a text grows and changes, with every vocabulary of the reference: always the ids of the whole text, at a
//! cost that does not grow with it.

use engine::tokenizer::{IncrementalEncoder, Special, Tokenizer};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::tokenizers::{VECTORS, vectors, vocabulary};

/// Changes of each kind for every vocabulary.
const N_CHANGES: usize = 40;

/// A keystroke in a long text encodes no more than this much of it again.
const MAX_PER_CHANGE: usize = 16 << 10;

fn boundary(random: &mut SmallRng, text: &str) -> usize {
    text.floor_char_boundary(random.random_range(0..=text.len()))
}

/// Typing at the end, deleting there, and changes anywhere.
fn change(random: &mut SmallRng, text: &mut String, parts: &[&str]) {
    let part = parts[random.random_range(0..parts.len())];
    match random.random_range(0..5) {
        0 | 1 => text.extend(part.chars().take(3)),
        2 => _ = text.pop(),
        3 => {
            let at = boundary(random, text);
            text.insert_str(at, part);
        }
        _ => {
            let from = boundary(random, text);
            let until =
                text.floor_char_boundary((from + random.random_range(0..40)).min(text.len())).max(from);
            text.replace_range(from..until, part);
        }
    }
}

#[test]
fn every_split_gives_the_ids_of_the_whole() {
    let mut n = 0;
    for (file, name) in VECTORS {
        let (Some(path), Some(vectors)) = (vocabulary(file), vectors(name)) else { continue };
        let tokenizer = Tokenizer::from_path(&path).expect(file);
        let parts: Vec<&str> =
            vectors.iter().filter_map(|it| it["text"].as_str()).filter(|it| it.len() < 400).collect();
        let mut random = SmallRng::seed_from_u64(1);
        let mut text = String::new();
        let mut encoder = IncrementalEncoder::new();
        for part in &parts {
            // As it is typed: at every character of some, then whole.
            if part.len() < 24 {
                for c in part.chars() {
                    text.push(c);
                    let ids = encoder.encode(&tokenizer, &text).to_vec();
                    // The whole is slow where it is long: its end says as much, once it was checked.
                    if text.len() < 2000 {
                        assert_eq!(ids, tokenizer.encode(&text, Special::Plain), "{file}: {text:?}");
                        n += 1;
                    }
                }
            } else if text.len() < 12_000 {
                text.push_str(part);
            }
        }
        assert_eq!(encoder.encode(&tokenizer, &text), tokenizer.encode(&text, Special::Plain), "{file}");
        for round in 0..N_CHANGES {
            change(&mut random, &mut text, &parts);
            let whole = tokenizer.encode(&text, Special::Plain);
            assert!(encoder.encode(&tokenizer, &text) == whole, "{file}, change {round}: {text:?}");
            n += 1;
        }
    }
    println!("incremental: {n} texts");
    assert!(n > 0, "no vocabulary at all");
}

/// Vocabularies without vectors of their own: Unigram with a map of characters, WordPiece, and a small SentencePiece.
const MORE_KINDS: &[&str] =
    &["rerank/xlm_roberta/tokenizer.json", "rerank/bert/tokenizer.json", "real/stories260K/tokenizer.model"];

/// What normalizers join, split or move, what patterns look ahead for, and what is unknown to most vocabularies.
const HARD_PARTS: &[&str] = &[
    "e", "\u{301}", "\u{316}", "½", "ﬁ", "Ａ", "。", "한", "\u{1161}", " ", "   ", "\u{a0}", "▁", "\n",
    "\r\n", "'s", "'", "1", "234", "a", "Ab", "word", "!", "<", "|>", "<s>", "<unk>", "<mask>", "[UNK]",
    "##a", "😀", "\u{200d}", "\0", "¶",
];

#[test]
fn every_cut_of_random_texts_gives_the_ids_of_the_whole() {
    let mut n = 0;
    for file in VECTORS.iter().map(|(file, _)| *file).chain(MORE_KINDS.iter().copied()) {
        let Some(path) = vocabulary(file) else { continue };
        let tokenizer = Tokenizer::from_path(&path).expect(file);
        let mut random = SmallRng::seed_from_u64(2);
        for _ in 0..N_CHANGES {
            // Few kinds of parts at a time, so that long runs of one kind come about.
            let some = random.random_range(0..HARD_PARTS.len() - 6);
            let parts = &HARD_PARTS[some..some + random.random_range(1..=6)];
            let text: String = (0..random.random_range(50..150))
                .map(|_| parts[random.random_range(0..parts.len())])
                .collect();
            let mut encoder = IncrementalEncoder::new();
            for _ in 0..8 {
                let cut = &text[..boundary(&mut random, &text)];
                let whole = tokenizer.encode(cut, Special::Plain);
                assert!(encoder.encode(&tokenizer, cut) == whole, "{file}: {cut:?}");
                n += 1;
            }
            assert!(
                encoder.encode(&tokenizer, &text) == tokenizer.encode(&text, Special::Plain),
                "{file}: {text:?}"
            );
        }
    }
    println!("incremental: {n} cuts");
    assert!(n > 0, "no vocabulary at all");
}

#[test]
fn a_keystroke_costs_the_same_in_a_long_text() {
    for (file, name) in VECTORS {
        let (Some(path), Some(_)) = (vocabulary(file), vectors(name)) else { continue };
        let tokenizer = Tokenizer::from_path(&path).expect(file);
        let mut text =
            "The quick brown fox jumps over 12 lazy dogs, and then it rests.\nSo do they. ".repeat(3000);
        let mut encoder = IncrementalEncoder::new();
        encoder.encode(&tokenizer, &text);
        let before = encoder.n_encoded();
        const N: usize = 20;
        for c in "And so it goes on...".chars().take(N) {
            text.push(c);
            encoder.encode(&tokenizer, &text);
        }
        let per_change = (encoder.n_encoded() - before) / N;
        println!("{file}: {per_change} bytes of {} a keystroke", text.len());
        assert!(per_change <= MAX_PER_CHANGE, "{file}: {per_change} bytes");
    }
}
