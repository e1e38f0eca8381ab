"""What tests of the gvisor engine share."""
import json
import os


def usable(t):
    """Skips where the machine has no runsc."""
    engine = next(e for e in json.loads(t.ward("doctor", "--json").out)["engines"] if e["name"] == "gvisor")
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
                f.write(f"#!/bin/sh\n[ \"$1\" != --version ] || {{ echo runsc version 0.0~{date}.0; exit; }}\nexec /usr/bin/runsc \"$@\"\n")
            os.chmod(part, 0o755)
            os.rename(part, path)
    return {"WARD_RUNSC": path}
