"""Translates PTX so that it counts (counting.h), and says what the counts are of: classes of instructions, functions of
the source, and, where there is a disassembly of what ptxas made of the same PTX, its instructions.
"""

import bisect
import collections
import re

from translate import Instruction, Translator

CLASSES = ("integer", "shift", "bits", "float", "join", "shared", "global", "local", "branch", "barrier", "move")
BY_NAME = {
    **dict.fromkeys(("shl", "shr", "shf", "bfe", "bfi", "prmt"), "shift"),
    **dict.fromkeys(("popc", "clz", "brev"), "bits"),
    **dict.fromkeys(("shfl", "vote", "redux", "activemask", "match"), "join"),
    **dict.fromkeys(("bra", "ret", "call"), "branch"),
    **dict.fromkeys(("bar", "membar", "fence"), "barrier"),
    **dict.fromkeys(("mov", "cvta"), "move"),
    **dict.fromkeys(("fma", "abs", "copysign"), "float"),
}  # fmt: skip


def class_of(i):
    """Conversions that only rename a register's width count as moves, as parameters do: ptxas seldom makes code of them."""
    if i.name in ("ld", "st", "atom", "cp"):
        where = next((s for s in ("shared", "global", "local", "param") if any(p.startswith(s) for p in i.parts)), "generic")
        return {"param": "move", "generic": "global"}.get(where, where)
    if i.name == "cvt":
        return "bits" if any(p[0] == "f" or p == "bf16" for p in i.parts[-2:]) else "move"
    if i.name in BY_NAME:
        return BY_NAME[i.name]
    return "float" if i.kind in ("f32", "f64") else "integer"


class Counted(Translator):
    """One that also says where each basic block begins and what is accessed."""

    def __init__(self):
        super().__init__()
        self.blocks = []  # the statements of each
        self.classes = {}  # of a statement
        self.places = {}  # of a statement: function of the PTX and the source's lines, innermost first
        self.fresh = True
        self.lines, self.known = (), {}

    def joined(self):
        self.fresh = True

    def locate(self, line):
        numbers = [int(n) for n in re.findall(r"(?<=\s)\d+", re.sub(r"function_name [^,]+", "", line))]
        within = self.known.get(tuple(numbers[3:6]), ()) if len(numbers) >= 6 else ()
        self.lines = ((numbers[0], numbers[1]), *within)
        self.known[tuple(numbers[:3])] = self.lines

    def counted(self, text, name, of_class):
        """Notes statement number self.statements and gives what is to stand before it."""
        start = ""
        if self.fresh:
            self.blocks.append([])
            start = f"counting::enter(lane,{len(self.blocks) - 1});"
        self.blocks[-1].append(self.statements)
        self.classes[self.statements] = of_class
        self.places[self.statements] = (self.current, self.lines)
        self.fresh = name in ("bra", "ret", "call")
        return start + text

    def statement(self, text):
        translated = super().statement(text)
        bare = re.sub(r"^@!?%p\d+\s+", "", text)
        i = Instruction(bare, self.statements)
        return self.counted(translated, i.name, class_of(i))

    def call(self, text):
        self.statements += 1
        return self.counted(super().call(text), "call", "branch")

    def function(self, name, parameters, body):
        self.current, self.lines, self.known = name, (), {}
        return super().function(name, parameters, body)

    def memory(self, i, where, elements):
        c_type, size, vector, start = super().memory(i, where, elements)
        if "param" not in i.parts:
            start += f"counting::access(lane,{i.number},A,{size * len(vector)});"
        return c_type, size, vector, start

    def translate_cp(self, i):
        to, source = (self.address(o) for o in i.operands[:2])
        return super().translate_cp(i) + "".join(f"counting::access(lane,{i.number},{a},{i.operands[2]});" for a in (to, source))


class Sources:
    """Which function of the source a line belongs to: the last one before it that begins at the left, or in a class."""

    START = re.compile(r"^(?:  )?(?:\[\[nodiscard\]\] )?(?:LACONIC_GPU_(?:FN|RARE)|__global__|constexpr|template|inline).*?\b(\w+)\(")

    def __init__(self, ptx):
        self.files = {int(n): path for n, path in re.findall(r'^\s*\.file\s+(\d+)\s+"([^"]+)"', ptx, re.M)}
        self.starts = {}

    def function(self, path, line):
        if path not in self.starts:
            with open(path, encoding="utf-8", errors="replace") as f:
                named = [(n, m[1]) for n, text in enumerate(f, 1) if (m := self.START.match(text))]
            self.starts[path] = named
        at = bisect.bisect_right([n for n, _ in self.starts[path]], line) - 1
        return self.starts[path][at][1] if at >= 0 else "?"

    def chain(self, lines):
        return tuple((self.files[f], line) for f, line in lines)


class Counts:
    """What a run printed, of one operation on one array: its elements, and issues by statement."""

    def __init__(self, title, elements):
        self.title, self.elements = title, elements
        self.issues, self.lanes, self.accesses = collections.Counter(), collections.Counter(), {}


def read_counts(lines, translator):
    found = []
    for line in lines:
        kind, *rest = line.split(" ")
        if kind == "run":
            found.append(Counts(" ".join(rest[:-1]), int(rest[-1])))
        elif kind == "block":
            block, issues, lanes = (int(v) for v in rest)
            for statement in translator.blocks[block]:
                found[-1].issues[statement] = issues
                found[-1].lanes[statement] = lanes
        elif kind == "access":
            statement, *values = (int(v) for v in rest)
            found[-1].accesses[statement] = values  # requests, bytes, sectors, passes
    return found


def with_means(runs):
    """Behind the runs of each operation their mean for each element, in which every array counts alike."""
    result = []
    for operation in dict.fromkeys(r.title.split(" ")[0] for r in runs):
        own = [r for r in runs if r.title.split(" ")[0] == operation]
        mean = Counts(operation + " (mean)", 1)
        for r in own:
            for to, of in ((mean.issues, r.issues), (mean.lanes, r.lanes)):
                for s, n in of.items():
                    to[s] += n / r.elements / len(own)
            for s, values in r.accesses.items():
                before = mean.accesses.get(s, [0] * 4)
                mean.accesses[s] = [b + v / r.elements / len(own) for b, v in zip(before, values)]
        result += [*own, mean]
    return result


def shares(issued, sources):
    """Of pairs of a place in the source and its issues: by function, with all that it calls, and by line, without."""
    by_function, by_line = collections.Counter(), collections.Counter()
    for chain, n in issued:
        for name in {sources.function(path, line) for path, line in chain}:
            by_function[name] += n
        if chain:
            path, line = chain[0]
            by_line[f"{path.split('/')[-1]}:{line}"] += n
    return by_function, by_line


def issued_ptx(run, translator, sources):
    return [(sources.chain(translator.places[s][1]), n) for s, n in run.issues.items()]
