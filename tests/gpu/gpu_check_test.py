"""tools/gpu_check before it builds: whether there is a GPU, and whether its driver is new enough for the toolkit. And what it does with a benchmark that never ends, and with what was built elsewhere.

    gpu_check_test.py FILE
"""

import importlib.machinery
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

TOOL = sys.argv.pop(1)


# Stand-ins for what is built. The benchmark over NCCL says what NCCL says, too, and leaves the drop-in library's reports.
GTEST = """case $1 in
--gtest_list_tests) printf 'Floats/GpuCodec.\\n  Adds/f32  # GetParam() = 1\\n  Adds/f64\\nOther.\\n  Fails\\n' ;;
*f64) echo '[  SKIPPED ] Floats/GpuCodec.Adds/f64 (0 ms)' ;;
*Fails) exit 1 ;;
esac"""
NCCL_BENCH = """echo NCCL version 2.28.9+cuda13.0
[ "$RANK" = 1 ] || echo "{\\"collective\\": \\"allreduce\\", \\"violations\\": 0, \\"hosts\\": \\"$NCCL_HOSTID of $WORLD_SIZE\\"}"
[ -z "$LACONIC_REPORT" ] || echo '{"total": {"calls": 4, "plain_calls": 0, "verified_elements": 9}}' >"$LACONIC_REPORT.nccl.host.$$"
"""
# Notes how it is called; a program on four hosts fails when it has said something.
CLUSTER = """echo "$MPIEXEC $*" >>"$(dirname "$0")/calls"
[ "$1" = gpu ] || exit 0
[ "$2" != mpich ] || shift
echo "{\\"ranks\\": $2, \\"violations\\": 0}"
[ "$2" = 2 ] || { echo lost >&2; exit 3; }
"""


def load():
    loader = importlib.machinery.SourceFileLoader("gpu_check", TOOL)
    tool = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu_check", loader))
    sys.dont_write_bytecode = True
    loader.exec_module(tool)
    return tool


def put(folder, name, does):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(f"#!/bin/sh\n{does}\n")
    os.chmod(path, 0o755)


