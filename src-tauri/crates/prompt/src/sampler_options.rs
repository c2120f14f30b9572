//! DRY and XTC as a caller gives them, over what holds otherwise.

use contract::types::SamplerOptions;
use contract::{Error, Result, Sampling};

/// Most texts that end a repetition.
const MAX_BREAKERS: usize = 64;

/// Longest of them, in bytes.
const MAX_BREAKER_BYTES: usize = 40;

/// Sets what the options say. Errors name the option and its range.
pub fn apply(options: &SamplerOptions, sampling: &mut Sampling) -> Result<()> {
    let (dry, xtc) = (&mut sampling.dry, &mut sampling.xtc);
    for (name, value, (min, max), target) in [
        ("dry_multiplier", options.dry_multiplier, (0.0, 100.0), &mut dry.multiplier),
        ("dry_base", options.dry_base, (1.0, 100.0), &mut dry.base),
        ("xtc_probability", options.xtc_probability, (0.0, 1.0), &mut xtc.probability),
        ("xtc_threshold", options.xtc_threshold, (0.0, 1.0), &mut xtc.threshold),
    ] {
        let Some(value) = value else { continue };
        if !(min..=max).contains(&value) {
            return Err(out_of_range(name, &value.to_string(), &format!("a number from {min} to {max}")));
        }
        *target = value as f32;
    }
    if let Some(length) = options.dry_allowed_length {
        dry.allowed_length = length;
    }
    if let Some(last_n) = options.dry_penalty_last_n {
        dry.last_n = match last_n {
            -1 => None,
            n => Some(u32::try_from(n).map_err(|_| {
                out_of_range("dry_penalty_last_n", &n.to_string(), "-1 for all tokens, or a number from 0")
            })?),
        };
    }
    if let Some(breakers) = &options.dry_sequence_breakers {
        let is_long = |breaker: &String| breaker.len() > MAX_BREAKER_BYTES;
        if breakers.len() > MAX_BREAKERS || breakers.iter().any(is_long) {
            let range = format!("at most {MAX_BREAKERS} texts of at most {MAX_BREAKER_BYTES} bytes");
            return Err(out_of_range("dry_sequence_breakers", &format!("{} texts", breakers.len()), &range));
        }
        dry.sequence_breakers.clone_from(breakers);
    }
    Ok(())
}

fn out_of_range(name: &str, value: &str, range: &str) -> Error {
    Error::input(
        "request.sampler",
        format!("{name} is {value}, which is out of range."),
        format!("Give {range}."),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(options: SamplerOptions) -> Result<Sampling> {
        let mut sampling = Sampling::default();
        apply(&options, &mut sampling).map(|()| sampling)
    }

    #[test]
    fn what_is_absent_stays() {
        assert_eq!(applied(SamplerOptions::default()).unwrap(), Sampling::default());
        let options = SamplerOptions {
            dry_multiplier: Some(0.8),
            dry_penalty_last_n: Some(64),
            dry_sequence_breakers: Some(vec!["x".into()]),
            xtc_probability: Some(0.5),
            ..SamplerOptions::default()
        };
        let Sampling { dry, xtc, .. } = applied(options).unwrap();
        assert_eq!((dry.multiplier, dry.base, dry.allowed_length, dry.last_n), (0.8, 1.75, 2, Some(64)));
        assert_eq!(dry.sequence_breakers, ["x"]);
        assert_eq!((xtc.probability, xtc.threshold), (0.5, 0.1));
        let all = SamplerOptions { dry_penalty_last_n: Some(-1), ..SamplerOptions::default() };
        assert_eq!(applied(all).unwrap().dry.last_n, None);
    }

    #[test]
    fn values_out_of_range_are_named() {
        let options = SamplerOptions::default;
        for (options, name) in [
            (SamplerOptions { dry_multiplier: Some(-1.0), ..options() }, "dry_multiplier"),
            (SamplerOptions { dry_base: Some(0.5), ..options() }, "dry_base"),
            (SamplerOptions { dry_penalty_last_n: Some(-2), ..options() }, "dry_penalty_last_n"),
            (SamplerOptions { xtc_probability: Some(1.5), ..options() }, "xtc_probability"),
            (SamplerOptions { xtc_threshold: Some(f64::NAN), ..options() }, "xtc_threshold"),
            (
                SamplerOptions { dry_sequence_breakers: Some(vec!["x".repeat(41)]), ..options() },
                "dry_sequence_breakers",
            ),
        ] {
            let error = applied(options).unwrap_err();
            assert!(error.message().starts_with(name), "{}", error.message());
        }
    }
}
