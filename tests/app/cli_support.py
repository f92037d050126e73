"""What the tests of the command share: running it, and arrays without NumPy."""

import json
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import unittest

LACONIC = ""


class CommandTest(unittest.TestCase):
    """Each test runs in a folder of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="laconic-cli-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as f:
            f.write(data)
        return self.path(name)

    def read(self, name):
        with open(self.path(name), "rb") as f:
            return f.read()

    def files(self):
        return sorted(os.listdir(self.folder))

    def run_laconic(self, *arguments, code=0, environment=None, launcher=()):
        """Runs the command in the test's folder; its exit code must be `code`. Returns stdout, stderr."""
        done = subprocess.run([*launcher, LACONIC, *arguments], cwd=self.folder, capture_output=True, text=True, timeout=120,
                              env={**os.environ, **(environment or {})}, check=False)
        self.assertEqual(done.returncode, code, f"{arguments}\n{done.stdout}\n{done.stderr}")
        if code not in (0, 7):
            self.assertTrue(done.stderr.strip(), "a failure says why")
            self.assertLess(len(done.stderr.splitlines()), 40 if launcher else 4, "and says it briefly")
        return done.stdout, done.stderr

    def json(self, *arguments, code=0, environment=None):
        return json.loads(self.run_laconic("--json", *arguments, code=code, environment=environment)[0])

    def shares_on_a_terminal(self, label, *arguments):
        """The percentages of the bar that the command, made slow, draws and clears where stderr is a terminal."""
        ours, its = pty.openpty()
        slow = {} if sanitized() else {"LACONIC_SIMD": "scalar"}
        process = subprocess.Popen([LACONIC, *arguments], cwd=self.folder, stdout=subprocess.DEVNULL, stderr=its,
                                   env={**os.environ, **slow})
        os.close(its)
        drawn = b""
        try:
            while more := os.read(ours, 65536):
                drawn += more
        except OSError:  # nobody writes there any more
            pass
        os.close(ours)
        self.assertEqual(process.wait(timeout=60), 0)
        shares = re.findall(label + r" +\[[# ]+\] +(\d+) %", drawn.decode())
        self.assertTrue(shares and drawn.split(b"%")[-1].startswith(b"\r\x1b[K"), drawn)
        return [int(share) for share in shares]


def sanitized():
    """Whether the command is one with AddressSanitizer."""
    with open(LACONIC, "rb") as f:
        return b"__asan_init" in f.read()


def floats(values):
    return struct.pack(f"<{len(values)}f", *values)


def wave(n):
    """A smooth field that is the same everywhere, without math libraries: a rounded parabola train."""
    return [((i % 97) - 48) ** 2 / 100.0 + (i % 7) * 0.01 for i in range(n)]


def npy(data, descr, shape, order="False"):
    text = f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + data


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def main():
    global LACONIC
    LACONIC = os.path.abspath(sys.argv.pop(1))
    unittest.main(module="__main__")
