//! The schema of this version, and the detection of a database whose schema was damaged.

use std::collections::BTreeMap;

use rusqlite::Connection;
use rusqlite::types::Value;

use crate::error::{Result, SessionError};
use crate::table::{lossy_text, setting};

/// Internal setting: root pages and a fingerprint of the schema, to find an entry that damage changed.
const SCHEMA_KEY: &str = "internal.schema";

/// An entry of the schema: type, name and SQL, which is empty for what SQLite makes itself.
type SchemaEntry = (String, String, String);

/// The text of the schema, sorted.
fn entries(db: &Connection) -> Result<Vec<SchemaEntry>> {
    let sql = "SELECT type, name, COALESCE(sql, '') FROM sqlite_schema ORDER BY type, name";
    let mut statement = db.prepare(sql)?;
    let rows =
        statement.query_map([], |row| Ok((lossy_text(row, 0)?, lossy_text(row, 1)?, lossy_text(row, 2)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// A line per root page and the fingerprint of the SQL (FNV-1a, 64 bits).
fn summary(db: &Connection) -> Result<String> {
    let sql = "SELECT group_concat(name || ' ' || rootpage, char(10)) FROM
               (SELECT name, rootpage FROM sqlite_schema WHERE rootpage > 0 ORDER BY name)";
    let roots = db.query_row(sql, [], |row| lossy_text(row, 0))?;
    let text = entries(db)?.into_iter().flat_map(|(kind, name, sql)| [kind, name, sql]);
    let hash = text
        .flat_map(|text| text.into_bytes().into_iter().chain([0]))
        .fold(FNV_START, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME));
    Ok(format!("{roots}\n{hash:016x}"))
}

const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

/// Columns and references of all tables, sorted. Their SQL may be spaced otherwise in a database of an older build.
fn columns(db: &Connection) -> Result<Vec<String>> {
    let sql = "SELECT t.name || '.' || c.name || ' ' || c.type || ' ' || c.\"notnull\" || ' ' || c.pk
                   FROM sqlite_schema t JOIN pragma_table_info(t.name) c WHERE t.type = 'table'
               UNION SELECT t.name || '.' || f.\"from\" || ' > ' || f.\"table\" || '.' || COALESCE(f.\"to\", '') || ' ' || f.on_delete
                   FROM sqlite_schema t JOIN pragma_foreign_key_list(t.name) f WHERE t.type = 'table'
               ORDER BY 1";
    let mut statement = db.prepare(sql)?;
    let rows = statement.query_map([], |row| lossy_text(row, 0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Whether the schema has every column and reference of `expected`.
pub(crate) fn has_all(db: &Connection, expected: &Connection) -> Result<bool> {
    let there = columns(db)?;
    Ok(columns(expected)?.iter().all(|column| there.binary_search(column).is_ok()))
}

/// Error `session.damaged` if the schema is not the one of `expected`, an empty database of this version.
pub(crate) fn check(db: &Connection, expected: &Connection) -> Result<()> {
    let is_whole = has_all(db, expected).map_err(|error| SessionError::damaged(&error.to_string()))?;
    if is_whole { Ok(()) } else { Err(SessionError::damaged("its schema has changed")) }
}

/// Whether the schema is the one that was recorded. False also where none was.
pub(crate) fn is_as_recorded(db: &Connection) -> Result<bool> {
    Ok(setting::internal(db, SCHEMA_KEY)? == Some(summary(db)?))
}

/// Records the schema and its root pages.
pub(crate) fn record(db: &Connection) -> Result<()> {
    setting::put(db, SCHEMA_KEY, &summary(db)?)
}

/// A table to be read although its schema may be damaged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlainTable {
    pub name: String,
    /// SQL with columns, keys and defaults, and without what only concerns writing.
    pub sql: String,
    /// Pages where it may begin, likeliest first.
    pub roots: Vec<u32>,
}

/// The tables `names` of this version, with the root pages that the damaged schema tells of them.
pub(crate) fn plain_tables(damaged: &Connection, expected: &Connection, names: &[&str]) -> Vec<PlainTable> {
    let found = found_roots(damaged, expected, names);
    let fresh: BTreeMap<String, u32> =
        names.iter().filter_map(|name| Some(((*name).to_owned(), root_of(expected, name)?))).collect();
    let recorded = recorded_roots(damaged);
    let tables = names.iter().filter_map(|name| {
        let roots = [recorded.get(*name), found.get(*name), fresh.get(*name)];
        let mut roots: Vec<u32> = roots.into_iter().flatten().copied().filter(|root| *root > 1).collect();
        roots.dedup();
        Some(PlainTable { name: (*name).to_owned(), sql: plain_sql(expected, name)?, roots })
    });
    let mut tables: Vec<PlainTable> = tables.collect();
    // A page where another table begins is none of this one.
    let first: Vec<(String, u32)> =
        tables.iter().filter_map(|table| Some((table.name.clone(), *table.roots.first()?))).collect();
    for table in &mut tables {
        table.roots.retain(|root| !first.iter().any(|(name, other)| other == root && *name != table.name));
    }
    tables
}

fn root_of(db: &Connection, name: &str) -> Option<u32> {
    let sql = "SELECT rootpage FROM sqlite_schema WHERE type = 'table' AND name = ?1";
    db.query_row(sql, [name], |row| row.get(0)).ok()
}

fn recorded_roots(db: &Connection) -> BTreeMap<String, u32> {
    let recorded = setting::get(db, SCHEMA_KEY).ok().flatten().unwrap_or_default();
    let pairs = recorded.lines().filter_map(|line| line.rsplit_once(' '));
    pairs.filter_map(|(name, root)| Some((name.to_owned(), root.parse().ok()?))).collect()
}

/// Root pages by table: an entry belongs to a table if its name says so, or its SQL differs in few bytes.
fn found_roots(damaged: &Connection, expected: &Connection, names: &[&str]) -> BTreeMap<String, u32> {
    let mut found = BTreeMap::new();
    let bytes = |value: Value| match value {
        Value::Text(text) => text.into_bytes(),
        Value::Blob(bytes) => bytes,
        Value::Null | Value::Integer(_) | Value::Real(_) => Vec::new(),
    };
    let Ok(mut statement) =
        damaged.prepare("SELECT CAST(name AS BLOB), CAST(sql AS BLOB), rootpage FROM sqlite_schema")
    else {
        return found;
    };
    let Ok(mut rows) = statement.query([]) else { return found };
    let known: Vec<(&str, Vec<u8>)> =
        names.iter().filter_map(|name| Some((*name, sql_of(expected, name)?.into_bytes()))).collect();
    while let Ok(Some(row)) = rows.next() {
        let (Ok(name), Ok(sql), Ok(root)) = (row.get(0), row.get(1), row.get::<_, u32>(2)) else { continue };
        let (name, sql) = (bytes(name), bytes(sql));
        let is_like = |known: &[u8]| is_nearly_equal(known, &sql);
        let table = known.iter().find(|(_, known)| is_like(known));
        let table = table.or_else(|| known.iter().find(|(known, _)| known.as_bytes() == name));
        if let Some((table, _)) = table {
            found.entry((*table).to_owned()).or_insert(root);
        }
    }
    found
}

fn sql_of(db: &Connection, name: &str) -> Option<String> {
    let sql = "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?1";
    db.query_row(sql, [name], |row| row.get(0)).ok()
}

/// Whether texts of one length differ in at most a tenth of their bytes: damage changes bits and moves none.
pub(crate) fn is_nearly_equal(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).filter(|(a, b)| a != b).count() * 10 <= a.len()
}

/// SQL that makes the columns of a table where its rows have them.
fn plain_sql(db: &Connection, name: &str) -> Option<String> {
    let is_keyed = sql_of(db, name)?.contains("WITHOUT ROWID");
    let mut statement = db.prepare(&format!("PRAGMA table_info('{name}')")).ok()?;
    let mut rows = statement.query([]).ok()?;
    let (mut columns, mut keys) = (Vec::new(), BTreeMap::new());
    while let Ok(Some(row)) = rows.next() {
        let (column, kind): (String, String) = (row.get(1).ok()?, row.get(2).ok()?);
        let default: Option<String> = row.get(4).ok()?;
        let key: u32 = row.get(5).ok()?;
        let is_rowid = !is_keyed && key > 0 && kind == "INTEGER";
        let default = default.map_or(String::new(), |value| format!(" DEFAULT {value}"));
        columns.push(format!("\"{column}\" {}{default}", if is_rowid { "INTEGER PRIMARY KEY" } else { "" }));
        if key > 0 {
            keys.insert(key, format!("\"{column}\""));
        }
    }
    let keys: Vec<String> = keys.into_values().collect();
    Some(match is_keyed {
        true => format!(
            "CREATE TABLE {name} ({}, PRIMARY KEY ({})) WITHOUT ROWID",
            columns.join(", "),
            keys.join(", ")
        ),
        false => format!("CREATE TABLE {name} ({})", columns.join(", ")),
    })
}
