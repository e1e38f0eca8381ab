"""The engines: chosen by the policy's list, shown by doctor, refused where they cannot do what the
policy wants."""
import json


def test_the_first_engine_that_can_be_used_is_taken(t):
    ws = t.workspace()
    r = t.ward("run", "--isolation", "[vm, native]", "--", "true", cwd=ws, report=True)
    t.equal((r.rc, r.report["engine"]), (0, "native"), r.err)
    t.check(any("vm: there is no " in n for n in r.report["notes"]), r.report["notes"])
    r = t.ward("run", "--isolation", "[vm]", "--", "true", cwd=ws)
    t.check(r.rc == 125 and "isolation: vm: there is no " in r.err, r)
    engines = {e["name"]: e for e in json.loads(t.ward("doctor", "--json").out)["engines"]}
    t.equal(sorted(engines), ["gvisor", "native", "oci", "vm", "wasm"])
    t.check(engines["native"]["usable"] and not engines["vm"]["usable"] and engines["vm"]["why"],
            engines)
    t.check("  vm                not usable    vm: there is no " in t.ward("doctor").out, "doctor")
