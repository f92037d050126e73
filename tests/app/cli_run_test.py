"""run and policy: what is refused before any program runs."""

import os
import shutil
import subprocess
import sys
import unittest

import cli_support
from cli_support import CommandTest


def served():
    """The MPIs that there is a drop-in library for."""
    folder = os.path.join(os.path.dirname(cli_support.LACONIC), "..", "lib")
    return [f for f in ("openmpi", "mpich", "abi") if os.path.exists(os.path.join(folder, f, "liblaconic-mpi.so"))]


class Run(CommandTest):
    def test_run_of_what_is_no_program(self):
        self.write("data.txt", b"text")
        for wrong in ("nosuchprogram", "/", "./data.txt"):
            _, said = self.run_laconic("run", "--bound", "1e-3", "--", wrong, code=3)
            self.assertIn(f"'{wrong}' is not found, or no file that can be run", said)

    def test_programs_are_found_as_the_shell_finds_them(self):
        os.makedirs(self.path("first/job"))
        os.mkdir(self.path("second"))
        for name in ("here", "second/job"):
            self.write(name, b"#!/bin/sh\n")
            os.chmod(self.path(name), 0o755)
        usual = os.environ["PATH"]
        for name, path in (("job", f"first:second:{usual}"), ("here", f"first::{usual}"), ("here", f":{usual}"), ("here", f"{usual}:")):
            with self.subTest((name, path)):
                said = self.run_laconic("run", "--bound", "1e-3", "--", name, code=2, environment={"PATH": path})[1]
                self.assertIn("does not show which MPI it uses", said)
        self.run_laconic("run", "--bound", "1e-3", "--", "here", code=3, environment={"PATH": f"first:{usual}"})

    def test_programs_are_not_run_to_find_out_their_mpi(self):
        names = ["job.sh", "mpirun_case.sh", "prune.sh"]
        for name in names:
            self.write(name, b"#!/bin/sh\ntouch ran\necho Open MPI\n")
            os.chmod(self.path(name), 0o755)
            for more in (["--dry-run"], []):
                _, said = self.run_laconic("run", "--bound", "1e-3", *more, "--", "./" + name, code=2)
                self.assertIn("--mpi", said)
            if "openmpi" in served():
                planned = self.json("run", "--bound", "1e-3", "--mpi", "openmpi", "--dry-run", "--", "./" + name, "-n", "2")
                self.assertEqual(planned["command"], ["./" + name, "-n", "2"])  # no launcher's options for it
        self.assertEqual(self.files(), names)

    def test_an_mpi_library_is_no_program(self):
        self.write("job.sh", b"#!/bin/sh\n")
        self.write("libmpi.so.40", b"\x7fELF\0PMPI_Allreduce\0MPI_Init\0")
        for name in self.files():
            os.chmod(self.path(name), 0o755)
        _, said = self.run_laconic("run", "--bound", "1e-3", "--", "./job.sh", "./libmpi.so.40", code=2)
        self.assertIn("does not show which MPI it uses", said)

    def test_data_that_may_be_run_are_not_read(self):
        self.write("job.sh", b"#!/bin/sh\n")
        os.truncate(self.write("data.bin", b"\x93NUMPY"), 1 << 40)
        for name in self.files():  # as some file systems have all of them
            os.chmod(self.path(name), 0o755)
        _, said = self.run_laconic("run", "--bound", "1e-3", "--", "./job.sh", "./data.bin", code=2, launcher=("timeout", "20"))
        self.assertIn("does not show which MPI it uses", said)

    def run_touch(self, *options, code=0, environment=None):
        """With a program that leaves a file behind, which it must not; returns stderr."""
        if not served():
            self.skipTest("no MPI was there when Laconic was built")
        _, said = self.run_laconic("run", "--mpi", served()[0], *options, "--", "touch", "ran", code=code, environment=environment)
        self.assertNotIn("ran", self.files())
        return said

    def test_policies_with_mistakes(self):
        self.write("bad.toml", b"[[rule]]\nbound = \"fast\"\n")
        for policy, code, why in (("bad.toml", 4, "bad.toml:2:"), ("absent.toml", 3, "absent.toml"), (self.folder, 3, self.folder)):
            self.assertIn(why, self.run_laconic("policy", "check", policy, code=code)[1])
            self.assertIn(why, self.run_touch("--policy", policy, code=code))
            self.assertIn(why, self.run_touch(code=code, environment={"LACONIC_POLICY": policy}))
        self.write("good.toml", b"[[rule]]\nbound = \"1e-3\"\n")
        self.run_laconic("policy", "check", "good.toml")
        self.run_touch("--policy", "good.toml", "--dry-run")

    def test_reports_that_cannot_be_written(self):
        os.mkdir(self.path("folder"))
        for report in ("absent/report.json", "folder", "/proc/report.json"):
            self.assertIn(report, self.run_touch("--report", report, code=5))
        self.assertIn("absent", self.run_touch("--quiet", code=5, environment={"LACONIC_REPORT": "absent/report.json"}))
        self.run_touch("--report", "folder/report.json", "--dry-run")
        self.run_touch("--report", "/dev/null", "--dry-run")
        self.assertEqual(os.listdir(self.path("folder")), [])

    def test_variables_that_mean_nothing(self):
        said = self.run_touch("--dry-run", environment={"LACONIC_BUOND": "1e-3"})
        self.assertIn("LACONIC_BUOND is set, but Laconic has no such variable", said)
        self.assertNotIn("no such variable", self.run_touch("--dry-run", environment={"LACONIC_BOUND": "1e-3"}))

    def test_logs_that_cannot_be_written(self):
        os.mkfifo(self.path("pipe"))
        for log in ("absent/log", "pipe"):
            self.assertIn(log, self.run_touch(code=3, environment={"LACONIC_LOG": "debug,file:" + log}))

    def planned(self, *words, environment=None):
        """The command that would be run under Open MPI, and the library."""
        if "openmpi" not in served():
            self.skipTest("Open MPI was not there when Laconic was built")
        plan = self.json("run", "--bound", "1e-3", "--mpi", "openmpi", "--dry-run", "--", *words, environment=environment)
        return plan["command"], plan["library"]

    def test_what_the_command_itself_preloads_stays(self):
        for words, is_exported in ((["env", "LD_PRELOAD=a:b"], False), (["mpirun", "-x", "LD_PRELOAD=a:b", "-n", "2"], False),
                                   (["mpirun", "-n", "1", "./other", ":", "-n", "2", "env", "LD_PRELOAD=a:b"], True)):
            command, library = self.planned(*words, "./app")
            self.assertIn(f"LD_PRELOAD={library}:a:b", command)
            self.assertEqual("LD_PRELOAD" in command, is_exported)
        command, library = self.planned("mpiexec.hydra", "-genv", "LD_PRELOAD", "a", "-env", "LD_PRELOAD", "b", "./app")
        self.assertEqual([w for w in command if w.startswith(library)], [library + ":a", library + ":b"])
        self.assertIn("LD_PRELOAD", self.planned("mpirun", "./app")[0])

    def test_open_mpi_gets_one_list_of_what_it_exports(self):
        command, _ = self.planned("mpirun", "--mca", "mca_base_env_list", "FOO=1", "-n", "2", "./app")
        self.assertNotIn("-x", command)
        words = command[command.index("mca_base_env_list") + 1].split(";")
        self.assertEqual(words[0], "FOO=1")
        self.assertTrue({"LD_PRELOAD", "LACONIC_BOUND"} <= set(words), words)
        command, _ = self.planned("mpirun", "-n", "2", "./app", environment={"OMPI_MCA_mca_base_env_list": "FOO=1"})
        self.assertNotIn("-x", command)

    def test_the_programs_mpi_is_found_for_the_library(self):
        names = {"openmpi": "libmpi.so.40", "mpich": "libmpi.so.12", "abi": "libmpi_abi.so.1"}
        os.makedirs(self.path("bin"))
        os.makedirs(self.path("lib"))
        for program in ("bin/app", "bin/mpirun"):
            os.chmod(self.write(program, b"#!/bin/sh\necho Open MPI\n"), 0o755)
        os.symlink("bin/app", self.path("elsewhere"))
        folder = os.path.realpath(self.path("lib"))
        for mpi in served():
            def plan(*words):
                return self.json("run", "--bound", "1e-3", "--mpi", mpi, "--dry-run", "--", *words)
            self.assertEqual(plan("bin/app")["library_path"], "")
            self.write("lib/" + names[mpi], b"")
            for words in (["bin/app"], ["./elsewhere"], ["env", "bin/app"], ["bin/mpirun", "-n", "2", "touch"]):
                self.assertEqual(os.path.realpath(plan(*words)["library_path"]), folder, words)
            given = plan("env", "LD_LIBRARY_PATH=a:b", "bin/app")
            self.assertIn(f"LD_LIBRARY_PATH=a:b:{given['library_path']}", given["command"])
        if "openmpi" in served():
            command, _ = self.planned("bin/mpirun", "-n", "2", "touch")
            self.assertEqual(command[command.index("LD_LIBRARY_PATH") - 1], "-x")
            command, _ = self.planned("bin/mpirun", "-x", "LD_LIBRARY_PATH", "-n", "2", "touch")
            self.assertEqual(command.count("LD_LIBRARY_PATH"), 1)

    def test_another_mpis_launcher_gets_no_options_of_open_mpis(self):
        os.chmod(self.write("mpiexec", b"#!/bin/sh\necho HYDRA build details:\n"), 0o755)
        self.assertNotIn("-x", self.planned("./mpiexec", "-n", "2", "./app")[0])
        if "openmpi" in served():
            _, said = self.run_laconic("run", "--bound", "1e-3", "--mpi", "openmpi", "--dry-run", "--", "./mpiexec", "-n", "2", "./app")
            self.assertIn("'./mpiexec' is MPICH's launcher", said)

    def test_a_launcher_without_names_is_refused(self):
        for name in ("mpiexec.gforker", "mpiexec"):
            if name == "mpiexec":
                os.symlink("mpiexec.gforker", self.path(name))
            else:
                os.chmod(self.write(name, b"#!/bin/sh\ntouch ran\n"), 0o755)
            for options in ((), ("--mpi", "mpich")):
                said = self.run_laconic("run", "--bound", "1e-3", *options, "--", "./" + name, "-n", "2", "./app", code=2)[1]
                self.assertIn("hydra", said)
        self.assertNotIn("ran", self.files())

    def printed(self, name, *options, environment=None):
        """What the program finds in its environment under this name."""
        if not served():
            self.skipTest("no MPI was there when Laconic was built")
        if cli_support.sanitized():
            self.skipTest("printenv cannot load a library with a sanitizer")
        return self.run_laconic("run", "--mpi", served()[0], *options, "--", "printenv", name, environment=environment)[0].rstrip("\n")

    def test_files_are_the_same_in_another_folder(self):
        policy = self.write("good.toml", b"")
        for options, environment in ((("--policy", "good.toml"), {}), ((), {"LACONIC_POLICY": "good.toml"})):
            found = self.printed("LACONIC_POLICY", *options, environment=environment)
            self.assertTrue(os.path.isabs(found) and os.path.samefile(found, policy), found)
        for options, environment in ((("--report", "report.json"), {}), ((), {"LACONIC_REPORT": "report.json"})):
            found = self.printed("LACONIC_REPORT", *options, environment=environment)
            self.assertTrue(os.path.isabs(found) and found.endswith("/report.json"), found)

    def test_what_report_is_written(self):
        self.assertEqual(self.printed("LACONIC_REPORT"), "summary")
        self.assertEqual(self.printed("LACONIC_REPORT", environment={"LACONIC_REPORT": "summary"}), "summary")
        self.assertTrue(self.printed("LACONIC_REPORT", "--report", "summary").endswith("/summary"))
        self.assertTrue(self.printed("LACONIC_REPORT", "--report", "mine", environment={"LACONIC_REPORT": "other"}).endswith("/mine"))

    def test_folders_that_cannot_be_preloaded_from(self):
        if not served():
            self.skipTest("no MPI was there when Laconic was built")
        for folder in ("a b", "a:b"):
            library = os.path.join(folder, "lib", served()[0])
            os.makedirs(self.path(library))
            os.makedirs(self.path(os.path.join(folder, "bin")))
            self.write(os.path.join(library, "liblaconic-mpi.so"), b"")
            command = self.path(os.path.join(folder, "bin", "laconic"))
            shutil.copy(cli_support.LACONIC, command)
            done = subprocess.run([command, "run", "--mpi", served()[0], "--", "touch", "ran"], cwd=self.folder, capture_output=True,
                                  text=True, timeout=60, check=False)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("LD_PRELOAD ends names at blanks and colons", done.stderr)

    def test_libraries_that_cannot_be_loaded(self):
        if not served():
            self.skipTest("no MPI was there when Laconic was built")
        os.makedirs(self.path("lib/" + served()[0]))
        os.makedirs(self.path("bin"))
        library = self.write(f"lib/{served()[0]}/liblaconic-mpi.so", b"")
        command = shutil.copy(cli_support.LACONIC, self.path("bin/laconic"))
        done = subprocess.run([command, "run", "--mpi", served()[0], "--", "touch", "ran"], cwd=self.folder, capture_output=True, text=True,
                              timeout=60, check=False)
        self.assertEqual((done.returncode, self.files()), (2, ["bin", "lib"]), done.stderr)
        self.assertRegex(done.stderr, f"laconic: '.*{library}' cannot be loaded before a program: .*file too short")
        done = subprocess.run([command, "doctor"], capture_output=True, text=True, timeout=60, check=False)
        self.assertRegex(done.stdout, f"{library} cannot be loaded: .*file too short")

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_reports_that_may_not_be_written(self):
        os.chmod(self.write("report.json", b""), 0o444)
        self.assertIn("Permission denied", self.run_touch("--report", "report.json", code=5))

    def test_policies_that_are_no_files(self):
        os.mkfifo(self.path("pipe"))
        for refused in (self.run_laconic("policy", "check", "pipe", code=3)[1], self.run_touch("--policy", "pipe", code=3)):
            self.assertIn("is a pipe", refused)
        for word in ("/dev/stdin", "<(echo)"):
            done = subprocess.run(["bash", "-c", f'echo | "{cli_support.LACONIC}" policy check {word}'], capture_output=True, text=True,
                                  timeout=60, check=False)
            self.assertIn("0 rules, no mistakes", done.stdout, done.stderr)
        done = subprocess.run(["bash", "-c", f'echo | "{cli_support.LACONIC}" run --mpi {served()[0]} --policy /dev/stdin -- touch ran'],
                              cwd=self.folder, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, self.files()), (3, ["pipe"]), done.stderr)


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(__file__))
    cli_support.main()
