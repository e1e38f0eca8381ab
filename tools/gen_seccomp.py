#!/usr/bin/env python3
"""Makes the seccomp programs of ward from tables/syscalls.def.

In: the table, and the C library's asm/unistd_64.h (as the preprocessor prints it with -dM) for the
numbers. Out: a C header with one BPF program for each set (strict, default, build) and variant
(plain, nesting, landlock level), each with the positions of the RET instructions that
engine/native/seccomp.c changes at run time; and a header with one row per call for
observe/notify.c. The same input gives the same bytes.

A program is built as a graph of shared nodes and written from its end backwards, so that every jump
is a forward one:

  architecture -> number -> tree over intervals of numbers -> RET, or the block of an argument rule
  -> RET

The tree is the cheapest one for the weights of its leaves: the kernel runs the program once for
each number when it is installed (so short paths for all make a cheap start), and later only for
calls that are decided by their arguments (so those marked HOT stand higher). Neighbouring numbers
with the same fate are one leaf.
"""
import re
import subprocess
import sys

SETS = ("strict", "default", "build")
VARIANTS = ("plain", "nesting", "landlock")

# linux/seccomp.h, linux/audit.h, errno
KILL, NOTIFY, ALLOW = 0x80000000, 0x7FC00000, 0x7FFF0000
EPERM, EINVAL, ENOTTY, ENOMEM, ENOSYS, EPROTONOSUPPORT, EOPNOTSUPP, EAFNOSUPPORT = (1, 22, 25, 12,
                                                                                    38, 93, 95, 97)
ARCH_X86_64, X32_BIT = 0xC000003E, 0x40000000
OFFSET_NR, OFFSET_ARCH = 0, 4

# linux/bpf_common.h
LD_W_ABS, RET_K, JA, JEQ, JGE, JSET, AND = 0x20, 0x06, 0x05, 0x15, 0x35, 0x45, 0x54

# What a program costs is paid at the start: an instruction takes as long to translate as this many
# steps of running it (0.11 us and 2.1 ns, measured), and it is run once for each number.
INSTRUCTION_WEIGHT = 52
HOT_WEIGHT = 60


class TableError(Exception):
    pass


# ---- nodes: tuples, so that equal ones are one

def ret(value, tag=""):
    return ("ret", value, tag)


def errno(code):
    return ret(0x00050000 | code)


def load(offset, after):
    return ("ld", offset, after)


def low(arg, after):
    """What the kernel sees of an argument that is an int."""
    return load(16 + 8 * arg, after)


def high(arg, after):
    return load(20 + 8 * arg, after)


def mask(bits, after):
    return ("and", bits, after)


def jump(op, value, yes, no):
    return yes if yes == no else (op, value, yes, no)


def equal(value, yes, no):
    return jump("eq", value, yes, no)


def any_bit(bits, yes, no):
    return jump("set", bits, yes, no)


ALLOWED, DENIED = ret(ALLOW), ret(NOTIFY)
CLOSABLE = ret(ALLOW, "closable")
ALLOCATES = ret(ALLOW, "allocates")
FATE = {"DENY": DENIED, "ENOSYS": errno(ENOSYS), "EPERM": errno(EPERM),
        "EOPNOTSUPP": errno(EOPNOTSUPP), "ALLOW": ALLOWED}


