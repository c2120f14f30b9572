//! `nook serve`: serves the web interface and the API over HTTP until a signal ends it.

use app::App;
use contract::Result;
use inference::supervisor::{WorkerPlacement, WorkerProgram};
use serde_json::json;

use crate::args::{Global, ServeArgs};
use crate::out;

pub fn serve(global: &Global, args: ServeArgs) -> Result<()> {
    let mut config = global.app_config()?;
    config.worker = WorkerPlacement::Process(WorkerProgram::this()?);
    let app = App::open(config)?;
    app.downloads_go_on()?;
    let own_key = args.api_key.is_some();
    let data_dir = app.dirs().data.display().to_string();
    let options = server::Options { host: args.host, port: args.port, api_key: args.api_key };
    let listening = server::serve(app, options)?;
    out::json(&json!({ "listening": listening.url }));
    if !own_key {
        out::log(&format!("clients send `Authorization: Bearer KEY`; the key is stored in {data_dir}"));
    }
    listening.run_until_signalled();
    Ok(())
}
