//! Objects of the caller by number. Numbers are never used twice.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use app::App;
use contract::{Error, ErrorKind, Result};

use crate::open_models::OpenModel;
use crate::sessions::ChatSession;

/// The objects of one kind.
struct ObjectTable<T>(HashMap<u64, T>);

impl<T: Clone> ObjectTable<T> {
    fn get(&self, number: u64, kind: &str) -> Result<T> {
        self.0.get(&number).cloned().ok_or_else(|| wrong_handle(number, kind))
    }

    fn remove(&mut self, number: u64, kind: &str) -> Result<T> {
        self.0.remove(&number).ok_or_else(|| wrong_handle(number, kind))
    }
}

impl<T> Default for ObjectTable<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

#[derive(Default)]
struct Objects {
    last: u64,
    apps: ObjectTable<App>,
    /// With the number of their application.
    models: ObjectTable<(u64, Arc<OpenModel>)>,
    sessions: ObjectTable<(u64, Arc<ChatSession>)>,
}

static OBJECTS: LazyLock<Mutex<Objects>> = LazyLock::new(Mutex::default);

fn objects() -> MutexGuard<'static, Objects> {
    OBJECTS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wrong_handle(number: u64, kind: &str) -> Error {
    Error::new(
        ErrorKind::Usage,
        "capi.handle",
        format!("{number} is no {kind}, or it was freed before."),
        format!("Pass the {kind} that Inglenook returned, and free it once."),
    )
}

impl Objects {
    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }
}

/// Registers an application.
pub fn add_app(app: App) -> u64 {
    let mut objects = objects();
    let number = objects.next();
    objects.apps.0.insert(number, app);
    number
}

/// Registers a model of an application.
pub fn add_model(of_app: u64, model: OpenModel) -> u64 {
    let mut objects = objects();
    let number = objects.next();
    objects.models.0.insert(number, (of_app, Arc::new(model)));
    number
}

/// Registers a session of an application.
pub fn add_session(of_app: u64, session: ChatSession) -> u64 {
    let mut objects = objects();
    let number = objects.next();
    objects.sessions.0.insert(number, (of_app, Arc::new(session)));
    number
}

/// The application of a number.
pub fn app(number: u64) -> Result<App> {
    objects().apps.get(number, "application")
}

/// The model of a number, with the number of its application.
pub fn model(number: u64) -> Result<(u64, Arc<OpenModel>)> {
    objects().models.get(number, "model")
}

/// The session of a number.
pub fn session(number: u64) -> Result<Arc<ChatSession>> {
    Ok(objects().sessions.get(number, "session")?.1)
}

/// Forgets an application with its models and sessions.
pub fn remove_app(number: u64) -> Result<()> {
    let removed = {
        let mut objects = objects();
        let app = objects.apps.remove(number, "application")?;
        let models: Vec<_> = objects.models.0.extract_if(|_, (of_app, _)| *of_app == number).collect();
        let sessions: Vec<_> = objects.sessions.0.extract_if(|_, (of_app, _)| *of_app == number).collect();
        (app, models, sessions)
    };
    // The end of an application waits for its threads: without the lock.
    drop(removed);
    Ok(())
}

/// Forgets a model.
pub fn remove_model(number: u64) -> Result<()> {
    let removed = objects().models.remove(number, "model")?;
    drop(removed);
    Ok(())
}

/// Forgets a session; what it saved stays.
pub fn remove_session(number: u64) -> Result<()> {
    let removed = objects().sessions.remove(number, "session")?;
    drop(removed);
    Ok(())
}
