//! The precision of keys and values.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How keys or values are kept in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KvFormat {
    F32,
    F16,
    Q8_0,
    Q4_0,
}

/// How the context is kept in memory: one name such as `q8_0`, or that of keys and that of values, such as `q8_0/q4_0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Kv {
    /// Format of keys.
    pub keys: KvFormat,
    /// Format of values.
    pub values: KvFormat,
}

impl Kv {
    /// Single precision.
    pub const F32: Self = Self::both(KvFormat::F32);
    /// Half precision.
    pub const F16: Self = Self::both(KvFormat::F16);
    /// 8-bit integers.
    pub const Q8_0: Self = Self::both(KvFormat::Q8_0);
    /// 4-bit integers.
    pub const Q4_0: Self = Self::both(KvFormat::Q4_0);

    /// The same format for keys and values.
    pub const fn both(format: KvFormat) -> Self {
        Self { keys: format, values: format }
    }
}

impl Default for Kv {
    fn default() -> Self {
        Self::F16
    }
}

/// Formats by name.
const NAMES: [(&str, KvFormat); 4] =
    [("f32", KvFormat::F32), ("f16", KvFormat::F16), ("q8_0", KvFormat::Q8_0), ("q4_0", KvFormat::Q4_0)];

impl fmt::Display for KvFormat {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let name = NAMES.iter().find(|(_, format)| format == self);
        f.write_str(name.map_or("", |(name, _)| name))
    }
}

impl fmt::Display for Kv {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.keys == self.values {
            true => self.keys.fmt(f),
            false => write!(f, "{}/{}", self.keys, self.values),
        }
    }
}

impl FromStr for Kv {
    type Err = String;

    /// Errors: an unknown name, in words for users.
    fn from_str(text: &str) -> Result<Self, String> {
        let format = |name: &str| NAMES.iter().find(|(known, _)| *known == name).map(|(_, format)| *format);
        let (keys, values) = text.split_once('/').unwrap_or((text, text));
        match (format(keys), format(values)) {
            (Some(keys), Some(values)) => Ok(Self { keys, values }),
            _ => Err(format!(
                "\"{text}\" is not a KV cache precision. Choose f32, f16, q8_0 or q4_0, or one for keys and one for values such as q8_0/q4_0"
            )),
        }
    }
}

impl TryFrom<String> for Kv {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Kv> for String {
    fn from(kv: Kv) -> Self {
        kv.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precisions_are_read_and_written() {
        let mixed = Kv { keys: KvFormat::Q8_0, values: KvFormat::Q4_0 };
        let cases = [
            ("f32", Some(Kv::F32)),
            ("f16", Some(Kv::F16)),
            ("q8_0", Some(Kv::Q8_0)),
            ("q4_0", Some(Kv::Q4_0)),
            ("q8_0/q4_0", Some(mixed)),
            ("f16/q8_0", Some(Kv { keys: KvFormat::F16, values: KvFormat::Q8_0 })),
            ("Q8_0", None),
            ("q8_0/", None),
            ("/q4_0", None),
            ("q8_0/q4_0/q4_0", None),
            ("q8_0 / q4_0", None),
            ("q3", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(text.parse::<Kv>().ok(), expected, "{text}");
            assert_eq!(serde_json::from_value::<Kv>(text.into()).ok(), expected, "{text}");
            if let Some(kv) = expected {
                assert_eq!((kv.to_string().as_str(), serde_json::to_value(kv).unwrap()), (text, text.into()));
            }
        }
        assert_eq!("q8_0/q8_0".parse(), Ok(Kv::Q8_0));
        let message = "q8_0/q3".parse::<Kv>().unwrap_err();
        assert!(message.contains("\"q8_0/q3\"") && message.contains("q8_0/q4_0"), "{message}");
    }
}
