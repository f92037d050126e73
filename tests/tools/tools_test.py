"""tools/setup, format and tidy in folders that are not like ours, with stand-ins for what they start; what CMake finds in such
folders; tools/cluster and those that use it, with stand-ins for namespaces; and what tools say to words that are wrong.

    tools_test.py CMAKE
"""

import fcntl
import importlib.machinery
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import types
import unittest
from unittest import mock

sys.dont_write_bytecode = True  # beside the tools that are loaded
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CMAKE = ""


def load(name):
    loader = importlib.machinery.SourceFileLoader(name.removesuffix(".py"), os.path.join(ROOT, "tools", name))
    tool = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(tool)
    return tool


class ToolTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="laconic-tools-")
        self.addCleanup(folder.cleanup)
        self.place = os.path.realpath(folder.name)
        self.stand_ins = os.path.join(self.place, "stand-ins")

    def write(self, path, text):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def script(self, path, text):
        os.chmod(self.write(path, "#!/bin/bash\n" + text), 0o755)

    def environment(self, **more):
        return {**os.environ, "PATH": self.stand_ins + ":" + os.environ["PATH"], **more}

    def start(self, root, *words, code=0, **environment):
        done = subprocess.run(words, cwd=root, capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL,
                              env=self.environment(PWD=root, **environment))
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr


class Tools(ToolTest):
    def checkout(self, name="main"):
        """A folder with our tools, two sources, and none of what git keeps."""
        root = os.path.join(self.place, name)
        os.makedirs(os.path.join(root, "tools"))
        for tool in ("setup", "format", "tidy", "sources"):
            shutil.copy(os.path.join(ROOT, "tools", tool), os.path.join(root, "tools"))
        for source in ("src/a.cc", "app/b.cc", "build/made.cc", ".venv/lib/other.cc"):
            self.write(os.path.join(root, source), "int a;\n")
        return root

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

    def test_sources_that_are_gone(self):
        root = self.checkout()
        self.script(os.path.join(self.stand_ins, "git"), "printf '%s\\n' src/a.cc src/gone.cc\n")
        self.assertEqual(self.start(root, "tools/sources", "*.cc"), "src/a.cc\n")

    def test_words_of_the_scripts(self):
        root = self.checkout()
        self.script(os.path.join(root, ".venv/bin/clang-format"), "echo formats\n")
        for tool in ("format", "setup"):
            for words in (["--chek"], ["--check", "src/a.cc"]):
                said = self.start(root, f"tools/{tool}", *words, code=2)
                self.assertIn(f"{tool}: no '{' '.join(words)}'", said)
                self.assertNotIn("formats", said)
            said = self.start(os.path.join(root, "src"), f"../tools/{tool}", "--help")
            self.assertIn(f"tools/{tool} ", said)
            self.assertNotIn("formats", said)
            self.assertNotIn("ready", said)

    def test_integration_shows_its_own_summary(self):
        root = self.checkout()
        os.mkdir(os.path.join(root, ".ci"))
        shutil.copy(os.path.join(ROOT, ".ci/run"), os.path.join(root, ".ci"))
        self.write(os.path.join(root, "build/test.summary"), "9 passed, 0 failed\n")
        self.script(os.path.join(self.stand_ins, "make"), "echo dies; exit 2\n")
        self.assertEqual(self.start(root, ".ci/run", code=2), "dies\n")
        self.script(os.path.join(self.stand_ins, "make"), "echo 8 passed, 1 failed >build/test.summary; echo make: says; exit 2\n")
        self.assertEqual(self.start(root, ".ci/run", code=2), "make: says\n8 passed, 1 failed\n")

    def test_set_up_refuses_blanks(self):
        for name in ("a b", "a\tb"):
            said = self.set_up(self.checkout(name), code=1)
            self.assertIn("has a blank in its name", said)
            self.assertNotIn("making .venv", said)

    def set_up(self, root, code=0):
        """Where all packages are there, and no venv can be made."""
        self.script(os.path.join(self.stand_ins, "dpkg-query"), """for architecture in amd64 i386; do printf "${3/'${db:Status-Status}'/installed}"; done\n""")
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

    def test_two_set_ups_at_once(self):
        root = self.checkout()
        self.made(root)
        self.set_up(root)
        before = sorted(os.listdir(root)), os.listdir(os.path.join(root, "build"))
        first = os.open(root, os.O_RDONLY)
        try:
            fcntl.flock(first, fcntl.LOCK_EX)
            second = subprocess.Popen([os.path.join(root, "tools/setup")], stdout=subprocess.PIPE, text=True, env=self.environment())
            self.addCleanup(second.stdout.close)
            self.addCleanup(second.kill)
            self.assertIn("another set-up is at work", second.stdout.readline())
        finally:
            os.close(first)
        self.assertEqual(second.stdout.read(), "setup: ready\n")
        self.assertEqual(second.wait(), 0)
        self.assertEqual((sorted(os.listdir(root)), os.listdir(os.path.join(root, "build"))), before)

    def test_set_up_where_folders_have_no_locks(self):
        root = self.checkout()
        self.made(root)
        self.script(os.path.join(self.stand_ins, "flock"), "echo Bad file descriptor >&2; exit 65\n")
        self.assertEqual(self.set_up(root), "setup: ready\n")

    def test_set_up_without_packages(self):
        root = self.checkout()
        for name, does in {"dpkg-query": "exit 1", "apt-get": "echo no network; exit 100", "id": "echo 0"}.items():
            self.script(os.path.join(self.stand_ins, name), does + "\n")
        os.mkdir(os.path.join(self.place, "tmp"))
        said = self.start(root, "tools/setup", code=1, TMPDIR=os.path.join(self.place, "tmp"))
        self.assertIn("no network\nsetup: apt-get failed", said)
        self.assertEqual(os.listdir(os.path.join(self.place, "tmp")), [])

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

    def test_mpi_of_no_name(self):
        for name in ("mpih", "openmpi;mpih", "auto"):
            said = self.start(self.place, CMAKE, "-S", ROOT, "-B", os.path.join(self.place, "made"), f"-DLACONIC_MPI={name}", code=1)
            self.assertIn(f"LACONIC_MPI={name}: want AUTO, ON, OFF, openmpi, mpich or openmpi;mpich, not", " ".join(said.split()))

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

    def test_words_that_are_wrong(self):
        for words, said in (
            (["demo", "/nonexistent"], "demo: no build in /nonexistent"),
            (["suites", "--build", "/nonexistent"], "suites: no build in /nonexistent"),
            (["bench", "--build", "/nonexistent", "--only", "codec"], "bench: no build in /nonexistent"),
            (["bench_docs.py", "nonsense"], "PART 'nonsense': want codec, "),
        ):
            with self.subTest(words):
                self.assertIn(said, self.start(self.place, sys.executable, os.path.join(ROOT, "tools", words[0]), *words[1:],
                                               code=2 if "PART" in said else 1))

    def test_parts_of_the_figures(self):
        docs = load("bench_docs.py")
        for words, parts in (([], [part for part in docs.IMAGES if part != "long_choice"]), (["long_choice", "codec"], ["long_choice", "codec"])):
            with self.subTest(words), mock.patch.object(sys, "argv", ["bench_docs.py", *words]):
                self.assertEqual(docs.wanted(), parts)

    def test_help(self):
        self.write(os.path.join(self.place, "modules/numpy.py"), "")  # may not be there
        for tool in ("bench", "bench_docs.py", "demo", "hard_data.py", "suites"):
            with self.subTest(tool):
                said = self.start(self.place, sys.executable, os.path.join(ROOT, "tools", tool), "--help",
                                  PYTHONPATH=os.path.join(self.place, "modules"))
                self.assertIn("usage:", said)
                self.assertFalse(os.path.exists(os.path.join(self.place, "--help")))

    def test_suites_under_a_python_without_filters(self):
        suites = load("suites")
        suites.OUT = self.place
        suites.PYTHON = os.path.join(self.stand_ins, "python")
        self.script(suites.PYTHON, f"[[ $1 != -c ]] || echo 1.0\ntar -C {self.place} -czf {self.place}/mpi4py-1.0.tar.gz stand-ins\n")
        suites.tarfile = types.SimpleNamespace(open=tarfile.open)
        with mock.patch.object(tarfile.TarFile, "extractall", lambda archive, path: None):
            self.assertEqual(suites.mpi4py_source(), os.path.join(self.place, "mpi4py-1.0"))

    def test_a_lost_terminal_ends_what_was_started(self):
        calls = os.path.join(self.place, "calls")
        told = os.path.join(self.place, "told")
        self.script(os.path.join(self.stand_ins, "cluster"), f"echo $1 >>{calls}\n"
                    f"while [[ $1 == down && -e {calls} && ! -e {told} ]]; do sleep 0.02; done\necho done >>{calls}\n")
        self.script(os.path.join(self.stand_ins, "run"), f"cd {self.place}\necho $$ >begins\nmv begins begun\nsleep 100\n")
        program = (f"import signal, sys; sys.path.insert(0, '{ROOT}/tools'); sys.dont_write_bytecode = True; import stacking\n"
                   "signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"  # who runs tests under nohup ignores it
                   f"stacking.CLUSTER = '{self.stand_ins}/cluster'; stacking.end_in_order()\n"
                   f"with stacking.cluster(2, '1gbit'): stacking.finish(['{self.stand_ins}/run'])")
        with subprocess.Popen([sys.executable, "-c", program]) as run:
            self.addCleanup(run.kill)
            self.wait_for(os.path.join(self.place, "begun"), "", run)
            run.send_signal(signal.SIGHUP)
            self.wait_for(calls, "down", run)
            run.send_signal(signal.SIGHUP)  # the kernel's after the shell's
            self.write(told, "")
            self.assertEqual(run.wait(timeout=20), 129)
        with open(calls, encoding="utf-8") as f:
            self.assertEqual(f.read().split(), ["up", "done", "down", "done"])
        with open(os.path.join(self.place, "begun"), encoding="utf-8") as f, self.assertRaises(ProcessLookupError):
            os.kill(int(f.read()), 0)

    def wait_for(self, path, word, process):
        while True:
            ended = process.poll() is not None  # before the look: it may write and end between them
            if os.path.exists(path):
                with open(path, encoding="utf-8") as f:
                    if word in f.read():
                        return
            self.assertFalse(ended)
            time.sleep(0.02)


