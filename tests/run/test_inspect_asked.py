"""Rules about what a request asks for: GraphQL operations, JSON-RPC methods, uses of git. What is
refused never reaches the server."""
import gzip
import json
import os
import shutil

from harness import by_turns, timeout
from harness.world import HERE, denial, need, policy, serve, trusted_world

# A small program for raw requests of HTTP/1.1, one connection each: [head lines, body in hex,
# pieces] -> [status, body]
CLIENT = r"""
import http.client, json, socket, ssl
context = ssl.create_default_context()
for head, body, pieces in json.load(open("requests.json")):
    body = bytes.fromhex(body)
    try:
        s = context.wrap_socket(socket.create_connection(("web.test", 443), 20),
                                server_hostname="web.test")
        s.settimeout(20)
        if "100-continue" in head:
            s.sendall(head.encode())
            assert s.recv(1000).startswith(b"HTTP/1.1 100")
            s.sendall(body)
        elif pieces:
            s.sendall(head.encode())
            for i in range(0, len(body), pieces):
                part = body[i:i + pieces]
                s.sendall(b"%x\r\n%s\r\n" % (len(part), part))
            s.sendall(b"0\r\n\r\n")
        else:
            s.sendall(head.encode() + body)
        r = http.client.HTTPResponse(s)
        r.begin()
        print(json.dumps([r.status, r.read().decode("latin-1")]), flush=True)
    except Exception as error:
        print(json.dumps([type(error).__name__, str(error)]), flush=True)
"""
JSON = "application/json"


def post(path, body, kind=JSON, more="", pieces=0):
    data = body if isinstance(body, bytes) else (body if isinstance(body, str)
                                                 else json.dumps(body)).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: web.test\r\nContent-Type: {kind}\r\n{more}"
    return [head + (f"Transfer-Encoding: chunked\r\n\r\n"
                    if pieces else f"Content-Length: {len(data)}\r\n\r\n"), data.hex(), pieces]


def get(path):
    return [f"GET {path} HTTP/1.1\r\nHost: web.test\r\n\r\n", "", 0]


def ask(t, world, rules, rows):
    """Sends each row's request; returns the answers and the report."""
    ws = t.workspace({"client.py": CLIENT, "requests.json": json.dumps([row[0] for row in rows])})
    r = world.ward("run", "-p", policy(t, rules), "--", "/usr/bin/python3", "client.py", cwd=ws,
                   report=True, timeout=60)
    t.equal(r.rc, 0, f"exit code ({r.err})")
    return [json.loads(line) for line in r.out.splitlines()], r.report


def check(t, world, rules, allowed, denied):
    got, report = ask(t, world, rules, allowed + denied)
    for (request, what), (status, body) in zip(allowed, got):
        t.equal(status, 200, f"{what} ({body[:300]})")
    for (request, what, status, reason), (was, body) in zip(denied, got[len(allowed):]):
        t.equal(was, status, f"{what} ({body[:300]})")
        t.equal(json.loads(body)["reason"], reason, f"{what} ({body[:300]})")
    seen = [line for line in world.log() if line.startswith("http ")]
    t.equal(len(seen), len(allowed), f"requests that the server saw: {seen}")
    t.equal(len(got), len(allowed) + len(denied), "answers")
    return got, report


def gql(query, **more):
    return {"query": query, **more}


