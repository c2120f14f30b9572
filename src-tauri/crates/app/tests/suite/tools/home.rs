//! An application in a temporary folder, with a scripted model and a tool server.

use std::path::PathBuf;
use std::sync::Mutex;

use app::App;
use app::AppConfig;
use app::Environment;
use app::Interface;
use contract::types::{
    AppEvent, EndpointAddArgs, SendArgs, ToolCall, ToolDecideArgs, ToolDecision, ToolForm, ToolPermitArgs,
    ToolRunState, ToolServerAddArgs, ToolServerInfo, ToolServerSpec, TurnEventKind,
};
use platform::Watch;
use serde_json::{Value, json};

use crate::remote::fake::{Fake, Request, Say, answer, models};

/// The script of the server.
pub fn script() -> String {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/mcp/server.py").into()
}

pub fn spec(flags: &[&str]) -> ToolServerSpec {
    let args = std::iter::once(script()).chain(flags.iter().map(|flag| (*flag).to_owned()));
    ToolServerSpec { command: Some("python3".into()), args: args.collect(), ..ToolServerSpec::default() }
}

pub struct Home {
    pub folder: PathBuf,
    /// None: it is closed.
    app: Option<App>,
    /// What happened since the last look.
    watch: Mutex<Watch<AppEvent>>,
    /// Events that no call of `wait` has asked for yet.
    unread: Mutex<Vec<AppEvent>>,
}

fn open(folder: &std::path::Path) -> App {
    let environment = Environment(|name| std::env::var(name).ok());
    let interface = Interface::Window;
    let config = AppConfig { data_dir: Some(folder.into()), environment, interface, ..AppConfig::default() };
    let app = App::open(config).unwrap();
    app.settings_set("titles", &json!(false)).unwrap();
    app.settings_set("guide_answers", &json!(false)).unwrap();
    app
}

impl Home {
    pub fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("inglenook-tools-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let app = open(&folder);
        let watch = Mutex::new(app.watch_app());
        Self { folder, app: Some(app), watch, unread: Mutex::default() }
    }

    pub fn app(&self) -> &App {
        self.app.as_ref().unwrap()
    }

    /// The program ends, and begins again.
    pub fn reopen(&mut self) {
        self.close();
        let app = open(&self.folder);
        *self.watch.lock().unwrap() = app.watch_app();
        self.unread.lock().unwrap().clear();
        self.app = Some(app);
    }

    pub fn close(&mut self) {
        self.app = None;
    }

    pub fn add(&self, name: &str, flags: &[&str]) -> ToolServerInfo {
        let args = ToolServerAddArgs { name: name.into(), spec: spec(flags) };
        self.app().tool_server_add(args).unwrap()
    }

    pub fn allow(&self, server: &ToolServerInfo) {
        let args = ToolPermitArgs { id: server.id.clone(), allowed: Some(true), ..ToolPermitArgs::default() };
        self.app().tool_permit(&args).unwrap();
    }

    /// The model `lab/m`.
    pub fn endpoint(&self, fake: &Fake) {
        if self.app().endpoint_list().unwrap().is_empty() {
            let args = EndpointAddArgs { name: "lab".into(), url: fake.url.clone(), ..Default::default() };
            self.app().endpoint_add(args).unwrap();
        }
    }

    /// A message in a new conversation; its answer's conversation and id, once the first turn has ended.
    pub fn send(&self, fake: &Fake, text: &str) -> (String, String) {
        self.endpoint(fake);
        let args = SendArgs { text: text.into(), model: Some("lab/m".into()), ..SendArgs::default() };
        let started = self.app().send(args).unwrap();
        self.follow(&started.turn);
        (started.conversation, started.assistant_message)
    }

    /// The text of a turn.
    pub fn follow(&self, turn: &str) -> String {
        let mut said = String::new();
        for event in self.app().watch_turn(turn, 0).unwrap().flatten() {
            match event.kind {
                TurnEventKind::Text { text, .. } => said.push_str(&text),
                TurnEventKind::Failed { error } => panic!("{}", error.message),
                _ => {}
            }
        }
        said
    }

