//! Templates that try to hang, to fill the memory or to overflow the stack, measured.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use jinja::{Failure, Limits, Stop, Template, Variable};

const MAX_BYTES: usize = 32 << 20;
/// What `engine` allows, and a test machine that is busy.
const DEADLINE: Duration = Duration::from_millis(200);
const LATEST: Duration = Duration::from_millis(1000);

fn limits() -> Limits {
    let begin = Instant::now();
    let stop = move |_| (begin.elapsed() > DEADLINE).then_some(Stop::Deadline);
    Limits { max_bytes: MAX_BYTES, max_work: u64::MAX, stop: Arc::new(stop) }
}

/// Resident bytes of this process.
#[cfg(target_os = "linux")]
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4096
}

#[cfg(not(target_os = "linux"))]
fn resident() -> usize {
    0
}

fn check_ends(source: &str) {
    let shown: String = source.chars().take(100).collect();
    // Watched from beside: the peak, not what is left.
    let (done, peak) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let before = resident();
    let watch = {
        let (done, peak) = (Arc::clone(&done), Arc::clone(&peak));
        std::thread::spawn(move || {
            while !done.load(Ordering::Relaxed) {
                peak.fetch_max(resident() as u64, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(1));
            }
        })
    };
    let begin = Instant::now();
    let message = "x".repeat(100);
    let rendered = Template::parse(source).map_err(|error| error.message).and_then(|template| {
        template
            .render(&[("s", Variable::Text(&message))], &limits())
            .map_err(|error| error.failure.to_string())
    });
    let took = begin.elapsed();
    done.store(true, Ordering::Relaxed);
    watch.join().expect("watches");
    let grown = (peak.load(Ordering::Relaxed) as usize).saturating_sub(before);
    assert!(took < LATEST, "{shown}: {took:?}");
    assert!(grown < 3 * MAX_BYTES, "{shown}: {} MB", grown >> 20);
    if let Ok(rendered) = rendered {
        assert!(rendered.peak_bytes <= MAX_BYTES, "{shown}");
    }
}

/// Runs one body again and again.
fn looped(set_up: &str, body: &str) -> String {
    format!("{{% set x = namespace({set_up}) %}}{{% for i in range(100000) %}}{body}{{% endfor %}}")
}

