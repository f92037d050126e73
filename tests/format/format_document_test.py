#!/usr/bin/env python3
"""Holds docs/format.md to the library: by the document's rules, what write_frames wrote must decode to the same
elements, and its operands must encode to the same frames."""
import math
import pathlib
import struct
import subprocess
import sys
import tempfile

import decode_from_the_document as decoder
import encode_from_the_document as encoder

# Every feature of the format that the frames must have shown by the end.
WANTED = (
    {("kind", k) for k in range(4)}
    | {("predictor", p) for p in range(3)}
    | {("index planes", p) for p in range(6)}
    | {("extra", x) for x in range(5)}
    | {"long base", "fill blocks"}
)


def is_nan(dtype, bits):
    return dtype in decoder.FLOATS and math.isnan(decoder.value_of(dtype, bits))


def differences(dtype, e, mine, theirs, divided):
    """Positions that differ. The payload of a NaN that was divided is not defined."""
    if len(mine) != len(theirs):
        return [f"{len(mine)} bytes, not {len(theirs)}"]
    at = lambda data, i: int.from_bytes(data[i : i + e], "little")
    return [
        f"element {i // e}: {at(mine, i):#x}, not {at(theirs, i):#x}"
        for i in range(0, len(mine), e)
        if mine[i : i + e] != theirs[i : i + e] and not (divided and is_nan(dtype, at(mine, i)) and is_nan(dtype, at(theirs, i)))
    ]


def check_decoding(path, seen):
    frame = path.read_bytes()
    refused = path.with_suffix(".refused").exists()
    try:
        decoded = {1: decoder.decode(frame, 1, seen)}
    except decoder.Corrupt as why:
        if not refused:
            yield f"{path.name}: not accepted ({why}), but the library does"
        return
    if refused:
        yield f"{path.name}: accepted, but the library does not"
        return
    header = decoder.Header(frame)
    if path.with_suffix(".by3.out").exists():
        decoded[3] = decoder.decode(frame, 3)
    for divisor, mine in decoded.items():
        expected = path.with_suffix(f".by{divisor}.out")
        for d in differences(header.dtype, header.e, mine, expected.read_bytes(), divisor > 1)[:3]:
            yield f"{expected.name}: {d}"


def check_encoding(path):
    operand = path.with_suffix(".in")
    if not operand.exists():
        return
    frame = path.read_bytes()
    h = decoder.Header(frame)
    mine = encoder.encode(operand.read_bytes(), h.dtype, h.step, h.bound, h.qbits)
    if mine != frame:
        at = next((i for i, (a, b) in enumerate(zip(mine[48:], frame[48:]), 48) if a != b), min(len(mine), len(frame)))
        yield f"{operand.name}: encodes to {len(mine)} bytes, not {len(frame)}; they differ from byte {at} on"


def check_grid(path, bound, largest):
    h = decoder.Header(path.read_bytes())
    mine = encoder.make_grid(h.dtype, bound, largest)
    if mine != (h.step, h.qbits):
        yield f"{path.name}: step and qbits {mine}, not {(h.step, h.qbits)}"


def check_damage(path):
    """Damage under the checksum is noticed."""
    frame = path.read_bytes()
    for damaged in (frame[:-4], frame + bytes(4), frame[:47], *(frame[:i] + bytes([frame[i] ^ 4]) + frame[i + 1 :] for i in range(len(frame)))):
        try:
            decoder.decode(damaged)
        except decoder.Corrupt:
            continue
        yield f"{path.name}: damage was not noticed"


def check_example(document, path):
    """The bytes in the document's example are the frame."""
    frame = path.read_bytes()
    text = document.read_text().split("## 12.")[1]
    rows = [line.split("|") for line in text.splitlines() if line.startswith("| ") and "`" in line]
    written = b"".join(bytes.fromhex(row[2].strip().strip("`")) for row in rows)
    offsets = [int(row[1]) for row in rows]
    if written != frame:
        yield f"the example in {document.name} is not what the library writes"
    if offsets != [sum(len(bytes.fromhex(r[2].strip().strip("`"))) for r in rows[:i]) for i in range(len(rows))]:
        yield f"offsets of the example in {document.name} are wrong"
    if struct.unpack("<5f", decoder.decode(frame)) != (1.0, 1.25, 1.5, 1.75, 1.25):
        yield "the example does not decode to its values"


def main(write_frames):
    document = pathlib.Path(__file__).resolve().parents[2] / "docs" / "format.md"
    problems = []
    seen = set()
    with tempfile.TemporaryDirectory() as name:
        subprocess.run([write_frames, name], check=True)
        folder = pathlib.Path(name)
        frames = sorted(folder.glob("*.frame"))
        for path in frames:
            problems += check_decoding(path, seen)
            problems += check_encoding(path)
        for dtype in decoder.FLOATS:
            problems += check_grid(folder / f"made_grid_{dtype}.frame", 0.1, 130)
            problems += check_grid(folder / f"made_open_grid_{dtype}.frame", 0.1, math.inf)
        problems += check_damage(folder / "example.frame")
        problems += check_example(document, folder / "example.frame")
    problems += [f"no frame had {x}" for x in WANTED - seen]
    for p in problems[:40]:
        print(p)
    print(f"{len(frames)} frames, {len(problems)} problems")
    return 1 if problems or len(frames) < 100 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
