//! Converts milliseconds since 1970 to a UTC date.

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

/// `2026-03-29T07:06:35.552627Z` or with another zone, as milliseconds since 1970. None: it is no date.
pub fn parse(text: &str) -> Option<i64> {
    let number = |range: std::ops::Range<usize>| digits(text.get(range)?);
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let rest = &text[19..];
    let fraction: String =
        rest.strip_prefix('.').unwrap_or_default().chars().take_while(char::is_ascii_digit).collect();
    let ms = format!("{fraction:0<3}").get(..3)?.parse::<i64>().ok()?;
    let zone = rest.trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
    let offset_s = match zone.as_bytes() {
        [] | b"Z" | b"z" => 0,
        [sign @ (b'+' | b'-'), ..] => {
            let hours = digits(zone.get(1..3)?)?;
            // `+02:00`, `+0200` or `+02`
            let minutes = match zone.get(3..)? {
                "" => 0,
                rest => digits(rest.strip_prefix(':').unwrap_or(rest)).filter(|minutes| *minutes < 60)?,
            };
            (hours * 3600 + minutes * 60) * if *sign == b'-' { -1 } else { 1 }
        }
        _ => return None,
    };
    let seconds = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset_s;
    Some(seconds * 1000 + ms)
}

/// A number of nothing but digits.
fn digits(text: &str) -> Option<i64> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?
}

/// Of a date, since 1970-01-01: the way back of `date`.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::{date_time, parse};

    #[test]
    fn dates_are_read() {
        let cases = [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2000-02-29T00:00:00.5Z", Some(951_782_400_500)),
            ("2026-01-15T12:00:00.123456+00:00", Some(1_768_478_400_123)),
            ("2026-01-15T14:00:00+02:00", Some(1_768_478_400_000)),
            ("2026-01-15T12:00:00", Some(1_768_478_400_000)),
            ("2026-01-15T14:00:00+02", Some(1_768_478_400_000)),
            ("2026-01-15T14:00:00+0200", Some(1_768_478_400_000)),
            ("2026-01-15T12:00:00+-2:00", None),
            ("2026-01-15T12:00:00+02:9999999999999999", None),
            ("2026-13-15T12:00:00Z", None),
            ("yesterday", None),
            ("", None),
            ("2026-01-15T12:00:00é", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text), expected, "{text}");
        }
    }

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
