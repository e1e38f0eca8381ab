"""What a run leaves behind is said: what was moved, what steers tools, links that lead out,
commands that could not be understood."""
import json
import os
import time

STEERS = {".npmrc": "script-shell=./evil\n", ".yarnrc.yml": "yarnPath: ./evil\n",
          ".cargo/config.toml": "[build]\nrustc-wrapper = './evil'\n",
          ".lfsconfig": "[lfs]\n\turl = https://evil.example\n", ".gitattributes": "* filter=x\n",
          "conftest.py": "x = 1\n",
          "package.json": '{"scripts": {"postinstall": "./evil"}}\n'}


def test_steers(t):
    """Files that steer a project's tools are reported when they are new or changed, and stay."""
    ws = t.workspace({**{n: "old\n" for n in STEERS}, "sub/README": "r\n",
                      "lib/package.json": "{}\n", "same/.npmrc": "x=1\n", ".gitmodules": ""})
    lines = [f"printf '%s' '{text}' > {name}" for name, text in STEERS.items()]
    lines += ["mkdir -p new/.mvn node_modules/x", "echo x > new/.npmrc",
              "echo x > new/.mvn/jvm.config", "echo x > node_modules/x/.npmrc",
              "echo '{\"name\": \"x\"}' > lib/package.json",
              "echo '[submodule \"x\"]' > .gitmodules"]
    r = t.ward("run", "-w", ws, "--", "sh", "-c", "\n".join(lines), cwd=ws, report=True)
    t.equal(r.rc, 0)
    named = {line.split(":")[0]: line for line in r.report["steers"]}
    t.equal(sorted(named), sorted([*STEERS, "new/.npmrc", "new/.mvn/jvm.config", ".gitmodules"]))
    t.contains(named[".npmrc"], "changed")
    t.contains(named["new/.npmrc"], "new")
    t.equal(r.report["quarantine"], [])
    t.check(os.path.exists(os.path.join(ws, "new/.npmrc")), "it stays")


def test_steers_in_a_large_tree(t):
    """The same where the sweep reads only directories that changed."""
    ws = t.workspace({**{f"d{i}/f{k}": "" for i in range(25) for k in range(50)},
                      "d3/.npmrc": "old\n", "d4/.npmrc": "old\n"})
    r = t.ward("run", "-w", ws, "--", "sh", "-c",
               "echo x >> d3/.npmrc; echo x > d5/.npmrc; ln -s /etc/passwd d6/out", cwd=ws,
               report=True)
    t.equal(sorted(line.split(",")[0] for line in r.report["steers"]),
            ["d3/.npmrc: changed", "d5/.npmrc: new"])
    t.equal(r.report["links_out"], ["d6/out -> /etc/passwd"])


VERSIONS = {
    ".nvmrc": "22\n", ".python-version": "3.12\n3.11\n", "a/.ruby-version": "ruby-3.3.1\n",
    "a/.terraform-version": "latest:^1.2\n", "a/.java-version": "temurin-21\n",
    ".sdkmanrc": "# versions\njava=21.0.3-tem\n",
    "package.json": '{"packageManager":"yarn@4.1.0"}\n',
    "rust-toolchain.toml": '[toolchain]\nchannel = "1.80"\n',
    ".env": "DATABASE_URL=postgres://h/db?a=b&c=d\nNODE_OPTIONS=--max-old-space-size=4096\n",
    "a/.env.local": "ENV=dev\nBROWSER=none\n",
}
PATHS = {
    ".nvmrc": "path:./x\n", ".python-version": "3.12\npath:./x\n",
    "a/.ruby-version": "ruby-path:../x\n", "a/.terraform-version": "../x\n",
    "a/.java-version": "21 path:./x\n", ".sdkmanrc": "java=path:x\n",
    "package.json": r'{"packageManager":"yarn@\u0070ath:./x"}' + "\n",
    "rust-toolchain.toml": '[toolchain]\nchannel = "path:x"\n',
    ".env": "A=b\nexport BASH_ENV=./x.sh\n", "a/.env.local": "NODE_OPTIONS=--require=./x.js\n",
}


