"""The drop-in library's reports of an NCCL job of several processes, each with a rank 0 of its own: every one is there, and whole.

    nccl_report_test.py LIBRARY PROGRAM
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import unittest

LIBRARY, PROGRAM = sys.argv[1:]


class NcclReport(unittest.TestCase):
    def test_each_process_has_a_report_of_its_own(self):
        with tempfile.TemporaryDirectory() as folder:
            report = os.path.join(folder, "report")
            settings = {"LD_PRELOAD": LIBRARY, "LACONIC_BOUND": "1e-3", "LACONIC_MODE": "compressed", "LACONIC_REPORT": report}
            command = [PROGRAM, "2", "1e-3"]
            processes = [subprocess.Popen(command, env={**os.environ, **settings}, stdout=subprocess.PIPE) for _ in range(2)]
            for process in processes:
                self.assertIn(b"all as they should be", process.communicate()[0])
            names = [f"{socket.gethostname()}.{process.pid}" for process in processes]
            self.assertEqual(sorted(os.listdir(folder)), sorted(f"report.nccl.{name}" for name in names))
            totals = []
            for name in names:
                with open(f"{report}.nccl.{name}", encoding="utf-8") as f:
                    found = json.load(f)
                self.assertEqual((found["process"], found["lowest_rank"], found["policy"]), (name, 0, "bound 0.001"))
                self.assertGreater(sum(found["left_to_nccl"].values()), 0)
                self.assertNotIn("left_to_mpi", found)
                totals.append(found["total"]["calls"])
            self.assertGreater(totals[0], 0)
            self.assertEqual(totals[0], totals[1])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
