//! Forms of all tool servers that wait for the user ([`crate::elicitation`]). One waits until the user answers, its server ends,
//! or its time is up.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::elicitation::{
    ChoiceOption, ElicitationAnswer, ElicitationForm, ElicitationHandler, FieldKind, FormField, TextFormat,
};
use contract::types::{
    AppEvent, ToolFieldKind, ToolForm, ToolFormAction, ToolFormAnswerArgs, ToolFormField, ToolFormOption,
    ToolTextFormat,
};
use contract::{Error, ErrorKind, Result};

/// A user who has not answered by then has left.
const FORM_TIMEOUT_S: u32 = 15 * 60;
/// How often a waiting form is checked for being withdrawn.
const WITHDRAWAL_CHECK: Duration = Duration::from_secs(1);

/// Forms of all servers; further ones are canceled at once.
const MAX_FORMS: usize = 32;

/// The forms that wait.
pub struct OpenForms {
    /// Tells the application's watchers.
    publish: Box<dyn Fn(AppEvent) + Send + Sync>,
    state: Mutex<FormTable>,
}

#[derive(Default)]
struct FormTable {
    n_opened: u64,
    /// The oldest first.
    open: Vec<OpenForm>,
}

struct OpenForm {
    id: String,
    /// Id of its server.
    server: String,
    form: ElicitationForm,
    answer: SyncSender<ElicitationAnswer>,
}

impl OpenForms {
    /// `publish` tells the application's watchers of forms that open and close.
    pub fn new(publish: impl Fn(AppEvent) + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { publish: Box::new(publish), state: Mutex::default() })
    }

    /// The forms that wait, the oldest first.
    pub fn list(&self) -> Vec<ToolForm> {
        self.table().open.iter().map(|it| shown(&it.id, &it.form)).collect()
    }

    fn table(&self) -> MutexGuard<'_, FormTable> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows the forms of a server.
    pub fn handler(self: &Arc<Self>, server: &str) -> ElicitationHandler {
        let (forms, server) = (Arc::clone(self), server.to_owned());
        Arc::new(move |form, is_withdrawn| forms.ask(&server, form, is_withdrawn))
    }

    /// Shows a form and waits for the user.
    fn ask(
        &self,
        server: &str,
        form: &ElicitationForm,
        is_withdrawn: &dyn Fn() -> bool,
    ) -> ElicitationAnswer {
        let (answer, answered) = sync_channel(1);
        let id = {
            let mut table = self.table();
            if table.open.len() >= MAX_FORMS {
                return ElicitationAnswer::Canceled;
            }
            table.n_opened += 1;
            let id = format!("form-{}", table.n_opened);
            table.open.push(OpenForm { id: id.clone(), server: server.into(), form: form.clone(), answer });
            id
        };
        (self.publish)(AppEvent::ToolFormOpened { form: shown(&id, form) });
        let given = wait_for(&answered, is_withdrawn);
        self.table().open.retain(|it| it.id != id);
        (self.publish)(AppEvent::ToolFormClosed { id });
        given
    }

    /// Answers a form. Errors: `tools.form` where a value is missing or not allowed, `tools.form_closed`.
    pub fn answer(&self, args: ToolFormAnswerArgs) -> Result<()> {
        let mut table = self.table();
        let at = table.open.iter().position(|it| it.id == args.id).ok_or_else(form_closed)?;
        let given = match args.action {
            ToolFormAction::Accept => {
                let values = args.values.into_iter().collect();
                let complete = table.open[at].form.complete(values).map_err(|why| {
                    tracing::debug!("a form was not sent: {why}");
                    form_incomplete()
                })?;
                ElicitationAnswer::Accepted(complete)
            }
            ToolFormAction::Decline => ElicitationAnswer::Declined,
            ToolFormAction::Cancel => ElicitationAnswer::Canceled,
        };
        let form = table.open.remove(at);
        drop(table);
        // Its time may just have been up.
        form.answer.try_send(given).map_err(|_| form_closed())
    }

    /// Closes the forms of a server that ends. `None`: of all servers.
    pub fn close_forms_of(&self, server: Option<&str>) {
        self.table().open.retain(|it| server.is_some_and(|id| it.server != id));
    }
}

/// Waits for the user as long as the form is wanted.
fn wait_for(answered: &Receiver<ElicitationAnswer>, is_withdrawn: &dyn Fn() -> bool) -> ElicitationAnswer {
    for _ in 0..FORM_TIMEOUT_S {
        match answered.recv_timeout(WITHDRAWAL_CHECK) {
            Ok(answer) => return answer,
            Err(RecvTimeoutError::Timeout) if !is_withdrawn() => {}
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
        }
    }
    ElicitationAnswer::Canceled
}

fn form_closed() -> Error {
    let (message, remedy) = ("This form is no longer waiting.", "Send the message again.");
    Error::new(ErrorKind::Conflict, "tools.form_closed", message, remedy)
}

fn form_incomplete() -> Error {
    let message = "A value in the form is missing or not allowed.";
    Error::input("tools.form", message, "Correct the value and send the form again.")
}

fn shown(id: &str, form: &ElicitationForm) -> ToolForm {
    ToolForm {
        id: id.into(),
        server_name: form.server.clone(),
        message: form.message.clone(),
        fields: form.fields.iter().map(shown_field).collect(),
    }
}

fn shown_field(field: &FormField) -> ToolFormField {
    ToolFormField {
        name: field.name.clone(),
        label: field.label().to_owned(),
        description: field.description.clone(),
        required: field.is_required,
        kind: shown_kind(&field.kind),
        default: field.default.clone().unwrap_or_default(),
    }
}

fn shown_kind(kind: &FieldKind) -> ToolFieldKind {
    let options = |options: &[ChoiceOption]| {
        let option = |it: &ChoiceOption| ToolFormOption { value: it.value.clone(), title: it.title.clone() };
        options.iter().map(option).collect()
    };
    match kind {
        FieldKind::Text { min_chars, max_chars, format } => ToolFieldKind::Text {
            format: format.map(|format| match format {
                TextFormat::Email => ToolTextFormat::Email,
                TextFormat::Uri => ToolTextFormat::Uri,
                TextFormat::Date => ToolTextFormat::Date,
                TextFormat::DateTime => ToolTextFormat::DateTime,
            }),
            min_chars: *min_chars,
            max_chars: *max_chars,
        },
        FieldKind::Number { is_integer, min, max } => {
            ToolFieldKind::Number { is_integer: *is_integer, min: *min, max: *max }
        }
        FieldKind::Flag => ToolFieldKind::Flag,
        FieldKind::Choice(all) => ToolFieldKind::Choice { options: options(all) },
        FieldKind::MultipleChoice { options: all, .. } => {
            ToolFieldKind::MultipleChoice { options: options(all) }
        }
    }
}
