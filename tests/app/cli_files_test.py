"""compress, decompress and inspect: round trips, every way to fail, and no half-written output."""

import json
import math
import os
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import time
import unittest

import cli_support
from cli_support import CommandTest, crc32c, floats, npy, wave


class RoundTrips(CommandTest):
    def test_npy_within_the_bound(self):
        values = wave(5000)
        self.write("x.npy", npy(floats(values), "<f4", "(50, 100)"))
        report = self.json("compress", "x.npy", "-b", "1e-3rel", "--verify")
        self.assertEqual(report["dims"], [50, 100])
        self.assertGreater(report["ratio"], 2)
        self.assertEqual(report["verified"]["violations"], 0)
        self.assertLessEqual(report["verified"]["max_error_over_bound"], 1)
        self.run_laconic("decompress", "x.npy.lcz", "-o", "y.npy")
        original, result = self.read("x.npy"), self.read("y.npy")
        self.assertEqual(original[:128], result[:128], "the header is as NumPy writes it")
        decoded = struct.unpack("<5000f", result[128:])
        stored = struct.unpack("<5000f", original[128:])
        worst = max(abs(a - b) for a, b in zip(stored, decoded))
        self.assertLessEqual(worst, report["absolute_bound"])
        self.assertGreater(worst, 0)

    def test_lossless_is_the_default(self):
        special = [math.nan, math.inf, -math.inf, -0.0, 1e-42, 1e30] + wave(3000)
        self.write("x.f32", floats(special))
        report = self.json("compress", "x.f32", "--verify")
        self.assertEqual(report["absolute_bound"], 0)
        self.run_laconic("decompress", "x.f32.lcz", "-o", "y.f32")
        self.assertEqual(self.read("x.f32"), self.read("y.f32"))

    def test_special_values_survive_a_bound(self):
        special = [math.nan, math.inf, -math.inf] + wave(3000) + [math.nan]
        self.write("x.f32", floats(special))
        self.json("compress", "x.f32", "-b", "0.01", "--verify")
        self.run_laconic("decompress", "x.f32.lcz", "-o", "y.f32")
        decoded = struct.unpack("<3004f", self.read("y.f32"))
        self.assertTrue(math.isnan(decoded[0]) and math.isnan(decoded[-1]))
        self.assertEqual(decoded[1:3], (math.inf, -math.inf))

    def test_every_type(self):
        for dtype, code in {"f64": "d", "i32": "i", "i64": "q", "u32": "I", "u64": "Q", "f16": "e"}.items():
            with self.subTest(dtype):
                values = [int(v * 10) for v in wave(700)]
                self.write(f"x_7x100.{dtype}", struct.pack(f"<700{code}", *values))
                report = self.json("compress", f"x_7x100.{dtype}", "--verify", "-f")
                self.assertEqual((report["dtype"], report["dims"]), (dtype, [7, 100]))
                self.run_laconic("decompress", f"x_7x100.{dtype}.lcz", "-o", "y.npy", "-f")
                self.assertEqual(self.read("y.npy")[128:], self.read(f"x_7x100.{dtype}"))

    def test_every_codec(self):
        known = {f["detail"] for f in self.json("doctor")["findings"] if f["what"] == "codecs"}.pop()
        absent = known.partition("not built in:")[2].split()
        values = wave(5000)
        self.write("x_50x100.f32", floats(values))
        for codec, bound in {"slice": "1e-3rel", "szx": "1e-3rel", "fzlight": "1e-3rel", "zfp": "1e-3rel", "lz4": "1e-3rel",
                             "lz4hc": "lossless", "zstd": "lossless", "zfp-rate": "2x"}.items():
            with self.subTest(codec):
                if codec in absent:
                    _, why = self.run_laconic("compress", "x_50x100.f32", "--codec", codec, "-b", bound, code=2)
                    self.assertRegex(why, "install lib")
                    continue
                report = self.json("compress", "x_50x100.f32", "--codec", codec, "-b", bound, "--verify", "-f", "-o", "y.lcz")
                self.assertEqual(report["codec"], codec)
                self.assertEqual(report["verified"]["violations"], 0)
                inspected = self.json("inspect", "y.lcz")
                self.assertEqual({f["codec"] for f in inspected["frames"]}, {codec})
                self.assertIn(codec, self.run_laconic("inspect", "y.lcz")[0])
                self.run_laconic("decompress", "y.lcz", "-o", "y.f32", "-f")
                decoded = struct.unpack("<5000f", self.read("y.f32"))
                worst = max(abs(a - b) for a, b in zip(struct.unpack("<5000f", self.read("x_50x100.f32")), decoded))
                self.assertLessEqual(worst, report["absolute_bound"] if codec != "zfp-rate" else 0.1)

    def test_a_ratio_in_place_of_a_bound(self):
        values = [math.sin(i / 50) + random.Random(i).random() / 100 for i in range(50000)]
        self.write("x.f32", floats(values))
        report = self.json("compress", "x.f32", "-b", "8x", "--verify", "-f")
        self.assertEqual(report["verified"]["violations"], 0)
        self.assertGreater(report["absolute_bound"], 0)
        self.assertLessEqual(report["verified"]["max_error_over_bound"], 1)
        self.assertGreater(report["ratio"], 7.8)
        self.assertLess(report["ratio"], 9)
        self.assertIn("a ratio of 8x, by bounds of up to", self.run_laconic("compress", "x.f32", "-b", "8x", "-f")[0])

    def test_codecs_that_do_not_fit(self):
        self.write("x.f32", floats(wave(100)))
        self.write("x.i32", struct.pack("<100i", *range(100)))
        self.run_laconic("compress", "x.f32", "--codec", "gzip", code=2)
        for arguments in (["x.i32", "--codec", "szx"], ["x.f32", "-b", "4x", "--codec", "zstd"], ["x.f32", "--codec", "zfp-rate"]):
            _, why = self.run_laconic("compress", *arguments, code=2)
            self.assertRegex(why, "codec|bound")

    def test_bf16_stays_raw(self):
        self.write("x.bf16", struct.pack("<100H", *(0x3F80 + i for i in range(100))))
        self.run_laconic("compress", "x.bf16", "-b", "0.01", "--verify")
        self.run_laconic("decompress", "x.bf16.lcz", "-o", "y.npy", code=2)
        self.run_laconic("decompress", "x.bf16.lcz", "-o", "y.bf16")
        self.assertEqual(len(self.read("y.bf16")), 200)
        self.assertNotIn("y.npy", self.files())

    def test_empty_arrays(self):
        self.write("x.npy", npy(b"", "<f4", "(0, 7)"))
        self.run_laconic("compress", "x.npy", "-b", "1e-3rel", "--verify")
        self.assertEqual(self.json("inspect", "x.npy.lcz")["dims"], [0, 7])
        self.run_laconic("compress", "x.npy", "--codec", "zstd", "-o", "z.lcz")
        self.assertNotIn("nan", self.run_laconic("inspect", "z.lcz")[0])
        self.run_laconic("decompress", "x.npy.lcz", "-o", "y.npy")
        self.assertEqual(self.read("x.npy"), self.read("y.npy"))

    def test_scalar(self):
        self.write("x.npy", npy(floats([2.5]), "<f4", "()"))
        self.run_laconic("compress", "x.npy", "--verify")
        self.run_laconic("decompress", "x.npy.lcz", "-o", "y.npy")
        self.assertEqual(self.read("x.npy"), self.read("y.npy"))

    def check_file(self, name, dtype, kind, dims):
        """That a file is what docs/format.md says (14. Files); returns the elements of each frame."""
        data = self.read(name)
        head = b"LCZ\x02" + struct.pack("<BBH", dtype, kind, len(dims)) + struct.pack(f"<{len(dims)}Q", *dims)
        head += struct.pack("<II", crc32c(head), 0)
        self.assertEqual(data[: len(head)], head)
        at, checksums, counts = len(head), head[-8:-4], []
        while not counts or sum(counts) < math.prod(dims):
            count, size = struct.unpack("<QQ", data[at + 16 : at + 32])
            self.assertEqual((data[at : at + 4], data[at + 5]), (b"LCN1", dtype))
            checksums += data[at + 12 : at + 16]
            counts.append(count)
            at += size
        self.assertEqual(data[at:], struct.pack("<II", crc32c(checksums), 0))
        return counts

    def test_files_are_as_the_document_says(self):
        self.write("x_7x100.f64", struct.pack("<700d", *wave(700)))
        self.write("scalar.npy", npy(floats([2.5]), "<f4", "()"))
        self.write("empty.npy", npy(b"", "<f4", "(0, 7)"))
        os.truncate(self.write("large_2x9000000.f32", b""), 72000000)
        for name, dtype, kind, dims, counts in (("x_7x100.f64", 2, 0, (7, 100), [700]), ("scalar.npy", 1, 1, (), [1]),
                                                ("empty.npy", 1, 1, (0, 7), [0]),
                                                ("large_2x9000000.f32", 1, 0, (2, 9000000), [16 << 20, 18000000 - (16 << 20)])):
            self.run_laconic("compress", name, "-b", "1e-3rel")
            self.assertEqual(self.check_file(name + ".lcz", dtype, kind, dims), counts)

    def test_type_and_dims_by_option(self):
        self.write("x.bin", floats(wave(600)))
        report = self.json("compress", "x.bin", "--dtype", "float32", "--dims", "20x30")
        self.assertEqual(report["dims"], [20, 30])
        self.run_laconic("decompress", "x.bin.lcz", "-o", "y.bin")
        self.assertEqual(self.read("x.bin"), self.read("y.bin"))

    def test_names_by_default(self):
        self.write("x.f32", floats(wave(600)))
        self.run_laconic("compress", "x.f32")
        os.remove(self.path("x.f32"))
        self.run_laconic("decompress", "x.f32.lcz")
        self.assertEqual(self.files(), ["x.f32", "x.f32.lcz"])

    def test_numbers_in_names_are_no_extensions(self):
        self.write("x.npy", npy(floats(wave(600)), "<f4", "(20, 30)"))
        self.run_laconic("compress", "x.npy", "-o", "run1.5.lcz")
        self.run_laconic("decompress", "run1.5.lcz")
        self.assertEqual(self.read("run1.5"), self.read("x.npy"))
        self.run_laconic("decompress", "run1.5.lcz", "-o", "x.raw")
        self.assertEqual(self.read("x.raw"), self.read("x.npy")[128:])

    def test_fill_value_is_rounded_to_the_type(self):
        values = [math.sin(i / 50) for i in range(5000)]
        values[::100] = [-9999.0] * 50  # -10000 as f16, -9984 as bf16
        for dtype, pack in (("f16", lambda v: struct.pack("<e", v)), ("bf16", lambda v: struct.pack("<f", v)[2:])):
            self.write("x." + dtype, b"".join(map(pack, values)))
            report = self.json("compress", "x." + dtype, "-b", "1e-2rel", "--fill", "-9999", "-f")
            self.assertLess(report["absolute_bound"], 0.03)
        for wrong in ("", "inf", "nan", "1e400", "70000", "1e-400", "1e-30", "1,5", "+-1"):
            self.run_laconic("compress", "x.f16", "--fill=" + wrong, "-f", code=2)

    def test_proposed_fill_value_is_the_one_that_occurs(self):
        netcdf = 9.969209968386869e36
        for dtype, fill in (("f64", netcdf), ("f64", -netcdf), ("f32", netcdf), ("f32", -1e30)):
            values = [fill if i % 100 == 7 else math.sin(i / 50) for i in range(5000)]
            self.write("x." + dtype, struct.pack(f"<5000{'d' if dtype == 'f64' else 'f'}", *values))
            _, warning = self.run_laconic("compress", "x." + dtype, "-b", "1e-3rel", "-f")
            proposed = re.search(r"--fill (\S+)", warning).group(1)
            report = self.json("compress", "x." + dtype, "-b", "1e-3rel", "--fill=" + proposed, "-f")
            self.assertLess(report["absolute_bound"], 0.0021)

    def test_fill_value_is_no_part_of_the_range(self):
        values = wave(3000)
        values[100:200] = [1e30] * 100
        self.write("x.f32", floats(values))
        _, warning = self.run_laconic("compress", "x.f32", "-b", "1e-3rel")
        proposed = re.search(r"--fill (\S+)", warning).group(1)
        report = self.json("compress", "x.f32", "-b", "1e-3rel", "--fill", proposed, "--verify", "-f")
        self.assertLess(report["absolute_bound"], 1)
        self.run_laconic("decompress", "x.f32.lcz", "-o", "y.f32")
        self.assertEqual(self.read("y.f32")[400:800], self.read("x.f32")[400:800])
        self.assertEqual(self.run_laconic("-q", "compress", "x.f32", "-b", "1e-3rel", "-f"), ("", ""))

    def test_fill_value_that_does_not_occur(self):
        self.write("x.f32", floats(wave(3000) + [1e30]))
        for bound in ("1e-3rel", "1e-3", "lossless"):
            _, warning = self.run_laconic("compress", "x.f32", "-b", bound, "--fill", "-999", "-f")
            self.assertEqual(warning.count("--fill: no value of 'x.f32' is -999"), 1)
            self.assertEqual(self.run_laconic("compress", "x.f32", "-b", bound, "--fill", "1e30", "-f")[1], "")
        self.assertEqual(self.run_laconic("-q", "compress", "x.f32", "-b", "1e-3rel", "--fill", "-999", "-f"), ("", ""))

    def test_threads_write_the_same_bytes(self):
        self.write("x.f32", floats(wave(50000)))
        self.run_laconic("compress", "x.f32", "-b", "1e-3", "-o", "one")
        self.run_laconic("compress", "x.f32", "-b", "1e-3", "-o", "three", "-t", "3")
        self.assertEqual(self.read("one"), self.read("three"))

    def test_inspect_tells_what_is_there(self):
        self.write("x_50x100.f32", floats(wave(5000)))
        self.run_laconic("compress", "x_50x100.f32", "-b", "0.5")
        report = self.json("inspect", "x_50x100.f32.lcz")
        self.assertTrue(report["valid"])
        self.assertEqual(report["absolute_bound"], 0.5)
        self.assertEqual(sum(f["count"] for f in report["frames"]), 5000)
        self.assertEqual(sum(report["chunk_forms"].values()), report["chunks"])
        text, _ = self.run_laconic("inspect", "x_50x100.f32.lcz")
        self.assertIn("50x100 of f32", text)

    def test_inspect_counts_the_forms_of_chunks(self):
        self.write("x.f32", floats([1.5] * 4096 + wave(2048)))
        self.run_laconic("compress", "x.f32", "-b", "1e-3")
        forms = self.json("inspect", "x.f32.lcz")["chunk_forms"]
        self.assertEqual(forms.pop("constant"), 2)
        self.assertEqual(list(forms.values()), [1])

    def test_the_bar_comes_to_its_end(self):
        self.write("x.f32", os.urandom(1 << 20) * 80)  # two steps, the first a slow one
        shares = self.shares_on_a_terminal("compressing", "compress", "x.f32", "--verify", "-o", "/dev/null")
        self.assertEqual((sorted(shares), shares[-1]), (shares, 100))

    def test_quiet_says_nothing(self):
        self.write("x.f32", floats(wave(500)))
        for arguments in (["compress", "x.f32"], ["inspect", "x.f32.lcz"], ["decompress", "x.f32.lcz", "-f"]):
            self.assertEqual(self.run_laconic("-q", *arguments), ("", ""))


