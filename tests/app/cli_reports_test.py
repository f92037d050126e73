"""bench codec, stack and doctor: that they run on small inputs and report what they promise."""

import os
import shutil
import struct
import subprocess
import sys
import unittest

import cli_support
from cli_support import CommandTest, floats, npy, wave


class BenchCodec(CommandTest):
    def test_ratio_of_files(self):
        self.write("x_50x100.f32", floats(wave(5000)))
        report = self.json("bench", "codec", "x_50x100.f32", "--ratio", "-b", "1e-2rel,1e-4rel", "--codec", "slice,szx")
        self.assertEqual([r["codec"] for r in report["rows"]], ["slice", "slice", "szx", "szx"])
        for coarse, fine in (report["rows"][:2], report["rows"][2:]):
            self.assertGreater(coarse["ratio"], fine["ratio"])
            self.assertEqual(coarse["violations"] + fine["violations"], 0)

    def test_the_range_is_that_of_all_values(self):
        self.write("x_5000.f32", floats(wave(5000)))
        self.write("y_5000.f32", floats([1e17 * v for v in wave(5000)]))
        ratios = [self.json("bench", "codec", name, "--ratio", "-b", "1e-3rel", "--codec", "slice")["rows"][0]["ratio"]
                  for name in ("x_5000.f32", "y_5000.f32")]
        self.assertAlmostEqual(ratios[0], ratios[1], delta=0.1 * ratios[0])

    def test_means_are_in_the_order_of_the_rows(self):
        self.write("x_5000.f32", floats(wave(5000)))
        self.write("y_2500.f64", struct.pack("<2500d", *wave(2500)))
        for codecs in (["slice", "fzlight", "szx"], ["szx", "slice", "fzlight"]):
            text, _ = self.run_laconic("bench", "codec", "x_5000.f32", "y_2500.f64", "--ratio", "-b", "1e-2rel", "--codec", ",".join(codecs))
            means = [line.split()[2:4] for line in text.splitlines() if line.startswith("geometric mean")]
            self.assertEqual(means, [[codec, dtype] for dtype in ("f32", "f64") for codec in codecs])

    def test_speeds_of_all_codecs(self):
        self.write("x_50x100.f32", floats(wave(5000)))
        report = self.json("bench", "codec", "x_50x100.f32", "--size", "64k", "-b", "1e-3rel", "--repetitions", "1", "-t", "2")
        codecs = {(r["codec"], r["threads"], r["in_cache"]) for r in report["rows"]}
        always = {(codec, threads, False) for codec in ("slice", "szx", "fzlight") for threads in (1, 2)}
        always |= {(codec, 1, True) for codec in ("slice", "szx", "fzlight")}
        self.assertLessEqual(always, codecs)  # the others are there where their libraries were
        for row in report["rows"]:
            self.assertGreater(row["versus_memcpy"]["encode"], 0)
            self.assertGreater(row["ratio"], 0)
            if row["codec"] != "zfp-rate":
                self.assertEqual(row["violations"], 0, row["codec"])

    def test_the_smallest_size_is_an_element(self):
        self.write("x.f64", struct.pack("<100d", *wave(100)))
        rows = self.json("bench", "codec", "x.f64", "--codec", "slice,szx", "--size", "3", "--repetitions", "1", "--no-cache")["rows"]
        self.assertEqual({r["raw_bytes"] for r in rows}, {8})

    def test_what_cannot_be_added_is_not(self):
        self.write("x_5000.f32", floats(wave(5000)))
        report = self.json("bench", "codec", "x_5000.f32", "--size", "64k", "-b", "0,1e-3", "--repetitions", "1", "--codec", "slice")
        added = {r["bound"]: r["versus_memcpy"]["add"] > 0 for r in report["rows"]}
        self.assertEqual(added, {"lossless": False, "0.001": True})

    def test_text_tables(self):
        self.write("x.f32", floats(wave(5000)))
        text, _ = self.run_laconic("bench", "codec", "x.f32", "--size", "32k", "--repetitions", "1", "--target", "scalar",
                                   "-b", "1e-3rel", "--per-field")
        for word in ("compress", "decompress", "add", "szx", "fzlight", "scalar", "memcpy"):
            self.assertIn(word, text)

    def test_samples_from_a_folder(self):
        self.write("a_2x50.f32", floats(wave(100)))
        self.write("MANIFEST.json", b'{"files": [{"name": "a", "file": "a_2x50.f32", "dtype": "float32", "dims": [2, 50],'
                                    b' "fill_value": [1e20]}]}')
        report = self.json("bench", "codec", "--ratio", "--data", self.folder)
        self.assertEqual({r["field"] for r in report["rows"]}, {"a"})

    def test_failures(self):
        self.write("x.f32", floats(wave(100)))
        self.run_laconic("bench", "codec", "x.f32", "--target", "mmx", code=2)
        self.run_laconic("bench", "codec", "x.f32", "--codec", "gzip", code=2)
        self.run_laconic("bench", "codec", "x.f32", "--repetitions", "0", code=2)
        self.run_laconic("bench", "codec", self.write("k_100.i32", bytes(400)), "--codec", "szx", code=2)
        self.run_laconic("bench", "codec", "x.f32", "--size", "many", code=2)
        for much in ("1025GiB", "99999999999999999999"):
            self.assertIn("more than 1024 GiB", self.run_laconic("bench", "codec", "x.f32", "--size", much, code=2)[1])
        self.run_laconic("bench", "codec", "absent.f32", code=3)
        self.run_laconic("bench", "codec", "x.f32", self.write("nothing.f32", b""), code=4)
        self.run_laconic("bench", "codec", "--data", self.folder, code=3)
        self.run_laconic("bench", "codec", "--data", "x" * 300, code=3)
        self.assertIn("sample fields", self.run_laconic("bench", "codec", environment={"LACONIC_DATA": self.folder}, code=3)[1])
        self.write("MANIFEST.json", b'{"files": [{"name": "a"}]}')
        self.run_laconic("bench", "codec", "--data", self.folder, code=4)
        self.write("MANIFEST.json", b'{"files": [{"name": "a", "file": "a", "dtype": "f99", "dims": [1]}]}')
        self.assertIn("MANIFEST.json", self.run_laconic("bench", "codec", "--data", self.folder, code=4)[1])
        self.assertIn("f99", self.run_laconic("doctor", environment={"LACONIC_DATA": self.folder})[0])


