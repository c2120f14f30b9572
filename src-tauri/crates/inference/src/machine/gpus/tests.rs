//! A software adapter plays the GPU here, which no shipped detector allows.

use std::path::Path;

use engine::{Chunk, LogitsSelection, Model};
use io::{RealClock, RealIo};
use kernels::FaultPlan;
use kernels::gpu::adapters;
use serde_json::{Value, json};

use test_support::TempDir;

use super::super::speeds;
use super::*;

const SOFTWARE: Finder =
    Finder { look: |_| adapters(), all: adapters, layers: || speeds::few_layers("q4_k_s"), software: true };

fn cards<'a>(folder: &'a Path, asked: &'a GpuRequest, finder: Finder) -> GpuPlanner<'a> {
    static CLOCK: std::sync::OnceLock<RealClock> = std::sync::OnceLock::new();
    GpuPlanner { io: &RealIo, clock: CLOCK.get_or_init(RealClock::new), folder: Some(folder), asked, finder }
}

fn asked(folder: &Path) -> GpuRequest {
    GpuRequest { cache: Some(folder.join("cache")), ..GpuRequest::default() }
}

fn processor() -> LoadOptions {
    LoadOptions { threads: Some(1), ctx: Some(256), max_sequences: 1, ..LoadOptions::default() }
}

fn kept(folder: &Path) -> Value {
    serde_json::from_slice(&RealIo.read(&folder.join(cache::FILE)).unwrap()).unwrap()
}

fn change(folder: &Path, change: impl FnOnce(&mut Value)) {
    let mut value = kept(folder);
    change(&mut value);
    RealIo.write_atomic(&folder.join(cache::FILE), value.to_string().as_bytes()).unwrap();
}

#[test]
fn without_a_card_nothing_is_chosen_kept_or_told() {
    let folder = TempDir::new();
    let asked = asked(folder.path());
    let file = speeds::few_layers("q4_0").unwrap();
    for finder in
        [Finder { look: |_| Vec::new(), ..SOFTWARE }, Finder { look: |_| adapters(), ..Finder::SYSTEM }]
    {
        let cards = cards(folder.path(), &asked, finder);
        let choice = cards.choose(Recall::Remember, &processor());
        assert!(choice.gpus.is_empty() && choice.notice.is_none(), "software is no card: {choice:?}");
        let mut options = processor();
        let placed = cards.place(Backend::Auto, &file, &mut options).unwrap();
        cards.keep(&placed, true);
        assert_eq!((options.devices, placed.notice.is_none()), (Devices::Cpu, true));
    }
    assert!(!folder.path().join(cache::FILE).exists());
}

#[test]
fn small_models_and_the_processor_look_at_no_card() {
    let finder = Finder { look: |_| panic!("nobody may look"), all: || panic!("nor here"), ..Finder::SYSTEM };
    let (folder, asked) = (TempDir::new(), GpuRequest::default());
    let file = speeds::few_layers("q4_0").unwrap();
    for (backend, expected) in
        [(Backend::Auto, Devices::Cpu), (Backend::Cpu, Devices::Cpu), (Backend::Scalar, Devices::Scalar)]
    {
        let mut options = processor();
        cards(folder.path(), &asked, finder).place(backend, &file, &mut options).unwrap();
        assert_eq!(options.devices, expected);
    }
}

