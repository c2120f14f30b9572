//! Environment variables that reduce the memory use of WebKitGTK.
//!
//! WebKitGTK reads them once, and a running program can't set variables safely. So the program re-executes itself in
//! the same process before it opens or locks anything. Its process id, arguments, name and pipes stay the same.

use std::ffi::OsString;
#[cfg(target_os = "linux")]
use std::path::Path;

/// Without a GPU, the web view paints only changes itself instead of compositing layers in software. Saves about
/// 100 MB for an idle page.
#[cfg(any(target_os = "linux", test))]
const WITHOUT_GPU: &[(&str, &str)] = &[("WEBKIT_DISABLE_DMABUF_RENDERER", "1")];

/// Variables still to be set. Existing values are kept, so the program restarts at most once.
#[cfg(any(target_os = "linux", test))]
fn missing(
    has_gpu: bool,
    is_set: impl Fn(&str) -> bool,
) -> impl Iterator<Item = (&'static str, &'static str)> {
    let wanted = if has_gpu { &[][..] } else { WITHOUT_GPU };
    wanted.iter().copied().filter(move |(name, _)| !is_set(name))
}

/// Re-executes the program if that saves memory. Returns if it doesn't, or if it fails.
#[cfg(target_os = "linux")]
pub fn restart_if_useful(args: impl IntoIterator<Item = OsString>) {
    use std::os::unix::process::CommandExt;

    let more: Vec<_> =
        missing(has_gpu(Path::new("/dev/dri")), |name| std::env::var_os(name).is_some()).collect();
    // Uses its own path, so that it keeps its name in process lists. After an update the path may be gone.
    let program = std::env::current_exe().ok().filter(|path| path.is_file());
    let (Some(program), false) = (program, more.is_empty()) else { return };
    let mut args = args.into_iter();
    let mut command = std::process::Command::new(program);
    if let Some(called) = args.next() {
        command.arg0(called);
    }
    // `exec` returns only on failure; then the window just uses more memory.
    let error = command.args(args).envs(more).exec();
    eprintln!("The window uses more memory than necessary: {error}.");
}

#[cfg(not(target_os = "linux"))]
pub fn restart_if_useful(_args: impl IntoIterator<Item = OsString>) {}

/// Whether the system has a render device.
#[cfg(target_os = "linux")]
fn has_gpu(devices: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(devices) else { return false };
    entries.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with("renderD"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_is_not_set_again() {
        let names = |has_gpu, set: &[&str]| -> Vec<&str> {
            missing(has_gpu, |name| set.contains(&name)).map(|(name, _)| name).collect()
        };
        assert_eq!(names(false, &[]), ["WEBKIT_DISABLE_DMABUF_RENDERER"]);
        assert_eq!(names(false, &["WEBKIT_DISABLE_DMABUF_RENDERER"]), [""; 0]);
        assert_eq!(names(true, &[]), [""; 0]);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_gpu_is_a_render_device() {
        let folder = std::env::temp_dir().join(format!("inglenook-dri-{}", std::process::id()));
        assert!(!has_gpu(&folder));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("card0"), "").unwrap();
        assert!(!has_gpu(&folder));
        std::fs::write(folder.join("renderD128"), "").unwrap();
        assert!(has_gpu(&folder));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
