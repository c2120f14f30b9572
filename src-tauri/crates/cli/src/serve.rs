//! `nook serve`: serves the web interface and the API over HTTP until a signal ends it.

use app::App;
use contract::Result;
use serde_json::json;

use crate::args::{Global, ServeArgs};
use crate::{out, server_key};

pub fn serve(global: &Global, args: ServeArgs) -> Result<()> {
    // Its threads come and go with its requests, for weeks.
    kernels::cpu::allocator::limit_arenas();
    let sources = args.sources.parsed()?;
    let api_key = server_key::api_key(&args.key, &|name| std::env::var(name).ok())?;
    let app = App::open(global.app_config_apart()?)?;
    app.downloads_go_on()?;
    let own_key = api_key.is_some();
    let data_dir = app.dirs().data.display().to_string();
    let options = server::Options { host: args.host, port: args.port, api_key, sources };
    let listening = server::serve(app, options)?;
    out::json(&json!({ "listening": listening.url }));
    if !own_key {
        out::log(&format!("clients send `Authorization: Bearer KEY`; the key is stored in {data_dir}"));
    }
    listening.run_until_signalled();
    Ok(())
}
