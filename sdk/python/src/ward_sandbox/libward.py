"""libward (ward.h) by ctypes. Loaded when a local sandbox is first asked for, so that a program
that talks to a server needs no ward of its own."""
import ctypes
import ctypes.util
import functools
import os
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any, Iterable, List, Optional

from .errors import Unsupported, of_errno


class _Error(ctypes.Structure):
    _fields_ = [("code", c_int), ("what", ctypes.c_char * 512), ("why", ctypes.c_char * 768),
                ("remedy", ctypes.c_char * 512)]


class CommandStruct(ctypes.Structure):
    """struct ward_command"""
    _fields_ = [("size", c_size_t), ("argv", POINTER(c_char_p)), ("env", POINTER(c_char_p)),
                ("directory", c_char_p), ("rows", c_uint), ("columns", c_uint)]


class QuestionStruct(ctypes.Structure):
    """struct ward_question"""
    _fields_ = [("size", c_size_t), ("number", c_uint64), ("kind", c_char_p),
                ("subject", c_char_p), ("host", c_char_p), ("rule", c_char_p),
                ("process", c_char_p), ("details", POINTER(c_char_p)), ("port", c_uint),
                ("count", c_uint), ("left_ms", c_uint)]


DECIDE = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(QuestionStruct), POINTER(c_uint))
ANSWERS = {None: 0, "once": 1, "run": 2, "time": 3, "deny": 4}
DETACHED = 1

# name -> what it takes before the error; each returns 0 or more, or -errno
_CALLS = {
    "spec_program": (c_void_p, c_char_p), "spec_policy": (c_void_p, c_char_p),
    "spec_profile": (c_void_p, c_char_p), "spec_workspace": (c_void_p, c_char_p),
    "spec_directory": (c_void_p, c_char_p), "spec_name": (c_void_p, c_char_p),
    "spec_set": (c_void_p, c_char_p, c_char_p), "spec_add": (c_void_p, c_char_p, c_char_p),
    "spec_mount": (c_void_p, c_char_p, c_char_p, c_int),
    "start": (c_void_p, c_uint, POINTER(c_void_p)), "open": (c_char_p, POINTER(c_void_p)),
    "wait": (c_void_p, c_int, POINTER(c_int)), "stats": (c_void_p, POINTER(c_void_p)),
    "pause": (c_void_p,), "resume": (c_void_p,), "kill": (c_void_p,), "remove": (c_void_p,),
    "list": (POINTER(c_void_p),), "decide": (c_void_p, DECIDE, c_void_p, c_int),
    "exec": (c_void_p, POINTER(CommandStruct), POINTER(c_void_p)),
    "process_stream": (c_void_p, c_int), "process_wait": (c_void_p, c_int, POINTER(c_int)),
    "process_signal": (c_void_p, c_int), "process_resize": (c_void_p, c_uint, c_uint),
}
_PLAIN = {
    "free": (None, (c_void_p,)), "spec_new": (c_void_p, ()), "spec_free": (None, (c_void_p,)),
    "spec_widen": (c_int, (c_void_p, c_int)), "box_free": (None, (c_void_p,)),
    "box_id": (c_char_p, (c_void_p,)), "box_name": (c_char_p, (c_void_p,)),
    "process_fd": (c_int, (c_void_p,)), "process_free": (None, (c_void_p,)),
    "version": (c_char_p, ()),
}


@functools.lru_cache(maxsize=None)
def library() -> Any:
    """LIBWARD, or wherever the system looks."""
    name = os.environ.get("LIBWARD") or "libward.so.1"
    try:
        found = ctypes.CDLL(name)
        for call, arguments in _CALLS.items():
            function = getattr(found, "ward_" + call)
            function.restype, function.argtypes = c_int, [*arguments, POINTER(_Error)]
        for call, (result, arguments) in _PLAIN.items():
            function = getattr(found, "ward_" + call)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as e:
        raise Unsupported(f"libward cannot be loaded: {e}",
                          remedy="install ward, set LIBWARD to its libward.so, or set WARD_HOST "
                                 "to use a server") from None
    return found


def call(name: str, *arguments: Any) -> int:
    """A function that can fail: its result, or an exception."""
    e = _Error()
    result = getattr(library(), "ward_" + name)(*arguments, byref(e))
    if result < 0:
        what, why, remedy = (t.decode("utf-8", "replace") for t in (e.what, e.why, e.remedy))
        raise of_errno(e.code or -result, ": ".join(filter(None, (what, why))), remedy)
    return int(result)


def text(name: str, *arguments: Any) -> bytes:
    """A function that hands out a text."""
    found = c_void_p()
    call(name, *arguments, byref(found))
    try:
        return ctypes.string_at(found)
    finally:
        library().ward_free(found)


def array(words: Iterable[str]) -> Any:
    """A NULL-terminated array of texts."""
    encoded: List[Optional[bytes]] = [as_path(w) for w in words]
    return (c_char_p * (len(encoded) + 1))(*encoded, None)


def as_path(text_: str) -> bytes:
    """Bytes of a word or path; a NUL would cut it off."""
    found = os.fsencode(text_)
    if b"\0" in found:
        raise of_errno(22, "a text has a zero byte", "leave it out")
    return found


def milliseconds(timeout: Optional[float]) -> int:
    """Seconds -> what libward takes; None: for ever."""
    return -1 if timeout is None else max(0, min(int(timeout * 1000), 2 ** 31 - 1))
