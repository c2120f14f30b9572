//! How many threads, and on which cores: arithmetic on the computer's description.

use super::cores::{Core, Cores, Power};
use contract::NumaPolicy;
use kernels::cpu::memory_nodes::MemoryNodes;

/// Threads up to which all of them are needed to keep memory busy.
pub const ALL_NEEDED: usize = 2;

/// One for each fast core, at most `most` (what the process may use at once, quotas counted); half of that on
/// battery. And why.
pub fn default_count(cores: &Cores, most: usize, power: Power) -> (usize, String) {
    let (n_physical, n_fast) = (cores.n_physical(), cores.n_performance());
    let n = n_fast.min(most).max(1);
    let mut why = match n_fast < n_physical {
        true => format!("{n_fast} fast cores of {n_physical}"),
        false => format!("{n_physical} core{}", if n_physical == 1 { "" } else { "s" }),
    };
    if most < n_fast {
        why = format!("{why}, of which this process may use {most}");
    }
    match power {
        Power::Mains => (n, why),
        Power::Battery => (n.div_ceil(2), format!("{why}; half of them on battery")),
    }
}

/// Processors for the threads in order; empty where the system is to place them.
pub fn placed(cores: &Cores, affinity: bool, numa: NumaPolicy) -> Vec<usize> {
    let nodes = cores.nodes();
    let of_node = |node: usize| cores.all().iter().filter(move |core| core.node == node);
    let several = nodes.len() > 1;
    let cores: Vec<&Core> = match numa {
        NumaPolicy::Node if several => of_node(largest_node(cores)).collect(),
        NumaPolicy::Spread if several => {
            let mut in_turn: Vec<(usize, &Core)> =
                nodes.iter().flat_map(|node| of_node(*node).enumerate()).collect();
            in_turn.sort_by_key(|(at, core)| (*at, core.node));
            in_turn.into_iter().map(|(_, core)| core).collect()
        }
        NumaPolicy::Off | NumaPolicy::Node | NumaPolicy::Spread if affinity => cores.all().iter().collect(),
        NumaPolicy::Off | NumaPolicy::Node | NumaPolicy::Spread => Vec::new(),
    };
    cores.into_iter().map(|core| core.cpu).collect()
}

/// The node with the most cores; the first of several.
fn largest_node(cores: &Cores) -> usize {
    let n_cores = |node: usize| cores.all().iter().filter(|core| core.node == node).count();
    cores.nodes().into_iter().max_by_key(|node| (n_cores(*node), usize::MAX - node)).unwrap_or(0)
}

/// Where weights and contexts lie, to go with [`placed`]: near the threads of one node, or spread as the threads are.
pub fn memory_nodes(cores: &Cores, numa: NumaPolicy) -> MemoryNodes {
    let nodes = cores.nodes();
    match numa {
        NumaPolicy::Node if nodes.len() > 1 => MemoryNodes::Prefer(largest_node(cores)),
        NumaPolicy::Spread if nodes.len() > 1 => MemoryNodes::Interleave(nodes),
        NumaPolicy::Off | NumaPolicy::Node | NumaPolicy::Spread => MemoryNodes::Inherited,
    }
}

/// Share of the best figure that counts as as good.
const AS_GOOD: f64 = 0.97;

/// The fewest threads with about the best figure: all of `most`, three quarters, half, a quarter. Errors: `measure`'s.
pub fn tuned<E>(most: usize, measure: &mut dyn FnMut(usize) -> Result<f64, E>) -> Result<usize, E> {
    let mut counts = [most, (3 * most).div_ceil(4), most.div_ceil(2), most.div_ceil(4)].to_vec();
    counts.dedup();
    let figures = counts.iter().map(|n| Ok((measure(*n)?, *n))).collect::<Result<Vec<_>, E>>()?;
    let best = figures.iter().map(|(figure, _)| *figure).fold(0.0, f64::max);
    let good = figures.into_iter().filter(|(figure, _)| *figure >= AS_GOOD * best).map(|(_, n)| n);
    Ok(good.min().unwrap_or(most).max(1))
}

