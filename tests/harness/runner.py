"""Finds the tests, runs each in a process of its own as root and as the ordinary user, prints what
came of it.

tests/run/test_*.py: every function test_xxx(t). tests/escape/*.py: one attack each, judged by
harness.escape.
"""
import argparse
import contextlib
import fnmatch
import importlib.util
import inspect
import json
import linecache
import os
import re
import secrets
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import zlib
from xml.sax.saxutils import escape as xml_text, quoteattr as xml_attribute

from . import context, engines, host, leaks, place, users

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TURNS = 6	# of sanitized tests, until each has run as root and as the user
MOST_REPEATED = 20	# more than that is no accident
DEFAULT_TIMEOUT_S = 60
ESCAPES = ("ESCAPED", "NOT CONTAINED")	# never repeated, never excused


class Case:
    """One test function, to be run as one user."""

    def __init__(self, name, function, as_user):
        self.name, self.function, self.as_user = name, function, as_user
        self.serial = getattr(function, "serial", False)
        self.timeout = getattr(function, "timeout", DEFAULT_TIMEOUT_S) * engines.patience()
        self.needs = getattr(function, "needs", ())
        self.native_only = getattr(function, "native_only", None)

    @property
    def title(self):
        """As it is printed."""
        return f"{self.name} [{self.as_user}]"


def load(path, package):
    """Imports a test file by its path. Its text is kept: a test may become a user who cannot read
    it."""
    name = f"{package}.{os.path.basename(path)[:-3]}"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    with open(path) as f:
        lines = f.readlines()
    linecache.cache[path] = (sum(map(len, lines)), None, lines, path)
    spec.loader.exec_module(module)
    return module


def functions_of(path):
    """(name, function) of every test in a file."""
    kind = os.path.basename(os.path.dirname(path))
    base = f"{kind}/{os.path.basename(path)}"
    module = load(path, kind)
    if kind == "escape":
        from . import escape
        return [(base, escape.make_test(module))]
    found = [(f"{base}::{name}", function) for name, function in vars(module).items()
             if name.startswith("test_") and callable(function)]
    reason = getattr(module, "NATIVE_ONLY", None)
    for _, function in found if reason else ():
        function.native_only = reason
    return found


def in_turn(name, who):
    """Who runs a test in this turn. An attack: root or the user, the other in the next turn. Any
    other test: root, then the user, then neither four times, so that six turns run each once as
    both."""
    number = zlib.crc32(name.encode()) + host.TURN
    if name.startswith("escape/"):
        return who[number % len(who):][:1]
    return [as_user for as_user in who if ("root", "user").index(as_user) == number % TURNS]


def discover(only, who, slow, alternate=False):
    """All cases that match, in order; slow ones where asked for or named. alternate: only those
    whose turn it is."""
    paths = []
    for kind, pattern in (("run", "test_*.py"), ("escape", "*.py")):
        directory = os.path.join(TESTS, kind)
        if os.path.isdir(directory):
            paths += [os.path.join(directory, n) for n in sorted(os.listdir(directory))
                      if fnmatch.fnmatch(n, pattern) and not n.startswith("_")]
    cases = []
    for path in paths:
        for name, function in functions_of(path):
            if only and not any(o in name or fnmatch.fnmatch(name, o) for o in only):
                continue
            if getattr(function, "slow", False) and not slow and not any(o in name.split("::")[-1]
                                                                         for o in only or ()):
                continue
            able = [as_user for as_user in who if getattr(function, "only", as_user) == as_user]
            if alternate:
                able = in_turn(name, able)
            elif getattr(function, "by_turns", False) and not only:
                able = [able[(zlib.crc32(name.encode()) + host.TURN) % len(able)]] if able else []
            cases += [Case(name, function, as_user) for as_user in able]
    return cases


# -- one case, in its own process

