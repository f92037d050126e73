"""Reads Laconic frames: plain Python, written from docs/format.md alone, to prove that the document suffices."""
import math
import struct
from fractions import Fraction

DTYPES = {1: ("f32", 4), 2: ("f64", 8), 3: ("f16", 2), 4: ("bf16", 2), 5: ("i32", 4), 6: ("i64", 8), 7: ("u32", 4), 8: ("u64", 8)}
FLOATS = ("f32", "f64", "f16", "bf16")
CODED, CONSTANT, RAW, FILL = range(4)
NONE, FIRST, SECOND = range(3)
WIDE, LISTED, TERMS, LOSSLESS_BLOCK, RAW_BLOCK = range(5)


class Corrupt(Exception):
    """Not a frame of version 1."""


def require(condition, why):
    if not condition:
        raise Corrupt(why)


def pad4(n):
    return (n + 3) // 4 * 4


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def crc_entry(n):
    for _ in range(8):
        n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
    return n


CRC_TABLE = [crc_entry(n) for n in range(256)]


# ------------------------------------------------------------------------------------------------ floating point


def bits_of_f32(x):
    """Rounds an f64 to f32."""
    try:
        return struct.unpack("<I", struct.pack("<f", x))[0]
    except OverflowError:
        return 0x7F800000 | (x < 0) << 31


def f32_of_bits(bits):
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def f32(x):
    return f32_of_bits(bits_of_f32(x))


def bits_of_f64(x):
    return struct.unpack("<Q", struct.pack("<d", x))[0]


def f64_of_bits(bits):
    return struct.unpack("<d", struct.pack("<Q", bits))[0]


def bits_of_f16(x):
    """x is an f32."""
    if math.isnan(x):
        b = bits_of_f32(x)
        return b >> 16 & 0x8000 | 0x7E00 | b >> 13 & 0x3FF
    try:
        return struct.unpack("<H", struct.pack("<e", x))[0]
    except OverflowError:
        return 0x7C00 | (x < 0) << 15


def bits_of_bf16(x):
    """x is an f32."""
    b = bits_of_f32(x)
    if math.isnan(x):
        return b >> 16 | 0x40
    return b + 0x7FFF + (b >> 16 & 1) >> 16


def value_of(dtype, bits):
    """The element with these bits, exactly, as an f64."""
    if dtype == "f64":
        return f64_of_bits(bits)
    if dtype == "f32":
        return f32_of_bits(bits)
    if dtype == "bf16":
        return f32_of_bits(bits << 16)
    return struct.unpack("<e", struct.pack("<H", bits))[0]


def bits_of(dtype, x):
    """x, an f64, rounded to f32 and then to the type; to f64 it is."""
    if dtype == "f64":
        return bits_of_f64(x)
    if dtype == "f32":
        return bits_of_f32(x)
    return bits_of_f16(f32(x)) if dtype == "f16" else bits_of_bf16(f32(x))


def bits_of_quotient(dtype, x):
    """As bits_of, but the f32 in the middle is made odd where it was rounded."""
    if dtype in ("f32", "f64"):
        return bits_of(dtype, x)
    b = bits_of_f32(x)
    middle = f32_of_bits(b)
    if math.isfinite(middle) and middle != x and b & 1 == 0:
        b += 1 if abs(middle) < abs(x) else -1
        middle = f32_of_bits(b)
    return bits_of(dtype, middle)


def round_exact(dtype, exact):
    """A Fraction rounded once to the type: its bits."""
    digits, least, largest = {"f64": (53, -1074, 1023), "f32": (24, -149, 127), "f16": (11, -24, 15), "bf16": (8, -133, 127)}[dtype]
    if exact == 0:
        return 0
    magnitude = abs(exact)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if magnitude < Fraction(2) ** exponent:
        exponent -= 1
    place = max(exponent - digits + 1, least)
    units = round(magnitude / Fraction(2) ** place)
    if units == 0:
        value = 0.0
    elif (units.bit_length() - 1) + place > largest:
        value = math.inf
    else:
        value = math.ldexp(units, place)
    return bits_of(dtype, math.copysign(value, exact))


# ------------------------------------------------------------------------------------------------ frame


