"""The attacks on the gateway once more, on a kernel without nf_tables: one listening socket a port,
and no other rule."""
import errno
import glob
import importlib.util
import os

from harness import escape, filters, timeout

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "escape")


def attack(path):
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(f"attack_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    @timeout(getattr(module, "TIMEOUT", 60))
    def test(t):
        s = escape.Scene(t, module, False)
        module.scene(s)
        s.wrap = [*s.wrap, *filters.without(t, errno.EPROTONOSUPPORT, "NF_TABLES")]
        r = s.run_ward()
        t.check(escape.BEGAN in r.err + r.out, f"the attack never ran (exit {r.rc})")
        t.contains(r.report["layers"]["net namespace"]["note"] or "", "no nf_tables", "note")
        t.check(not module.escaped(s, r), f"ESCAPED: {escape.first_sentence(module)}")
    test.__doc__ = escape.first_sentence(module)
    test.__name__ = f"test_{name}"
    test.slow = getattr(module, "SLOW", False)
    return test


for _path in sorted(glob.glob(os.path.join(HERE, "gate_*.py"))):
    _test = attack(_path)
    globals()[_test.__name__] = _test