class Tree:
    """The cheapest decision over [(first value, node, weight)] with increasing first values, which
    cover everything from 0 on. A range of leaves is decided either by one >= and two smaller
    ranges, or, where all but single values have the same fate, by one == for each of those."""

    def __init__(self, leaves):
        self.leaf = []
        for first, node, weight in leaves:
            if self.leaf and self.leaf[-1][1] == node:
                self.leaf[-1][2] += weight
            else:
                self.leaf.append([first, node, weight])
        self.n = len(self.leaf)
        self.total = [0]
        for leaf in self.leaf:
            self.total.append(self.total[-1] + leaf[2])
        self.cost = [[0] * self.n for _ in range(self.n)]
        self.split = [[None] * self.n for _ in range(self.n)] # None: a chain of ==
        for span in range(1, self.n):
            for i in range(self.n - span):
                self.decide(i, i + span)

    def weight(self, i, j):
        return self.total[j + 1] - self.total[i]

    def is_single(self, k):
        return k + 1 < self.n and self.leaf[k + 1][0] == self.leaf[k][0] + 1

    def chain(self, i, j):
        """(cost, parity) of a chain: leaves of one parity are singles, the others all have the same
        fate."""
        for parity in (0, 1):
            singles = range(i + parity, j + 1, 2)
            rest = {self.leaf[k][1] for k in range(i + 1 - parity, j + 1, 2)}
            if len(rest) == 1 and all(map(self.is_single, singles)):
                return len(singles) * (INSTRUCTION_WEIGHT + self.weight(i, j)), parity
        return None, None

    def decide(self, i, j):
        best, _ = self.chain(i, j)
        for k in range(i + 1, j + 1):
            cost = self.cost[i][k - 1] + self.cost[k][j] + INSTRUCTION_WEIGHT + self.weight(i, j)
            if best is None or cost < best:
                best, self.split[i][j] = cost, k
        self.cost[i][j] = best

    def build(self, i, j):
        if i == j:
            return self.leaf[i][1]
        k = self.split[i][j]
        if k:
            return jump("ge", self.leaf[k][0], self.build(k, j), self.build(i, k - 1))
        _, parity = self.chain(i, j)
        node = self.leaf[i + 1 - parity][1]
        singles = [self.leaf[k] for k in range(i + parity, j + 1, 2)]
        for first, fate, _ in sorted(singles, key=lambda leaf: (leaf[2], leaf[0])):
            node = equal(first, fate, node) # the heaviest is tested first
        return node


def tree(leaves):
    t = Tree(leaves)
    return t.build(0, t.n - 1)


def choose(values, otherwise):
    """A tree over {value: node} or {(first, last): node}; everything else is otherwise."""
    leaves, following = [], 0
    for key in sorted(values, key=lambda key: key if isinstance(key, tuple) else (key, key)):
        first, last = key if isinstance(key, tuple) else (key, key)
        if first > following:
            leaves.append((following, otherwise, 1))
        leaves.append((first, values[key], 1))
        following = last + 1
    if following <= 0xFFFFFFFF:
        leaves.append((following, otherwise, 1))
    return tree(leaves)


# ---- argument rules: each returns the node to go to when the call is in the set

SET_ID = 0o6000
O_CREAT, O_TMPFILE = 0o100, 0o20000000
S_IFMT, S_IFREG, S_IFIFO, S_IFSOCK = 0o170000, 0o100000, 0o010000, 0o140000
# NEWNS CGROUP UTS IPC USER PID NET; bit 7 is NEWTIME to unshare and part of the exit signal to
# clone
NEW_NAMESPACE, NEWTIME = 0x7E020000, 0x80
AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, AF_PACKET, AF_ALG, AF_VSOCK, AF_XDP = (1, 2, 10, 16, 17, 38,
                                                                               40, 44)
STREAM, DGRAM, RAW, SEQPACKET = 1, 2, 3, 5
SOCK_TYPE = 0xF
HUGETLB_MMAP, HUGETLB_MEMFD, HUGETLB_SHM = 0x40000, 0x4, 0o4000
RESET_ON_FORK, OTHER, BATCH, IDLE = 0x40000000, 0, 3, 5
NEW_LISTENER = 8
PAGE = 4096
F_SETLEASE, F_NOTIFY, F_SETDELEG = 1024, 1026, 1040
IN_LOOKED_AT = 0x31	# IN_ACCESS, IN_CLOSE_NOWRITE, IN_OPEN
RLIMIT_CORE = 4
# with FALLOC_FL_KEEP_SIZE: the mode of fallocate that programs free blocks by
PUNCH_HOLE = 0x3
# SO_ATTACH_FILTER, SO_ATTACH_BPF, SO_ATTACH_REUSEPORT_CBPF, _EBPF
SOL_SOCKET, SO_FILTERS = 1, (26, 50, 51, 52)


def no_set_id(arg, after):
    return low(arg, any_bit(SET_ID, DENIED, after))


def create(flags, mode):
    return low(flags, any_bit(O_CREAT | O_TMPFILE, no_set_id(mode, ALLOWED), ALLOWED))


