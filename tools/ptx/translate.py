"""Translates PTX, as nvcc writes it for src/gpu/*.cu, to C++ that runs on the host over machine.h.

Every kernel and every function that it calls becomes a C++ function of a lane,
`void name(Lane& lane, u8* result, u8* argument0...)`; a kernel keeps its name in the source (encode_kernel) instead of the
mangled one, with its instance's behind it where there are several (scan_kernel_F32). Registers become arrays, poisoned at first; an instruction becomes a statement; what joins lanes (barriers,
shuffles, votes) becomes a call of machine.h with the number of the statement, so that the machine sees whether all lanes
came to the same one. It knows what the kernels use of PTX and raises Unknown at anything else.
"""

import re

C_TYPES = {
    "b8": "u8", "u8": "u8", "s8": "s8", "b16": "u16", "u16": "u16", "s16": "s16", "b32": "u32", "u32": "u32", "s32": "s32",
    "b64": "u64", "u64": "u64", "s64": "s64", "f32": "float", "f64": "double", "pred": "bool",
}  # fmt: skip
C_SIZES = {"u8": 1, "s8": 1, "u16": 2, "s16": 2, "u32": 4, "s32": 4, "float": 4, "u64": 8, "s64": 8, "double": 8}
COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "lo": "<", "ls": "<=", "hi": ">", "hs": ">="}
ARITHMETIC = {"add": "+", "sub": "-", "mul": "*", "div": "/", "rem": "%"}
SPECIAL_REGISTERS = {"%tid.x": "(u32)lane.tid", "%ctaid.x": "(u32)lane.cta", "%nctaid.x": "(u32)lane.ncta"}
# Registers that are not numbered: those that nvcc declares for itself in inline code. Prefix (its kind) and name in C++.
NAMED_REGISTERS = {
    "%rdT": ("rd", "tmp64"), "%lhs": ("rd", "lhs_"), "%rhs": ("rd", "rhs_"), "%amt2": ("r", "amt2"), "%SP": ("rd", "SP"), "%SPL": ("rd", "SPL"),
}  # fmt: skip

# Operations that are one expression of their operands: the expression, the types of the operands and of the result
# (None: the instruction's). {a}, {b}, {c}, {d}: operands; {type}: the instruction's in C++; {bits}: how many it has.
EXPRESSIONS = {
    "and": ("({a})&({b})", (None, None), None),
    "or": ("({a})|({b})", (None, None), None),
    "xor": ("({a})^({b})", (None, None), None),
    "selp": ("{c}?{a}:{b}", (None, None, "pred"), None),
    "fma": ("nvidia_nan(std::fma({a},{b},{c}))", (None,) * 3, None),
    "abs": ("std::fabs({a})", (None,), None),
    "copysign": ("std::copysign({b},{a})", (None, None), None),
    "min": ("({a})<({b})?({a}):({b})", (None, None), None),
    "max": ("({a})>({b})?({a}):({b})", (None, None), None),
    "shl": ("({b})>={bits}?0:({type})(({a})<<({b}))", (None, "u32"), None),
    "prmt": ("prmt({a},{b},{c})", (None,) * 3, "b32"),
    "lop3": ("lop3({a},{b},{c},{d})", (None,) * 4, None),
    "bfi": ("bfi<{type}>({a},{b},{c},{d})", (None, None, "u32", "u32"), None),
    "bfe": ("bfe<{type}>({a},{b},{c})", (None, "u32", "u32"), None),
    "clz": ("{a}?__builtin_clz{long}({a}):{bits}", (None,), "b32"),
    "popc": ("__builtin_popcount{long}({a})", (None,), "b32"),
    "brev": ("brev<{type}>({a})", (None,), None),
}


class Unknown(Exception):
    """PTX that the kernels did not use when this was written."""


def identifier(name):
    return re.sub(r"[^A-Za-z0-9_]", "_", name)


def label(name):
    return identifier(name.replace("$", ""))