class Failures(CommandTest):
    def compressed(self):
        self.write("x.f32", floats(wave(20000)))
        self.run_laconic("compress", "x.f32", "-b", "1e-3rel", "-o", "x.lcz")
        return self.read("x.lcz")

    def test_usage(self):
        for arguments in ([], ["compress"], ["nonsense"], ["compress", "x", "--nonsense"], ["bench"], ["stack", "-n", "x"]):
            self.run_laconic_usage(arguments)

    def run_laconic_usage(self, arguments):
        done = subprocess.run([cli_support.LACONIC, *arguments], cwd=self.folder, capture_output=True, text=True,
                              timeout=60, check=False)
        self.assertEqual(done.returncode, 2, arguments)
        self.assertTrue(done.stderr)

    def test_bad_option_values(self):
        self.write("x.f32", floats(wave(100)))
        for options in (["-b", "fast"], ["-b", "-1"], ["-b", "100x"], ["-t", "0"], ["--dims", "10y10"], ["--dtype", "f31"]):
            self.run_laconic("compress", "x.f32", *options, code=2)
        self.assertEqual(self.files(), ["x.f32"])

    def test_empty_option_values(self):
        self.write("x.f32", floats(wave(100)))
        for command, option in (("compress x.f32", "--output"), ("compress x.f32", "--dims"), ("compress x.f32", "--dtype"),
                                ("compress x.f32", "--bound"), ("compress x.f32", "--threads"), ("decompress x.lcz", "--output"),
                                ("bench codec x.f32", "--codec"), ("bench codec x.f32", "--only"), ("stack x.f32", "--out"),
                                ("run", "--bound"), ("run", "--policy"), ("run", "--report"), ("run", "--mode")):
            _, said = self.run_laconic(*command.split(), option, "", *(["--", "true"] if command == "run" else []), code=2)
            self.assertIn(option + ":", said)
        _, said = self.run_laconic("compress", "x.f32", "-o", "--force", code=2)
        self.assertIn("--output: wants a value before --force", said)
        _, said = self.run_laconic("compress", "x.f32", "--output=", "-f", code=2)
        self.assertIn("--output: wants a value before -f", said)
        self.assertEqual(self.files(), ["x.f32"])

    def test_help(self):
        for arguments in (["--help"], ["compress", "--help"], ["bench", "codec", "--help"], ["stack", "--help"]):
            text, _ = self.run_laconic(*arguments)
            self.assertIn("Usage", text)
        self.assertIn("Exit codes", self.run_laconic("--help")[0])

    def test_missing_files(self):
        self.run_laconic("compress", "absent.f32", code=3)
        self.run_laconic("decompress", "absent.lcz", code=3)
        self.run_laconic("inspect", "absent.lcz", code=3)
        self.run_laconic("compress", self.folder, "--dtype", "f32", code=3)

    def test_errors_in_json(self):
        report = self.json("compress", "absent.f32", code=3)
        self.assertEqual(report["exit"], 3)
        self.assertIn("absent.f32", report["error"])

        for wrong in (["compress"], ["frobnicate"], ["compress", "x", "--nonsense"], ["stack", "-n", "x"], []):
            report = self.json(*wrong, code=2)
            self.assertEqual(report["exit"], 2)
            self.assertTrue(all(word in report["error"] for word in wrong if word in ("frobnicate", "--nonsense")), report)

    def test_file_names_of_any_bytes(self):
        name = os.path.join(os.fsencode(self.folder), b"a\xff.f32")
        with open(name, "wb") as f:
            f.write(floats(wave(100)))
        for command, to in ((b"compress", name), (b"inspect", name + b".lcz"), (b"compress", b"absent\xff")):
            done = subprocess.run([cli_support.LACONIC, b"--json", command, to], cwd=self.folder, capture_output=True, timeout=60,
                                  check=False)
            self.assertIn("\ufffd", json.dumps(json.loads(done.stdout), ensure_ascii=False))
            self.assertEqual(done.returncode, 3 if b"absent" in to else 0)

    def test_control_characters_in_names(self):
        name, shown = "a\x1b[31m\nb.f32", "a\\x1b[31m\\nb.f32"
        self.write(name, floats(wave(100)))
        for arguments, code in ((["compress", name], 0), (["inspect", name + ".lcz"], 0), (["compress", name], 5),
                                (["decompress", name + ".lcz", "-o", "y"], 0), (["bench", "codec", "--ratio", name], 0),
                                (["stack", name], 4), (["compress", name + "\x1b"], 3), (["\x1b"], 2), (["policy", "check", name], 4)):
            said = "".join(self.run_laconic(*arguments, code=code))
            self.assertNotIn("\x1b", said)
            self.assertIn(shown if len(arguments) > 1 else "\\x1b", said)

    def test_what_is_wrong_with_a_bound_is_marked(self):
        self.write("a.f32", floats(wave(100)))
        said = self.run_laconic("compress", "a.f32", "--bound", "1e-3real", code=2)[1]
        self.assertEqual(said.splitlines()[1:], ["  1e-3real", "      ^"])

    def test_stdout_that_cannot_be_written(self):
        self.compressed()
        for arguments in (["inspect", "x.lcz"], ["--json", "inspect", "x.lcz"], ["--help"], ["--json", "inspect", "absent"]):
            with open("/dev/full", "wb") as full:
                done = subprocess.run([cli_support.LACONIC, *arguments], cwd=self.folder, stdout=full, stderr=subprocess.PIPE,
                                      text=True, timeout=60, check=False)
            self.assertEqual(done.returncode, 3 if "absent" in arguments else 5, arguments)
            self.assertIn("absent" if "absent" in arguments else "No space left", done.stderr)

    def shell(self, line, code=0):
        """A shell runs `line`, in which $L is the command. Returns stdout, stderr."""
        done = subprocess.run(["bash", "-c", line], cwd=self.folder, env={**os.environ, "L": cli_support.LACONIC},
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, code, f"{line}\n{done.stdout}\n{done.stderr}")
        return done.stdout, done.stderr

    def test_closed_streams(self):
        self.write("x.f32", floats([1e30] + wave(100)))
        self.run_laconic("compress", "x.f32", "-b", "1e-3rel", "-o", "good.lcz")
        self.shell('"$L" -q compress x.f32 -b 1e-3rel -o x.lcz <&- >&- 2>&-')
        self.assertEqual(self.read("x.lcz"), self.read("good.lcz"))
        self.shell('"$L" inspect x.lcz >&-', code=5)

    def test_stderr_that_cannot_be_written(self):
        self.write("x.f32", floats([1e30] + wave(100)))
        for arguments, code in (("inspect absent", 3), ("compress x.f32 -t 0", 2), ("nonsense", 2), ("compress x.f32 -o absent/x", 5)):
            out, _ = self.shell(f'"$L" --json {arguments} 2>/dev/full', code=code)
            self.assertEqual(json.loads(out)["exit"], code)
        self.shell('"$L" compress x.f32 -b 1e-3rel 2>/dev/full')
        self.assertIn("x.f32.lcz", self.files())

    def test_data_on_stdout_stay_alone(self):
        self.write("x.f32", floats(wave(100)))
        self.run_laconic("compress", "x.f32", "-o", "good.lcz")
        for out in ("> x.lcz", "| cat > x.lcz"):
            for option in ("", "--json"):
                _, said = self.shell(f'"$L" {option} compress x.f32 -o /dev/stdout {out}')
                self.assertIn("x.f32", said)
                self.assertEqual(self.read("x.lcz"), self.read("good.lcz"))
            self.shell(f'"$L" decompress x.lcz -o /dev/stdout {out.replace("x.lcz", "y.f32")}')
            self.assertEqual(self.read("y.f32"), self.read("x.f32"))
        self.shell('"$L" compress x.f32 -f -o x.lcz > x.lcz')
        self.assertEqual(self.read("x.lcz"), self.read("good.lcz"))

    def test_a_pipe_that_does_not_block_is_waited_for(self):
        self.write("x.f32", floats(wave(100000)))
        self.run_laconic("compress", "x.f32")
        read, write = os.pipe()
        os.set_blocking(write, False)
        command = [cli_support.LACONIC, "decompress", "x.f32.lcz", "-o", "/dev/stdout"]
        with subprocess.Popen(command, cwd=self.folder, stdout=write, stderr=subprocess.PIPE, text=True) as decompress:
            os.close(write)
            time.sleep(0.3)  # until the pipe is full
            with os.fdopen(read, "rb") as pipe:
                data = pipe.read()
            self.assertEqual((decompress.wait(timeout=60), len(data)), (0, 400000), decompress.stderr.read())

    def test_wrong_sizes(self):
        self.write("x.f32", floats(wave(100)) + b"abc")
        _, message = self.run_laconic("compress", "x.f32", code=4)
        self.assertIn("403", message)
        self.write("x_10x11.f32", floats(wave(100)))
        _, message = self.run_laconic("compress", "x_10x11.f32", code=4)
        self.assertIn("440", message)
        self.assertIn("from its name; if that means something else, pass --dims 100", message)
        self.run_laconic("compress", "x_10x11.f32", "--dims", "10x10")
        _, message = self.run_laconic("compress", "x_10x11.f32", "--dims", "10x12", code=4)
        self.assertNotIn("name", message)
        self.write("x.bin", floats(wave(100)))
        self.run_laconic("compress", "x.bin", code=2)

    def test_unsupported_npy(self):
        data = floats(wave(12))
        for descr, order, words in ((">f4", "False", "big endian"), ("<f4", "True", "Fortran"), ("<c8", "False", "<c8")):
            self.write("x.npy", npy(data, descr, "(3, 4)", order))
            _, message = self.run_laconic("compress", "x.npy", code=4)
            self.assertIn(words, message)
        self.write("x.npy", npy(data[:-4], "<f4", "(3, 4)"))
        self.run_laconic("compress", "x.npy", code=4)
        for descr in ("!f4", " f4", "xf4"):  # which NumPy does not read either
            self.write("x.npy", npy(data, descr, "(3, 4)"))
            self.assertIn(descr, self.run_laconic("compress", "x.npy", code=4)[1])
        self.write("x.npy", npy(data, "<f4", "(3, 4)").replace(b", 'shape'", b"  'shape'"))
        self.run_laconic("compress", "x.npy", code=4)
        self.write("x.npy", npy(b"", "<f4", "(0, 3, 4)", "True"))  # of which there is no order
        self.run_laconic("compress", "x.npy")
        self.write("x.npy", data)
        self.run_laconic("compress", "x.npy", code=4)

    def test_files_without_a_size(self):
        self.assertIn("/proc/version", self.run_laconic("compress", "/proc/version", "--dtype", "u32", "-o", "y", code=3)[1])
        _, said = self.shell('"$L" compress /dev/stdin --dtype f32 < /dev/null', code=2)
        self.assertIn("-o", said)
        self.assertEqual(self.files(), [])

    def test_existing_output_is_kept(self):
        self.write("x.f32", floats(wave(100)))
        self.write("x.f32.lcz", b"precious")
        self.run_laconic("compress", "x.f32", code=5)
        self.assertEqual(self.read("x.f32.lcz"), b"precious")
        self.run_laconic("compress", "x.f32", "--force")

    def test_the_input_is_no_output(self):
        """Also by another name and with --force: it would be lost."""
        data = floats(wave(100))
        self.write("x.f32", data)
        self.run_laconic("compress", "x.f32", "-o", "x.lcz")
        os.symlink("x.f32", self.path("same.f32"))
        os.link(self.path("x.lcz"), self.path("same.lcz"))
        for command, name, same in (("compress", "x.f32", "same.f32"), ("decompress", "x.lcz", "same.lcz")):
            before = self.read(name)
            for output in (name, same):
                self.assertIn("is the input itself", self.run_laconic(command, name, "-f", "-o", output, code=2)[1])
            self.assertEqual(self.read(name), before)
        _, said = self.shell('"$L" decompress /dev/stdin < x.lcz', code=2)
        self.assertIn("-o", said)

    def test_replaced_output_keeps_its_mode(self):
        self.write("x.f32", floats(wave(100)))
        for mode in (0o600, 0o640, 0o666, 0o444):
            self.write("x.lcz", b"")
            os.chmod(self.path("x.lcz"), mode)
            self.run_laconic("compress", "x.f32", "-o", "x.lcz", "--force")
            self.assertEqual(os.stat(self.path("x.lcz")).st_mode & 0o7777, mode)
            os.remove(self.path("x.lcz"))

    def test_links_to_nothing_are_written_through(self):
        self.write("x.f32", floats(wave(100)))
        os.mkdir(self.path("to"))
        for name, target in (("a.lcz", "to/b.lcz"), ("to/b.lcz", "c.lcz"), ("loop", "loop"), ("far.lcz", "absent/far.lcz")):
            os.symlink(target, self.path(name))
        self.run_laconic("compress", "x.f32", "-o", "a.lcz")
        self.assertTrue(os.path.islink(self.path("a.lcz")) and os.path.islink(self.path("to/b.lcz")))
        self.assertTrue(os.path.isfile(self.path("to/c.lcz")) and not os.path.islink(self.path("to/c.lcz")))
        self.run_laconic("compress", "x.f32", "-o", "loop", code=5)
        self.run_laconic("compress", "x.f32", "-o", "far.lcz", "--force", code=5)
        self.assertTrue(os.path.islink(self.path("loop")) and os.path.islink(self.path("far.lcz")))

    def test_no_such_output_folder(self):
        self.write("x.f32", floats(wave(100)))
        self.run_laconic("compress", "x.f32", "-o", "absent/x.lcz", code=5)

    def test_full_device(self):
        self.write("x.f32", floats(wave(100)))
        _, message = self.run_laconic("compress", "x.f32", "-o", "/dev/full", code=5)
        self.assertIn("No space left", message)
        self.assertTrue(os.path.exists("/dev/full") and not os.path.isfile("/dev/full"))

    def test_file_size_limit_leaves_nothing_behind(self):
        """A limit on file size stands for a full disk: writing fails in the middle."""
        self.write("x.f32", os.urandom(400000))

        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))

        done = subprocess.run([cli_support.LACONIC, "compress", "x.f32"], cwd=self.folder, capture_output=True, text=True,
                              preexec_fn=limit, timeout=60, check=False)
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertEqual(self.files(), ["x.f32"])

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("mount"), "mounting a small disk needs root")
    def test_full_disk_leaves_nothing_behind(self):
        disk = self.path("disk")
        os.mkdir(disk)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", disk], capture_output=True, check=False)
        if mounted.returncode != 0:
            self.skipTest("this machine does not allow mounting")
        self.addCleanup(subprocess.run, ["umount", disk], check=True)
        self.write("x.f32", os.urandom(400000))
        _, message = self.run_laconic("compress", "x.f32", "-o", "disk/x.lcz", code=5)
        self.assertIn("No space left", message)
        self.assertEqual(os.listdir(disk), [])

    def compress_slowly(self, times=20000, **more):
        """A compress that is at work: its temporary exists."""
        self.write("x.f32", floats(wave(1000)) * times)
        process = subprocess.Popen([cli_support.LACONIC, "-q", "compress", "x.f32", "-b", "1e-3rel", "--verify"],
                                   cwd=self.folder, env={**os.environ, "LACONIC_SIMD": "scalar"}, **more)
        while process.poll() is None and len(self.files()) < 2:
            pass
        return process

    def test_interrupted_run_leaves_nothing_behind(self):
        _, most = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (0, most))
        for number in (signal.SIGTERM, signal.SIGQUIT, signal.SIGXCPU):
            process = self.compress_slowly()
            process.send_signal(number)
            process.wait(timeout=60)
            self.assertEqual(process.returncode, -number)
            self.assertEqual(self.files(), ["x.f32"])

    def test_ignored_signals_stay_ignored(self):
        process = self.compress_slowly(5000, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        process.send_signal(signal.SIGHUP)
        process.wait(timeout=60)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(self.files(), ["x.f32", "x.f32.lcz"])

    def test_pipes_that_nobody_reads(self):
        self.write("x.f32", os.urandom(4000000))
        _, why = self.shell('"$L" compress x.f32 -o /dev/fd/3 3> >(exec true)', code=5)
        self.assertIn("pipe", why)
        self.shell('set -o pipefail; (sleep 0.1; "$L" compress x.f32) | true', code=128 + signal.SIGPIPE)
        self.assertIn("x.f32.lcz", self.files())

    def test_truncated_streams(self):
        good = self.compressed()
        for size in (0, 1, 2, 3, 7, 15, 23, 24, 30, 71, 72, 100, len(good) // 2, len(good) - 1):
            self.write("bad.lcz", good[:size])
            code = 4 if size < 3 else 6
            for command in ("inspect", "decompress"):
                _, message = self.run_laconic(command, "bad.lcz", code=code)
                self.assertIn("bad.lcz", message)
            self.assertNotIn("bad", self.files())

    def test_damaged_streams(self):
        good = self.compressed()
        for at in (4, 6, 8, 25, 40, 60, 80, len(good) // 2, len(good) - 1):
            bad = bytearray(good)
            bad[at] ^= 0x10
            self.write("bad.lcz", bytes(bad))
            self.run_laconic("inspect", "bad.lcz", code=6)
            self.run_laconic("decompress", "bad.lcz", code=6)
            self.assertNotIn("bad", self.files())

    def test_forged_streams(self):
        self.write("x.f32", floats(wave(2048)))
        self.run_laconic("compress", "x.f32", "-b", "0.5")
        good = self.read("x.f32.lcz")
        bad = bytearray(good[24:-8])  # the only frame
        bad[52] |= 0xC  # a predictor that there is not
        bad[12:16] = struct.pack("<I", crc32c(bad[:12] + bad[16:]))
        self.write("bad.lcz", good[:24] + bad + struct.pack("<II", crc32c(good[16:20] + bad[12:16]), 0))
        for command in ("inspect", "decompress"):
            _, message = self.run_laconic(command, "bad.lcz", code=6)
            self.assertIn("frame 0: ", message)

    def test_trailing_bytes(self):
        self.write("bad.lcz", self.compressed() + b"x")
        _, message = self.run_laconic("inspect", "bad.lcz", code=6)
        self.assertIn("follow", message)

    def test_not_a_stream_at_all(self):
        self.write("bad.lcz", b"PNG or something else, long enough to be a header")
        self.run_laconic("inspect", "bad.lcz", code=4)


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(__file__))
    cli_support.main()
