"""Running `laconic stack` on the emulated cluster or on localhost: what tools/demo and tools/bench share."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CLUSTER = os.path.join(ROOT, "tools", "cluster")
# Names of its own, so that a cluster that somebody else has up is left alone; the environment may give others.
CLUSTER_NAMES = {name: os.environ.get(name, ours) for name, ours in (
    ("NC_PREFIX", "lac"), ("NC_BR", "ncbrlac"), ("NC_NET", "10.79.0"), ("NC_STATE", "/run/laconic_cluster"))}
# Ranks that wait should let the others work: there are more of them than cores.
# The hosts of the next cluster have the same names and other links: nothing measured of them may be kept.
POLITE = {"LACONIC_CACHE": "off", "OMPI_MCA_mpi_yield_when_idle": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1",
          "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


class Failed(Exception):
    """A run that did not work; the text says which and why."""


def say(text):
    print(text, file=sys.stderr, flush=True)


class InUse(Failed):
    """Another process has the emulated cluster."""


ENDING = (signal.SIGTERM, signal.SIGHUP)


def end_in_order():
    """SIGTERM and the SIGHUP of a lost terminal then end what was started, as ctrl-C does."""
    for number in ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup
            signal.signal(number, end)


def end(number, _):
    for again in ENDING:  # both the shell and the kernel send SIGHUP: the second is not to end what cleans up
        signal.signal(again, lambda *_: None)
    sys.exit(128 + number)


def build_folder(path):
    """As an absolute path; raises Failed where nothing was built."""
    build = os.path.abspath(path)
    if not os.path.exists(os.path.join(build, "bin", "laconic")):
        raise Failed(f"no build in {build} (no bin/laconic): make build makes build/release")
    return build


class Flavour:
    """One MPI library that laconic was built for."""

    def __init__(self, name, launcher):
        self.name = name
        self.launcher = launcher

    @property
    def short(self):
        return {"openmpi": "ompi", "mpich": "mpich"}[self.name]

    @property
    def build(self):
        """Whose libraries serve it."""
        return "openmpi" if self.name == "openmpi5" else self.name

    def hangs_over_hosts(self):
        """Debian's MPICH 4.0 does, in MPI_Finalize, in half of the runs."""
        if self.name != "mpich":
            return False
        text = subprocess.run([self.launcher, "--version"], capture_output=True, text=True, check=False).stdout
        return re.search(r"Version:\s+4\.0", text) is not None


def flavours(build, names=("openmpi", "mpich")):
    """The MPI libraries of this build, from what CMake found. "openmpi5": Open MPI 5, which programs that were built without
    Laconic may run with, too."""
    found = []
    with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as cache:
        text = cache.read()
    for name in names:
        launcher = re.search(rf"^LACONIC_MPIEXEC_{name}:[A-Z]+=(.+)$", text, re.MULTILINE)
        flavour = Flavour(name, launcher.group(1) if launcher else "")
        if os.path.exists(flavour.launcher) and os.path.exists(os.path.join(build, "bin", f"laconic-mpi-{flavour.build}")):
            found.append(flavour)
    return found


