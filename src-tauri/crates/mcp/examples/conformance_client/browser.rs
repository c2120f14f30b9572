//! Stands for the user's browser: opens the address of a sign-in, and allows everything.

use contract::{Error, Result};
use tokio::runtime::Handle;

/// Opens an address and follows its redirects, the last one to this computer.
pub fn open(runtime: &Handle, address: &str) -> Result<()> {
    let client =
        reqwest::Client::builder().tls_backend_preconfigured(tls::client_config().map_err(Error::bug)?);
    let client = client.no_proxy().build().map_err(Error::bug)?;
    let page = runtime.block_on(async { client.get(address).send().await });
    page.map(drop).map_err(|error| Error::input("browser", format!("The page did not open: {error}."), ""))
}
