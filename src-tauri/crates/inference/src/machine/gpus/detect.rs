//! Detects GPUs, and what they are benchmarked against.

use std::path::Path;

use io::{Io, OperatingSystem};
use kernels::gpu::{AdapterInfo, adapters};
use weights::WeightFile;

use crate::machine::speeds;
use contract::Result;

/// Source of the adapters.
#[derive(Clone, Copy)]
pub struct Finder {
    /// Those that may be chosen. Drivers are asked only where the system has a device.
    pub look: fn(&dyn Io) -> Vec<AdapterInfo>,
    /// All that any driver tells of.
    pub all: fn() -> Vec<AdapterInfo>,
    /// Layers of a made-up model to race with.
    pub layers: fn() -> Result<WeightFile>,
    /// Software adapters count as GPUs: for tests.
    pub software: bool,
}

impl Finder {
    /// This computer's.
    pub const SYSTEM: Self = Self { look: present, all: adapters, layers: usual, software: false };
}

fn present(io: &dyn Io) -> Vec<AdapterInfo> {
    if has_device(io, Path::new("/dev")) { adapters() } else { Vec::new() }
}

fn usual() -> Result<WeightFile> {
    speeds::layers("q4_k_s")
}

/// Whether Linux has a device that may be a GPU, so that drivers, software ones among them, aren't
/// loaded in vain. Other systems load their driver anyway.
pub fn has_device(io: &dyn Io, devices: &Path) -> bool {
    has_device_on(OperatingSystem::HERE, io, devices)
}

fn has_device_on(system: OperatingSystem, io: &dyn Io, devices: &Path) -> bool {
    match system {
        OperatingSystem::MacOs | OperatingSystem::Windows => return true,
        OperatingSystem::Linux => {}
    }
    let names = |folder: &Path| -> Vec<String> {
        let paths = io.list(folder).unwrap_or_default();
        paths.iter().filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect()
    };
    let is_card = |name: &String| {
        // NVIDIA's own, Windows below Linux, Qualcomm's, ARM's
        let nvidia = name.strip_prefix("nvidia").and_then(|rest| rest.chars().next());
        nvidia.is_some_and(|c| c.is_ascii_digit()) || name == "dxg" || name == "kgsl-3d0" || name == "mali0"
    };
    names(devices).iter().any(is_card)
        || names(&devices.join("dri")).iter().any(|name| name.starts_with("renderD"))
}

#[cfg(test)]
mod tests {
    use io::RealIo;

    use super::*;
    use test_support::TempDir;

    #[test]
    #[cfg(target_os = "linux")]
    fn drivers_are_asked_only_where_there_is_a_device() {
        for (names, expected) in [
            (&["null", "nvidia-modeset", "nvidiactl"][..], false),
            (&["null", "nvidia0"], true),
            (&["dxg"], true),
            (&["dri/card0"], false),
            (&["dri/card0", "dri/renderD128"], true),
        ] {
            let folder = TempDir::new();
            for name in names {
                let path = folder.path().join(name);
                RealIo.create_dir_all(path.parent().unwrap()).unwrap();
                RealIo.write_atomic(&path, b"").unwrap();
            }
            assert_eq!(has_device(&RealIo, folder.path()), expected, "{names:?}");
        }
        assert!(!has_device(&RealIo, Path::new("/nowhere")));
    }

    #[test]
    fn other_systems_than_linux_are_asked_in_any_case() {
        for system in [OperatingSystem::MacOs, OperatingSystem::Windows] {
            assert!(has_device_on(system, &RealIo, Path::new("/nowhere")), "{system:?}");
        }
        assert!(!has_device_on(OperatingSystem::Linux, &RealIo, Path::new("/nowhere")));
    }
}