class BenchError(CommandTest):
    def report(self, *options):
        # Positive and never on a grid: every element has an error, and truncation shows.
        self.write("x_50x100.f32", floats([v + 3 + 1e-3 * ((i * 7919) % 997) for i, v in enumerate(wave(5000))]))
        return self.json("bench", "error", "x_50x100.f32", "--ranks", "2,4", "--size", "20000", *options)

    def test_both_theories(self):
        report = self.report("-b", "1e-2")
        self.assertEqual(len(report["rows"]), 2 * 4 * 3)
        self.assertEqual(len(report["per_field"]), len(report["rows"]))
        for row in report["rows"]:
            self.assertEqual(row["count"], 5000)
            self.assertLessEqual(row["over_promise"], 1)
            self.assertLessEqual(row["max"], row["ours"]["certain"] * 1.001)
            self.assertAlmostEqual(row["rms"] ** 2, row["sigma"] ** 2 + row["bias"] ** 2, places=6)
            self.assertLessEqual(row["percentiles"]["50"], row["percentiles"]["99"])
        sums = {(r["mode"], r["ranks"]): r for r in report["rows"] if r["op"] == "sum"}
        for ranks in (2, 4):
            ours, truncating = sums["laconic", ranks], sums["zccl", ranks]
            self.assertAlmostEqual(ours["papers"]["sigma"], ranks**0.5 / 3)
            self.assertAlmostEqual(ours["bias"], 0, delta=0.1)
            self.assertAlmostEqual(ours["sigma"], ours["ours"]["sigma"], delta=0.15 * ours["sigma"])
            self.assertAlmostEqual(truncating["bias"], -ranks / 2, delta=0.2)
            self.assertLess(truncating["within_papers_interval"], ours["within_papers_interval"])

    def test_text_and_choice(self):
        text, _ = self.run_laconic("bench", "error", self.write("x.f32", floats(wave(3000))), "--ops", "max", "--ranks", "3",
                                   "--per-field", "--size", "9000")
        for word in ("max", "zccl", "ccoll", "95.44", "x.f32"):
            self.assertIn(word, text)
        self.assertNotIn("average", text)

    def test_sigmas_are_passed_as_seldom_as_expected(self):
        rows = self.report("-b", "2sigma:1e-2", "--ops", "sum,max")["rows"]
        for row in rows:
            if (row["mode"], row["op"]) == ("laconic", "sum"):
                self.assertAlmostEqual(row["ours"]["beyond_bound"], 0.04, delta=0.01)
                self.assertAlmostEqual(row["beyond_bound"], row["ours"]["beyond_bound"], delta=0.01)
            else:  # sums step by step keep the bound for certain
                self.assertEqual(row["beyond_bound"], 0)
            self.assertLessEqual(row["over_promise"], 1)

    def test_what_is_exact_is_not_measured(self):
        report = self.json("bench", "error", self.write("x_100.f32", floats([1.5] * 100)), "--ranks", "2", "--ops", "sum",
                           "--size", "400")
        self.assertEqual(len(report["skipped"]), 3)
        self.assertEqual({r["count"] for r in report["rows"]}, {0})
        text, _ = self.run_laconic("bench", "error", "x_100.f32", "--ranks", "2", "--ops", "sum", "--per-field")
        self.assertIn("no result has an error, as of constant data", text)
        self.assertNotIn("papers' sigma", text)
        self.write("nan_100.f32", floats([float("nan")] * 100))
        self.assertIn("no element is a number", self.run_laconic("bench", "error", "nan_100.f32", "-b", "1e-3", "--ranks", "2")[0])

    def test_failures(self):
        self.write("x.f32", floats(wave(100)))
        for wrong in (("--ranks", "1"), ("--ops", "product"), ("--ops", "nonsense"), ("-b", "lossless"), ("-b", "10x"),
                      ("--size", "none"), ("--only", "absent")):
            self.run_laconic("bench", "error", "x.f32", *wrong, code=2)
        self.run_laconic("bench", "error", self.write("x_100.i32", bytes(400)), code=4)
        self.run_laconic("bench", "error", self.write("nothing.f32", b""), code=4)


