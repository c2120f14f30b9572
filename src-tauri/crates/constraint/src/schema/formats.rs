//! Formats of strings. All others are annotations.

/// Formats that the grammar library knows exactly.
pub const GRAMMAR_FORMATS: [&str; 7] = ["time", "duration", "email", "hostname", "ipv4", "uuid", "uri"];

/// Formats that are checked at the end of a string.
pub const CHECKED_FORMATS: [&str; 9] = [
    "idn-email",
    "idn-hostname",
    "uri-reference",
    "iri",
    "iri-reference",
    "uri-template",
    "json-pointer",
    "relative-json-pointer",
    "regex",
];

const MONTH_OF_31_DAYS: &str = "(0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])";
const MONTH_OF_30_DAYS: &str = "(0[469]|11)-(0[1-9]|[12][0-9]|30)";
const FEBRUARY: &str = "02-(0[1-9]|1[0-9]|2[0-8])";
/// Divisible by four, but by a hundred only where by four hundred.
const LEAP_YEAR: &str = "([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)";
const TIME: &str =
    r"([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\.[0-9]+)?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])";

const GROUP: &str = "[0-9a-fA-F]{1,4}";
const IPV4: &str =
    r"(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])(\.(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])){3}";

/// The regular expression of a format that the grammar library knows too loosely or too narrowly.
pub fn exact_pattern(format: &str) -> Option<String> {
    match format {
        "date" => Some(format!("^{}$", date())),
        "date-time" => Some(format!("^{}[Tt]{TIME}$", date())),
        "ipv6" => Some(format!("^{}$", ipv6())),
        _ => None,
    }
}

/// Dates of RFC 3339, leap years included.
fn date() -> String {
    format!("([0-9]{{4}}-({MONTH_OF_31_DAYS}|{MONTH_OF_30_DAYS}|{FEBRUARY})|{LEAP_YEAR}-02-29)")
}

/// Addresses of RFC 4291: eight groups, the last two also as an IPv4 address, one run of zero groups as `::`.
fn ipv6() -> String {
    // Where the IPv4 address counts as two groups.
    let tail = format!("({GROUP}:{GROUP}|{IPV4})");
    let mut forms = vec![format!("({GROUP}:){{6}}{tail}"), format!("({GROUP}:){{1,7}}:")];
    for n_before in 0..=6 {
        let before = match n_before {
            0 => ":".to_owned(),
            n => format!("{GROUP}(:{GROUP}){{{}}}:", n - 1),
        };
        // `::` stands for one group at least.
        let n_after = 7 - n_before;
        forms.push(format!("{before}(:{GROUP}){{1,{n_after}}}"));
        if n_after >= 2 {
            forms.push(format!("{before}(:{GROUP}){{0,{}}}:{IPV4}", n_after - 2));
        }
    }
    forms.push("::".to_owned());
    format!("({})", forms.join("|"))
}

#[cfg(test)]
mod tests {
    use regex::Regex;

    use super::exact_pattern;

    fn pattern(format: &str) -> Regex {
        Regex::new(&exact_pattern(format).expect("it has a pattern")).expect("it compiles")
    }

    #[test]
    fn dates_exist() {
        let dates = pattern("date");
        let times = pattern("date-time");
        for date in ["2024-02-29", "2000-02-29", "0000-02-29", "2023-12-31", "2023-02-28"] {
            assert!(dates.is_match(date), "{date}");
        }
        for date in ["2021-02-29", "2100-02-29", "0100-02-29", "2023-04-31", "2023-13-01", "2023-1-01"] {
            assert!(!dates.is_match(date), "{date}");
        }
        assert!(times.is_match("1963-06-19t08:30:06.283185z"));
        assert!(!times.is_match("1963-06-19T08:30:06"));
    }

    #[test]
    fn addresses_are_those_that_the_standard_library_reads() {
        let addresses = pattern("ipv6");
        let groups = ["", "1", "a", "12345", "::", "127.0.0.1", "1.2.3"];
        // Every address of up to five parts from these, however wrong.
        for n in 0..groups.len().pow(5) {
            let parts = (0..5).map(|place| groups[n / groups.len().pow(place) % groups.len()]);
            let address = parts.collect::<Vec<_>>().join(":");
            let is_one = address.parse::<std::net::Ipv6Addr>().is_ok();
            assert_eq!(addresses.is_match(&address), is_one, "{address}");
        }
        for address in
            ["::", "1::", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8", "1:2:3:4:5:6:1.2.3.4"]
        {
            assert!(addresses.is_match(address), "{address}");
        }
        for address in ["1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7:1.2.3.4", "1::2::3", "1:2:3:4::5:6:7:8"] {
            assert!(!addresses.is_match(address), "{address}");
        }
    }
}
