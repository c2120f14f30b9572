//! Full-text index (FTS5) over the text of every message.
//!
//! Words match by prefix, ignoring case and accents. Scripts without spaces are indexed character by character, so that
//! any part of a sentence matches. Deleted text leaves the index at once (`secure-delete`), not at the next merge.

use rusqlite::{Connection, params};

use crate::error::Result;

pub const CREATE: &str = "
CREATE VIRTUAL TABLE search USING fts5(text, tokenize = 'unicode61 remove_diacritics 2', prefix = '1 2 3');
INSERT INTO search(search, rank) VALUES ('secure-delete', 1);
";

/// Mark the matched words in snippets.
const BEGIN: char = '\u{2}';
const END: char = '\u{3}';

/// Separates characters of scripts without spaces: part of no word, and invisible.
const GAP: char = '\u{200B}';

/// Words of a snippet; FTS5 allows 64.
const SNIPPET_WORDS: u32 = 28;

/// Words of a query that count; more would only narrow a narrow search.
const MAX_QUERY_WORDS: usize = 16;

/// A message that matches a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchHit {
    pub conversation: String,
    pub title: String,
    pub message: String,
    pub role: super::message::Role,
    pub created_ms: i64,
    /// Excerpt of its text in pieces; true marks a match.
    pub snippet: Vec<(String, bool)>,
}

/// Indexes a message's text, replacing its earlier entry.
pub(crate) fn put(db: &Connection, message: &str, text: &str) -> Result<()> {
    remove(db, message)?;
    let sql = "INSERT INTO search(rowid, text) SELECT position, ?2 FROM message WHERE id = ?1";
    db.prepare_cached(sql)?.execute(params![message, spaced(text)])?;
    Ok(())
}

pub(crate) fn remove(db: &Connection, message: &str) -> Result<()> {
    let sql = "DELETE FROM search WHERE rowid = (SELECT position FROM message WHERE id = ?1)";
    db.prepare_cached(sql)?.execute([message])?;
    Ok(())
}

pub(crate) fn remove_conversation(db: &Connection, conversation: &str) -> Result<()> {
    let sql = "DELETE FROM search WHERE rowid IN (SELECT position FROM message WHERE conversation = ?1)";
    db.execute(sql, [conversation])?;
    Ok(())
}

/// Indexes messages that an older version or a repaired file left without an entry.
pub(crate) fn complete(db: &Connection) -> Result<()> {
    let sql =
        "SELECT id, text, (SELECT group_concat(name, char(10)) FROM attachment WHERE message = message.id)
               FROM message WHERE state != 'streaming' AND position NOT IN (SELECT rowid FROM search)";
    let mut statement = db.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        // An unreadable text has no words.
        if let (Ok(id), Ok(text)) = (row.get::<_, String>(0), row.get::<_, String>(1)) {
            let names: Option<String> = row.get(2).unwrap_or_default();
            put(db, &id, &format!("{text}\n{}", names.unwrap_or_default()))?;
        }
    }
    Ok(())
}

/// Messages that contain all words of `query`, newest first, without deleted ones and the trash.
pub(crate) fn find(db: &Connection, query: &str, limit: u32) -> Result<Vec<SearchHit>> {
    match fts_query(query) {
        Some(words) => find_words(db, &words, &literals(query), limit),
        None => find_literal(db, query.trim(), limit),
    }
}

const VISIBLE: &str = "JOIN conversation ON conversation.id = message.conversation
    WHERE message.gone IS NULL AND conversation.deleted_ms IS NULL";

fn find_words(db: &Connection, words: &str, literals: &[String], limit: u32) -> Result<Vec<SearchHit>> {
    let sql = format!(
        "SELECT message.conversation, title, message.id, role, message.created_ms,
             snippet(search, 0, char(2), char(3), '…', {SNIPPET_WORDS}), message.text
         FROM search JOIN message ON message.position = search.rowid {VISIBLE} AND search MATCH ?1
         ORDER BY search.rowid DESC"
    );
    let mut statement = db.prepare_cached(&sql)?;
    let mut rows = statement.query([words])?;
    let mut hits = Vec::new();
    while let Some(row) = rows.next()? {
        let text: String = row.get(6).unwrap_or_default();
        let text = text.to_lowercase();
        if literals.iter().all(|literal| text.contains(literal)) {
            hits.push(hit(row, snippet_pieces(&row.get::<_, String>(5)?))?);
        }
        if hits.len() >= limit as usize {
            break;
        }
    }
    Ok(hits)
}

/// Symbols are not indexed: scans every text.
fn find_literal(db: &Connection, signs: &str, limit: u32) -> Result<Vec<SearchHit>> {
    if signs.is_empty() {
        return Ok(Vec::new());
    }
    let sql = format!(
        "SELECT message.conversation, title, message.id, role, message.created_ms, text FROM message {VISIBLE}
             AND instr(text, ?1) > 0 ORDER BY position DESC LIMIT ?2"
    );
    let mut statement = db.prepare_cached(&sql)?;
    let mut rows = statement.query(params![signs, limit])?;
    let mut hits = Vec::new();
    while let Some(row) = rows.next()? {
        let text: String = row.get(5)?;
        hits.push(hit(row, snippet_around(&text, signs))?);
    }
    Ok(hits)
}

