//! How many layers each GPU gets: all, if the whole model fits on several; else in proportion to
//! their free memory, as many as fit. The rest stays with the processor.

use std::ops::Range;

use engine::kv::requantize::KvRequantize;
use engine::memory_estimate::MemoryEstimate;
use engine::{BackendKind, Devices, LoadOptions};
use kernels::GpuSelector;
use kernels::gpu::{AdapterInfo, AdapterKind};

use contract::{GpuRequest, GpuSpread};

use super::{Choice, ChosenGpu};
use contract::settings::DEFAULT_CONTEXT;
use contract::{Error, ErrorKind};
use platform::memory;

/// Remedy where a GPU lacks memory. 4-bit keys cost far more quality than 4-bit values.
const TAKE_LESS: &str = "Choose a smaller model, a shorter context, 8-bit keys with 4-bit values (--kv q8_0/q4_0), or a \
                         higher GPU memory limit.";

/// Usable share of dedicated memory: the rest is for the desktop and the driver's needs.
const OF_OWN: (u64, u64) = (17, 20);
/// Usable share of free memory that a GPU shares with the processor.
const OF_SHARED: (u64, u64) = (7, 10);

/// Bytes of a GPU that a model may take. None: unknown.
pub fn room(info: &AdapterInfo, limit: Option<u64>) -> Option<u64> {
    room_of(info, limit, memory::free_bytes())
}

fn room_of(info: &AdapterInfo, limit: Option<u64>, free: Option<u64>) -> Option<u64> {
    let share = |n: u64, (of, all): (u64, u64)| n / all * of;
    let room = match info.kind {
        AdapterKind::Discrete | AdapterKind::Virtual => info.memory_bytes.map(|n| share(n, OF_OWN)),
        AdapterKind::Integrated | AdapterKind::Other | AdapterKind::Software => {
            let both = info.memory_bytes.into_iter().chain(free).min();
            both.map(|n| share(n, OF_SHARED))
        }
    };
    room.into_iter().chain(limit).min()
}

/// Layers of each GPU, and their limits.
pub struct Parts {
    /// index of the GPU among all, and layers
    gpus: Vec<(usize, usize)>,
    /// of the model; 0: not known
    all: usize,
    asked: Option<usize>,
    /// every GPU has all layers
    are_copies: bool,
    /// Copies are asked for, and the model doesn't fit two of the gpus.
    pub lacks_copies: bool,
    /// Total bytes for contexts, and checkpoints to return to, such that no GPU exceeds its memory.
    contexts: Option<u64>,
    kept: Option<u64>,
}

/// For the gpus that are chosen. `options` says how long a context is, and in what precision.
pub fn share_out(
    chosen: &[&ChosenGpu],
    memory_estimate: &MemoryEstimate,
    asked: &GpuRequest,
    options: &LoadOptions,
) -> Parts {
    let rooms: Vec<Option<u64>> = chosen.iter().map(|card| room(&card.info, asked.memory)).collect();
    let n_ctx = options.ctx.unwrap_or(DEFAULT_CONTEXT as usize).min(memory_estimate.context_length.max(1));
    let most = asked.layers.unwrap_or(usize::MAX).min(memory_estimate.layer_weights.len());
    let fit = Fit { memory_estimate, rooms: &rooms, n_ctx, options };
    // an explicit number is used as given, or fails with the reason
    let ranges = match asked.layers {
        Some(_) => fit.ranges(most),
        None => (0..=most).rev().map(|n| fit.ranges(n)).find(|ranges| fit.holds(ranges)).unwrap_or_default(),
    };
    let (contexts, kept) = fit.left(&ranges);
    let gpus = chosen.iter().zip(&ranges).map(|(card, range)| (card.at, range.len())).collect();
    let lacks_copies = asked.spread == GpuSpread::Copies && chosen.len() > 1;
    let (all, asked, are_copies) = (memory_estimate.layer_weights.len(), asked.layers, false);
    Parts { gpus, all, asked, are_copies, lacks_copies, contexts, kept }
}

