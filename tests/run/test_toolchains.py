"""toolchains: compilers and interpreters of the user's own, shown read-only without credentials.

The programs are real: the host's node, Python, Go, JDK, Maven and rustup, in the layout of the
managers that would have installed them. Where they are large root mounts them there, else they are
copied; one that the host does not have is the only reason to skip.
"""

import glob
import json
import os
import re
import shutil

from harness import needs, only_root, slow, timeout

SYSTEM = "/usr/local/bin:/usr/bin:/bin"
SECRET = "TOKEN-MARKER-7261\n"


def find(t, *patterns):
    """The first path of the host that fits; the test is skipped without."""
    with t.root():
        for pattern in patterns:
            for path in sorted(glob.glob(pattern), reverse=True):
                return os.path.realpath(path)
    return t.skip(f"there is no {patterns[0]} here")


def lay(t, source, target):
    """The directory source of the host, at target: mounted by root, whatever it weighs."""
    os.makedirs(target, exist_ok=True)
    t.run("mount", "--bind", "-o", "ro", source, target, root=True, check=True)
    t.defer(lambda: t.run("umount", "-l", target, root=True))
    return target


def person(t, files=None):
    """A home of this test's own, and an environment that names it."""
    home = t.fresh_dir("home")
    t.write(home, files or {})
    return home, {"HOME": home, "PATH": SYSTEM}


def copy_program(t, source, target):
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with t.root():
        source = open(os.path.realpath(source), "rb")  # the copy is the test's user's
    with source, open(target, "wb") as f:
        shutil.copyfileobj(source, f)
    os.chmod(target, 0o755)


