//! Writes `docs/USER_GUIDE.md` from the English articles: `make guide`.

use guide::{Guide, Language};

fn main() -> std::io::Result<()> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/USER_GUIDE.md");
    std::fs::write(path, Guide::in_language(Language::English).document())
}
