"""Programs that run with other rights than their caller's: laconic run refuses those, and only those, for which the loader
ignores LD_PRELOAD.

    rights_test.py LACONIC PROGRAM

Exit status 77: nobody but root can make such programs.
"""

import os
import shutil
import stat
import struct
import subprocess
import sys
import tempfile

NOBODY = 65534
# A file's capabilities as the kernel keeps them (revision 2, effective): those that it permits, here CAP_NET_BIND_SERVICE.
CAPABILITIES = struct.pack("<5I", 0x02000001, 1 << 10, 0, 0, 0)

# What it is, its owner and group, its mode, whether it has capabilities, and who calls it.
KINDS = [
    ("setuid, another's", NOBODY, 0, stat.S_ISUID | 0o755, False, 0),
    ("setuid, its caller's", 0, 0, stat.S_ISUID | 0o755, False, 0),
    ("setgid, another's", 0, NOBODY, stat.S_ISGID | 0o755, False, 0),
    ("setgid, another's, which its group may not execute", 0, NOBODY, stat.S_ISGID | 0o745, False, 0),
    ("setgid, its caller's", 0, 0, stat.S_ISGID | 0o755, False, 0),
    ("with capabilities", 0, 0, 0o755, True, NOBODY),
    ("with capabilities, of root", 0, 0, 0o755, True, 0),
    ("ordinary", 0, 0, 0o755, False, NOBODY),
]


def make(source, path, owner, group, mode, capable):
    shutil.copy(source, path)
    os.chown(path, owner, group)
    os.chmod(path, mode)
    if capable:
        os.setxattr(path, "security.capability", CAPABILITIES)


def call(command, user, **environment):
    return subprocess.run(command, capture_output=True, text=True, check=False, user=user, group=user, extra_groups=[],
                          env={**os.environ, **environment})


def is_preloaded(path, user):
    """The loader complains of what is not there, unless it does not look."""
    return "cannot be preloaded" in call([path], user, LD_PRELOAD="/nowhere/library.so").stderr


def main():
    laconic, program = sys.argv[1:]
    if os.geteuid() != 0:
        print("left out: only root can make such programs")
        return 77
    wrong = 0
    with tempfile.TemporaryDirectory(dir=".") as folder:
        os.chmod(folder, 0o755)
        if call([laconic, "--version"], NOBODY).returncode != 0:
            print(f"left out: another user cannot execute {laconic}")
            return 77
        for number, (kind, owner, group, mode, capable, caller) in enumerate(KINDS):
            ordinary, mpi = (os.path.abspath(os.path.join(folder, f"{name}{number}")) for name in ("true", "program"))
            try:
                make(shutil.which("true"), ordinary, owner, group, mode, capable)
                make(program, mpi, owner, group, mode, capable)
            except OSError as error:
                print(f"{kind}: left out: this root, or this file system, cannot make such a program: {error}")
                continue
            run = call([laconic, "run", "--dry-run", "--", mpi], caller)
            refused = run.returncode == 2 and "runs with other rights than its caller's" in run.stderr
            if run.returncode == (2 if refused else 0) and refused != is_preloaded(ordinary, caller):
                print(f"{kind}: {'refused' if refused else 'run'}")
                continue
            print(f"{kind}: {'refused' if refused else 'not refused'}, against the loader: {run.returncode} {run.stderr}")
            wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