def script(path, text="echo ran $0"):
    """Programs whose content does not matter: where they lie does."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(f"#!/bin/sh\n{text}\n")
    os.chmod(path, 0o755)
    return path


def plan(t, ws, env, *args, rc=0):
    r = t.ward("plan", "--json", *args, cwd=ws, env=env)
    t.equal(r.rc, rc, r.err)
    return json.loads(r.out) if rc == 0 else r.err


def inside(t, ws, env, text, *options, rc=0, **more):
    """What a shell script prints inside."""
    r = t.ward("run", *options, "--", "sh", "-c", text, cwd=ws, env=env, **more)
    t.equal(r.rc, rc, f"{text}: {r.err}")
    return r.out


# -- real toolchains


@timeout(120)
def test_node_of_nvm(t):
    """The version of the caller's PATH runs, npm's cache is kept, the rest stays outside."""
    node = find(t, "/usr/bin/node", "/usr/local/bin/node")
    home, env = person(
        t,
        {
            ".nvm/.npmrc": SECRET,
            ".npmrc": SECRET,
            ".nvm/versions/node/v20.1.0/etc/npmrc": SECRET,
            ".nvm/alias/default": "v20.1.0\n",
            ".nvm/.cache/x": "x",
        },
    )
    copy_program(t, node, f"{home}/.nvm/versions/node/v20.1.0/bin/node")
    env["PATH"] = f"{home}/.nvm/versions/node/v20.1.0/bin:{SYSTEM}"
    ws = t.workspace({"package.json": "{}", "a.js": "console.log(process.execPath)"})
    t.equal(
        t.ward("run", "--", "node", "a.js", cwd=ws, env=env).out,
        f"{home}/.nvm/versions/node/v20.1.0/bin/node\n",
        "by its name",
    )
    t.equal(
        inside(t, ws, env, "node a.js"),
        f"{home}/.nvm/versions/node/v20.1.0/bin/node\n",
        "in a script",
    )
    t.equal(
        inside(
            t,
            ws,
            env,
            f"cd {home}; cat .npmrc .nvm/.npmrc .nvm/versions/node/v20.1.0/etc/npmrc;"
            "find . -name .cache; true",
        ),
        "",
        "credentials",
    )
    t.equal(inside(t, ws, env, f"touch {home}/.nvm/versions/node/x", rc=1), "", "it is read-only")
    t.equal(inside(t, ws, env, "echo kept > ~/.npm/x; echo $NVM_DIR"), f"{home}/.nvm\n")
    t.equal(inside(t, ws, env, "cat ~/.npm/x"), "kept\n", "the cache")
    t.equal(plan(t, ws, env)["toolchains"], ["node"])
    # the caller's PATH without nvm: behind the system's
    env["PATH"] = SYSTEM
    path = inside(t, ws, env, "echo $PATH").strip().split(":")
    t.equal(path[-1], f"{home}/.nvm/versions/node/v20.1.0/bin", "PATH")
    # without the project's file, the command alone decides
    other = t.workspace()
    t.equal(plan(t, other, env, "--", "node")["toolchains"], [])
    env["PATH"] = f"{home}/.nvm/versions/node/v20.1.0/bin:{SYSTEM}"
    t.equal(plan(t, other, env, "--", "node")["toolchains"], ["node"])
    t.equal(plan(t, other, env, "--", "sh")["toolchains"], [])
    t.equal(
        inside(t, other, env, "command -v node"),
        "/usr/bin/node\n" if node.startswith("/usr/bin") else f"{node}\n",
    )
    # fnm: the directory on PATH is a link to another place
    os.makedirs(f"{home}/.local/share/fnm/node-versions/v20.1.0")
    os.rename(
        f"{home}/.nvm/versions/node/v20.1.0",
        f"{home}/.local/share/fnm/node-versions/v20.1.0/installation",
    )
    os.makedirs(f"{home}/.local/state/fnm_multishells")
    os.symlink(
        f"{home}/.local/share/fnm/node-versions/v20.1.0/installation",
        f"{home}/.local/state/fnm_multishells/1_2",
    )
    env["PATH"] = f"{home}/.local/state/fnm_multishells/1_2/bin:{SYSTEM}"
    t.equal(
        t.ward("run", "--", "node", "a.js", cwd=ws, env=env).out,
        f"{home}/.local/share/fnm/node-versions/v20.1.0/installation/bin/node\n",
        "fnm",
    )


@timeout(120)
def test_python_of_pyenv_and_conda(t):
    """Its own prefix, with its own packages; a virtual environment of it in the workspace works."""
    python = find(t, "/usr/bin/python3.*[0-9]")
    version = os.path.basename(python)
    library = find(t, f"/usr/lib/{version}")
    home, env = person(t)
    for prefix in (f"{home}/.pyenv/versions/9.9.9", f"{home}/miniconda3"):
        copy_program(t, python, f"{prefix}/bin/{version}")
        os.symlink(version, f"{prefix}/bin/python3")
        os.makedirs(f"{prefix}/lib/{version}")
        for name in os.listdir(library):
            if name not in ("site-packages", "dist-packages", "__pycache__"):
                os.symlink(os.path.join(library, name), f"{prefix}/lib/{version}/{name}")
        t.write(
            prefix,
            {
                "lib/python3/dist-packages/own/__init__.py": "value = 5\n",
                "pip.conf": SECRET,
                ".condarc": SECRET,
                "conda-meta/history": "",
            },
        )
        ws = t.workspace(
            {"pyproject.toml": "", "a.py": "import sys, own\nprint(sys.prefix, own.value)\n"}
        )
        env["PATH"] = f"{prefix}/bin:{SYSTEM}"
        t.equal(t.ward("run", "--", "python3", "a.py", cwd=ws, env=env).out, f"{prefix} 5\n")
        t.equal(
            inside(t, ws, env, f"cat {prefix}/pip.conf {prefix}/.condarc; true"), "", "credentials"
        )
        t.run(
            f"{prefix}/bin/python3",
            "-m",
            "venv",
            "--without-pip",
            ".venv",
            cwd=ws,
            env=env,
            check=True,
        )
        t.equal(
            inside(t, ws, env, ".venv/bin/python -c 'import sys; print(sys.base_prefix)'"),
            f"{prefix}\n",
        )
    # an environment elsewhere, the active one: it alone
    os.makedirs(f"{home}/.virtualenvs")
    for name in ("one", "two"):
        t.run(
            f"{home}/miniconda3/bin/python3",
            "-m",
            "venv",
            "--without-pip",
            f"{home}/.virtualenvs/{name}",
            env=env,
            check=True,
        )
    env.update(PATH=f"{home}/.virtualenvs/one/bin:{SYSTEM}", VIRTUAL_ENV=f"{home}/.virtualenvs/one")
    t.equal(
        t.ward(
            "run",
            "--",
            "python3",
            "-c",
            "import sys, os; print(sys.prefix, os.environ['VIRTUAL_ENV'])",
            cwd=t.workspace(),
            env=env,
        ).out,
        f"{home}/.virtualenvs/one {home}/.virtualenvs/one\n",
    )
    t.equal(inside(t, ws, env, f"ls {home}/.virtualenvs"), "one\n")


@only_root
@timeout(120)
def test_pyenv_itself(t):
    """Shims, which ask pyenv for the version that the project wants."""
    root = (
        find(t, "/root/.pyenv/bin/pyenv").removesuffix("/bin/pyenv").removesuffix("/libexec/pyenv")
    )
    versions = sorted(os.listdir(f"{root}/versions"))
    home, env = person(t)
    env.update(HOME=os.path.dirname(root), PATH=f"{root}/shims:{root}/bin:{SYSTEM}")
    ws = t.workspace({".python-version": f"{versions[0]}\n"})
    r = t.ward(
        "run", "--", "python", "-c", "import sys; print(sys.prefix)", cwd=ws, env=env, timeout=60
    )
    t.equal(r.out, f"{root}/versions/{versions[0]}\n", r.err)


def rustup(t):
    """A home with rustup's layout; the programs are the host's."""
    toolchain = find(t, "/root/.rustup/toolchains/stable-*/bin/cargo").removesuffix("/bin/cargo")
    proxy = find(t, "/root/.cargo/bin/rustup")
    name = os.path.basename(toolchain)
    home, env = person(
        t,
        {
            ".rustup/settings.toml": f'version = "12"\ndefault_toolchain = "{name}"\n',
            ".rustup/update-hashes/x": "",
            ".cargo/credentials.toml": SECRET,
            ".cargo/config.toml": SECRET,
            ".cargo/bin/credentials.toml": SECRET,
            ".cargo/registry/x": SECRET,
        },
    )
    lay(t, toolchain, f"{home}/.rustup/toolchains/{name}")
    copy_program(t, proxy, f"{home}/.cargo/bin/rustup")
    for program in ("cargo", "rustc"):
        os.symlink("rustup", f"{home}/.cargo/bin/{program}")
    env["PATH"] = f"{home}/.cargo/bin:{SYSTEM}"
    return home, env


CRATE = {
    "Cargo.toml": '[package]\nname = "x"\nversion = "0.1.0"\nedition = "2021"\n',
    "src/main.rs": 'fn main() { println!("hi"); }\n',
}


@needs("admin")
@timeout(300)
def test_rustup(t):
    """cargo through rustup's proxy builds; tokens stay outside, the one in bin, too."""
    home, env = rustup(t)
    ws = t.workspace(CRATE)
    r = t.ward("run", "--", "cargo", "run", "-q", cwd=ws, env=env, timeout=240)
    t.equal((r.rc, r.out), (0, "hi\n"), r.err)
    t.equal(
        inside(
            t,
            ws,
            env,
            f"cd {home}/.cargo;"
            "cat credentials.toml config.toml bin/credentials.toml registry/x; true",
        ),
        "",
        "credentials",
    )
    t.equal(
        inside(
            t,
            ws,
            env,
            f"ls -A {home}/.cargo; cargo metadata --format-version 1 --offline > /dev/null;"
            "echo x > ~/.cargo/registry/kept",
        ),
        "bin\n",
    )
    t.equal(inside(t, ws, env, "ls ~/.cargo/registry"), "kept\n")
    t.equal(plan(t, ws, env)["toolchains"], ["rust"])


