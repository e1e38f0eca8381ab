"""ward serve: the server speaks E2B's wire (docs/serve.md). Spoken by hand here; with the stock
SDKs in test_serve_sdk.py, with hostile clients in test_serve_hostile.py."""
import base64
import gzip
import hashlib
import json
import os
import signal
import socket
import threading
import time

from harness import by_turns, timeout
from harness.context import Failed
from harness.serve import Box, messages, Server


def has(t, text, *words):
    for word in words:
        t.contains(text, word)


def test_serve_first_call(t):
    s = Server(t)
    t.equal(s.ask("GET", "/healthz", key=False).json, {"status": "ok"})
    box = s.create(metadata={"a": "b c"}, envVars={"FRUIT": "pear"})
    t.equal(box.sh("echo $FRUIT; echo bad >&2; exit 3"), (3, "pear\n", "bad\n"))
    info = s.ask("GET", f"/sandboxes/{box.id}").json
    t.equal((info["state"], info["metadata"], info["envdAccessToken"], info["lifecycle"]),
            ("running", {"a": "b c"}, box.token, {"onTimeout": "kill", "autoResume": False}))
    t.equal(box.ask("GET", "/health").status, 204)
    t.equal(box.kill(), 204)
    r = box.ask("GET", "/health")
    t.equal((r.status, r.json["code"], r.json["sandboxId"]), (502, 502, box.id))
    t.equal(box.kill(), 404)
    r = s.ask("GET", f"/sandboxes/{box.id}")
    t.equal((r.status, r.json["code"]), (404, 404))
    s.wait_log("sandbox_gone")
    t.equal(json.loads(t.ward("ps", "-a", "--json").out), {"sandboxes": []})


def test_serve_default_is_closed(t):
    box = Server(t).create()
    code, out, _ = box.sh("id -u; ls /; cat /proc/self/status | grep -E 'CapEff|NoNewPrivs'; "
                          "ls /sys/class/net; cat /etc/shadow")
    has(t, out, "1000\n", "0000000000000000", "NoNewPrivs:\t1")
    t.equal(code != 0, True)
    t.equal("eth0" in out, False)


def test_serve_keys_and_owners(t):
    s = Server(t)
    for key in (False, "", "e2b_00", s.key + "0", s.key[:-1]):
        r = s.ask("GET", "/v2/sandboxes", key=key)
        t.equal((r.status, r.json["code"]), (401, 401))
    made = t.ward("serve", "--state", s.state, "--add-key", "bob")
    bob = made.out.strip()
    t.equal((made.rc, bob.startswith("e2b_")), (0, True))
    box = s.create()
    t.equal(s.ask("GET", "/v2/sandboxes", key=bob).json, [])
    for method, path, body in (("GET", "", None), ("DELETE", "", None), ("POST", "/pause", {}),
                               ("POST", "/timeout", {"timeout": 5}), ("GET", "/metrics", None),
                               ("POST", "/connect", {})):
        t.equal(s.ask(method, f"/sandboxes/{box.id}{path}", body, key=bob).status, 404)
    t.equal(len(s.ask("GET", "/v2/sandboxes").json), 1)
    # only digests are kept
    for name in os.listdir(s.state):
        if name.startswith("registry"):
            with open(os.path.join(s.state, name), "rb") as f:
                text = f.read()
            t.equal((bob.encode() in text, s.key.encode() in text), (False, False))


def test_serve_access_token(t):
    s = Server(t)
    one, two = s.create(), s.create()
    for token in (None, "", two.token, one.token + "0", one.token[:-1]):
        headers = {"E2b-Sandbox-Id": one.id, "E2b-Sandbox-Port": "49983"}
        if token is not None:
            headers["X-Access-Token"] = token
        for method, path, body in (("POST", "/process.Process/List", {}), ("GET", "/envs", None),
                                   ("GET", "/files?path=/etc/passwd", None)):
            r = s.ask(method, path, body, key=False, headers=headers)
            t.equal((r.status, r.json["code"]), (401, 401))
    t.equal(one.rpc("process.Process/List", {}), (200, {"processes": []}))
    basic = base64.b64encode(b"other:").decode()
    r = one.ask("POST", "/process.Process/List", {}, Authorization=f"Basic {basic}")
    t.equal((r.status, r.json["code"]), (401, "unauthenticated"))


def test_serve_list(t):
    s = Server(t)
    ids = [s.create(metadata={"n": str(n), "b c": "x&y"}).id for n in range(3)]
    page = s.ask("GET", "/v2/sandboxes?limit=2")
    t.equal([b["sandboxID"] for b in page.json], [ids[2], ids[1]])
    token = page.headers["X-Next-Token"]
    page = s.ask("GET", f"/v2/sandboxes?limit=2&nextToken={token}")
    t.equal(([b["sandboxID"] for b in page.json], page.headers["X-Next-Token"]), ([ids[0]], None))
    t.equal([b["sandboxID"] for b in s.ask("GET", "/v2/sandboxes?order=asc").json], ids)
    # the SDK escapes a value three times
    found = s.ask("GET", "/v2/sandboxes?metadata=n%3D1%26b%252520c%3Dx%252526y").json
    t.equal([b["sandboxID"] for b in found], [ids[1]])
    t.equal(s.ask("GET", "/v2/sandboxes?metadata=n%3D9").json, [])
    t.equal(s.ask("POST", f"/sandboxes/{ids[0]}/pause", {}).status, 204)
    for state, wanted in (("paused", ids[:1]), ("running", [ids[2], ids[1]]),
                          ("running,paused", ids[::-1])):
        listed = s.ask("GET", f"/v2/sandboxes?state={state}").json
        t.equal([b["sandboxID"] for b in listed], wanted)
    t.equal(s.ask("GET", "/v2/sandboxes?template=other").json, [])
    for bad in ("limit=0", "limit=101", "order=up", "startedAfter=x", "metadata=%zz"):
        t.equal(s.ask("GET", f"/v2/sandboxes?{bad}").status, 400)


