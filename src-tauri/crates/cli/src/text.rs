//! Readable numbers, and tables for the terminal.

/// `1.5 GiB`.
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = n as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{n} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

/// Parses `6442450944`, `6G` or `1.5g`. Errors: a message for the user.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = match text.char_indices().last() {
        Some((at, letter)) if letter.is_ascii_alphabetic() => (&text[..at], letter.to_ascii_uppercase()),
        _ => (text, 'B'),
    };
    let shift = "BKMGT".find(unit).ok_or_else(|| format!("{unit} is not a unit: use K, M, G or T"))?;
    let number: f64 = number.parse().map_err(|_| "a number of bytes, such as 6G".to_string())?;
    let bytes = number * (1u64 << (10 * shift)) as f64;
    match bytes >= 1.0 && bytes < u64::MAX as f64 {
        true => Ok(bytes as u64),
        false => Err("a number from one byte to 16 EiB".into()),
    }
}

/// `3.1 B` parameters.
pub fn count(n: u64) -> String {
    match n {
        0..1_000 => n.to_string(),
        1_000..1_000_000 => format!("{:.1} K", n as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} M", n as f64 / 1e6),
        _ => format!("{:.1} B", n as f64 / 1e9),
    }
}

/// `45 s`, `12 min`, `3 h 20 min`.
pub fn duration(seconds: f64) -> String {
    let seconds = seconds.clamp(0.0, 1e7) as u64;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// Aligns the columns, separated by two spaces.
pub fn table(rows: &[Vec<String>]) -> String {
    let n_columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..n_columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut table = String::new();
    for row in rows {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        table.push_str(cells.join("  ").trim_end());
        table.push('\n');
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(
            (bytes(7), bytes(1536), bytes(3 << 30)),
            ("7 B".into(), "1.5 KiB".into(), "3.0 GiB".into())
        );
        assert_eq!((count(7), count(8_600_000)), ("7".into(), "8.6 M".into()));
    }

    #[test]
    fn bytes_are_read_with_and_without_a_unit() {
        let check = |text, expected| assert_eq!(parse_bytes(text).ok(), expected, "{text}");
        check("7", Some(7));
        check("6G", Some(6 << 30));
        check("1.5k", Some(1536));
        check("3T", Some(3 << 40));
        for wrong in ["", "G", "-1G", "0", "6X", "NaN", "inf", "1e30", "6 GB", "é"] {
            check(wrong, None);
        }
    }

    #[test]
    fn columns_line_up() {
        let rows = [vec!["a".to_string(), "b".into()], vec!["long".into(), "é".into(), "x".into()]];
        assert_eq!(table(&rows), "a     b\nlong  é  x\n");
    }
}
