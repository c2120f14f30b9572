//! Which device computes each layer.

use kernels::{BackendKind, DeviceId};

use super::assistant::check_placement;
use super::load_options::Devices;
use crate::decoder::Placement;
use crate::error::{EngineError, Result};
use crate::spec::{KvSource, ModelSpec};

/// Returns the placement of a model with its assistant.
///
/// Errors: those of `placement`, `model.draft_split`.
pub(super) fn checked_placement(
    devices: &Devices,
    spec: &ModelSpec,
) -> Result<(Placement, Vec<BackendKind>)> {
    let (placement, kinds) = placement(devices, spec)?;
    check_placement(spec, &placement)?;
    Ok((placement, kinds))
}

/// Returns the device of each layer and the kind of each device. For replicas those of the first.
///
/// Errors: `model.split`.
pub(super) fn placement(devices: &Devices, spec: &ModelSpec) -> Result<(Placement, Vec<BackendKind>)> {
    let n_layers = spec.layers.len();
    match devices {
        Devices::Scalar => Ok((Placement::single(n_layers), vec![BackendKind::Scalar])),
        Devices::Auto | Devices::Cpu => Ok((Placement::single(n_layers), vec![BackendKind::Cpu])),
        Devices::Gpu { layers } => {
            let on_gpu = layers.unwrap_or(n_layers).min(n_layers);
            let parts = [(BackendKind::Gpu, on_gpu), (BackendKind::Cpu, n_layers - on_gpu)];
            let parts = parts.into_iter().filter(|(_, n)| *n > 0).collect();
            placement(&Devices::Split(parts), spec)
        }
        Devices::Replicas(kinds) => {
            let first = kinds.first().map(|kind| (*kind, n_layers));
            placement(&Devices::Split(first.into_iter().collect()), spec)
        }
        Devices::Split(parts) => {
            let n_given = parts.iter().try_fold(0usize, |sum, (_, n)| sum.checked_add(*n));
            if n_given != Some(n_layers) || parts.iter().any(|(_, n)| *n == 0) {
                return Err(EngineError::new(
                    "model.split",
                    format!("the devices take {parts:?} layers, but the model has {n_layers}"),
                    "Give every device at least one layer, and distribute all layers.",
                ));
            }
            let parts = with_owners(parts, &owners(spec));
            let layers = parts.iter().enumerate();
            let layers = layers.flat_map(|(i, (_, n))| std::iter::repeat_n(DeviceId(i), *n)).collect();
            Ok((Placement { layers }, parts.iter().map(|(kind, _)| *kind).collect()))
        }
    }
}

/// Returns the kind of device that computes each layer.
pub(super) fn of_layers(placement: &Placement, kinds: &[BackendKind]) -> Vec<BackendKind> {
    placement.layers.iter().map(|device| kinds[device.0]).collect()
}

/// The layer whose keys and values each layer attends, where that is another one. (n_layers)
fn owners(spec: &ModelSpec) -> Vec<Option<usize>> {
    let owner = |keys: KvSource| match keys {
        KvSource::OfLayer(owner) => Some(owner),
        KvSource::Projected | KvSource::SharedByValues | KvSource::OfTarget { .. } => None,
    };
    spec.layers.iter().map(|layer| owner(layer.mixer.attention()?.keys)).collect()
}

/// Keeps layers on the device of the layer whose keys and values they attend. Where a part ends between the two, it ends
/// before the owner instead, and the last device takes the rest.
fn with_owners(parts: &[(BackendKind, usize)], owners: &[Option<usize>]) -> Vec<(BackendKind, usize)> {
    let mut parts = parts.to_vec();
    // Where the last device takes more, further layers may be apart from their owners.
    while let (Some(first), Some((last, _))) = (first_owner_apart(&parts, owners), parts.last().copied()) {
        let mut left = first;
        for (_, n) in &mut parts {
            *n = left.min(*n);
            left -= *n;
        }
        parts.retain(|(_, n)| *n > 0);
        parts.push((last, owners.len() - first));
    }
    parts
}

/// The first layer whose keys and values a layer of another part attends.
fn first_owner_apart(parts: &[(BackendKind, usize)], owners: &[Option<usize>]) -> Option<usize> {
    let part_of = |layer: usize| {
        let ends = parts.iter().scan(0, |end, (_, n)| {
            *end += n;
            Some(*end)
        });
        ends.take_while(|end| *end <= layer).count()
    };
    let owners = owners.iter().enumerate().filter_map(|(layer, owner)| Some((layer, (*owner)?)));
    owners.filter(|(layer, owner)| part_of(*layer) != part_of(*owner)).map(|(_, owner)| owner).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use BackendKind::{Cpu, Gpu, Scalar};

    #[test]
    fn layers_stay_with_the_owner_of_their_keys_and_values() {
        // the last two of six attend those of the third and the fourth
        let owners = [None, None, None, None, Some(2), Some(3)];
        for (parts, expected) in [
            (vec![(Gpu, 2), (Cpu, 4)], vec![(Gpu, 2), (Cpu, 4)]),
            (vec![(Gpu, 3), (Cpu, 3)], vec![(Gpu, 2), (Cpu, 4)]),
            (vec![(Gpu, 5), (Cpu, 1)], vec![(Gpu, 2), (Cpu, 4)]),
            (vec![(Gpu, 1), (Scalar, 4), (Cpu, 1)], vec![(Gpu, 1), (Scalar, 1), (Cpu, 4)]),
            (vec![(Gpu, 1), (Scalar, 2), (Cpu, 3)], vec![(Gpu, 1), (Scalar, 1), (Cpu, 4)]),
            (vec![(Gpu, 6)], vec![(Gpu, 6)]),
        ] {
            assert_eq!(with_owners(&parts, &owners), expected, "{parts:?}");
        }
        assert_eq!(with_owners(&[(Gpu, 1), (Cpu, 1)], &[None, Some(0)]), [(Cpu, 2)]);
        assert_eq!(with_owners(&[(Gpu, 1), (Cpu, 1)], &[None, None]), [(Gpu, 1), (Cpu, 1)]);
    }
}
