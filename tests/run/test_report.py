"""The page of a run, looked at in a real browser; numbers for Prometheus, judged by promtool; and
secrets, which are nowhere."""
import html
import html.parser
import json
import os
import re

from harness import by_turns, native_only, slow, timeout
from harness.world import OTHER, World, attempts

HOSTILE = ('"><script>alert(1)</script><img src=http://evil.example/x.png '
           'onerror=alert(2)>\'&amp;<svg/onload=alert(3)>\u202e')


class Page(html.parser.HTMLParser):
    """What the page is made of: tags and attributes, each of which must be one of ours."""
    TAGS = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "pre", "code", "div",
            "b", "small", "table", "tr", "th", "td", "svg", "circle", "text", "line", "polyline",
            "figure",
            "figcaption", "details", "summary", "br", "ul", "li", "span"}
    ATTRIBUTES = {"lang", "charset", "http-equiv", "content", "name", "class", "viewbox", "role",
                  "aria-label", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "points",
                  "text-anchor", "open"}

    def __init__(self, text):
        super().__init__()
        self.strange, self.text, self.open, self.tags = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in self.TAGS or any(a not in self.ATTRIBUTES for a, _ in attrs):
            self.strange.append((tag, attrs))
        if tag not in ("meta", "br", "circle", "line", "polyline"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.strange.append(("end", tag))

    def handle_data(self, data):
        self.text.append(data)


def report(t, ws, *words):
    r = t.ward("audit", "report", "--html", *words, cwd=ws)
    t.equal(r.rc, 0, r.err)
    return r.out


def page_of(t, text):
    p = Page(text)
    t.equal((p.strange, p.open), ([], []))
    return p


def test_a_page_that_nothing_breaks_out_of(t):
    ws = t.workspace()
    t.ward("run", "--set", "audit.level=exec", "--", "/bin/sh", "-c",
           "echo x > .envrc; unshare -U true; /bin/true \"$0\"; exit 3", HOSTILE, cwd=ws)
    text = report(t, ws)
    p = page_of(t, text)
    words = "".join(p.text)
    t.check("<script>alert(1)</script>" in words and "<script" not in text.lower()
            and "onerror=alert(2)>" not in text, "the name is shown as text")
    t.check("\u202e" not in text, "text that turns around")
    for part in ("exit 3", "exec.syscall", "a sandbox may not create namespaces",
                 "ward policy add process.nesting true", ".envrc", "run.end", "seccomp",
                 "Timeline"):
        t.contains(words, part)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text).group(1)
    t.check(policy.startswith("default-src 'none'; style-src 'sha256-") and "unsafe" not in policy,
            policy)
    t.check(not re.search(r"url\(|@import", re.search("<style>(.*)</style>", text).group(1)),
            "nothing from elsewhere")
    file = os.path.join(t.fresh_dir(), "report.html")
    t.equal(t.ward("audit", "report", "--html", "-o", file, cwd=ws).rc, 0)
    t.equal(t.read(file), text)


BUSY = r"""
import os, subprocess, sys
os.makedirs("src/deep/er", exist_ok=True)
for i in range(3):
    open(f"src/deep/er/made{i}", "w").write("x")
open("input.txt").read()
open("src/lib.txt").read()
os.remove("src/deep/er/made2")
subprocess.run(["/bin/sh", "-c", "/bin/cat src/lib.txt > copied; /bin/true; /bin/true"])
try:
    open(".env").read()
except OSError:
    pass
hostile = sys.argv[1]
os.makedirs(hostile + "/" + hostile)
for n in ("\x1b[2Jone", "<b>two", "\xfe".encode("utf-8", "surrogateescape").decode()):
    open(hostile + "/" + hostile + "/" + n, "w").write("y")
subprocess.run(["/bin/true", hostile])
"""


