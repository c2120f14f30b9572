//! What programs stored over HTTP. Each object belongs to the key that stored it.

use rusqlite::TransactionBehavior;

use crate::conversation::Session;
use crate::error::Result;
use crate::table::api_object::{self, ApiObjectRow};

/// Objects that are kept. Beyond it the oldest ones go: programs seldom remove what they store.
const MAX_API_OBJECTS: u32 = 100_000;

impl Session {
    /// Adds objects, or replaces the bodies of those that exist; all of them or none.
    pub fn put_api_objects(&mut self, rows: &[ApiObjectRow]) -> Result<()> {
        let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for row in rows {
            api_object::put(&transaction, row)?;
        }
        api_object::trim(&transaction, MAX_API_OBJECTS)?;
        transaction.commit()?;
        Ok(())
    }

    /// Reads one of the owner's objects.
    pub fn api_object(&self, kind: &str, owner: &str, id: &str) -> Result<Option<ApiObjectRow>> {
        api_object::get(self.db(), kind, owner, id)
    }

    /// Lists the owner's objects of a kind, oldest first; those of one parent if it is given.
    pub fn api_objects(&self, kind: &str, owner: &str, parent: Option<&str>) -> Result<Vec<ApiObjectRow>> {
        api_object::list(self.db(), kind, owner, parent)
    }

    /// Ids of all objects, of all owners.
    pub fn api_object_ids(&self) -> Result<Vec<String>> {
        api_object::ids(self.db())
    }

    /// Removes an object with its children. False if the owner has none with that id.
    pub fn remove_api_object(&mut self, kind: &str, owner: &str, id: &str) -> Result<bool> {
        api_object::remove(self.db(), kind, owner, id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::api_object::{get, list, put, remove, trim};

    fn row(id: &str, kind: &str, owner: &str, parent: Option<&str>) -> ApiObjectRow {
        let (parent, body) = (parent.map(str::to_owned), format!("{{\"id\":\"{id}\"}}"));
        ApiObjectRow { id: id.into(), kind: kind.into(), owner: owner.into(), parent, body, created_ms: 7 }
    }

    fn ids(rows: &[ApiObjectRow]) -> Vec<&str> {
        rows.iter().map(|row| row.id.as_str()).collect()
    }

    #[test]
    fn objects_belong_to_their_key_and_children_go_with_their_parent() {
        let db = rusqlite::Connection::open_in_memory().unwrap();
        db.execute_batch(api_object::CREATE).unwrap();
        for row in [
            row("c", "conversation", "anna", None),
            row("2", "item", "anna", Some("c")),
            row("1", "item", "anna", Some("c")),
            row("3", "item", "ben", None),
        ] {
            put(&db, &row).unwrap();
        }
        assert_eq!(ids(&list(&db, "item", "anna", Some("c")).unwrap()), ["2", "1"]);
        assert_eq!(ids(&list(&db, "item", "ben", None).unwrap()), ["3"]);
        assert_eq!(get(&db, "item", "ben", "1").unwrap(), None);
        // another key can't overwrite it
        put(&db, &ApiObjectRow { body: "x".into(), ..row("1", "item", "ben", None) }).unwrap();
        assert_eq!(get(&db, "item", "anna", "1").unwrap(), Some(row("1", "item", "anna", Some("c"))));
        put(&db, &ApiObjectRow { body: "y".into(), ..row("1", "item", "anna", Some("c")) }).unwrap();
        assert_eq!(get(&db, "item", "anna", "1").unwrap().unwrap().body, "y");
        assert!(!remove(&db, "conversation", "ben", "c").unwrap());
        assert!(remove(&db, "conversation", "anna", "c").unwrap());
        assert_eq!(ids(&list(&db, "item", "anna", None).unwrap()), [] as [&str; 0]);
    }

    #[test]
    fn the_oldest_go_first() {
        let db = rusqlite::Connection::open_in_memory().unwrap();
        db.execute_batch(api_object::CREATE).unwrap();
        put(&db, &row("c", "conversation", "", None)).unwrap();
        for id in ["1", "2", "3"] {
            put(&db, &row(id, "item", "", Some("c"))).unwrap();
        }
        put(&db, &row("r", "response", "", None)).unwrap();
        trim(&db, 5).unwrap();
        assert_eq!(list(&db, "item", "", None).unwrap().len(), 3);
        trim(&db, 3).unwrap();
        // the items of a conversation that went go with it
        assert_eq!(list(&db, "item", "", None).unwrap().len(), 0);
        assert_eq!(list(&db, "response", "", None).unwrap().len(), 1);
        assert_eq!(api_object::ids(&db).unwrap(), ["r"]);
    }
}
