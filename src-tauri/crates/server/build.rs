//! Embeds the built UI as a table of `include_bytes!`. Copies the files first, so that a concurrent UI build can't
//! break this one.
//!
//! Without `ui/dist` the table is empty, and the server shows a placeholder page.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let dist = Path::new(&env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?).join("../../../ui/dist");
    println!("cargo::rerun-if-changed={}", dist.display());
    let mut files = Vec::new();
    if dist.is_dir() {
        collect(&dist, &mut files)?;
        files.sort();
    } else {
        println!("cargo::warning=ui/dist is missing: the server will have no UI. Build it by `make ui`.");
    }
    let out = PathBuf::from(env::var("OUT_DIR").map_err(io::Error::other)?);
    let mut table = String::from("&[\n");
    for (index, file) in files.iter().enumerate() {
        let name = file.strip_prefix(&dist).map_err(io::Error::other)?;
        let name = name.to_string_lossy().replace('\\', "/");
        let copy = format!("ui_{index}");
        fs::copy(file, out.join(&copy))?;
        writeln!(table, "    ({name:?}, include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{copy}\"))),")
            .map_err(io::Error::other)?;
    }
    table.push(']');
    fs::write(out.join("ui_files.rs"), table)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
