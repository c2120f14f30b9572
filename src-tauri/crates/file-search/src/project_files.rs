//! Files of projects: as they are stored, scanned pages behind their file, and as lists show them.

use session::{AttachmentRow, ProjectFileRow, Session};

use contract::Result;
use contract::types::Attachment;

use crate::citations::{info, of_project};
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