/// The whole model with its contexts on each GPU with enough memory, at least two. None: there
/// aren't two, or the mode is off. Unless requested, a GPU's memory has to be known.
pub fn copies(
    chosen: &[&ChosenGpu],
    memory_estimate: &MemoryEstimate,
    asked: &GpuRequest,
    options: &LoadOptions,
) -> Option<Parts> {
    let all = memory_estimate.layer_weights.len();
    let has_known_room = |card: &ChosenGpu| room(&card.info, asked.memory).is_some();
    let may = |card: &&&ChosenGpu| match asked.spread {
        GpuSpread::Auto => has_known_room(card),
        GpuSpread::Layers => false,
        GpuSpread::Copies => true,
    };
    let alone = |card: &&ChosenGpu| share_out(&[*card], memory_estimate, asked, options);
    let parts: Vec<Parts> =
        chosen.iter().filter(may).map(alone).filter(|parts| parts.n_layers() == all).collect();
    if all == 0 || parts.len() < 2 {
        return None;
    }
    let contexts = parts.iter().filter_map(|parts| parts.contexts).min();
    let kept = parts.iter().filter_map(|parts| parts.kept).min();
    let gpus = parts.iter().flat_map(|parts| parts.gpus.iter().copied()).collect();
    Some(Parts { gpus, all, asked: asked.layers, are_copies: true, lacks_copies: false, contexts, kept })
}

struct Fit<'a> {
    memory_estimate: &'a MemoryEstimate,
    rooms: &'a [Option<u64>],
    n_ctx: usize,
    options: &'a LoadOptions,
}

impl Fit<'_> {
    /// The first `n` layers, in proportion to what gpus have room for; where that isn't known of all, in equal parts.
    fn ranges(&self, n: usize) -> Vec<Range<usize>> {
        let known: Option<Vec<u64>> = self.rooms.iter().copied().collect();
        let weights = known.unwrap_or_else(|| vec![1; self.rooms.len()]);
        let all: u128 = weights.iter().map(|w| u128::from(*w)).sum::<u128>().max(1);
        let (mut sum, mut start) = (0u128, 0);
        let next = |weight: &u64| {
            sum += u128::from(*weight);
            let end = ((n as u128 * sum + all / 2) / all) as usize;
            let range = start..end.min(n);
            start = range.end;
            range
        };
        weights.iter().map(next).collect()
    }

    fn taken(&self, range: &Range<usize>) -> u64 {
        self.memory_estimate.layers_on(range.clone(), self.n_ctx, self.options.kv).unwrap_or(0)
    }

    fn holds(&self, ranges: &[Range<usize>]) -> bool {
        ranges.iter().zip(self.rooms).all(|(range, room)| room.is_none_or(|room| self.taken(range) <= room))
    }

    /// Remaining memory of the fullest GPU, scaled to the whole model: half for contexts, a quarter
    /// for checkpoints.
    fn left(&self, ranges: &[Range<usize>]) -> (Option<u64>, Option<u64>) {
        let all = self.memory_estimate.layer_weights.len() as u128;
        if all == 0 {
            return (None, None);
        }
        let one = self.memory_estimate.needs(self.n_ctx, self.options.kv).context;
        let room_of_one = |(range, room): (&Range<usize>, &Option<u64>)| {
            let left = (*room)?.saturating_sub(self.taken(range));
            let whole = u128::from(left) * all / (range.len() as u128).max(1);
            (!range.is_empty()).then(|| u64::try_from(whole).unwrap_or(u64::MAX))
        };
        let left = ranges.iter().zip(self.rooms).filter_map(room_of_one).min();
        (left.map(|left| one.saturating_add(self.beside_one(left, one))), left.map(|left| left / 4))
    }

    /// Bytes for contexts beyond the first, within half of what is left. With aging, a GPU may hold
    /// all of them exact and later as much again of aged ones, the first included. It returns no
    /// memory.
    fn beside_one(&self, left: u64, one: u64) -> u64 {
        match self.options.kv_requantize {
            KvRequantize::Off => left / 2,
            KvRequantize::Pressure | KvRequantize::After(_) => (left / 2).saturating_sub(one) / 2,
        }
    }
}

impl Parts {
    pub fn n_layers(&self) -> usize {
        self.gpus.iter().map(|(_, n)| n).sum()
    }