def test_serve_life(t):
    """Timeouts, pause and resume."""
    s = Server(t)
    box = s.create(timeout=100)
    c, r = box.start("/bin/sh", "-c", "i=0; while :; do i=$((i+1)); echo $i > /tmp/m; "
                     "mv /tmp/m /tmp/n; done")
    next(messages(r))
    t.equal(s.ask("POST", f"/sandboxes/{box.id}/pause", {}).status, 204)
    t.equal(s.ask("POST", f"/sandboxes/{box.id}/pause", {}).status, 409)
    t.equal(list(messages(r)), [])	# broken off, without an end
    c.close()
    t.equal(box.ask("GET", "/health").status, 502)
    t.equal(s.ask("GET", f"/sandboxes/{box.id}").json["state"], "paused")
    t.equal(s.ask("POST", f"/sandboxes/{box.id}/connect", {"timeout": 60}).status, 201)
    t.equal(s.ask("POST", f"/sandboxes/{box.id}/connect", {"timeout": 60}).status, 200)
    # its processes go on where they were
    first = int(box.sh("cat /tmp/n")[1] or 0)
    time.sleep(0.2)
    t.equal(int(box.sh("sleep 0.1; cat /tmp/n")[1] or 0) > first, True)
    t.equal(s.ask("POST", f"/sandboxes/{box.id}/timeout", {"timeout": 1}).status, 204)
    s.wait_log("its time is over")
    t.equal(s.ask("GET", f"/sandboxes/{box.id}").status, 404)


def test_serve_auto_pause_and_resume(t):
    s = Server(t)
    box = s.create(timeout=1, autoPause=True, autoResume={"enabled": True})
    s.wait_log("sandbox_paused")
    t.equal(box.sh("echo back")[1], "back\n")
    t.equal(s.ask("GET", f"/sandboxes/{box.id}").json["state"], "running")
    other = s.create(timeout=1, autoPause=True)
    s.wait_log(f'"sandbox_paused","sandbox":"{other.id}"')
    t.equal(other.ask("GET", "/envs").status, 502)


def test_serve_admission(t):
    s = Server(t, "--max", "3", "--quota", "2")
    boxes = [s.create(), s.create()]
    r = s.ask("POST", "/v2/sandboxes", {"templateID": "base"})
    t.equal((r.status, r.json["code"], int(r.headers["Retry-After"]) > 0), (429, 429, True))
    bob = t.ward("serve", "--state", s.state, "--add-key", "bob").out.strip()
    t.equal(s.ask("POST", "/v2/sandboxes", {"templateID": "base"}, key=bob).status, 201)
    r = s.ask("POST", "/v2/sandboxes", {"templateID": "base"}, key=bob)
    t.equal((r.status, int(r.headers["Retry-After"]) > 0), (503, True))
    t.equal(boxes[0].kill(), 204)
    s.wait_log("sandbox_gone")
    s.create()


@by_turns
def test_serve_templates(t):
    templates = t.fresh_dir("templates")
    t.write(templates, {"small.yaml": "version: 1\n"
                                      "resources: {pids_limit: 30, memory_limit: 512Mi}\n",
                        "broken.yaml": "version: 1\nno_such_field: 1\n"})
    s = Server(t, "--templates", templates)
    box = s.create("small")
    info = s.ask("GET", f"/sandboxes/{box.id}").json
    t.equal((info["memoryMB"], info["diskSizeMB"]), (512, 20480))	# of its policy
    code, _, err = box.sh("for i in $(seq 60); do sleep 5 & done")
    t.equal(code != 0, True)
    for name in ("none", "../small", "small/../../x", "Small", ""):
        r = s.ask("POST", "/v2/sandboxes", {"templateID": name})
        t.equal((name, r.status in (400, 404)), (name, True))
    r = s.ask("POST", "/v2/sandboxes", {"templateID": "broken"})
    t.equal(r.status, 500)
    t.contains(r.json["message"], "policy file")
    t.equal(box.sh("whoami; cd; pwd")[1], "agent\n/home/agent\n")
    t.equal(s.create().sh("whoami; cd; pwd")[1], "user\n/home/user\n")


