#!/usr/bin/env python3
"""The driver's own sums, choices and resuming, without any engine: `python3 tests/peers/check.py`."""

import contextlib
import os
import sys
import tempfile
import unittest
from unittest import mock

import engines
import report
import run
from engines import Failed, Sitting

SHORT = Sitting("short", 512, 64)


class Pretended:
    """An engine that gives prepared figures and counts how often it is called."""

    def __init__(self, name, speeds, version="1"):
        self.name, self.speeds, self.version, self.asked = name, speeds, version, []

    def runs(self, _inspected):
        return True

    def variants(self, _sitting):
        return list(self.speeds)

    def measure(self, sitting, _path, variant):
        self.asked.append((sitting, variant))
        if self.speeds[variant] is None:
            raise Failed("it doesn't load")
        row = {"tok_s": self.speeds[variant], "rss_peak_mb": 100.0, "bytes_per_token": 10**9}
        asked = [test for test in sitting.tests() if not test[0].endswith(" busy")]
        return [row | {"test": test, "depth": depth, "kv": kv} for test, depth, kv in asked]

    def inspect(self, _path):
        return {"metadata": {}, "tensors": [{"name": "token_embd.weight", "shape": [10, 4]}]}


class PretendedMachine:
    def busy(self):
        return contextlib.nullcontext()

    def limits(self):
        return {"read_gb_s": 40.0, "read_usual_gb_s": 32.0, "int8_gops": 1000.0}


def driver(folder, ours, peer):
    results = report.Results(os.path.join(folder, "results.jsonl"), "run")
    return run.Driver([ours, peer], PretendedMachine(), results)


def sit(one, about, sitting, n_rounds):
    for at in range(n_rounds):
        one.sit(about, "path", sitting, at)
    return one


ABOUT = {"shape": "s", "mix": "m", "file": "f"}


class Rounds(unittest.TestCase):
    def test_engines_alternate_and_slow_variants_leave_after_the_first_rounds(self):
        with tempfile.TemporaryDirectory() as folder:
            ours = Pretended("inglenook", {"": 30.0})
            peer = Pretended("other", {"good": 20.0, "near": 19.5, "bad": 10.0})
            sit(driver(folder, ours, peer), ABOUT, SHORT, 4)
            self.assertEqual(len(ours.asked), 4)
            names = [variant for _, variant in peer.asked]
            self.assertEqual(names, ["good", "near", "bad"] * 2 + ["good", "near"] * 2)

    def test_a_peer_far_behind_another_leaves_too(self):
        with tempfile.TemporaryDirectory() as folder:
            ours, peer = Pretended("inglenook", {"": 90.0}), Pretended("other", {"good": 20.0})
            slow = Pretended("third", {"": 9.0})
            one = driver(folder, ours, peer)
            one.engines.append(slow)
            sit(one, ABOUT, SHORT, 3)
            self.assertEqual([len(engine.asked) for engine in one.engines], [3, 3, 2])

    def test_what_is_done_is_not_done_again(self):
        with tempfile.TemporaryDirectory() as folder:
            ours, peer = Pretended("inglenook", {"": 30.0}), Pretended("other", {"good": 20.0})
            sit(driver(folder, ours, peer), ABOUT, SHORT, 2)
            with open(os.path.join(folder, "results.jsonl"), encoding="utf-8") as file:
                whole = file.read().splitlines(keepends=True)
            # Ended in the middle of the last line: that row, and no other, is missing.
            with open(os.path.join(folder, "results.jsonl"), "w", encoding="utf-8") as file:
                file.writelines(whole[:-1] + [whole[-1][:20]])
            ours, peer = Pretended("inglenook", {"": 30.0}), Pretended("other", {"good": 20.0})
            sit(driver(folder, ours, peer), ABOUT, SHORT, 2)
            self.assertEqual((len(ours.asked), len(peer.asked)), (0, 1))
            results = driver(folder, ours, peer).results
            self.assertEqual([entry[1] for entry in report.lines(results)], ["pp512", "tg64"])
            self.assertEqual(len(results.of(engine="other")), 4)

    def test_another_build_or_file_is_measured_anew(self):
        with tempfile.TemporaryDirectory() as folder:
            ours, peer = Pretended("inglenook", {"": 30.0}), Pretended("other", {"good": 20.0})
            sit(driver(folder, ours, peer), ABOUT, SHORT, 1)
            newer = Pretended("other", {"good": 25.0}, version="2")
            sit(driver(folder, ours, newer), ABOUT, SHORT, 1)
            self.assertEqual((len(ours.asked), len(newer.asked)), (1, 1))
            entries = report.lines(driver(folder, ours, newer).results)
            self.assertEqual([entry[3] for entry in entries], ["25.0 tok/s"] * 2)
            sit(driver(folder, ours, newer), ABOUT | {"file": "g"}, SHORT, 1)
            self.assertEqual((len(ours.asked), len(newer.asked)), (2, 2))

    def test_an_engine_that_fails_is_said_and_not_asked_again(self):
        with tempfile.TemporaryDirectory() as folder:
            ours, peer = Pretended("inglenook", {"": 30.0}), Pretended("other", {"good": None})
            failing = sit(driver(folder, ours, peer), ABOUT, SHORT, 3)
            self.assertEqual((len(ours.asked), len(peer.asked), len(failing.failures)), (3, 1, 1))

    def test_slow_prompts_have_fewer_rounds(self):
        left = [run.in_round(run.SLOW, SHORT, at).n_prompt for at in range(5)]
        self.assertEqual(left, [512, 512, 512, 0, 0])
        self.assertIsNone(run.in_round(run.SLOW, Sitting("short", 512, 0), 3))
        self.assertEqual(run.in_round("llama-3.2-1b", SHORT, 4), SHORT)