def test_graphql(t):
    """Operations and root fields by name; aliases, fragments, lists, names, escapes and codings
    hide nothing."""
    world = trusted_world(t)
    rules = [{"host": "web.test", "paths": ["/graphql"],
              "graphql": ["query:viewer", "query:repo*", "mutation:addStar"]},
             {"host": "web.test", "paths": ["/persisted"], "graphql": ["query", "persisted"]}]
    path, big = "/graphql", "# " + "x" * 200000 + "\n"
    ok = [(gql("{ viewer { login } }"), "a query"),
          (gql("query Q($n: Int = 3) { a: viewer { x(first: $n) } repository __typename }",
               variables={"n": 1}), "an alias"),
          (gql("mutation M { addStar(id: 1) { ok } }", operationName="M"), "a mutation"),
          ([gql("{viewer{a}}"), gql("{repos{a}}")], "a list"),
          (gql("query A { viewer { a } } mutation B { deleteAll }", operationName="A"),
           "the operation that is named"),
          (gql("{ ...F } fragment F on Q { ... on Q { viewer { deleteRepo } } }"), "fragments"),
          (gql(big + "{ viewer { a(s: \"}{\", b: \"\"\"{ deleteRepo }\"\"\") } }"),
           "strings and comments")]
    allowed = [(post(path, body), what) for body, what in ok]
    allowed += [(post(path, "{ viewer { a } }", "application/graphql"), "as text"),
                (get(path + "?query=%7Bviewer%7Ba%7D%7D"), "in a GET"),
                (post(path, gzip.compress(json.dumps(gql("{viewer{a}}")).encode()),
                      more="Content-Encoding: gzip\r\n"), "compressed"),
                (post(path, gql("{viewer{a}}"), more="Expect: 100-continue\r\n"),
                 "with 100-continue"), (post(path, gql("{viewer{a}}"), pieces=3), "in chunks"),
                (post(path, gql("{viewer{a}}"), "Application/JSON; charset=UTF-8"),
                 "with a charset"),
                (post("/persisted", {"id": "abc", "variables": {}}),
                 "a persisted query, where that is allowed")]
    no = [(gql("{ viewer: deleteRepo { a } }"), "an alias for another field"),
          (gql("{ viewer { a } ...F } fragment F on Q { x: deleteRepo }"), "a fragment"),
          (gql("{ viewer { a } ... { ... on Q { deleteRepo } } }"), "inline fragments"),
          (gql("{ ...A } fragment A on Q { ...B } fragment B on Q { deleteRepo ...A }"),
           "a fragment in a fragment"),
          (gql("mutation { viewer { a } }"), "the field of another operation"),
          (gql("subscription { viewer }"), "a subscription"),
          (gql("query A { viewer { a } } query B { deleteRepo }", operationName="B"),
           "the other operation"),
          ([gql("{viewer{a}}"), gql("{deleteRepo}")], "the second of a list"),
          (gql("{ viewer @skip(if: true) { a } deleteRepo @skip(if: true) }"), "a directive"),
          (gql("{__schema{types{name}}}"), "introspection"),
          ({"extensions": {"persistedQuery": {"version": 1, "sha256Hash": "ab"}}},
           "a persisted query"),
          ({"query": "{viewer{a}}", "extensions": {"persistedQuery": {"version": 1}}},
           "a persisted query beside a text"), ({"id": "DENIED"}, "a query by id")]
    raw = ['{"query": "{viewer{a}}", "query": "{deleteRepo}"}',
           '{"query": "{viewer{a}}", "\\u0071uery": "{deleteRepo}"}',
           '{"query": "{viewer{a}}", "Query": "{deleteRepo}"}',
           '{"query": "{viewer{a}}", "variables": {"a": 1, "a": 2}}', '{"query": ["{viewer{a}}"]}',
           '{"query": "{viewer{a}}"} {"query": "{deleteRepo}"}', '{"query": "{viewer{a}}",}',
           '', '[]', 'null', '"{viewer}"', '{}', '{"query": "{viewer{a}"}',
           '{"query": "query A {viewer{a}} query B {viewer{a}}"}',
           '{"query": "{viewer{a}} type Q { a: Int }"}',
           '{"query": "{viewer{a}} # \\u2028 {deleteRepo}"}',
           '{"query": "{viewer{a}}", "operationName": "Other"}', "{'query': '{viewer{a}}'}",
           '{"query": "' + "{viewer" * 80 + "}" * 80 + '"}',
           '{"query": "{viewer{a}}", "variables": ' + "[" * 80 + "]" * 80 + "}",
           '{"query": "{viewer{a}}", "variables": NaN}',
           '\ufeff{"query": "{viewer{a}}"}', json.dumps(gql("{viewer{a}}")).encode("utf-16"),
           json.dumps(gql("{viewer{a}}")).encode("utf-16-le"), b'{"query": "{viewer{a}} # \xff"}',
           '{"query": "{viewer{a}}\\u0000"}']
    denied = [(post(path, body), what, 403, "graphql") for body, what in no]
    denied += [(post(path, body), repr(body)[:90], 403, "graphql_bad") for body in raw]
    denied += [(post(path, gql("{viewer{a}}"), "text/plain"), "another type", 403, "graphql_bad"),
               (post(path, "query={viewer}", "application/x-www-form-urlencoded"), "a form", 403,
                "graphql_bad"),
               (post(path, gql("{viewer{a}}"), JSON + "; charset=utf-16"), "another charset", 403,
                "graphql_bad"),
               (post(path, gql("{viewer{a}}"), more="Content-Type: application/graphql\r\n"),
                "two types", 403, "graphql_bad"),
               (post(path + "?query=%7BdeleteRepo%7D", gql("{viewer{a}}")), "a POST with a query",
                403, "graphql_bad"),
               (post(path + "?+query=%7BdeleteRepo%7D", gql("{viewer{a}}")),
                "a POST with a query behind a space", 403, "graphql_bad"),
               (post(path, gql("{viewer{a}}"), more="X-HTTP-Method-Override: GET\r\n"),
                "another method", 403, "graphql_bad"),
               (get(path + "?query=%7Bviewer%7Ba%7D%7D&query=%7BdeleteRepo%7D"), "a query twice",
                403, "graphql_bad"), (get(path), "no query", 403, "graphql_bad"),
               (get(path + "?query=mutation%7BdeleteRepo%7D"), "a mutation in a GET", 403,
                "graphql"),
               (post(path, gql("{viewer{a}}"), more="Content-Encoding: br\r\n"),
                "an unknown coding", 415, "encoding"),
               (post(path, gzip.compress(b"{") + gzip.compress(b"}"),
                     more="Content-Encoding: gzip\r\n"), "two streams", 415, "encoding"),
               (post(path, gzip.compress(b" " * 30000000), more="Content-Encoding: gzip\r\n"),
                "a bomb", 413, "look_size"),
               (post(path, gql("{viewer{a}} #" + "x" * 1100000)), "a large body", 413, "look_size"),
               (post(path, gql("{deleteRepo}"), more="Expect: 100-continue\r\n"),
                "denied with 100-continue", 403, "graphql"),
               (post(path, gql("{deleteRepo}"), pieces=1), "denied in chunks", 403, "graphql")]
    got, report = check(t, world, rules, allowed, denied)
    first = json.loads(got[len(allowed)][1])
    t.contains(first["remedy"], 'graphql: ["query:deleteRepo"]', "the remedy in the answer")
    t.contains(denial(t, report,
                      "POST /graphql graphql=query:deleteRepo to web.test:443")["remedy"],
               'graphql: ["query:deleteRepo"]', "the remedy in the report")