@needs("admin")
@timeout(300)
def test_learn_names_the_preset(t):
    """The policy names the toolchain, and holds when its directory gets another name."""
    home, env = rustup(t)
    ws = t.workspace({**CRATE, "package.json": "{}"})
    copy_program(t, "/bin/true", f"{home}/.nvm/versions/node/v1.0.0/bin/node")
    path = os.path.join(t.fresh_dir("learned"), "ward.yaml")
    r = t.ward(
        "learn", "-o", path, "--", "cargo", "build", "-q", "--offline", cwd=ws, env=env, timeout=280
    )
    t.equal(r.rc, 0, r.err)
    text = t.read(path)
    t.contains(text, "\ntoolchains: [rust]\n")
    t.check(
        "stable" not in text.split("\nversion", 1)[1]
        and "host_mounts" not in text
        and "programs:" not in text.split("\nversion", 1)[1],
        text,
    )
    old = glob.glob(f"{home}/.rustup/toolchains/*")[0]
    t.run("umount", old, root=True, check=True)
    os.rename(old, f"{home}/.rustup/toolchains/1.99.0-new")
    lay(
        t,
        find(t, "/root/.rustup/toolchains/stable-*/bin/cargo").removesuffix("/bin/cargo"),
        f"{home}/.rustup/toolchains/1.99.0-new",
    )
    t.write(home, {".rustup/settings.toml": 'version = "12"\ndefault_toolchain = "1.99.0-new"\n'})
    r = t.ward(
        "run", "-p", path, "--", "cargo", "build", "-q", "--offline", cwd=ws, env=env, timeout=200
    )
    t.equal(r.rc, 0, r.err)
    r = t.ward("learn", "--", "true", cwd=ws, env=env)
    t.contains(r.out, "\ntoolchains: none\n")