def writes(files):
    """A script that writes them."""
    puts = [f"cat > {name} <<'END'\n{text}END" for name, text in files.items()]
    return "\n".join(["mkdir -p a", *puts])


def quarantined(r):
    """The paths that a run's report names."""
    return sorted(line.split(": ")[0] for line in r.report["quarantine"])


def test_versions(t):
    """A file that names versions is the agent's to write, whether it was there before or not; one
    that names a directory, whose programs mise would put into PATH, goes to the quarantine."""
    plain = {name: "# 1\n" if ".env" in name else "1\n" for name in VERSIONS}
    for old in ({}, plain, plain | {f"d{i}/f{k}": "" for i in range(25) for k in range(50)}):
        ws = t.workspace(old)
        run = ("run", "-w", ws, "--", "sh", "-c")
        r = t.ward(*run, writes(VERSIONS), cwd=ws, report=True)
        t.equal((r.rc, quarantined(r)), (0, []), r.err)
        r = t.ward(*run, writes(PATHS), cwd=ws, report=True)
        t.equal(quarantined(r), sorted(PATHS), f"with {len(old)} files")
        left = [name for name in PATHS if os.path.exists(os.path.join(ws, name))]
        t.equal(left, [], "they are gone")


def test_versions_by_link(t):
    """Nor behind a link: a new one leads only to another version file; one of the person's is
    judged by what it leads to in the workspace."""
    ws = t.workspace({"conf/node": "20\n", ".ruby-version": "3.3\n"})
    t.run("ln", "-s", "conf/node", os.path.join(ws, ".nvmrc"), check=True)
    t.run("ln", "-s", "/etc/hostname", os.path.join(ws, ".java-version"), check=True)
    time.sleep(0.1)	# the clock that stamps files ticks: what is as new as the run is its own
    run = ("run", "-w", ws, "--", "sh", "-c")
    r = t.ward(*run, "echo 22 > conf/node; mkdir sub; ln -s ../.ruby-version sub/.ruby-version; "
               "ln -s ../conf/node sub/.node-version", cwd=ws, report=True)
    t.equal(quarantined(r), ["sub/.node-version"])
    r = t.ward(*run, "echo path:x > conf/node; echo path:x > .ruby-version", cwd=ws, report=True)
    t.equal(quarantined(r), [".nvmrc", ".ruby-version"])
    t.check(os.path.islink(os.path.join(ws, ".java-version")), "what leads outside stays")


def test_versions_reviewed(t):
    """The same by way of a review: the file that was there stays as it was. A policy can release a
    name."""
    ws = t.workspace({".nvmrc": "20\n", ".ruby-version": "3.2\n"})
    r = t.ward("run", "--review", "-w", ws, "--", "sh", "-c", "echo path:x > .nvmrc; "
               "echo 3.3 > .ruby-version; echo path:x > .node-version", cwd=ws)
    t.equal(r.rc, 0, r.err)
    t.equal(t.ward("apply", cwd=ws).rc, 1)
    t.equal((t.read(ws, ".nvmrc"), t.read(ws, ".ruby-version")), ("20\n", "3.3\n"))
    t.check(not os.path.exists(os.path.join(ws, ".node-version")), "a new one does not arrive")
    other = t.workspace()
    r = t.ward("run", "-w", other, "--set", 'filesystem.protect=["!.nvmrc"]', "--", "sh", "-c",
               "echo path:x > .nvmrc", cwd=other, report=True)
    t.equal((quarantined(r), t.read(other, ".nvmrc")), ([], "path:x\n"))


