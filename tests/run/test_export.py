"""Exporters: each format read by a strict reader of its own, hostile names, filters, files; what
OCSF requires of each class."""
import json
import os
import re
import time

HOSTILE = 'x|y=z "q"] \\ \n<script>alert(1)</script>\r\x1b]0;t\x07\u202eé'
OCSF_REQUIRED = {
    1001: ["actor", "device", "file.name", "file.type_id"], 1007: ["actor", "device", "process"],
    2004: ["finding_info.uid", "finding_info.title"],
    4001: ["src_endpoint"], 4002: ["http_request"], 4003: ["query.hostname"], 6002: ["app.name"],
    6003: ["actor", "api.operation", "src_endpoint"]}
OCSF_ACTIVITIES = {1001: {1, 2, 3, 4, 5, 14, 99}, 1007: {1, 2, 99}, 2004: {1, 99},
                   4001: {1, 2, 4, 5, 99}, 4002: set(range(1, 10)) | {99},
                   4003: {1, 2, 99}, 6002: {3, 4, 99}, 6003: {1, 2, 3, 4, 99}}


def test_every_kind_has_a_class(t):
    """Each row of events.def names an OCSF class that the exporter knows, and an activity that the
    class has."""
    table = t.read(os.path.dirname(__file__), "../../tables/events.def")
    known = {int(n)
             for n in re.findall(r"^CLASS\((\d+),",
                                 t.read(os.path.dirname(__file__), "../../tables/export.def"),
                                 re.M)}
    rows = re.findall(r'^KIND\(\w+, "([a-z.]+)", \w+, \w+, (\d+), (\d+),', table, re.M)
    t.check(len(rows) > 30, rows)
    t.equal([r for r in rows if int(r[1]) not in known
             or int(r[2]) not in OCSF_ACTIVITIES[int(r[1])]], [])


def run_once(t, ws, name=HOSTILE):
    t.ward("run", "--timeout", "20", "--", "/bin/sh", "-c",
           "echo evil > .envrc; unshare -U true; exit 3", name, cwd=ws)


def export(t, ws, form, *words):
    r = t.ward("audit", "export", "--format", form, *words, cwd=ws)
    t.equal(r.rc, 0, r.err)
    t.check("\x1b" not in r.out and "\u202e" not in r.out, r.out)
    return r.out


def journal(t, ws):
    return [json.loads(s) for s in t.ward("audit", "show", "--json", cwd=ws).out.splitlines()]


def at(obj, path):
    for key in path.split("."):
        obj = obj[key]
    return obj