def test_serve_refuses_what_it_does_not_do(t):
    s = Server(t)
    for more in ({"iam": {"tokens": {"a": 1}}},
                 {"volumeMounts": [{"name": "a", "path": "/a"}]},
                 {"network": {"allowOut": ["1.1.1.1"]}}, {"network": {"rules": {"a": 1}}},
                 {"network": {"denyOut": ["8.8.8.8"]}}):
        r = s.ask("POST", "/v2/sandboxes", {"templateID": "base", **more})
        t.equal((r.status, r.json["code"]), (400, 400))
    box = s.create(network={"denyOut": ["0.0.0.0/0"]}, allow_internet_access=False)
    t.equal(s.ask("GET", f"/sandboxes/{box.id}").json["allowInternetAccess"], False)
    for method, path in (("GET", "/templates"), ("GET", "/volumes"), ("GET", "/v2/nothing")):
        r = s.ask(method, path, {})
        t.equal((r.status, r.json["code"]), (404, 404))
    t.equal(s.ask("PATCH", f"/sandboxes/{box.id}").status, 405)


# -- processes

def test_serve_processes(t):
    box = Server(t).create()
    c, r = box.start("/bin/cat", tag="mine")
    stream = messages(r)
    pid = next(stream)["event"]["start"]["pid"]
    listed = box.rpc("process.Process/List", {})[1]["processes"]
    t.equal([(p["pid"], p["tag"], p["config"]["cmd"]) for p in listed],
            [(pid, "mine", "/bin/cat")])
    word = base64.b64encode(b"typed\n").decode()
    t.equal(box.rpc("process.Process/SendInput", {"process": {"tag": "mine"},
                                                  "input": {"stdin": word}}), (200, {}))
    t.equal(next(stream)["event"]["data"], {"stdout": word})
    c.close()	# the client goes; the process stays
    t.equal(len(box.rpc("process.Process/List", {})[1]["processes"]), 1)
    c, r = box.stream("process.Process/Connect", {"process": {"pid": pid}})
    stream = messages(r)
    t.equal(next(stream)["event"]["start"]["pid"], pid)
    t.equal(box.rpc("process.Process/CloseStdin", {"process": {"pid": pid}}), (200, {}))
    t.equal([m for m in stream],
            [{"event": {"end": {"exitCode": 0, "exited": True, "status": "exit status 0"}}},
             {"end": {}}])
    # its end can be asked for a while
    _, r = box.stream("process.Process/Connect", {"process": {"pid": pid}})
    t.equal([list(m)[0] for m in messages(r)], ["event", "event", "end"])
    status, body = box.rpc("process.Process/SendSignal", {"process": {"pid": pid},
                                                          "signal": "SIGNAL_SIGKILL"})
    t.equal((status, body["code"]), (404, "not_found"))
    _, r = box.stream("process.Process/Connect", {"process": {"pid": 99999}})
    t.equal([m["end"]["error"]["code"] for m in messages(r)], ["not_found"])


def test_serve_process_errors(t):
    box = Server(t).create()
    for message, word in (({"process": {"cmd": "/bin/true", "cwd": "/nowhere"}},
                           "cwd '/nowhere' does not exist"),
                          ({"process": {"cmd": "no-such-program"}}, "not found in $PATH"),
                          ({"process": {}}, "process.cmd is missing"),
                          ({"process": {"cmd": 5}}, "wrong type")):
        _, r = box.stream("process.Process/Start", message)
        said = list(messages(r))
        t.equal((len(said), said[0]["end"]["error"]["code"]), (1, "invalid_argument"))
        t.contains(said[0]["end"]["error"]["message"], word)
    c, r = box.start("/bin/sleep", "100")
    stream = messages(r)
    pid = next(stream)["event"]["start"]["pid"]
    t.equal(box.rpc("process.Process/SendSignal",
                    {"process": {"pid": pid}, "signal": "SIGNAL_SIGKILL"}), (200, {}))
    end = next(stream)["event"]["end"]
    t.equal((end["exitCode"], end["exited"], end["status"]), (-1, False, "signal: killed"))
    # a deadline of the client's bounds the process; the client is told so, others how it ended
    c, r = box.stream("process.Process/Start",
                      {"process": {"cmd": "/bin/sleep", "args": ["100"]}},
                      **{"Connect-Timeout-Ms": "300"})
    stream = messages(r)
    pid = next(stream)["event"]["start"]["pid"]
    t.equal(list(stream)[-1]["end"]["error"]["code"], "deadline_exceeded")
    _, r = box.stream("process.Process/Connect", {"process": {"pid": pid}})
    t.equal(list(messages(r))[-2]["event"]["end"]["status"], "signal: killed")


def test_serve_terminal(t):
    box = Server(t).create()
    c, r = box.stream("process.Process/Start",
                      {"process": {"cmd": "/bin/sh", "args": []}, "pty": {"size": {"cols": 71,
                                                                                   "rows": 23}}})
    stream = messages(r)
    pid = next(stream)["event"]["start"]["pid"]

    def type_in(text):
        status, _ = box.rpc("process.Process/SendInput", {
            "process": {"pid": pid}, "input": {"pty": base64.b64encode(text).decode()}})
        t.equal(status, 200)

    type_in(b"stty size; tty\n")
    seen = b""
    while b"/dev/pts/" not in seen:
        seen += base64.b64decode(next(stream)["event"]["data"]["pty"])
    t.contains(seen.decode(), "23 71")
    t.equal(box.rpc("process.Process/Update", {"process": {"pid": pid}, "pty": {
        "size": {"cols": 99, "rows": 44}}}), (200, {}))
    type_in(b"stty size; exit 5\n")
    rest = list(messages(r))
    text = b"".join(base64.b64decode(m["event"]["data"]["pty"]) for m in rest
                    if "data" in m.get("event", {}))
    t.contains(text.decode(), "44 99")
    t.equal(rest[-2]["event"]["end"]["exitCode"], 5)