def test_trees(t):
    """Processes beneath their parents, paths beneath their directories, what was done to each, and
    names that are HTML and terminal codes as text."""
    ws = t.workspace({"input.txt": "i", "src/lib.txt": "l", ".env": "SECRET=1", "unread.txt": "u"})
    hostile = "</code></li></ul><script>alert(1)<details open>\x1b]0;title\x07"
    r = t.ward("run", "--set", "filesystem.hide=[.env]", "--set", "audit.level=full", "--",
               "/usr/bin/python3", "-c", BUSY, hostile.replace("/", "\u2215"), cwd=ws)
    t.equal(r.rc, 0, r.err)
    events = [json.loads(s) for s in t.ward("audit", "show", "--json", cwd=ws).out.splitlines()]
    reads = {os.path.relpath(e["object"], ws): e for e in events if e["kind"] == "file.read"}
    t.equal({"input.txt", "src/lib.txt", ".env", "unread.txt"} & set(reads),
            {"input.txt", "src/lib.txt"})
    t.check(all(e["observed"] and e["pid"] and "/python3" in reads["input.txt"]["exe"]
                and not e["object"].startswith(("/usr", "/etc", "/proc"))
                for e in reads.values()), reads)
    text = report(t, ws)
    p = page_of(t, text)
    words = "".join(p.text)
    t.check("\x1b" not in text and "\x07" not in text and "<script" not in text, "raw bytes")
    t.check(p.tags.count("li") >= 12 and p.tags.count("details") >= 5, p.tags)
    for part in ("Processes", "Files", "/bin/cat src/lib.txt", "/bin/true \u00d72",
                 "<script>alert(1)"):
        t.contains(words, part)
    tree = text[text.index("<h2>Processes"):text.index("<h2>Files")]
    shell, cat = tree.index("/bin/sh -c"), tree.index("<code>/bin/cat")
    t.check(shell < cat and "<ul>" in tree[shell:cat] and "</ul>" not in tree[shell:cat], tree)
    files = text[text.index("<h2>Files"):text.index("<h2>Timeline")]
    rows = dict(re.findall(r'<li><code>([^<]*)</code>((?: <span[^>]*>[^<]*</span>)+)', files))
    tags = {name: re.findall(r">([a-z ]+)</span>", row) for name, row in rows.items()}
    t.equal((tags["input.txt"], tags["lib.txt"]), (["read"], ["read"]))
    t.check("deleted" in tags["made2"] and ({"created", "written"} & set(tags["made0"])), tags)
    t.check(re.search(r'deep/</code> <span class="tag good">created', files)
            and "src/</code> <span" not in files, "only a directory that was made says so")
    t.check("unread.txt" not in files and "er/</code>" in files, files)


def test_the_depth_of_a_tree_is_bounded(t):
    """A chain of a hundred processes and a directory as deep: the page nests no further than it
    says."""
    ws = t.workspace()
    chain = ("import os, subprocess, sys\nn = int(sys.argv[1])\n"
             "open('d' * 1 + str(n), 'w').close()\nos.makedirs('d', exist_ok=True)\n"
             "os.chdir('d')\n"
             "n and subprocess.run([sys.executable, '-c', sys.argv[2], str(n - 1),\n"
             "                      sys.argv[2]])\n")
    r = t.ward("run", "--set", "audit.level=full", "--", "/usr/bin/python3", "-c", chain, "24",
               chain, cwd=ws, timeout=120)
    t.equal(r.rc, 0, r.err)
    text = report(t, ws)
    page_of(t, text)
    depth = most = 0
    for tag in re.findall(r"</?ul>", text):
        depth += -1 if "/" in tag else 1
        most = max(most, depth)
    t.check(8 <= most <= 14, most)
    t.contains(text, "processes beneath it")


def chromium(t, *words):
    home = t.fresh_dir("chrome")
    # a browser asks its maker for news whatever one says
    apart = ["unshare", "-n"] if t.as_user == "root" else ["unshare", "-rn"]
    return t.run(*apart, "chromium", "--headless=new", "--no-sandbox", "--disable-gpu",
                 "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions",
                 "--disable-background-networking", "--disable-component-update",
                 "--disable-sync", "--disable-default-apps", "--hide-scrollbars",
                 "--force-device-scale-factor=1", f"--user-data-dir={home}", *words,
                 env={"HOME": home, "XDG_CONFIG_HOME": home, "XDG_CACHE_HOME": home}, timeout=120)


