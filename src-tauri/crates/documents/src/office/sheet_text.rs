//! Writes sheets of a workbook: a heading with the name, then a table for each run of rows.

use crate::block_builder::TableWriter;
use crate::extract_error::{ExtractError, TEXT_MOST};

/// Sheets as Markdown. Never more text than is kept of a file.
#[derive(Default)]
pub struct SheetText {
    text: String,
    table: TableWriter,
    row: Vec<String>,
    n_cell_bytes: usize,
}

impl SheetText {
    /// Begins a sheet.
    pub fn begin_sheet(&mut self, name: &str, is_hidden: bool) {
        self.end_table();
        let hidden = if is_hidden { " (hidden)" } else { "" };
        self.block(&format!("## {}{hidden}", name.replace('\n', " ")));
    }

    /// A line that is no row.
    pub fn note(&mut self, line: &str) {
        self.end_table();
        self.block(line);
    }

    /// Sets a cell of the row; `column` counts from 0. Empty ones need not be set.
    pub fn cell(&mut self, column: usize, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        let n_new = (column + 1).saturating_sub(self.row.len());
        self.n_cell_bytes = self.n_cell_bytes.saturating_add(n_new * 2 + text.len());
        if self.is_full() {
            return;
        }
        self.row.resize(self.row.len().max(column + 1), String::new());
        self.row[column] = text.to_owned();
    }

    /// Ends a row that stands there `n` times. Empty rows end the table.
    pub fn end_row(&mut self, n: usize) {
        let row = std::mem::take(&mut self.row);
        if row.is_empty() {
            return self.end_table();
        }
        for _ in 0..n {
            if self.is_full() {
                return;
            }
            self.table.row(&row);
        }
    }

    /// Rows are missing between the last one and the next.
    pub fn gap(&mut self) {
        self.end_table();
    }

    /// There is no use in reading on.
    pub fn is_full(&self) -> bool {
        self.text.len() + self.table.n_bytes() > TEXT_MOST || self.n_cell_bytes > 4 * TEXT_MOST
    }

    /// All sheets. Error: they are longer than is kept of a file.
    pub fn finish(mut self) -> Result<String, ExtractError> {
        let is_full = self.is_full();
        self.end_table();
        if is_full || self.text.len() > TEXT_MOST {
            return Err(ExtractError::too_long(self.text.len()));
        }
        Ok(self.text)
    }

    fn end_table(&mut self) {
        let table = std::mem::take(&mut self.table).finish();
        self.block(&table);
    }

    fn block(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if !self.text.is_empty() {
            self.text.push_str("\n\n");
        }
        self.text.push_str(text);
    }
}

/// With the fifteen digits that Excel keeps.
pub fn number_text(number: f64) -> String {
    if number == 0.0 || !number.is_finite() {
        return if number == 0.0 { "0".into() } else { number.to_string() };
    }
    let rounded: f64 = format!("{number:.14e}").parse().unwrap_or(number);
    match rounded.abs() {
        1e-9..1e21 => rounded.to_string(),
        _ => format!("{rounded:e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_sheet_become_tables() {
        let mut sheet = SheetText::default();
        sheet.begin_sheet("Costs", false);
        sheet.cell(0, "Item");
        sheet.cell(2, "Price");
        sheet.end_row(1);
        sheet.cell(1, "x");
        sheet.end_row(2);
        sheet.end_row(1_000_000);
        sheet.cell(0, "below");
        sheet.end_row(1);
        sheet.begin_sheet("Empty", true);
        assert_eq!(
            sheet.finish().unwrap(),
            "## Costs\n\n| Item | | Price |\n| --- | --- | --- |\n| | x |\n| | x |\n\n| below |\n| --- |\n\n## Empty (hidden)"
        );
    }

    #[test]
    fn wide_and_repeated_rows_have_an_end() {
        let mut sheet = SheetText::default();
        for _ in 0..10_000 {
            sheet.cell(16_383, "x");
            sheet.end_row(1);
        }
        assert!(sheet.finish().is_err());
        let mut sheet = SheetText::default();
        sheet.cell(0, "x");
        sheet.end_row(usize::MAX);
        assert!(sheet.finish().is_err());
    }

    #[test]
    fn numbers_have_the_digits_that_people_typed() {
        for (number, expected) in [
            (0.1 + 0.2, "0.3"),
            (1e15, "1000000000000000"),
            (-2.5, "-2.5"),
            (1e-12, "1e-12"),
            (6.02e23, "6.02e23"),
            (0.0, "0"),
        ] {
            assert_eq!(number_text(number), expected);
        }
    }
}