    pub fn decide(&self, message: &str, call: &str, decision: ToolDecision) {
        let args = ToolDecideArgs { message: message.into(), call: call.into(), decision };
        self.app().tool_decide(&args).unwrap();
    }

    /// Waits until the calls of a message are as they should be.
    pub fn wait(
        &self,
        message: &str,
        is_it: impl Fn(&[ToolCall], bool) -> bool,
    ) -> (Vec<ToolCall>, Option<String>) {
        let mut watch = self.watch.lock().unwrap();
        let mut unread = self.unread.lock().unwrap();
        loop {
            // The next answer may begin before this one is reported as over, so events of other messages are kept.
            let mut at = 0;
            while let Some(event) = unread.get(at) {
                if !matches!(event, AppEvent::ToolCalls { message: of, .. } if of == message) {
                    at += 1;
                    continue;
                }
                let AppEvent::ToolCalls { calls, over, turn, .. } = unread.remove(at) else { unreachable!() };
                if is_it(&calls, over) {
                    return (calls, turn);
                }
            }
            unread.extend(watch.next().expect("the application is open"));
        }
    }

    /// Waits until a server asks the user something. What else happens is kept.
    pub fn form(&self) -> ToolForm {
        let mut watch = self.watch.lock().unwrap();
        let mut unread = self.unread.lock().unwrap();
        loop {
            let at = unread.iter().position(|event| matches!(event, AppEvent::ToolFormOpened { .. }));
            if let Some(AppEvent::ToolFormOpened { form }) = at.map(|at| unread.remove(at)) {
                return form;
            }
            unread.extend(watch.next().expect("the application is open"));
        }
    }

    /// Waits until what was called is answered: the calls, and the text of the answer.
    pub fn answered(&self, message: &str) -> (Vec<ToolCall>, String) {
        let (calls, turn) = self.wait(message, |_, over| over);
        (calls, self.follow(&turn.expect("an answer to what the tools brought")))
    }

    /// Calls of a message as they are shown.
    pub fn calls(&self, conversation: &str, message: &str) -> Vec<ToolCall> {
        let conversation = self.app().conversation_get(conversation).unwrap();
        conversation.messages.into_iter().find(|it| it.id == message).unwrap().tool_calls
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        self.app = None;
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

pub fn states(calls: &[ToolCall]) -> Vec<ToolRunState> {
    calls.iter().filter_map(|call| call.run.as_ref()).map(|run| run.state).collect()
}

pub fn results(calls: &[ToolCall]) -> Vec<&str> {
    calls.iter().filter_map(|call| call.run.as_ref()).map(|run| run.result.as_str()).collect()
}

/// A call as the played model makes it.
pub fn call(name: &str, arguments: &Value) -> (String, String) {
    (name.into(), arguments.to_string())
}

/// A model that calls these as long as `calls` gives some for a request, and then says `Done.`
pub fn model(calls: impl Fn(&Request) -> Vec<(String, String)> + Send + Sync + 'static) -> Fake {
    let list = models(&[json!({ "id": "m" })]);
    Fake::new(move |request| -> Say {
        if request.path() == "/v1/models" {
            return list.clone();
        }
        let calls = calls(request);
        if calls.is_empty() {
            return answer(&[json!({ "content": "Done." })], "stop", Some((9, 2)));
        }
        let call = |(at, (name, arguments)): (usize, &(String, String))| {
            let function = json!({ "name": name, "arguments": arguments });
            json!({ "tool_calls": [{ "index": at, "id": format!("c{}-{at}", request.n), "function": function }] })
        };
        let deltas: Vec<Value> = calls.iter().enumerate().map(call).collect();
        answer(&deltas, "tool_calls", Some((7, 3)))
    })
}

/// Whether a tool's result stands at the end of a request.
pub fn has_result(request: &Request) -> bool {
    request.body["messages"].as_array().is_some_and(|all| all.last().is_some_and(|it| it["role"] == "tool"))
}

/// As `model`, calling in the first round only.
pub fn calling(calls: &[(&str, Value)]) -> Fake {
    let calls: Vec<_> = calls.iter().map(|(name, arguments)| call(name, arguments)).collect();
    model(move |request| if has_result(request) { Vec::new() } else { calls.clone() })
}
