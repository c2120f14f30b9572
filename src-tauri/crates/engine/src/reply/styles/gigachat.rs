//! GigaChat 3: a message with the role `function call<|role_sep|>` that holds JSON.

use super::CallStyle;

pub const STYLE: CallStyle = CallStyle {
    sign: "'function call'",
    reasoning: None,
    // Its end tag also ends other messages.
    calls: ("function call<|role_sep|>\n", ""),
    fences: &[],
    inner: &[],
    // Plain JSON is parsed for all models.
    read: |_, _| None,
};
