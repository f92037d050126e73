"""Writes Laconic frames of one operand: plain Python, written from docs/format.md alone (section 8)."""
import math
import struct
from fractions import Fraction

from decode_from_the_document import DTYPES, bits_of, crc32c, f32, pad4, value_of

CODED, CONSTANT, RAW, FILL = range(4)
NONE, FIRST, SECOND = range(3)
WIDE, LISTED, TERMS, LOSSLESS_BLOCK, RAW_BLOCK = range(5)
MEAN_BLOCKS = (4, 12, 20, 28)
COST_BLOCKS = (4, 20)


def next_down_f32(x):
    """The next f32 towards 0 of a positive one."""
    return struct.unpack("<f", (int.from_bytes(struct.pack("<f", x), "little") - 1).to_bytes(4, "little"))[0]


def f32_down(x):
    f = f32(x)
    return next_down_f32(f) if f > x else f


class Encoder:
    """The grid, and what follows from it."""

    def __init__(self, dtype, step, bound, qbits):
        self.dtype, self.step, self.bound, self.qbits = dtype, step, bound, qbits
        self.e = next(size for name, size in DTYPES.values() if name == dtype)
        self.lossless = step == 0
        self.floating = dtype in ("f32", "f64", "f16", "bf16")
        self.width = 64 if self.e == 8 and (self.lossless or 1 << qbits >= 2**31) else 32
        if not self.lossless:
            narrow = dtype != "f64"
            self.inverse = f32(1 / step) if narrow else 1 / step
            self.limit = f32_down(bound) if narrow else bound

    # -------------------------------------------------------------------------------------------- integers

    def wrap(self, v):
        half = 1 << self.width - 1
        return (v + half & 2 * half - 1) - half

    def zigzag(self, v):
        v = self.wrap(v)
        return 2 * v if v >= 0 else -2 * v - 1

    def ordered(self, bits):
        n = 8 * self.e
        v = bits - (1 << n) if bits >> n - 1 else bits
        return v ^ (1 << n - 1) - 1 if v < 0 else v

    def quantise(self, bits):
        """q, or None for an exception."""
        x = value_of(self.dtype, bits)
        if not math.isfinite(x):
            return None
        product = Fraction(x) * Fraction(self.inverse)
        # x * inverse + c lies between m and 2 m, where floats are integers, or is out of the window; c is even. Below m
        # the next float is m - 1/2, and the middle of the two goes to m.
        lowest = -(1 << self.qbits)
        r = round(product)
        if product < lowest - Fraction(1, 4) or r >= 1 << self.qbits:
            return None
        if self.dtype == "f64":
            v = r * self.step
            difference = x - v
        else:
            v = value_of(self.dtype, bits_of(self.dtype, f32(r * self.step)))
            difference = f32(x - v)
        return r if abs(difference) <= self.limit else None

    def integers(self, elements):
        """2048 q with exceptions held, and the positions of the exceptions."""
        if self.lossless:
            q = [self.ordered(x) if self.floating else self.wrap(x) for x in elements]
        else:
            q = [self.quantise(x) for x in elements]
        exceptions = [i for i, v in enumerate(q) if v is None]
        q += [None] * (2048 - len(q))
        held = next((v for v in q if v is not None), 0)
        for i in range(2048):
            held = q[i] = held if q[i] is None else q[i]
        return q, exceptions

    # -------------------------------------------------------------------------------------------- chunks

    def residual(self, q, i, predictor, base):
        if predictor == NONE:
            return self.zigzag(q[i] - base)
        before = q[i - 1] if i > 0 else base
        slope = q[i] - before
        if predictor == SECOND and i > 0:
            slope -= before - (q[i - 2] if i > 1 else base)
        return self.zigzag(slope)

    def choose(self, q, allow_second):
        mean = self.wrap(sum(q[i] for b in MEAN_BLOCKS for i in range(64 * b, 64 * b + 64)) + 128) >> 8
        cost = [0, 0, 0]
        for predictor, base in ((NONE, mean), (FIRST, q[0]), (SECOND, q[0])):
            for b in COST_BLOCKS:
                for g in range(64 * b, 64 * b + 64, 8):
                    together = 0
                    for i in range(g, g + 8):
                        together |= self.residual(q, i, predictor, base)
                    cost[predictor] += together.bit_length()
        best = NONE if cost[NONE] < cost[FIRST] else FIRST
        if allow_second and cost[SECOND] < cost[best]:
            best = SECOND
        return best, mean if best == NONE else q[0]

    def word(self, kind, predictor=0, base=0, fill=False, index_planes=0, dictionary=0):
        long_base = not -(2**18) <= base < 2**18
        word = kind | predictor << 2 | long_base << 4 | fill << 5 | index_planes << 6 | dictionary << 9
        if not long_base:
            word |= (base & 2**19 - 1) << 13
        return word.to_bytes(4, "little") + (base.to_bytes(self.width // 8, "little", signed=True) if long_base else b"")

    def fill_bytes(self, fill):
        return fill.to_bytes(8 if self.e == 8 else 4, "little")

    def chunk(self, elements):
        q, exceptions = self.integers(elements)
        if not exceptions and len(set(q)) == 1:
            return self.word(CONSTANT, base=q[0])
        raw = self.word(RAW) + b"".join(x.to_bytes(self.e, "little") for x in elements)
        raw += bytes(-len(raw) % 4)
        bits = [elements[i] for i in exceptions]
        fill = next((b for a, b in zip(bits, bits[1:]) if a == b), bits[0] if bits else None)
        blocks = [[i for i in exceptions if i // 64 == b] for b in range(32)]
        kinds = [self.kind_of_block(elements, marks, fill) for marks in blocks]
        if len(exceptions) == len(elements) and all(k in (WIDE, "fill") for k in kinds):
            return self.word(FILL) + self.fill_bytes(fill)
        for b in range(32):
            if kinds[b] == LOSSLESS_BLOCK:
                q[64 * b : 64 * b + 64] = [q[64 * b - 1] if b > 0 else q[0]] * 64
        coded = self.coded(elements, q, blocks, kinds, fill)
        return raw if len(coded) >= len(raw) else coded

    def kind_of_block(self, elements, marks, fill):
        if not marks:
            return WIDE
        if all(elements[i] == fill for i in marks):
            return "fill"
        return LOSSLESS_BLOCK if len(marks) > 16 else LISTED

    def coded(self, elements, q, blocks, kinds, fill):
        predictor, base = self.choose(q, LOSSLESS_BLOCK not in kinds)
        out = Sections()
        for b in range(32):
            if kinds[b] == LOSSLESS_BLOCK:
                self.put_exact_block(out, elements, b)
                continue
            planes = Planes(self.residual(q, i, predictor, base) for i in range(64 * b, 64 * b + 64))
            exact = b""
            if kinds[b] == LISTED:
                exact = b"".join(elements[i].to_bytes(self.e, "little") for i in blocks[b])
                exact += bytes(-len(exact) % 4)
            out.put_block(planes, LISTED if kinds[b] == LISTED else WIDE, exact)
            if blocks[b]:
                m = sum(1 << i % 64 for i in blocks[b])
                out.put_sparse((m ^ m << 1) & 2**64 - 1)
        fill_blocks = sum(1 << b for b in range(32) if kinds[b] == "fill")
        head = self.fill_head(fill_blocks, fill)
        dictionary = sorted(set(out.codes))
        k = len(dictionary)
        if k > 16:
            return self.word(CODED, predictor, base, fill_blocks != 0, 5) + head + bytes(out.codes) + out.join()
        p = (k - 1).bit_length()
        for j in range(p):
            head += sum((dictionary.index(out.codes[b]) >> j & 1) << b for b in range(32)).to_bytes(4, "little")
        head += bytes(dictionary) + bytes(-k % 4)
        return self.word(CODED, predictor, base, fill_blocks != 0, p, k - 1) + head + out.join()

    def fill_head(self, fill_blocks, fill):
        return fill_blocks.to_bytes(4, "little") + self.fill_bytes(fill) if fill_blocks else b""

    def put_exact_block(self, out, elements, b):
        x = elements[64 * b : 64 * b + 64]
        x += [elements[-1]] * (64 - len(x))
        v = [self.ordered(bits) for bits in x]
        planes = Planes([0] + [self.zigzag(v[i] - v[i - 1]) for i in range(1, 64)])
        size = 8 * planes.d + sum(1 + planes.non_zero(r) for r in range(planes.d, planes.w)) + pad4(self.e)
        if self.width < 8 * self.e or size >= 64 * self.e:
            return out.put_block(Planes([0] * 64), RAW_BLOCK, b"".join(bits.to_bytes(self.e, "little") for bits in x))
        return out.put_block(planes, LOSSLESS_BLOCK, x[0].to_bytes(self.e, "little") + bytes(-self.e % 4))

    # -------------------------------------------------------------------------------------------- frame

    def frame(self, data):
        elements = [int.from_bytes(data[i : i + self.e], "little") for i in range(0, len(data), self.e)]
        chunks = [self.chunk(elements[i : i + 2048]) for i in range(0, len(elements), 2048)]
        table = b"".join((len(c) // 4).to_bytes(2, "little") for c in chunks)
        body = table + bytes(-len(table) % 4) + b"".join(chunks)
        number = next(n for n, (name, _) in DTYPES.items() if name == self.dtype)
        head = b"LCN1" + struct.pack("<BBBBI", 1, number, 1, self.qbits, 1)
        tail = struct.pack("<QQdd", len(elements), 48 + len(body), self.step, self.bound) + body
        return head + crc32c(head + tail).to_bytes(4, "little") + tail


class Planes:
    """The planes of 64 words, and how they are split."""

    def __init__(self, words):
        words = list(words)
        self.w = max(words).bit_length()
        self.planes = [sum((z >> r & 1) << i for i, z in enumerate(words)) for r in range(self.w)]
        self.d = 0
        while self.d < self.w and self.non_zero(self.d) >= 7:
            self.d += 1
        if self.w - self.d > 6:
            self.d = 0 if 2 * self.d < self.w else self.w - 6

    def non_zero(self, r):
        return sum(byte != 0 for byte in self.planes[r].to_bytes(8, "little"))


class Sections:
    """What is written block by block."""

    def __init__(self):
        self.codes = []
        self.entries = self.dense = self.masks = self.bytes = self.exact = b""

    def put_block(self, planes, extra, exact):
        w, d = planes.w, planes.d
        if extra == WIDE and w <= 30:
            self.codes.append(w + 32 * (7 if d == 0 and w > 6 else w - d))
        else:
            self.codes.append(31)
            self.entries += (w | d << 7 | extra << 14 | len(exact) // 4 << 17).to_bytes(4, "little")
        self.exact += exact
        for plane in planes.planes[:d]:
            self.dense += plane.to_bytes(8, "little")
        for plane in planes.planes[d:]:
            self.put_sparse(plane)

    def put_sparse(self, plane):
        data = plane.to_bytes(8, "little")
        self.masks += bytes([sum((byte != 0) << g for g, byte in enumerate(data))])
        self.bytes += bytes(byte for byte in data if byte != 0)

    def join(self):
        sparse = self.masks + self.bytes
        return self.entries + self.dense + sparse + bytes(-len(sparse) % 4) + self.exact


def make_grid(dtype, bound, largest):
    """(step, qbits) for this largest magnitude, or infinity where it is unknown. (0, 0): lossless."""
    digits, least_exponent = {"f64": (53, -1074), "f32": (24, -149), "f16": (11, -24), "bf16": (8, -133)}[dtype]
    narrow = dtype != "f64"
    arithmetic = f32 if narrow else float
    known = math.isfinite(largest)
    half = 0.0
    if known:
        half = math.ldexp(0.5, max(math.frexp(largest + bound)[1] - digits, least_exponent))
    target = 2 * max(bound - half, bound / 2) * (1 - (2.0**-12 if known else 1 / 64))
    target = min(target, 2.0**120 if narrow else 2.0**900)
    if target < (2.0**-110 if narrow else 2.0**-900):
        return 0.0, 0
    candidate = f32_down(target) if narrow else target
    best, least = None, math.inf
    for _ in range(64):
        error = abs(arithmetic(Fraction(arithmetic(1 / candidate)) * Fraction(candidate) - 1))
        if error < least:
            best, least = candidate, error
        candidate = next_down_f32(candidate) if narrow else math.nextafter(candidate, 0.0)
    qbits = 22 if narrow else 50 if known else 30
    while known and qbits > 1 and largest / best + 1 < 2.0 ** (qbits - 1):
        qbits -= 1
    return best, qbits


def encode(data, dtype, step, bound, qbits):
    """The frame of the elements whose bytes are `data`."""
    return Encoder(dtype, step, bound, qbits).frame(data)
