//! Milliseconds since 1970 as a date. UTC.

/// Such as `2026-01-15T12:00:00`.
pub fn date_time(utc_ms: i64) -> String {
    let seconds = utc_ms.div_euclid(1000);
    let (days, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = date(days);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

/// Days since 1970-01-01 in the Gregorian calendar: eras of 400 years, years that begin in March.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::date_time;

    #[test]
    fn dates() {
        let cases = [
            (0, "1970-01-01T00:00:00"),
            (951_782_399_999, "2000-02-28T23:59:59"),
            (951_782_400_000, "2000-02-29T00:00:00"),
            (1_768_478_400_000, "2026-01-15T12:00:00"),
            (4_107_542_400_000, "2100-03-01T00:00:00"),
            (-1, "1969-12-31T23:59:59"),
        ];
        for (ms, expected) in cases {
            assert_eq!(date_time(ms), expected);
        }
    }
}
