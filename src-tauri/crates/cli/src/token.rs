//! `nook models token`: the Hugging Face access token. Never prints the token itself.

use app::App;
use contract::Error;
use contract::Result;
use contract::types::{HubToken, HubTokenArgs, KeyPlace, TokenPlace};

use crate::{endpoints, out};

/// `gives` reads a new token from standard input; `forgets` removes the saved one.
pub fn token(app: &App, gives: bool, forgets: bool, as_json: bool) -> Result<()> {
    let token = match (gives, forgets) {
        (true, _) => {
            let token = endpoints::read_key()?;
            if token.is_empty() {
                let remedy = "Pipe a token to it. Create one in your Hugging Face account settings.";
                return Err(Error::input("keys.key", "No token was found on standard input.", remedy));
            }
            app.hub_token_set(&HubTokenArgs { token })?
        }
        (false, true) => app.hub_token_set(&HubTokenArgs::default())?,
        (false, false) => app.hub_token()?,
    };
    if as_json {
        out::json(&token)
    } else {
        out::line(&describe_token(&token))
    }
    Ok(())
}

fn describe_token(token: &HubToken) -> String {
    let place = match token.place {
        Some(TokenPlace::Environment) => "the environment (HF_TOKEN)",
        Some(TokenPlace::Keychain) => "the system's keychain",
        Some(TokenPlace::File) => "an encrypted file in the data folder",
        Some(TokenPlace::HubFile) => "the file of the Hugging Face tools",
        None => {
            let keeps = match token.keeps {
                KeyPlace::Keychain => "the system's keychain",
                KeyPlace::File => {
                    "an encrypted file in the data folder (no keychain is available, or the settings choose a file)"
                }
            };
            return format!("No token is set. --stdin saves one in {keeps}.");
        }
    };
    format!("The token is in {place}.")
}
