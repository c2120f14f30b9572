//! Pages of lists: `after`, `limit` and `order` of the query.

use serde_json::{Value, json};

use super::fields::Result;
use crate::fault::OpenAiFault;

/// Entries of a page unless the client says so, and at most, as in OpenAI's API.
const DEFAULT_PAGE: usize = 20;
const MAX_PAGE: usize = 100;

/// Order of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListOrder {
    /// Oldest first.
    Asc,
    /// Newest first.
    Desc,
}

/// What a client wants of a list.
#[derive(Debug, Clone, Default)]
pub struct ListQuery {
    /// The last id of the page before.
    after: Option<String>,
    limit: Option<usize>,
    order: Option<ListOrder>,
}

impl ListQuery {
    /// Reads `after`, `limit` and `order` among the pairs of a query.
    pub fn parse(pairs: &[(String, String)]) -> Result<Self> {
        let get = |name: &str| pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let limit = get("limit").map(|limit| {
            limit.parse().map_err(|_| OpenAiFault::invalid("limit", "`limit` must be a whole number from 0."))
        });
        let order = match get("order") {
            None => None,
            Some("asc") => Some(ListOrder::Asc),
            Some("desc") => Some(ListOrder::Desc),
            Some(_) => return Err(OpenAiFault::invalid("order", "`order` must be asc or desc.")),
        };
        Ok(Self { after: get("after").map(str::to_owned), limit: limit.transpose()?, order })
    }
}

/// One page of `all`, which are objects with ids, oldest first.
pub fn page(all: Vec<Value>, query: &ListQuery, default: ListOrder) -> Value {
    page_within(all, query, default, DEFAULT_PAGE, MAX_PAGE)
}

/// As `page`, where a page has `default_limit` entries unless the client says so, and `max_limit` at most.
pub fn page_within(
    mut all: Vec<Value>,
    query: &ListQuery,
    default: ListOrder,
    default_limit: usize,
    max_limit: usize,
) -> Value {
    if query.order.unwrap_or(default) == ListOrder::Desc {
        all.reverse();
    }
    if let Some(after) = &query.after {
        // After an entry that isn't there comes nothing.
        let start = all.iter().position(|entry| entry["id"] == **after).map_or(all.len(), |at| at + 1);
        all.drain(..start);
    }
    let limit = query.limit.filter(|limit| *limit > 0).unwrap_or(default_limit).min(max_limit);
    let has_more = all.len() > limit;
    all.truncate(limit);
    let id = |entry: Option<&Value>| entry.map_or(Value::Null, |entry| entry["id"].clone());
    let (first, last) = (id(all.first()), id(all.last()));
    json!({ "object": "list", "data": all, "first_id": first, "last_id": last, "has_more": has_more })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_each_other() {
        let all = || (1..=5).map(|n| json!({ "id": n.to_string() })).collect::<Vec<_>>();
        let ids = |page: &Value| -> Vec<String> {
            page["data"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap().into()).collect()
        };
        for (after, limit, order, expected, has_more) in [
            (None, None, None, vec!["1", "2", "3", "4", "5"], false),
            (None, Some(2), None, vec!["1", "2"], true),
            (Some("2"), Some(2), None, vec!["3", "4"], true),
            (Some("4"), Some(2), None, vec!["5"], false),
            (Some("4"), Some(2), Some(ListOrder::Desc), vec!["3", "2"], true),
            (Some("x"), None, None, vec![], false),
            (None, Some(0), None, vec!["1", "2", "3", "4", "5"], false),
        ] {
            let query = ListQuery { after: after.map(str::to_owned), limit, order };
            let page = page(all(), &query, ListOrder::Asc);
            assert_eq!(
                (ids(&page), &page["has_more"]),
                (expected.iter().map(|it| (*it).to_owned()).collect(), &json!(has_more))
            );
        }
        assert_eq!(page(Vec::new(), &ListQuery::default(), ListOrder::Asc)["first_id"], Value::Null);
    }

    #[test]
    fn queries_name_what_is_wrong() {
        let parse = |name: &str, value: &str| ListQuery::parse(&[(name.into(), value.into())]);
        assert_eq!(parse("limit", "7").unwrap().limit, Some(7));
        assert_eq!(parse("order", "desc").unwrap().order, Some(ListOrder::Desc));
        for (name, value) in [("limit", "x"), ("limit", "-1"), ("order", "up")] {
            assert_eq!(parse(name, value).unwrap_err().param.as_deref(), Some(name));
        }
    }
}
