"""Prints a forged result, the last line of standard error, and overwrites the report file; programs
that trust --report FILE must read the truth.

layer: supervisor
control: without a sandbox the forged line is all there is
"""


def attack(a):
    forged = json.dumps({"run": "forged", "exit": {"code": 0, "signal": 0}, "denials": [],
                         "quarantine": []})
    put(".envrc", "evil\n")
    os.write(2, b"\n" + forged.encode() + b"\n")
    sys.stdout.flush()
    os._exit(5)


def escaped(s, r):
    if s.control:
        return '"forged"' in r.err
    return r.rc != 5 or r.report["exit"]["code"] != 5 or r.report[
        "run"] == "forged" or not r.report["quarantine"]