# a page of the test's own that holds the report in a frame as wide as a phone and writes down what
# it measures
FRAME = """<!DOCTYPE html><body style="margin:0"><iframe id=f width=360 height=4000 style="border:0"></iframe><pre id=o>waiting</pre><img src="http://control.example/x.png"><script>
const f = document.getElementById('f'), o = document.getElementById('o');
f.onload = () => {
  const d = f.contentDocument, e = d.documentElement, style = f.contentWindow.getComputedStyle(d.body);
  let wide = [];
  for (const x of d.querySelectorAll('body *')) { const r = x.getBoundingClientRect(); if (r.right > 361 && !x.closest('.wide') && !x.closest('svg')) wide.push(x.tagName); }
  o.textContent = 'MEASURED' + JSON.stringify({ scroll: e.scrollWidth, client: e.clientWidth, wide, scripts: d.scripts.length, styled: style.maxWidth, background: style.backgroundColor, title: d.title,
    circles: d.querySelectorAll('circle').length, lines: d.querySelectorAll('polyline').length, requests: f.contentWindow.performance.getEntriesByType('resource').length, details: d.querySelectorAll('details').length }) + 'END';
};
f.src = 'report.html';
</script>"""


@by_turns
@native_only("the time is Chromium's")
def test_chromium_shows_it(t):
    """A run of some seconds, with samples: no message on the console, no request, nothing wider
    than a phone, both colour schemes."""
    ws = t.workspace()
    long_name = "LONGNAMELONGNAME" * 40
    r = t.ward("run", "--set", "audit.level=full", "--", "/bin/sh", "-c",
               "unshare -U true; echo x > .envrc; mkdir -p a/b/c/d/e/f/g; "
               "echo x > a/b/c/d/e/f/g/$(echo $0 | cut -c 100-200 | tr / _); sleep 2.3; exit 0",
               HOSTILE + long_name, cwd=ws)
    t.equal(r.rc, 0, r.err)
    d = t.fresh_dir("page")
    t.equal(t.ward("audit", "report", "-o", os.path.join(d, "report.html"), cwd=ws).rc, 0)
    t.write(d, {"frame.html": FRAME})
    log = os.path.join(d, "net.json")
    r = chromium(t, "--allow-file-access-from-files", "--enable-logging=stderr", "--log-level=0",
                 "--virtual-time-budget=5000", f"--log-net-log={log}", "--dump-dom",
                 f"file://{d}/frame.html")
    t.equal(r.rc, 0, r.err)
    found = re.search(r"MEASURED(.*?)END", r.out)
    t.check(found, r.out[-2000:])
    m = json.loads(found.group(1).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    t.check(m["scroll"] <= m["client"] <= 360 and m["wide"] == [], m)
    t.check(m["scripts"] == 0 and m["requests"] == 0 and m["circles"] >= 3 and m["lines"] == 3
            and m["styled"] != "none", m)
    t.equal([line for line in r.err.splitlines() if "CONSOLE" in line
             and "source: chrome://" not in line], [])
    asked = set(re.findall(r'"url":"(?:https?|wss?|ftp)://([^/":]*)', t.read(log) or ""))
    # the browser's own
    asked = {host for host in asked if not re.search(r"(^|\.)(google|googleapis|gvt1)\.com$", host)}
    # the frame's, which shows that the log has what is asked for
    t.equal(asked, {"control.example"})
    dark = chromium(t, "--allow-file-access-from-files", "--blink-settings=preferredColorScheme=0",
                    "--virtual-time-budget=5000", "--dump-dom", f"file://{d}/frame.html")
    colours = [re.search(r'"background":"(.*?)"', text).group(1) for text in (r.out, dark.out)]
    t.equal(colours, ["rgb(255, 255, 255)", "rgb(13, 17, 23)"])


# a run that is not made for the page: many files, long names, every kind of denial, many hosts
BIG = r"""
import glob, os, socket, subprocess
for f in sorted(glob.glob("packages/**/*.ts", recursive=True)):
    open(f).read()
    open(f, "a").write("// changed\n")
for i in range(150):
    d = f"dist/assets/chunk-{i % 12}/some/very/deep/directory/structure/that/goes/on"
    os.makedirs(d, exist_ok=True)
    open(f"{d}/bundle.{i:08x}.min.js", "w").write("x" * i * 50)
for i in range(45):
    name = f"registry-{i}.some-long-subdomain.packages.example{i % 5}.invalid"
    try: socket.getaddrinfo(name, 443)
    except OSError: pass
for i in range(12):
    try: socket.create_connection((f"192.0.2.{i}", 443 + i), 0.3)
    except OSError: pass
for p in ("/etc/shadow", "/nowhere/x", ".envrc", ".git/hooks/pre-commit", ".vscode/tasks.json"):
    try:
        os.makedirs(os.path.dirname(p) or ".", exist_ok=True)
        open(p, "w" if p.startswith(".") else "r").close()
    except OSError: pass
for i in range(30):
    subprocess.run(["sh", "-c", f"/bin/true {i} && /bin/echo {'y' * 200} >/dev/null"])
subprocess.run(["unshare", "-U", "true"])
subprocess.run(["mount", "-t", "tmpfs", "x", "/mnt"])
raise SystemExit(3)
"""
# both pages in frames of both widths, with every part of them open
FRAMES = """<!DOCTYPE html><body style="margin:0"><pre id=o>waiting</pre><script>
const found = [], asked = [];
for (const page of ['report.html', 'diff.html'])
  for (const width of [1280, 390]) asked.push([page, width]);
for (const [page, width] of asked) {
  const f = document.createElement('iframe');
  f.width = width; f.height = 900; f.style.border = 0;
  f.onload = () => {
    const d = f.contentDocument, w = f.contentWindow, wide = [];
    for (const x of d.querySelectorAll('details')) x.open = true;
    for (const x of d.querySelectorAll('body *')) {
      const r = x.getBoundingClientRect();
      if (r.width && (r.right > width + 1 || r.left < -1) && !x.closest('.wide,svg,nav,.file'))
        wide.push(x.tagName + '.' + x.className);
    }
    const over = [...d.querySelectorAll('pre,p,summary,td,th')]
      .filter(x => x.clientWidth && x.scrollWidth > x.clientWidth + 1)
      .map(x => x.tagName + ':' + x.textContent.slice(0, 40));
    found.push({ page, width, scroll: d.documentElement.scrollWidth, inner: w.innerWidth,
      wide: wide.slice(0, 5), over: over.slice(0, 5),
      fixes: [...d.querySelectorAll('.fix')].map(x => x.textContent),
      rows: d.querySelectorAll('.denial,.file').length,
      dark: w.getComputedStyle(d.body).backgroundColor,
      first: d.querySelector('.denial,.find').getBoundingClientRect().top });
    if (found.length == asked.length)
      o.textContent = 'MEASURED' + JSON.stringify(found) + 'END';
  };
  f.src = page;
  document.body.appendChild(f);
}
</script>"""


@slow
@timeout(240)
@native_only("the time is Chromium's")
def test_a_big_run_fits(t):
    """The report and the page of ward diff of a run with hundreds of files, long names, many hosts
    and denials, on a desktop and on a phone, light and dark: nothing runs over, and each remedy is
    one line that can be pasted."""
    kinds = ("core", "server", "web-frontend", "cli-tools")
    ws = t.workspace({f"packages/{kinds[i % 4]}/src/{'deep/' * (i % 9)}module_{i}_{'long_' * 9}.ts":
                      "export const x = 1;\n" * (i % 90) for i in range(300)})
    r = t.ward("run", "--review", "--set", "audit.level=full", "--allow", "a.invalid", "--",
               "/usr/bin/python3", "-c", BIG, cwd=ws, timeout=120)
    t.equal(r.rc, 3, r.err)
    d = t.fresh_dir("pages")
    t.equal(t.ward("audit", "report", "-o", os.path.join(d, "report.html"), cwd=ws).rc, 0)
    t.equal(t.ward("diff", f"--web={d}/diff.html", cwd=ws).rc, 0)
    t.write(d, {"frames.html": FRAMES})
    for scheme, background in ((1, "rgb(255, 255, 255)"), (0, "rgb(13, 17, 23)")):
        r = chromium(t, "--allow-file-access-from-files", "--virtual-time-budget=20000",
                     f"--blink-settings=preferredColorScheme={scheme}", "--dump-dom",
                     f"file://{d}/frames.html")
        found = re.search(r"MEASURED(.*?)END", r.out)
        t.check(found, r.out[-2000:])
        for m in json.loads(html.unescape(found.group(1))):
            place = (m["page"], m["width"])
            t.check(m["scroll"] <= m["inner"] and not m["wide"] and not m["over"], m)
            t.equal(m["dark"], background, place)
            t.check(m["rows"] > 50, place)
            t.check(all(x.startswith("ward ") and "\\n" not in x and "\n" not in x
                        for x in m["fixes"]), m["fixes"][:3])
            # what matters is not behind a list of files
            t.check(m["first"] < 1100, (place, m["first"]))
    text = t.read(d, "report.html")
    before = text[text.index("<h2>Denied"):text.index("for the same reasons")]
    t.check("exec.syscall" in before and before.count("registry-") < 20, "denials of one kind fold")


@by_turns
def test_samples_are_on_record(t):
    ws = t.workspace()
    t.ward("run", "--", "/bin/sh", "-c",
           "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; sleep 2.2", cwd=ws)
    events = [json.loads(s) for s in t.ward("audit", "show", "--json", cwd=ws).out.splitlines()]
    samples = [e for e in events if e["kind"] == "run.sample"]
    t.check(len(samples) >= 2 and all(s["memory_bytes"] > 0 and s["duration_ms"] >= 1000
                                      for s in samples), samples)
    t.check(samples[-1]["cpu_ms"] > 0 and "run.sample" not in t.ward("audit", "show", cwd=ws).out,
            samples)
    t.ward("run", "--", "true", cwd=ws)
    t.check("run.sample" not in t.ward("audit", "show", "--json", cwd=ws).out,
            "a short run has none")


def test_metrics(t):
    ws = t.workspace()
    before = t.ward("audit", "metrics")
    t.equal(before.rc, 0, before.err)
    t.ward("run", "--", "/bin/sh", "-c", "unshare -U true; exit 3", cwd=ws)
    t.ward("run", "--timeout", "0.2", "--", "sleep", "5", cwd=ws)
    t.ward("run", "--", "true", cwd=ws)
    t.ward("run", "--image", "nosuchimagenosuch", "--", "true", cwd=ws)
    t.ward("audit", "seal")
    r = t.ward("audit", "metrics")
    t.equal(r.rc, 0, r.err)
    for text in (before.out, r.out):
        judged = t.run("promtool", "check", "metrics", input=text.encode())
        t.equal((judged.rc, judged.out + judged.err), (0, ""))
    values = dict(line.rsplit(" ", 1) for line in r.out.splitlines() if not line.startswith("#"))
    wanted = {'ward_runs_total{outcome="ok"}': "1", 'ward_runs_total{outcome="failed"}': "1",
              'ward_runs_total{outcome="limit"}': "1", 'ward_runs_total{outcome="refused"}': "1",
              'ward_denials_total{kind="exec.syscall"}': "1",
              'ward_limits_hit_total{limit="timeout"}': "1", "ward_run_duration_seconds_count": "3",
              "ward_journals": "3", "ward_runs_live": "0"}
    t.equal({k: values.get(k) for k in wanted}, wanted)
    t.check(float(values["ward_journal_signed_timestamp_seconds"]) > 1e9, values)
    file = os.path.join(t.fresh_dir(), "ward.prom")
    t.equal(t.ward("audit", "metrics", "-o", file).rc, 0)
    t.check(os.stat(file).st_mode & 0o777 == 0o644 and "ward_build_info" in t.read(file), file)


def test_secrets_are_nowhere(t):
    """The value of a grant that a program inside knows from elsewhere and has in its words: not in
    the journal, nor in anything that is made of it."""
    secret = "SECRETVALUESECRETVALUE77"
    ws = t.workspace({"key.txt": secret})
    out = os.path.join(t.fresh_dir("out"), "events")
    grant = json.dumps([{"name": "service", "source": "env:SERVICE_KEY",
                         "hosts": ["api.example.com"]}])
    r = t.ward("run", "--set", "audit.level=exec", "--set", "network.mode=restricted", "--set",
               "credentials.mode=just_in_time", "--set", f"credentials.grants={grant}",
               "--set", "audit.sinks=" + json.dumps([{"type": "file", "to": out, "format": "cef"}]),
               "--", "/bin/sh", "-c",
               "/bin/echo \"--key=$(cat key.txt)\"; /bin/echo \"$SERVICE_KEY\"; unshare -U "
               "true; exit 0",
               cwd=ws, env={"SERVICE_KEY": secret})
    t.equal(r.rc, 0, r.err)
    t.check(r.out.count(secret) == 1, "a placeholder in the variable, and what the file has")
    everything = [t.read(out)] + [t.read(top, name) for top, _, names in os.walk(t.state_dir)
                                  for name in names]
    everything += [t.ward("audit", "export", "--format", f, cwd=ws).out
                   for f in ("ocsf", "cef", "syslog", "otlp", "json")] + [report(t, ws),
                                                                          t.ward("audit", "show",
                                                                                 cwd=ws).out]
    t.check(all(secret not in (text or "") for text in everything),
            [text for text in everything if text and secret in text])
    t.check("[secret service]" in everything[0]
            and "--key=[secret service]" in t.ward("audit", "show", cwd=ws).out, everything[0])


def test_the_network_in_every_form(t):
    """Hosts and bytes on the page, in the numbers, and in OCSF what its network classes require."""
    world = World(t)
    _, result = attempts(t, world, "db.test 5432", f"{OTHER} 7", "evil.test 443")
    run = json.loads(t.ward("audit", "ls", "--json").out)[-1]["run"]
    text = t.ward("audit", "report", run).out
    page_of(t, text)
    rows = {m[0]: m[1:]
            for m in re.findall(r'<tr><td>([^<]*)</td><td class="n">(\d+)</td><td '
                                r'class="n">([^<]*)</td><td class="n">([^<]*)</td><td '
                                r'class="n[^"]*">(\d+)</td>', text)}
    t.equal((rows["db.test"][0], rows["db.test"][3], rows["evil.test"][0]), ("1", "0", "0"))
    t.check(int(rows["evil.test"][3]) >= 1
            and re.fullmatch(r"[1-9]\d* B", rows["db.test"][2]), rows)
    numbers = dict(line.rsplit(" ", 1) for line in t.ward("audit", "metrics").out.splitlines()
                   if not line.startswith("#"))
    t.equal((numbers["ward_ingress_bytes_total"], numbers["ward_egress_bytes_total"]),
            (str(result["network"]["bytes_in"]), str(result["network"]["bytes_out"])))
    events = [json.loads(s) for s in t.ward("audit", "export", run, "--format", "ocsf", "--kind",
                                            "net").out.splitlines()]
    t.check({e["class_uid"] for e in events} >= {4001, 4003}, events)
    for e in events:
        t.check(e["type_uid"] == e["class_uid"] * 100 + e["activity_id"] and e["category_uid"] == 4
                and ("dst_endpoint" in e or "src_endpoint" in e), e)
        t.check(e["class_uid"] != 4003 or e["query"]["hostname"], e)
    refused = [e for e in events if e["class_uid"] == 4001 and e.get("action_id") == 2]
    t.check(all(e["activity_id"] in (4, 5, 99) and e["disposition_id"] == 2 for e in refused),
            refused)


ASK = """
import ctypes
libc = ctypes.CDLL(None)
SECCOMP, SET_FILTER, NEW_LISTENER = 317, 1, 8
ALLOW = (ctypes.c_ubyte * 8)(6, 0, 0, 0, 0, 0, 0xff, 0x7f)
class Program(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
program = Program(1, ctypes.addressof(ALLOW))
for _ in range(3):
    libc.syscall(SECCOMP, SET_FILTER, NEW_LISTENER, None)
if %d:
    libc.syscall(SECCOMP, SET_FILTER, NEW_LISTENER, ctypes.byref(program))
"""


def test_a_question_is_no_denial(t):
    """Libraries ask the kernel which flags of seccomp() it knows, with no filter: nothing was
    wanted, and nothing denied."""
    for wanted in (0, 1):
        r = t.ward("run", "--", "python3", "-c", ASK % wanted, cwd=t.workspace(), report=True)
        t.equal(r.rc, 0, r.err)
        t.equal([d["count"] for d in r.report["denials"] if "seccomp" in d["what"]], [1] * wanted,
                f"{r.report['denials']}")
