//! GigaChat 3: a message of a role of its own, `function call<|role_sep|>`, that holds JSON.

use super::CallStyle;

pub const STYLE: CallStyle = CallStyle {
    sign: "'function call'",
    reasoning: None,
    // What ends it is no tag of it: other messages end so too.
    calls: ("function call<|role_sep|>\n", ""),
    fences: &[],
    inner: &[],
    // Plain JSON, which all know.
    read: |_, _| None,
};