def go_sdk(t):
    """A home with two versions of Go, a module, and the environment that means the older one."""
    root = find(t, "/usr/local/go/bin/go", "/usr/lib/go-*/bin/go").removesuffix("/bin/go")
    home, env = person(t)
    for name in ("go1.1.1", "go1.2.2"):
        lay(t, root, f"{home}/sdk/{name}")
    ws = t.workspace(
        {
            "go.mod": "module x\n\ngo 1.19\n",
            "main.go": 'package main\n\nfunc main() { println("hi") }\n',
        }
    )
    env["PATH"] = f"{home}/sdk/go1.1.1/bin:/usr/bin:/bin"
    return home, env, ws


@needs("admin")
@timeout(120)
def test_go(t):
    """Two versions in ~/sdk: the one of PATH; GOROOT is found, caches are the project's."""
    home, env, ws = go_sdk(t)
    t.equal(
        t.ward("run", "--", "go", "env", "GOROOT", cwd=ws, env=env).out, f"{home}/sdk/go1.1.1\n"
    )
    t.equal(
        inside(
            t, ws, env, "go list -f '{{.Name}}' .; touch ~/go/pkg/mod/kept ~/.cache/go-build/kept"
        ),
        "main\n",
    )
    t.equal(inside(t, ws, env, "ls ~/go/pkg/mod; ls ~/.cache/go-build | grep kept"), "kept\nkept\n")


@slow
@needs("admin")
@timeout(300)
def test_go_builds(t):
    home, env, ws = go_sdk(t)
    r = t.ward("run", "--", "go", "run", ".", cwd=ws, env=env, timeout=280)
    t.equal((r.rc, r.err.splitlines()[-1:]), (0, ["hi"]), r.err)
    t.check(int(inside(t, ws, env, "ls ~/.cache/go-build | wc -l")) > 2, "the build cache")


