//! What the web view is told by its environment before it starts, so that it takes less memory.
//!
//! WebKitGTK reads it once, and no variable of a running program can be set safely. So the program begins anew with it
//! in the same process, before it has opened, locked or asked anything: number, arguments, name and open pipes stay.

use std::ffi::OsString;
#[cfg(target_os = "linux")]
use std::path::Path;

/// Where no graphics card draws, the web view paints what has changed itself, instead of handing layers to software that
/// plays a card: about 100 MB less for a page that stands still.
const WITHOUT_GPU: &[(&str, &str)] = &[("WEBKIT_DISABLE_DMABUF_RENDERER", "1")];

/// Those that are still to be set. What somebody has set stays, and once all are, there is nothing to do: the program
/// begins anew once at most.
fn missing(
    has_gpu: bool,
    is_set: impl Fn(&str) -> bool,
) -> impl Iterator<Item = (&'static str, &'static str)> {
    let wanted = if has_gpu { &[][..] } else { WITHOUT_GPU };
    wanted.iter().copied().filter(move |(name, _)| !is_set(name))
}

/// Begins anew where that saves memory; returns where it doesn't, or can't.
#[cfg(target_os = "linux")]
pub fn restart_if_useful(args: impl IntoIterator<Item = OsString>) {
    use std::os::unix::process::CommandExt;

    let more: Vec<_> =
        missing(has_gpu(Path::new("/dev/dri")), |name| std::env::var_os(name).is_some()).collect();
    // By its own path, so that it keeps its name where processes are listed. One that was replaced by an update since is
    // not at it any more.
    let program = std::env::current_exe().ok().filter(|path| path.is_file());
    let (Some(program), false) = (program, more.is_empty()) else { return };
    let mut args = args.into_iter();
    let mut command = std::process::Command::new(program);
    if let Some(called) = args.next() {
        command.arg0(called);
    }
    // It comes back only where it failed: then the window takes more memory, and nothing else is lost.
    let error = command.args(args).envs(more).exec();
    eprintln!("The window uses more memory than necessary: {error}.");
}

#[cfg(not(target_os = "linux"))]
pub fn restart_if_useful(_args: impl IntoIterator<Item = OsString>) {}

/// Whether there is a device that draws.
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
    fn a_card_is_a_device_that_renders() {
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