#[cfg(test)]
mod tests {
    use super::super::cores::tests::computer;
    use super::*;

    #[test]
    fn never_more_threads_than_fast_cores_and_fewer_on_battery() {
        let cpus: Vec<(usize, String, u64, usize)> = (0..8)
            .map(|cpu| {
                (cpu, format!("{},{}", cpu / 2 * 2, cpu / 2 * 2 + 1), [5_000_000, 3_000_000][cpu / 6], 0)
            })
            .collect();
        let cpus: Vec<_> =
            cpus.iter().map(|(cpu, siblings, khz, node)| (*cpu, &**siblings, *khz, *node)).collect();
        let (_root, cores) = computer("0-7", &cpus);
        for (most, power, expected) in
            [(8, Power::Mains, 3), (8, Power::Battery, 2), (2, Power::Mains, 2), (1, Power::Battery, 1)]
        {
            let (n, why) = default_count(&cores, most, power);
            assert_eq!(n, expected, "{why}");
            assert_eq!(why.contains("battery"), power == Power::Battery);
            assert_eq!(why.contains("may use"), most < 3, "{why}");
        }
    }

    #[test]
    fn threads_are_placed_where_they_are_wanted() {
        let cpus: Vec<(usize, String, u64, usize)> =
            (0..6).map(|cpu| (cpu, cpu.to_string(), 3_000_000, usize::from(cpu >= 2))).collect();
        let cpus: Vec<_> =
            cpus.iter().map(|(cpu, siblings, khz, node)| (*cpu, &**siblings, *khz, *node)).collect();
        let (_root, two) = computer("0-5", &cpus);
        let (_root, one) = computer("0-1", &cpus);
        for (cores, affinity, numa, expected) in [
            (&two, false, NumaPolicy::Off, vec![]),
            (&two, true, NumaPolicy::Off, vec![0, 1, 2, 3, 4, 5]),
            (&two, false, NumaPolicy::Node, vec![2, 3, 4, 5]),
            (&two, false, NumaPolicy::Spread, vec![0, 2, 1, 3, 4, 5]),
            (&one, false, NumaPolicy::Spread, vec![]),
            (&one, true, NumaPolicy::Node, vec![0, 1]),
        ] {
            assert_eq!(placed(cores, affinity, numa), expected, "{affinity} {numa:?}");
        }
        for (cores, numa, expected) in [
            (&two, NumaPolicy::Off, MemoryNodes::Inherited),
            (&two, NumaPolicy::Node, MemoryNodes::Prefer(1)),
            (&two, NumaPolicy::Spread, MemoryNodes::Interleave(vec![0, 1])),
            (&one, NumaPolicy::Node, MemoryNodes::Inherited),
            (&one, NumaPolicy::Spread, MemoryNodes::Inherited),
        ] {
            assert_eq!(memory_nodes(cores, numa), expected, "{numa:?}");
        }
    }

    #[test]
    fn the_fewest_threads_that_are_about_as_fast_win() {
        for (most, speeds, expected) in [
            (8, vec![(8, 50.0), (6, 49.9), (4, 49.0), (2, 30.0)], 4),
            (8, vec![(8, 80.0), (6, 60.0), (4, 40.0), (2, 20.0)], 8),
            (2, vec![(2, 40.0), (1, 39.5)], 1),
            (1, vec![(1, 10.0)], 1),
        ] {
            let mut measure = |n| Ok::<_, ()>(speeds.iter().find(|(of, _)| *of == n).unwrap().1);
            assert_eq!(tuned(most, &mut measure), Ok(expected), "{most}");
        }
        assert_eq!(tuned(4, &mut |_| Err("no memory")), Err("no memory"));
    }
}