# Namespaces and links are files; what is run in a namespace is run here.
IP = """cd "$(dirname "$0")"
case "$1 $2" in
"netns add") mkdir "netns.$3" ;;
"netns del") for link in $(ls "netns.$3"); do rmdir "link.$link"; done; rm -r "netns.$3" ;;
"link add") mkdir "link.$3" && { [[ ${*: -2:1} != netns ]] || mkdir "netns.${*: -1}/$3"; } ;; # which takes it along
"link del") rmdir "link.$3" ;;
"netns exec") shift 3; exec "$@" ;;
esac
"""
TC = """cd "$(dirname "$0")"
echo "$*" >>tc.calls
[[ "$*" != *BAD* ]]
"""
UNSHARE = """while [[ $1 == -* ]]; do shift; done
exec "$@"
"""


class Cluster(ToolTest):
    """tools/cluster with stand-ins for what makes namespaces, which takes root."""

    def setUp(self):
        super().setUp()
        for name, does in {"ip": IP, "tc": TC, "unshare": UNSHARE, "id": "echo 0\n", "hostname": "", "mount": "", "sysctl": ""}.items():
            self.script(os.path.join(self.stand_ins, name), does)
        self.state = os.path.join(self.place, "state")

    def cluster(self, *words, code=0, **environment):
        return self.start(self.place, os.path.join(ROOT, "tools/cluster"), *words, code=code,
                          **{"NC_STATE": self.state, "NC_PREFIX": "x", "NC_BR": "xbr", **environment})

    def there(self):
        """Namespaces and links."""
        return sorted(name for name in os.listdir(self.stand_ins) if name.startswith(("netns.", "link.")))

    def test_what_was_there_before_stays(self):
        for name, free in (("netns.x1", "link.xbr"), ("link.vx1", "netns.x1"), ("link.xbr", "netns.x0")):
            with self.subTest(name):
                os.mkdir(os.path.join(self.stand_ins, name))
                self.assertIn("NC_PREFIX and NC_BR give other names", self.cluster("up", "2", "1gbit", code=2))
                self.assertIn(name, self.there())
                self.assertNotIn(free, self.there())
                self.assertFalse(os.path.exists(self.state))
                os.rmdir(os.path.join(self.stand_ins, name))

    def test_what_was_being_made_when_it_ended_is_removed(self):
        for command in ("link add", "netns add"):
            for number, code in ((signal.SIGKILL, -signal.SIGKILL), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
                with self.subTest(command, number=number):
                    ends = f"kill -{int(number)} $PPID; sleep 0.1"  # it is made all the same
                    self.script(os.path.join(self.stand_ins, "ip"), f"""[[ "$1 $2" != "{command}" ]] || {{ {ends}; }}\n{IP}""")
                    self.cluster("up", "1", "none", code=code)
                    self.script(os.path.join(self.stand_ins, "ip"), IP)
                    self.assertEqual(self.there() != [], code < 0)
                    self.assertEqual(self.cluster("down"), "")
                    self.assertEqual(self.there(), [])
                    self.assertFalse(os.path.exists(self.state))

    def test_another_cluster_of_the_same_names_stays(self):
        self.cluster("up", "2", "1gbit")
        before = self.there()
        self.assertIn("netns.x1", before)
        self.cluster("up", "2", "1gbit", code=2, NC_STATE=self.state + "2")
        self.assertIn("already up", self.cluster("up", "2", "1gbit", code=3))
        self.assertEqual(self.there(), before)
        self.assertEqual(self.cluster("hosts"), "x0\nx1\n")

    def test_a_cluster_is_its_owners(self):
        owner = subprocess.Popen(["sleep", "100"])
        self.addCleanup(owner.wait)
        self.addCleanup(owner.kill)
        self.cluster("up", "1", "none", NC_OWNER=str(owner.pid))
        said = self.cluster("up", "2", "none", code=3, NC_OWNER=str(os.getpid()))
        self.assertIn(f"for process {owner.pid} (sleep 100", said)
        self.cluster("down", NC_OWNER=str(os.getpid()))
        self.assertEqual(self.cluster("hosts"), "x0\n")
        owner.kill()
        owner.wait()
        self.cluster("up", "2", "none", NC_OWNER=str(os.getpid()))
        self.assertEqual(self.cluster("hosts"), "x0\nx1\n")
        self.cluster("down")
        self.assertFalse(os.path.exists(self.state))

    def test_two_that_begin_at_the_same_time(self):
        self.script(os.path.join(self.stand_ins, "mkdir"), f"""/bin/mkdir "$@"\n[[ "$*" != *{self.state} ]] || echo 2 >{self.state}/count\n""")
        said = self.cluster("up", "1", "none", code=3, NC_OWNER=str(os.getpid()))
        self.assertRegex(said, "^tools/cluster: already up .*\n$")
        self.assertEqual(os.listdir(self.state), ["count"])
        self.assertEqual(self.cluster("down"), "", "though it was killed at its start")
        self.assertFalse(os.path.exists(self.state))

    def test_an_owner_that_ends_while_it_is_asked_for(self):
        self.cluster("up", "1", "none")
        self.write(os.path.join(self.state, "with"), "0\n")  # can be sent signals, as our group, and is not in /proc
        said = self.cluster("up", "1", "none", code=3)
        self.assertRegex(said, f"^tools/cluster: already up .* NC_STATE={self.state} tools/cluster down removes it\n$")
        self.write(os.path.join(self.state, "with"), "")  # about to be written
        self.assertIn("already up", self.cluster("up", "1", "none", code=3))

    def test_a_second_demo_leaves_the_cluster_of_the_first(self):
        program = (f"import os, sys; sys.path.insert(0, '{ROOT}/tools'); sys.dont_write_bytecode = True; os.geteuid = lambda: 0\n"
                   "import stacking\ntry: print('obstacle:', stacking.why_no_cluster())\nexcept stacking.InUse as e: print('in use:', e)")
        names = {"NC_STATE": self.state, "NC_PREFIX": "x", "NC_BR": "xbr"}
        self.cluster("up", "1", "none", NC_OWNER=str(os.getpid()))
        said = self.start(self.place, sys.executable, "-c", program, **names)
        self.assertRegex(said, f"^in use: .*already up .*, for process {os.getpid()} ")
        self.assertEqual(self.cluster("hosts"), "x0\n")
        self.cluster("down")
        self.assertEqual(self.start(self.place, sys.executable, "-c", program, **names), "obstacle: None\n")
        self.assertEqual(self.there(), [])

    def test_commands_on_a_host(self):
        self.cluster("up", "1", "none")
        self.assertEqual(self.cluster("exec", "x0", "printf", "<%s>", "a  b", "", "$HOME'"), "<a  b><><$HOME'>")
        said = self.start(self.place, os.path.join(self.state, "shell"), "-x", "x0", "A='a  b';", 'printf "<%s>" "$A"', "'c'")
        self.assertEqual(said, "<a  b><c>", "to launchers it is ssh")

    def test_rates(self):
        self.cluster("up", "1", "1gbit")
        calls = os.path.join(self.stand_ins, "tc.calls")
        os.remove(calls)
        self.assertIn("no link of rate 'BAD'", self.cluster("rate", "BAD", code=2))
        with open(calls, encoding="utf-8") as f:
            self.assertNotIn("del", f.read())
        for rate, burst in (("1gbit", "128k"), ("4999mbit", "128k"), ("5000mbit", "256k"), ("5Gbit", "256k"), ("9.5gbit", "256k"), ("1gbps", "256k"),
                            ("1000000000", "128k")):
            self.cluster("rate", rate)
            with open(calls, encoding="utf-8") as f:
                self.assertIn(f"rate {rate} burst {burst} ", f.read().splitlines()[-1])


if __name__ == "__main__":
    CMAKE = sys.argv.pop(1)
    unittest.main()