    /// Into how the model is loaded.
    pub fn apply(&self, options: &mut LoadOptions) {
        let used: Vec<(usize, usize)> = self.gpus.iter().copied().filter(|(_, n)| *n > 0).collect();
        options.gpus = used.iter().map(|(at, _)| GpuSelector::Nth(*at)).collect();
        if self.all == 0 {
            let at = self.gpus.first().map(|(at, _)| GpuSelector::Nth(*at));
            options.gpus = at.into_iter().collect();
            options.devices = Devices::Gpu { layers: self.asked };
            return;
        }
        let rest = self.all.saturating_sub(self.n_layers());
        let on_cards = used.iter().map(|(_, n)| (BackendKind::Gpu, *n));
        let rest = Some((BackendKind::Cpu, rest)).filter(|(_, n)| *n > 0);
        options.devices = match used.is_empty() {
            true => Devices::Cpu,
            false if self.are_copies => Devices::Replicas(vec![BackendKind::Gpu; used.len()]),
            false => Devices::Split(on_cards.chain(rest).collect()),
        };
        if let Some(contexts) = self.contexts {
            options.kv_bytes = Some(options.kv_bytes.unwrap_or(u64::MAX).min(contexts));
        }
        options.rewind_bytes = options.rewind_bytes.min(self.kept.unwrap_or(u64::MAX));
    }

    /// Where gpus were chosen, and not one layer fits, or not the whole model where that is asked for.
    pub fn notice(&self, choice: &Choice) -> Option<Error> {
        if self.n_layers() > 0 && self.lacks_copies {
            let message =
                "The whole model doesn't fit into two of the graphics gpus: they don't each have a copy.";
            return Some(Error::new(ErrorKind::Device, "kernels.gpu_memory", message, TAKE_LESS));
        }
        if self.n_layers() > 0 || self.all == 0 || self.asked == Some(0) {
            return None;
        }
        let names: Vec<&str> = choice.gpus.iter().map(|card| card.info.name.as_str()).collect();
        let message = format!("No layer fits into the memory of {}, so the CPU is used.", names.join(", "));
        Some(Error::new(ErrorKind::Device, "kernels.gpu_memory", message, TAKE_LESS))
    }
}

#[cfg(test)]
mod tests {
    use engine::shape;

    use super::*;

    const GB: u64 = 1_000_000_000;

    fn info(kind: AdapterKind, memory_bytes: Option<u64>) -> AdapterInfo {
        AdapterInfo {
            name: "GPU X".into(),
            kind,
            api: "vulkan".into(),
            driver: "1".into(),
            memory_bytes,
            features: Vec::new(),
            max_binding_bytes: 0,
            max_buffer_bytes: 0,
            subgroup: [32, 32],
        }
    }

    fn memory_estimate() -> MemoryEstimate {
        let (shape, mix) = (shape::find("llama-3.1-8b").unwrap(), shape::mix("q4_k_m").unwrap());
        MemoryEstimate::of(&shape::outline(&shape, mix).unwrap()).unwrap()
    }

    #[test]
    fn a_card_has_room_for_less_than_all_of_its_memory() {
        for (kind, memory, limit, free, expected) in [
            (AdapterKind::Discrete, Some(20 * GB), None, Some(GB), Some(17 * GB)),
            (AdapterKind::Discrete, Some(20 * GB), Some(GB), None, Some(GB)),
            (AdapterKind::Discrete, None, None, Some(GB), None),
            (AdapterKind::Discrete, None, Some(2 * GB), Some(GB), Some(2 * GB)),
            (AdapterKind::Integrated, Some(20 * GB), None, Some(10 * GB), Some(7 * GB)),
            (AdapterKind::Integrated, None, None, Some(10 * GB), Some(7 * GB)),
            (AdapterKind::Integrated, Some(2 * GB), None, None, Some(1_400_000_000)),
        ] {
            assert_eq!(room_of(&info(kind, memory), limit, free), expected, "{kind:?} {memory:?} {limit:?}");
        }
    }