def run_case(case, ward, top, cache, number):
    """Runs the case here; returns the verdict as a dict."""
    reason = next((r for r in map(host.missing, case.needs) if r), None)
    if case.native_only and not host.THOROUGH and not host.is_plain():
        reason = f"not repeated with sanitizers: {case.native_only}"
    if reason:
        return {"verdict": "skip", "message": reason, "log": []}
    users.LIBC.prctl(users.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    person = users.entry(case.as_user)
    directory = os.path.join(top, f"t{number}")
    os.mkdir(directory, 0o755)
    if users.IS_ROOT:
        os.chown(directory, person.pw_uid, person.pw_gid)
    users.become(person)
    os.umask(0o022)
    t = context.Test(case.name, case.as_user, ward, directory, cache)
    verdict, message = "pass", ""
    try:
        case.function(t)
    except context.Skipped as skipped:
        verdict, message = "skip", str(skipped)
    except context.Failed as failed:
        frame = traceback.extract_tb(failed.__traceback__)
        place = next((f for f in reversed(frame) if "/harness/" not in f.filename), None)
        where = (f"\n  at {os.path.basename(place.filename)}:{place.lineno}: {place.line}"
                 if place else "")
        verdict, message = "fail", f"{failed}{where}"
    except Exception:
        verdict, message = "fail", traceback.format_exc()
    if verdict == "fail" and not any(w in message for w in ESCAPES):
        reason = host.absent_in(*sources(case.function), message, *t.log)
        verdict, message = ("skip", reason) if reason else (verdict, message)
    problems = t.close()
    if problems:
        verdict = "fail"
        message = "\n".join(filter(None, [message, "left behind:", *problems]))
    return {"verdict": verdict, "message": message, "log": t.log}


def sources(function):
    """The text of a test, as far as it is known: what it needs is named there."""
    try:
        return [inspect.getsource(function)]
    except (OSError, TypeError):
        return []


class Job:
    """A case that is running."""

    def __init__(self, case, ward, top, cache, number):
        self.case, self.started, self.killed = case, time.monotonic(), False
        self.read_fd, write_fd = os.pipe()
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.read_fd)
            status = 1
            try:
                os.setpgid(0, 0)
                try:
                    result = run_case(case, ward, top, cache, number)
                except BaseException:
                    result = {"verdict": "fail", "message": traceback.format_exc(), "log": []}
                data = json.dumps(result).encode()
                while data:
                    data = data[os.write(write_fd, data):]
                status = 0
            finally:
                os._exit(status)
        os.close(write_fd)
        self.data = bytearray()

    @property
    def seconds(self):
        """How long it has been running."""
        return time.monotonic() - self.started

    def kill(self):
        """Ends the test and everything below it."""
        for pid in sorted(leaks.descendants(self.pid), reverse=True) + [self.pid]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def result(self):
        """The verdict, once the pipe is closed."""
        os.close(self.read_fd)
        used = os.wait4(self.pid, 0)[2]
        try:
            result = json.loads(self.data)
        except json.JSONDecodeError:
            result = {"verdict": "fail", "message": "the test process died", "log": []}
        return {**result, "cpu": used.ru_utime + used.ru_stime}


class Width:
    """How many cases run at a time: so many always, and more up to a bound while processors are
    idle, for most wait more than they work."""

    def __init__(self, always, most):
        self.always, self.most = always, most
        self.processors = len(os.sched_getaffinity(0))

    def has_room(self, running):
        """Whether one more may begin."""
        if running < self.always:
            return True
        if running >= self.most:
            return False
        with open("/proc/meminfo") as f:
            if int(re.search(r"^MemAvailable: +(\d+)", f.read(), re.M)[1]) < ROOM_KIB:
                return False
        with open("/proc/loadavg") as f:
            at_work = int(f.read().split()[3].split("/")[0]) - 1	# we are one of them
        return at_work < self.processors


ROOM_KIB = 2 << 20	# of memory, for one case more than always run
LOOK_AGAIN_S = 0.05	# for room; what has just begun is at work by then


def run_all(cases, ward, top, cache, width, show, number=0):
    """Runs the cases, as many at a time as there is room for; serial ones at the end, alone. Calls
    show(case, seconds, result)."""
    queue = [c for c in cases if not c.serial] + [c for c in cases if c.serial]
    selector = selectors.DefaultSelector()
    running = {}
    while queue or running:
        while queue and width.has_room(len(running)) and not any(j.case.serial
                                                                 for j in running.values()):
            if queue[0].serial and running:
                break
            number += 1
            job = Job(queue.pop(0), ward, top, cache, number)
            running[job.read_fd] = job
            selector.register(job.read_fd, selectors.EVENT_READ)
            if len(running) > width.always:
                break
        for key, _ in selector.select(LOOK_AGAIN_S if queue
                                      and width.always <= len(running) < width.most else 1.0):
            job = running[key.fd]
            chunk = os.read(key.fd, 1 << 20)
            job.data += chunk
            if not chunk:
                selector.unregister(key.fd)
                del running[key.fd]
                show(job.case, job.seconds, job.result())
        for job in running.values():
            if job.seconds > job.case.timeout and not job.killed:
                job.killed = True
                why = f"no end after {job.seconds:.0f} s"
                job.data = bytearray(json.dumps({"verdict": "fail", "log": [],
                                                 "message": why}).encode())
                job.kill()


# -- the whole

