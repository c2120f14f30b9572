//! Dates and times that workbooks store as days.

/// Where days are counted from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DateSystem {
    /// Day 1 is 1900-01-01, and 1900 counts as a leap year.
    From1900,
    /// Day 0 is 1904-01-01.
    From1904,
}

const SECONDS_PER_DAY: i64 = 86_400;

/// The last day that workbooks know: 9999-12-31.
const MAX_DAYS: f64 = 2_958_466.0;

impl DateSystem {
    /// Days before 1970-01-01, of day 0.
    fn epoch(self, day: i64) -> i64 {
        match self {
            // There was no 1900-02-29, which is day 60.
            Self::From1900 if day < 60 => 25_568,
            Self::From1900 => 25_569,
            Self::From1904 => 24_107,
        }
    }

    /// Such as `2024-03-09 14:30:00`. None: workbooks know no such day.
    pub fn write(self, days: f64, has_date: bool, has_time: bool) -> Option<String> {
        if !(0.0..MAX_DAYS).contains(&days) {
            return None;
        }
        let seconds = (days * SECONDS_PER_DAY as f64).round() as i64;
        let (day, second) = (seconds / SECONDS_PER_DAY, seconds % SECONDS_PER_DAY);
        let time = format!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60);
        let date = match (self, day) {
            (Self::From1900, 60) => "1900-02-29".to_owned(),
            _ => date(day - self.epoch(day)),
        };
        Some(match (has_date, has_time) {
            (true, true) => format!("{date} {time}"),
            (false, true) => time,
            (true, false) | (false, false) => date,
        })
    }
}

/// Such as `37:30:00`.
pub fn duration(days: f64) -> String {
    let seconds = (days.abs() * SECONDS_PER_DAY as f64).round() as i64;
    let sign = if days < 0.0 { "-" } else { "" };
    format!("{sign}{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// The date of a day since 1970-01-01, by the Gregorian calendar.
fn date(day: i64) -> String {
    const DAYS_PER_ERA: i64 = 146_097;
    // years begin in March, so that the leap day is their last
    let shifted = day + 719_468;
    let (era, of_era) = (shifted.div_euclid(DAYS_PER_ERA), shifted.rem_euclid(DAYS_PER_ERA));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / (DAYS_PER_ERA - 1)) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{day:02}", year_of_era + era * 400 + next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates_as_excel_shows_them() {
        for (system, days, expected) in [
            (DateSystem::From1900, 1.0, Some("1900-01-01")),
            (DateSystem::From1900, 59.0, Some("1900-02-28")),
            (DateSystem::From1900, 60.0, Some("1900-02-29")),
            (DateSystem::From1900, 61.0, Some("1900-03-01")),
            (DateSystem::From1900, 25_569.0, Some("1970-01-01")),
            (DateSystem::From1900, 45_351.0, Some("2024-02-29")),
            (DateSystem::From1900, 2_958_465.0, Some("9999-12-31")),
            (DateSystem::From1904, 0.0, Some("1904-01-01")),
            (DateSystem::From1904, 43_889.0, Some("2024-02-29")),
            (DateSystem::From1900, -1.0, None),
            (DateSystem::From1900, f64::NAN, None),
        ] {
            assert_eq!(system.write(days, true, false).as_deref(), expected, "{days}");
        }
        let system = DateSystem::From1900;
        assert_eq!(system.write(45_351.604_166_666_7, true, true).unwrap(), "2024-02-29 14:30:00");
        assert_eq!(system.write(0.5, false, true).unwrap(), "12:00:00");
        assert_eq!((duration(1.5625).as_str(), duration(-0.25).as_str()), ("37:30:00", "-6:00:00"));
    }
}