def call(method, **more):
    return {"jsonrpc": "2.0", "id": 1, "method": method, **more}


def test_json_rpc(t):
    """Methods by name and pattern, tools of MCP by their own names; every call of a list counts."""
    world = trusted_world(t)
    rules = [{"host": "web.test", "paths": ["/mcp"],
              "json_rpc": ["initialize", "notifications/*", "tools/list", "tools/call:search",
                           "tools/call:read_*"]},
             {"host": "web.test", "paths": ["/mcp"], "methods": ["GET"], "query": []}]
    tool = lambda name, **more: call("tools/call",
                                     params={"name": name,
                                             "arguments": {"name": "delete", "a": 1, "A": 2},
                                             **more})
    ok = [(call("initialize"), "a method"), (call("notifications/initialized"), "a pattern"),
          (tool("search"), "a tool"), (tool("read_file"), "a tool by pattern"),
          ([call("tools/list"), tool("search")], "a list"),
          ({"jsonrpc": "2.0", "id": 3, "result": {"x": 1}}, "an answer"),
          ('{"jsonrpc":"2.0","id":1,"m\\u0065thod":"tools\\/list"}', "escapes")]
    allowed = [(post("/mcp", body), what) for body, what in ok]
    allowed += [(get("/mcp"), "what another rule allows"),
                (post("/mcp", call("tools/list"), pieces=2), "in chunks"),
                (post("/mcp", gzip.compress(json.dumps(call("tools/list")).encode()),
                      more="Content-Encoding: gzip\r\n"), "compressed")]
    no = [(call("resources/list"), "another method"), (tool("delete"), "another tool"),
          (call("tools/call"), "a tool without a name"),
          ([call("tools/list"), tool("delete")], "the second of a list"),
          (call("Tools/List"), "another case"), (call("tools/list "), "a space"),
          (call("tools/call", params=["search"]), "parameters in a list"),
          (call("tools/call", params={"name": ["search"]}), "a name that is a list")]
    raw = ['{"method": "tools/list", "method": "evil"}',
           '{"method": "tools/list", "meth\\u006fd": "evil"}',
           '{"method": "tools/list", "Method": "evil"}',
           '{"method": "tools/call", "params": {"name": "search", "name": "delete"}}',
           '{"method": "tools/call", "params": {"name": "search", "Name": "delete"}}',
           '{"method": "tools/list"}{"method": "evil"}', '[]', '', '{"id": 1}', '{"method": 5}',
           '{"method": "tools/list", "result": 1}', '[[{"method": "tools/list"}]]',
           json.dumps(call("tools/list")).encode("utf-16"),
           '\ufeff' + json.dumps(call("tools/list")),
           json.dumps({"\u017f": 1, **call("tools/list")}),
           '{"method": "tools/list", "params": ' + "[" * 100 + "]" * 100 + "}",
           '{"method": "tools/list\\u0000"}', '{"method": "tools/list" /* , */ }']
    denied = [(post("/mcp", body), what, 403, "json_rpc") for body, what in no]
    denied += [(post("/mcp", body), repr(body)[:90], 403, "json_rpc_bad") for body in raw]
    denied += [(post("/mcp", call("tools/list"), "text/plain"), "another type", 403,
                "json_rpc_bad"), (get("/mcp?method=evil"), "a GET with a query", 403,
                                  "json_rpc_bad"),
               (post("/mcp", "x" * 1100000), "a large body", 413, "look_size")]
    _, report = check(t, world, rules, allowed, denied)
    t.contains(denial(t, report, "POST /mcp json_rpc=tools/call:delete to web.test:443")["remedy"],
               'json_rpc: ["tools/call:delete"]', "the remedy")


