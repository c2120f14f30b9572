//! Samples of a patch in the order and range that a tower's projection takes.

use crate::spec::{PatchSamples, SampleOrder};

/// Red, green and blue.
const N_CHANNELS: usize = 3;

/// Appends the samples of one patch.
pub(super) fn push(given: &[f32], samples: PatchSamples, out: &mut Vec<f32>) {
    let start = out.len();
    let n_places = given.len() / N_CHANNELS;
    match (samples.given, samples.stored) {
        (SampleOrder::ChannelsLast, SampleOrder::ChannelsFirst) => {
            let places = |channel: usize| given.iter().skip(channel).step_by(N_CHANNELS);
            (0..N_CHANNELS).for_each(|channel| out.extend(places(channel)));
        }
        (SampleOrder::ChannelsFirst, SampleOrder::ChannelsLast) => {
            let channels = |place: usize| given.iter().skip(place).step_by(n_places.max(1));
            (0..n_places).for_each(|place| out.extend(channels(place)));
        }
        (SampleOrder::ChannelsFirst, SampleOrder::ChannelsFirst)
        | (SampleOrder::ChannelsLast, SampleOrder::ChannelsLast) => out.extend_from_slice(given),
    }
    if samples.is_unit {
        out[start..].iter_mut().for_each(|x| *x = 2.0 * (*x - 0.5));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_change_places_with_samples() {
        let check = |given, stored, is_unit, expected: &[f32]| {
            let mut out = vec![9.0];
            let patch = [0.0, 0.25, 0.5, 0.75, 1.0, 1.25];
            push(&patch, PatchSamples { given, stored, is_unit }, &mut out);
            assert_eq!(out[1..], *expected);
        };
        let (first, last) = (SampleOrder::ChannelsFirst, SampleOrder::ChannelsLast);
        check(first, first, false, &[0.0, 0.25, 0.5, 0.75, 1.0, 1.25]);
        check(last, last, true, &[-1.0, -0.5, 0.0, 0.5, 1.0, 1.5]);
        check(last, first, false, &[0.0, 0.75, 0.25, 1.0, 0.5, 1.25]);
        check(first, last, false, &[0.0, 0.5, 1.0, 0.25, 0.75, 1.25]);
    }
}