def stage(build, top, person):
    """The ward to test: the one in the build tree where the ordinary user can run it there, else an
    installed copy."""
    ward = os.path.join(build, "src/cli/ward")
    if os.environ.get("WARD_TEST_CONTROLS"):
        return ward
    if not os.path.exists(ward):
        sys.exit(f"{ward}: not built yet: run `make` first, or name the build directory with "
                 "--build")
    if not users.IS_ROOT or person is None:
        return ward
    reachable = subprocess.run([*users.setpriv(person), "test", "-x", ward],
                               stderr=subprocess.DEVNULL)
    if reachable.returncode == 0:
        return ward
    target = os.path.join(top, "stage")
    subprocess.run(["meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir",
                    target], check=True)
    for directory, _, files in os.walk(target):
        if "ward" in files and os.path.basename(directory) == "bin":
            return os.path.join(directory, "ward")
    sys.exit(f"{build}: `meson install` gave no bin/ward")


class Report:
    """Prints the lines and counts."""

    def __init__(self, keep=None, engine=None):
        self.rows, self.unsteady = [], []
        self.keep, self.engine = keep, engine

    def show(self, case, seconds, result, first=""):
        """One line; the transcript when it failed. first: what the first of two tries came to."""
        verdict, message = result["verdict"], result["message"]
        self.rows.append((case, seconds, result))
        if self.keep:
            with open(self.keep, "a") as f:	# a row that comes later counts
                f.write(json.dumps({"engine": self.engine, "as": case.as_user, "name": case.name,
                                    "verdict": verdict, "message": message, "first": first,
                                    "seconds": round(seconds, 2)}) + "\n")
        word = {"pass": "ok  ", "fail": "FAIL", "skip": "skip"}[verdict]
        print(f"{word} {case.title} {seconds:.2f}s" + (f": {message}" if verdict == "skip" else ""),
              flush=True)
        if verdict == "fail":
            for line in result["log"] + message.splitlines():
                print(f"    {line}")
            sys.stdout.flush()

    def to_repeat(self):
        """What failed and may have failed because the machine was busy, limits included. An escape
        is an escape, however seldom."""
        return [case for case, _, r in self.rows
                if r["verdict"] == "fail" and not any(w in r["message"] for w in ESCAPES)]

    def repeated(self, case, seconds, result):
        """A second try, alone: its verdict replaces the first one."""
        first = next(row[2]["message"] for row in self.rows if row[0] is case)
        self.rows = [row for row in self.rows if row[0] is not case]
        self.show(case, seconds, result, first)
        if result["verdict"] == "pass":
            self.unsteady.append(case.title)

    def slowest(self, most):
        """Where the time goes: seconds, and of these on a processor."""
        rows = sorted(self.rows, key=lambda row: -row[1])
        print(f"{sum(r[1] for r in rows):.0f} s of tests, {sum(r[2]['cpu'] for r in rows):.0f} s "
              "of processors in all; the slowest:")
        for case, seconds, result in rows[:most]:
            print(f"{seconds:8.2f} s {result['cpu']:7.2f} s {case.title}")

    def skips(self):
        """What this host could not show, by reason and name."""
        reasons = {}
        for case, _, result in self.rows:
            if result["verdict"] == "skip":
                reasons.setdefault((result["message"].strip() or "?").splitlines()[0],
                                   []).append(case.title)
        for reason, titles in sorted(reasons.items()):
            print(f"skipped: {reason}: {', '.join(sorted(titles))}")

    def count(self, verdict):
        """How many came to this."""
        return sum(1 for _, _, r in self.rows if r["verdict"] == verdict)

    def junit(self, path):
        """The same for machines."""
        with open(path, "w") as f:
            f.write(f'<testsuite name="ward" tests="{len(self.rows)}" '
                    f'failures="{self.count("fail")}" '
                    f'skipped="{self.count("skip")}">\n')
            for case, seconds, result in self.rows:
                f.write(f"<testcase name={xml_attribute(case.title)} time=\"{seconds:.3f}\">")
                printable = "".join(c if c.isprintable() or c == "\n" else "?" for c in
                                    "\n".join(result["log"] + [result["message"]]))
                if result["verdict"] == "fail":
                    f.write(f"<failure>{xml_text(printable)}</failure>")
                if result["verdict"] == "skip":
                    f.write(f"<skipped message={xml_attribute(result['message'])}/>")
                f.write("</testcase>\n")
            f.write("</testsuite>\n")


