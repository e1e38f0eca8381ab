"""Real programs inside: what people and agents run all day must work, or the sandbox gets switched
off.

A row of PROGRAMS is one test: a shell script (set -e) that prints "good" at its end. It is run with
each named set of system calls and must come through without a single denied call. A program that
the host does not have is the only reason to skip. What takes long runs with `tests/run-tests
--slow`.
"""
import os
import shutil

from harness import slow, timeout

NATIVE_ONLY = "the time is that of compilers and interpreters; ward's part is that of every run"

EVERY, USUAL, BUILD = ("strict", "default", "build"), ("default", "build"), ("build",)

PYTHON = r"""
import asyncio, ctypes, multiprocessing as mp, os, socket, sqlite3, ssl, subprocess, sys, tempfile, threading
from multiprocessing import shared_memory
import http.server, urllib.request

def square(x):
    return x * x

async def both():
    p = await asyncio.create_subprocess_exec("echo", "child", stdout=subprocess.PIPE)
    assert (await p.communicate())[0] == b"child\n"
    assert await asyncio.to_thread(square, 3) == 9

def main():
    db = sqlite3.connect("a.db")
    db.execute("pragma journal_mode=wal")
    db.execute("create table if not exists t(a)")
    db.commit()
    assert ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(lambda x: x + 1)(1) == 2
    with mp.get_context(sys.argv[1]).Pool(2) as pool:
        assert pool.map(square, range(4)) == [0, 1, 4, 9]
    memory = shared_memory.SharedMemory(create=True, size=100000)
    memory.buf[0] = 1
    memory.close()
    memory.unlink()
    queue = mp.Queue()
    child = mp.Process(target=queue.put, args=(5,))
    child.start()
    assert queue.get() == 5
    child.join()
    asyncio.run(both())
    server = http.server.ThreadingHTTPServer(("localhost", 0), http.server.SimpleHTTPRequestHandler)
    server.RequestHandlerClass.log_message = lambda *a: None
    threading.Thread(target=server.serve_forever, daemon=True).start()
    assert urllib.request.urlopen(f"http://localhost:{server.server_port}/").read()
    server.shutdown()
    socket.socket(socket.AF_INET6).bind(("::1", 0))
    assert socket.gethostname() == "ward" and os.path.expanduser("~") == "/home/agent"
    ssl.create_default_context()
    os.nice(1)
    os.sched_setaffinity(0, os.sched_getaffinity(0))

if __name__ == "__main__":
    main()
"""

NODE = r"""
const http = require('http'), fs = require('fs'), os = require('os'), cp = require('child_process');
const { Worker } = require('worker_threads');
if (os.cpus().length < 1 || os.userInfo().username !== 'agent') throw 1;
const w = new Worker("require('worker_threads').parentPort.postMessage(1)", { eval: true });
w.on('message', () => {
    if (cp.execSync('echo child').toString() !== 'child\n') throw 2;
    fs.writeFileSync('w', '1');
    const watch = fs.watch('w', () => {
        watch.close();
        const s = http.createServer((q, r) => r.end('ok')).listen(0, 'localhost', () =>
            http.get({ port: s.address().port, host: 'localhost' }, r => { r.resume(); r.on('end', () => s.close()); }));
    });
    setTimeout(() => fs.writeFileSync('w', '2'), 50);
});
"""

JAVA = r"""
import java.util.*; import java.util.concurrent.*; import java.net.*;
public class A {
    public static void main(String[] a) throws Exception {
        var pool = Executors.newFixedThreadPool(8);
        var all = new ArrayList<Future<Integer>>();
        for (int i = 0; i < 100; i++) { int j = i; all.add(pool.submit(() -> j)); }
        int sum = 0;
        for (var f : all) sum += f.get();
        pool.shutdown();
        new ServerSocket(0).close();
        if (new ProcessBuilder("true").start().waitFor() != 0 || sum != 4950) throw new Exception();
        InetAddress.getLocalHost();
    }
}
"""

SANITIZED = r"""
#include <pthread.h>
#include <stdlib.h>
static void *run(void *p) { return p; }
int main(void)
{
	pthread_t t;
	pthread_create(&t, 0, run, 0);
	pthread_join(t, 0);
	free(malloc(1));
	return 0;
}
"""

FILES = {"t.py": PYTHON, "t.js": NODE, "A.java": JAVA, "s.c": SANITIZED,
         "a.c": '#include <stdio.h>\nint main(void) { puts("hi"); return 0; }\n',
         "b.cc": '#include <iostream>\n#include <thread>\nint main() { std::thread t([] { '
         'std::cout << 1; }); t.join(); }\n',
         "Makefile": "all: a b\n\nb: b.cc\n\tg++ -pthread -o $@ $<\n",
         "CMakeLists.txt": "cmake_minimum_required(VERSION 3.10)\nproject(x C)\n"
         "add_executable(x a.c)\n",
         "meson.build": "project('x', 'c')\ntest('x', executable('x', 'a.c'))\n",
         "Cargo.toml": '[package]\nname = "x"\nversion = "0.1.0"\nedition = "2021"\n',
         "src/main.rs": 'fn main() { std::thread::spawn(|| println!("hi")).join().unwrap(); }\n'}