@by_turns
def test_serve_keepalive(t):
    box = Server(t).create()
    _, r = box.stream("process.Process/Start", {"process": {"cmd": "/bin/sleep", "args": ["3"]}},
                      **{"Keepalive-Ping-Interval": "1"})
    kinds = [list(m.get("event", m))[0] for m in messages(r)]
    t.equal((kinds[0], kinds[-2:], "keepalive" in kinds), ("start", ["end", "end"], True))


def test_serve_killed_while_a_stream_is_open(t):
    s = Server(t)
    box = s.create()
    _, r = box.start("/bin/sleep", "100")
    stream = messages(r)
    next(stream)
    t.equal(box.kill(), 204)
    t.equal(list(stream), [])	# neither an event nor an end: the connection is closed
    t.equal(box.ask("GET", "/health").status, 502)


# -- files

def test_serve_files(t):
    box = Server(t).create()
    big = os.urandom(3_000_000)
    r = box.ask("POST", "/files?path=a/b/c.bin", big,
                **{"Content-Type": "application/octet-stream"})
    t.equal(r.status, 200)
    path = r.json[0]["path"]
    t.equal((r.json[0]["name"], r.json[0]["type"]), ("c.bin", "file"))
    r = box.ask("GET", "/files?path=" + path)
    t.equal((r.status, r.body == big, int(r.headers["Content-Length"])), (200, True, len(big)))
    box.ask("POST", "/files?path=empty", b"", **{"Content-Type": "application/octet-stream"})
    r = box.ask("GET", "/files?path=empty")
    t.equal((r.status, r.headers["Content-Length"], r.body), (200, "0", b""))
    r = box.ask("GET", "/files?path=nope")
    t.equal((r.status, r.json["code"]), (404, 404))
    t.equal(box.ask("GET", "/files?path=a").status, 400)
    t.equal(box.ask("POST", "/files?path=a", b"x").status, 400)
    form = (b'--B\r\nContent-Disposition: form-data; name="file"; filename="/tmp/t/one"\r\n\r\n'
            b'first'
            b'\r\n--B\r\nContent-Disposition: form-data; name="file"; filename="/tmp/t/two"\r\n\r\n'
            b'\r\n--B--\r\n')
    kind = {"Content-Type": "multipart/form-data; boundary=B"}
    t.equal([f["path"] for f in box.ask("POST", "/files", form, **kind).json],
            ["/tmp/t/one", "/tmp/t/two"])
    t.equal(box.sh("cat /tmp/t/one; wc -c < /tmp/t/two")[1], "first0\n")
    # a form that is cut off, and whose length is right, keeps nothing
    t.equal(box.ask("POST", "/files?path=/tmp/t/cut", form[:80], **kind).status, 400)
    t.equal(box.sh("ls -a /tmp/t")[1].split(), [".", "..", "one", "two"])


def test_serve_interrupted_upload(t):
    s = Server(t)
    box = s.create()
    box.ask("POST", "/files?path=/tmp/t/kept", b"old")
    for path in ("new", "kept"):
        c = s.connection()
        c.putrequest("POST", f"/files?path=/tmp/t/{path}")
        for name, value in box.headers(**{"Content-Length": "1000000"}).items():
            c.putheader(name, value)
        c.endheaders(b"x" * 500000)
        time.sleep(0.3)
        t.contains(box.sh("ls -a /tmp/t")[1], ".ward-upload-")
        c.close()
    end = time.monotonic() + 10
    while ".ward-upload-" in (names := box.sh("ls -a /tmp/t")[1]) and time.monotonic() < end:
        time.sleep(0.05)
    t.equal((names.split(), box.sh("cat /tmp/t/kept")[1]), ([".", "..", "kept"], "old"))


def sign(box, path, operation, user="", expires=None):
    text = f"{path}:{operation}:{user}:{box.token}" + (f":{expires}" if expires else "")
    digest = hashlib.sha256(text.encode()).digest()
    return "v1_" + base64.b64encode(digest).decode().rstrip("=")


def test_serve_signatures(t):
    s = Server(t)
    box, other = s.create(), s.create()
    box.ask("POST", "/files?path=/tmp/f", b"signed")
    later, past = int(time.time()) + 100, int(time.time()) - 100

    def get(query, method="GET", headers=None):
        r = s.ask(method, f"/files?{query}", b"new" if method == "POST" else None, key=False,
                  headers=headers)
        return r.status, r.body

    def quoted(signature):
        return signature.replace("+", "%2B").replace("/", "%2F")

    read = quoted(sign(box, "/tmp/f", "read"))
    t.equal(get(f"path=/tmp/f&signature={read}"), (200, b"signed"))
    soon = quoted(sign(box, "/tmp/f", "read", expires=later))
    t.equal(get(f"path=/tmp/f&signature={soon}&signature_expiration={later}")[0], 200)
    late = quoted(sign(box, "/tmp/f", "read", expires=past))
    status, body = get(f"path=/tmp/f&signature={late}&signature_expiration={past}")
    t.equal((status, b"already expired" in body), (401, True))
    for query in (f"path=/tmp/g&signature={read}", f"path=/tmp/f&signature={read}x",
                  "path=/tmp/f", "path=/tmp/f&signature=",
                  f"path=/tmp/f&signature={soon}&signature_expiration={later + 1}",
                  f"path=/tmp/f&username=root&signature={read}"):
        t.equal(get(query)[0], 401)
    t.equal(get(f"path=/tmp/f&signature={read}", "POST")[0], 401)
    write = quoted(sign(box, "/tmp/f", "write"))
    t.equal(get(f"path=/tmp/f&signature={write}", "POST")[0], 200)
    t.equal((box.sh("cat /tmp/f")[1], other.sh("ls /tmp/f")[0] != 0), ("new", True))
    # a wrong token is not made up for by a good signature
    t.equal(get(f"path=/tmp/f&signature={read}",
                headers={"E2b-Sandbox-Id": box.id, "X-Access-Token": "0"})[0], 401)


