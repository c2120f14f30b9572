//! A test that cannot run says so, and `.make/test.py` counts it as skipped.
//!
//! Rust's harness knows no skipping at run time: the marker lines go around its capture of output, to stderr itself.

use std::fmt::Arguments;
use std::io::Write;

/// `.ci/run` sets this to 1 where the conformance data are: then their absence is a failure.
const REQUIRE_VARIABLE: &str = "INGLENOOK_REQUIRE_REFERENCE";

/// What a test lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// Conformance data.
    Reference,
    /// A GPU, or a feature of it.
    Gpu,
    /// Another program.
    Program,
    /// A feature of the operating system.
    Platform,
}

/// Whether missing conformance data are a failure.
pub fn is_reference_required() -> bool {
    std::env::var(REQUIRE_VARIABLE).is_ok_and(|value| value == "1")
}

/// Ends the test as skipped: `skip!(Missing::Reference, "no {path}")`.
#[macro_export]
macro_rules! skip {
    ($missing:expr, $($reason:tt)+) => {{
        fn here() {}
        $crate::report_test($crate::test_name(here), $missing, format_args!($($reason)+));
        return;
    }};
}

/// Says that a part of the test cannot run; the rest goes on: `skip_part!(Missing::Reference, "no {path}")`.
#[macro_export]
macro_rules! skip_part {
    ($missing:expr, $($reason:tt)+) => {{
        fn here() {}
        $crate::report_part($crate::test_name(here), $missing, format_args!($($reason)+));
    }};
}

/// The path of the function around `here`, without its crate: `quants::mixes`.
#[doc(hidden)]
pub fn test_name<F>(_: F) -> &'static str {
    let path = std::any::type_name::<F>();
    let path = path.strip_suffix("::here").unwrap_or(path).trim_end_matches("::{{closure}}");
    path.split_once("::").map_or(path, |(_, inner)| inner)
}

/// Prints the marker of a skipped test. Panics if what is missing is required.
#[doc(hidden)]
pub fn report_test(name: &str, missing: Missing, reason: Arguments) {
    report("SKIPPED", name, missing, reason);
}

/// Prints the marker of a skipped part. Panics if what is missing is required.
#[doc(hidden)]
pub fn report_part(name: &str, missing: Missing, reason: Arguments) {
    report("PARTLY SKIPPED", name, missing, reason);
}

fn report(marker: &str, name: &str, missing: Missing, reason: Arguments) {
    let fails = missing == Missing::Reference && is_reference_required();
    assert!(!fails, "{name}: {reason}, and {REQUIRE_VARIABLE} is set");
    // A line to itself: with one thread the harness has begun one already. If stderr is gone, so is the reader.
    let _ = std::io::stderr().lock().write_all(format!("\n{marker} {name}: {reason}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_skipped_test_is_known_by_its_path() {
        fn here() {}
        assert_eq!(super::test_name(here), "skip::tests::a_skipped_test_is_known_by_its_path");
        let inside = || {
            fn here() {}
            super::test_name(here)
        };
        assert_eq!(inside(), "skip::tests::a_skipped_test_is_known_by_its_path");
    }
}