# name, programs that the host must have, sets, slow, script
PROGRAMS = (
    ("shells", ("bash",), EVERY, False, """
        dash -c 'echo a; (sleep 0.01 & wait)' || sh -c true
        diff <(echo a) <(echo a); cat <<< x; coproc cat; echo hi >&${COPROC[1]}; read x <&${COPROC[0]}; [ $x = hi ]
        trap 'echo term' TERM; kill -TERM $$; ulimit -n 100; ulimit -c 0"""),
    ("coreutils", (), EVERY, False, """
        seq 100 | sort -rn | head -3; cp -a /etc/alternatives b; rm -rf b; touch a; ln a c; ln -s a d; mkfifo f; stat a; ls -la
        df; du -s .; sync a; truncate -s 1M t; dd if=/dev/zero of=z bs=1M count=1 status=none; shred -u z; nice -n 5 true
        install -m 755 a e; timeout 1 true; nohup true; split -n 3 t; md5sum t; cp --reflink=auto t t2; mv t2 t3; date
        chown agent t3; chgrp agent t3; tar cf x.tar a c d; tar xf x.tar -C /tmp; find . -name a -exec true {} +; xargs < /dev/null"""),
    ("identity", (), EVERY, False, """
        [ "$(whoami)" = agent ]; [ "$(id -u)" = 1000 ]; getent passwd agent; getent hosts localhost; [ "$(uname -n)" = ward ]
        [ $HOME = /home/agent ]; cd; touch x; nproc; kill -0 $$; mount > /dev/null; id; groups"""),
    ("processes", ("ps",), USUAL, False,
     "ps aux | grep ps; free; top -bn1 | grep top; uptime; pgrep -x bash; vmstat"),
    ("system_files", (), USUAL, False, """
        awk 'BEGIN { exit 0 }'; ldconfig -p > /dev/null || [ ! -e /etc/ld.so.cache ]; TZ=Europe/Berlin date; LC_ALL=C.UTF-8 date"""),
    ("python", ("/usr/bin/python3",), EVERY, False, "/usr/bin/python3 t.py fork"),
    ("python_spawn", ("/usr/bin/python3",), USUAL, False,
     "/usr/bin/python3 t.py spawn; /usr/bin/python3 t.py forkserver"),
    ("python_pty", ("/usr/bin/python3",), USUAL, False,
     """/usr/bin/python3 -c 'import pty; assert pty.spawn(["tty"]) == 0'"""),
    ("perl", ("perl",), EVERY, False,
     """perl -MPOSIX -e 'fork; wait; getpwnam("agent") or die; system("true") and die'"""),
    ("compilers", ("gcc", "g++", "make"), EVERY, False, """
        make -j4; ./a; ./b; gcc -flto -O2 -pipe a.c -o c; ./c; ar rc x.a /dev/null; strip c"""),
    ("static_and_clang", ("clang",), USUAL, True, "clang a.c -o c; ./c; gcc -static a.c -o d; ./d"),
    ("git", ("git",), EVERY, False, """
        export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
        git init -q r; cd r; for i in 1 2 3; do echo $i > f$i; git add .; git commit -qm $i; done; git gc -q
        git worktree add -q ../wt; git clone -q . ../cl; git clone -q --bare . ../b; echo x >> f1; git stash -q; git stash pop -q
        git checkout -q -- .; git rebase -q HEAD~1 --exec true; git fsck; git push -q ../b HEAD:x; git tag v; git grep -n 1
        git -c protocol.file.allow=always submodule --quiet add ../cl sub; git commit -qm sub; git archive HEAD | tar t"""),
    ("ninja_and_meson", ("meson", "ninja"), USUAL, True,
     "meson setup build; ninja -C build; meson test -C build"),
    ("cmake", ("cmake",), USUAL, True, "cmake -B build; make -C build; build/x"),
    ("node", ("node",), USUAL, False, "node t.js"),
    ("npm", ("npm",), USUAL, True, """
        mkdir p q; cd p; echo '{"name":"p","version":"1.0.0","main":"i.js"}' > package.json; echo 'module.exports=1' > i.js
        npm pack; cd ../q; npm init -y; npm install --offline --no-audit ../p/p-1.0.0.tgz; node -e 'require("p")'"""),
    ("venv", ("/usr/bin/python3", "/usr/lib/python3/dist-packages/pip/__init__.py"), USUAL,
     True, """
        /usr/bin/python3 -m venv --without-pip v; v/bin/python -c 'import sys; assert sys.prefix != sys.base_prefix'"""),
    ("java", ("java", "javac"), EVERY, True,
     "javac A.java; java A; java -Xmx64m -XX:+UseSerialGC A"),
    ("cargo", ("/usr/bin/cargo",), USUAL, True, "cargo build --offline; target/debug/x"),
    ("postgresql", ("psql", "/usr/lib/postgresql"), USUAL, True, """
        PATH=$PATH:$(echo /usr/lib/postgresql/*/bin); initdb -D d -U agent > /dev/null; trap 'cat l' ERR
        pg_ctl -D d -w -l l -o "-k /tmp" start > /dev/null
        psql -h /tmp postgres -c 'create table t(a int)' -c 'insert into t select generate_series(1, 1000)'
        psql -h localhost postgres -tc 'select sum(a) from t' | grep 500500; pg_ctl -D d -m fast stop"""),
    ("sqlite", ("sqlite3",), EVERY, False,
     "sqlite3 a.db 'pragma journal_mode=wal; create table t(a); insert into t values (1)'"),
    ("archives", ("zip", "unzip", "xz", "bzip2"), EVERY, False, """
        mkdir x; seq 1000 > x/a; tar czf a.tgz x; tar cJf a.txz x; zip -qr a.zip x; unzip -oq a.zip; gzip -k x/a; bzip2 -k x/a"""),
    ("manuals", ("man", "less"), USUAL, False,
     "man -w ls || [ ! -e /usr/share/man/man1/ls.1.gz ]; echo hi | less -F"),
    ("editors", ("vim",), EVERY, False, "echo hi > a; vim -es -c '%s/hi/ho/' -c wq a; grep ho a"),
    ("terminals", ("tmux", "script"), USUAL, False, """
        tmux -L x new-session -d 'sleep 5'; tmux -L x ls; tmux -L x kill-server; script -qec tty /dev/null | grep pts"""),
    ("keys", ("ssh-keygen", "openssl"), EVERY, False, """
        ssh-keygen -q -t ed25519 -N '' -f k; openssl ecparam -name prime256v1 -genkey -noout -out e
        [ ! -d /etc/ssl/certs ] || ls /etc/ssl/certs > /dev/null"""),
    ("tls", ("openssl", "curl"), USUAL, True, """
        openssl req -x509 -newkey rsa:2048 -nodes -keyout key -out crt -subj /CN=localhost -days 1
        openssl s_server -accept 4433 -key key -cert crt -www -quiet > /dev/null 2>&1 & sleep 0.5
        curl -sf --cacert crt https://localhost:4433/ > /dev/null; kill %1"""),
    ("valgrind", ("valgrind", "gcc"), USUAL, True,
     "gcc -g s.c -o s; valgrind -q --error-exitcode=3 ./s"),
    ("sanitizers", ("gcc",), BUILD, False, "gcc -g -fsanitize=address,undefined s.c -o s; ./s"),
    ("thread_sanitizer", ("gcc", "clang"), BUILD, True, "clang -g -fsanitize=thread s.c -o s; ./s"),
    ("debuggers", ("strace", "gdb"), BUILD, True, """
        strace -f -o /tmp/s true; grep execve /tmp/s; gdb -q -batch -ex run /bin/true 2>&1 | grep 'exited normally'"""),
)