#[test]
fn growing_templates_meet_a_limit() {
    let bodies = [
        ("a=[]", "{% set x.a = x.a + [i] %}"),
        ("a='x'", "{% set x.a = x.a + x.a %}"),
        ("a='x'", "{% set x.a = x.a ~ x.a %}"),
        ("a='x'", "{% set x.a = x.a * 2 %}"),
        ("a=[1]", "{% set x.a = x.a * 2 %}"),
        ("a=[1]", "{% set x.a = x.a + x.a %}"),
        ("a='x'", "{% set x.a = (x.a ~ x.a)|upper %}"),
        ("a='x'", "{% set x.a = x.a|replace('x', 'xx') %}"),
        ("a='xxxxxxxxxxxxxxxx'", "{% set x.a = x.a|replace('', x.a) %}"),
        ("a='x'", "{% set x.a = x.a.replace('x', 'xx') %}"),
        ("a='x'", "{% set x.a = x.a.replace(x.a, x.a + x.a) %}"),
        ("a='ab'", "{% set x.a = x.a.join([x.a, x.a, x.a]) %}"),
        ("a='x'", "{% set x.a = [x.a, x.a]|join(x.a) %}"),
        ("a='x'", "{% set x.a = [x.a, x.a]|tojson %}"),
        ("a='x'", "{% set x.a = [x.a, x.a]|string %}"),
        ("a='\\\"'", "{% set x.a = x.a|tojson|tojson %}"),
        ("a='x'", "{% set x.a = '%s%s' % (x.a, x.a) %}"),
        ("a='x'", "{% set x.a = '{0}{0}'.format(x.a) %}"),
        ("a='<'", "{% set x.a = x.a|forceescape %}"),
        ("a='x'", "{% set x.a = x.a|urlencode ~ x.a %}"),
        ("a='x\\n'", "{% set x.a = (x.a ~ x.a)|indent(900) %}"),
        ("a=[3, 1, 2]", "{% set x.a = (x.a + x.a)|sort %}"),
        ("a=[3, 1, 2]", "{% set x.a = (x.a + x.a)|list|reverse|list %}"),
        ("a=[3]", "{% set x.a = [x.a, x.a] %}"),
        ("a={}", "{% set x.a = {'a': x.a, 'b': x.a} %}{% set x.b = x.a|tojson %}"),
        ("a='x'", "{% set x.a %}{{ x.a }}{{ x.a }}{% endset %}"),
        ("a='x'", "{% set x.a %}{% filter upper %}{{ x.a }}{{ x.a }}{% endfilter %}{% endset %}"),
        ("a='x' * 100000", "{{ x.a }}"),
        ("a='x' * 1000000", "{% set b = x.a[::-1] %}{% set c = x.a|list %}"),
        ("a=range(100000)|list", "{% set b = x.a[1:] %}{% set c = x.a|sort %}"),
        ("a=range(100000)|list", "{% set b = x.a|unique|list %}"),
        ("a=range(100000)|list", "{% set b = i in x.a and x.a == x.a|list %}"),
        ("a='x' * 1000000", "{% set b = x.a in x.a ~ 'y' and x.a|length and x.a|upper %}"),
        ("a='a' * 1000000", "{% set b = x.a.split('a') %}"),
        ("a='a' * 1000000", "{% set b = x.a.find('b') + x.a.count('aa') %}"),
        ("a='a' * 1000000", "{% set b = x.a|wordwrap(1) %}{% set c = x.a|title|striptags %}"),
        ("a=0", "{% set b = range(100000)|map('string')|join(',') %}"),
        ("a=0", "{% set x.a = namespace(b=x.a) %}"),
        ("a=0", "{% set x.a = [x] %}{% set x.b = x.a|string %}"),
        ("a=0", "{% set x.a = cycler(x.a) %}"),
        ("a=''", "{% set x.a = joiner(x.a) %}"),
        ("a=''", "{% set x.a = x.a|map('upper') %}"),
        ("a=''", "{% set x.a = x.a.upper %}"),
        ("a=2", "{% set x.a = x.a * x.a %}"),
        ("a=''", "{{ '%1000000d' % 1 }}"),
        ("a=''", "{{ 'x'|center(100000000) }}{{ 'x'.zfill(1000000000) }}"),
        ("a=''", "{{ lipsum(1000, min=1000, max=1000) }}"),
        ("a=''", "{{ 'x' * 10000000000 }}"),
        ("a=''", "{{ [0]|batch(100000, 1)|list }}{{ [0]|slice(100000)|list }}"),
        ("a=''", "{% for j in range(100000) %}{% endfor %}"),
        ("a=''", "{% for j in range(100000) %}{{ s }}some text{% endfor %}"),
        (
            "a=''",
            "{% set c = {'a': 1} %}{% for j in range(100000) %}{% set d = c.items()|list %}{% endfor %}",
        ),
    ];
    for (set_up, body) in bodies {
        check_ends(&looped(set_up, body));
    }
}