def kernel_name(mangled):
    """A kernel's name in the source, and what tells its instances apart: F32, or a letter that stands for an integer. None
    twice for what is no kernel."""
    rest, name = mangled.removeprefix("_ZN"), ""
    while length := re.match(r"\d+", rest):  # of each name that leads to it
        rest = rest[length.end() :]
        name, rest = rest[: int(length[0])], rest[int(length[0]) :]
    if not name.endswith("_kernel"):
        return None, None
    instance = re.search(r"\d(B?F\d\d)E|I([ijlmt])[LE]", rest.split("EEv")[0] + "E")
    return name, instance and (instance[1] or instance[2])


def function_names(mangled):
    """Of all functions of a file: kernels have their names in the source, with their instance's behind where there are
    several; everything else keeps its own."""
    kernels = [kernel_name(m)[0] for m in mangled]
    names = {}
    for m in mangled:
        name, instance = kernel_name(m)
        names[m] = identifier(m) if name is None else f"{name}_{instance}" if kernels.count(name) > 1 else name
    return names


def register(operand):
    """The kind of a register (rd, rs, r, p, fd, f) and its name in C++; None twice if the operand is none."""
    numbered = re.match(r"^%(rd|rs|r|p|fd|f)(\d+)$", operand)
    if numbered:
        return numbered[1], f"{numbered[1]}[{numbered[2]}]"
    return NAMED_REGISTERS.get(operand, (None, None))


def split_operands(text):
    """At the commas that lie in no bracket."""
    operands, depth, operand = [], 0, ""
    for ch in text:
        depth += (ch in "{[(") - (ch in "}])")
        if ch == "," and depth == 0:
            operands.append(operand.strip())
            operand = ""
        else:
            operand += ch
    return operands + ([operand.strip()] if operand.strip() else [])


def vector(operand):
    """The elements of {a, b}."""
    return [v.strip() for v in operand.strip().strip("{}").split(",")]


def assign(destination, expression, kind):
    """A statement that stores a value of PTX type `kind`; bits stay as they are where the register is of another class."""
    of, name = register(destination.strip())
    if of is None:
        raise Unknown("destination " + destination)
    if of == "f" and kind != "f32":
        return f"{name}=f32_of_bits((u32)({expression}));"
    if of == "fd" and kind != "f64":
        return f"{name}=f64_of_bits((u64)({expression}));"
    if of in ("r", "rs", "rd") and kind in ("f32", "f64"):
        return f"{name}=bits_of_{kind}({expression});"
    return f"{name}={expression};"


class Instruction:
    """One without its predicate. name: its first word; parts: all words between dots; kind: the last of them, its type."""

    def __init__(self, text, number):
        self.text = text
        self.number = number
        self.operation, operands = re.match(r"^(\S+)\s*(.*)$", text, re.S).groups()
        self.parts = self.operation.split(".")
        self.name, self.kind = self.parts[0], self.parts[-1]
        self.operands = split_operands(operands)


