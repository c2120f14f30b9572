//! How this copy of the program was installed, and with that who may replace its files.

use std::path::Path;

use contract::types::PackageKind;

/// What the bundler wrote into the program, corrected by what surrounds it.
///
/// - An AppImage that was unpacked has no file to replace: `APPIMAGE` names it only while it is mounted.
/// - A Flatpak has the same program inside; `FLATPAK_ID` is set by its sandbox.
/// - On macOS every program claims to be an application; one that lies in no `.app` folder was built from source.
pub fn package_kind(
    bundled: PackageKind,
    program: &Path,
    variable: &dyn Fn(&str) -> Option<String>,
) -> PackageKind {
    let has = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
    if has("FLATPAK_ID") {
        return PackageKind::Flatpak;
    }
    let is_usable = match bundled {
        PackageKind::AppImage => has("APPIMAGE"),
        PackageKind::MacApp => is_in_app_folder(program),
        PackageKind::Deb
        | PackageKind::Rpm
        | PackageKind::Flatpak
        | PackageKind::Nsis
        | PackageKind::Msi
        | PackageKind::Source => true,
    };
    if is_usable { bundled } else { PackageKind::Source }
}

/// Whether a program is `Name.app/Contents/MacOS/program`.
fn is_in_app_folder(program: &Path) -> bool {
    let mut folders = program.ancestors().skip(1);
    let is_named = |folder: Option<&Path>, name: &str| {
        folder.and_then(Path::file_name).is_some_and(|found| found.eq_ignore_ascii_case(name))
    };
    is_named(folders.next(), "MacOS")
        && is_named(folders.next(), "Contents")
        && folders.next().and_then(Path::extension).is_some_and(|ending| ending.eq_ignore_ascii_case("app"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_surroundings_decide_what_a_bundle_is() {
        use PackageKind::*;
        let check = |bundled, program: &str, variables: &[&str], expected| {
            let variable = |name: &str| variables.contains(&name).then(|| "x".to_owned());
            assert_eq!(
                package_kind(bundled, Path::new(program), &variable),
                expected,
                "{bundled:?} {program}"
            );
        };
        check(AppImage, "/tmp/.mount_x/usr/bin/inglenook", &["APPIMAGE"], AppImage);
        check(AppImage, "/home/me/squashfs-root/usr/bin/inglenook", &[], Source);
        check(Deb, "/usr/bin/inglenook", &[], Deb);
        // A Flatpak is made from the files of a .deb.
        check(Deb, "/app/bin/inglenook", &["FLATPAK_ID"], Flatpak);
        check(Rpm, "/usr/bin/inglenook", &["APPIMAGE"], Rpm);
        check(MacApp, "/Applications/Inglenook.app/Contents/MacOS/inglenook", &[], MacApp);
        check(MacApp, "/Users/me/inglenook/target/release/inglenook", &[], Source);
        check(MacApp, "/Users/me/Contents/MacOS/inglenook", &[], Source);
        check(Nsis, r"C:\Users\me\AppData\Local\Inglenook\inglenook.exe", &[], Nsis);
        check(Source, "/home/me/target/debug/inglenook", &[], Source);
    }

    #[test]
    fn an_empty_variable_is_none() {
        let variable = |_: &str| Some(String::new());
        assert_eq!(package_kind(PackageKind::AppImage, Path::new("/x"), &variable), PackageKind::Source);
    }

    #[test]
    fn packages_of_the_system_are_replaced_by_the_system() {
        use PackageKind::*;
        for (package, expected) in [
            (AppImage, true),
            (MacApp, true),
            (Nsis, true),
            (Msi, true),
            (Deb, false),
            (Rpm, false),
            (Flatpak, false),
            (Source, false),
        ] {
            assert_eq!(package.can_replace_itself(), expected, "{package:?}");
        }
    }
}
