"""What tests of the gvisor engine share."""
import contextlib
import json
import os

from . import users


def usable(t):
    """Skips where the machine has no runsc."""
    path = os.path.join(t.cache, f"gvisor-{t.as_user}-{os.stat(t.ward_path).st_mtime_ns}")
    try:
        with open(path, encoding="utf-8") as f:
            engine = json.load(f)
    except OSError:	# the doctor tries every runtime: once is enough
        engine = next(e for e in json.loads(t.ward("doctor", "--json", timeout=60).out)["engines"]
                      if e["name"] == "gvisor")
        with t.root() if users.IS_ROOT else contextlib.nullcontext():
            with open(f"{path}.{os.getpid()}", "w", encoding="utf-8") as f:
                json.dump(engine, f)
            os.chmod(f"{path}.{os.getpid()}", 0o644)
            os.rename(f"{path}.{os.getpid()}", path)
    if not engine["usable"]:
        t.skip(engine["why"])
    return engine["about"]


def other_version(t, date="20240728"):
    """The environment in which runsc says that it is a version whose inside ward does not know."""
    path = os.path.join(t.cache, f"runsc-of-{date}")
    with t.root():
        if not os.path.exists(path):
            part = f"{path}.{os.getpid()}"
            with open(part, "w") as f:
                f.write(f"#!/bin/sh\n[ \"$1\" != --version ] || {{ echo runsc version "
                        f"0.0~{date}.0; exit; }}\nexec /usr/bin/runsc \"$@\"\n")
            os.chmod(part, 0o755)
            os.rename(part, path)
    return {"WARD_RUNSC": path}
