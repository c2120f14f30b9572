//! When a model was last changed, for the lists of the interfaces.

/// Time of the last change of a model's file, in milliseconds since 1970; that of the starter model is the program's.
/// 0: unknown.
pub fn modified_ms(path: Option<&str>) -> i64 {
    let path = path.map(std::path::PathBuf::from).or_else(|| std::env::current_exe().ok());
    let written = path.and_then(|path| std::fs::metadata(path).ok()?.modified().ok());
    let since_1970 = written.and_then(|written| written.duration_since(std::time::UNIX_EPOCH).ok());
    since_1970.and_then(|time| i64::try_from(time.as_millis()).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_files() {
        let folder = std::env::temp_dir().join(format!("inglenook-model-time-{}", std::process::id()));
        std::fs::write(&folder, "x").unwrap();
        let path = folder.to_str().unwrap();
        let written = std::fs::File::options().write(true).open(path).unwrap();
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_millis(1_700_000_000_000);
        written.set_modified(time).unwrap();
        assert_eq!(modified_ms(Some(path)), 1_700_000_000_000);
        std::fs::remove_file(&folder).unwrap();
        assert_eq!(modified_ms(Some(path)), 0);
        assert!(modified_ms(None) > 0);
    }
}