def test_serve_paths_stay_inside(t):
    """Links and paths made inside mean what they mean inside."""
    secret = os.path.join(t.fresh_dir("host"), "secret")
    t.write(os.path.dirname(secret), {"secret": "of the host"})
    box = Server(t).create()
    box.sh(f"ln -s {secret} /tmp/link; ln -s / /tmp/root; ln -s /tmp/loop /tmp/loop; "
           "ln -s /etc /tmp/etc")
    for path in ("/tmp/link", secret, "/tmp/root" + secret, "/../../../.." + secret,
                 "/proc/1/root" + secret, "/tmp/%2e%2e/%2e%2e" + secret):
        r = box.ask("GET", f"/files?path={path}")
        t.equal((path, r.status in (400, 403, 404), b"of the host" in r.body),
                (path, True, False))
    t.equal(box.ask("GET", "/files?path=/tmp/a%00b").status, 400)
    t.equal(box.ask("POST", "/files?path=/tmp/etc/passwd", b"x").status in (403, 500), True)
    t.equal(box.ask("GET", "/files?path=/tmp/loop").status, 400)
    t.equal(box.rpc("filesystem.Filesystem/Remove", {"path": "/tmp/root"})[0], 200)
    t.equal(t.read(secret), "of the host")


def test_serve_file_system(t):
    box = Server(t).create()

    def fs(method, **message):
        return box.rpc(f"filesystem.Filesystem/{method}", message)

    status, body = fs("MakeDir", path="d/e")
    t.equal((status, body["entry"]["type"], body["entry"]["name"]),
            (200, "FILE_TYPE_DIRECTORY", "e"))
    t.equal((fs("MakeDir", path="d/e")[0], fs("MakeDir", path="d/e")[1]["code"]),
            (409, "already_exists"))
    box.ask("POST", "/files?path=d/e/f", b"12345")
    box.sh("ln -s f d/e/l; ln -s none d/e/dead; chmod 640 d/e/f")
    entry = fs("Stat", path="d/e/l")[1]["entry"]
    t.equal((entry["type"], entry["size"], entry["mode"], entry["permissions"],
             entry["symlinkTarget"].endswith("/d/e/f")),
            ("FILE_TYPE_FILE", "5", 0o640, "Lrw-r-----", True))
    t.equal(fs("Stat", path="none")[1]["code"], "not_found")
    names = sorted(e["path"].partition("/d")[2] for e in fs("ListDir", path="d", depth=2)[1][
        "entries"])
    t.equal(names, ["/e", "/e/dead", "/e/f", "/e/l"])
    t.equal(len(fs("ListDir", path="d")[1]["entries"]), 1)
    t.equal(fs("ListDir", path="d/e/f")[1]["code"], "invalid_argument")
    status, body = fs("Move", source="d/e/f", destination="new/place/g")
    t.equal((status, body["entry"]["name"]), (200, "g"))
    t.equal(fs("Move", source="none", destination="x")[1]["code"], "not_found")
    t.equal((fs("Remove", path="d"), fs("Remove", path="d")), ((200, {}), (200, {})))
    t.equal(fs("Stat", path="d")[1]["code"], "not_found")
    t.equal(fs("Nothing")[0], 404)


def test_serve_watch(t):
    box = Server(t).create()
    box.sh("mkdir -p w/sub")
    c, r = box.stream("filesystem.Filesystem/WatchDir", {"path": "w", "recursive": True})
    stream = messages(r)
    t.equal(next(stream), {"start": {}})
    watcher = box.rpc("filesystem.Filesystem/CreateWatcher", {"path": "w"})[1]["watcherId"]
    box.ask("POST", "/files?path=w/sub/f", b"1")
    box.ask("POST", "/files?path=w/g", b"1")
    box.ask("POST", "/files?path=w/g", b"2")
    box.sh("chmod 600 w/g; mv w/g w/h; rm w/h")
    wanted = [("sub/f", "CREATE"), ("sub/f", "WRITE"), ("g", "CREATE"), ("g", "WRITE"),
              ("g", "WRITE"), ("g", "CHMOD"), ("g", "RENAME"), ("h", "CREATE"), ("h", "REMOVE")]
    seen = [next(stream)["filesystem"] for _ in wanted]
    t.equal([(e["name"], e["type"]) for e in seen], [(n, f"EVENT_TYPE_{k}") for n, k in wanted])
    events = box.rpc("filesystem.Filesystem/GetWatcherEvents", {"watcherId": watcher})[1]["events"]
    t.equal([e["name"] for e in events], [n for n, _ in wanted if "/" not in n])
    t.equal(box.rpc("filesystem.Filesystem/RemoveWatcher", {"watcherId": watcher}), (200, {}))
    t.equal(box.rpc("filesystem.Filesystem/GetWatcherEvents",
                    {"watcherId": watcher})[1]["code"], "not_found")
    c.close()


