//! Beyond one machine: two real servers behind nginx, set up as docs/SCALING.md says, and two endpoints of one name without
//! it. One of the two is killed in the middle of a load: every question is answered, and answered once.

use std::collections::HashMap;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use app::App;
use app::AppConfig;
use contract::types::{EndpointAddArgs, EndpointHealth, MessageState, SendArgs, TurnEventKind};
use inglenook_tests::workspace_root;
use serde_json::json;

use super::kill9::{KEY, NookServer};

const CLIENTS: usize = 4;

/// Asked by each client, one after the other.
const QUESTIONS: [&str; 6] = [
    "How do I add a model?",
    "Where are my chats kept?",
    "What is a token?",
    "How do I add a model?",
    "Can I search my chats?",
    "What is a token?",
];

/// Answers after which one of the servers is killed.
const KILL_AFTER: usize = 6;

/// A folder and the application in it, with models of other servers.
struct RemoteApp {
    folder: PathBuf,
    app: App,
}

impl RemoteApp {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("inglenook-beyond-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let config = AppConfig { data_dir: Some(folder.join("desk")), ..AppConfig::default() };
        let app = App::open(config).expect("a temporary folder");
        for (key, value) in [("temperature", json!(0)), ("max_tokens", json!(40)), ("titles", json!(false))] {
            app.settings_set(key, &value).expect("a setting");
        }
        Self { folder, app }
    }

    fn serving(&self, name: &str) -> NookServer {
        NookServer::start(&self.folder.join(name))
    }

    fn add(&self, name: &str, address: &str) {
        let (url, key) = (format!("http://{address}"), Some(KEY.to_owned()));
        let args = EndpointAddArgs { name: name.into(), url, key, ..EndpointAddArgs::default() };
        let info = self.app.endpoint_add(args).expect("an endpoint");
        assert_eq!(info.health, EndpointHealth::Up, "{info:?}");
        assert_eq!(info.models.first().map(|model| model.id.as_str()), Some("starter"));
    }

    /// Follows a turn to its end; the code of its failure.
    fn follow(&self, turn: &str) -> Option<String> {
        let mut error = None;
        for event in self.app.watch_turn(turn, 0).expect("a turn").flatten() {
            if let TurnEventKind::Failed { error: failed } = event.kind {
                error = Some(failed.code);
            }
        }
        error
    }

    /// The whole answer to a question in a new chat, and whether it had to be continued.
    fn ask(&self, model: &str, question: &str) -> RemoteAnswer {
        let args = SendArgs { text: question.into(), model: Some(model.into()), ..SendArgs::default() };
        let started = self.app.send(args).expect("it is taken");
        let mut error = self.follow(&started.turn);
        let partial = self.answer(&started.conversation);
        let was_broken = error.as_deref() == Some("remote.broken");
        if was_broken {
            assert!(!partial.is_empty(), "what breaks before its first word is asked again");
            let again = self.app.message_continue(&started.assistant_message).expect("it goes on");
            error = self.follow(&again.turn);
        }
        assert_eq!(error, None, "{question}");
        let text = self.answer(&started.conversation);
        assert!(text.starts_with(&partial), "{text:?} goes on from {partial:?}");
        RemoteAnswer { question: question.into(), text, was_broken }
    }

    /// The text of the one answer of a chat.
    fn answer(&self, conversation: &str) -> String {
        let messages = self.app.conversation_get(conversation).expect("it is there").messages;
        assert_eq!((messages.len(), messages[1].versions), (2, 1), "one question, one answer");
        assert_ne!(messages[1].state, MessageState::Streaming);
        messages[1].text.clone()
    }