    /// Layers of each GPU, and their bytes there, for GPUs with the given gigabytes.
    fn shared(memory: &[u64], layers: Option<usize>) -> (Vec<usize>, Vec<u64>, LoadOptions) {
        let gpus: Vec<ChosenGpu> = memory
            .iter()
            .enumerate()
            .map(|(at, n)| ChosenGpu { at, info: info(AdapterKind::Discrete, Some(n * GB)) })
            .collect();
        let gpus: Vec<&ChosenGpu> = gpus.iter().collect();
        let mut options = LoadOptions { ctx: Some(8192), ..LoadOptions::default() };
        let parts =
            share_out(&gpus, &memory_estimate(), &GpuRequest { layers, ..GpuRequest::default() }, &options);
        parts.apply(&mut options);
        let counts: Vec<usize> = parts.gpus.iter().map(|(_, n)| *n).collect();
        let mut start = 0;
        let taken = counts.iter().map(|n| {
            let range = start..start + n;
            start += n;
            memory_estimate().layers_on(range, 8192, options.kv).unwrap()
        });
        (counts.clone(), taken.collect(), options)
    }

    #[test]
    fn layers_are_shared_out_as_rooms_allow() {
        let (whole, taken, options) = shared(&[24], None);
        assert_eq!(whole, [32]);
        assert_eq!(options.devices, Devices::Split(vec![(BackendKind::Gpu, 32)]));
        assert_eq!(options.gpus, [GpuSelector::Nth(0)]);
        // contexts of others have half of what is left
        let one = memory_estimate().needs(8192, options.kv).context;
        let contexts = options.kv_bytes.unwrap();
        assert!(contexts > one && contexts - one <= (24 * GB / 20 * 17 - taken[0]) / 2 + 1, "{contexts}");

        let (part, taken, options) = shared(&[4], None);
        assert!((8..28).contains(&part[0]) && taken[0] <= 4 * GB / 20 * 17, "{part:?} {taken:?}");
        let rest = 32 - part[0];
        assert_eq!(
            options.devices,
            Devices::Split(vec![(BackendKind::Gpu, part[0]), (BackendKind::Cpu, rest)])
        );

        let (two, taken, options) = shared(&[6, 3], None);
        assert_eq!(two.iter().sum::<usize>(), 32, "{two:?}");
        assert!(two[0] > two[1] && two[1] > 5, "in proportion: {two:?}");
        assert!(taken[0] <= 6 * GB / 20 * 17 && taken[1] <= 3 * GB / 20 * 17, "{taken:?}");
        assert_eq!(options.gpus, [GpuSelector::Nth(0), GpuSelector::Nth(1)]);

        let (asked, ..) = shared(&[1], Some(20));
        assert_eq!(asked, [20], "whoever asks, gets");
        let (none, _, options) = shared(&[1], Some(0));
        assert_eq!((none, options.devices), (vec![0], Devices::Cpu));
    }

    #[test]
    fn contexts_that_age_have_their_room_twice() {
        let card = ChosenGpu { at: 0, info: info(AdapterKind::Discrete, Some(24 * GB)) };
        let contexts = |kv_requantize| {
            let options = LoadOptions { ctx: Some(8192), kv_requantize, ..LoadOptions::default() };
            let parts = share_out(&[&card], &memory_estimate(), &GpuRequest::default(), &options);
            (parts.contexts.unwrap(), memory_estimate().needs(8192, options.kv).context)
        };
        let (exact, one) = contexts(KvRequantize::Off);
        let left = exact - one;
        for kv_requantize in [KvRequantize::Pressure, KvRequantize::After(1024)] {
            let (requantize, _) = contexts(kv_requantize);
            assert!(
                requantize > one && 2 * requantize - one <= left && 2 * requantize - one + 1 >= left,
                "{requantize}"
            );
        }
    }

