"""Live sinks: real rsyslog over TCP and TLS, a Unix socket and UDP, an OTLP collector, a file, a
command. Collectors that are away, die, refuse, or do not read; nothing is lost silently, and the
run does not wait."""
import json
import os
import re
import signal
import socket
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from harness import by_turns

RSYSLOG = """
global(workDirectory="{dir}" maxMessageSize="64k"{tls})
module(load="imtcp"{streams})
template(name="raw" type="string" string="%rawmsg%\\n")
ruleset(name="r") {{ action(type="omfile" file="{out}" template="raw" flushOnTXEnd="on") }}
input(type="imtcp" port="{port}" ruleset="r")
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Rsyslog:
    def __init__(self, t, tls=None, port=None):
        self.t, self.dir, self.port = t, t.fresh_dir("rsyslog"), port or free_port()
        self.out = os.path.join(self.dir, "out.log")
        names, streams = "", ""
        if tls:
            names = ' defaultNetstreamDriver="ossl" ' + " ".join(
                f'defaultNetstreamDriver{k}File="{v}"' for k, v in tls.items())
            streams = ' streamDriver.name="ossl" streamDriver.mode="1" streamDriver.authMode="anon"'
        t.write(self.dir,
                {"conf": RSYSLOG.format(dir=self.dir, out=self.out, port=self.port, tls=names,
                                        streams=streams)})
        os.chmod(os.path.join(self.dir, "conf"), 0o644)
        self.process = None
        self.start()

    def start(self):
        self.process = self.t.popen(["/usr/sbin/rsyslogd", "-n", "-f",
                                     os.path.join(self.dir, "conf"), "-i",
                                     os.path.join(self.dir, "pid")])
        self.t.wait_until(self.listens, 20, "rsyslogd does not listen")

    def listens(self):
        self.t.check(self.process.poll() is None, "rsyslogd has ended")
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.port)) == 0

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def messages(self):
        found = []
        for line in (self.t.read(self.out) or "").splitlines():
            m = re.fullmatch(r"<\d+>1 \S+ \S+ ward - (\S+) \[ward@32473 seq=\"(\d+)\" "
                             r"run=\"(\S+?)\" .*", line)
            if m:
                found.append((m.group(3), int(m.group(2)), m.group(1)))
        return found


def sinks(*maps):
    return "audit.sinks=" + json.dumps(maps)


def journal(t):
    place = os.path.join(t.state_dir, "audit/runs")
    return [json.loads(line) for name in sorted(os.listdir(place))
            for line in t.read(place, name).splitlines()]


def all_arrived(t, got):
    """Every event of every journal is there, at least once."""
    wanted = {(e["run"], e["seq"], e["kind"]) for e in journal(t)}
    missing = wanted - set(got)
    return not missing


def run(t, ws, sink, script="unshare -U true; exit 3", *more, **options):
    extra = sink if isinstance(sink, tuple) else (sink,)
    return t.ward("run", "--verbose", "--set", sinks(*extra), *more, "--", "/bin/sh", "-c", script,
                  cwd=ws, **options)


def left(t):
    place = os.path.join(t.state_dir, "audit/sinks")
    return sorted(os.listdir(place)) if os.path.isdir(place) else []


def forget(t):
    """What a test left on purpose."""
    for name in left(t):
        os.unlink(os.path.join(t.state_dir, "audit/sinks", name))


def test_rsyslog_tcp_killed_and_restarted(t):
    ws = t.workspace()
    log = Rsyslog(t)
    sink = {"type": "syslog", "to": f"tcp://127.0.0.1:{log.port}", "wait_seconds": 20}
    r = run(t, ws, sink)
    t.equal(r.rc, 3, r.err)
    t.wait_until(lambda: all_arrived(t, log.messages()), 10, "not all events are in rsyslog's file")
    t.equal(left(t), [])
    box = t.ward_start("run", "--verbose", "--set", sinks(sink), "--", "/bin/sh", "-c",
                       "n=0; while [ ! -e go ]; do unshare -U true 2>/dev/null; n=$((n+1)); [ $n = "
                       "30 ] && touch up; sleep 0.01; done; exit 0", cwd=ws)
    t.wait_until(lambda: os.path.exists(os.path.join(ws, "up")), 20, "the run does not go")
    log.kill()
    time.sleep(0.3)	# events go on meanwhile
    log.start()
    t.write(ws, {"go": ""})
    r = t.finish_ward(box, 60)
    t.equal(r.rc, 0, r.err)
    t.check("delivered" not in r.err, r.err)
    t.wait_until(lambda: all_arrived(t, log.messages()), 10,
                 "events are missing after rsyslog was killed")
    t.equal(left(t), [])


def certificates(t):
    d = t.fresh_dir("ca")
    t.write(d, {"ext": "subjectAltName=DNS:localhost,IP:127.0.0.1\n"})

    def openssl(*words):
        t.run("openssl", *words, cwd=d, check=True)
    for name in ("ca", "other"):
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                "-days", "2", "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out",
                f"{name}.pem")
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
            "/CN=collector", "-keyout", "server.key", "-out", "server.csr")
    openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
            "-CAcreateserial", "-days", "2", "-extfile", "ext", "-out", "server.pem")
    return d


def test_rsyslog_tls_is_verified(t):
    ws = t.workspace()
    d = certificates(t)
    log = Rsyslog(t, tls={"CA": f"{d}/ca.pem", "Cert": f"{d}/server.pem", "Key": f"{d}/server.key"})
    good = {"type": "syslog", "to": f"tls://localhost:{log.port}", "ca": f"{d}/ca.pem",
            "wait_seconds": 20}
    r = run(t, ws, good)
    t.equal(r.rc, 3, r.err)
    t.wait_until(lambda: all_arrived(t, log.messages()), 10, "not all events came over TLS")
    t.equal(left(t), [])
    before = len(log.messages())
    # another authority, then another name: nothing is said to such a collector, and nothing is lost
    t.run("cp", f"{d}/other.pem", f"{d}/trusted.pem", check=True)
    for change in ({"ca": f"{d}/trusted.pem"}, {"to": f"tls://127.0.0.2:{log.port}"}):
        r = run(t, ws, dict(good, wait_seconds=0.5) | change)
        t.equal(r.rc, 3, r.err)
        t.check(re.search(r"\d events are not yet delivered to tls://.*(verify "
                          r"failed|certificate|mismatch)", r.err), r.err)
    t.equal(len(log.messages()), before)
    t.equal(len(left(t)), 2)
    t.run("cp", f"{d}/ca.pem", f"{d}/trusted.pem", check=True)
    r = t.ward("audit", "send", "--json")
    # the authority is the right one now; the name still is not
    t.check(r.rc == 1 and json.loads(r.out)["left"] >= 3 and len(left(t)) == 1, r)
    forget(t)
    index = t.read(t.state_dir, "audit/index.jsonl")
    t.contains(index, '"kind":"journal.sink"')


class Collector(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        s = self.server
        body = self.rfile.read(int(self.headers["Content-Length"]))
        answer = s.answers.pop(0) if s.answers else (200, b"{}", {})
        if answer[0] == 200:
            s.requests.append((self.path, dict(self.headers), json.loads(body)))
        s.seen.append(answer[0])
        self.send_response(answer[0])
        for key, value in answer[2].items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(answer[1])))
        self.end_headers()
        self.wfile.write(answer[1])


def collector(t, answers=(), port=0):
    server = ThreadingHTTPServer(("127.0.0.1", port), Collector)
    server.answers, server.requests, server.seen, server.handle_error = list(
        answers), [], [], lambda *_: None
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    t.defer(server.server_close)
    t.defer(server.shutdown)
    return server


def records(server):
    got = []
    for path, headers, body in server.requests:
        assert path == "/v1/logs" and headers["Content-Type"] == "application/json"
        for r in body["resourceLogs"][0]["scopeLogs"][0]["logRecords"]:
            uid = next(a["value"]["stringValue"] for a in r["attributes"]
                       if a["key"] == "log.record.uid")
            got.append((uid.rsplit(":", 1)[0], int(uid.rsplit(":", 1)[1]), r["eventName"][5:]))
    return got


def test_otlp(t):
    ws = t.workspace()
    server = collector(t, [(503, b"", {"Retry-After": "1"}), (502, b"", {})])
    sink = {"type": "otlp", "to": f"http://127.0.0.1:{server.server_port}",
            "token": "env:COLLECTOR_TOKEN", "wait_seconds": 20}
    r = run(t, ws, sink, env={"COLLECTOR_TOKEN": "TOKENTOKENTOKEN"})
    t.equal(r.rc, 3, r.err)
    t.check(all_arrived(t, records(server)), server.requests)
    t.check(503 in server.seen and 502 in server.seen, server.seen)
    t.equal(server.requests[0][1]["Authorization"], "Bearer TOKENTOKENTOKEN")
    t.equal(left(t), [])
    # refused for good, and in part: counted
    server.answers = [(400, b"", {})]
    r = run(t, ws, dict(sink, token="env:PATH") | {"severity": "medium"})
    t.check("1 events were refused by http://" in r.err, r.err)
    server.answers = [(200, b'{"partialSuccess":{"rejectedLogRecords":"1"}}', {})]
    r = run(t, ws, dict(sink, severity="medium"), env={"COLLECTOR_TOKEN": "x"})
    t.check("1 events were refused by http://" in r.err, r.err)


def test_otlp_over_tls(t):
    """The certificate is verified, ours is shown, and the token is sent to nobody else."""
    ws = t.workspace()
    d = certificates(t)
    server = collector(t)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{d}/server.pem", f"{d}/server.key")
    context.load_verify_locations(f"{d}/other.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    server.socket = context.wrap_socket(server.socket, server_side=True,
                                        do_handshake_on_connect=False)
    sink = {"type": "otlp", "to": f"https://localhost:{server.server_port}/v1/logs",
            "ca": f"{d}/ca.pem", "cert": f"{d}/other.pem", "key": f"{d}/other.key",
            "token": "env:COLLECTOR_TOKEN",
            "wait_seconds": 20}
    r = run(t, ws, sink, env={"COLLECTOR_TOKEN": "TOKENTOKENTOKEN"})
    t.equal((r.rc, left(t)), (3, []), r.err)
    t.check(all_arrived(t, records(server)) and server.requests[0][1]["Authorization"]
            == "Bearer TOKENTOKENTOKEN", server.requests)
    before = len(server.requests)
    r = run(t, ws, dict(sink, ca=f"{d}/other.pem", wait_seconds=0.5),
            env={"COLLECTOR_TOKEN": "TOKENTOKENTOKEN"})
    t.check("events are not yet delivered to https://" in r.err and len(server.requests) == before,
            r.err)
    for name in left(t):
        t.check("TOKENTOKEN" not in t.read(t.state_dir, "audit/sinks", name),
                "the record has the token")
    forget(t)


def test_a_collector_that_is_away_gets_it_later(t):
    ws = t.workspace()
    port = free_port()
    sink = {"type": "otlp", "to": f"http://127.0.0.1:{port}", "wait_seconds": 0.3}
    r = run(t, ws, sink)
    t.equal(r.rc, 3, r.err)
    t.contains(r.err, f"events are not yet delivered to http://127.0.0.1:{port}")
    t.equal(len(left(t)), 1)
    t.equal(t.ward("audit", "verify").rc, 0)	# what the index says of it is part of the chain
    t.check("ward_sinks_pending 1\n" in t.ward("audit", "metrics").out, "the numbers know it")
    server = collector(t, port=port)
    # the next run takes along what was left
    r = run(t, ws, dict(sink, wait_seconds=20), "exit 0; true")
    t.equal(r.rc, 0, r.err)
    t.wait_until(lambda: t.ward("audit", "send").rc == 0, 20, "something is left")
    t.check(all_arrived(t, records(server)), server.requests)
    t.equal(left(t), [])


def test_a_pruned_journal_is_told(t):
    """What was pruned before it could be delivered is gone, and not silently."""
    ws = t.workspace()
    r = run(t, ws, {"type": "otlp", "to": f"http://127.0.0.1:{free_port()}", "wait_seconds": 0.3})
    t.equal((r.rc, len(left(t))), (3, 1), r.err)
    time.sleep(1.1)	# the order of journals is that of their names, which have seconds
    t.ward("run", "--set", "audit.sinks=[]", "--", "true", cwd=ws)
    t.equal(t.ward("audit", "prune", "--keep", "1").rc, 0)
    t.equal(t.ward("audit", "send").rc, 0)
    index = t.read(t.state_dir, "audit/index.jsonl")
    t.check('"why":"its journal is gone"' in index and left(t) == [], index)


def test_datagrams(t):
    ws = t.workspace()
    d = t.fresh_dir("socket")
    path = os.path.join(d, "log")
    unix = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    unix.bind(path)
    os.chmod(path, 0o777)
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("127.0.0.1", 0))
    with unix, udp:
        r = run(t, ws, ({"type": "syslog", "to": f"unix:{path}"},
                        {"type": "syslog", "to": f"udp://127.0.0.1:{udp.getsockname()[1]}",
                         "format": "cef"}))
        t.equal((r.rc, left(t)), (3, []), r.err)
        for s, part in ((unix, " [ward@32473 seq="), (udp, " - CEF:0|ward|ward|")):
            s.settimeout(5)
            got = [s.recv(65536).decode()]
            while "run.end" not in got[-1]:
                got.append(s.recv(65536).decode())
            t.check(all(re.match(r"<\d+>1 20", m) and part in m for m in got), got)
            t.check("run.start" in got[0] and any("exec.syscall" in m for m in got), got)


def test_a_collector_that_does_not_read_delays_nothing(t):
    ws = t.workspace()
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen(1)
    with server:
        sink = {"type": "otlp", "to": f"http://127.0.0.1:{server.getsockname()[1]}",
                "wait_seconds": 0.5}
        r = run(t, ws, sink, "i=0; while [ $i -lt 50 ]; do unshare -U true 2>/dev/null; "
                "i=$((i+1)); done; date +%s.%N > done; exit 0")
        t.equal(r.rc, 0, r.err)
        t.check(time.time() - float(t.read(ws, "done")) < 10, "the end waited too long")
        t.contains(r.err, "are not yet delivered to http://127.0.0.1")
        t.equal(len(left(t)), 1)
        began = time.monotonic()
        r = run(t, ws, dict(sink, on_lag="stop"),
                "i=0; while [ $i -lt 600 ]; do unshare -U true 2>/dev/null; i=$((i+1)); sleep "
                "0.05; done; exit 0")
        t.check(r.rc not in (0, 3) and "events could not be delivered" in r.err, r)
        t.check(time.monotonic() - began < 25, "the run was not ended")
        forget(t)


def test_file_rotates_and_survives_a_full_disk(t):
    ws = t.workspace()
    d = t.fresh_dir("full")
    t.run("mount", "-t", "tmpfs", "-o", "size=256k,mode=0777", "none", d, root=True, check=True)
    t.defer(lambda: t.run("umount", "-l", d, root=True))
    file = os.path.join(d, "events.ndjson")
    sink = {"type": "file", "to": file, "format": "ocsf", "wait_seconds": 0.5, "max_bytes": 65536,
            "keep": 2}
    t.run("sh", "-c", f"head -c 300000 /dev/zero > {d}/filler; true")
    r = run(t, ws, sink)
    t.equal(r.rc, 3, r.err)
    t.check("not yet delivered" in r.err and "No space left" in r.err, r.err)
    t.equal(t.read(file) or "", "")
    os.unlink(os.path.join(d, "filler"))
    t.equal(t.ward("audit", "send").rc, 0)
    events = [json.loads(s) for s in t.read(file).splitlines()]
    t.equal([e["metadata"]["event_code"] for e in events
             if e["metadata"]["event_code"] != "run.sample"],
            ["run.start", "exec.syscall", "run.end"])
    r = run(t, ws, dict(sink, wait_seconds=10),
            "i=0; while [ $i -lt 80 ]; do unshare -U true 2>/dev/null; i=$((i+1)); done; exit 0")
    t.equal((r.rc, left(t)), (0, []), r.err)
    names = sorted(os.listdir(d))
    t.check("events.ndjson.1" in names and os.path.getsize(file) <= 65536, names)
    lines = [json.loads(s) for n in names for s in t.read(d, n).splitlines()]
    t.equal(len({e["metadata"]["uid"] for e in lines}), len(journal(t)))


def test_command(t):
    """A command that ends early is started again, and gets again what it may not have read."""
    ws = t.workspace()
    d = t.fresh_dir("out")
    t.write(d,
            {"reader": f"#!/bin/sh\nif [ ! -e {d}/second ]; then touch {d}/second; read one; echo "
             f"\"$one\" > {d}/first; exit 1; fi\ncat >> {d}/rest\n"})
    os.chmod(os.path.join(d, "reader"), 0o755)
    os.chmod(d, 0o777)
    r = run(t, ws, {"type": "command", "to": f"{d}/reader", "wait_seconds": 20},
            "unshare -U true; sleep 1; unshare -U true; exit 3")
    t.equal((r.rc, left(t)), (3, []), r.err)
    events = [json.loads(s) for s in t.read(d, "rest").splitlines()]
    t.equal({e["seq"] for e in events}, {e["seq"] for e in journal(t)})
    r = run(t, ws, {"type": "command", "to": "/nonexistent/program", "wait_seconds": 0.3})
    t.check(r.rc == 125 and "there is no program /nonexistent/program" in r.err, r.err)


def failing(t):
    d = t.fresh_dir("fails")
    t.write(d, {"fails": "#!/bin/sh\ncat > /dev/null; exit 7\n"})
    os.chmod(os.path.join(d, "fails"), 0o755)
    return os.path.join(d, "fails")


@by_turns
def test_a_command_that_fails_has_delivered_nothing(t):
    """What it read counts when it ends well; and what is left is told once, on a terminal, too."""
    ws = t.workspace()
    program = failing(t)
    r = t.ward_tty("run", "--set", sinks({"type": "command", "to": program, "wait_seconds": 1}),
                   "--", "true", cwd=ws)
    t.check(r.rc == 0
            and re.search(rf"note: \d+ events are not yet delivered to {program}: the command "
                          rf"exited with status 7; ", r.out), r.out)
    r = t.ward("audit", "send")
    t.check(r.rc == 1 and re.match(r"0 events sent, [1-9]\d* left\n", r.out), r.out)
    t.equal(r.out.splitlines()[1], f"{program}: the command exited with status 7")
    t.check(json.loads(t.ward("audit", "send", "--json").out)["sent"] == 0, "sent")
    forget(t)


def test_no_program_of_the_sandbox_is_run(t):
    """Neither by a relative path nor by PATH nor through a link; a command that is found has its
    absolute path on record, and is started in /."""
    shared, d = t.fresh_dir("shared"), t.fresh_dir("out")
    os.chmod(shared, 0o777)
    os.chmod(d, 0o777)
    evil = f"#!/bin/sh\ntouch {d}/evil\ncat >/dev/null\n"
    ws = t.workspace({"collect.sh": evil, "bin/logger": evil})
    t.write(shared, {"collect.sh": evil})
    for path in (f"{ws}/collect.sh", f"{ws}/bin/logger", f"{shared}/collect.sh"):
        os.chmod(path, 0o755)
    os.symlink(f"{ws}/collect.sh", f"{d}/link")
    mounts = ("--rw", shared)
    path = {"PATH": f"{ws}/bin:bin:.:/usr/bin:/bin"}
    for to in ("./collect.sh", "bin/logger", f"{ws}/collect.sh", f"{d}/link",
               f"{shared}/collect.sh", f"sh {ws}/collect.sh", f"sh {ws}/none/yet.sh"):
        r = run(t, ws, {"type": "command", "to": to}, "true", *mounts, env=path)
        t.check(r.rc == 125 and ("there is no program" in r.err or "the sandbox can" in r.err),
                (to, r))
    t.write(d, {"good/logger": f"#!/bin/sh\npwd >> {d}/where\ncat > {d}/got; exit 7\n"})
    os.chmod(f"{d}/good/logger", 0o755)
    r = run(t, ws, {"type": "command", "to": "logger -t ward", "wait_seconds": 1}, "true", *mounts,
            env={"PATH": f"{ws}/bin:bin:{d}/good:/usr/bin:/bin"})
    t.check(r.rc == 0 and "events are not yet delivered to logger -t ward" in r.err, r)
    t.equal(set(t.read(d, "where").splitlines()), {"/"})
    t.check(len(left(t)) == 1 and f"{d}/good/logger" in t.read(t.state_dir, "audit/sinks",
                                                               left(t)[0]),
            "the record has no absolute path")
    # a record of an older ward
    record = os.path.join(t.state_dir, "audit/sinks", left(t)[0])
    with open(record, encoding="utf-8") as f:
        digits = f.readline()
    with open(record, "w", encoding="utf-8") as f:
        f.write(digits + json.dumps({"type": "command", "to": "./collect.sh", "wait_seconds": 0.3})
                + "\n")
    r = t.ward("audit", "send", cwd=ws)
    t.check(r.rc == 1 and "./collect.sh: the program needs an absolute path" in r.out, r)
    t.check(not os.path.exists(f"{d}/evil"), "a program of the sandbox's was run")
    forget(t)


def test_no_file_of_the_sandbox_is_believed(t):
    """By whatever way the path leads there."""
    ws = t.workspace({"ca.pem": "x", "token": "x"})
    shared, d = t.fresh_dir("shared"), t.fresh_dir("out")
    os.chmod(shared, 0o777)
    os.chmod(d, 0o777)
    os.symlink(ws, f"{d}/way")
    os.symlink(f"{ws}/ca.pem", f"{d}/ca.pem")
    t.write(d, {"fine": "x"})
    mounts = ("--rw", shared)
    tls = {"type": "otlp", "to": "https://127.0.0.1:1", "wait_seconds": 0.3}
    cases = [{"type": "file", "to": to} for to in (f"{ws}/events", f"/{ws}/events",
                                                   f"{d}/way/events", f"{shared}/events",
                                                   f"{d}/./way//events")]
    cases += [dict(tls, ca=f"{ws}/ca.pem"), dict(tls, ca=f"{d}/ca.pem"),
              dict(tls, cert=f"{ws}/ca.pem", key=f"{d}/fine"),
              dict(tls, cert=f"{d}/fine", key=f"{d}/way/ca.pem"),
              dict(tls, token=f"file:{ws}/token"), dict(tls, token=f"file:{d}/way/token")]
    for sink in cases:
        r = run(t, ws, sink, "true", *mounts)
        t.check(r.rc == 125 and "which the sandbox can write to" in r.err, (sink, r))
    os.symlink(t.fresh_dir("real"), f"{d}/other")
    r = run(t, ws, {"type": "file", "to": f"{d}/other/events"}, "true", *mounts)
    t.check(r.rc == 0 and left(t) == [] and t.read(d, "other/events"), r)


def test_a_killed_run_is_delivered(t):
    ws = t.workspace()
    server = collector(t)
    sink = {"type": "otlp", "to": f"http://127.0.0.1:{server.server_port}", "wait_seconds": 10}
    box = t.popen([t.ward_path, "run", "--set", sinks(sink), "--", "/bin/sh", "-c",
                   "unshare -U true; touch up; sleep 30"], cwd=ws)
    t.wait_until(lambda: os.path.exists(os.path.join(ws, "up")), 20, "the run does not go")
    t.wait_until(lambda: server.requests, 10, "nothing came while the run went on")
    t.wait_until(lambda: any("ward-guardian" in (t.read(f"/proc/{pid}/cmdline") or "")
                             for pid in (t.read(f"/proc/{box.pid}/task/{box.pid}/children")
                                         or "").split()), 10,
                 # it comes a moment later; before, the next run ends the journal
                 "there is no guardian")
    box.send_signal(signal.SIGKILL)
    box.wait()
    t.wait_until(lambda: os.path.isdir(os.path.join(t.state_dir, "audit/runs"))
                 and os.listdir(os.path.join(t.state_dir, "audit/runs")), 20,
                 "nobody ended the journal")
    t.wait_until(lambda: t.ward("audit", "send").rc == 0 and not left(t), 20, "something is left")
    t.wait_until(lambda: all_arrived(t, records(server)), 5, "events are missing")


def test_a_sink_is_locked_up(t):
    """No capability, no new privileges, a filter; and it has neither the workspace nor another
    port."""
    ws = t.workspace()
    server = collector(t)
    file = os.path.join(t.fresh_dir("out"), "events")
    box = t.popen([t.ward_path, "run", "--set",
                   sinks({"type": "otlp", "to": f"http://127.0.0.1:{server.server_port}"},
                         {"type": "file", "to": file}), "--", "/bin/sh", "-c",
                   "while [ ! -e go ]; do sleep 0.05; done"], cwd=ws)

    def children(pid):
        return [int(x) for x in (t.read(f"/proc/{pid}/task/{pid}/children") or "").split()]

    def feeders():
        return [c for b in children(box.pid) if "forward" in (t.read(f"/proc/{b}/cmdline") or "")
                for c in children(b)]
    t.wait_until(lambda: len(feeders()) == 2 and server.requests and t.read(file), 20,
                 "the sinks are not fed")
    for pid in feeders():
        status = dict(line.split(":\t", 1) for line in t.read(f"/proc/{pid}/status").splitlines()
                      if ":\t" in line)
        t.equal((status["NoNewPrivs"], status["Seccomp"], int(status["CapEff"], 16)), ("1", "2", 0))
    t.write(ws, {"go": ""})
    t.equal(box.wait(30), 0)


def test_what_is_refused(t):
    ws = t.workspace({"ward.yaml": "version: 1\naudit:\n  sinks: [{type: command, to: \"touch "
                      "/tmp/EVILSINKEVILSINK\"}]\n"})
    r = t.ward("run", "--", "true", cwd=ws)
    # a file in the workspace cannot run programs outside
    t.check(r.rc == 125 and "trust" in r.err and not os.path.exists("/tmp/EVILSINKEVILSINK"), r)
    ws = t.workspace()
    cases = [({"type": "file", "to": "relative"}, "absolute path"),
             ({"type": "syslog", "to": "ftp://x"}, "not a destination"),
             ({"type": "otlp", "to": "http://x:99999"}, "not a destination"),
             ({"type": "otlp", "to": "http://collector.example/", "token": "env:A"}, "needs https"),
             ({"type": "otlp", "to": "https://c.example", "token": "SECRETSECRET"}, "env:NAME"),
             ({"type": "syslog", "to": "tcp://x:1", "ca": "/x"}, "only works with tls"),
             ({"type": "file", "to": f"{ws}/events"}, "which the sandbox can write to")]
    for sink, why in cases:
        r = run(t, ws, sink)
        t.check(r.rc == 125 and why in r.err, (sink, r))
    r = run(t, ws, {"type": "file", "to": "/tmp/x"}, "true", "--set", "audit.journal=none")
    t.check(r.rc == 125 and "audit.journal" in r.err, r)


def test_a_detached_sandbox_feeds_its_sinks(t):
    ws = t.workspace()
    file = os.path.join(t.fresh_dir("out"), "events")
    r = t.ward("run", "-d", "--name", "fed", "--set", sinks({"type": "file", "to": file}), "--",
               "/bin/sh", "-c", "unshare -U true; sleep 0.5", cwd=ws)
    t.equal(r.rc, 0, r.err)
    t.ward("wait", "fed", timeout=60)
    t.wait_until(lambda: (t.read(file) or "").count("\n") == len(journal(t)), 10,
                 "events are missing")
    t.equal([k for k in (json.loads(s)["kind"] for s in t.read(file).splitlines())
             if k != "run.sample"], ["run.start", "exec.syscall", "run.end"])
    t.ward("rm", "fed")