def test_mise_names_files(t):
    """Of what a mise.toml names only that is kept which mise loads or runs by itself: values of
    variables and tasks are the project's."""
    ws = t.workspace({"mise.toml": "[env]\nDB = \"./data/app.db\"\nLOG_FILE = 'logs/x.sh'\n"
                      "_.file = '.env'\n[tasks.build]\nrun = \"./scripts/build.sh\"\n"
                      "file = \"scripts/x\"\n"})
    r = t.ward("run", "-w", ws, "--", "sh", "-c",
               "mkdir data logs scripts; for f in data/app.db logs/x.sh scripts/build.sh scripts/x "
               ".env; do echo x > $f; done", cwd=ws, report=True)
    t.check(all(os.path.exists(os.path.join(ws, p))
                for p in ("data/app.db", "logs/x.sh", "scripts/build.sh", "scripts/x")),
            f"they stay: {r.report['quarantine']}")
    t.check(not os.path.exists(os.path.join(ws, ".env")), "what mise loads does not")


def test_links_out(t):
    """New links that lead out of the workspace are named; those that stay inside, and old ones, are
    not."""
    ws = t.workspace({"a/b": "x\n"})
    t.run("ln", "-s", "/etc/hostname", os.path.join(ws, "old"), check=True)
    time.sleep(0.05)	# the clock that stamps files is a coarse one
    r = t.ward("run", "-w", ws, "--", "sh", "-c",
               f"ln -s /etc/passwd out; ln -s ../.. a/up; ln -s a/b in; ln -s {ws}/a/b a/back; ln "
               "-s a/up/x by", cwd=ws, report=True)
    t.equal(sorted(r.report["links_out"]), ["a/up -> ../..", "by -> a/up/x", "out -> /etc/passwd"])
    t.check(os.path.islink(os.path.join(ws, "out")), "they stay")


def test_quarantine_without_terminal(t):
    """One line on standard error says what was moved, although nobody watches; --json has it in its
    report."""
    ws = t.workspace()
    plant = ("sh", "-c", "for i in 1 2 3 4 5 6; do mkdir -p d$i; echo x > d$i/.envrc; done")
    r = t.ward("run", "-w", ws, "--", *plant, cwd=ws)
    t.equal(r.err.count("quarantined: "), 1)
    t.contains(r.err, ".envrc: run by direnv")
    t.contains(r.err, "and 2 more")
    t.equal(len(r.err.strip().splitlines()), 1)
    r = t.ward("run", "-w", ws, "--json", "--", *plant, cwd=ws)
    t.equal(len(r.err.strip().splitlines()), 1)
    t.contains(r.err, '"quarantine":')


def test_opaque_command(t):
    """A setting whose command cannot be told for certain is in the notes."""
    ws = t.git_repo({"tools/clean": "#!/bin/sh\ncat\n", "README": "r\n"})
    t.run("git", "config", "filter.f.clean", "cd tools && ./clean $OPTIONS", cwd=ws, check=True)
    r = t.ward("run", "-w", ws, "--", "sh", "-c", "echo x > tools/clean", cwd=ws, report=True)
    t.check(r.rc != 0, "the program can be written")
    t.check(any("filter.f.clean" in n and "cannot determine" in n for n in r.report["notes"]),
            f"not in the notes: {r.report['notes']}")
    t.run("git", "config", "filter.f.clean", "tools/clean", cwd=ws, check=True)
    r = t.ward("run", "-w", ws, "--", "true", cwd=ws, report=True)
    t.check(not any("filter.f.clean" in n for n in r.report["notes"]),
            "a plain command needs no note")


def test_link_to_the_workspace(t):
    """A protected link to a directory around it cannot be guarded: that is said."""
    ws = t.workspace({".claude/CLAUDE.md": "x\n", "a": "x\n"})
    t.run("mkdir", os.path.join(ws, ".vscode"), check=True)
    t.run("ln", "-s", "..", os.path.join(ws, ".vscode/project"), check=True)
    r = t.ward("run", "-w", ws, "--", "sh", "-c", "echo y > a", cwd=ws, report=True)
    t.equal(r.rc, 0)
    t.check(any(".vscode/project" in n for n in r.report["notes"]),
            f"not in the notes: {r.report['notes']}")