@needs("admin")
@timeout(200)
def test_jdk_and_maven(t):
    """JAVA_HOME and Maven outside of /usr; settings.xml with its passwords is not there."""
    jdk = find(t, "/usr/lib/jvm/*/bin/java").removesuffix("/bin/java")
    maven = find(t, "/usr/share/maven/bin/mvn").removesuffix("/bin/mvn")
    home, env = person(t, {".m2/settings.xml": SECRET, "maven/conf/settings.xml": SECRET})
    lay(t, jdk, f"{home}/jdk")
    for name in ("bin", "boot", "lib", "conf/logging"):
        shutil.copytree(f"{maven}/{name}", f"{home}/maven/{name}")
    ws = t.workspace({"pom.xml": "<project/>"})
    env.update(
        JAVA_HOME=f"{home}/jdk",
        MAVEN_HOME=f"{home}/maven",
        PATH=f"{home}/jdk/bin:{home}/maven/bin:{SYSTEM}",
    )
    t.contains(
        t.ward(
            "run",
            "--",
            "java",
            "-XshowSettings:properties",
            "-version",
            cwd=ws,
            env=env,
            timeout=90,
        ).err,
        f"java.home = {home}/jdk\n",
    )
    r = t.ward("run", "--", "mvn", "-version", cwd=ws, env=env, timeout=90)
    t.equal(r.rc, 0, r.err)
    t.contains(r.out, f"Maven home: {home}/maven")
    t.contains(r.out, f"runtime: {home}/jdk")
    t.equal(
        inside(t, ws, env, f"cat {home}/maven/conf/settings.xml {home}/.m2/settings.xml; true"), ""
    )
    t.equal(inside(t, ws, env, "touch ~/.m2/repository/x && echo $JAVA_HOME"), f"{home}/jdk\n")


@timeout(120)
def test_programs_of_pipx_in_local_bin(t):
    """~/.local/bin has links into what is shown, and other programs: those stay outside."""
    python = find(t, "/usr/bin/python3.*[0-9]")
    home, env = person(t)
    venv = f"{home}/.local/share/pipx/venvs/tool"
    t.run(python, "-m", "venv", "--without-pip", venv, env=env, check=True)
    with open(f"{venv}/bin/tool", "w") as f:
        f.write(f"#!{venv}/bin/python\nimport sys\nprint(sys.prefix)\n")
    os.chmod(f"{venv}/bin/tool", 0o755)
    os.makedirs(f"{home}/.local/bin")
    os.symlink(f"{venv}/bin/tool", f"{home}/.local/bin/tool")
    script(f"{home}/.local/bin/private")
    env["PATH"] = f"{home}/.local/bin:{SYSTEM}"
    t.equal(t.ward("run", "--", "tool", cwd=t.workspace(), env=env).out, f"{venv}\n")
    t.equal(
        inside(t, t.workspace({"pyproject.toml": ""}), env, f"tool; ls {home}/.local/bin"),
        f"{venv}\ntool\n",
    )


# -- what is chosen