#[test]
fn a_card_is_raced_once_for_each_driver_and_the_faster_one_is_taken() {
    let folder = TempDir::new();
    let asked = asked(folder.path());
    let cards = cards(folder.path(), &asked, SOFTWARE);
    let first = cards.choose(Recall::Remember, &processor());
    assert_eq!(first.measured.len(), 1, "{first:?}");
    assert!(first.measured[0].card.is_sound() && first.measured[0].processor.is_sound());
    let race = kept(folder.path())["cards"][0]["races"][0].clone();
    let again = cards.choose(Recall::Remember, &processor());
    assert_eq!((again.measured, &kept(folder.path())["cards"][0]["races"][0]), (first.measured, &race));

    // what is kept is believed
    change(folder.path(), |kept| {
        kept["cards"][0]["races"][0]["of_card"] = json!({"prompt_s": 1e-9, "token_s": 1e-9})
    });
    let won = cards.choose(Recall::Remember, &processor());
    assert_eq!((won.backend(), won.gpus.len()), ("gpu", 1), "{won:?}");
    assert!(won.why.contains("times as fast as the CPU"), "{}", won.why);
    assert_eq!(remembered(&RealIo, folder.path()).unwrap().0, won.gpus[0].info.name);
    change(folder.path(), |kept| {
        kept["cards"][0]["races"][0]["of_card"] = json!({"prompt_s": 1e9, "token_s": 1e9})
    });
    let lost = cards.choose(Recall::Remember, &processor());
    assert_eq!(lost.backend(), "cpu", "{lost:?}");
    assert_eq!(remembered(&RealIo, folder.path()), None);

    // of another driver, or against another processor, it says nothing
    let more = LoadOptions { threads: Some(2), ..processor() };
    let not_yet = cards.choose(Recall::Only, &more);
    assert!(not_yet.why.contains("not been measured yet") && not_yet.gpus.is_empty(), "{}", not_yet.why);
    change(folder.path(), |kept| kept["cards"][0]["driver"] = json!("of last year"));
    let renewed = cards.choose(Recall::Remember, &processor());
    assert!(renewed.measured[0].card.turn_s() < 1e9);
    let drivers = kept(folder.path())["cards"].as_array().unwrap().len();
    assert_eq!(drivers, 1, "the new one's in place of the old one's");
}

#[test]
fn a_wrong_kernel_puts_a_card_out_of_use_and_is_named_until_the_driver_changes() {
    let folder = TempDir::new();
    let asked = asked(folder.path());
    let cards = cards(folder.path(), &asked, SOFTWARE);
    cards.choose(Recall::Remember, &processor());
    change(folder.path(), |kept| kept["cards"][0]["wrong"] = json!("product of Q4_K"));
    let choice = cards.choose(Recall::Remember, &processor());
    let notice = choice.notice.clone().unwrap();
    assert!(choice.gpus.is_empty() && choice.measured.is_empty(), "{choice:?}");
    assert!(notice.message().contains("product of Q4_K") && notice.code() == "kernels.gpu_wrong", "{notice}");
    let anew = cards.choose(Recall::Anew, &processor());
    assert!(anew.notice.is_none() && anew.measured.len() == 1, "{anew:?}");
    assert_eq!(kept(folder.path())["cards"][0]["wrong"], Value::Null);
}

#[test]
fn a_look_that_ends_the_program_is_not_taken_for_ever() {
    let folder = TempDir::new();
    let asked = asked(folder.path());
    // the clock of a program that ends in the middle of a race
    struct Ends;
    impl Clock for Ends {
        fn monotonic(&self) -> std::time::Duration {
            panic!("the driver ended the program")
        }
        fn now_utc_ms(&self) -> i64 {
            0
        }
    }
    let ending = GpuPlanner { clock: &Ends, ..cards(folder.path(), &asked, SOFTWARE) };
    for n in 1..=MAX_UNFINISHED {
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            ending.choose(Recall::Remember, &processor());
        }));
        assert!(ended.is_err() && kept(folder.path())["unfinished"] == n);
    }
    let choice = ending.choose(Recall::Remember, &processor());
    assert_eq!(choice.notice.unwrap().code(), "kernels.gpu_unfinished");
    let anew = cards(folder.path(), &asked, SOFTWARE).choose(Recall::Anew, &processor());
    assert_eq!((anew.measured.len(), &kept(folder.path())["unfinished"]), (1, &json!(0)));
}

/// The likeliest tokens after a prompt.
fn greedy(model: &mut Model, n: usize) -> Vec<u32> {
    let seq = model.new_sequence().unwrap();
    let (mut ids, mut next) = (Vec::new(), vec![1, 9, 17, 4]);
    for _ in 0..n {
        let logits = model.forward(&[Chunk { seq, tokens: &next, logits: LogitsSelection::Last }]).unwrap();
        let row = logits.row(0).unwrap();
        let best = (0..row.len()).max_by(|a, b| row[*a].total_cmp(&row[*b])).unwrap() as u32;
        ids.push(best);
        next = vec![best];
    }
    model.free(seq);
    ids
}