def arguments():
    """The command line."""
    parser = argparse.ArgumentParser(prog="run-tests",
                                     description="Runs ward's tests as root and as a user.")
    parser.add_argument("--build", default=os.path.join(os.path.dirname(TESTS), "build"),
                        metavar="DIR")
    parser.add_argument("--only", action="append", metavar="PATTERN",
                        help="part of a name, or a glob; may be repeated")
    parser.add_argument("--as", dest="who", choices=("root", "user", "both"), default="both")
    parser.add_argument("-j", dest="width", type=int, metavar="N",
                        help="so many at a time; otherwise as many as keep the processors at work")
    parser.add_argument("--again", action="store_true",
                        help="what fails runs once more, alone; escapes do not")
    parser.add_argument("--engine", choices=sorted(engines.OPTIONS),
                        help="every `ward run` of the tests under this engine")
    parser.add_argument("--junit", metavar="FILE")
    parser.add_argument("--keep", metavar="FILE",
                        help="adds each result to a file as it comes, a line of JSON each")
    parser.add_argument("--controls", action="store_true",
                        help="of each attack only the run without the sandbox")
    parser.add_argument("--no-controls", action="store_true",
                        help="of each attack only the run in the sandbox: for a second build of "
                        "the same ward")
    parser.add_argument("--alternate", action="store_true",
                        help="attacks as root or as the user, of the other tests a sixth, by turns")
    parser.add_argument("--turn", type=int, default=0, metavar="N",
                        help="of generated attacks the Nth part; see --alternate")
    parser.add_argument("--slowest", type=int, default=0, metavar="N",
                        help="at the end, the N tests that took longest")
    parser.add_argument("--slow", action="store_true",
                        help="also what takes long: databases, Java, npm, debuggers")
    parser.add_argument("--place", choices=place.MODES, default="auto",
                        help="where the ordinary user cannot read the tree: how it is shown to "
                        "that user")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    return parser.parse_args()


@contextlib.contextmanager
def own_directory():
    """A directory for everything that the tests make; its name has digits only, so that no test
    meets its own words in a path."""
    top = os.path.join(tempfile.gettempdir(), f"ward-tests.{secrets.randbelow(10 ** 8):08d}")
    os.mkdir(top, 0o755)
    try:
        yield top
    finally:
        shutil.rmtree(top, ignore_errors=True)


def main():
    """The runner."""
    args = arguments()
    # a shell's background jobs ignore them, and whatever they start
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    if users.IS_ROOT:
        who = ("root", "user") if args.who == "both" else (args.who,)
    else:
        who = ("user",)
    if args.controls:
        os.environ["WARD_TEST_CONTROLS"] = "1"
    if args.no_controls:
        os.environ["WARD_TEST_NO_CONTROLS"] = "1"
    if args.engine:
        os.environ["WARD_TEST_ENGINE"] = args.engine
    host.TURN = args.turn
    cases = discover(args.only, who, args.slow, args.alternate)
    if args.list:
        print("\n".join(c.title for c in cases))
        return 0
    if not cases:
        sys.exit("no test matches")
    if "user" in who:
        status = place.settle(os.path.abspath(args.build), args.place)
        if status is not None:
            return status
    person = users.ensure() if users.IS_ROOT and "user" in who else None
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    report = Report(args.keep, args.engine)
    processors = len(os.sched_getaffinity(0))
    if users.IS_ROOT:
        leaks.own_cgroups()
    with own_directory() as top:
        cache = os.path.join(top, "cache")
        os.mkdir(cache, 0o755)
        host.BUILD = os.path.abspath(args.build)
        host.THOROUGH = bool(args.slow or args.only)
        ward = host.WARD = stage(os.path.abspath(args.build), top, person)
        host.missing("admin")	# asked once, for all test processes
        width = Width(max(1, args.width),
                      args.width) if args.width else Width(min(4, processors + 1), 6 * processors)
        run_all(cases, ward, top, cache, width, report.show)
        again = report.to_repeat() if args.again else []
        if 0 < len(again) <= MOST_REPEATED:
            print(f"{len(again)} failed: once more, one at a time", flush=True)
            run_all(again, ward, top, cache, Width(1, 1), report.repeated, number=len(cases))
    for message in leaks.leave_cgroups():
        print(f"cgroup cannot be removed: {message}")
    if args.junit:
        report.junit(args.junit)
    if args.slowest:
        report.slowest(args.slowest)
    failed = report.count("fail")
    skipped = report.count("skip")
    for title in report.unsteady:
        print(f"unsteady: {title}: failed beside others, passed alone")
    for case, _, result in report.rows:
        if result["verdict"] == "fail":
            print(f"failed: {case.title}: {(result['message'].strip() or '?').splitlines()[0]}")
    report.skips()
    print(f"{report.count('pass')} passed, {failed} failed"
          + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0