def test_auto_none_and_names(t):
    home, env = person(t)
    script(f"{home}/.cargo/bin/cargo")
    script(f"{home}/.deno/bin/deno")
    script(f"{home}/.bun/bin/bun")
    ws = t.workspace({"Cargo.toml": ""})
    t.equal(plan(t, ws, env)["toolchains"], ["rust"])
    t.equal(plan(t, ws, env, "--set", "toolchains=none")["toolchains"], [])
    t.equal(plan(t, ws, env, "--set", "toolchains=deno")["toolchains"], ["deno"])
    t.equal(plan(t, ws, env, "--set", "toolchains=[deno, bun]")["toolchains"], ["deno", "bun"])
    t.equal(plan(t, ws, env, "--add", "toolchains=bun")["toolchains"], ["rust", "bun"])
    t.equal(plan(t, ws, env, "--set", "toolchains=[]")["policy"]["toolchains"]["value"], "none")
    for bad in ("rsut", "[none]", "../x", "[auto, x]", "null"):
        r = t.ward("plan", "--set", f"toolchains={bad}", cwd=ws, env=env)
        t.equal(r.rc, 125, bad)
        t.contains(r.err, "expected")
    t.equal(inside(t, ws, env, f"ls -A {home}", "--set", "toolchains=deno"), ".deno\n")
    r = t.ward("plan", cwd=ws, env=env)
    t.contains(r.out, f"toolchains rust: {home}/.cargo/bin")
    # a directory of the project
    t.write(ws, {"web/deno.json": "{}"})
    t.equal(plan(t, ws, env, "-C", "web")["toolchains"], ["rust", "deno"])
    # not chosen: the error names it
    r = t.ward(
        "run",
        "--set",
        "toolchains=none",
        "--",
        "cargo",
        cwd=ws,
        env={**env, "PATH": f"{home}/.cargo/bin:{SYSTEM}"},
    )
    t.equal(r.rc, 127)
    t.contains(r.err, "--set toolchains=rust")


def test_policy_add(t):
    """A name joins what is there; where nothing is, the default."""
    for before, after in (
        ("", "[auto, node]"),
        ("toolchains: auto\n", "[auto, node]"),
        ("toolchains: none\n", "[node]"),
        ("toolchains: [rust]\n", "[rust, node]"),
    ):
        ws = t.workspace({"p.yaml": f"version: 1\n{before}"})
        r = t.ward("policy", "add", "-p", "p.yaml", "--yes", "toolchains", "node", cwd=ws)
        t.equal(r.rc, 0, r.err)
        out = plan(t, ws, {}, "-p", "p.yaml")
        t.equal(out["policy"]["toolchains"]["value"], after, before)


def test_which_program_runs(t):
    """Where a program is not shown, the summary says which other ran."""
    home, env = person(t)
    script(f"{home}/tools/uname")
    env["PATH"] = f"{home}/tools:{SYSTEM}"
    ws = t.workspace()
    r = t.ward("run", "--", "uname", cwd=ws, env=env, report=True)
    t.equal(r.rc, 0)
    t.contains(r.err, f"uname is /usr/bin/uname inside, not {home}/tools/uname as on your PATH")
    t.contains(" ".join(r.report["notes"]), "as on your PATH")
    r = t.ward("run", "--set", "filesystem.programs=[uname]", "--", "uname", cwd=ws, env=env)
    t.equal(r.out, "ran /.ward/bin/uname\n")
    t.check("as on your PATH" not in r.err, r.err)
    env["PATH"] = f"{SYSTEM}:{home}/tools"
    t.equal(t.ward("run", "--", "uname", cwd=ws, env=env).err, "", "the system's comes first")
    t.equal(
        t.ward("run", "--", "/bin/uname", cwd=ws, env={**env, "PATH": f"{home}/tools"}).err,
        "",
        "named by its path",
    )


def test_the_callers_path_keeps_its_order(t):
    """Also for directories of the system: what comes first outside comes first inside."""
    home, env = person(t)
    env["PATH"] = "/usr/games:/bin:/usr/bin:/usr/local/bin:/nonexistent"
    t.equal(
        inside(t, t.workspace(), env, "echo $PATH"),
        "/usr/games:/bin:/usr/bin:/usr/local/bin:/usr/local/sbin:/usr/sbin:/sbin\n",
    )


# -- what an attacker would do