class BenchCollective(CommandTest):
    def test_failures(self):
        _, said = self.run_laconic("bench", "allgather", code=2)
        self.assertIn("mpiexec", said)
        self.run_laconic("bench", "allsum", code=2)
        self.assertIn("--ranks 257", self.run_laconic("bench", "allgather", "--ranks", "257", code=2)[1])
        self.assertIn("--mpi requires --ranks", self.run_laconic("bench", "allgather", "--mpi", "mpich", code=2)[1])
        self.assertIn("--link requires --ranks", self.run_laconic("bench", "allgather", "--link", "1gbit", code=2)[1])
        for link in ("fast", "1", "gbit", "0gbit", "-1gbit", "1gbps", "1 gbit", "infgbit", "1e3mbit"):
            said = self.run_laconic("bench", "allgather", "--ranks", "2", "--link", link, code=2)[1]
            self.assertIn(f"--link '{link}' is not understood; write for example 1gbit", said)

    def test_emulated_hosts_need_root(self):
        nobody = ("setpriv", "--reuid=65534", "--clear-groups") if os.geteuid() == 0 else ()
        if nobody and not shutil.which("setpriv"):
            self.skipTest("there is no setpriv (util-linux)")
        if subprocess.run([*nobody, cli_support.LACONIC, "--version"], capture_output=True, check=False).returncode:
            self.skipTest("nobody may not run the command")
        said = self.run_laconic("bench", "bcast", "--ranks", "2", "--link", "1gbit", code=2, launcher=nobody)[1]
        if "no launcher of an MPI" in said:
            self.skipTest("no MPI was there when Laconic was built")
        self.assertIn("--link: emulated hosts need root", said)


