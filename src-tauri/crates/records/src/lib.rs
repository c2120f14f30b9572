//! What the database keeps, and the types of the contract that it becomes. Chats and messages, answers that are being
//! written, tool servers, the model library, and the models of other servers. Pure: nothing here opens a database, a
//! file or a connection.
#![forbid(unsafe_code)]

pub mod conversations;
pub mod endpoint_listing;
pub mod first_token;
pub mod library_rows;
pub mod model_reference;
pub mod model_runs;
pub mod partial_answer;
pub mod tool_servers;
