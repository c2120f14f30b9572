//! Who wrote a message.

use crate::table::text_enum::text_enum;

text_enum! {
    /// Author of a message.
    Role {
        /// The system prompt.
        System = "system",
        /// The user.
        User = "user",
        /// The model.
        Assistant = "assistant",
    }
}