    /// Asks `model` with several clients at once, and kills a server meanwhile.
    fn load(&self, model: &str, kill: &NookServer) {
        let expected: HashMap<&str, String> = QUESTIONS
            .iter()
            .map(|question| (*question, self.ask("survivor/starter", question).text))
            .collect();
        let n_done = AtomicUsize::new(0);
        let all: Vec<RemoteAnswer> = std::thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS)
                .map(|_| {
                    scope.spawn(|| {
                        let ask = |question: &&str| {
                            let answered = self.ask(model, question);
                            if n_done.fetch_add(1, Ordering::SeqCst) + 1 == KILL_AFTER {
                                kill.kill_now();
                            }
                            answered
                        };
                        QUESTIONS.iter().map(ask).collect::<Vec<_>>()
                    })
                })
                .collect();
            clients.into_iter().flat_map(|client| client.join().expect("a client")).collect()
        });
        let n_broken = all.iter().filter(|answered| answered.was_broken).count();
        for RemoteAnswer { question, text, .. } in all.iter().filter(|answered| !answered.was_broken) {
            assert_eq!(text, &expected[question.as_str()], "as one server alone says it");
        }
        println!("{} answered by {model}, {n_broken} of them in two parts, 0 lost, 0 doubled", all.len());
        assert_eq!(all.len(), CLIENTS * QUESTIONS.len());
        let n_chats = self.app.conversations_list().expect("a list").len();
        assert_eq!(n_chats, all.len() + QUESTIONS.len());
    }
}

struct RemoteAnswer {
    question: String,
    text: String,
    was_broken: bool,
}

/// Ends with the test.
struct Nginx(Child);

impl Nginx {
    /// The configuration of docs/SCALING.md at free ports.
    fn start(folder: &Path, servers: [&str; 2]) -> (Self, String) {
        let page = workspace_root().join("docs/SCALING.md");
        let page = std::fs::read_to_string(page).expect("docs/SCALING.md");
        let config = page.split("```nginx\n").nth(1).and_then(|rest| rest.split("```").next());
        let config = config.expect("a configuration for nginx in docs/SCALING.md");
        // Free now; another program may take it, but hardly does.
        let free = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a port");
        let front = free.to_string();
        let written = [
            ("127.0.0.1:8650", front.as_str()),
            ("127.0.0.1:8651", servers[0]),
            ("127.0.0.1:8652", servers[1]),
        ];
        let config = written.iter().fold(config.to_owned(), |config, (from, to)| {
            assert!(config.contains(from), "docs/SCALING.md has no {from}");
            config.replace(from, to)
        });
        std::fs::create_dir_all(folder).expect("a temporary folder");
        let places: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|kind| format!("{kind}_temp_path {kind};\n"))
            .concat();
        let whole = format!("pid nginx.pid;\nevents {{}}\nhttp {{\naccess_log off;\n{places}{config}}}\n");
        std::fs::write(folder.join("nginx.conf"), whole).expect("a temporary file");
        let child = Command::new("nginx")
            .arg("-p")
            .arg(folder)
            .args(["-c", "nginx.conf", "-e", "error.log", "-g", "daemon off;"])
            .stdout(Stdio::null())
            .spawn()
            .expect("nginx is installed (.make/setup.sh test)");
        let mut nginx = Self(child);
        while TcpStream::connect(&front).is_err() {
            if let Some(ended) = nginx.0.try_wait().expect("a child") {
                let log = std::fs::read_to_string(folder.join("error.log")).unwrap_or_default();
                panic!("nginx ended: {ended}\n{log}");
            }
            std::thread::yield_now();
        }
        (nginx, front)
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // The workers end with their master when it is asked, not when it is killed.
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

impl Drop for RemoteApp {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn behind_nginx_one_of_two_is_killed_and_nothing_is_lost() {
    let desk = RemoteApp::new("nginx");
    let (first, second) = (desk.serving("first"), desk.serving("second"));
    let (_nginx, front) = Nginx::start(&desk.folder.join("nginx"), [first.address(), second.address()]);
    desk.add("lab", &front);
    desk.add("survivor", second.address());
    desk.load("lab/starter", &first);
    first.kill();
    second.kill();
}

#[test]
fn of_two_endpoints_of_one_name_one_is_killed_and_nothing_is_lost() {
    let desk = RemoteApp::new("names");
    let (first, second) = (desk.serving("first"), desk.serving("second"));
    desk.add("lab", first.address());
    desk.add("lab", second.address());
    desk.add("survivor", second.address());
    desk.load("lab/starter", &first);
    first.kill();
    second.kill();
}