def mknod(mode):
    kinds = {0: ALLOWED, S_IFREG: ALLOWED, S_IFIFO: ALLOWED, S_IFSOCK: ALLOWED}
    return low(mode, any_bit(SET_ID, DENIED, mask(S_IFMT, choose(kinds, DENIED))))


def zero(arg, yes, no):
    """A pointer or long is 0."""
    return low(arg, equal(0, high(arg, equal(0, yes, no)), no))


def socket_kind(kinds, protocols):
    """Type (without its flags), then protocol, of a family that is given."""
    protocol = low(2, choose(protocols, errno(EPROTONOSUPPORT)))
    table = {kind: protocol for kind in kinds}
    table.setdefault(RAW, DENIED)
    return low(1, mask(SOCK_TYPE, choose(table, errno(EINVAL))))


def rule_socket(env):
    families = {
        AF_UNIX: socket_kind((STREAM, DGRAM, SEQPACKET), {0: ALLOWED, 1: ALLOWED}),
        AF_INET: socket_kind((STREAM, DGRAM), {0: ALLOWED, 6: ALLOWED, 17: ALLOWED}),
        AF_PACKET: DENIED, AF_ALG: DENIED, AF_VSOCK: DENIED, AF_XDP: DENIED,
    }
    families[AF_INET6] = families[AF_INET]
    if env.set > 0:
        families[AF_NETLINK] = socket_kind((RAW, DGRAM), {0: ALLOWED})
    return low(0, choose(families, errno(EAFNOSUPPORT)))


def rule_socketpair(kinds):
    kind = low(1, mask(SOCK_TYPE, choose({k: ALLOWED for k in kinds}, errno(EPROTONOSUPPORT))))
    return low(0, equal(AF_UNIX, kind, errno(EAFNOSUPPORT)))


def rule_values(arg, otherwise):
    def rule(env):
        table = {}
        for values, first in env.table.values[env.rule].items():
            if first == "NEVER":
                table[values] = DENIED
            elif env.nesting if first == "NESTING" else env.table.level(first) <= env.set:
                table[values] = ALLOWED
        return low(arg, choose(table, otherwise))
    return rule


def rule_seccomp(env):
    flags = ALLOWED if env.nesting else low(1, any_bit(NEW_LISTENER, DENIED, ALLOWED))
    return low(0, choose({0: ALLOWED, 1: flags, 2: ALLOWED, 3: ALLOWED}, errno(EINVAL)))


def rule_unshare(env):
    if env.nesting:
        return ALLOWED
    return low(0, any_bit(NEW_NAMESPACE | NEWTIME, DENIED, high(0, equal(0, ALLOWED, DENIED))))


def small_segment(env):
    """A page or less is given even where memory is closed: a namespace has at most 4096 segments.
    With nesting there could be any number of namespaces."""
    if env.nesting:
        return CLOSABLE
    return low(1, jump("ge", PAGE + 1, CLOSABLE, high(1, equal(0, ALLOWED, CLOSABLE))))


def scheduler():
    kinds = {OTHER: ALLOWED, BATCH: ALLOWED, IDLE: ALLOWED}
    return low(1, mask(0xFFFFFFFF ^ RESET_ON_FORK, choose(kinds, DENIED)))


def core_limit(resource, changed):
    """A limit on core files stays as it is, and whoever lowers it is told that it was done: at 1
    the kernel starts no crash handler of the host's, at 0 it does."""
    return low(resource, equal(RLIMIT_CORE, changed, ALLOWED))


def not_init(arg, after):
    """ward-init has the agent's own id: whoever may change its limits or its place in the queue
    ends what it does for the operator."""
    return low(arg, equal(1, errno(EPERM), after))


def prlimit():
    """Any process of the sandbox, but not ward-init, and not the limit on core files."""
    change = low(0, equal(1, errno(EPERM), low(1, equal(RLIMIT_CORE, errno(0), ALLOWED))))
    return zero(2, ALLOWED, change)


def own(arg, after):
    return low(arg, equal(0, after, DENIED))


