"""libward for Python: ctypes only, nothing to compile.

    import ward

    done = ward.run(["python3", "agent.py"], workspace=".",
                    fields={"resources.memory_limit": "2Gi"})
    print(done.code, done.out, done.report["duration_ms"])

    with ward.Box(workspace=".") as box:                # an idle sandbox; it ends with the block
        print(box.exec(["make", "test"]).communicate())
        process = box.exec(["sh"], env={"A": "1"})
        process.stdin.write(b"echo $A; exit 3\\n")
        for line in process.stdout:                     # as it comes
            print(line)
        print(process.wait())

Calls that wait let other threads run. Every error is a ward.Error with code (errno), what, why and
remedy.
"""
import contextlib
import ctypes
import glob
import json
import os
import threading
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint, c_void_p

__all__ = ["Error", "Box", "Process", "Done", "run", "plan", "boxes", "version"]


class _Error(ctypes.Structure):
    _fields_ = [("code", c_int), ("what", ctypes.c_char * 512), ("why", ctypes.c_char * 768),
                ("remedy", ctypes.c_char * 512)]


class _Command(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("argv", POINTER(c_char_p)), ("env", POINTER(c_char_p)),
                ("directory", c_char_p),
                ("rows", c_uint), ("columns", c_uint)]


# name -> what it takes before the error, and whether it takes one. Everything but _PLAIN returns 0
# or more, or -errno.
_CALLS = {
    "spec_program": (c_void_p, c_char_p), "spec_policy": (c_void_p, c_char_p),
    "spec_profile": (c_void_p, c_char_p),
    "spec_workspace": (c_void_p, c_char_p), "spec_directory": (c_void_p, c_char_p),
    "spec_name": (c_void_p, c_char_p),
    "spec_set": (c_void_p, c_char_p, c_char_p), "spec_add": (c_void_p, c_char_p, c_char_p),
    "spec_mount": (c_void_p, c_char_p, c_char_p, c_int),
    "spec_command": (c_void_p, POINTER(c_char_p)),
    "spec_terminal": (c_void_p, c_uint, c_uint), "plan": (c_void_p, POINTER(c_void_p)),
    "start": (c_void_p, c_uint, POINTER(c_void_p)), "open": (c_char_p, POINTER(c_void_p)),
    "box_stream": (c_void_p, c_int), "box_fd": (c_void_p,),
    "wait": (c_void_p, c_int, POINTER(c_int)),
    "result": (c_void_p, POINTER(c_void_p)), "stats": (c_void_p, POINTER(c_void_p)),
    "signal": (c_void_p, c_int),
    "resize": (c_void_p, c_uint, c_uint), "pause": (c_void_p,), "resume": (c_void_p,),
    "stop": (c_void_p, c_uint),
    "kill": (c_void_p,), "log": (c_void_p, POINTER(c_void_p), POINTER(c_size_t)),
    "remove": (c_void_p,), "list": (POINTER(c_void_p),),
    "exec": (c_void_p, POINTER(_Command), POINTER(c_void_p)), "process_stream": (c_void_p, c_int),
    "process_wait": (c_void_p, c_int, POINTER(c_int)), "process_signal": (c_void_p, c_int),
    "process_resize": (c_void_p, c_uint, c_uint),
}
_PLAIN = {
    "version": (c_char_p, ()), "free": (None, (c_void_p,)), "spec_new": (c_void_p, ()),
    "spec_free": (None, (c_void_p,)),
    "spec_widen": (c_int, (c_void_p, c_int)), "box_free": (None, (c_void_p,)),
    "box_id": (c_char_p, (c_void_p,)),
    "box_name": (c_char_p, (c_void_p,)), "process_fd": (c_int, (c_void_p,)),
    "process_free": (None, (c_void_p,)),
}


def _load():
    """The library: LIBWARD, lib/ of the tree that this file was installed into, or wherever the
    system looks."""
    tree = glob.escape(os.path.normpath(os.path.join(os.path.dirname(os.path.realpath(__file__)),
                                                     "../../../../..")))
    beside = [*glob.glob(f"{tree}/lib*/libward.so.1"),
              *glob.glob(f"{tree}/lib*/*-linux-*/libward.so.1")]
    library = ctypes.CDLL(os.environ.get("LIBWARD") or (beside or ["libward.so.1"])[0])
    for name, arguments in _CALLS.items():
        function = getattr(library, "ward_" + name)
        function.restype, function.argtypes = c_int, [*arguments, POINTER(_Error)]
    for name, (result, arguments) in _PLAIN.items():
        function = getattr(library, "ward_" + name)
        function.restype, function.argtypes = result, arguments
    return library