def test_rate(t):
    """A request counts at the rule that its body has chosen."""
    world = trusted_world(t)
    rules = [{"host": "web.test", "paths": ["/mcp"], "json_rpc": ["tools/list"]},
             {"host": "web.test", "paths": ["/mcp"], "json_rpc": ["tools/call"], "request_rate": 2}]
    row = post("/mcp", call("tools/call"))
    got, _ = ask(t, world, rules, [(row,)] * 4 + [(post("/mcp", call("tools/list")),)])
    t.equal([status for status, _ in got], [200, 200, 429, 429, 200], "statuses")
    t.equal(json.loads(got[2][1])["reason"], "request_rate", "reason")


def test_events(t):
    """Each request is an event: method, host, path without its query, status, bytes, rule, what was
    asked for; of what is refused why, and the line that would allow it."""
    world = trusted_world(t)
    rules = [{"host": "web.test", "paths": ["/mcp"], "json_rpc": ["tools/list"]},
             {"host": "web.test", "methods": ["GET"], "paths": ["/open/*"]}]
    body = call("tools/list")
    ask(t, world, rules, [(post("/mcp", body),), (get("/open/x?token=UNMISTAKABLE_QUERY_SECRET"),),
                          (post("/mcp", call("tools/UNMISTAKABLE_METHOD")),), (get("/closed"),)])
    place = os.path.join(t.state_dir, "audit/runs")
    text = t.read(place, sorted(os.listdir(place))[-1])
    t.check("UNMISTAKABLE_QUERY_SECRET" not in text, "no query in the journal")
    events = [e for e in map(json.loads, text.splitlines()) if e["kind"] == "net.http"]
    seen = {(e["action"], e["method"], e["url"].removeprefix("https://web.test"), e.get("asked")): e
            for e in events}
    t.equal(set(seen), {("allow", "POST", "/mcp", "json_rpc=tools/list"),
                        ("allow", "GET", "/open/x", None),
                        ("deny", "POST", "/mcp", "json_rpc=tools/UNMISTAKABLE_METHOD"),
                        ("deny", "GET", "/closed", None)}, f"events: {events}")
    t.equal({e["object"] for e in events},
            {"POST https://web.test/mcp", "GET https://web.test/open/x",
             "GET https://web.test/closed"}, "objects")
    one = seen["allow", "POST", "/mcp", "json_rpc=tools/list"]
    size = len(json.dumps(body))
    t.equal((one["host"], one["port"], one["status"], one["bytes_out"], one["bytes_in"],
             one["rule"]), ("web.test", 443, 200, size, size, "web.test:443"), one)
    refused = seen["deny", "POST", "/mcp", "json_rpc=tools/UNMISTAKABLE_METHOD"]
    t.equal(refused["reason"], "json_rpc", refused)
    t.contains(refused["remedy"], 'json_rpc: ["tools/UNMISTAKABLE_METHOD"]', "remedy")