fn hit(row: &rusqlite::Row, snippet: Vec<(String, bool)>) -> rusqlite::Result<SearchHit> {
    Ok(SearchHit {
        conversation: row.get(0)?,
        title: row.get(1).unwrap_or_default(),
        message: row.get(2)?,
        role: row.get(3).unwrap_or(super::message::Role::Assistant),
        created_ms: row.get(4).unwrap_or_default(),
        snippet,
    })
}

/// Characters of a snippet on each side of a literal match.
const CONTEXT_CHARS: usize = 60;

fn snippet_around(text: &str, signs: &str) -> Vec<(String, bool)> {
    let Some((before, after)) = text.split_once(signs) else { return vec![(text.into(), false)] };
    let cut = before.chars().count().saturating_sub(CONTEXT_CHARS);
    let start = if cut > 0 { "…" } else { "" };
    let before: String = start.chars().chain(before.chars().skip(cut)).collect();
    let end = if after.chars().nth(CONTEXT_CHARS).is_some() { "…" } else { "" };
    let after: String = after.chars().take(CONTEXT_CHARS).chain(end.chars()).collect();
    vec![(before, false), (signs.into(), true), (after, false)]
}

/// Splits a marked snippet into pieces.
fn snippet_pieces(marked: &str) -> Vec<(String, bool)> {
    let mut pieces: Vec<(String, bool)> = Vec::new();
    let mut is_hit = false;
    let mut piece = String::new();
    for c in marked.chars().filter(|c| *c != GAP) {
        if c == BEGIN || c == END {
            if !piece.is_empty() {
                pieces.push((std::mem::take(&mut piece), is_hit));
            }
            is_hit = c == BEGIN;
        } else {
            piece.push(c);
        }
    }
    if !piece.is_empty() {
        pieces.push((piece, is_hit));
    }
    pieces
}

/// A text in its indexed form.
pub(crate) fn spaced(text: &str) -> String {
    let mut spaced = String::with_capacity(text.len() + text.len() / 4);
    for c in text.chars().filter(|c| ![BEGIN, END, GAP].contains(c)) {
        if has_no_spaces(c) {
            spaced.extend([GAP, c, GAP]);
        } else {
            spaced.push(c);
        }
    }
    spaced
}

/// Whether a character belongs to a script that does not, or only loosely, separate words by spaces.
pub(crate) fn has_no_spaces(c: char) -> bool {
    matches!(c,
        '\u{0E00}'..='\u{0EFF}' | '\u{1000}'..='\u{109F}' | '\u{1780}'..='\u{17FF}'
        | '\u{3040}'..='\u{31FF}' | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}'
        | '\u{AC00}'..='\u{D7AF}' | '\u{F900}'..='\u{FAFF}' | '\u{FF66}'..='\u{FF9F}' | '\u{20000}'..='\u{3FFFF}')
}

/// Terms of a query: words, and quoted phrases (true).
fn query_terms(query: &str) -> Vec<(&str, bool)> {
    let mut terms = Vec::new();
    for (n, part) in query.split('"').enumerate() {
        if n % 2 == 1 {
            terms.push((part, true));
        } else {
            terms.extend(part.split_whitespace().map(|word| (word, false)));
        }
    }
    terms.retain(|(word, _)| word.contains(char::is_alphanumeric));
    terms.truncate(MAX_QUERY_WORDS);
    terms
}

/// The query in FTS5 syntax: prefix match for words, exact match for quoted phrases. None if it has no word.
fn fts_query(query: &str) -> Option<String> {
    let terms = query_terms(query);
    let words = terms.iter().map(|(word, is_quoted)| {
        let begins = if *is_quoted || is_mostly_symbols(word) { "" } else { " *" };
        format!("\"{}\"{begins}", spaced(word))
    });
    (!terms.is_empty()).then(|| words.collect::<Vec<_>>().join(" AND "))
}

/// Words such as `C++` consist mostly of symbols: the text must contain them literally.
fn literals(query: &str) -> Vec<String> {
    let words = query_terms(query).into_iter().map(|(word, _)| word);
    words.filter(|word| is_mostly_symbols(word)).map(str::to_lowercase).collect()
}

fn is_mostly_symbols(word: &str) -> bool {
    let n_letters = word.chars().filter(|c| c.is_alphanumeric()).count();
    n_letters <= 2 && n_letters < word.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_become_fts_syntax() {
        let cases = [
            ("fox", Some("\"fox\" *")),
            ("  quick   fox ", Some("\"quick\" * AND \"fox\" *")),
            ("\"brown fox\" j", Some("\"brown fox\" AND \"j\" *")),
            ("C++", Some("\"C++\"")),
            ("NEAR(a b)", Some("\"NEAR(a\" * AND \"b)\"")),
            ("東京", Some("\"\u{200B}東\u{200B}\u{200B}京\u{200B}\" *")),
            ("🦊", None),
            ("\"", None),
            ("", None),
        ];
        for (query, expected) in cases {
            assert_eq!(fts_query(query).as_deref(), expected, "{query:?}");
        }
    }

    #[test]
    fn snippets_are_split_into_pieces() {
        let marked = "… the \u{2}quick\u{3} \u{200B}東\u{200B}\u{2}\u{200B}京\u{3}";
        let expected = [("… the ", false), ("quick", true), (" 東", false), ("京", true)];
        assert_eq!(snippet_pieces(marked), expected.map(|(text, is_hit)| (text.to_owned(), is_hit)));
    }
}