#[test]
fn a_model_is_shared_out_checked_and_what_was_found_is_kept() {
    let folder = TempDir::new();
    let file = std::sync::Arc::new(speeds::few_layers("q4_0").unwrap());
    let alone = asked(folder.path());
    let copies = GpuRequest { devices: vec!["0".into(), "0".into()], ..alone.clone() };
    let layers = GpuRequest { spread: GpuSpread::Layers, ..copies.clone() };
    let mut texts = Vec::new();
    for (asked, n_replicas) in [(&alone, 1), (&layers, 1), (&copies, 2)] {
        let cards = cards(folder.path(), asked, SOFTWARE);
        let mut options = processor();
        let placed = cards.place(Backend::Gpu, &file, &mut options).unwrap();
        assert_eq!(
            kept(folder.path())["unfinished"],
            u32::from(asked == &alone),
            "noted before it is done, until it was"
        );
        let mut model = Model::load(file.clone(), &options, &mut |_| {}).unwrap();
        assert_eq!((model.info().fallback_error.clone(), &placed.notice), (None, &None));
        assert_eq!(model.info().devices.len(), asked.devices.len().max(1), "{:?}", model.info().devices);
        assert_eq!(model.n_replicas(), n_replicas);
        cards.keep(&placed, true);
        texts.push(greedy(&mut model, 24));
    }
    assert!(texts.iter().all(|text| *text == texts[0]), "two cards say what one says: {texts:?}");
    let right = kept(folder.path())["cards"][0]["right"].clone();
    assert!(right.as_array().unwrap().contains(&json!("product of Q4_0")), "{right}");
    assert_eq!(kept(folder.path())["unfinished"], 0);
    let compiled = RealIo.list(&folder.path().join("cache")).unwrap();
    assert_eq!(compiled.len(), 1, "one for a driver");

    // the cache is trusted: a model that needs a wrong kernel stays with the processor, with a
    // notice
    change(folder.path(), |kept| kept["cards"][0]["wrong"] = json!("product of Q4_0"));
    let cards = cards(folder.path(), &alone, SOFTWARE);
    let mut options = processor();
    cards.place(Backend::Gpu, &file, &mut options).unwrap();
    let mut model = Model::load(file, &options, &mut |_| {}).unwrap();
    let instead = model.info().fallback_error.clone().unwrap();
    assert!(
        instead.code() == "kernels.gpu_wrong" && instead.to_string().contains("product of Q4_0"),
        "{instead}"
    );
    assert_eq!(greedy(&mut model, 1).len(), 1);
}

#[test]
fn subgroups_that_err_are_kept_and_done_without_and_it_is_said_once() {
    let (folder, file) = (TempDir::new(), std::sync::Arc::new(speeds::few_layers("q4_0").unwrap()));
    let asked = asked(folder.path());
    let cards = cards(folder.path(), &asked, SOFTWARE);
    let told = [FaultPlan::wrong_in_checks(1), FaultPlan::default()].map(|faults| {
        let mut options = LoadOptions { faults, ..processor() };
        let placed = cards.place(Backend::Gpu, &file, &mut options).unwrap();
        let mut model = Model::load(file.clone(), &options, &mut |_| {}).unwrap();
        let (instead, devices) = (&model.info().fallback_error, &model.info().devices);
        assert!(instead.is_none() && !devices[0].contains("subgroups"), "{instead:?} {devices:?}");
        cards.keep(&placed, true);
        assert!(kept(folder.path())["cards"][0]["subgroups"].is_string());
        assert_eq!(kept(folder.path())["cards"][0]["wrong"], Value::Null);
        std::iter::from_fn(|| model.take_gpu_incident()).count()
    });
    assert_eq!(told, [1, 0]);
}

#[test]
fn a_card_that_is_asked_for_and_absent_is_told() {
    let (folder, asked) =
        (TempDir::new(), GpuRequest { devices: vec!["no such card".into()], ..GpuRequest::default() });
    let file = std::sync::Arc::new(speeds::few_layers("q4_0").unwrap());
    let mut options = processor();
    cards(folder.path(), &asked, SOFTWARE).place(Backend::Gpu, &file, &mut options).unwrap();
    let model = Model::load(file, &options, &mut |_| {}).unwrap();
    assert_eq!(model.info().fallback_error.as_ref().unwrap().code(), "kernels.gpu_absent");
}