NGINX = """
daemon off; master_process off; pid {d}/nginx.pid; error_log {d}/error.log; user root;
events {{}}
http {{ access_log off; client_body_temp_path {d}; proxy_temp_path {d}; fastcgi_temp_path {d}; uwsgi_temp_path {d}; scgi_temp_path {d}; client_max_body_size 100m;
server {{ listen 9443 ssl http2; ssl_certificate {c}/server.pem; ssl_certificate_key {c}/server.key; location / {{ proxy_pass http://192.0.2.10:8080; proxy_set_header Host $host; }} }} }}
"""


def test_http2(t):
    """The same over HTTP/2, to a real nginx: several streams of one connection, bodies larger than
    their window."""
    nginx, curl = need(t, "nginx", "curl")
    world = trusted_world(t)
    t.write(world.dir, {"nginx.conf": NGINX.format(d=world.dir, c=world.certificates)})
    serve(t, world, [nginx, "-c", os.path.join(world.dir, "nginx.conf")], 9443)
    rules = [{"host": "web.test", "ports": [9443], "paths": ["/graphql"],
              "graphql": ["query:viewer"]}]
    bodies = {"one": gql("{viewer{a}}"), "large": gql("{viewer{a}} #" + "x" * 700000),
              "denied": gql("{viewer{a} deleteRepo}"), "huge": gql("{viewer{a}} #" + "x" * 1200000),
              "twice": '{"query":"{viewer{a}}","query":"{deleteRepo}"}', "last": gql("{viewer{b}}")}
    ws = t.workspace({name: body if isinstance(body, str) else json.dumps(body)
                      for name, body in bodies.items()})
    next_one = ["--next"]
    argv = []
    for name in bodies:
        argv += (next_one if argv else []) + ["-sS", "--http2", "-H",
                                              "Content-Type: application/json", "--data-binary",
                                              f"@{name}", "-o", f"{name}.out", "-w",
                                              f"{name} %{{http_version}} %{{http_code}}\n",
                                              "https://web.test:9443/graphql"]
    r = world.ward("run", "-p", policy(t, rules), "--", curl, *argv, cwd=ws, report=True,
                   timeout=60)
    t.equal(r.rc, 0, f"exit code ({r.out} {r.err})")
    t.equal(r.out.splitlines(), ["one 2 200", "large 2 200", "denied 2 403", "huge 2 413",
                                 "twice 2 403", "last 2 200"], "answers")
    t.equal(json.loads(t.read(os.path.join(ws, "large.out"))), bodies["large"],
            "the large one came whole")
    t.equal(json.loads(t.read(os.path.join(ws, "denied.out")))["reason"], "graphql", "why")
    with t.root():	# nginx has made the directory its own
        seen = [line for line in world.log() if line.startswith("http ")]
    t.equal(len(seen), 3, f"requests that the server saw: {seen}")


