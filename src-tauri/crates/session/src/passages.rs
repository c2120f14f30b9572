//! Lexical search over passages of texts: BM25 by SQLite's FTS5, in memory only.
//!
//! Word frequencies count over these passages alone. Nothing of them reaches the disk, unless the caller stores the index.

use rusqlite::{Connection, params};

use crate::error::Result;
use crate::search_form::{has_no_spaces, search_form};
use crate::table::search::spaced;

/// Words of a question that count; a long question is about its first ones.
const MAX_QUESTION_WORDS: usize = 64;

/// Fraction of the best score below which a passage shares only common words.
const MIN_RELATIVE_SCORE: f64 = 0.2;

/// A best score at or below this means that the words occur in nearly all passages: FTS5 gives them no weight.
const MIN_BEST_SCORE: f64 = 1e-3;

/// Index of passages, in memory.
pub struct PassageIndex {
    db: Connection,
}

/// Index of a passage and its score; higher is better.
pub type RankedPassage = (usize, f64);

impl PassageIndex {
    /// Indexes the texts.
    pub fn new<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self> {
        let db = Connection::open_in_memory()?;
        db.execute_batch(
            "CREATE VIRTUAL TABLE passage USING fts5(text, tokenize = 'porter unicode61 remove_diacritics 2');
             BEGIN;",
        )?;
        {
            let mut insert = db.prepare("INSERT INTO passage (rowid, text) VALUES (?1, ?2)")?;
            for (n, text) in texts.into_iter().enumerate() {
                insert.execute(params![n as i64, spaced(text)])?;
            }
        }
        db.execute_batch("COMMIT")?;
        Ok(Self { db })
    }

    /// The index as bytes, to be stored.
    pub fn to_bytes(&mut self) -> Result<Vec<u8>> {
        Ok(self.db.serialize("main")?.to_vec())
    }

    /// The index of bytes that `to_bytes` made. Error: they are none.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let mut db = Connection::open_in_memory()?;
        db.deserialize_read_exact("main", bytes, bytes.len(), false)?;
        let index = Self { db };
        index.n_passages()?;
        Ok(index)
    }

    /// Number of passages.
    pub fn n_passages(&self) -> Result<usize> {
        let n: i64 = self.db.query_row("SELECT count(*) FROM passage", [], |row| row.get(0))?;
        Ok(usize::try_from(n).unwrap_or(0))
    }

    /// Passages that contain distinctive words of the question, best first, at most `limit`. Ties keep their order.
    pub fn rank(&self, question: &str, limit: usize) -> Result<Vec<RankedPassage>> {
        let Some(words) = fts_query(question) else { return Ok(Vec::new()) };
        let sql = "SELECT rowid, -bm25(passage) FROM passage WHERE passage MATCH ?1
                   ORDER BY bm25(passage), rowid LIMIT ?2";
        let mut statement = self.db.prepare_cached(sql)?;
        let rows = statement.query_map(params![words, limit as i64], |row| {
            let n: i64 = row.get(0)?;
            Ok((usize::try_from(n).unwrap_or(usize::MAX), row.get(1)?))
        })?;
        let mut ranked: Vec<RankedPassage> = rows.collect::<rusqlite::Result<_>>()?;
        let best = ranked.first().map_or(0.0, |(_, score)| *score);
        ranked.retain(|(_, score)| best > MIN_BEST_SCORE && *score >= best * MIN_RELATIVE_SCORE);
        Ok(ranked)
    }
}

/// The question in FTS5 syntax: any of its words, or any two adjacent characters of scripts without spaces.
fn fts_query(question: &str) -> Option<String> {
    let mut words: Vec<String> = Vec::new();
    let question = search_form(question);
    for part in question.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty()) {
        let letters: Vec<char> = part.chars().collect();
        for run in letters.chunk_by(|a, b| has_no_spaces(*a) == has_no_spaces(*b)) {
            if run.first().is_some_and(|c| has_no_spaces(*c)) && run.len() > 1 {
                words.extend(run.windows(2).map(|pair| pair.iter().collect()));
            } else {
                words.push(run.iter().collect());
            }
        }
    }
    words.truncate(MAX_QUESTION_WORDS);
    let quoted = words.iter().map(|word| format!("\"{}\"", spaced(word)));
    (!words.is_empty()).then(|| quoted.collect::<Vec<_>>().join(" OR "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranked(texts: &[&str], question: &str) -> Vec<usize> {
        let index = PassageIndex::new(texts.iter().copied()).unwrap();
        index.rank(question, 10).unwrap().into_iter().map(|(n, _)| n).collect()
    }

    #[test]
    fn passages_are_ranked_by_the_question() {
        let texts = [
            "The harbour opens at six. Boats leave every hour.",
            "Whales were counted from the harbour wall: forty-two humpbacks.",
            "The museum shop sells postcards of boats.",
            "東京の天気は晴れです。",
            "大阪は雨です。",
        ];
        assert_eq!(ranked(&texts, "How many whales were counted?")[0], 1);
        assert_eq!(ranked(&texts, "counting a whale")[0], 1, "by their stems");
        assert_eq!(ranked(&texts, "Postcard?"), [2]);
        assert_eq!(ranked(&texts, "東京の天気")[0], 3);
        assert_eq!(ranked(&texts, "MÜSEUM")[0], 2, "without regard to case and accents");
        assert_eq!(ranked(&texts, "ｐｏｓｔｃａｒｄ")[0], 2, "without regard to width");
        for nothing in ["zebra", "", "?!", "\" OR \"", "NEAR("] {
            assert_eq!(ranked(&texts, nothing), [0; 0], "{nothing:?}");
        }
    }

    #[test]
    fn an_index_comes_back_from_its_bytes() {
        let mut index = PassageIndex::new(["boats", "whales", "a museum", "a harbour", "rain"]).unwrap();
        let again = PassageIndex::from_bytes(&index.to_bytes().unwrap()).unwrap();
        assert_eq!(again.rank("whale", 10).unwrap(), index.rank("whale", 10).unwrap());
        assert_eq!((again.rank("whale", 10).unwrap().len(), again.n_passages().unwrap()), (1, 5));
        for damaged in [&b""[..], b"no database", &[0; 4096]] {
            assert!(PassageIndex::from_bytes(damaged).is_err());
        }
    }

    #[test]
    fn words_that_all_passages_have_find_none() {
        let texts: Vec<String> = (0..20).map(|n| format!("the row has the number {n}")).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        assert_eq!(ranked(&texts, "the row has the number"), [0; 0]);
        assert_eq!(ranked(&texts, "the row with number 7"), [7]);
    }
}