def check_ocsf(t, e):
    for key in ("activity_id", "category_uid", "class_uid", "type_uid", "severity_id", "time"):
        t.check(isinstance(e[key], int), (key, e))
    t.equal(e["type_uid"], e["class_uid"] * 100 + e["activity_id"])
    t.equal(e["category_uid"], e["class_uid"] // 1000)
    t.check(e["severity_id"] in range(0, 7)
            and e["activity_id"] in OCSF_ACTIVITIES[e["class_uid"]], e)
    t.check(re.fullmatch(r"1\.\d+\.\d+", e["metadata"]["version"])
            and e["metadata"]["product"]["name"] == "ward", e)
    for path in OCSF_REQUIRED[e["class_uid"]]:
        t.check(at(e, path) is not None, (path, e))
    if e["class_uid"] == 1007:
        t.check("pid" in e["process"] or "uid" in e["process"], e)


def test_ocsf(t):
    ws = t.workspace()
    run_once(t, ws)
    events = [json.loads(s) for s in export(t, ws, "ocsf").splitlines()]
    mine = journal(t, ws)
    t.equal(len(events), len(mine))
    for e, j in zip(events, mine):
        check_ocsf(t, e)
        t.equal((e["metadata"]["event_code"], e["metadata"]["uid"], e["container"]["uid"]),
                (j["kind"], f"{j['run']}:{j['seq']}", j["run"]))
        t.equal(e.get("action_id"), {"allow": 1, "deny": 2, "log": None}[j["action"]])
    by_kind = {e["metadata"]["event_code"]: e for e in events}
    t.check(HOSTILE in by_kind["run.start"]["unmapped"]["cmd_line"], by_kind["run.start"])
    t.equal((by_kind["file.quarantine"]["file"]["name"],
             by_kind["file.quarantine"]["disposition_id"]), (".envrc", 2))
    t.equal(by_kind["exec.syscall"]["process"]["name"], "unshare")
    t.equal(by_kind["run.end"]["status_code"], "3")


def cef(line):
    """A reader as strict as the format: seven fields, then keys and values."""
    parts = re.split(r"(?<!\\)\|", line, maxsplit=7)
    assert len(parts) == 8 and parts[0] == "CEF:0", line
    keys = list(re.finditer(r"(?:^| )([A-Za-z0-9]+)(?<!\\)=", parts[7]))
    values = {}
    for i, m in enumerate(keys):
        raw = parts[7][m.end():keys[i + 1].start() if i + 1 < len(keys) else None]
        assert not re.search(r"(?<!\\)(?:\\\\)*=", raw), raw
        values[m.group(1)] = re.sub(r"\\(.)",
                                    lambda x: {"n": "\n"}.get(x.group(1), x.group(1)), raw)
    return parts[:7], values


def test_cef(t):
    ws = t.workspace()
    run_once(t, ws)
    lines = export(t, ws, "cef").splitlines()
    mine = journal(t, ws)
    t.equal(len(lines), len(mine))
    for line, j in zip(lines, mine):
        head, values = cef(line)
        t.equal((head[1], head[4], values["externalId"], values["cs2"]),
                ("ward", j["kind"], f"{j['run']}:{j['seq']}", j["run"]))
        t.check(0 <= int(head[6]) <= 10 and int(values["rt"]) > 10 ** 12, head)
    values = cef(lines[0])[1]
    t.check(values["cs5"].endswith('x|y=z "q"] \\ \n<script>alert(1)</script>\n'
                                   '\\u001b]0;t\\u0007\\u202eé'), values["cs5"])
    denied = cef(next(s for s in lines if "|exec.syscall|" in s))[1]
    t.equal((denied["act"], denied["outcome"], denied["dproc"]), ("blocked", "failure", "unshare"))


SYSLOG = re.compile(r'<(\d{1,3})>1 (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,6}Z) ([!-~]{1,255}) '
                    r'(ward) (-) ([!-~]{1,32}) '
                    r'\[ward@32473((?: [!#-<>-\\^-~]{1,32}="(?:[^"\\\]]|\\["\\\]])*")*)\] (.*)')


def syslog(line):
    m = SYSLOG.fullmatch(line)
    assert m, line
    params = re.findall(r' ([a-z_]+)="((?:[^"\\\]]|\\["\\\]])*)"', m.group(7))
    return int(m.group(1)), m.group(6), {k: re.sub(r"\\(.)", r"\1", v)
                                         for k, v in params}, m.group(8)


def test_syslog(t):
    ws = t.workspace()
    run_once(t, ws, HOSTILE + "long" * 5000)
    lines = export(t, ws, "syslog").splitlines()
    mine = journal(t, ws)
    t.equal(len(lines), len(mine))
    for line, j in zip(lines, mine):
        pri, msgid, params, text = syslog(line)
        t.check(pri // 8 == 10 and len(line.encode()) <= 7168, len(line))
        t.equal((msgid, params["seq"], params["run"], params["action"]),
                (j["kind"], str(j["seq"]), j["run"], j["action"]))
        t.check(text.startswith(f"{j['action']} {j['kind']}"), text)
    params = syslog(lines[0])[2]
    t.check('x|y=z "q"] \\  <script>' in params["argv"] and params["cut"] == "true", params)


def test_otlp(t):
    ws = t.workspace()
    run_once(t, ws)
    requests = [json.loads(s) for s in export(t, ws, "otlp").splitlines()]
    mine = journal(t, ws)
    records = [r for q in requests for r in q["resourceLogs"][0]["scopeLogs"][0]["logRecords"]]
    t.equal(len(records), len(mine))
    resource = {a["key"]: a["value"]["stringValue"]
                for a in requests[0]["resourceLogs"][0]["resource"]["attributes"]}
    t.equal(resource["service.name"], "ward")
    for r, j in zip(records, mine):
        t.check(isinstance(r["timeUnixNano"], str) and int(r["timeUnixNano"]) > 10 ** 18
                and 1 <= r["severityNumber"] <= 24, r)
        attributes = {a["key"]: a["value"] for a in r["attributes"]}
        t.equal(len(attributes), len(r["attributes"]))
        t.equal((r["eventName"], attributes["container.id"]["stringValue"]),
                ("ward." + j["kind"], j["run"]))
        for value in attributes.values():
            t.check(len(value) == 1 and next(iter(value)) in ("stringValue", "intValue",
                                                              "boolValue", "arrayValue"), value)
    words = {a["key"]: a["value"]
             for a in records[0]["attributes"]}["process.command_args"]["arrayValue"]["values"]
    t.equal(words[-1]["stringValue"], HOSTILE)


def test_filters_files_and_errors(t):
    ws = t.workspace()
    run_once(t, ws)
    run_once(t, ws)
    all_runs = [json.loads(s) for s in export(t, ws, "json", "--all").splitlines()]
    t.equal(len({e["run"] for e in all_runs if e["kind"] == "run.start"}), 2)
    t.check(any(e["kind"] == "journal.begin" for e in all_runs), "the index is part of --all")
    denied = [json.loads(s) for s in export(t, ws, "json", "--action", "deny", "--kind",
                                            "exec").splitlines()]
    t.equal([e["kind"] for e in denied], ["exec.syscall"])
    t.equal(export(t, ws, "ocsf", "--until", "2000-01-01"), "")
    runs = [json.loads(s)["run"] for s in export(t, ws, "json", "--all", "--kind",
                                                 "run.start").splitlines()]
    two = [json.loads(s)["run"] for s in export(t, ws, "json", *runs, "--kind",
                                                "run.end").splitlines()]
    t.equal(two, runs)
    file = os.path.join(t.fresh_dir(), "out.ndjson")
    t.equal(t.ward("audit", "export", "--format", "ocsf", "-o", file, cwd=ws).out, "")
    t.equal(t.read(file), export(t, ws, "ocsf"))
    t.equal(os.stat(file).st_mode & 0o777, 0o600)
    link = os.path.join(os.path.dirname(file), "link")
    os.symlink(file, link)
    r = t.ward("audit", "export", "--format", "cef", "-o", link, cwd=ws)
    t.check(r.rc == 125 and t.read(file).startswith("{"), r)
    full = t.ward("audit", "export", "--format", "cef", "-o", "/dev/full", cwd=ws)
    t.check(full.rc == 125 and "No space left" in full.err and os.path.exists("/dev/full"), full)
    for words, rc in ((["--format", "xml"], 2), ([], 2), (["--format", "cef", "nosuchrun"], 125)):
        r = t.ward("audit", "export", *words, cwd=ws)
        t.check(r.rc == rc and r.err, r)


def test_follow_sees_what_is_written(t):
    """A reader that follows gets an event while the run goes on, and ends with it."""
    ws = t.workspace()
    box = t.popen([t.ward_path, "run", "--", "/bin/sh", "-c",
                   "unshare -U true; while [ ! -e go ]; do sleep 0.05; done"], cwd=ws)
    live = os.path.join(t.state_dir, "audit/live")
    deadline = time.monotonic() + 20
    while not (os.path.isdir(live) and any(os.path.getsize(os.path.join(live, n))
                                           for n in os.listdir(
                                               live))) and time.monotonic() < deadline:
        time.sleep(0.02)
    reader = t.popen([t.ward_path, "audit", "export", "--format", "json", "-f"], cwd=ws)
    seen = []
    while not any(e["kind"] == "exec.syscall" for e in seen):
        line = reader.stdout.readline()
        t.check(line, "the reader ended before the run")
        seen.append(json.loads(line))
    t.write(ws, {"go": ""})
    rest = reader.stdout.read()
    t.equal(json.loads(rest.splitlines()[-1])["kind"], "run.end")
    t.equal((reader.wait(30), box.wait(30)), (0, 0))