GIT = r"""
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b GIT_TERMINAL_PROMPT=0 HOME=/tmp
url=https://web.test:9447
say() { name=$1; shift; if "$@" >/tmp/out 2>&1; then echo "$name yes"; else echo "$name no $(tr '\n' '|' </tmp/out)"; fi; }
cd /tmp
say clone git clone -q $url/team/open.git
say clone-v0 git -c protocol.version=0 clone -q $url/team/open.git v0
say clone-v1 git -c protocol.version=1 clone -q $url/team/open v1
say clone-other git clone -q $url/other/closed.git
say clone-secret git clone -q $url/team/open.git/../../other/closed.git
cd open
git checkout -q -b work
for i in 1 2 3; do echo $i >f$i; git add .; git commit -qm "commit $i"; done
say create git push -q origin work:refs/heads/agent/work
for i in 4 5; do echo $i >f$i; git add .; git commit -qm "commit $i"; done
seq 300000 >big; git add big; git commit -qm big
say forward git push -q origin work:refs/heads/agent/work
say main git push -q origin work:refs/heads/main
say two git push -q origin work:refs/heads/agent/second work:refs/heads/main
say delete git push -q origin :refs/heads/agent/work
git tag v1.0; git tag -a -m x v1.1; git tag free
say tag git push -q origin v1.0 v1.1
say tag-other git push -q origin free
git tag -f v1.0 HEAD~1 >/dev/null
say tag-moved git push -q -f origin v1.0
git checkout -q -b side HEAD~2; echo side >side; git add .; git commit -qm side
say force git push -q -f origin side:refs/heads/agent/work
say force-back git push -q -f origin work~3:refs/heads/agent/work
git checkout -q work; git merge -q side -m merge
say merge git push -q origin work:refs/heads/agent/work
say option git push -q -o merge_request.create origin work:refs/heads/agent/third
say atomic git push -q --atomic origin work:refs/heads/agent/fourth
say other git push -q $url/other/closed.git work:refs/heads/agent/x
say fetch git fetch -q
cd ..; git clone -q --depth 1 $url/team/open.git shallow; cd shallow; echo s >s; git add .; git commit -qm s
say shallow git push -q origin HEAD:refs/heads/agent/shallow
echo t >s; git commit -qam t
say shallow-forward git push -q origin HEAD:refs/heads/agent/shallow
cd ../v0; say free-force git push -q -f $url/team/free.git HEAD:refs/heads/main
say free-delete git push -q $url/team/free.git :refs/heads/gone
for path in info/refs HEAD objects/info/packs "info/refs?service=git-upload-archive" "info/refs?service=git-upload-pack&service=git-receive-pack"; do
    echo "dumb $path $(curl -sS -o /dev/null -w '%{http_code}' "$url/team/open.git/$path")"
done
"""


