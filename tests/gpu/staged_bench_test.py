"""bench/staged_bench over a fake GPU, under an MPI launcher: each field, size and collective is one row, and its result is right.

    staged_bench_test.py STAGED_BENCH LAUNCHER [LAUNCHER'S OPTIONS...]
"""

import json
import subprocess
import sys
import unittest

BENCH, *LAUNCH = sys.argv[1:]
FIELDS = ["data/weather_wrf_T_4x14x48x48.f32", "data/astronomy_hsc_cosmos_5x58x48.f32"]
COLLECTIVES = ["allreduce", "reduce_scatter", "allgather", "broadcast"]


class StagedBench(unittest.TestCase):
    def run_ranks(self, ranks, *arguments, mode="auto", modes=""):
        environment = [f"LACONIC_MODE={mode}", f"LACONIC_BENCH_MODES={modes}", "LACONIC_CACHE=off"]
        command = [*LAUNCH, "-n", str(ranks), "env", *environment, BENCH, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def test_every_field_size_and_collective(self):
        # More ranks than processors take MPICH seconds: one size of each field there.
        for ranks, mode, sizes_of_first in ((1, "auto", ["0.0625", "0.25"]), (2, "plain", ["0.0625", "0.25"]), (3, "compressed", ["0.0625"])):
            done = self.run_ranks(ranks, "1e-3rel", "1", FIELDS[0], ",".join(sizes_of_first), FIELDS[1], "0.125", mode=mode)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
            sizes = [(FIELDS[0], int(float(mib) * (1 << 20))) for mib in sizes_of_first] + [(FIELDS[1], 1 << 17)]
            share = 4 * ranks
            expected = [(c, f.removeprefix("data/"), n // share * share) for f, n in sizes for c in COLLECTIVES]
            self.assertEqual([(row["collective"], row["field"], row["bytes"]) for row in rows], expected)
            for row in rows:
                self.assertEqual((row["ranks"], row["violations"], row["bound"]), (ranks, 0, "1e-3rel"), row)
                self.assertEqual((row["plainly"], row["ratio"] > 1.5), (mode == "plain", mode == "compressed"), row)
                self.assertGreater(row["mpi_ms"], 0)
                self.assertGreater(row["laconic_ms"], 0)
                self.assertAlmostEqual(row["faster_over_ratio"], row["faster"] / row["ratio"], delta=0.01 * row["faster"])

    def test_modes_are_compared_and_choices_explained(self):
        done = self.run_ranks(2, "1e-3rel", "1", FIELDS[0], "0.25", modes="auto,compressed")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        self.assertEqual([(row["collective"], row["mode"]) for row in rows], [(c, m) for c in COLLECTIVES for m in ("auto", "compressed")])
        said = rows[0]["log"]
        for what in ("link |", "codec grid32 |", "allreduce of 262144 bytes"):
            self.assertTrue(any(line.startswith("laconic debug: " + what) for line in said), said)
        self.assertEqual((rows[1]["plainly"], rows[1]["log"]), (False, []))

    def test_a_field_that_is_not_there_is_named(self):
        done = self.run_ranks(2, "1e-3rel", "1", "data/nothing.f32", "1")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("cannot read data/nothing.f32", done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
