"""What benches that take turns share: the ways that can be started here, and a client that waits
for its word.

A client (net-load, inspect-load) says "ready" when it is, waits for a line, measures, says the
numbers, and keeps what it has open until its standard input ends: so whoever started it can look at
the relay's processes before and after.
"""
import contextlib
import os
import subprocess
import threading

import net_peers


@contextlib.contextmanager
def client(argv, place, limit_s, env=None):
    """A client that is ready; ended by force when it takes too long."""
    with open(place.base / "stderr", "w+") as err:
        process = subprocess.Popen([str(a) for a in argv], cwd=place.work,
                                   env={**os.environ, **(env or {})}, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=err, text=True)
        watch = threading.Timer(limit_s, net_peers.end, [process])
        watch.start()
        try:
            if process.stdout.readline() != "ready\n":
                err.seek(0)
                raise RuntimeError(" / ".join(err.read().strip().splitlines()[-2:]) or "it ended")
            yield process
            process.stdin.close()
            process.wait()
        finally:
            watch.cancel()
            if process.poll() is None:
                net_peers.end(process)
            process.stdout.close()


def go(process, limit_s):
    """Lets it measure: the words that it says."""
    process.stdin.write("\n")
    process.stdin.flush()
    words = process.stdout.readline().split()
    if not words:
        raise RuntimeError(f"broke off, or took longer than {limit_s} s")
    return words


def begin(stack, table, place, only):
    """Starts the ways of a table (name, note, needs, start, share), all or only some: [(name, note,
    way, share)] and {name: how to get it}."""
    ways, missing = [], {}
    for name, note, needs, start, share in table:
        how = net_peers.absent(name, needs)
        if only and name not in only:
            continue
        if how:
            missing[name] = how
            continue
        try:
            ways.append((name, note, stack.enter_context(start(place)), share))
        except (OSError, RuntimeError, subprocess.SubprocessError) as e:
            missing[name] = f"installed, but does not start here: {e}"
    return ways, missing