def finish(command, environment=None, timeout=120, quiet=True):
    """Runs to the end, whatever that is: (exit status, stdout, stderr). The whole process group is ended when it takes too
    long, which raises Failed, or we are stopped."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE if quiet else None, text=True,
                               env={**os.environ, **POLITE, **(environment or {})}, start_new_session=True)
    try:
        out, err = process.communicate(timeout=timeout)
    except BaseException as stopped:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=5)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        if isinstance(stopped, subprocess.TimeoutExpired):
            raise Failed(f"no end after {timeout} s: {' '.join(command)}") from stopped
        raise
    return process.returncode, out, err or ""


def run(command, environment=None, timeout=120, quiet=True):
    """The same, and returns stdout."""
    code, out, err = finish(command, environment, timeout, quiet)
    if code not in (0, 7):
        raise Failed(f"{' '.join(command)}\n  ended with {code}: {err.strip()[-2000:]}")
    return out


class Localhost:
    """All ranks on this machine, messages through shared memory: no network to relieve."""

    rate = None
    wire = None

    def command(self, flavour, ranks, program):
        options = ["--oversubscribe", "--bind-to", "none"] if flavour.build == "openmpi" else ["-launcher", "fork"]
        # MPICH's own way through shared memory spins and never gives its core away: a minute a call where ranks share one.
        polite = {"MPIR_CVAR_ALLREDUCE_POSIX_INTRA_ALGORITHM": "mpir"} if flavour.name == "mpich" else {}
        return [flavour.launcher, *options, "-n", str(ranks), *program], polite

    def usable(self, flavour):
        return True


class Cluster:
    """Emulated hosts, one rank each, joined by links of a given rate."""

    wire = "eth0"

    def __init__(self, rate):
        self.rate = rate

    def command(self, flavour, ranks, program):
        return [CLUSTER, "run", flavour.short, str(ranks), *program], {**CLUSTER_NAMES, "MPIEXEC": flavour.launcher}

    def usable(self, flavour):
        if flavour.hangs_over_hosts():
            say(f"leaving out {flavour.launcher}: MPICH 4.0 hangs over several hosts (tools/setup brings MPICH 5)")
            return False
        return True


def why_no_cluster():
    """None where the emulated cluster can be brought up."""
    if os.geteuid() != 0:
        return "it needs root"
    if not shutil.which("ip", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin"):
        return "it needs iproute2 (apt-get install iproute2)"
    if not os.access(CLUSTER, os.X_OK):
        return f"{CLUSTER} is missing"
    # Root of a container is often not allowed what it takes, and a kernel may lack the token bucket.
    try:
        with cluster(1, "1gbit"):
            run([CLUSTER, "exec", CLUSTER_NAMES["NC_PREFIX"] + "0", "true"], CLUSTER_NAMES)
    except InUse:
        raise
    except Failed as failure:
        return f"this root may not have what it takes: {str(failure).splitlines()[-1].strip()}"
    return None


@contextlib.contextmanager
def cluster(hosts, rate):
    """Brings the emulated cluster up, yields it, takes it down again: also after errors and ctrl-C, and after SIGTERM and
    SIGHUP once end_in_order() was called. What an earlier run that was killed has left behind is cleared away; InUse while
    another run is at work."""
    names = {**CLUSTER_NAMES, "NC_OWNER": str(os.getpid())}
    try:
        code, _, said = finish([CLUSTER, "up", str(hosts), rate], names)
        if code != 0:
            raise (InUse if code == 3 else Failed)(said.strip())
        yield Cluster(rate)
    finally:
        run([CLUSTER, "down"], names)  # ours only


@contextlib.contextmanager
def localhost():
    yield Localhost()


def stack(build, place, flavour, ranks, *options, timeout=120):
    """One `laconic stack`; returns its JSON."""
    program = [os.path.join(build, "bin", "laconic"), "--json", "stack", *options]
    if place.wire:
        program += ["--wire", place.wire, "--link", place.rate]
    command, environment = place.command(flavour, ranks, program)
    out = run(command, environment, timeout)
    try:
        return json.loads(out[out.index("{"):])
    except ValueError as error:
        raise Failed(f"{' '.join(command)}\n  printed no JSON: {out[-500:]}") from error


def table(head, rows):
    """Plain text: the first column to the left, the others to the right."""
    widths = [max(len(str(r[i])) for r in [head, *rows]) for i in range(len(head))]
    lines = []
    for r in [head, None, *rows]:
        if r is None:
            lines.append("-" * (sum(widths) + 2 * (len(widths) - 1)))
        else:
            cells = [str(r[0]).ljust(widths[0]), *(str(c).rjust(w) for c, w in zip(r[1:], widths[1:]))]
            lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