RULES = {
    "any": lambda env: ALLOWED,
    "open": lambda env: create(1, 2),
    "openat": lambda env: create(2, 3),
    "mode1": lambda env: no_set_id(1, ALLOWED),
    "mode2": lambda env: no_set_id(2, ALLOWED),
    "mknod1": lambda env: mknod(1),
    "mknod2": lambda env: mknod(2),
    "clone": lambda env: ALLOWED if env.nesting
    else low(0, any_bit(NEW_NAMESPACE, DENIED, ALLOWED)),
    "unshare": rule_unshare,
    "socket": rule_socket,
    "socketpair": lambda env: rule_socketpair((STREAM, DGRAM, SEQPACKET)),
    "setsockopt": lambda env: low(1,
                                  equal(SOL_SOCKET,
                                        low(2, choose({n: DENIED for n in SO_FILTERS}, ALLOWED)),
                                        ALLOWED)),
    # many libraries that wait for changes ask for these, too
    "inotify": lambda env: low(2, any_bit(IN_LOOKED_AT, DENIED, ALLOWED)) if env.set == 0
    else ALLOWED,
    "ioctl": rule_values(1, errno(ENOTTY)),
    "prctl": rule_values(0, errno(EINVAL)),
    # F_NOTIFY is inotify's forerunner, and tells what strict and the Landlock level refuse there;
    # nobody asks for it any more
    "fcntl": lambda env: low(1,
                             choose({F_SETLEASE: DENIED, F_SETDELEG: DENIED,
                                     F_NOTIFY: errno(EINVAL)}, ALLOWED)),
    "personality": rule_values(0, DENIED),
    "scheduler": lambda env: not_init(0, scheduler()),
    "seccomp": rule_seccomp,
    "mmap": lambda env: low(3, any_bit(HUGETLB_MMAP, errno(ENOMEM), ALLOWED)),
    # all bits at once is how browsers ask whether the call is there: the kernel says EINVAL
    "memfd": lambda env: low(1,
                             equal(0xffffffff, CLOSABLE,
                                   any_bit(HUGETLB_MEMFD, errno(ENOMEM), CLOSABLE))),
    "shmget": lambda env: low(2, any_bit(HUGETLB_SHM, errno(ENOMEM), small_segment(env))),
    "closable": lambda env: CLOSABLE,
    "fallocate": lambda env: low(1, equal(PUNCH_HOLE, ALLOWED, ALLOCATES)),
    # a datagram pair could be sent on to any address: of pairs, only connected kinds
    "socket_landlock": lambda env: low(0,
                                       choose({AF_INET: DENIED, AF_INET6: DENIED, AF_PACKET: DENIED,
                                               AF_ALG: DENIED,
                                           AF_VSOCK: DENIED, AF_XDP: DENIED}, errno(EAFNOSUPPORT))),
    "socketpair_landlock": lambda env: rule_socketpair((STREAM, SEQPACKET)),
    "sendto_landlock": lambda env: zero(4, ALLOWED, DENIED),
    # set-id bits are EPERM at once; the rest goes to the supervisor, which does it or does not
    "chmod1": lambda env: no_set_id_at_once(1),
    "chmod2": lambda env: no_set_id_at_once(2),
    "setrlimit": lambda env: core_limit(0, errno(0)),
    "prlimit": lambda env: prlimit(),
    "prlimit_own": lambda env: zero(2, ALLOWED,
                                    low(0, equal(0, low(1, equal(RLIMIT_CORE, errno(0), ALLOWED)),
                                                 DENIED))),
    "not_init": lambda env: not_init(0, ALLOWED),
    # who is a user stands for all of the sandbox's processes
    "priority": lambda env: low(0, equal(2, errno(EPERM), not_init(1, ALLOWED))),
    "pid_own": lambda env: own(0, ALLOWED),
    "scheduler_own": lambda env: own(0, scheduler()),
    "priority_own": lambda env: own(0, own(1, ALLOWED)),
    "ioprio_own": lambda env: low(0, equal(1, own(1, ALLOWED), DENIED)),
}


def no_set_id_at_once(arg):
    return low(arg, any_bit(SET_ID, errno(EPERM), DENIED))


# ---- the table