/// Steps whose cost depends on how much is there.
#[test]
fn searches_are_counted() {
    let repeated = |n: usize, part: &dyn Fn(usize) -> String| (0..n).map(part).collect::<String>();
    let around = "{% for i in range(100000) %}{% for j in range(100000) %}";
    let ends = "{% endfor %}{% endfor %}";
    let sources = [
        repeated(30_000, &|n| format!("{{% set a{n} = 1 %}}"))
            + around
            + "{% if a29999 and u %}{% endif %}"
            + ends,
        repeated(30_000, &|n| format!("{{{{ b{n} }}}}")) + around + "{% macro f() %}{% endmacro %}" + ends,
        "{% set x = namespace() %}".to_owned()
            + &repeated(20_000, &|n| format!("{{% set x.a{n} = 1 %}}"))
            + around
            + "{% if x.a19999 and x.u %}{% endif %}"
            + ends,
        format!("{{% set d = {{{}}} %}}", repeated(20_000, &|n| format!("{n}: 1,")))
            + around
            + "{% if d[19999] and d.get(1) and d == d and 5 in d %}{% endif %}"
            + ends,
        format!("{{% macro f({}) %}}{{% endmacro %}}", repeated(20_000, &|n| format!("a{n}=1,")))
            + around
            + &format!("{{{{ f({}) }}}}", repeated(20_000, &|n| format!("a{n}=2,")))
            + ends,
        looped(
            "a=(1, 1), b=(1, 1)",
            "{% set x.a = (x.a, x.a) %}{% set x.b = (x.b, x.b) %}{% if x.a == x.b %}{% endif %}",
        ),
        looped("a=(1, 1), b=(1, 1)", "{% set x.a = (x.a, x.a) %}{% set x.b = {x.a: 1} %}"),
        looped("a=(1, 1)", "{% set x.a = (x.a, x.a) %}{% set b = [x.a, x.a]|sort %}"),
        looped(
            "a=(1, 1)",
            "{% set x.a = (x.a, x.a) %}{% set b = x.a in [x.a] %}{% set c = [x.a]|unique|list %}",
        ),
        looped("a=range(100000)|list", "{% set b = x.a|join|length + x.a|sum + x.a|max %}"),
        looped("a='<' * 5000000", "{% set b = x.a|striptags %}{% set c = x.a|indent %}"),
    ];
    sources.iter().for_each(|source| check_ends(source));
}

#[test]
fn recursive_templates_meet_a_limit() {
    let sources = [
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{% macro f(a) %}{{ f(a ~ a) }}{% endmacro %}{{ f('x') }}",
        "{% macro f(a) %}{{ f(a) }}{{ f(a) }}{% endmacro %}{{ f('x') }}",
        "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
        "{% macro f(a=f()) %}{% endmacro %}{{ f() }}",
        "{% macro f() %}{% call f() %}{{ caller() }}{% endcall %}{{ caller() }}{% endmacro %}{% call f() %}{% endcall %}",
        "{% for a in [1] recursive %}{{ loop([1]) }}{% endfor %}",
        "{% for a in [1, 2] recursive %}{{ loop([1, 2]) }}{% endfor %}",
        "{% macro f(x) %}{{ x|map('string')|list }}{{ f([x]) }}{% endmacro %}{{ f([]) }}",
        "{% set ns = namespace() %}{% set ns.f = ns %}{{ ns.f.f.f }}{{ [ns]|string }}",
        "{% for a in range(100000) %}{% for b in range(100000) %}{% for c in range(100000) %}{% endfor %}{% endfor %}{% endfor %}",
    ];
    sources.into_iter().for_each(check_ends);
}

