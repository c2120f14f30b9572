//! Forms that tool servers ask the user to fill in. Only the window shows them.

use contract::Result;
use contract::types::{ToolForm, ToolFormAnswerArgs};

use crate::App;

impl App {
    /// The forms that wait for the user, the oldest first.
    pub fn tool_forms(&self) -> Vec<ToolForm> {
        self.services().tools.forms.list()
    }

    /// Answers a form. Errors: `tools.form` where a value is missing or not allowed, `tools.form_closed`.
    pub fn tool_form_answer(&self, args: ToolFormAnswerArgs) -> Result<()> {
        self.services().tools.forms.answer(args)
    }
}
