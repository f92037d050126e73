"""tools/gpu_check before it builds: whether there is a GPU, and whether its driver is new enough for the toolkit. And a benchmark that never ends.

    gpu_check_test.py FILE
"""

import importlib.machinery
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest

TOOL = sys.argv.pop(1)


class GpuCheck(unittest.TestCase):
    def check(self, driver, cuda):
        """Exit status, what was said, and the JSON, if any, over commands that stand in for NVIDIA's; cmake's fails."""
        with tempfile.TemporaryDirectory() as folder:
            smi = f"echo 'NVIDIA H100 80GB HBM3, {driver}'" if driver else "exit 9"
            for name, does in {"nvidia-smi": smi, "nvcc": f"echo 'Cuda compilation tools, release {cuda}, V{cuda}.48'", "cmake": "exit 1"}.items():
                with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                    f.write(f"#!/bin/sh\n{does}\n")
                os.chmod(f.name, 0o755)
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
            status, said, _ = self.check(driver, cuda)
            self.assertEqual(status, 1)
            self.assertIn("the build failed", said)

    def test_no_gpu_is_a_status_of_its_own(self):
        status, _, result = self.check(None, "13.0")
        self.assertEqual((status, result["skipped"]), (77, "no GPU: nvidia-smi names none"))

    def test_a_benchmark_that_never_ends_is_one_error(self):
        loader = importlib.machinery.SourceFileLoader("gpu_check", TOOL)
        tool = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu_check", loader))
        sys.dont_write_bytecode = True
        loader.exec_module(tool)
        tool.BENCHMARK_SECONDS = 1
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "bin"))
            bench = os.path.join(folder, "bin", "gpu_codec_bench")
            with open(bench, "w", encoding="utf-8") as f:
                f.write("""#!/bin/sh\necho "{\\"field\\": \\"$3\\"}"\ncase $3 in bad) echo why >&2; exit 2;; endless) sleep 100;; esac\n""")
            os.chmod(bench, 0o755)
            rows = tool.benchmark(folder, 1, "1e-3", ["endless", "bad", "good"])
        self.assertEqual([row.get("error") for row in rows], [None, "exit status 124", None, "why", None])


if __name__ == "__main__":
    unittest.main()