def test_a_found_policy_cannot_name_presets(t):
    """A hostile repository sees no more than its files would choose."""
    home, env = person(t)
    script(f"{home}/.deno/bin/deno")
    ws = t.workspace({"ward.yaml": "version: 1\ntoolchains: [deno]\n"})
    r = t.ward("run", "--", "true", cwd=ws, env=env)
    t.equal(r.rc, 125)
    t.contains(r.err, "toolchains: auto -> [deno]")
    t.equal(t.ward("run", "-p", "ward.yaml", "--", "true", cwd=ws, env=env).rc, 0)
    for narrower in ("none", "auto", "[]", "[auto]"):
        t.write(ws, {"ward.yaml": f"version: 1\ntoolchains: {narrower}\n"})
        t.equal(t.ward("run", "--", "true", cwd=ws, env=env).rc, 0, narrower)
    t.write(ws, {"ward.yaml": "version: 1\ntoolchains: none\n"})
    t.contains(
        t.ward("run", "--set", "toolchains=deno", "--", "true", cwd=ws, env=env).err,
        "can only narrow",
    )


def test_links_into_secrets(t):
    """A directory that is a link to ~/.ssh, a manager that is one, a link in what is shown."""
    home, env = person(
        t,
        {
            ".ssh/bin/id_rsa": SECRET,
            ".ssh/id_rsa": SECRET,
            ".aws/bin/deno": SECRET,
            "documents/bin/letter": SECRET,
        },
    )
    os.makedirs(f"{home}/.cargo")
    os.symlink(f"{home}/.ssh", f"{home}/.cargo/bin")
    os.symlink(".aws", f"{home}/.deno")
    script(f"{home}/.bun/bin/bun")
    os.symlink(f"{home}/.ssh/id_rsa", f"{home}/.bun/bin/key")
    ws = t.workspace({"Cargo.toml": "", "deno.json": "", "bun.lock": ""})
    out = plan(t, ws, env)
    t.equal(out["toolchains"], ["bun"])
    t.contains(
        " ".join(out["notes"]), f"{home}/.cargo/bin is not mounted: it is a place of secrets"
    )
    t.contains(" ".join(out["notes"]), f"{home}/.deno/bin is not mounted: it is a place of secrets")
    t.equal(
        inside(
            t,
            ws,
            env,
            f"cd {home};"
            "cat .cargo/bin/id_rsa .deno/bin/deno .bun/bin/key .ssh/id_rsa; true",
        ),
        "",
    )
    # by a variable of the caller's environment: nothing without the manager's own files
    env.update(
        CARGO_HOME=home, JAVA_HOME=home, RUSTUP_HOME=f"{home}/.ssh", VIRTUAL_ENV=f"{home}/documents"
    )
    t.write(ws, {"pom.xml": "", "pyproject.toml": ""})
    t.equal(plan(t, ws, env)["toolchains"], ["bun"])


def test_credentials_between_programs(t):
    """Files and directories that hold tokens, and pipes, are hidden between programs."""
    home, env = person(t)
    script(f"{home}/.nvm/versions/node/v1.0.0/bin/node")
    base = f"{home}/.nvm/versions/node/v1.0.0"
    names = (
        ".npmrc",
        "etc/npmrc",
        "bin/.netrc",
        "lib/credentials.json",
        "bin/id_ed25519",
        ".ssh/config",
        "share/.config/gh/hosts.yml",
        "bin/.NPMRC",
        "lib/pkg/.env",
    )
    t.write(base, {name: SECRET for name in names})
    t.write(base, {"lib/node_modules/npm/index.js": "public\n"})
    os.mkfifo(f"{base}/bin/pipe")
    ws = t.workspace({"package.json": "{}"})
    t.equal(inside(t, ws, env, f"cd {base}; cat {' '.join(names)}; true"), "")
    t.equal(inside(t, ws, env, f"grep -rl TOKEN-MARKER {home}; true"), "")
    t.equal(
        inside(
            t,
            ws,
            env,
            f"cat {base}/lib/node_modules/npm/index.js; [ ! -p {base}/bin/pipe ] && echo hidden",
        ),
        "public\nhidden\n",
    )


