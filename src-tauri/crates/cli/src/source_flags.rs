//! Who else may use a server: other host names and web pages.

use clap::Args;
use contract::Result;
use server::AllowedSources;

/// Hosts and origins beside the server's own.
#[derive(Debug, Args)]
pub struct SourceFlags {
    /// Also accept requests under this host name, such as host.docker.internal; may be repeated
    #[arg(long, value_name = "NAME")]
    pub allow_host: Vec<String>,
    /// Let web pages of this origin use the server, such as http://localhost:3000; may be repeated
    #[arg(long, value_name = "ORIGIN")]
    pub allow_origin: Vec<String>,
}

impl SourceFlags {
    /// Checks them. Errors: those of [`AllowedSources::new`].
    pub fn parsed(&self) -> Result<AllowedSources> {
        AllowedSources::new(&self.allow_host, &self.allow_origin)
    }
}