class Plans(unittest.TestCase):
    def test_long_contexts_are_for_two_files_unless_named(self):
        tests = set(run.TESTS)
        deep = [s.label for s in run.sittings("smollm3-3b", "Q4_K_M", tests, False)]
        self.assertEqual(deep, ["short", "load", "deep f16", "deep q8_0", "busy"])
        short = [s.label for s in run.sittings("gemma-3-1b", "Q4_0", tests, False)]
        self.assertEqual(short, ["short", "load"])
        self.assertIn("deep f16", [s.label for s in run.sittings("gemma-3-1b", "Q4_0", tests, True)])

    def test_chosen_files(self):
        self.assertEqual(run.files(False, "qwen3-4b:Q8_0"), [("qwen3-4b", "Q8_0")])
        with mock.patch.object(run, "fits", lambda shape: True):
            self.assertEqual(len(run.files(False, None)), 11)
        with mock.patch.object(run.os, "sysconf", lambda name: 4096):
            self.assertFalse(run.fits("gemma-4-26b-a4b"))
            self.assertTrue(run.fits("qwen3.5-4b"))
            self.assertEqual(len(run.files(False, None)), 11)
            self.assertIn(("qwen3.6-35b-a3b/8", "Q4_K_M"), run.files(False, None))
        self.assertIn(("gpt-oss-20b", "MXFP4"), run.files(True, None))
        with self.assertRaises(SystemExit):
            run.files(False, "nothing:Q8_0")

    def test_tests_of_a_sitting(self):
        self.assertEqual(SHORT.tests(), [("pp512", 0, "f16"), ("tg64", 0, "f16")])
        deep = Sitting("deep", 4096, 64, "q8_0")
        self.assertEqual(deep.tests(), [("pp4096", 0, "q8_0"), ("tg64", 4096, "q8_0")])
        self.assertEqual([t for t, _, _ in Sitting("busy", 0, 16).tests()], ["tg16", "tg16 busy"])