# -- ports

def test_serve_ports(t):
    s = Server(t)
    box = s.create()
    c, r = box.start("/usr/bin/python3", "-u", "-c", SERVER, stdin=False)
    stream = messages(r)
    while "data" not in next(stream)["event"]:
        pass
    r = box.ask("GET", "/some/path?q=1", port=8000)
    t.equal((r.status, r.body), (200, b"GET /some/path?q=1 b''"))
    r = box.ask("POST", "/", iter([b"chunk", b"ed"]), port=8000)
    t.equal(r.body, b"POST / b'chunked'")
    # by the name of the host
    r = s.ask("GET", "/", key=False, headers={"Host": f"8000-{box.id}.ward.test:{s.port}"})
    t.equal((r.status, r.body), (200, b"GET / b''"))
    r = box.ask("GET", "/", port=8001)
    t.equal((r.status, r.json["port"], r.json["code"]), (502, 8001, 502))
    # a websocket, or whatever an upgraded connection speaks
    k = socket.create_connection(("127.0.0.1", s.port), 20)
    k.sendall((f"GET /up HTTP/1.1\r\nHost: localhost\r\nE2b-Sandbox-Id: {box.id}\r\n"
               "E2b-Sandbox-Port: 8000\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
               "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
               "\r\n").encode())
    seen = b""
    while b"\r\n\r\n" not in seen:
        seen += k.recv(4096)
    t.contains(seen.decode(), "101")
    k.sendall(b"ping")
    while not seen.endswith(b"pong:ping"):
        more = k.recv(100)
        if not more:
            raise Failed(f"the upgraded connection ended: {seen!r}")
        seen += more
    k.close()
    c.close()


SERVER = """
import socket
from http.server import *
class H(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        if self.headers.get("Upgrade"):
            self.send_response(101); self.send_header("Connection", "Upgrade")
            self.send_header("Upgrade", "websocket"); self.end_headers()
            self.connection.sendall(b"pong:" + self.connection.recv(100))
            self.close_connection = True
            return
        body = b""
        if self.headers.get("Transfer-Encoding"):
            while n := int(self.rfile.readline(), 16):
                body += self.rfile.read(n); self.rfile.readline()
            self.rfile.readline()
        out = f"{self.command} {self.path} {body!r}".encode()
        self.send_response(200); self.send_header("Content-Length", str(len(out)))
        self.end_headers(); self.wfile.write(out)
    do_POST = do_GET
    def log_message(self, *a): pass
s = ThreadingHTTPServer(("127.0.0.1", 8000), H)
print("ready")
s.serve_forever()
"""


def test_serve_private_ports(t):
    s = Server(t)
    box = s.create(network={"allowPublicTraffic": False})
    token = box.info["trafficAccessToken"]
    t.equal(box.ask("GET", "/", port=8000).status, 403)
    t.equal(box.ask("GET", "/", port=8000, **{"E2b-Traffic-Access-Token": "x"}).status, 403)
    t.equal(box.ask("GET", "/", port=8000, **{"E2b-Traffic-Access-Token": token}).status, 502)


# -- the server

def test_serve_found_again_after_a_kill(t):
    """kill -9 of the daemon under load: every sandbox, process and file is found again."""
    s = Server(t)
    boxes = [s.create(metadata={"n": str(n)}, timeout=300) for n in range(4)]
    pids = []
    for n, box in enumerate(boxes):
        box.ask("POST", "/files?path=/tmp/kept", f"file {n}".encode())
        c, r = box.start("/bin/sh", "-c", "while :; do echo x; sleep 0.05; done", tag="loop")
        pids.append(next(messages(r))["event"]["start"]["pid"])
    stop = threading.Event()

    def make_load(box):
        while not stop.is_set():
            try:
                box.ask("POST", "/files?path=/tmp/load", os.urandom(100_000))
                box.sh("echo load")
            except Exception:
                return

    threads = [threading.Thread(target=make_load, args=(b,)) for b in boxes]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    s.process.send_signal(signal.SIGKILL)
    s.process.wait()
    stop.set()
    for thread in threads:
        thread.join()
    s.start()
    listed = s.ask("GET", "/v2/sandboxes?order=asc").json
    t.equal([b["sandboxID"] for b in listed], [b.id for b in boxes])
    for n, (box, pid) in enumerate(zip(boxes, pids)):
        again = Box(s, s.ask("POST", f"/v2/sandboxes/{box.id}/connect", {}).json)
        t.equal(again.token, box.token)
        t.equal(again.sh("cat /tmp/kept")[1], f"file {n}")
        t.equal([p["pid"] for p in again.rpc("process.Process/List", {})[1]["processes"]
                 if p.get("tag") == "loop"], [pid])
        c, r = again.stream("process.Process/Connect", {"process": {"pid": pid}})
        t.equal([list(m["event"])[0] for m, _ in zip(messages(r), range(2))], ["start", "data"])
        c.close()
        t.equal(again.kill(), 204)


