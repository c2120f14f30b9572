//! Writes `ui/src/backend/bindings.ts`.

fn main() -> std::io::Result<()> {
    let path = std::path::Path::new(app::bindings::PATH);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, app::bindings::typescript())
}
