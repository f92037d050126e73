"""Programs that run with other rights than their caller's: laconic run refuses those, and only those, for which the loader
ignores LD_PRELOAD.

    rights_test.py LACONIC PROGRAM

Exit status 77: nobody but root can make such programs, or another user cannot get at them here.
"""

import ctypes
import os
import shutil
import stat
import struct
import subprocess
import sys
import tempfile

NOBODY = 65534
PR_SET_NO_NEW_PRIVS = 38
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


def call(command, user, bare=False, **environment):
    """bare: the kernel gives no program other rights from here on, as in some containers."""
    def prepare():
        if bare:
            ctypes.CDLL(None).prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)

    return subprocess.run(command, capture_output=True, text=True, check=False, user=user, group=user, extra_groups=[],
                          env={**os.environ, **environment}, preexec_fn=prepare)


def can_be_called(path, user):
    try:
        return call([path, "--version"], user).returncode == 0
    except PermissionError:  # of a folder above it, or this root cannot become another user
        return False


def is_preloaded(path, user, bare):
    """The loader complains of what is not there, unless it does not look."""
    return "cannot be preloaded" in call([path], user, bare, LD_PRELOAD="/nowhere/library.so").stderr


def is_right(laconic, ordinary, program, kind, caller, bare):
    """Whether laconic run refuses `program` just where the loader does not look, as `ordinary` tells."""
    run = call([laconic, "run", "--dry-run", "--", program], caller, bare)
    refused = run.returncode == 2 and "runs with other rights than its caller's" in run.stderr
    right = run.returncode == (2 if refused else 0) and refused != is_preloaded(ordinary, caller, bare)
    print(f"{kind}{' where there are none to be had' if bare else ''}: {'refused' if refused else 'not refused'}"
          + ("" if right else f", against the loader: {run.returncode} {run.stderr}"))
    return right


def main():
    laconic, program = sys.argv[1:]
    if os.geteuid() != 0:
        print("left out: only root can make such programs")
        return 77
    wrong = 0
    with tempfile.TemporaryDirectory(dir=".") as folder:
        os.chmod(folder, 0o755)
        if not can_be_called(laconic, NOBODY):
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
            wrong += sum(not is_right(laconic, ordinary, mpi, kind, caller, bare) for bare in (False, True))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
