"""What a test imports: `from harness import by_turns, native_only, needs, timeout`, and so on.

A test is a function `test_xxx(t)` in tests/run/test_*.py; `t` is harness.context.Test. Each runs in
a process of its own, once as root and once as the ordinary user, with its own state directory and
temporary directory. When it is over nothing may be left: see harness.leaks.
"""


def only_root(function):
    """The test makes sense for root alone."""
    function.only = "root"
    return function


def only_user(function):
    """The test makes sense for an ordinary user alone."""
    function.only = "user"
    return function


def needs(*facts):
    """The test needs something of the host: names of harness.host.FACTS. It is skipped, with the
    reason, without."""
    def mark(function):
        function.needs = getattr(function, "needs", ()) + facts
        return function
    return mark


def native_only(reason):
    """The test is not repeated with the sanitizers' build, and why: another one runs the same code
    there. A file says so for all its tests with NATIVE_ONLY = "reason". A test that is named on the
    command line runs all the same."""
    def mark(function):
        function.native_only = reason
        return function
    return mark


def by_turns(function):
    """The test takes long, and most of that is other programs: root in one turn, the user in the
    next. A test that is named on the command line runs as both."""
    function.by_turns = True
    return function


def serial(function):
    """The test measures time or takes the machine: nothing else runs beside it."""
    function.serial = True
    return function


def slow(function):
    """The test takes seconds: it runs with --slow, or where it is named."""
    function.slow = True
    return function


def timeout(seconds):
    """The test may take this long (60 seconds unless said)."""
    def mark(function):
        function.timeout = seconds
        return function
    return mark
