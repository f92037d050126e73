"""tools/setup, format and tidy in folders that are not like ours, with stand-ins for what they start; and what CMake finds in
such folders.

    tools_test.py CMAKE
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CMAKE = ""


class Tools(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="laconic-tools-")
        self.addCleanup(folder.cleanup)
        self.place = os.path.realpath(folder.name)
        self.stand_ins = os.path.join(self.place, "stand-ins")

    def checkout(self, name="main"):
        """A folder with our tools, two sources, and none of what git keeps."""
        root = os.path.join(self.place, name)
        os.makedirs(os.path.join(root, "tools"))
        for tool in ("setup", "format", "tidy", "sources"):
            shutil.copy(os.path.join(ROOT, "tools", tool), os.path.join(root, "tools"))
        for source in ("src/a.cc", "app/b.cc", "build/made.cc", ".venv/lib/other.cc"):
            self.write(os.path.join(root, source), "int a;\n")
        return root

    def write(self, path, text):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def script(self, path, text):
        os.chmod(self.write(path, "#!/bin/bash\n" + text), 0o755)

    def start(self, root, *words, code=0, **environment):
        done = subprocess.run(words, cwd=root, capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL,
                              env={**os.environ, "PATH": self.stand_ins + ":" + os.environ["PATH"], "PWD": root, **environment})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_sources_without_git(self):
        root = self.checkout()
        self.script(os.path.join(root, ".venv/bin/clang-format"), 'printf "%s\\n" "$@"\n')
        self.script(os.path.join(root, ".venv/bin/clang-tidy"), "")
        commands = f'[{{"file": "{root}/src/a.cc"}}, {{"file": "{root}/app/b.cc"}}]'
        self.script(os.path.join(self.stand_ins, "cmake"), f"mkdir -p build/tidy; echo '{commands}' >build/tidy/compile_commands.json\n")
        for git in ("exit 128", "exit 0"):  # none here; one of somebody else's, that passes us over
            with self.subTest(git):
                self.script(os.path.join(self.stand_ins, "git"), git + "\n")
                said = self.start(root, "tools/format", "--check")
                self.assertIn("format: 2 files clean", said)
                self.assertEqual(sorted(w for w in said.split() if w.endswith(".cc")), ["app/b.cc", "src/a.cc"])
                self.assertIn("tidy: 2 files clean", self.start(root, "tools/tidy"))
        self.write(os.path.join(root, "app/b.cc"), '#include "a.cc"\n')
        self.assertIn("sources are not to be included", self.start(root, "tools/tidy", code=1))
        shutil.rmtree(os.path.join(root, "app"))
        self.assertNotIn("clean", self.start(root, "tools/tidy", code=1))
        shutil.rmtree(os.path.join(root, "src"))
        self.assertIn("sources: none", self.start(root, "tools/format", "--check", code=1))

    def test_set_up_refuses_blanks(self):
        for name in ("a b", "a\tb"):
            said = self.set_up(self.checkout(name), code=1)
            self.assertIn("has a blank in its name", said)
            self.assertNotIn("making .venv", said)

    def set_up(self, root, code=0):
        """Where all packages are there, and no venv can be made."""
        self.script(os.path.join(self.stand_ins, "dpkg-query"), "printf installed\n")
        return self.start(root, "tools/setup", code=code, PYTHONHOME="/nowhere")

    def made(self, root):
        """A .venv as tools/setup would have made it."""
        with open(os.path.join(root, "tools/setup"), encoding="utf-8") as f:
            functions = f.read().rsplit("\ninstall_packages\n", 1)[0]
        said = self.start(root, "bash", "-c", functions + '\nmake_venv() { :; }\npython=/usr/bin/python3\n'
                          '[[ -x $python ]] || python=python3\nvenv_recipe', os.path.join(root, "tools/setup"))
        self.write(os.path.join(root, ".venv/made-from"), said)

    def test_set_up_by_another_way_to_the_folder(self):
        root = self.checkout()
        self.made(root)
        os.symlink(root, os.path.join(self.place, "link"))
        for way in (root, os.path.join(self.place, "link")):
            self.assertEqual(self.set_up(way), "setup: ready\n")

    def test_set_up_that_fails_leaves_the_venv(self):
        root = self.checkout()
        self.write(os.path.join(root, ".venv/made-from"), "other packages\n")
        self.assertIn("making .venv", self.set_up(root, code=1))
        self.assertTrue(os.path.exists(os.path.join(root, ".venv/lib/other.cc")))
        self.assertFalse(os.path.exists(os.path.join(root, ".venv.before")))
        os.rename(os.path.join(root, ".venv"), os.path.join(root, ".venv.before"))  # killed in the middle
        self.write(os.path.join(root, ".venv/half"), "")
        self.made(root)
        os.rename(os.path.join(root, ".venv/made-from"), os.path.join(root, ".venv.before/made-from"))
        self.assertEqual(self.set_up(root), "setup: ready\n")
        self.assertEqual(sorted(os.listdir(os.path.join(root, ".venv"))), ["lib", "made-from"])

    def test_mpi_in_folders_with_signs(self):
        root = os.path.join(self.place, "c++(1)")
        venv = os.path.join(root, ".venv")
        self.script(os.path.join(venv, "bin/mpicc"), f'echo "gcc -I/none -I{self.place}/include -lmpi"\n')
        self.script(os.path.join(venv, "bin/mpiexec"), "")
        self.write(os.path.join(self.place, "include/mpi.h"), '#define MPICH_VERSION "5.0"\n')
        self.write(os.path.join(root, "CMakeLists.txt"), "cmake_minimum_required(VERSION 3.22)\nproject(signs LANGUAGES NONE)\n"
                   f'set(LACONIC_VENV "${{PROJECT_SOURCE_DIR}}/.venv")\nset(LACONIC_MPI mpich)\ninclude("{ROOT}/cmake/LaconicMpi.cmake")\n'
                   'message(STATUS "launcher: ${LACONIC_MPIEXEC_mpich}")\n')
        said = self.start(root, CMAKE, "-S", root, "-B", os.path.join(self.place, "made"))
        self.assertIn(f"launcher: {venv}/bin/mpiexec", said)


if __name__ == "__main__":
    CMAKE = sys.argv.pop(1)
    unittest.main()
