"""laconic bench allreduce, ... under an MPI launcher: that every mode runs, keeps its promise and reports it.

    bench_mpi_test.py LACONIC LAUNCHER [LAUNCHER'S OPTIONS...]
"""

import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(__file__))
import cli_support  # noqa: E402
from cli_support import CommandTest, floats, wave  # noqa: E402

LAUNCH = []
PLAIN_AND_PUBLISHED = ["plain", "cprp2p fzlight", "ccoll", "zccl", "laconic"]


class BenchCollective(CommandTest):
    def run_ranks(self, ranks, *arguments, code=0):
        field = self.write("x_5001.f32", floats(wave(5001)))
        out, said = self.run_laconic("--json", "bench", *arguments, field, code=code, launcher=(*LAUNCH, "-n", str(ranks)))
        return said if code else json.loads(out)

    def check(self, report, collective, ranks, modes, sizes=1):
        self.assertEqual((report["collective"], report["ranks"], len(report["sizes"])), (collective, ranks, sizes))
        for size in report["sizes"]:
            self.assertEqual([m["mode"] for m in size["modes"]], modes)
            self.assertGreater(size["absolute_bound"], 0)
            for m in size["modes"]:
                self.assertGreater(m["seconds"], 0)
                self.assertEqual(m["violations"], 0, m)
                self.assertLess(m["max_error_over_bound"], 1.001, m)
                if m["mode"] == "plain":
                    continue
                self.assertTrue(m["promised"])
                self.assertGreater(m["max_error_over_bound"], 0, "compressed data are not exact")
                self.assertGreater(m["ratio"], 1)
                self.assertGreater(m["sent_bytes"], 0)
                self.assertLessEqual(m["scratch_bytes"], m["scratch_allowance"])
                self.assertGreater(sum(m["breakdown_seconds"].values()), 0)
            same = size["modes"][-1]["identical_on_all_ranks"]
            self.assertEqual(same, True if collective in ("allreduce", "allgather", "bcast") else None)

    def test_every_collective(self):
        for ranks, collective in ((3, "allreduce"), (2, "allgather"), (3, "bcast"), (3, "scatter"), (3, "gather"),
                                  (3, "reduce_scatter"), (3, "alltoall"), (3, "reduce")):
            with self.subTest(collective):
                report = self.run_ranks(ranks, collective, "--size", "40k", "--repetitions", "1")
                self.check(report, collective, ranks, PLAIN_AND_PUBLISHED)

    def test_sizes_codecs_and_threads(self):
        report = self.run_ranks(2, "allreduce", "--size", "1k,30001", "--repetitions", "2", "--modes",
                                "plain,cprp2p,zccl-mt,laconic", "--codec", "slice,szx", "-t", "2", "-b", "operand:1e-2")
        self.assertEqual([s["operand_bytes"] for s in report["sizes"]], [1024, 30000])
        self.assertEqual([m["mode"] for m in report["sizes"][1]["modes"]],
                         ["plain", "cprp2p slice 2 threads", "cprp2p szx 2 threads", "zccl-mt 2 threads", "laconic 2 threads"])
        for size in report["sizes"]:
            self.assertEqual(sum(m["violations"] for m in size["modes"] if m["promised"]), 0)

    def test_schedules(self):
        report = self.run_ranks(3, "allreduce", "--size", "100k", "--modes", "laconic", "--schedule",
                                "automatic,ring,two-level", "--repetitions", "1")
        modes = report["sizes"][0]["modes"]
        self.assertEqual([m["mode"] for m in modes], ["laconic", "laconic ring", "laconic two-level"])
        for m in modes:
            self.assertTrue(m["identical_on_all_ranks"])
            self.assertEqual(m["violations"], 0)
            self.assertGreaterEqual(m["ratio"], 1)
            self.assertLessEqual(m["scratch_bytes"], m["scratch_allowance"])

    def test_second_series(self):
        modes = ["plain", "laconic", "auto", "plain", "laconic"]
        report = self.run_ranks(2, "allreduce", "--size", "10k", "--modes", ",".join(modes), "--warm-up", "3", "--repetitions", "2")
        series = report["sizes"][0]["modes"]
        self.assertEqual([m["mode"] for m in series], modes)
        for m in series:
            self.assertEqual(m["violations"], 0)
            self.assertGreater(m["seconds"], 0)

    def test_turns_of_several_calls(self):
        for turn, timed in (("1", 2), ("2", 2), ("4", 6)):
            report = self.run_ranks(2, "allreduce", "--size", "1k", "--modes", "plain,laconic", "--turn", turn, "--repetitions", "2")
            self.assertEqual([m["timed_calls"] for m in report["sizes"][0]["modes"]], [timed, timed])

    def test_one_rank_says_what_is_wrong_with_the_command(self):
        for wrong in (("bench", "allreduce", "--nonsense"), ("stack", "--threads", "0"), ("stack", "absent.npy")):
            with self.subTest(wrong):
                out, _ = self.run_laconic("--json", *wrong, code=3 if "absent.npy" in wrong else 2, launcher=(*LAUNCH, "-n", "3"))
                self.assertIn(wrong[-2] if "0" in wrong else wrong[-1], json.loads(out)["error"])

    def test_a_size_is_reported_before_the_next_is_measured(self):
        field = self.write("x_5001.f32", floats(wave(5001)))
        command = [*LAUNCH, "-n", "2", cli_support.LACONIC, "bench", "allreduce", field, "--modes", "plain,laconic", "--size", "1k,128m"]
        # The second takes long, and is not waited for.
        with subprocess.Popen([*command, "--repetitions", "50"], cwd=self.folder, stdout=subprocess.PIPE, text=True) as bench:
            modes = []
            for line in bench.stdout:
                modes += [mode for mode in ("plain", "laconic") if line.startswith(mode)]
                if len(modes) == 2:
                    break
            self.assertIsNone(bench.poll())
            bench.terminate()
        self.assertEqual(modes, ["plain", "laconic"])

    def run_two(self, first, second, code=4):
        """Two ranks with different command lines: the code with which both have to end, and what they say."""
        mine = [cli_support.LACONIC, *first]
        done = subprocess.run([*LAUNCH, "-n", "1", *mine, ":", "-n", "1", cli_support.LACONIC, *second], cwd=self.folder,
                              capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stderr

    def test_ranks_that_differ(self):
        for name, values in (("x.f32", wave(5000)), ("y.f32", wave(5000)[::-1])):
            self.write(name, floats(values))
        bench = ["bench", "allreduce", "x.f32", "--repetitions", "1", "--size"]
        said = self.run_two([*bench, "4k"], [*bench, "8k"])
        self.assertIn("rank 1 has 2048 values, rank 0 1024", said)
        said = self.run_two([*bench, "4k"], [w.replace("x.", "y.") for w in [*bench, "4k"]])
        self.assertIn("rank 1 read other files than rank 0", said)
        stack = ["stack", "--dims", "50x100", "--repetitions", "1", "--size"]
        said = self.run_two([*stack, "40k", "x.f32"], [*stack, "80k", "x.f32"])
        self.assertRegex(said, "rank 1 has [0-9]+ values, rank 0 [0-9]+")
        said = self.run_two([*stack, "1", "x.f32"], [*stack, "1", "y.f32"])
        self.assertIn("rank 1 read other files than rank 0", said)

    def test_a_wrong_option_of_one_rank_ends_all(self):
        field = self.write("x_50x100.f32", floats(wave(5000)))
        bench, stack = (["bench", "allreduce", field, "--size", "4k"], ["stack", field, "--size", "1"])
        for first, second in ((bench, [*bench, "--nonsense"]), ([*bench, "--nonsense"], bench), (stack, [*stack, "--nonsense"])):
            with self.subTest((first, second)):
                self.assertIn("--nonsense", self.run_two(first, second, code=2))

    def test_a_report_that_cannot_be_written_ends_all_ranks_in_order(self):
        images = self.write("x_50x100.f32", floats(wave(5000)))
        full = ("sh", "-c", 'exec "$@" >/dev/full', "-")
        for options in ((), ("--json",)):
            said = self.run_laconic(*options, "stack", images, "--size", "1", "--repetitions", "1", code=5,
                                    launcher=(*LAUNCH, "-n", "2", *full))[1]
            self.assertIn("stdout cannot be written", said)

    def test_pictures_that_cannot_be_written_end_all_ranks_in_order(self):
        images = self.write("x_50x100.f32", floats(wave(5000)))
        said = self.run_laconic("stack", images, "--size", "1", "--repetitions", "1", "--out", self.write("plain", b"") + "/sub",
                                code=5, launcher=(*LAUNCH, "-n", "3"))[1]
        self.assertIn("plain/sub", said)
        self.assertNotIn("MPI_ABORT", said.upper())

    def test_failures(self):
        for wrong in (("--modes", "zccl-mt"), ("--codec", "gzip"), ("-b", "10x"), ("--schedule", "square", "-t", "1"), ("--wire", "nonsense0"),
                      ("--warm-up", "-5"), ("--turn", "0")):
            with self.subTest(wrong):
                said = self.run_ranks(1, "allreduce", "--size", "1k", *wrong, code=2)
                self.assertIn(wrong[1], said)

    def test_options_that_no_mode_uses(self):
        for option, value, modes in (("--threads", "2", "plain,zccl"), ("--codec", "szx", "laconic"), ("--schedule", "ring", "plain,auto")):
            said = self.run_ranks(1, "allreduce", "--modes", modes, option, value, "--size", "1k", "--repetitions", "1", code=2)
            self.assertIn(f"{option} is for", said)


if __name__ == "__main__":
    LAUNCH = sys.argv[2:]
    del sys.argv[2:]
    cli_support.main()