class Stack(CommandTest):
    small = ("--size", "1", "--repetitions", "1")

    def images(self, n, dims="20x30"):
        return [self.write(f"image{i}_{dims}.f32", floats([v + i for v in wave(600)])) for i in range(n)]

    def test_files_over_threads(self):
        report = self.json("stack", *self.images(3), "-n", "3", "-b", "1e-3rel", *self.small)
        self.assertEqual((report["ranks"], report["images"]), (3, 3))
        laconic = report["laconic"]
        self.assertEqual(laconic["violations"], 0)
        self.assertTrue(laconic["identical_on_all_ranks"])
        self.assertLessEqual(laconic["max_error_over_bound"], 1)
        self.assertGreater(report["absolute_bound"], 0)
        seconds = report["seconds"]
        self.assertAlmostEqual(sum(seconds.values()), laconic["seconds"], delta=laconic["seconds"])

    def test_one_file_with_an_axis_of_images(self):
        self.write("stack.npy", npy(floats(wave(600)), "<f4", "(4, 10, 15)"))
        report = self.json("stack", "stack.npy", "-n", "2", "--op", "average", *self.small)
        self.assertEqual((report["images"], report["rows"], report["cols"]), (4, 10, 15))

    def test_double_precision(self):
        self.write("stack_4x10x15.f64", struct.pack("<600d", *wave(600)))
        report = self.json("stack", "stack_4x10x15.f64", "-n", "2", *self.small)
        self.assertEqual(report["laconic"]["violations"], 0)

    def test_lossless(self):
        report = self.json("stack", *self.images(2), "-n", "2", "-b", "lossless", *self.small)
        self.assertEqual(report["absolute_bound"], 0)
        self.assertEqual(report["laconic"]["violations"], 0)

    def test_pictures(self):
        self.run_laconic("stack", *self.images(2), "-n", "2", "--out", "a/b", *self.small)
        for name in ("exact", "laconic", "difference", "side_by_side"):
            with open(self.path(f"a/b/{name}.png"), "rb") as f:
                head = f.read(24)
            self.assertEqual(head[:8], b"\x89PNG\r\n\x1a\n")
            width, height = struct.unpack(">II", head[16:24])
            self.assertGreaterEqual(min(width, height), 100)

    def test_pictures_of_strips(self):
        for dims in ("2x5000x1", "2x3x7000"):  # longer than a picture is, and narrower than it is shrunk
            values = floats([float(i % 97) for i in range(42000)])
            strips = self.write(f"strips_{dims}.f32", values[: 40000 if dims == "2x5000x1" else None])
            self.run_laconic("stack", strips, "-n", "2", "--out", dims, *self.small)
            with open(self.path(f"{dims}/exact.png"), "rb") as f:
                width, height = struct.unpack(">II", f.read(24)[16:])
            self.assertTrue(400 <= max(width, height) <= 800 and min(width, height) >= 1, (dims, width, height))

    def test_a_bar_tells_how_far_it_is(self):
        shares = self.shares_on_a_terminal("stacking", "stack", "--set", "rtm", "-n", "2", "--size", "4MiB", "--repetitions", "60")
        self.assertEqual(sorted(shares), shares)
        self.assertGreater(shares[-1], 80)

    def test_little_stack(self):
        if cli_support.sanitized():
            self.skipTest("sanitizers need much themselves")
        self.run_laconic("stack", "--set", "rtm", "--size", "1", "--repetitions", "1", launcher=("sh", "-c", 'ulimit -s 128; exec "$@"', "-"))

    def test_samples(self):
        report = self.json("stack", "--set", "exposures", "-n", "3", "--op", "average", *self.small)
        self.assertEqual(report["images"], 3)
        self.assertEqual(report["laconic"]["violations"], 0)

    def test_failures(self):
        images = self.images(2)
        self.run_laconic("stack", *images, "-n", "3", code=4)
        self.run_laconic("stack", *images, "-n", "0", code=2)
        self.run_laconic("stack", *images, "-n", "2", "--op", "max", code=2)
        self.run_laconic("stack", *images, "-n", "2", "--op", "nonsense", code=2)
        self.run_laconic("stack", *images, "-n", "2", "-b", "nonsense", code=2)
        self.run_laconic("stack", *images, "-n", "2", "--link", "nonsense", code=2)
        self.run_laconic("stack", *images, "-n", "2", "--link", "infgbit", code=2)
        self.run_laconic("stack", *images, "-n", "2", "--wire", "nonsense0", *self.small, code=2)
        self.run_laconic("stack", *images, "absent.f32", code=3)
        _, said = self.run_laconic("stack", "--set", "nonsense", code=3)
        for field in ("wave_computed_marmousi_rtm_shots", "astronomy_decam_exposures", "climate_ensemble_TREFHT"):
            self.assertIn(field, said)
        self.run_laconic("stack", *images, self.write("other_30x20.f32", floats(wave(600))), "-n", "2", code=4)
        self.run_laconic("stack", self.write("x_600.i32", floats(wave(600))), code=4)
        self.run_laconic("stack", self.write("nothing_2x0.f32", b""), code=4)
        self.write("plain", b"")
        self.run_laconic("stack", *images, "-n", "2", "--out", "plain/sub", *self.small, code=5)


