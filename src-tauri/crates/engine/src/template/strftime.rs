//! Formats dates as Python's `strftime` does, in English.

/// A local date and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalTime {
    year: i64,
    month: u32,
    day: u32,
    hour: u32,
    minute: u32,
    second: u32,
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

impl LocalTime {
    /// Parses `2026-01-15T12:00:00`. The time may be missing; fractions and zones are ignored.
    pub fn parse(text: &str) -> Option<Self> {
        let (date, time) = text.split_once(['T', ' ']).unwrap_or((text, "00:00:00"));
        let mut date = date.splitn(3, '-');
        let mut time = time.splitn(3, ':');
        let number = |part: Option<&str>| -> Option<u32> {
            let part = part?;
            let digits = part.find(|c: char| !c.is_ascii_digit()).map_or(part, |end| &part[..end]);
            digits.parse().ok()
        };
        let (year, month, day) = (number(date.next())?, number(date.next())?, number(date.next())?);
        let (hour, minute) = (number(time.next())?, number(time.next())?);
        let second = number(time.next()).unwrap_or(0);
        let valid = (1..=9999).contains(&year)
            && (1..=12).contains(&month)
            && (1..=31).contains(&day)
            && hour < 24
            && minute < 60
            && second < 61;
        valid.then_some(Self { year: year.into(), month, day, hour, minute, second })
    }

    /// Formats `%d %B %Y` and the other directives that templates use. Unknown ones stay.
    pub fn format(&self, format: &str) -> String {
        let mut out = String::new();
        let mut chars = format.chars();
        while let Some(c) = chars.next() {
            if c != '%' {
                out.push(c);
                continue;
            }
            let Some(mut directive) = chars.next() else {
                out.push('%');
                break;
            };
            let bare = directive == '-';
            if bare {
                directive = chars.next().unwrap_or('-');
            }
            match self.directive(directive) {
                Some(text) if bare => out.push_str(unpadded(&text)),
                Some(text) => out.push_str(&text),
                None => out.extend(['%', directive]),
            }
        }
        out
    }

    fn directive(&self, directive: char) -> Option<String> {
        let hour_12 = (self.hour + 11) % 12 + 1;
        Some(match directive {
            'Y' => self.year.to_string(),
            'y' => format!("{:02}", self.year % 100),
            'm' => format!("{:02}", self.month),
            'd' => format!("{:02}", self.day),
            'e' => format!("{:2}", self.day),
            'H' => format!("{:02}", self.hour),
            'I' => format!("{hour_12:02}"),
            'M' => format!("{:02}", self.minute),
            'S' => format!("{:02}", self.second),
            'p' => if self.hour < 12 { "AM" } else { "PM" }.into(),
            'B' => MONTHS[self.month as usize - 1].into(),
            'b' | 'h' => MONTHS[self.month as usize - 1][..3].into(),
            'A' => WEEKDAYS[self.weekday()].into(),
            'a' => WEEKDAYS[self.weekday()][..3].into(),
            'j' => format!("{:03}", self.day_of_year()),
            'F' => self.format("%Y-%m-%d"),
            'T' => self.format("%H:%M:%S"),
            'D' => self.format("%m/%d/%y"),
            'Z' | 'z' => String::new(),
            '%' => "%".into(),
            _ => return None,
        })
    }

    /// Monday is 0.
    fn weekday(&self) -> usize {
        // Days since 1970-01-01, a Thursday, counting years from March.
        let (year, month) = match self.month {
            m @ 3.. => (self.year, i64::from(m) - 3),
            m => (self.year - 1, i64::from(m) + 9),
        };
        let in_year = (153 * month + 2) / 5 + i64::from(self.day) - 1;
        let days =
            year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + in_year - 719_468;
        (days + 3).rem_euclid(7) as usize
    }

    fn day_of_year(&self) -> u32 {
        const BEFORE: [u32; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
        let leap = self.year % 4 == 0 && (self.year % 100 != 0 || self.year % 400 == 0);
        BEFORE[self.month as usize - 1] + self.day + u32::from(leap && self.month > 2)
    }
}

fn unpadded(text: &str) -> &str {
    match text.trim_start_matches(['0', ' ']) {
        "" => "0",
        rest => rest,
    }
}

#[cfg(test)]
mod tests {
    use super::LocalTime;

    fn check(time: &str, format: &str, expected: &str) {
        assert_eq!(
            LocalTime::parse(time).map(|time| time.format(format)).as_deref(),
            Some(expected),
            "{time}"
        );
    }

    #[test]
    fn formats_as_python_does() {
        check("2026-01-15T12:00:00", "%d %b %Y", "15 Jan 2026");
        check("2026-01-15T12:00:00", "%A, %B %-d, %Y %I:%M %p", "Thursday, January 15, 2026 12:00 PM");
        check("2024-02-29T00:05:09Z", "%a %j %y %H:%M:%S %-I%p 100%%", "Thu 060 24 00:05:09 12AM 100%");
        check("2026-11-21", "%F %T %Q", "2026-11-21 00:00:00 %Q");
        check("2000-03-01T01:02:03.25+01:00", "%A %S", "Wednesday 03");
        check("1999-12-31 23:59", "%a%", "Fri%");
    }

    #[test]
    fn refuses_invalid_times() {
        for text in ["", "now", "2026-13-01", "2026-01-00", "2026-01-01T25:00:00", "99999-01-01"] {
            assert_eq!(LocalTime::parse(text), None, "{text}");
        }
    }
}