class Translator:
    """Of one file of PTX."""

    def __init__(self):
        self.names = {}  # of functions, mangled -> C++
        self.shared = {}  # names of shared memory -> C++
        self.parameters = {}  # names of the function's parameters -> C++
        self.statements = 0

    # Operands

    def symbol(self, name):
        name = name.strip()
        return self.parameters.get(name) or self.shared.get(name) or identifier(name)

    def value(self, operand, kind):
        """An expression for an operand that is read as PTX type `kind`."""
        operand = operand.strip()
        if operand.startswith("!"):
            return "!" + self.value(operand[1:], kind)
        of, name = register(operand)
        if of is None:
            return self.constant(operand, kind)
        if of == "f" and kind != "f32":
            return f"({C_TYPES[kind]})bits_of_f32({name})"
        if of == "fd" and kind != "f64":
            return f"({C_TYPES[kind]})bits_of_f64({name})"
        if kind == "f32" and of != "f":
            return f"f32_of_bits((u32){name})"
        if kind == "f64" and of != "fd":
            return f"f64_of_bits((u64){name})"
        return f"({C_TYPES[kind]}){name}"

    def constant(self, operand, kind):
        if operand in SPECIAL_REGISTERS:
            return SPECIAL_REGISTERS[operand]
        if operand.startswith("0f"):
            return f"f32_of_bits(0x{operand[2:]}u)"
        if operand.startswith("0d"):
            return f"f64_of_bits(0x{operand[2:]}ull)"
        if operand.startswith("-9223372036854775808"):  # which C++ has no literal for
            return f"({C_TYPES[kind]})0x8000000000000000ull"
        if re.match(r"^-?\d+$", operand) or operand.startswith("0x"):
            return f"({C_TYPES[kind]})({operand}ll)"
        return f"(u64)({self.symbol(operand)})"

    def address(self, operand):
        """Of [register+offset] or [name+offset]; all memory is the host's."""
        base, offset = operand.strip()[1:-1].strip(), "0"
        if displaced := re.match(r"^(.+?)\+(-?\d+)$", base):
            base, offset = displaced.groups()
        of, name = register(base)
        start = f"(u64){name}" if of else f"(u64)({self.symbol(base)})"
        return f"({start}+({offset}ll))"

    # Instructions: each gives what stands between the braces of its statement

    def statement(self, text):
        self.statements += 1
        condition = ""
        if predicated := re.match(r"^@(!?)(%p\d+)\s+(.*)$", text, re.S):
            condition = f"if({predicated[1]}{register(predicated[2])[1]}) "
            text = predicated[3]
        i = Instruction(text, self.statements)
        if i.name == "bra":
            return f"{condition}goto {label(i.operands[0])};"
        if i.name == "ret":
            return condition + "return;"
        if i.name == "nanosleep":  # in loops that wait for another warp
            return condition + "let_others_run(lane);"
        # Lanes run one at a time and memory is the host's, so fences have nothing to do; nor has waiting for
        # asynchronous copies, which are made at once, or bringing memory nearer.
        if i.name in ("membar", "fence", "prefetch") or (i.name == "cp" and not {"cg", "ca"} & set(i.parts)):
            return ";"
        return condition + "{" + self.body(i) + "}"

    def body(self, i):
        if i.name in EXPRESSIONS:
            return self.expression(i)
        if i.name in ARITHMETIC:
            return self.arithmetic(i)
        translate = getattr(self, "translate_" + i.name, None)
        if translate is None:
            raise Unknown(i.text)
        return translate(i)

    def expression(self, i):
        template, kinds, result = EXPRESSIONS[i.name]
        values = {letter: self.value(i.operands[n + 1], of or i.kind) for n, (letter, of) in enumerate(zip("abcd", kinds))}
        more = {"type": C_TYPES[i.kind], "bits": i.kind[1:], "long": "ll" if i.kind == "b64" else ""}
        return assign(i.operands[0], template.format(**values, **more), result or i.kind)

    def arithmetic(self, i):
        a, b = self.value(i.operands[1], i.kind), self.value(i.operands[2], i.kind)
        sign, kind, c_type = ARITHMETIC[i.name], i.kind, C_TYPES[i.kind]
        if kind in ("f32", "f64"):
            return assign(i.operands[0], f"nvidia_nan(({c_type})(({a}){sign}({b})))", kind)
        if i.name == "mul" and "wide" in i.parts:
            wide = kind[0] + str(2 * int(kind[1:]))
            return assign(i.operands[0], f"({C_TYPES[wide]})({a})*({C_TYPES[wide]})({b})", wide)
        if i.name == "mul" and "hi" in i.parts:
            wide = "__int128" if kind[1:] == "64" else "s64"
            return assign(i.operands[0], f"({c_type})((({wide})({a})*({wide})({b}))>>{kind[1:]})", kind)
        if i.name in ("div", "rem"):
            return assign(i.operands[0], f"({a}){sign}({b})", kind)
        unsigned = C_TYPES["u" + kind[1:]]  # PTX wraps
        return assign(i.operands[0], f"({c_type})(({unsigned})({a}){sign}({unsigned})({b}))", kind)

    def translate_mad(self, i):
        a, b, c = (self.value(v, i.kind) for v in i.operands[1:4])
        unsigned = C_TYPES["u" + i.kind[1:]]
        return assign(i.operands[0], f"({C_TYPES[i.kind]})(({unsigned})({a})*({unsigned})({b})+({unsigned})({c}))", i.kind)

    def translate_neg(self, i):
        a = self.value(i.operands[1], i.kind)
        return assign(i.operands[0], f"-({a})" if i.kind[0] == "f" else f"({C_TYPES[i.kind]})(0-(u64)({a}))", i.kind)

    def translate_not(self, i):
        return assign(i.operands[0], f"{'!' if i.kind == 'pred' else '~'}({self.value(i.operands[1], i.kind)})", i.kind)

    def translate_shr(self, i):
        a, by, bits = self.value(i.operands[1], i.kind), self.value(i.operands[2], "u32"), int(i.kind[1:])
        if i.kind[0] == "s":
            return assign(i.operands[0], f"({a})>>(({by})>={bits}?{bits - 1}:({by}))", i.kind)
        return assign(i.operands[0], f"({by})>={bits}?0:({C_TYPES[i.kind]})(({a})>>({by}))", i.kind)

    def translate_dp4a(self, i):
        a, b, c = (self.value(v, "u32") for v in i.operands[1:4])
        return assign(i.operands[0], f"dp4a_{'s' if i.parts[1] == 's32' else 'u'}({a},{b},{c})", "b32")

    def translate_setp(self, i):
        how, a, b = i.parts[1], self.value(i.operands[1], i.kind), self.value(i.operands[2], i.kind)
        unordered = f"isnan({a})||isnan({b})"
        if how in COMPARISONS:
            result = f"({a}){COMPARISONS[how]}({b})"
        elif how == "num":
            result = f"!({unordered})"
        elif how == "nan":
            result = f"({unordered})"
        elif how[-1] == "u" and how[:-1] in COMPARISONS:
            result = f"({unordered}||(({a}){COMPARISONS[how[:-1]]}({b})))"
        else:
            raise Unknown(i.text)
        return assign(i.operands[0], result, "pred")

    def translate_cvt(self, i):
        to, source = i.parts[-2:]
        if {"rni", "rmi", "rpi"} & set(i.parts):  # to integers by another way than C++'s
            raise Unknown(i.text)
        if to in ("f16", "bf16"):
            return assign(i.operands[0], f"to_{to}({self.value(i.operands[1], 'f32')})", "b16")
        if source == "f16":
            return assign(i.operands[0], f"of_f16({self.value(i.operands[1], 'b16')})", "f32")
        a = self.value(i.operands[1], source)
        if to[0] in "us" and source in ("f32", "f64"):
            return assign(i.operands[0], f"saturated<{C_TYPES[to]}>({a})", to)
        if to in ("f32", "f64"):
            return assign(i.operands[0], f"nvidia_nan(({C_TYPES[to]})({a}))", to)
        return assign(i.operands[0], f"({C_TYPES[to]})({a})", to)

    def translate_cvta(self, i):
        return assign(i.operands[0], self.value(i.operands[1], "u64"), "u64")

    def translate_mov(self, i):
        """Also packs {a, b} into one register, and takes it apart."""
        to, source = i.operands
        whole = 64 if i.kind == "b64" else 32
        if to.startswith("{"):
            bits = whole // len(vector(to))
            parts = (assign(d, f"(u{bits})(v>>{n * bits})", f"b{bits}") for n, d in enumerate(vector(to)))
            return f"u64 v={self.value(source, i.kind)};" + "".join(parts)
        if source.startswith("{"):
            bits = whole // len(vector(source))
            parts = (f"((u64){self.value(v, f'b{bits}')}<<{n * bits})" for n, v in enumerate(vector(source)))
            return assign(to, "|".join(parts), i.kind)
        return assign(to, self.value(source, i.kind), i.kind)

    def memory(self, i, where, elements):
        """What loads and stores have in common: type and size of an element, the elements, the start of the statement."""
        count = next((int(part[1]) for part in i.parts if part in ("v2", "v4")), 1)
        c_type = C_TYPES[i.kind]
        size = C_SIZES[c_type]
        start = f"u64 A={self.address(where)};check_alignment(A,{size * count});"
        return c_type, size, vector(elements) if count > 1 else [elements], start

    def translate_ld(self, i):
        c_type, size, elements, text = self.memory(i, i.operands[1], i.operands[0])
        for n in range(len(elements)):
            text += f"{c_type} w{n};memcpy(&w{n},(void*)(A+{n * size}),{size});"
        return text + "".join(assign(v, f"w{n}", i.kind) for n, v in enumerate(elements))

    def translate_st(self, i):
        c_type, size, elements, text = self.memory(i, i.operands[0], i.operands[1])
        for n, v in enumerate(elements):
            text += f"{c_type} w{n}={self.value(v, i.kind)};"
        return text + "".join(f"memcpy((void*)(A+{n * size}),&w{n},{size});" for n in range(len(elements)))

    def translate_cp(self, i):
        to, source = self.address(i.operands[0]), self.address(i.operands[1])
        return f"memcpy((void*){to},(void*){source},{i.operands[2]});check_alignment({to},16);check_alignment({source},16);"

    def translate_atom(self, i):
        """Lanes run one at a time, so plain code is atomic."""
        kind = "u64" if i.kind.endswith("64") else "u32"
        a = self.value(i.operands[2], kind)
        if "or" in i.parts:
            change = f"*q=old|{a};"
        elif "exch" in i.parts:
            change = f"*q={a};"
        elif "xor" in i.parts:
            change = f"*q=old^{a};"
        elif "cas" in i.parts:
            change = f"if(old=={a})*q={self.value(i.operands[3], kind)};"
        elif "add" in i.parts:
            change = f"*q=old+{a};"
        elif i.operation.endswith("max." + kind):
            change = f"*q=old>{a}?old:{a};"
        else:
            raise Unknown(i.text)
        result = assign(i.operands[0], "old", kind) if i.operands[0] != "_" else ""
        return f"{kind}*q=({kind}*){self.address(i.operands[1])};check_alignment((u64)q,sizeof *q);{kind} old=*q;" + change + result

    def translate_bar(self, i):
        if i.operation.startswith("bar.warp.sync"):
            return f"warp_sync(lane,{i.number});"
        if i.operation.startswith("bar.sync"):
            return f"block_sync(lane,{i.number});"
        raise Unknown(i.text)

    def translate_shf(self, i):
        if i.operation not in ("shf.l.clamp.b32", "shf.r.clamp.b32"):
            raise Unknown(i.text)
        values = ",".join(self.value(v, "b32") for v in i.operands[1:4])
        return assign(i.operands[0], f"shf_{i.parts[1]}({values})", "b32")

    def translate_shfl(self, i):
        to = i.operands[0].split("|")
        values = ",".join([self.value(i.operands[1], "b32"), f'"{i.parts[2]}"[0]'] + [self.value(v, "b32") for v in i.operands[2:5]])
        text = f"bool q; u32 v=shfl(lane,{i.number},{values},q);" + assign(to[0], "v", "b32")
        return text + (assign(to[1], "q", "pred") if len(to) > 1 else "")

    def translate_vote(self, i):
        predicate, mask = self.value(i.operands[1], "pred"), self.value(i.operands[2], "b32")
        return assign(i.operands[0], f"vote_{i.parts[2]}(lane,{i.number},{predicate},{mask})", i.kind)

    def translate_redux(self, i):
        if i.operation not in ("redux.sync.or.b32", "redux.sync.add.u32", "redux.sync.max.u32"):
            raise Unknown(i.text)
        value, mask = self.value(i.operands[1], "b32"), self.value(i.operands[2], "b32")
        return assign(i.operands[0], f'redux(lane,{i.number},{value},"{i.parts[2]}"[0],{mask})', "b32")

    def call(self, text):
        result, name, arguments = re.match(r"call(?:\.uni)?\s*(?:\((\w+)\),)?\s*([\w$]+),\s*\((.*)\)\s*$", text, re.S).groups()
        given = [a.strip() for a in arguments.split(",") if a.strip()]
        return f"{self.names.get(name) or identifier(name)}(lane,{result or 'nullptr'}" + "".join("," + a for a in given) + ");"

    # Functions

    def declaration(self, line):
        """C++ for a line that declares registers or local memory, "" for one that needs none, None for any other line."""
        if line.startswith(".reg"):
            registers = re.match(r"\.reg \.(\w+)\s+%(\w+)<(\d+)>;", line)
            if registers and registers[1] == "pred":
                return f"bool {registers[2]}[{registers[3]}]={{}};"
            if registers:
                kind, name, count = registers.groups()
                return f"{C_TYPES[kind]} {name}[{count}]; memset({name},0xA5,sizeof {name});"
            return "u64 " + line.split("%")[1].rstrip(";") + "=0;" if "%SP" in line else ""
        if line.startswith(".local"):
            name, size = re.search(r"(\w+)\[(\d+)\];", line).groups()
            return f"alignas(16) u8 {name}[{size}]; memset({name},0xA5,{size});"
        if line.startswith(".shared"):  # one a kernel; a second would lie over it
            if "lane.static_shared" in (self.shared.get(name) for name in self.in_function):
                raise Unknown("two variables in shared memory")
            name = re.search(r"(\w+)\[(\d+)\];", line)[1]
            self.shared[name] = "lane.static_shared"
            self.in_function.append(name)
            return ""
        return "" if line.startswith(".pragma") else None

    # What a translator that counts (counted.py) must know beside

    def joined(self):
        """What follows begins a basic block."""

    def locate(self, line):
        """What follows comes from the place in the source that the line names."""

    def function(self, name, parameters, body):
        """Its declaration and its definition."""
        names = [re.search(r"(\w+)(?:\[\d+\])?\s*$", p.strip())[1] for p in (parameters or "").split(",") if p.strip()]
        self.parameters = {"func_retval0": "result"} | {p: f"argument{n}" for n, p in enumerate(names)}
        self.in_function = []
        self.joined()
        signature = f"void {self.names[name]}(Lane&lane,u8*result" + "".join(f",u8*argument{n}" for n in range(len(names))) + ")"
        head, code, pending = [], [], ""
        for line in filter(None, (line.strip() for line in body.split("\n"))):
            if line.split()[0] == ".loc":
                self.locate(line)
                continue
            declared = self.declaration(line)
            if declared is not None:
                head += [declared] if declared else []
                continue
            if line.startswith(".param"):  # what a call hands over, in a scope of its own
                of = re.match(r"\.param (?:\.align \d+ )?\.\w+ (\w+)(?:\[(\d+)\])?;", line)
                code.append(f"alignas(16) u8 {of[1]}[{of[2] or 16}];")
                continue
            if line in ("{", "}"):
                code.append(line)
                continue
            pending += " " + line
            if re.match(r"^\s*\$?\w+:\s*$", pending):
                code.append(label(pending.strip().rstrip(":")) + ":;")
                self.joined()
                pending = ""
            elif line.endswith(";"):  # instructions may go over several lines
                text, pending = pending.strip().rstrip(";").strip(), ""
                if text:
                    code.append(self.call(text) if text.startswith("call") else self.statement(text))
        start = signature + "{ u64 tmp64=0,lhs_=0,rhs_=0; u32 amt2=0;"
        return signature + ";", "\n".join([start, *head, *code, "}"])