class Header:
    def __init__(self, frame):
        require(len(frame) >= 48, "shorter than a header")
        require(frame[:4] == b"LCN1", "magic")
        version, dtype, codec, self.qbits, self.operands, self.crc, self.count, self.size, self.step, self.bound = struct.unpack_from("<BBBBIIQQdd", frame, 4)
        require(version == 1 and codec == 1, "version or codec")
        require(dtype in DTYPES, "dtype")
        self.dtype, self.e = DTYPES[dtype]
        self.floating = self.dtype in FLOATS
        self.lossless = self.step == 0 and self.bound == 0 and self.qbits == 0
        self.sum = self.operands > 1 and not self.lossless
        if not self.lossless:
            self.check_grid()
        require(self.operands >= 1, "operands")
        if self.operands > 1:
            largest = self.operands << self.qbits
            require(not self.floating if self.lossless else largest <= 2**53 if self.dtype == "f64" else largest < 2**31, "operands")
        self.chunks = (self.count + 2047) // 2048
        require(self.count <= 2**60 and self.size >= 48 and self.chunks <= (self.size - 48) // 6, "count or size")
        self.width = 64 if self.e == 8 and (self.lossless or self.operands << self.qbits >= 2**31) else 32

    def check_grid(self):
        require(self.floating, "step of an integer type")
        if self.dtype == "f64":
            require(2.0**-901 <= self.bound < math.inf, "bound")
            require(2.0**-901 <= self.step <= 2.0**900 and 1 <= self.qbits <= 50, "step or qbits")
        else:
            require(2.0**-111 <= self.bound < math.inf, "bound")
            require(2.0**-111 <= self.step <= 2.0**120 and f32(self.step) == self.step and 1 <= self.qbits <= 22, "step or qbits")


def split_frame(frame):
    """The header and the bytes of every chunk, with size and checksum checked."""
    header = Header(frame)
    require(header.size == len(frame), "size")
    require(crc32c(frame[:12] + frame[16:]) == header.crc, "checksum")
    at = 48 + pad4(2 * header.chunks)
    require(at <= len(frame), "table")
    chunks = []
    for units in struct.unpack_from(f"<{header.chunks}H", frame, 48):
        require(units > 0, "empty chunk")
        chunks.append(frame[at : at + 4 * units])
        at += 4 * units
    require(at == len(frame), "chunk sizes")
    return header, chunks


# ------------------------------------------------------------------------------------------------ chunks


class Section:
    """Takes pieces off the front of some bytes, never past the end."""

    def __init__(self, data):
        self.data = data
        self.at = 0

    def take(self, n):
        require(n <= len(self.data) - self.at, "a section does not fit")
        self.at += n
        return self.data[self.at - n : self.at]

    def integer(self, size, signed=False):
        return int.from_bytes(self.take(size), "little", signed=signed)

    def finish(self):
        require(self.at == len(self.data), "bytes left over")


class Block:
    def __init__(self, w, d, extra=WIDE, exact=0, fill=False):
        self.w, self.d, self.extra, self.exact, self.fill = w, d, extra, exact, fill

    def marked(self):
        return self.fill or self.extra in (LISTED, TERMS)


class Chunk:
    """q[i] of the positions on the grid; exact[i] of the others: element bits, or in a sum a list of terms."""

    def __init__(self, data, header, n, seen):
        self.h, self.n, self.seen = header, n, seen
        self.q = [0] * n
        self.exact = {}
        self.s = Section(data)
        self.word = self.s.integer(4)
        kind = self.word & 3
        seen.add(("kind", kind))
        (self.read_coded, self.read_constant, self.read_raw, self.read_fill_chunk)[kind]()
        self.s.finish()

    def wrap(self, v):
        half = 1 << self.h.width - 1
        return (v + half & 2 * half - 1) - half

    def unzigzag(self, z):
        return z >> 1 ^ -(z & 1)

    def from_ordered(self, v):
        bits = 8 * self.h.e
        if v < 0:
            v ^= (1 << bits - 1) - 1
        return v & (1 << bits) - 1

    def to_ordered(self, element):
        bits = 8 * self.h.e
        v = element - (1 << bits) if element >> bits - 1 else element
        return v ^ (1 << bits - 1) - 1 if v < 0 else v

    def read_base(self):
        base = self.word >> 13
        if base >> 18:
            base -= 1 << 19
        if self.word >> 4 & 1:
            base = self.s.integer(self.h.width // 8, signed=True)
            self.seen.add("long base")
        return base

    def read_fill_value(self):
        if self.h.sum:
            return list(struct.unpack("<d", self.s.take(8)))
        fill = self.s.integer(8 if self.h.e == 8 else 4)
        require(self.h.e != 2 or fill < 65536, "fill value")
        return fill

    def read_constant(self):
        self.q = [self.read_base()] * self.n

    def read_raw(self):
        require(not self.h.sum, "raw chunk of a sum")
        elements = self.split_elements(self.s.take(pad4(self.n * self.h.e)), self.n)
        if not self.h.lossless:
            self.exact = dict(enumerate(elements))
        elif self.h.floating:
            self.q = [self.to_ordered(x) for x in elements]
        else:
            self.q = elements

    def read_fill_chunk(self):
        require(not self.h.lossless, "fill chunk of a lossless frame")
        fill = self.read_fill_value()
        self.exact = {i: fill for i in range(self.n)}

    def split_elements(self, data, n):
        e = self.h.e
        return [int.from_bytes(data[i * e : i * e + e], "little") for i in range(n)]

    def read_codes(self):
        p = self.word >> 6 & 7
        k = (self.word >> 9 & 15) + 1
        require(p <= 5 and (k == 1 if p == 5 else k <= 1 << p), "codes")
        self.seen.add(("index planes", p))
        if p == 5:
            return list(self.s.take(32))
        planes = [self.s.integer(4) for _ in range(p)]
        dictionary = self.s.take(pad4(k))
        indices = [sum((planes[j] >> b & 1) << j for j in range(p)) for b in range(32)]
        require(max(indices) < k, "index")
        return [dictionary[i] for i in indices]

    def read_block(self, code, fill):
        if code & 31 != 31:
            w, s = code & 31, code >> 5
            require(s <= w or s == 7, "code")
            return Block(w, 0 if s == 7 else w - s, fill=fill)
        require(code == 31, "code")
        entry = self.s.integer(4)
        block = Block(entry & 127, entry >> 7 & 127, entry >> 14 & 7, 4 * (entry >> 17), fill)
        require(block.w <= self.h.width and block.d <= block.w and block.extra <= 4, "entry")
        self.check_extra(block)
        self.seen.add(("extra", block.extra))
        return block

    def check_extra(self, block):
        if block.extra == WIDE:
            require(block.exact == 0, "exact part of a wide block")
            return
        require(not block.fill and not self.h.lossless, "extra")
        require(self.h.sum == (block.extra == TERMS), "extra of another sort of frame")
        if block.extra in (LOSSLESS_BLOCK, RAW_BLOCK):
            require(self.predictor != SECOND, "lossless block with second differences")
        if block.extra == LOSSLESS_BLOCK:
            require(self.h.width >= 8 * self.h.e and block.exact == pad4(self.h.e), "lossless block")
        if block.extra == RAW_BLOCK:
            require(block.w == 0 and block.exact == 64 * self.h.e, "raw block")

    def read_coded(self):
        self.predictor = self.word >> 2 & 3
        require(self.predictor <= 2, "predictor")
        self.seen.add(("predictor", self.predictor))
        self.base = self.read_base()
        fill_blocks = 0
        if self.word >> 5 & 1:
            require(not self.h.lossless, "fill in a lossless frame")
            fill_blocks = self.s.integer(4)
            self.fill = self.read_fill_value()
            self.seen.add("fill blocks")
        codes = self.read_codes()
        blocks = [self.read_block(codes[b], bool(fill_blocks >> b & 1)) for b in range(32)]
        dense = Section(self.s.take(sum(8 * b.d for b in blocks)))
        masks = self.s.take(sum(b.w - b.d + b.marked() for b in blocks))
        bytes_of_masks = self.s.take(sum(m.bit_count() for m in masks))
        self.s.take(-(len(masks) + len(bytes_of_masks)) % 4)
        self.dense, self.masks, self.bytes = dense, Section(masks), Section(bytes_of_masks)
        self.previous, self.slope = self.base, 0
        for b, block in enumerate(blocks):
            self.decode_block(64 * b, block)

    def sparse_plane(self):
        mask = self.masks.integer(1)
        return sum(self.bytes.integer(1) << 8 * g for g in range(8) if mask >> g & 1)

    def decode_block(self, at, block):
        z = [0] * 64
        for r in range(block.w):
            plane = self.dense.integer(8) if r < block.d else self.sparse_plane()
            for i in range(64):
                z[i] |= (plane >> i & 1) << r
        if block.extra in (LOSSLESS_BLOCK, RAW_BLOCK):
            return self.decode_exact_block(at, block, z)
        marks = []
        if block.marked():
            transitions = self.sparse_plane()
            m = 0
            for i in range(64):
                m ^= transitions >> i & 1
                if m:
                    marks.append(at + i)
        for i in range(64):
            self.put_residual(at + i, self.unzigzag(z[i]))
        require(not marks or marks[-1] < self.n, "mark behind the last element")
        return self.decode_marks(marks, block)

    def put_residual(self, i, r):
        require(i > 0 or self.predictor == NONE or r == 0, "first residual")
        if self.predictor == NONE:
            self.previous = self.wrap(self.base + r)
        else:
            self.slope = self.wrap(self.slope + r) if self.predictor == SECOND else r
            self.previous = self.wrap(self.previous + self.slope)
        if i < self.n:
            self.q[i] = self.previous

    def decode_marks(self, marks, block):
        if block.fill:
            self.exact.update((i, self.fill) for i in marks)
        elif block.extra == LISTED:
            require(block.exact == pad4(len(marks) * self.h.e), "listed elements")
            self.exact.update(zip(marks, self.split_elements(self.s.take(block.exact), len(marks))))
        elif block.extra == TERMS:
            part = Section(self.s.take(block.exact))
            counts = part.take(pad4(len(marks)))[: len(marks)]
            for i, count in zip(marks, counts):
                self.exact[i] = list(struct.unpack(f"<{count}d", part.take(8 * count)))
            part.finish()

    def decode_exact_block(self, at, block, z):
        data = self.s.take(block.exact)
        if block.extra == RAW_BLOCK:
            elements = self.split_elements(data, 64)
        else:
            v = self.to_ordered(int.from_bytes(data[: self.h.e], "little"))
            elements = []
            for i in range(64):
                v = self.wrap(v + self.unzigzag(z[i]))
                elements.append(self.from_ordered(v))
        self.exact.update((at + i, x) for i, x in enumerate(elements) if at + i < self.n)


# ------------------------------------------------------------------------------------------------ values


def sum_of_terms(terms):
    """The exact sum as a Fraction, or a float that is not finite."""
    if not all(map(math.isfinite, terms)):
        total = sum(terms)
        return math.nan if math.isnan(total) else total
    total = Fraction(0)
    for t in terms:
        total += Fraction(t)
        if abs(total) >= Fraction(2) ** 1024 - Fraction(2) ** 970:
            return math.inf if total > 0 else -math.inf
    return total


def exact_element(header, stored, divisor):
    if header.sum:
        total = sum_of_terms(stored)
        if divisor == 1 and isinstance(total, Fraction):
            return round_exact(header.dtype, total)
        x = f64_of_bits(round_exact("f64", total)) if isinstance(total, Fraction) else total
        return bits_of_quotient(header.dtype, x / divisor)
    if divisor == 1:
        return stored
    return bits_of_quotient(header.dtype, value_of(header.dtype, stored) / divisor)


def grid_element(header, q, divisor):
    if header.dtype != "f64" and divisor == 1 and header.operands << header.qbits <= 2**24:
        return bits_of(header.dtype, f32(f32(q) * f32(header.step)))
    return bits_of(header.dtype, float(q) * (header.step / divisor))


def decode(frame, divisor=1, seen=None):
    """The elements' bytes. `seen` collects which features of the format occurred."""
    header, chunks = split_frame(frame)
    out = bytearray()
    for k, data in enumerate(chunks):
        n = min(2048, header.count - 2048 * k)
        chunk = Chunk(data, header, n, set() if seen is None else seen)
        for i in range(n):
            if header.lossless:
                bits = chunk.from_ordered(chunk.q[i]) if header.floating else chunk.q[i]
            elif i in chunk.exact:
                bits = exact_element(header, chunk.exact[i], divisor)
            else:
                bits = grid_element(header, chunk.q[i], divisor)
            out += (bits & (1 << 8 * header.e) - 1).to_bytes(header.e, "little")
    return bytes(out)
