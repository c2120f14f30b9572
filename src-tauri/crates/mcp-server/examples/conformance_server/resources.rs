//! Resources that the suite reads.

use rmcp::model::{
    ErrorData, ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Resource,
    ResourceContents, ResourceTemplate,
};
use serde_json::json;

/// A red pixel.
pub const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

pub const TEXT_URI: &str = "test://static-text";
const BINARY_URI: &str = "test://static-binary";
const WATCHED_URI: &str = "test://watched-resource";
const TEMPLATE: (&str, &str) = ("test://template/", "/data");

/// All resources.
pub fn list() -> ListResourcesResult {
    ListResourcesResult::with_all_items(vec![
        Resource::new(TEXT_URI, "Static text").with_mime_type("text/plain"),
        Resource::new(BINARY_URI, "Static picture").with_mime_type("image/png"),
        Resource::new(WATCHED_URI, "Watched text").with_mime_type("text/plain"),
    ])
}

/// The form of the URIs of records.
pub fn templates() -> ListResourceTemplatesResult {
    let form = format!("{}{{id}}{}", TEMPLATE.0, TEMPLATE.1);
    let template = ResourceTemplate::new(form, "Record").with_mime_type("application/json");
    ListResourceTemplatesResult::with_all_items(vec![template])
}

/// Reads a resource.
pub fn read(uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let id = uri.strip_prefix(TEMPLATE.0).and_then(|rest| rest.strip_suffix(TEMPLATE.1));
    let contents = match (uri, id) {
        (_, Some(id)) => {
            let record = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
            ResourceContents::text(record.to_string(), uri).with_mime_type("application/json")
        }
        (TEXT_URI, None) => ResourceContents::text("This is the content of the static text resource.", uri)
            .with_mime_type("text/plain"),
        (WATCHED_URI, None) => ResourceContents::text("Watched", uri).with_mime_type("text/plain"),
        (BINARY_URI, None) => ResourceContents::blob(PNG, uri).with_mime_type("image/png"),
        _ => {
            let message = format!("There is no resource at {uri}.");
            return Err(ErrorData::resource_not_found(message, Some(json!({ "uri": uri }))));
        }
    };
    Ok(ReadResourceResult::new(vec![contents]))
}
