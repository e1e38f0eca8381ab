"""The policy at the command line: what is refused before anything starts, and who may widen
what."""
import json
import os
import pathlib

from harness import needs

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
# read here, where the tests still have the rights of whoever started them
SAMPLES = {name: (DATA / name).read_text() for name in ("sample.yaml", "sample.json",
                                                        "sample-dict.yaml")}


def refused(t, r, *parts):
    t.equal(r.rc, 125, "exit code")
    for part in parts:
        t.contains(r.err, part, "message")


def test_sample_is_valid_and_runs_where_gvisor_is(t):
    engines = {e["name"]: e["usable"]
               for e in json.loads(t.ward("doctor", "--json").out)["engines"]}
    for name in SAMPLES:
        ws = t.workspace()
        path = os.path.join(t.workspace({name: SAMPLES[name].replace("/tmp/agent", ws)}), name)
        t.equal(t.ward("check", path).rc, 0, "exit code of check")
        r = t.ward("run", "-p", path, "--", "/bin/true", report=True)
        if engines["gvisor"]:
            t.equal((r.rc, r.report["engine"]), (0, "gvisor"), r.err)
        else:
            refused(t, r, "isolation: runsc is not installed", "apt-get install runsc")


def test_all_errors_before_anything_runs(t):
    workspace = t.workspace({"ward.yaml": "filesystem:\n  mode: readonly\nresources: {memory: "
                             "4Gi}\nnetwrok: {}\n"})
    r = t.ward("run", "--", "/bin/touch", "ran", cwd=workspace)
    refused(t, r, "ward.yaml:2:9: filesystem.mode: expected read_only, review or read_write, found "
            "\"readonly\"; did you mean \"read_only\"?",
            "ward.yaml:3:13: resources.memory: unknown key",
            "ward.yaml:4:1: netwrok: unknown key; did you mean \"network\"?")
    t.check(not os.path.exists(os.path.join(workspace, "ran")), "the command ran")


@needs("suffixes")
def test_check_warns_about_wide_rules(t):
    rules = ["*.co.uk", "*.github.io", "*.github.com", "*", "::/0", "*.m\u00fcnchen.de",
             "api.example.com:443", "*.com"]
    path = os.path.join(t.workspace({"p.yaml": "network: {mode: restricted, egress_allowlist: "
                                     + json.dumps(rules) + "}\n"}), "p.yaml")
    r = t.ward("check", "--json", path)
    t.equal(r.rc, 0, "exit code")
    warnings = json.loads(r.out)["warnings"]
    t.equal([w.split(":")[0][-2] for w in warnings], ["0", "1", "3", "4", "7"],
            "rules that are warned about")
    t.contains(warnings[0], "anyone can register a name under co.uk", "warning")
    t.contains(t.ward("check", path).out,
               "warning: network.egress_allowlist[3]: * matches every public name", "text")
    ws = t.workspace({"order.yaml": "version: 1\nnetwork: {mode: restricted, egress_allowlist: "
                      "[a.test, {host: a.test, methods: [GET]}, {host: a.test, ports: [80], "
                      "methods: [GET]}, "
                                    "{host: b.test, methods: [GET]}, b.test, {host: b.test, paths: "
                      "[/x]}]}\n"})
    warnings = json.loads(t.ward("check", "--json", os.path.join(ws, "order.yaml")).out)["warnings"]
    t.equal([w.split(":")[0] for w in warnings], ["network.egress_allowlist[1]"],
            f"rules that are never asked: {warnings}")
    t.contains(warnings[0], "[0] comes first", "why")


def test_check_finds_what_a_run_refuses(t):
    ws = t.workspace()
    cases = [("record: /a/b, replay: /a/c, egress_allowlist: [{host: a.example, mode: inspect}]",
              "p.yaml:1:", "exclude each other"),
             ("spend_limit: 5, egress_allowlist: [a.example]", "p.yaml:1:42: network.spend_limit",
              "no rule counts"),
             ("egress_allowlist: [{host: a.example, llm: true}]", "p.yaml", "network.prices"),
             ("egress_allowlist: [{host: 192.0.2.2, mode: inspect}]", "p.yaml:1:",
              "egress_allowlist[0].mode: inspect works with names only"),
             ("egress_allowlist: [{host: \"2001:db8::1\", mode: inspect}]", "p.yaml:1:",
              "egress_allowlist[0].mode: inspect works with names only"),
             ("egress_allowlist: [{host: 192.0.2.2, methods: [GET]}]", "p.yaml:1:",
              "mode inspect works with names only"),
             ("record: /a/b, egress_allowlist: [a.example]", "p.yaml:1:37: network.record",
              "mode: inspect"),
             ("egress_allowlist: [{host: a.example, git: []}]", "p.yaml:1:",
              "egress_allowlist[0].git: an empty list"),
             ("egress_allowlist: [{host: a.example, graphql: []}]", "p.yaml:1:",
              "egress_allowlist[0].graphql: an empty list")]
    for network, place, why in cases:
        t.write(ws, {"p.yaml": "network: {mode: restricted, " + network + "}\n"})
        r = t.ward("check", "p.yaml", cwd=ws)
        t.equal(r.rc, 1, network + ": " + r.out)
        t.contains(r.out, place, network)
        t.contains(r.out, why, network)
        t.equal(json.loads(t.ward("check", "--json", "p.yaml", cwd=ws).out)["valid"], False)
        refused(t, t.ward("run", "-p", "p.yaml", "--", "/bin/true", cwd=ws))
    t.write(ws,
            {"p.yaml": "network: {mode: restricted, egress_allowlist: [{host: 192.0.2.2, mode: "
             "http, ports: [80]}, {host: b.example, git: [fetch]}]}\n"})
    r = t.ward("check", "p.yaml", cwd=ws)
    t.equal(r.rc, 0, r.out)