#[test]
fn deep_templates_are_refused_and_long_ones_are_not() {
    let n = 20_000;
    let deep = [
        format!("{{{{ {}1 }}}}", "-".repeat(n)),
        format!("{{{{ {}1 }}}}", "- ".repeat(n)),
        format!("{{{{ {}1 }}}}", "+".repeat(n)),
        format!("{{{{ {}1 }}}}", "not ".repeat(n)),
        format!("{{{{ {}1{} }}}}", "(".repeat(n), ")".repeat(n)),
        format!("{{{{ {}1{} }}}}", "[".repeat(n), "]".repeat(n)),
        format!("{{{{ {}1{} }}}}", "{1:".repeat(n), "}".repeat(n)),
        format!("{{{{ {}1{} }}}}", "f(".repeat(n), ")".repeat(n)),
        format!("{{{{ {}1{} }}}}", "a[".repeat(n), "]".repeat(n)),
        format!("{{{{ {}1{} }}}}", "1|default(".repeat(n), ")".repeat(n)),
        format!("{{{{ {}1 }}}}", "1 if 1 else ".repeat(n)),
        format!("{{{{ 1{} }}}}", " if 1".repeat(n)),
        format!("{}{}", "{% if 1 %}".repeat(n), "{% endif %}".repeat(n)),
        format!("{}{}", "{% for a in b %}".repeat(n), "{% endfor %}".repeat(n)),
        format!("{}{}", "{% set a %}".repeat(n), "{% endset %}".repeat(n)),
        format!("{}{}", "{% filter upper %}".repeat(n), "{% endfilter %}".repeat(n)),
        format!("{}{}", "{% macro f() %}".repeat(n), "{% endmacro %}".repeat(n)),
        format!("{}{}", "{% if 1 %}{% else %}".repeat(n), "{% endif %}".repeat(n)),
        format!("{{% set {}a{} = 1 %}}", "(".repeat(n), ")".repeat(n)),
    ];
    for source in deep {
        let begin = Instant::now();
        let error = Template::parse(&source).expect_err(&source[..60]);
        assert!(error.message.contains("nested too deeply"), "{}: {error}", &source[..60]);
        assert!(begin.elapsed() < LATEST, "{}", &source[..60]);
    }
    let long = [
        format!("{{{{ 'a'{} }}}}", "~'a'".repeat(n)),
        format!("{{{{ 1{} }}}}", "+1".repeat(n)),
        format!("{{{{ 1{} }}}}", "-1".repeat(n)),
        format!("{{{{ 1{} }}}}", "*1".repeat(n)),
        format!("{{{{ 1{} }}}}", "**1".repeat(n)),
        format!("{{{{ 1{} }}}}", " and 1".repeat(n)),
        format!("{{{{ 0{} }}}}", " or 0".repeat(n)),
        format!("{{{{ 0{} }}}}", "<=1".repeat(n)),
        format!("{{{{ 'a'{} }}}}", "|string".repeat(n)),
        format!("{{{{ u{} }}}}", "|default(1)".repeat(n)),
        format!("{{{{ 'a'{} }}}}", "[0]".repeat(n)),
        format!("{{{{ 'a'{} }}}}", " is string".repeat(n)),
        format!("{{% if 0 %}}{}{{% endif %}}", "{% elif 0 %}".repeat(n)),
        "{{ 1 }}".repeat(n),
    ];
    for source in long {
        let template = Template::parse(&source).unwrap_or_else(|error| panic!("{}: {error}", &source[..60]));
        let rendered = template.render(&[], &limits());
        assert!(rendered.is_ok(), "{}: {rendered:?}", &source[..60]);
    }
}

#[test]
fn a_rendering_can_be_cancelled() {
    let source = "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}";
    let template = Template::parse(source).expect("parses");
    let wanted = Arc::new(AtomicBool::new(true));
    let stop = {
        let wanted = Arc::clone(&wanted);
        move |_| (!wanted.load(Ordering::Relaxed)).then_some(Stop::Cancelled)
    };
    let limits = Limits { max_bytes: MAX_BYTES, max_work: u64::MAX, stop: Arc::new(stop) };
    let running = std::thread::spawn(move || template.render(&[], &limits));
    wanted.store(false, Ordering::Relaxed);
    assert_eq!(running.join().expect("ends").expect_err("cancelled").failure, Failure::Cancelled);
}

/// What a limit counts is given back: rendering again and again needs no more memory.
#[test]
fn nothing_is_left_behind() {
    let source = "{% set a = namespace() %}{% set a.a = a %}{% set a.b = [a, a] %}{% set b = namespace(a=a) %}\
        {% set a.c = b %}{% macro f() %}{{ a }}{% endmacro %}{% set a.f = f %}{% for x in [1] %}{% set a.l = loop %}\
        {{ loop.changed(loop) }}{{ a.l.changed(a.l) }}{% endfor %}{{ a.l.changed(a.l) }}{% set a.t = 'x' * 1000000 %}";
    let template = Template::parse(source).expect("parses");
    let render = || template.render(&[], &limits()).expect("renders");
    (0..5).for_each(|_| drop(render()));
    let before = resident();
    (0..300).for_each(|_| drop(render()));
    assert!(resident().saturating_sub(before) < 64 << 20, "{} MB more", (resident() - before) >> 20);
}