    #[test]
    fn each_card_that_has_room_gets_a_copy() {
        let copies = |memory: &[Option<u64>], spread: GpuSpread, layers: Option<usize>| {
            let info = |n: &Option<u64>| info(AdapterKind::Discrete, n.map(|n| n * GB));
            let gpus = memory.iter().enumerate().map(|(at, n)| ChosenGpu { at, info: info(n) });
            let gpus: Vec<ChosenGpu> = gpus.collect();
            let gpus: Vec<&ChosenGpu> = gpus.iter().collect();
            let options = LoadOptions { ctx: Some(8192), ..LoadOptions::default() };
            let asked = GpuRequest { layers, spread, ..GpuRequest::default() };
            super::copies(&gpus, &memory_estimate(), &asked, &options).map(|parts| {
                let mut options = options.clone();
                parts.apply(&mut options);
                let gpus = options.gpus.iter().map(|card| match card {
                    GpuSelector::Nth(at) => *at,
                    GpuSelector::Any | GpuSelector::Hardware | GpuSelector::Named(_) => {
                        panic!("gpus have numbers: {card:?}")
                    }
                });
                let gpus: Vec<usize> = gpus.collect();
                assert_eq!(options.devices, Devices::Replicas(vec![BackendKind::Gpu; gpus.len()]));
                (gpus, options.kv_bytes)
            })
        };
        let (both, contexts) = copies(&[Some(24), Some(12)], GpuSpread::Auto, None).unwrap();
        assert_eq!(both, [0, 1]);
        let (_, of_one) = copies(&[Some(12), Some(12)], GpuSpread::Auto, None).unwrap();
        assert_eq!(contexts, of_one, "no card has more contexts than the smallest has room for");
        let (all, _) = copies(&[Some(24), Some(4), Some(24)], GpuSpread::Auto, None).unwrap();
        assert_eq!(all, [0, 2], "the one in the middle has no room");
        let (unknown, _) = copies(&[None, Some(24)], GpuSpread::Copies, None).unwrap();
        assert_eq!(unknown, [0, 1], "whoever asks, gets");
        for (memory, spread, layers) in [
            (&[Some(24), Some(24)][..], GpuSpread::Layers, None),
            (&[Some(24), Some(24)], GpuSpread::Auto, Some(20)),
            (&[Some(24), None], GpuSpread::Auto, None),
            (&[Some(24), Some(4)], GpuSpread::Copies, None),
            (&[Some(24)], GpuSpread::Copies, None),
        ] {
            assert_eq!(copies(memory, spread, layers), None, "{memory:?} {spread:?} {layers:?}");
        }
    }

    #[test]
    fn what_is_not_known_counts_as_enough() {
        let card = ChosenGpu { at: 3, info: info(AdapterKind::Discrete, None) };
        let mut options = LoadOptions::default();
        let parts = share_out(&[&card], &memory_estimate(), &GpuRequest::default(), &options);
        parts.apply(&mut options);
        assert_eq!(options.devices, Devices::Split(vec![(BackendKind::Gpu, 32)]));
        assert_eq!((options.gpus, options.kv_bytes), (vec![GpuSelector::Nth(3)], None));
        let mut options = LoadOptions::default();
        share_out(&[&card], &MemoryEstimate::default(), &GpuRequest::default(), &options).apply(&mut options);
        assert_eq!(
            options.devices,
            Devices::Gpu { layers: None },
            "the layers' memory estimates are not known"
        );
    }

    #[test]
    fn a_card_too_small_for_a_layer_is_told() {
        let card = ChosenGpu { at: 0, info: info(AdapterKind::Discrete, Some(GB / 10)) };
        let choice = Choice { gpus: vec![card.clone()], ..Choice::default() };
        let parts = share_out(&[&card], &memory_estimate(), &GpuRequest::default(), &LoadOptions::default());
        let notice = parts.notice(&choice).unwrap();
        assert!(notice.message().contains("GPU X") && notice.code() == "kernels.gpu_memory", "{notice}");
        let large = ChosenGpu { at: 1, info: info(AdapterKind::Discrete, Some(24 * GB)) };
        for (spread, is_told) in [(GpuSpread::Auto, false), (GpuSpread::Copies, true)] {
            let asked = GpuRequest { spread, ..GpuRequest::default() };
            let parts = share_out(&[&large, &card], &memory_estimate(), &asked, &LoadOptions::default());
            assert_eq!(parts.notice(&choice).is_some(), is_told, "{spread:?}");
        }
    }
}