class UnusedOptions(CommandTest):
    def test_they_are_refused(self):
        self.write("x_20x30.f32", floats(wave(600)))
        for command in ("stack", "bench codec", "bench error", "bench allreduce"):
            with self.subTest(command):
                words = command.split()
                for option, value in (("--dtype", "f32"), ("--dims", "20x30")):
                    self.assertIn(f"{option} requires file", self.run_laconic(*words, option, value, code=2)[1])
                for option in {"stack": ("--data", "--set"), "bench allreduce": ("--data", "--field")}.get(command, ("--data",)):
                    self.assertRegex(self.run_laconic(*words, "x_20x30.f32", option, "rtm", code=2)[1], f"{option}.* excludes |excludes {option}")
        self.assertIn("--target", self.run_laconic("bench", "codec", "x_20x30.f32", "--codec", "szx", "--target", "all", code=2)[1])
        for option in ("--size=1k", "--target=best", "-t2", "--repetitions=1", "--no-cache", "--per-field"):
            self.assertIn("--ratio", self.run_laconic("bench", "codec", "x_20x30.f32", "--ratio", option, code=2)[1])


class Doctor(CommandTest):
    def test_findings(self):
        report = self.json("doctor")
        topics = {f["topic"] for f in report["findings"]}
        self.assertLessEqual({"processor", "MPI", "emulated cluster", "data"}, topics)
        for finding in report["findings"]:
            self.assertTrue(finding["detail"])
        text, _ = self.run_laconic("doctor")
        self.assertIn("kernels", text)

    def test_variables(self):
        self.assertIn("LACONIC_BUOND", self.run_laconic("doctor", environment={"LACONIC_BUOND": "1"})[0])
        self.assertIn("LACONIC_TIMEOUT='1s': want seconds", self.run_laconic("doctor", environment={"LACONIC_TIMEOUT": "1s"}, code=2)[1])

    def test_version(self):
        self.assertRegex(self.run_laconic("--version")[0], r"^laconic \d+\.\d+\.\d+")


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(__file__))
    cli_support.main()
