//! Office files that are no ZIP archives: compound files (MS-CFB), known by the names of their streams.

use crate::extract_error::ExtractError;

/// The first bytes of a compound file.
pub const SIGNATURE: &[u8] = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1";

/// Why a compound file can't be used.
pub fn refusal(bytes: &[u8]) -> ExtractError {
    let has = |name: &str| {
        let wide: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
        bytes.windows(wide.len()).any(|at| at == wide)
    };
    let old = |what: &str, ending: &str| {
        ExtractError::new(
            format!("it is {what} in the format from before 2007"),
            format!("Save it as {ending} or PDF and attach that."),
        )
    };
    if has("EncryptedPackage") {
        ExtractError::locked()
    } else if has("WordDocument") {
        old("a Word document", ".docx")
    } else if has("PowerPoint Document") {
        old("a presentation", ".pptx")
    } else if has("Workbook") || has("Book\0") {
        old("an Excel workbook", ".xlsx")
    } else if has("__properties_version1.0") {
        ExtractError::new("it is an Outlook message", "Save it as text or HTML and attach that.")
    } else {
        ExtractError::new(
            "it is a document in an old Office format",
            "Save it as PDF, text or CSV and attach that.",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_tell_what_it_is() {
        for (name, why, remedy) in [
            ("EncryptedPackage", "password", "without the password"),
            ("WordDocument", "Word", ".docx"),
            ("PowerPoint Document", "presentation", ".pptx"),
            ("Workbook", "Excel", ".xlsx"),
            ("Other", "old Office format", "PDF"),
        ] {
            let wide: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
            let error = refusal(&[SIGNATURE, &[0; 99], &wide].concat());
            assert!(error.why.contains(why) && error.remedy.contains(remedy), "{error:?}");
        }
    }
}
