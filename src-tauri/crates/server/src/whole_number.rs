//! Whole numbers of JSON. As in JSON Schema, `5.0` is the whole number 5.

use serde_json::Value;

/// Up to this magnitude each whole number has a float that no other one has.
const MAX_EXACT: f64 = ((1_u64 << 53) - 1) as f64;

/// A whole number, which may be negative. One beyond the range becomes its nearest bound.
pub fn signed(value: &Value) -> Option<i64> {
    // The cast saturates.
    value.as_i64().or_else(|| whole_float(value).map(|number| number as i64))
}

/// A whole number from 0. One beyond the range becomes its upper bound.
pub fn unsigned(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| whole_float(value).filter(|number| *number >= 0.0).map(|number| number as u64))
}

fn whole_float(value: &Value) -> Option<f64> {
    value.as_f64().filter(|number| number.fract() == 0.0)
}

/// A token id.
pub fn token_id(value: &Value) -> Option<u32> {
    u32::try_from(unsigned(value)?).ok()
}

/// `value` with each exact whole number written as one, for typed readers that refuse `5.0`.
pub fn written_whole(mut value: Value) -> Value {
    match &mut value {
        Value::Number(number) if number.is_f64() => match whole_float(&value) {
            Some(whole) if whole.abs() <= MAX_EXACT => Value::from(whole as i64),
            Some(_) | None => value,
        },
        Value::Array(list) => {
            list.iter_mut().for_each(|one| *one = written_whole(one.take()));
            value
        }
        Value::Object(object) => {
            object.values_mut().for_each(|one| *one = written_whole(one.take()));
            value
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_whole_number_may_be_written_with_a_fraction_of_zero() {
        let cases = [
            (json!(5), Some(5), Some(5)),
            (json!(5.0), Some(5), Some(5)),
            (json!(-5.0), Some(-5), None),
            (json!(5.5), None, None),
            (json!(1e300), Some(i64::MAX), Some(u64::MAX)),
            (json!(-1e300), Some(i64::MIN), None),
            (json!(u64::MAX), Some(i64::MAX), Some(u64::MAX)),
            (json!("5"), None, None),
            (json!(true), None, None),
        ];
        for (value, expected_signed, expected_unsigned) in cases {
            assert_eq!(signed(&value), expected_signed, "{value}");
            assert_eq!(unsigned(&value), expected_unsigned, "{value}");
        }
        assert_eq!((token_id(&json!(7.0)), token_id(&json!(5e9))), (Some(7), None));
    }

    #[test]
    fn typed_readers_get_whole_numbers() {
        let value =
            json!({"n": 5.0, "list": [1.0, 1.5, {"m": -2.0}], "text": "5.0", "large": 1e300, "id": u64::MAX});
        let expected =
            json!({"n": 5, "list": [1, 1.5, {"m": -2}], "text": "5.0", "large": 1e300, "id": u64::MAX});
        assert_eq!(written_whole(value).to_string(), expected.to_string());
    }
}