def translate(ptx, translator):
    """C++ for a file of PTX, by a Translator of its own."""
    # nvcc moves halves of 64-bit registers through one that it declares in braces: ours is declared once a function.
    ptx = ptx.replace("{ .reg .b64 %tmp;", "").replace("%tmp; }", "%rdT;").replace("%tmp", "%rdT")
    ptx = re.sub(r"//[^\n]*", "", ptx)
    ptx = re.sub(r"\{\s*((?:cvt|mov)[^;{}]*;)\s*\}", r"\1", ptx)
    for name in re.findall(r"^\.extern \.shared[^;]*?\s(\w+)\[\];", ptx, re.M):
        translator.shared[name] = "lane.dynamic_shared"
    pattern = r"^(?:\.weak |\.visible )?\.(?:entry|func)\s+(?:\(\.param[^)]*\)\s*)?([\w$]+)\s*(?:\(([^)]*)\))?\s*(?:(?:\.\w+[^\n{;]*\n)*)\{\n(.*?)^\}"
    found = re.findall(pattern, ptx, re.M | re.S)
    translator.names = function_names([f[0] for f in found])
    functions = [translator.function(*f) for f in found]
    declarations, definitions = zip(*functions)
    return "\n".join(['#include "machine.h"', *declarations, *definitions, ""])