def test_serve_box_that_dies(t):
    """Only its own sandbox ends, and that is seen."""
    s = Server(t)
    one, two = s.create(), s.create()
    _, r = one.start("/bin/sleep", "100")
    stream = messages(r)
    next(stream)
    pids = {b["name"]: b["pid"] for b in json.loads(t.ward("ps", "--json").out)["sandboxes"]
            if "pid" in b}
    if one.id in pids:
        t.run("kill", "-9", str(pids[one.id]), check=True)
    else:
        t.run("sh", "-c", f"ward kill {one.id} || true", env={
            "PATH": os.path.dirname(t.ward_path) + ":/usr/bin:/bin"})
    t.equal(list(stream), [])
    end = time.monotonic() + 40
    while s.ask("GET", f"/sandboxes/{one.id}").status != 404:
        if time.monotonic() > end:
            raise Failed("the dead sandbox is still there")
        one.ask("GET", "/envs")
        time.sleep(0.2)
    t.equal(two.sh("echo alive")[1], "alive\n")


def test_serve_front_is_confined(t):
    """The process that parses has no capability, a filter, and cannot gain anything."""
    s = Server(t)
    t.wait_until(s.children)
    front, = s.children()
    t.wait_until(lambda: "Seccomp:\t2" in (t.read(f"/proc/{front}/status") or ""))
    status = dict(line.split(":\t", 1) for line in t.run(
        "cat", f"/proc/{front}/status", root=t.as_user == "root").out.splitlines()
        if ":\t" in line)
    t.equal((status["Seccomp"], status["NoNewPrivs"], status["CapEff"], status["CapPrm"]),
            ("2", "1", "0" * 16, "0" * 16))


def test_serve_network_update(t):
    templates = t.fresh_dir("templates")
    t.write(templates, {"net.yaml": "version: 1\nnetwork: {mode: restricted, "
                                    "egress_allowlist: [example.test]}\n"})
    s = Server(t, "--templates", templates)
    closed, box = s.create(), s.create("net")

    def change(which, **body):
        return s.ask("PUT", f"/sandboxes/{which.id}/network", body)

    for which in (closed, box):
        for body in ({"allowOut": ["1.1.1.1"]}, {"rules": {"a": 1}}, {"denyOut": ["8.8.8.8"]}):
            t.equal(change(which, **body).status, 400)
        t.equal(change(which, denyOut="x").status, 400)
        t.equal((change(which).status, change(which, allowOut=[]).status), (204, 204))

    def generation():
        return json.loads(t.ward("net", "show", box.id, "--json").out)["generation"]

    before = generation()
    t.equal(change(box, allow_internet_access=False).status, 204)
    t.equal(generation() > before, True)
    shown = t.ward("net", "show", box.id, "--json").out
    has(t, shown, '"rule":"*","action":"deny"', "0.0.0.0/0", "[::]/0")
    info = s.ask("GET", f"/sandboxes/{box.id}").json
    t.equal((info["allowInternetAccess"], info["network"]["denyOut"]), (False, ["0.0.0.0/0"]))
    t.equal(change(box, allow_internet_access=False).status, 204)
    t.equal(change(box).status, 409)	# it does not come back
    t.equal(change(closed, denyOut=["0.0.0.0/0"]).status, 204)
    t.equal((change(closed).status, closed.sh("echo on")[1]), (204, "on\n"))


def test_serve_files_only_pause(t):
    """Without its memory: programs end, files stay."""
    s = Server(t)
    box = s.create(timeout=1, autoPause=True, autoPauseMemory=False)
    c, r = box.start("/bin/sh", "-c", "echo kept > ~/f; sleep 1000")
    next(messages(r))
    s.wait_log("sandbox_paused")
    c.close()
    t.equal(s.ask("POST", f"/sandboxes/{box.id}/connect", {"timeout": 60}).status, 201)
    count = "ls /proc | grep -c '^[0-9]'; cat ~/f; pgrep sleep"
    code, out, _ = box.sh(count)
    t.equal((code, out.split()[1:]), (1, ["kept"]))
    # paused with it, and resumed without
    c, r = box.start("/bin/sleep", "1000")
    next(messages(r))
    t.equal(s.ask("POST", f"/sandboxes/{box.id}/pause", {}).status, 204)
    t.equal(s.ask("POST", f"/sandboxes/{box.id}/connect", {"memory": False}).status, 201)
    t.equal(box.sh("pgrep sleep")[0], 1)
    c.close()


def test_serve_logs(t):
    s = Server(t)
    box = s.create()
    t.equal(s.ask("POST", f"/sandboxes/{box.id}/pause", {}).status, 204)
    v1 = s.ask("GET", f"/sandboxes/{box.id}/logs").json
    t.equal([e["line"] for e in v1["logs"]], ["sandbox_started", "sandbox_paused"])
    t.equal([(e["level"], e["message"]) for e in v1["logEntries"]],
            [("info", "sandbox_started"), ("info", "sandbox_paused")])

    def v2(query):
        r = s.ask("GET", f"/v2/sandboxes/{box.id}/logs?{query}")
        return [e["message"] for e in r.json["logs"]] if r.status == 200 else r.status

    t.equal(v2("direction=backward&limit=1"), ["sandbox_paused"])
    t.equal((v2("search=started"), v2("level=error"), v2("cursor=99999999999999")),
            (["sandbox_started"], [], []))
    t.equal((v2("level=x"), v2("limit=-1"), v2("direction=up"), v2("cursor=1e3")), (400,) * 4)
    bob = t.ward("serve", "--state", s.state, "--add-key", "bob").out.strip()
    t.equal(s.ask("GET", f"/v2/sandboxes/{box.id}/logs", key=bob).status, 404)


