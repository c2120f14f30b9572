//! Full-text index (FTS5) over the text of every message.
//!
//! Words match by prefix, in their search form. Scripts without spaces are indexed character by character, so that any
//! part of a sentence matches. Deleted text leaves the index at once (`secure-delete`), not at the next merge.

use rusqlite::{Connection, TransactionBehavior, params};

use crate::error::Result;
use crate::search_form::{has_no_spaces, search_form, words};
use crate::snippet::{SearchPhrase, SnippetPieces, snippet_around, snippet_of};
use crate::table::role::Role;

pub const CREATE: &str = "
CREATE VIRTUAL TABLE search USING fts5(text, tokenize = 'unicode61 remove_diacritics 2', prefix = '1 2 3');
INSERT INTO search(search, rank) VALUES ('secure-delete', 1);
";

/// Replaces the index by one of search forms. `complete` fills it. Marks are parts of words, as in Devanagari.
pub const ADD_SEARCH_FORM: &str = "
DROP TABLE search;
CREATE VIRTUAL TABLE search USING fts5(
    text, tokenize = \"unicode61 remove_diacritics 0 categories 'L* N* Co M*'\", prefix = '1 2 3');
INSERT INTO search(search, rank) VALUES ('secure-delete', 1);
";

/// Separates characters of scripts without spaces: part of no word, and in no search form.
const GAP: char = '\u{200B}';

/// Words of a query that count; more would only narrow a narrow search.
const MAX_QUERY_WORDS: usize = 16;

/// A message that matches a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchHit {
    pub conversation: String,
    pub title: String,
    pub message: String,
    pub role: Role,
    pub created_ms: i64,
    /// Excerpt of its text in pieces; true marks a match.
    pub snippet: SnippetPieces,
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
pub(crate) fn complete(db: &mut Connection) -> Result<()> {
    // One transaction: after a migration this is the whole history.
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    {
        let sql = format!(
            "SELECT id, {SEARCHABLE} FROM message
             WHERE state != 'streaming' AND position NOT IN (SELECT rowid FROM search)"
        );
        let mut statement = transaction.prepare(&sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            // An unreadable text has no words.
            if let (Ok(id), Ok(text)) = (row.get::<_, String>(0), searchable(row, 1)) {
                put(&transaction, &id, &text)?;
            }
        }
    }
    transaction.commit()?;
    Ok(())
}

/// Columns that hold what is searched in a message: its text and the names of its files.
const SEARCHABLE: &str =
    "text, (SELECT group_concat(name, char(10)) FROM attachment WHERE message = message.id)";

fn searchable(row: &rusqlite::Row, first: usize) -> rusqlite::Result<String> {
    let (mut text, names): (String, Option<String>) =
        (row.get(first)?, row.get(first + 1).unwrap_or_default());
    if let Some(names) = names {
        text.push('\n');
        text.push_str(&names);
    }
    Ok(text)
}

/// Messages that contain all words of `query`, newest first, without deleted ones and the trash.
pub(crate) fn find(db: &Connection, query: &str, limit: u32) -> Result<Vec<SearchHit>> {
    let query = search_form(query);
    match fts_query(&query) {
        Some(words) => find_words(db, &words, &query, limit),
        None => find_literal(db, query.trim(), limit),
    }
}

const VISIBLE: &str = "JOIN conversation ON conversation.id = message.conversation
    WHERE message.gone IS NULL AND conversation.deleted_ms IS NULL";

fn find_words(db: &Connection, words: &str, query: &str, limit: u32) -> Result<Vec<SearchHit>> {
    let sql = format!(
        "SELECT message.conversation, title, message.id, role, message.created_ms, message.{SEARCHABLE}
         FROM search JOIN message ON message.position = search.rowid {VISIBLE} AND search MATCH ?1
         ORDER BY search.rowid DESC"
    );
    let (literals, phrases) = (literals(query), phrases(query));
    let mut statement = db.prepare_cached(&sql)?;
    let mut rows = statement.query([words])?;
    let mut hits = Vec::new();
    while let Some(row) = rows.next()? {
        let text = searchable(row, 5).unwrap_or_default();
        let has_literals = literals.is_empty() || {
            let form = search_form(&text);
            literals.iter().all(|literal| form.contains(literal))
        };
        if has_literals {
            hits.push(hit(row, snippet_of(&text, &phrases))?);
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
         ORDER BY position DESC"
    );
    let mut statement = db.prepare_cached(&sql)?;
    let mut rows = statement.query([])?;
    let mut hits = Vec::new();
    while let Some(row) = rows.next()? {
        if hits.len() >= limit as usize {
            break;
        }
        let Ok(text) = row.get_ref(5)?.as_str() else { continue };
        if search_form(text).contains(signs)
            && let Some(snippet) = snippet_around(text, signs)
        {
            hits.push(hit(row, snippet)?);
        }
    }
    Ok(hits)
}

fn hit(row: &rusqlite::Row, snippet: SnippetPieces) -> rusqlite::Result<SearchHit> {
    Ok(SearchHit {
        conversation: row.get(0)?,
        title: row.get(1).unwrap_or_default(),
        message: row.get(2)?,
        role: row.get(3).unwrap_or(Role::Assistant),
        created_ms: row.get(4).unwrap_or_default(),
        snippet,
    })
}

/// A text in its indexed form.
pub(crate) fn spaced(text: &str) -> String {
    let form = search_form(text);
    let mut spaced = String::with_capacity(form.len() + form.len() / 4);
    for c in form.chars() {
        if has_no_spaces(c) {
            spaced.extend([GAP, c, GAP]);
        } else {
            spaced.push(c);
        }
    }
    spaced
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

/// A query's search form in FTS5 syntax: prefix match for words, exact match for quoted phrases. None if it has no word.
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
    words.filter(|word| is_mostly_symbols(word)).map(str::to_owned).collect()
}

/// What the snippet of a hit marks.
fn phrases(query: &str) -> Vec<SearchPhrase> {
    let phrase = |(word, is_quoted): (&str, bool)| SearchPhrase {
        forms: words(word).map(|word| word.form).collect(),
        is_prefix: !is_quoted && !is_mostly_symbols(word),
    };
    query_terms(query).into_iter().map(phrase).collect()
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
            ("c++", Some("\"c++\"")),
            ("near(a b)", Some("\"near(a\" * AND \"b)\"")),
            ("東京", Some("\"\u{200B}東\u{200B}\u{200B}京\u{200B}\" *")),
            ("🦊", None),
            ("\"", None),
            ("", None),
        ];
        for (query, expected) in cases {
            assert_eq!(fts_query(query).as_deref(), expected, "{query:?}");
        }
    }
}
