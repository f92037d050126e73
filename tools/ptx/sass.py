"""What ptxas makes of counted PTX (counted.py): its instructions by functional unit, from nvdisasm's text."""

import collections
import os
import re
import subprocess

# Which part of a multiprocessor an instruction takes, roughly. By NVIDIA's table of throughputs, sm_90 has 128 lanes a
# clock for all that is issued, 64 for alu, 128 for fma (64 for products of integers), 16 for slow.
UNITS = ("alu", "fma", "slow", "memory", "spill", "join", "control", "uniform", "double")
UNIT_OF = {
    **dict.fromkeys(("FFMA", "FMUL", "FADD", "IMAD", "IDP", "IMUL"), "fma"),
    **dict.fromkeys(("POPC", "FLO", "BREV", "I2F", "F2I", "MUFU", "F2F", "I2I", "FRND"), "slow"),
    **dict.fromkeys(("LDS", "STS", "LDG", "STG", "LD", "ST", "LDGSTS", "ATOM", "ATOMG", "RED", "ATOMS", "LDC", "QSPC"), "memory"),
    **dict.fromkeys(("LDL", "STL"), "spill"),
    **dict.fromkeys(("SHFL", "REDUX", "VOTE"), "join"),
    **dict.fromkeys(("BRA", "BSSY", "BSYNC", "WARPSYNC", "BAR", "CALL", "RET", "NOP", "EXIT", "BREAK", "BMOV", "BRX", "JMP", "MEMBAR", "DEPBAR", "LDGDEPBAR", "ERRBAR", "CCTL", "YIELD", "NANOSLEEP"), "control"),
    **dict.fromkeys(("DADD", "DMUL", "DFMA", "DSETP"), "double"),
}  # fmt: skip


def unit_of(name):
    base = name.split(".")[0]
    return UNIT_OF.get(base) or ("uniform" if base.startswith(("U", "R2UR", "S2UR")) else "alu")


def disassemble(nvcc, nvdisasm, ptx, scratch):
    """The machine code's blocks: function and, for each instruction, its name and where it comes from."""
    cubin = os.path.join(scratch, "kernels.cubin")
    ptxas = os.path.join(os.path.dirname(os.path.realpath(nvcc)), "ptxas")
    subprocess.run([ptxas, "-O3", "-lineinfo", "-arch=sm_90", ptx, "-o", cubin], check=True)
    text = subprocess.run([nvdisasm, "-gi", "-c", cubin], check=True, stdout=subprocess.PIPE, text=True).stdout
    return parse(text)


INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]+\*/\s+(@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)")
PLACE = re.compile(r'//## File "([^"]+)", line (\d+)( inlined at)?')
LABEL = re.compile(r"^(\.L_\w+|\.text\..*|\$.*):$")
ENDS = ("BRA", "RET", "EXIT", "CALL", "BRX")


def parse(text):
    """Blocks: of each instruction its name and where it comes from. Without what a warp does only if its lanes come apart
    to a place where they are to be together, which is what BRA.DIV goes to and is behind the function's code."""
    apart = set(re.findall(r"BRA\.DIV.*?`\((\.L_\w+)\)", text))
    blocks, block, lines, complete, skipped = [], [], [], True, False

    def end():
        nonlocal block
        if block:
            blocks.append(block)
        block = []

    for line in text.split("\n"):
        if place := PLACE.search(line):
            lines = [] if complete else lines
            lines.append((place[1], int(place[2])))
            complete = place[3] is None
        elif label := LABEL.match(line.strip()):
            end()
            skipped = skipped or label[1] in apart
        elif found := INSTRUCTION.match(line):
            condition, name = found.groups()
            if not skipped:
                block.append((name, tuple(lines)))
            if name.split(".")[0] in ENDS:
                end()
                skipped = skipped and (name != "BRA" or condition is not None)
    end()
    return blocks


def frequencies(run, translator, sources):
    """How often, on average, a statement from a place was issued."""
    issued, there = collections.Counter(), collections.Counter()
    for statement, (function, lines) in translator.places.items():
        place = sources.chain(lines)
        issued[place] += run.issues.get(statement, 0)
        there[place] += 1
    return {place: issued[place] / n for place, n in there.items()}


def count(blocks, run, translator, sources):
    """Of each instruction: unit, place in the source, issues."""
    often = frequencies(run, translator, sources)
    counted = []
    n = 0
    for block in blocks:
        known = [often[lines] for _, lines in block if lines in often]
        n = sum(known) / len(known) if known else n
        counted += [(unit_of(name), lines, n) for name, lines in block if n > 0]
    return counted


def by_unit(counted):
    total = dict.fromkeys(UNITS, 0)
    for unit, _, n in counted:
        total[unit] += n
    return total