def make_test(name, programs, sets, script):
    """The test of one row."""
    def test(t):
        for program in programs:
            if not shutil.which(program) and not (program.startswith("/")
                                                  and os.path.exists(program)):
                t.skip(f"there is no {program} here")
        for calls in sets:
            ws = t.workspace(FILES)
            r = t.ward("run", "--set", f"process.syscalls={calls}", "--", "bash", "-e", "-c",
                       f"{script}\necho good",
                       cwd=ws, report=True, timeout=120)
            t.equal(r.rc, 0, f"exit with {calls}")
            t.equal(r.out.splitlines()[-1:], ["good"], f"the last line with {calls}")
            t.equal(r.report["denials"], [], f"denials with {calls}")
    test.__doc__ = f"{name} with {', '.join(sets)}."
    return test


for _name, _programs, _sets, _slow, _script in PROGRAMS:
    _test = timeout(400)(make_test(_name, _programs, _sets, _script))
    globals()[f"test_{_name}"] = slow(_test) if _slow else _test


def test_a_debugger_is_refused_with_the_way_on(t):
    """In the default set ptrace is denied, and the report says what would allow it."""
    program = t.compile("#include <sys/ptrace.h>\nint main(void) { return ptrace(PTRACE_TRACEME, "
                        "0, 0, 0) == 0; }\n")
    ws = t.workspace()
    shutil.copy(program, f"{ws}/p")
    r = t.ward("run", "--", "./p", cwd=ws, report=True)
    t.equal(r.rc, 0)
    t.contains(r.report["denials"][0]["remedy"], "process.syscalls: build")
    t.equal(t.ward("run", "--set", "process.syscalls=build", "--", "./p", cwd=ws).rc, 1,
            "ptrace in the build set")


def test_no_link_of_the_system_dangles(t):
    """Programs that are links into /etc/alternatives are there; what dangles inside dangles outside
    too."""
    look = ('find /usr/bin /usr/sbin -maxdepth 1 -type l | while read -r l; do [ -e "$l" ] || echo '
            '"$l"; done')
    outside = t.run("/bin/sh", "-c", look).out.splitlines()
    inside = t.ward("run", "--", "/bin/sh", "-c", look, cwd=t.workspace()).out.splitlines()
    t.equal(sorted(set(inside) - set(outside)), [], "links that lead nowhere only inside")
