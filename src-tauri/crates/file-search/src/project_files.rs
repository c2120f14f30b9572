//! Files of projects: as they are stored, scanned pages behind their file, and as lists show them.

use session::{AttachmentRow, BranchMessage, ProjectFileRow, Session};

use contract::Result;
use contract::types::Attachment;

use crate::citations::{info, is_image, of_project};
use crate::scanned_pages::describe;

/// A file with its scanned pages as a project keeps them.
pub fn for_project(
    file: AttachmentRow,
    pages: impl IntoIterator<Item = AttachmentRow>,
    folder: &str,
    created_ms: i64,
) -> Vec<ProjectFileRow> {
    let row = |id: String, row: AttachmentRow| ProjectFileRow {
        id,
        folder: folder.into(),
        document: row.document,
        name: row.name,
        kind: row.kind,
        bytes: row.bytes,
        findings: row.findings,
        created_ms,
    };
    let first = row(file.id.clone(), file);
    let id = first.id.clone();
    let pages = (1..).zip(pages).map(|(number, page)| row(ProjectFileRow::page_id(&id, number), page));
    std::iter::once(first).chain(pages).collect()
}

/// Files of a project as lists show them: their scanned pages are counted, not listed.
pub fn project_files(session: &Session, folder: &str) -> Result<Vec<Attachment>> {
    let rows = session.project_files(folder)?;
    let shown = |file: &ProjectFileRow| {
        let n_pages = rows.iter().filter(|row| row.is_page_of(&file.id)).count();
        let text = if n_pages > 0 { session.document(&file.document)? } else { None };
        let scanned = text.and_then(|text| describe(&text, n_pages));
        Ok(Attachment { whole: None, scanned, ..info(of_project(file.clone())) })
    };
    rows.iter().filter(|row| !row.is_page()).map(shown).collect()
}

/// Files of a project that a conversation was given without their scanned pages, because its model could not see: each
/// before its pages. Empty where pages were given: those that are missing then had no room.
pub fn with_late_pages(
    session: &Session,
    folder: &str,
    branch: &[BranchMessage],
) -> Result<Vec<AttachmentRow>> {
    let given = || branch.iter().flat_map(|it| &it.attachments.files).filter(|file| file.from_project);
    if given().next().is_none() || given().any(is_image) {
        return Ok(Vec::new());
    }
    let rows = session.project_files(folder)?;
    let is_given = |file: &ProjectFileRow| given().any(|it| it.document == file.document);
    let pages = |file: &ProjectFileRow| rows.iter().filter(|row| row.is_page_of(&file.id)).count();
    let files = rows.iter().filter(|row| !row.is_page() && is_given(row) && pages(row) > 0);
    let with_pages = |file: &ProjectFileRow| {
        let id = file.id.clone();
        rows.iter().filter(move |row| row.id == id || row.is_page_of(&id)).cloned().map(of_project)
    };
    Ok(files.flat_map(with_pages).collect())
}