class Env:
    """What a rule may ask about the program it is part of."""

    def __init__(self, table, rule, set_index, variant):
        self.table, self.rule, self.set = table, rule, set_index
        self.nesting = variant == "nesting"


class Table:
    """The rows of syscalls.def."""

    ROW = re.compile(r'^(NUMBER|CALL|RULE|VALUE|RANGE|HOT|LANDLOCK|NEST)\((.*)\)$')

    def __init__(self, text):
        self.numbers, self.calls, self.rules = {}, {}, {}
        self.values, self.hot, self.landlock, self.nest = {}, [], {}, {}
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
        for line in self.join(line.strip() for line in text.split("\n")):
            row = self.ROW.match(line)
            if not row:
                raise TableError("not a row: " + line)
            getattr(self, "row_" + row[1].lower())(*self.split(row[2]))
        self.check()

    @staticmethod
    def join(lines):
        """Rows, each as one line: a row may go on in the next lines, to its parenthesis."""
        row = ""
        for line in lines:
            if not line or line.startswith("#"):
                continue	# the table defines and undefines its own macros
            row = (row + " " + line).strip()
            if line.endswith(")"):
                yield row
                row = ""
        if row:
            raise TableError("the last row has no end: " + row)

    @staticmethod
    def split(text):
        text = re.sub(r'"\s+"', "", text)	# two literals side by side are one
        return [part.strip().strip('"') for part in re.findall(r'\s*("[^"]*"|[^,"]+)', text)
                if part.strip()]

    def row_number(self, name, number):
        self.numbers[name] = int(number)

    def row_call(self, name, first, otherwise, rule, why):
        if name in self.calls:
            raise TableError("two rows for " + name)
        self.calls[name] = (first, otherwise, rule, why)

    def row_rule(self, name, remedy, why):
        self.rules[name] = (remedy, why)

    def row_value(self, rule, name, value, first):
        self.row_range(rule, name, value, value, first)

    def row_range(self, rule, _names, value, last, first):
        if first not in ("NESTING", "NEVER"):
            self.level(first)  # must be a set
        low, high = int(value, 0), int(last, 0)
        if low > high:
            raise TableError("%s: the range from %#x to %#x is empty" % (rule, low, high))
        rows = self.values.setdefault(rule, {})
        for other_low, other_high in rows:
            if low <= other_high and other_low <= high:
                raise TableError("%s: %s and %s overlap: split the RANGE, so that each value has "
                                 "one row"
                                 % (rule, self.span(other_low, other_high), self.span(low, high)))
        rows[(low, high)] = first

    @staticmethod
    def span(low, high):
        return "%#x" % low if low == high else "%#x to %#x" % (low, high)

    def row_hot(self, name):
        self.hot.append(name)

    def row_landlock(self, name, action, rule):
        self.landlock[name] = (action, rule)

    def row_nest(self, name, action, rule):
        self.nest[name] = (action, rule)

    @staticmethod
    def level(name):
        if name.lower() not in SETS:
            raise TableError("no such set: " + name)
        return SETS.index(name.lower())

    def check(self):
        for name, (first, otherwise, rule, why) in self.calls.items():
            if first not in ("STRICT", "DEFAULT", "BUILD", "NESTING",
                             "NEVER") or otherwise not in ("DENY", "ENOSYS"):
                raise TableError("bad row for " + name)
            if rule not in self.rules or rule not in RULES:
                raise TableError("unknown rule %s of %s" % (rule, name))
            if first == "NEVER" and not why:
                raise TableError("no reason given for " + name)
        for name, (action, rule) in [*self.landlock.items(), *self.nest.items()]:
            if (name not in self.calls or action not in FATE or rule not in RULES
                or rule not in self.rules):
                raise TableError("bad LANDLOCK or NEST row for " + name)
        for name in self.hot:
            if name not in self.calls:
                raise TableError("HOT names an unknown call: " + name)

    def take_numbers(self, header):
        """Numbers of the C library's header; the table fills in what it does not know yet."""
        known = {m[1]: int(m[2]) for m in re.finditer(r"^#define __NR_(\w+) (\d+)$", header, re.M)}
        for name, number in self.numbers.items():
            if known.setdefault(name, number) != number:
                raise TableError("%s is %d here, not %d" % (name, known[name], number))
        missing = [name for name in self.calls if name not in known]
        newest = max(known[name] for name in self.calls if name in known)
        unlisted = [name for name, number in known.items() if name not in self.calls
                    and number <= newest]
        if missing or unlisted:
            raise TableError("no number for: %s; no row for: %s" % (missing, unlisted))
        self.numbers = {name: known[name] for name in self.calls}

    def node(self, name, set_index, variant):
        """What a program does with the call."""
        first, otherwise, rule, _ = self.calls[name]
        given = first in ("STRICT", "DEFAULT", "BUILD") and self.level(first) <= set_index
        if not given and not (first == "NESTING" and variant == "nesting"):
            return FATE[otherwise]
        changed = {"landlock": self.landlock, "nesting": self.nest}.get(variant, {})
        if name in changed:
            action, rule = changed[name]
            if action != "ALLOW":
                return FATE[action]
        return RULES[rule](Env(self, rule, set_index, variant))