def test_serve_masked_host(t):
    s = Server(t)
    for bad in ("a b", "x/y", "a:b:c", "${PORT", 1, "a\r\nX: y"):
        r = s.ask("POST", "/v2/sandboxes", {"templateID": "base",
                                            "network": {"maskRequestHost": bad}})
        t.equal((bad, r.status), (bad, 400))
    box = s.create(network={"maskRequestHost": "app.test:${PORT}"})
    code = ("import socket\ns = socket.create_server(('127.0.0.1', 8000))\nprint('up')\n"
            "while True:\n k = s.accept()[0]\n b = k.recv(9999)\n"
            " k.sendall(b'HTTP/1.1 200 OK\\r\\nConnection: close\\r\\n\\r\\n' + b)\n"
            " k.close()\n")
    c, r = box.start("/usr/bin/python3", "-u", "-c", code, stdin=False)
    stream = messages(r)
    while "data" not in next(stream)["event"]:
        pass
    seen = box.ask("GET", "/", port=8000).body.decode()
    has(t, seen, "Host: app.test:8000\r\n")
    t.equal(seen.count("Host:"), 1)
    c.close()


def test_serve_packed_upload(t):
    box = Server(t).create()
    text = b"x" * 1000000 + os.urandom(100)
    packed = gzip.compress(text[:500]) + gzip.compress(text[500:])

    def send(body, path="f", coding="gzip"):
        return box.ask("POST", f"/files?path={path}", body,
                       **{"Content-Type": "application/octet-stream",
                          "Content-Encoding": coding}).status

    t.equal((send(packed), box.ask("GET", "/files?path=f").body), (200, text))
    for bad in (packed[:-1], b"no gzip", b"", packed + b"x"):
        t.equal(send(bad, "g"), 400)
    t.equal((send(packed, "g", "br"), box.ask("GET", "/files?path=g").status), (415, 404))


def test_serve_metrics(t):
    s = Server(t)
    box = s.create()
    text = s.ask("GET", "/metrics").body.decode()
    has(t, text, 'ward_sandboxes{state="running"} 1', 'event="created"} 1')
    t.equal(s.ask("GET", "/metrics", key=False).status, 401)
    if t.run("sh", "-c", "command -v promtool").rc == 0:
        t.equal(t.run("promtool", "check", "metrics", input=text).rc, 0)
    one, = s.ask("GET", f"/sandboxes/{box.id}/metrics").json
    t.equal((one["memUsed"] > 0, one["cpuCount"] > 0), (True, True))
    t.equal((one["memTotal"], one["diskTotal"]), (2 << 30, 2 << 30))
    info = s.ask("GET", f"/sandboxes/{box.id}").json
    t.equal((info["memoryMB"], info["diskSizeMB"]), (2048, 2048))
    box.sh("timeout 1 sh -c 'while :; do :; done'")
    busy, = s.ask("GET", f"/sandboxes/{box.id}/metrics").json
    t.equal((busy["cpuUsedPct"] > 0, busy["cpuUsedPct"] <= 100), (True, True))
    has(t, s.log(), '"kind":"sandbox_started"', '"kind":"request"')
    for line in s.log().splitlines():
        json.loads(line)


def test_serve_bad_options(t):
    for args, word in ((("--listen", "0.0.0.0:3000"), "loopback only"),
                       (("--listen", "3000"), "ADDRESS:PORT"), (("--max", "x"), "--max"),
                       (("--listen", "127.0.0.1:99999"), "--listen")):
        r = t.ward("serve", "--state", t.fresh_dir("s"), *args)
        t.equal((args, r.rc != 0), (args, True))
        t.contains(r.err, word)
    s = Server(t)
    r = t.ward("serve", "--state", s.state, "--listen", "127.0.0.1:0")
    t.equal(r.rc, 125)
    t.contains(r.err, "another ward serve")


@timeout(120)
def test_serve_many_streams(t):
    """200 streams at one time, and the server answers besides."""
    s = Server(t)
    box = s.create()
    streams = []
    for n in range(150):
        c, r = box.start("/bin/sh", "-c", f"read x; echo {n}", timeout=60)
        stream = messages(r)
        streams.append((n, next(stream)["event"]["start"]["pid"], stream, c))
    t.equal(s.ask("GET", "/healthz", key=False).status, 200)
    for n, pid, stream, c in streams:
        box.rpc("process.Process/SendInput", {"process": {"pid": pid},
                                              "input": {"stdin": "Cg=="}})
    for n, pid, stream, c in streams:
        said = list(stream)
        t.equal(base64.b64decode(said[0]["event"]["data"]["stdout"]), f"{n}\n".encode())
        c.close()