class Figures(unittest.TestCase):
    def test_weights_multiplied_per_token(self):
        tensors = [
            {"name": "token_embd.weight", "shape": [100, 8]},
            {"name": "blk.0.attn_norm.weight", "shape": [8]},
            {"name": "blk.0.attn_q.weight", "shape": [8, 8]},
            {"name": "blk.0.attn_q.bias", "shape": [8]},
            {"name": "blk.0.ffn_up_exps.weight", "shape": [4, 16, 8]},
        ]
        metadata = {"x.expert_count": 4, "x.expert_used_count": 1}
        tied = {"metadata": metadata, "tensors": tensors}
        self.assertEqual(report.multiplied_per_token(tied, 8), 64 + 128 + 100)
        untied = {"metadata": metadata, "tensors": [*tensors, {"name": "output.weight", "shape": [100, 8]}]}
        self.assertEqual(report.multiplied_per_token(untied, 8), 64 + 128 + 100)

    def test_shares_pair_rounds(self):
        rows = [{"round": 0, "tok_s": 10.0}, {"round": 1, "tok_s": 20.0}, {"round": 2, "tok_s": 30.0}]
        done, share = report.shares(rows, {0: 20.0, 1: 40.0, 2: None}, 10**9)
        self.assertEqual((done, share), (20.0, 0.5))
        self.assertEqual(report.shares(rows, {}, 10**9), (20.0, None))

    def test_the_best_variant_is_among_those_with_all_rounds(self):
        rows = [{"variant": "once", "tok_s": 99.0}]
        rows += [{"variant": "a", "tok_s": x} for x in (10.0, 12.0)]
        rows += [{"variant": "b", "tok_s": x} for x in (11.0, 13.0)]
        self.assertEqual(report.best_variant(rows)[0]["variant"], "b")
        starts = [{"variant": "slow", "ms": 900.0}, {"variant": "fast", "ms": 400.0}]
        self.assertEqual(report.best_variant(starts)[0]["variant"], "fast")

    def test_a_line_of_the_table(self):
        with tempfile.TemporaryDirectory() as folder:
            ours, peer = Pretended("inglenook", {"": 30.0}), Pretended("other", {"good": 20.0})
            one = sit(driver(folder, ours, peer), ABOUT, SHORT, 2)
            prompt, decode = report.lines(one.results)
        self.assertEqual(decode[2:6], ["30.0 tok/s", "20.0 tok/s", "other, good", "1.50"])
        self.assertEqual(decode[6:], ["30.0 GB/s, 75% (94% of the usual)", "100 / 100 MB"])
        self.assertEqual(prompt[6], "0 GOPS, 0%")

    def test_beside_other_work(self):
        with tempfile.TemporaryDirectory() as folder:
            ours, peer = Pretended("inglenook", {"": 30.0}), Pretended("other", {"good": 20.0})
            one = sit(driver(folder, ours, peer), ABOUT, Sitting("busy", 0, 16), 1)
            quiet, busy = report.lines(one.results)
        self.assertEqual([quiet[1], busy[1]], ["tg16", "tg16 busy"])
        self.assertEqual([quiet[6], busy[6]], ["30.0 GB/s, 75% (94% of the usual)", "1.00 of quiet"])

    def test_output_of_llama_bench(self):
        output = """noise
        [{"n_prompt": 512, "n_gen": 0, "samples_ts": [1.0, 2.0]},
         {"n_prompt": 4096, "n_gen": 64, "test": "tg64@pp4096", "samples_ts": [3.0]},
         {"n_prompt": 0, "n_gen": 64, "n_depth": 4096, "samples_ts": [4.0]}]"""
        rows = [(row["test"], row["depth"], row["tok_s"]) for row in engines.bench_rows(output, "f16")]
        self.assertEqual(rows, [("pp512", 0, 2.0), ("tg64", 4096, 3.0), ("tg64", 4096, 4.0)])
        self.assertIn("-rtr", engines.options_in("  -rtr, --run-time-repack <0|1> (default: 0)"))

    def test_what_is_asked_of_llama_bench(self):
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "bench")
            with open(program, "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\necho ' -rtr  -gp <pp,tg>'\n")
            os.chmod(program, 0o755)
            bench = engines.LlamaBench("peer", program, 2)
        self.assertEqual(bench.variants(SHORT), ["as it is", "repacked"])

        def asked(n_prompt, n_generated):
            commands = bench.commands(Sitting("deep", n_prompt, n_generated), "x", "as it is")
            return [("-gp" in command, command[command.index("-p") + 1]) for command in commands]

        self.assertEqual(asked(4096, 64), [(False, "4096"), (True, "0")])
        self.assertEqual(asked(0, 64), [(True, "0")])
        self.assertEqual(asked(4096, 0), [(False, "4096")], "nothing is generated, so nothing at depth")

    def test_processes(self):
        ran = engines.run([sys.executable, "-c", "print('{\"a\": 1}'); x = bytearray(50_000_000)"])
        self.assertEqual(engines.json_lines(ran.output), [{"a": 1}])
        self.assertGreater(ran.first_line_ms, 0)
        self.assertGreater(ran.rss_peak_mb, 45)
        with self.assertRaisesRegex(Failed, "why"):
            engines.run([sys.executable, "-c", "import sys; sys.exit('why')"])
        with self.assertRaises(Failed):
            engines.run(["/nowhere/at-all"])


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=0, buffer=True).result
    bad = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - bad} passed, {bad} failed")
    sys.exit(1 if bad else 0)