class GpuCheck(unittest.TestCase):
    def check(self, driver, cuda):
        """Exit status, what was said, and the JSON, if any, over commands that stand in for NVIDIA's; cmake's fails."""
        with tempfile.TemporaryDirectory() as folder:
            smi = f"echo 'NVIDIA H100 80GB HBM3, {driver}'" if driver else "exit 9"
            put(folder, "nvidia-smi", smi)
            put(folder, "nvcc", f"echo 'Cuda compilation tools, release {cuda}, V{cuda}.48'")
            put(folder, "cmake", "exit 1")
            out = os.path.join(folder, "out.json")
            path = folder + os.pathsep + os.environ["PATH"]
            environment = {**os.environ, "PATH": path, "CUDACXX": ""}
            done = subprocess.run([sys.executable, TOOL, "--out", out], env=environment, capture_output=True, text=True, check=False)
            result = None
            if os.path.exists(out):
                with open(out, encoding="utf-8") as f:
                    result = json.load(f)
            return done.returncode, done.stdout + done.stderr, result

    def test_an_old_driver_is_said_before_anything_is_built(self):
        for driver, cuda, least in (("535.104.05", "13.0", "580"), ("470.82.01", "12.8", "525")):
            status, said, result = self.check(driver, cuda)
            self.assertEqual(status, 1)
            self.assertNotIn("+ cmake", said)
            for text in (said, result["skipped"]):
                self.assertIn(f"the driver, {driver}, is too old for CUDA {cuda}, which needs {least} or newer", text)

    def test_others_build(self):
        for driver, cuda in (("580.65.06", "13.0"), ("535.104.05", "12.8"), ("535.104.05", "99.0")):
            status, said, result = self.check(driver, cuda)
            self.assertEqual(status, 1)
            for text in (said, result["skipped"]):
                self.assertIn("the build failed", text)

    def test_a_tool_that_is_not_there_is_named(self):
        tool = load()
        with self.assertRaisesRegex(tool.Failed, "there is no cmake-of-nobody"):
            tool.run(["cmake-of-nobody"])

    def test_paths_are_the_callers(self):
        with tempfile.TemporaryDirectory() as folder:
            put(folder, "nvidia-smi", "exit 9")
            environment = {**os.environ, "PATH": folder + os.pathsep + os.environ["PATH"]}
            done = subprocess.run([sys.executable, TOOL, "--out", "here/out.json"], cwd=folder, env=environment, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 77, done.stderr)
            self.assertTrue(os.path.exists(os.path.join(folder, "here/out.json")))
            before = sys.argv, os.getcwd()
            try:
                sys.argv = [TOOL, "--build", "b", "--packed", "p", "x.f32"]
                os.chdir(folder)
                args = load().parse()
            finally:
                sys.argv = before[0]
                os.chdir(before[1])
            here = os.path.realpath(folder)
            self.assertEqual([args.build, args.packed, *args.fields], [os.path.join(here, name) for name in ("b", "p", "x.f32")])
            self.assertEqual(args.out, os.path.join(os.path.dirname(os.path.dirname(TOOL)), "out", "gpu_check.json"))

    def test_archives_that_are_none(self):
        with tempfile.TemporaryDirectory() as folder:
            put(folder, "p.tar.xz", "")
            for words, why in ((["--packed", "none.tar.xz"], "No such file"), (["--packed", "p.tar.xz"], "not what --pack makes"),
                               (["--pack", "none/p.tar.xz"], "there is no such folder")):
                done = subprocess.run([sys.executable, TOOL, *words], cwd=folder, capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 1)
                self.assertRegex(done.stderr, f"^gpu_check: {words[0]} .*{words[1]}: .*{why}")

    def test_no_gpu_is_a_status_of_its_own(self):
        status, _, result = self.check(None, "13.0")
        self.assertEqual((status, result["skipped"]), (77, "no GPU: nvidia-smi names none"))

    def test_a_benchmark_that_never_ends_is_one_error(self):
        tool = load()
        tool.BENCHMARK_SECONDS = 1
        with tempfile.TemporaryDirectory() as folder:
            put(folder, "bin/gpu_codec_bench", """echo "{\\"field\\": \\"$3\\"}"\ncase $3 in bad) echo why >&2; exit 2;; endless) sleep 100;; esac""")
            rows = tool.benchmark(folder, 1, "1e-3", ["endless", "bad", "good"])
        self.assertEqual([row.get("error") for row in rows], [None, "exit status 124", None, "why", None])

    def on_cluster(self, stage, *programs, stands_in=CLUSTER):
        """What the stage finds, how many rows it has kept each time, and how the cluster was called."""
        tool = load()
        kept = []
        with tempfile.TemporaryDirectory() as folder:
            for name in programs:
                put(folder, name, "")
            put(folder, "cluster", stands_in)
            tool.CLUSTER = os.path.join(folder, "cluster")
            tool.no_cluster = lambda: None
            found = tool.cluster(folder, stage, "1e-3", ["a.f32", "b.f32"], lambda so_far: kept.append(len(so_far["rows"])))
            if not os.path.exists(os.path.join(folder, "calls")):
                return found, kept, []
            with open(os.path.join(folder, "calls"), encoding="utf-8") as f:
                return found, kept, f.read().replace(folder, "FOLDER").splitlines()

    def test_a_stage_on_the_cluster_has_every_field_on_each_number_of_hosts(self):
        sizes = "1e-3rel 7 a.f32 16,256 b.f32 16,256"
        for stage, rate, program, measured in (
            ("cluster-25gbit", "25gbit", "bin/nccl_bench", r" gpu {} FOLDER/bin/nccl_bench \S+/id{} " + sizes + " a.f32 0.0625,1,1024"),
            ("staged-10gbit", "10gbit", "bin/staged_bench_mpich", "FOLDER/bin/mpiexec.hydra gpu mpich {} FOLDER/bin/staged_bench_mpich " + sizes),
        ):
            found, kept, calls = self.on_cluster(stage, program, "bin/mpiexec.hydra")
            good = [{"rate": rate, "ranks": hosts, "violations": 0} for hosts in (2, 4)]
            self.assertEqual(found["rows"], [*good, {"rate": rate, "ranks": 4, "error": "lost"}])
            self.assertEqual(kept, [1, 3])
            for hosts in (2, 4):
                self.assertEqual(calls.pop(0), f" up {hosts} {rate} 65000")
                self.assertRegex(calls.pop(0), f"^{measured.replace('{}', str(hosts))}$")
                self.assertEqual(calls.pop(0), " down")

    def test_what_was_not_built_is_skipped(self):
        for stage, library in (("cluster-10gbit", "NCCL"), ("staged-10gbit", "MPI")):
            found, _, calls = self.on_cluster(stage, "bin/staged_bench_mpich")
            self.assertEqual((found, calls), ({"skipped": f"built without {library}"}, []))

    def test_a_cluster_that_does_not_come_up_is_a_failure(self):
        tool = load()
        found, _, calls = self.on_cluster("cluster-10gbit", "bin/nccl_bench", stands_in=CLUSTER.replace("exit 0", "exit 2"))
        self.assertEqual((found, calls), ({"error": "the cluster did not come up", "rows": []}, [" up 2 10gbit 65000"]))
        self.assertFalse(tool.is_well("cluster-10gbit", found))
        self.assertTrue(tool.is_well("cluster-10gbit", {"skipped": "needs root and iproute2"}))

    def test_what_was_begun_ends_with_it(self):
        stage = """import importlib.machinery, importlib.util, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # who runs tests in the background ignores it
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # or under nohup
loader = importlib.machinery.SourceFileLoader("gpu_check", sys.argv.pop(1))
tool = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu_check", loader))
sys.dont_write_bytecode = True
loader.exec_module(tool)
tool.CLUSTER = sys.argv.pop(1)
tool.no_cluster = lambda: None
sys.exit(tool.main())"""
        for sent, statuses, during in ((signal.SIGTERM, (143,), "gpu"), (signal.SIGHUP, (129,), "gpu"), (signal.SIGINT, (130, -signal.SIGINT), "gpu"),
                                       (signal.SIGTERM, (143,), "up")):
            with self.subTest(sent, during=during), tempfile.TemporaryDirectory() as folder:
                put(folder, "nvidia-smi", "echo 'NVIDIA H100 80GB HBM3, 580.65.06'")
                put(folder, "bin/nccl_bench", "")
                put(folder, "cluster", 'cd "$(dirname "$0")"; echo "$1" $NC_OWNER >>calls; '
                    f'[ "$1" != {during} ] || {{ echo $$ >pid; mv pid begun; exec sleep 100; }}')
                with tarfile.open(os.path.join(folder, "all.tar.xz"), "w:xz") as archive:
                    archive.add(os.path.join(folder, "bin"), "bin")
                    archive.addfile(tarfile.TarInfo("cuda"))
                command = [sys.executable, "-c", stage, TOOL, os.path.join(folder, "cluster"), "--packed", os.path.join(folder, "all.tar.xz")]
                path = folder + os.pathsep + os.environ["PATH"]
                check = subprocess.Popen([*command, "--out", os.path.join(folder, "out.json"), "--only", "cluster-10gbit", "a.f32"],
                                         env={**os.environ, "PATH": path}, stderr=subprocess.DEVNULL)
                while not os.path.exists(os.path.join(folder, "begun")):
                    self.assertIsNone(check.poll())
                    time.sleep(0.05)
                check.send_signal(sent)
                ours = str(check.pid)
                self.assertIn(check.wait(timeout=20), statuses)
                with open(os.path.join(folder, "calls"), encoding="utf-8") as f:
                    self.assertEqual(f.read().split(), ["up", ours, *(["gpu"] if during == "gpu" else []), "down", ours], "not somebody else's")
                with open(os.path.join(folder, "begun"), encoding="utf-8") as f, self.assertRaises(ProcessLookupError):
                    os.kill(int(f.read()), 0)

    def packed(self, stages=("tests", "loopback", "codec"), **programs):
        """Exit status and JSON of a run of these programs, packed by the tool itself, where the driver is there and nothing to build with."""
        tool = load()
        with tempfile.TemporaryDirectory() as folder:
            put(folder, "nvidia-smi", "echo 'NVIDIA H100 80GB HBM3, 580.65.06'")
            put(folder, "strip", 'cp "$3" "$2"')
            before = os.environ["PATH"]
            os.environ["PATH"] = folder + os.pathsep + before
            try:
                for name, does in programs.items():
                    put(folder, f"bin/{name}", does)
                put(folder, tool.DROPIN, "")
                tool.pack(folder, os.path.join(folder, "all.tar.xz"))
                only = [word for stage in stages for word in ("--only", stage)]
                command = [sys.executable, TOOL, "--packed", os.path.join(folder, "all.tar.xz"), "--out", os.path.join(folder, "out.json"), *only, "field.f32"]
                done = subprocess.run(command, env=os.environ, capture_output=True, text=True, check=False)
            finally:
                os.environ["PATH"] = before
            with open(os.path.join(folder, "out.json"), encoding="utf-8") as f:
                return done.returncode, json.load(f)

    def test_what_was_built_elsewhere_is_run(self):
        good = GTEST.replace("exit 1", "true")
        bench = """echo '{"dtype": "f32", "violations": 0, "of_copy": {"encode": 0.5}}'"""
        programs = {"gpu_codec_test": good, "gpu_survey_test": good, "gpu_collective_test": good, "gpu_codec_bench": bench}
        status, result = self.packed(nccl_bench=NCCL_BENCH, **programs)
        self.assertEqual(status, 0)
        codec = {name.split(".", 1)[1]: outcome for name, outcome in result["tests"].items() if name.startswith("gpu_codec_test")}
        self.assertEqual(codec, {"Floats/GpuCodec.Adds/f32": "passed", "Floats/GpuCodec.Adds/f64": "skipped", "Other.Fails": "passed"})
        self.assertEqual([row["hosts"] for row in result["loopback"]["rows"]], ["host0 of 2"] * 2)
        self.assertEqual(result["loopback"]["dropin"], {"processes": 2, "calls": 8, "plain_calls": 0, "verified_elements": 18})
        self.assertEqual(result["geometric_mean_of_copy"], {"f32": {"encode": 0.5}})
        status, result = self.packed(stages=["codec"], **{**programs, "gpu_survey_test": GTEST})
        self.assertEqual((status, "tests" in result, "codec" in result), (0, False, True))
        status, result = self.packed(**{**programs, "gpu_survey_test": GTEST})
        self.assertEqual((status, result["tests"]["gpu_survey_test.Other.Fails"]), (1, "failed"))
        self.assertEqual(result["loopback"], {"skipped": "built without NCCL"})
        status, result = self.packed(nccl_bench=NCCL_BENCH.replace('"calls": 4', '"calls": 0'), **programs)
        self.assertEqual(status, 1, "nothing was served by the drop-in library")
        status, result = self.packed(nccl_bench=NCCL_BENCH + "[ $RANK = 0 ] || { echo lost >&2; exit 3; }", **programs)
        self.assertEqual((status, "lost" in result["loopback"]["rows"][-1]["error"]), (1, True))


if __name__ == "__main__":
    unittest.main()
