//! What programs store over HTTP beside the database: the contents of their files, and the lines of their batches.
#![forbid(unsafe_code)]

mod batch_line;
mod file_contents;
mod file_record;

pub use batch_line::{BATCH_ROUTES, BatchForm, BatchLine, BatchRequest, LineRefusal};
pub use file_contents::{FileContents, MAX_FILE_BYTES, MAX_TOTAL_BYTES};
pub use file_record::FileRecord;