def test_only_what_others_cannot_write(t):
    """Owned by the user or root, on the whole way, and not open to a group of others."""
    home, env = person(t)
    script(f"{home}/.cargo/bin/cargo")
    script(f"{home}/.deno/bin/deno")
    script(f"{home}/.bun/bin/bun")
    ws = t.workspace({"Cargo.toml": "", "deno.json": "", "bun.lock": ""})
    t.equal(plan(t, ws, env)["toolchains"], ["rust", "deno", "bun"])
    os.chmod(f"{home}/.cargo/bin", 0o777)
    os.chmod(f"{home}/.deno", 0o757)
    out = plan(t, ws, env)
    t.equal(out["toolchains"], ["bun"])
    t.contains(" ".join(out["notes"]), "everybody may write to it")
    os.chmod(f"{home}/.cargo/bin", 0o1777)
    t.equal(plan(t, ws, env)["toolchains"], ["bun"], "sticky")
    os.chmod(f"{home}/.cargo/bin", 0o755)
    os.chmod(home, 0o777)
    t.equal(plan(t, ws, env)["toolchains"], [], "the home")
    os.chmod(home, 0o755)
    if os.getresuid()[2] == 0:
        with t.root():
            os.chown(f"{home}/.bun/bin", 12345, 12345)
        out = plan(t, ws, env)
        t.equal(out["toolchains"], ["rust"])
        t.contains(" ".join(out["notes"]), "another user owns it")


def test_never_from_a_place_of_the_sandbox(t):
    """In the workspace, through a link there, around it: an agent chose what lies there."""
    home, env = person(t, {"private": SECRET})
    ws = t.workspace({"Cargo.toml": "", "deno.json": "", "bun.lock": ""})
    script(f"{ws}/fake/bin/cargo")
    os.symlink(home, f"{ws}/fake/deno")
    script(f"{home}/bin/deno")
    env.update(
        CARGO_HOME=f"{ws}/fake", DENO_INSTALL=f"{ws}/fake/deno", PATH=f"{ws}/fake/bin:{SYSTEM}"
    )
    out = plan(t, ws, env, "--", "cargo")
    t.equal([m["target"] for m in out["mounts"] if m.get("toolchain")], [])
    t.contains(" ".join(out["notes"]), "a link that a sandbox could have made")
    # the project lies in a manager's directory
    script(f"{home}/.bun/bin/bun")
    t.write(home, {".bun/bin/project/bun.lock": ""})
    t.equal(plan(t, f"{home}/.bun/bin/project", env)["toolchains"], [])
    t.contains(" ".join(plan(t, f"{home}/.bun/bin/project", env)["notes"]), "it contains")
    t.equal(
        inside(t, f"{home}/.bun/bin/project", env, f"cat {home}/private; ls {home}/.bun/bin; true"),
        "project\n",
    )


def test_a_marker_is_only_a_name(t):
    """It is not opened: a pipe is one, among many other names."""
    home, env = person(t)
    script(f"{home}/.cargo/bin/cargo")
    ws = t.workspace()
    os.mkfifo(f"{ws}/Cargo.toml")
    os.symlink("/nonexistent", f"{ws}/package.json")
    t.write(ws, {f"entry{i}": "" for i in range(600)})
    t.equal(plan(t, ws, env)["toolchains"], ["rust"])


@needs("plain")
def test_start_path(t):
    """A plain run in a plain directory looks at no directory of the home."""
    if not shutil.which("strace"):
        t.skip("strace is not installed")
    home, env = person(t)
    script(f"{home}/.cargo/bin/cargo")
    ws = t.workspace({"README": ""})
    r = t.run(
        "strace",
        "-f",
        "-o",
        f"{home}/trace",
        "-e",
        "trace=%file",
        *t.ward_argv("run", "--", "true"),
        cwd=ws,
        env=env,
    )
    t.equal(r.rc, 0, r.err)
    seen = [
        line
        for line in t.read(home, "trace").splitlines()
        if re.search(r"\.(cargo|rustup|nvm|pyenv)|package\.json|Cargo\.toml", line)
    ]
    t.equal(seen, [], "what a plain run looked at")