def test_another_tree(t):
    """A protected link into another directory that the command may write is guarded there."""
    other = t.fresh_dir("other")
    t.write(other, {"tasks.json": "old\n", "free": "old\n"})
    ws = t.workspace({".vscode/settings.json": "{}\n"})
    t.run("ln", "-s", os.path.join(other, "tasks.json"), os.path.join(ws, ".vscode/tasks.json"),
          check=True)
    t.run("ln", "-s", os.path.join(other, "missing"), os.path.join(ws, ".mcp.json"), check=True)
    t.ward("run", "-w", ws, "--rw", other, "--", "sh", "-c",
           f"cd {other}; echo new > free; echo new > missing; echo new > tasks.json", cwd=ws)
    t.equal(t.read(other, "free"), "new\n")
    t.equal(t.read(other, "tasks.json"), "old\n")
    t.check(not os.path.exists(os.path.join(other, "missing")),
            "what a protected link leads to was made")


def test_review(t):
    """Under review the same is reported at the end of the run, and shown by diff and by apply,
    before anything arrives."""
    ws = t.workspace({".npmrc": "old\n", "conftest.py": "x = 0\n", "a/b": "x\n", "keep": "x\n"})
    t.run("ln", "-s", "/etc", f"{ws}/etc", check=True)
    lines = [f"mkdir -p $(dirname {name}); printf '%s' '{text}' > {name}"
             for name, text in STEERS.items()]
    lines += ["mkdir -p sub node_modules/x", "ln -s ../a/b sub/.yarnrc",
              "echo '{\"name\": \"x\"}' > a/package.json", "echo x > node_modules/x/.npmrc",
              "ln -s /etc/passwd out", "ln -s ../.. a/up", "ln -s a/b in",
              "ln -s etc/hostname through", "chmod 700 keep"]
    r = t.ward("run", "--review", "-w", ws, "--", "sh", "-c", "\n".join(lines), cwd=ws, report=True)
    t.equal(r.rc, 0, r.err)
    named = {line.split(":")[0]: line for line in r.report["steers"]}
    t.equal(sorted(named), sorted([*STEERS, "sub/.yarnrc"]))
    t.contains(named[".npmrc"], ": changed, script-shell")
    t.contains(named["package.json"], ": new, has scripts")
    out = ["a/up -> ../..", "out -> /etc/passwd", "through -> etc/hostname"]
    t.equal(sorted(r.report["links_out"]), out)
    r = t.ward("diff", cwd=ws)
    t.contains(r.out, "M  .npmrc  (affects tools that you may run: script-shell")
    t.check("node_modules/x/.npmrc\n" in r.out, "a package's file is plain")
    changes = {c["path"]: c for c in json.loads(t.ward("diff", "--json", cwd=ws).out)["changes"]}
    t.equal(sorted(p for p, c in changes.items() if c["steers"]), sorted(named))
    t.equal(sorted(f"{p} -> {c['leads_out_to']}" for p, c in changes.items()
                   if c["leads_out_to"]), out)
    t.contains(t.ward("apply", "--dry-run", cwd=ws).out,
               "affects tools that you may run: .npmrc: script-shell")
    r = t.ward("apply", cwd=ws)
    t.contains(r.out, "affects tools that you may run: .npmrc: script-shell")
    r = t.ward("run", "--review", "--apply-on-exit", "-w", ws, "--", "sh", "-c",
               "echo y > .npmrc; ln -s /etc/shadow more", cwd=ws, report=True)
    t.equal([r.report["steers"][0][:16], r.report["links_out"]],
            [".npmrc: changed,", ["more -> /etc/shadow"]])


def test_steers_by_links(t):
    """A link under such a name counts like a file, also one that became a link; an old one is no
    news."""
    ws = t.workspace({"x": "x=1\n", ".yarnrc": "old\n"})
    t.run("ln", "-s", "x", f"{ws}/bunfig.toml", check=True)
    r = t.ward("run", "-w", ws, "--", "sh", "-c",
               "ln -s x .npmrc; ln -sf x .yarnrc; ln -s x .gitmodules", cwd=ws, report=True)
    t.equal(sorted(line.split(",")[0] for line in r.report["steers"]),
            [".npmrc: new", ".yarnrc: changed"])
    t.check(".gitmodules" in r.report["quarantine"][0],
            "git would read settings through the link that nothing has judged")