# ---- programs

def program_node(table, set_index, variant):
    fate = {table.numbers[name]: table.node(name, set_index, variant) for name in table.calls}
    weight = {table.numbers[name]: HOT_WEIGHT // (1 + i) for i, name in enumerate(table.hot)}
    leaves = [(nr, fate.get(nr, FATE["ENOSYS"]), 1 + weight.get(nr, 0))
              for nr in range(max(fate) + 2)]
    # a tracer skips a call by making its number -1: that is no x32 call
    leaves += [(X32_BIT, ret(KILL), 0), (0xFFFFFFFF, FATE["ENOSYS"], 0)]
    return load(OFFSET_ARCH, equal(ARCH_X86_64, load(OFFSET_NR, tree(leaves)), ret(KILL)))


class Writer:
    """Turns a graph into instructions, the last one first: what is jumped to is there already."""

    def __init__(self):
        self.backwards, self.place = [], {}

    def push(self, code, k, jt=0, jf=0, tag=""):
        self.backwards.append((code, jt, jf, k, tag))
        return len(self.backwards) - 1

    def push_ret(self, node):
        return self.push(RET_K, node[1], tag="notify" if node[1] == NOTIFY else node[2])

    def distance(self, node):
        """Instructions between the next one pushed and the node."""
        return len(self.backwards) - 1 - self.place[node]

    def bring_near(self, node, reserve):
        """Makes sure that an 8-bit jump reaches the node: a RET is repeated, anything else gets a
        JA."""
        if self.distance(node) + reserve <= 255:
            return
        self.place[node] = self.push_ret(node) if node[0] == "ret" else self.push(
            JA, self.distance(node))

    def write(self, node):
        if node in self.place:
            return
        kind = node[0]
        if kind == "ret":
            at = self.push_ret(node)
        elif kind in ("ld", "and"):
            self.write(node[2])
            if self.distance(node[2]) > 0:
                self.push(JA, self.distance(node[2]))
            at = self.push(LD_W_ABS if kind == "ld" else AND, node[1])
        else:
            _, value, yes, no = node
            self.write(no)
            self.write(yes)
            self.bring_near(no, 1)
            self.bring_near(yes, 0)
            op = {"eq": JEQ, "ge": JGE, "set": JSET}[kind]
            at = self.push(op, value, self.distance(yes), self.distance(no))
        self.place[node] = at


def assemble(table, set_index, variant):
    """The program as [(code, jt, jf, k, tag)]."""
    writer = Writer()
    writer.write(program_node(table, set_index, variant))
    return writer.backwards[::-1]


# ---- output

NOTE = "/* Made by tools/gen_seccomp.py from tables/syscalls.def: change those. */\n"


TAGS = ("notify", "closable", "allocates")


def positions(program, tag):
    found = [i for i, instruction in enumerate(program) if instruction[4] == tag]
    return len(found), ", ".join(map(str, found or [0]))


def print_programs(table, out):
    out.write(NOTE)
    for variant in VARIANTS:
        for index, name in enumerate(SETS):
            program = assemble(table, index, variant)
            symbol = "%s_%s" % (variant, name)
            out.write("static const struct sock_filter code_%s[] = {\n" % symbol)
            for code, jt, jf, k, _ in program:
                out.write("\t{ 0x%02x, %d, %d, 0x%x },\n" % (code, jt, jf, k))
            out.write("};\n")
            for tag in TAGS:
                out.write("static const uint16_t %s_%s[] = { %s };\n"
                          % (tag, symbol, positions(program, tag)[1]))
    out.write("static const struct program programs[][%d] = {\n" % len(SETS))
    for variant in VARIANTS:
        out.write("\t{\n")
        for index, name in enumerate(SETS):
            program = assemble(table, index, variant)
            symbol = "%s_%s" % (variant, name)
            places = "".join("%s_%s, " % (tag, symbol) for tag in TAGS)
            counts = ", ".join(str(positions(program, tag)[0]) for tag in TAGS)
            out.write("\t\t{ code_%s, %s%d, %s },\n" % (symbol, places, len(program), counts))
        out.write("\t},\n")
    out.write("};\n")


class Strings:
    """All texts in one array, so that the rows hold offsets and nothing is relocated at start."""

    def __init__(self):
        self.offset, self.parts, self.length = {}, [], 0

    def add(self, text):
        if text not in self.offset:
            self.offset[text] = self.length
            self.parts.append(text)
            self.length += len(text) + 1
        return self.offset[text]


def print_calls(table, out):
    strings = Strings()
    strings.add("")
    rows = []
    for name in sorted(table.calls, key=table.numbers.get):
        first, _, rule, why = table.calls[name]
        action, landlock_rule = table.landlock.get(name, ("", "any"))
        remedy, rule_why = table.rules[rule]
        rows.append("\t[%d] = { %d, %d, %d, %d, %d, FROM_%s, %d },\n" % (
            table.numbers[name], strings.add(name), strings.add(why), strings.add(rule_why),
            strings.add(remedy),
            strings.add(table.rules[landlock_rule][1]), first, 1 if action else 0))
    out.write(NOTE)
    out.write("static const struct call calls[] = {\n%s};\n" % "".join(rows))
    out.write("static const char texts[] =\n%s\t;\n" % "".join('\t"%s\\0"\n' % part
                                                               for part in strings.parts))


def print_numbers(table, out):
    """For the tests: { "name", number }, a line."""
    out.write(NOTE)
    for name in sorted(table.calls, key=table.numbers.get):
        out.write('{ "%s", %d },\n' % (name, table.numbers[name]))


def print_oci(table, out):
    """{ "name", the smallest set that has it }, a line: what an OCI runtime lets through to the
    exact filter behind it. Calls that are denied with an event are among them: the answer of the
    outer filter would count, and nobody would be told."""
    out.write(NOTE)
    out.write("static const struct {\n\tchar name[27];\n\tunsigned char from;\n} oci_calls[] = {\n")
    for name in sorted(table.calls, key=table.numbers.get):
        first, otherwise, _, _ = table.calls[name]
        if otherwise == "DENY" or name in ("seccomp", "pidfd_open", "close_range"):
            level = 0
        elif first in ("STRICT", "DEFAULT", "BUILD"):
            level = table.level(first)
        else:
            continue
        out.write('\t{ "%s", %d },\n' % (name, level))
    out.write("};\n")


OUTPUTS = {"oci": print_oci, "programs": print_programs, "calls": print_calls,
           "numbers": print_numbers}


def main(argv):
    if len(argv) < 5 or argv[1] not in OUTPUTS:
        raise SystemExit("usage: gen_seccomp.py programs|calls|numbers|oci syscalls.def OUT.h CC "
                         "[ARG...]")
    with open(argv[2], encoding="utf-8") as f:
        table = Table(f.read())
    header = subprocess.run(argv[4:] + ["-E", "-dM", "-x", "c", "-"],
                            input="#include <asm/unistd_64.h>\n",
                            capture_output=True, check=True, text=True)
    table.take_numbers(header.stdout)
    with open(argv[3], "w", encoding="utf-8") as out:
        OUTPUTS[argv[1]](table, out)


if __name__ == "__main__":
    try:
        main(sys.argv)
    except TableError as error:
        raise SystemExit("tables/syscalls.def: %s" % error)