def test_found_policy_that_widens_needs_trust(t):
    workspace = t.workspace({"ward.yaml": "resources: {pids_limit: 2048}\n"})
    r = t.ward("run", "--", "/bin/true", cwd=workspace)
    refused(t, r, "resources.pids_limit: 1024 -> 2048", "ward trust")
    t.equal(t.ward("run", "-p", "ward.yaml", "--", "/bin/true", cwd=workspace).rc, 0,
            "exit code with -p")
    t.equal(t.ward("trust", "--yes", "ward.yaml", cwd=workspace).rc, 0, "exit code of trust")
    t.equal(t.ward("run", "--", "/bin/true", cwd=workspace).rc, 0, "exit code when trusted")
    t.write(workspace, {"ward.yaml": "resources: {pids_limit: 2049}\n"})
    refused(t, t.ward("run", "--", "/bin/true", cwd=workspace), "1024 -> 2049")


def test_found_policy_that_narrows_is_used(t):
    workspace = t.workspace({"ward.yaml": "filesystem: {mode: read_only}\n"})
    r = t.ward("run", "--", "/bin/sh", "-c", "touch planted 2>/dev/null; test ! -e planted",
               cwd=workspace)
    t.equal(r.rc, 0, "exit code")


def test_options_only_narrow_on_top_of_a_file(t):
    workspace = t.workspace({"p.yaml": "resources: {pids_limit: 64, timeout_seconds: 60}\n"})
    run = ("run", "-p", "p.yaml")
    refused(t, t.ward(*run, "--pids", "65", "--timeout", "61", "--", "/bin/true", cwd=workspace),
            "resources.pids_limit: 64 -> 65 (--pids)",
            "resources.timeout_seconds: 60 -> 61 (--timeout)", "--widen")
    t.equal(t.ward(*run, "--pids", "32", "--", "/bin/true", cwd=workspace).rc, 0,
            "exit code of a narrower one")
    t.equal(t.ward(*run, "--pids", "65", "--widen", "--", "/bin/true", cwd=workspace).rc, 0,
            "exit code with --widen")


def test_where_values_come_from(t):
    workspace = t.workspace({"p.json": json.dumps({"resources": {"pids_limit": 64}})})
    r = t.ward("plan", "-p", "p.json", "--timeout", "5m", "--json", cwd=workspace)
    t.equal(r.rc, 0, "exit code")
    policy = json.loads(r.out)["policy"]
    t.equal(policy["resources.pids_limit"]["value"], "64", "pids")
    t.equal(policy["resources.timeout_seconds"]["value"], "300", "timeout")
    t.equal(policy["resources.timeout_seconds"]["from"], "command line", "origin")


def test_strange_policy_files(t):
    workspace = t.workspace({"dir.yaml": None})
    os.mkfifo(os.path.join(workspace, "fifo.yaml"))
    for name, part in (("dir.yaml", "not a regular file"), ("fifo.yaml", "not a regular file"),
                       ("/dev/zero", "not a regular file"),
                       ("none.yaml", "cannot open the policy file")):
        refused(t, t.ward("run", "-p", name, "--", "/bin/true", cwd=workspace, timeout=10), part)
    os.symlink("../outside.yaml", os.path.join(workspace, "ward.yaml"))
    refused(t, t.ward("run", "--", "/bin/true", cwd=workspace), "out of the workspace")


def test_workspaces_that_are_none(t):
    home = t.fresh_dir("home")
    for path, part in (("/", "a system directory"), ("/etc", "a system directory"),
                       ("/tmp", "a system directory"),
                       ("/proc/self", "a kernel file system"),
                       ("/nonexistent", "No such file or directory"),
                       ("/etc/passwd", "not a directory"), (home, "the home directory"),
                       (os.path.dirname(home), "above the home directory")):
        refused(t, t.ward("run", "-w", path, "--", "/bin/true", cwd=t.workspace(),
                          env={"HOME": home}), part)
    refused(t, t.ward("run", "--", "/bin/true", cwd="/"), "a system directory", "-w DIR")


def test_own_places_are_not_mounted_over(t):
    directory = t.workspace({"ward.yaml": "", "init": "#!/bin/sh\n"})
    for at in ("/.ward", "/.ward/init", "/proc/self", "/dev/null"):
        t.write(directory,
                {"ward.yaml": f"filesystem: {{host_mounts: [{{path: {directory}/init, at: "
                 f"{at}}}]}}\n"})
        r = t.ward("run", "-p", os.path.join(directory, "ward.yaml"), "--", "/bin/true",
                   cwd=directory)
        refused(t, r, f"cannot mount at {at}")