_LIB = _load()
_DETACHED = 1


class Error(Exception):
    """What the library refused: code is an errno; what, why and remedy are text."""

    def __init__(self, e):
        self.code = e.code
        self.what, self.why, self.remedy = (t.decode("utf-8", "replace")
                                            for t in (e.what, e.why, e.remedy))
        super().__init__(": ".join(filter(None, (self.what, self.why)))
                         + (f" ({self.remedy})" if self.remedy else ""))


def _call(name, *arguments):
    e = _Error()
    result = getattr(_LIB, "ward_" + name)(*arguments, byref(e))
    if result < 0:
        raise Error(e)
    return result


def _bytes(text):
    return None if text is None else os.fsencode(text)


def _array(words):
    words = [_bytes(w) for w in words]
    return (c_char_p * (len(words) + 1))(*words, None)


def _text(name, *arguments):
    """A call that hands out a text, which is JSON."""
    text = c_void_p()
    _call(name, *arguments, byref(text))
    try:
        return json.loads(ctypes.string_at(text))
    finally:
        _LIB.ward_free(text)


def _milliseconds(timeout):
    return -1 if timeout is None else max(0, int(timeout * 1000))


def version():
    """The version of the library."""
    return _LIB.ward_version().decode()


@contextlib.contextmanager
def _spec(argv=None, *, workspace=None, policy=None, profile=None, directory=None, name=None,
          fields=None, env=None,
          mounts=(), widen=False, terminal=None, program=None):
    """What shall run. fields: {"resources.memory_limit": "2Gi"}, a list appends each; env: {NAME:
    value}; mounts: (path, writable) or (path, writable, at); terminal: (rows, columns)."""
    spec = _LIB.ward_spec_new()
    if not spec:
        raise MemoryError
    try:
        for call, value in (("program", program), ("policy", policy), ("profile", profile),
                            ("workspace", workspace),
                            ("directory", directory), ("name", name)):
            if value is not None:
                _call("spec_" + call, spec, _bytes(value))
        for field, value in (fields or {}).items():
            for one in value if isinstance(value, (list, tuple)) else [value]:
                _call("spec_add" if one is not value else "spec_set", spec, field.encode(),
                      str(one).encode())
        for key, value in (env or {}).items():
            _call("spec_add", spec, b"process.env", f"{key}={value}".encode())
        for path, writable, *at in mounts:
            _call("spec_mount", spec, _bytes(path), _bytes(at[0]) if at else None, int(writable))
        if terminal:
            _call("spec_terminal", spec, *terminal)
        if argv:
            _call("spec_command", spec, _array(argv))
        _LIB.ward_spec_widen(spec, int(widen))
        yield spec
    finally:
        _LIB.ward_spec_free(spec)


def plan(argv=None, **spec):
    """What would happen; nothing is started."""
    with _spec(argv, **spec) as s:
        return _text("plan", s)


def boxes():
    """All boxes of this user, those that have ended too."""
    return _text("list")