@by_turns
@timeout(120)
def test_git(t):
    """Repositories, branches, tags, no force and no deletion, read from what a real git says to a
    real git http-backend; git shows why."""
    git, = need(t, "git")
    world = trusted_world(t)
    repo = t.git_repo({"README": "over HTTPS\n"})
    bare = lambda name: os.path.join(world.dir, name)
    for name in ("team/open.git", "other/closed.git", "team/free.git"):
        os.makedirs(os.path.dirname(bare(name)), exist_ok=True)
        t.run(git, "clone", "-q", "--bare", repo, bare(name), check=True)
    t.run(git, "-C", bare("team/free.git"), "branch", "gone", check=True)
    run = lambda name, *argv: t.run(git, "-c", "safe.directory=*", "-C", bare(name), *argv,
                                    root=True).out
    main = run("team/open.git", "symbolic-ref", "HEAD").strip().split("/")[-1]
    serve(t, world, ["/usr/bin/python3", os.path.join(HERE, "git_server.py"), world.certificates,
                     "9447", world.dir], 9447)
    host = {"host": "web.test", "ports": [9447]}
    rules = [{**host, "git": ["fetch", "push"], "repositories": ["/team/open"],
              "refs": ["refs/heads/agent/*", "refs/tags/v*"]},
             {**host, "git": ["push", "force", "delete"], "repositories": ["/team/free.git"]}]
    before = run("team/open.git", "rev-parse", main)
    r = world.ward("run", "-p", policy(t, rules), "--", "/bin/bash", "-c",
                   GIT.replace("/main", "/" + main), cwd=t.workspace({}), report=True, timeout=100)
    t.equal(r.rc, 0, f"exit code ({r.out} {r.err})")
    got = {line.split(" ", 1)[0]: line.split(" ", 1)[1] for line in r.out.splitlines()
           if not line.startswith("dumb")}
    for name in ("clone", "clone-v0", "clone-v1", "create", "forward", "tag", "merge", "atomic",
                 "fetch", "shallow", "shallow-forward", "free-force", "free-delete"):
        t.equal(got.get(name), "yes", f"{name} ({r.out[:6000]})")
    whys = {"clone-other": "repositories=/other/closed",
            "clone-secret": "repositories=/other/closed", "other": "repositories=/other/closed",
            "main": f"refs=refs/heads/{main}",
            "two": "another part of the push was refused", "delete": 'git: ["delete"]',
            "tag-other": "refs=refs/tags/free", "tag-moved": 'git: ["push", "force"]',
            "force": 'git: ["push", "force"]',
            "force-back": "does not prove", "option": 'git: ["push", "options"]'}
    for name, why in whys.items():
        t.check(got[name].startswith("no ") and why in got[name], f"{name}: {got[name]}")
        t.check("ward: " in got[name], f"git shows what ward says: {name}: {got[name]}")
    t.equal([line.split(" ")[2] for line in r.out.splitlines() if line.startswith("dumb")],
            ["403"] * 5, "the dumb protocol and other services")
    t.equal(run("team/open.git", "rev-parse", main), before, "main is where it was")
    refs = run("team/open.git", "for-each-ref", "--format=%(refname)").split()
    t.equal(sorted(refs),
            sorted([f"refs/heads/{main}", "refs/heads/agent/work", "refs/heads/agent/fourth",
                    "refs/heads/agent/shallow", "refs/tags/v1.0", "refs/tags/v1.1"]), "refs")
    t.equal(run("team/open.git", "log", "-1", "--format=%s", "agent/work").strip(), "merge",
            "the last that was pushed")
    t.equal(run("team/free.git", "for-each-ref", "--format=%(refname)").split(),
            [f"refs/heads/{main}"], "what was deleted where that is allowed")
    t.equal(run("other/closed.git", "for-each-ref", "--format=%(refname)").split(),
            [f"refs/heads/{main}"], "the other repository")
    with t.root():
        seen = (t.read(os.path.join(world.dir, "requests")) or "").splitlines()
    t.check(not [line for line in seen if "closed" in line],
            f"the other repository was never asked for: {seen}")
    t.contains(denial(t, r.report, f"POST /team/open.git/git-receive-pack refs=refs/heads/{main} "
                      "to web.test:9447")["remedy"], f'refs: ["refs/heads/{main}"]', "remedy")


def test_plan_shows_conditions(t):
    """What a rule says about requests stands in the plan, for readers and for programs."""
    path = policy(t,
                  rules=[{"host": "api.test", "methods": ["GET", "POST"],
                          "graphql": ["query", "mutation:add*"]},
                         {"host": "w.test", "waf": "block"}, "plain.test"])
    text = t.ward("plan", "--full", "-p", path, "--", "true", cwd=t.workspace()).out
    for line in ("    methods: GET, POST\n", "    graphql: query, mutation:add*\n",
                 "    waf: block\n"):
        t.contains(text, line, "the plan")
    rows = json.loads(t.ward("plan", "--json", "-p", path, "--", "true",
                             cwd=t.workspace()).out)["network"]
    t.equal([(row["conditions"], row["waf"]) for row in rows],
            [(["methods: GET", "methods: POST", "graphql: query", "graphql: mutation:add*"], "off"),
             ([], "block"), ([], "off")])