class _Running:
    """A command with streams. stdin, stdout and stderr are files; on a terminal stdin and stdout
    are that terminal."""
    _kind = None

    def _open_streams(self):
        self.stdin = self.stdout = self.stderr = None
        for which, name, mode in ((0, "stdin", "wb"), (1, "stdout", "rb"), (2, "stderr", "rb")):
            with contextlib.suppress(Error):	# there may be none
                setattr(self, name,
                        os.fdopen(_call(self._kind + "_stream", self._handle, which), mode,
                                  0 if mode == "wb" else -1))

    def _close_streams(self):
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream:
                with contextlib.suppress(OSError):
                    stream.close()

    def communicate(self, input=b"", timeout=None):
        """Writes input, reads both outputs to their end, waits: (code, out, err)."""
        read = {"stdout": b"", "stderr": b""}

        def take(name):
            read[name] = getattr(self, name).read()
        threads = [threading.Thread(target=take, args=(n,), daemon=True) for n in read
                   if getattr(self, n)]
        for thread in threads:
            thread.start()
        if self.stdin:
            with contextlib.suppress(BrokenPipeError):
                self.stdin.write(input)
            self.stdin.close()
        code = self.wait(timeout)
        for thread in threads:
            thread.join()
        return code, read["stdout"], read["stderr"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if getattr(self, "_handle", None):
            self.close()


class Process(_Running):
    """One more command in a box. Closing it kills a command that still runs."""
    _kind = "process"

    def __init__(self, handle):
        self._handle = handle
        self._open_streams()

    def wait(self, timeout=None):
        """The exit code, or None when the time is up."""
        code = c_int()
        return code.value if _call("process_wait", self._handle, _milliseconds(timeout),
                                   byref(code)) else None

    def fileno(self):
        """For select and poll: readable when the command has ended."""
        return _LIB.ward_process_fd(self._handle)

    def signal(self, number):
        """Sends a signal to the command."""
        _call("process_signal", self._handle, number)

    def resize(self, rows, columns):
        """The size of its terminal."""
        _call("process_resize", self._handle, rows, columns)

    def close(self):
        """Frees everything."""
        handle, self._handle = self._handle, None
        if handle:
            self._close_streams()
            _LIB.ward_process_free(handle)


class Box(_Running):
    """A sandbox: Box(argv, workspace=...) starts one (see run() for what it takes), Box.open(name)
    finds one. It ends when it is closed, unless it was started with detached=True."""
    _kind = "box"

    def __init__(self, argv=None, *, detached=False, **spec):
        self._handle = None
        handle = c_void_p()
        with _spec(argv, **spec) as s:
            _call("start", s, _DETACHED if detached else 0, byref(handle))
        self._handle = handle
        self._open_streams()

    @classmethod
    def open(cls, name_or_id):
        """A box of this user that was started before."""
        handle = c_void_p()
        _call("open", name_or_id.encode(), byref(handle))
        box = cls.__new__(cls)
        box._handle = handle
        box.stdin = box.stdout = box.stderr = None
        return box

    @property
    def id(self):
        """Its id."""
        return _LIB.ward_box_id(self._handle).decode()

    @property
    def name(self):
        """Its name, "" if it has none."""
        return _LIB.ward_box_name(self._handle).decode()

    def exec(self, argv, env=None, directory=None, terminal=None):
        """Starts one more command in it; terminal: (rows, columns)."""
        handle = c_void_p()
        rows, columns = terminal or (0, 0)
        command = _Command(ctypes.sizeof(_Command), _array(argv),
                           _array(f"{k}={v}" for k, v in env.items()) if env else None,
                           _bytes(directory), rows, columns)
        _call("exec", self._handle, byref(command), byref(handle))
        return Process(handle)

    def wait(self, timeout=None):
        """What `ward run` would have exited with, or None when the time is up."""
        code = c_int()
        return code.value if _call("wait", self._handle, _milliseconds(timeout),
                                   byref(code)) else None

    def fileno(self):
        """For select and poll: readable when the box has ended."""
        return _call("box_fd", self._handle)

    def result(self):
        """The report of a box that has ended."""
        return _text("result", self._handle)

    def log(self):
        """What the command of a detached box has written: the last megabytes of it."""
        text, size = c_void_p(), c_size_t()
        _call("log", self._handle, byref(text), byref(size))
        try:
            return ctypes.string_at(text, size.value)
        finally:
            _LIB.ward_free(text)

    def stats(self):
        """What it uses now."""
        return _text("stats", self._handle)

    def signal(self, number):
        """Sends a signal to its own command."""
        _call("signal", self._handle, number)

    def resize(self, rows, columns):
        """The size of its terminal."""
        _call("resize", self._handle, rows, columns)

    def pause(self):
        """Stops every process."""
        _call("pause", self._handle)

    def resume(self):
        """Lets them go on."""
        _call("resume", self._handle)

    def stop(self, grace=5.0):
        """Asks it to end, and ends it after so many seconds; does not wait."""
        _call("stop", self._handle, int(grace * 1000))

    def kill(self):
        """Ends every process now."""
        _call("kill", self._handle)

    def remove(self):
        """Forgets a detached box that has ended."""
        _call("remove", self._handle)

    def close(self):
        """Frees everything; an attached box ends."""
        handle, self._handle = self._handle, None
        if handle:
            self._close_streams()
            _LIB.ward_box_free(handle)


class Done:
    """How a run ended: code, out, err, and the report as a dict."""

    def __init__(self, code, out, err, report):
        self.code, self.out, self.err, self.report = code, out, err, report


def run(argv, input=b"", timeout=None, **spec):
    """Runs one command in a sandbox of its own to its end. timeout: seconds after which it is
    killed; the rest as _spec()."""
    with Box(argv, **spec) as box:
        timer = threading.Timer(timeout, box.kill) if timeout is not None else None
        if timer:
            timer.start()
        try:
            code, out, err = box.communicate(input)
        finally:
            if timer:
                timer.cancel()
        return Done(code, out, err, box.result())
