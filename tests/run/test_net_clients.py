"""Real clients inside, without any proxy variable, against nginx, sshd, PostgreSQL and Redis: each
reaches the allowed name, and fails at once, in its own words, for another one. A program that the
host does not have is the only reason to skip it.

A row of CLIENTS: what must be there; what prints GOOD-ANSWER with URL (https) or PLAIN (http) of
the allowed host; what the same program says where WRONG stands instead.
"""
import base64
import hashlib
import io
import json
import os
import re
import shutil
import tarfile
import zipfile

from harness import slow, timeout
from harness.world import World, need, policy, serve, trusted_world

# a refusal that takes longer was waited for: resolvers give up after 5, connections after 130
SECONDS = 15

NGINX = """
daemon off; master_process off; pid {dir}/nginx.pid; error_log stderr; user root;
events {{}}
http {{ access_log off; client_body_temp_path {dir}; proxy_temp_path {dir}; fastcgi_temp_path {dir}; uwsgi_temp_path {dir};
scgi_temp_path {dir}; types {{ text/html html; }} default_type application/octet-stream; root {dir}/www; autoindex on;
server {{ listen 9080; location /npm/ {{ default_type application/json; }} }}
server {{ listen 9443 ssl http2; ssl_certificate {certificates}/server.pem; ssl_certificate_key {certificates}/server.key;
location /npm/ {{ default_type application/json; }} }} }}
"""

RULES = [{"host": "web.test", "ports": [9443], "mode": "splice"},
         {"host": "web.test", "ports": [9080], "mode": "http"}]
UNKNOWN = (r"not resolve|unknown|not known|ENOTFOUND|no such host|NXDOMAIN|bad "
           r"address|resolution|UnknownHost|unresolved|can't resolve")

MUSL = r"""
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG }, *found;
	int r = getaddrinfo(argv[1], argv[2], &hints, &found), s;
	char text[4096];
	ssize_t n;

	if (r) {
		fprintf(stderr, "%s: %s\n", argv[1], gai_strerror(r));
		return 1;
	}
	s = socket(found->ai_family, SOCK_STREAM, 0);
	if (connect(s, found->ai_addr, found->ai_addrlen) < 0) {
		perror("connect");
		return 1;
	}
	n = snprintf(text, sizeof(text),
		     "GET /hello HTTP/1.1\r\nHost: %s:%s\r\nConnection: close\r\n\r\n", argv[1],
		     argv[2]);
	write(s, text, n);
	while ((n = read(s, text, sizeof(text))) > 0)
		fwrite(text, 1, n, stdout);
	return 0;
}
"""

URLLIB = "import ssl, sys, urllib.request as u; print(u.urlopen(sys.argv[1] + '/hello', context=ssl.create_default_context(" \
         "cafile='ca.pem')).read().decode())"
REQUESTS = "import sys\ntry: import requests\nexcept ImportError: from pip._vendor import requests\n" \
           "print(requests.get(sys.argv[1] + '/hello', verify='ca.pem').text)"

CLIENTS = {
    "curl": ("curl", "curl -sS --cacert ca.pem $URL/hello", UNKNOWN),
    "curl-plain": ("curl", "curl -sS $PLAIN/hello", UNKNOWN),
    "curl-address": ("curl", "if [ $HOST = web.test ]; then curl -sS $PLAIN/hello; else curl -sS "
                     "http://203.0.113.5:9080/hello; fi",
                     "refused|Failed to connect|Couldn't connect"),
    "wget": ("wget", "wget -q --ca-certificate=ca.pem -O- $URL/hello || wget "
             "--ca-certificate=ca.pem -O- $URL/hello", UNKNOWN),
    "busybox-wget": ("busybox", "busybox wget -q -O- $PLAIN/hello", UNKNOWN),
    "busybox-nslookup": ("busybox", "busybox nslookup $HOST 127.0.0.53 && echo GOOD-ANSWER",
                         UNKNOWN),
    "git": ("git", "git -c http.sslCAInfo=$PWD/ca.pem clone -q $URL/repo.git git-$HOST && cat "
            "git-$HOST/README", UNKNOWN),
    "urllib": ("python3", "/usr/bin/python3 urllib_get.py $URL", UNKNOWN),
    "requests": ("python3", "/usr/bin/python3 requests_get.py $URL", UNKNOWN),
    "musl": ("./musl", "./musl $HOST 9080", UNKNOWN),
    "pip": ("pip3", "/usr/bin/python3 -m pip -vv --disable-pip-version-check install --retries 0 "
            "--no-cache-dir --cert ca.pem --index-url $URL/simple/ "
            "--target pip-$HOST wardthing && PYTHONPATH=pip-$HOST /usr/bin/python3 -c 'import "
            "wardthing; print(wardthing.SAYS)'", UNKNOWN),
    "apt-https": ("apt-get", "sh apt.sh $URL", UNKNOWN),
    "apt-http": ("apt-get", "sh apt.sh $PLAIN", UNKNOWN),
}

SLOW_CLIENTS = {
    "node": ("node", "NODE_EXTRA_CA_CERTS=ca.pem node fetch.mjs $URL/hello", UNKNOWN),
    "npm": ("npm", "cd npm && npm_config_cache=$PWD/cache npm --fetch-retries=0 --no-audit "
            "--no-fund --no-update-notifier --cafile ../ca.pem --registry $URL/npm/ "
            "install wardthing && node -e 'console.log(require(\"wardthing\"))'", UNKNOWN),
    "go": ("./go-get", "SSL_CERT_FILE=ca.pem ./go-get $URL/hello", UNKNOWN),
    "go-cgo": ("./go-get", "GODEBUG=netdns=cgo SSL_CERT_FILE=ca.pem ./go-get $URL/hello", UNKNOWN),
    "java": ("java", "java -XX:TieredStopAtLevel=1 -Djavax.net.ssl.trustStore=trust.p12 "
             "-Djavax.net.ssl.trustStorePassword=password "
             "Get.java $URL/hello", UNKNOWN + "|ConnectException"),
}

NODE = """
fetch(process.argv[2]).then(r => r.text()).then(console.log, e => { console.log(String(e.cause)); process.exit(1); });
"""

GO = """
package main

import ("fmt"; "io"; "net/http"; "os")

func main() {
	r, err := http.Get(os.Args[1])
	if err != nil { fmt.Println(err); os.Exit(1) }
	text, err := io.ReadAll(r.Body)
	fmt.Println(string(text), err)
}
"""

JAVA = """
import java.net.URI;
import java.net.http.*;

class Get {
    public static void main(String[] words) throws Exception {
        var request = HttpRequest.newBuilder(URI.create(words[0])).build();
        System.out.println(HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString()).body());
    }
}
"""

# apt as an ordinary program: everything that it writes is in the workspace
APT = """
d=$PWD/apt-$(echo "$1" | tr -c 'a-z0-9\\n' -)
mkdir -p "$d/lists/partial" "$d/cache/archives/partial" "$d/etc" "$d/out"
: >"$d/status"
echo "deb [trusted=yes] $1/apt ./" >"$d/etc/sources.list"
o="-o Dir::State=$d -o Dir::State::Lists=$d/lists -o Dir::State::status=$d/status -o Dir::Cache=$d/cache -o Dir::Etc=$d/etc"
o="$o -o Dir::Etc::SourceParts=- -o Dir::Etc::Parts=- -o Dir::Etc::Trusted=/dev/null -o Dir::Etc::TrustedParts=/dev/null"
o="$o -o Acquire::Retries=0 -o APT::Sandbox::User= -o Acquire::https::CAInfo=$PWD/ca.pem -o Acquire::Languages=none -o APT::Update::Error-Mode=any"
# shellcheck disable=SC2086
apt-get $o -qq update || exit 1
cd "$d/out"
# shellcheck disable=SC2086
apt-get $o -qq download wardthing || exit 1
dpkg-deb -f wardthing_*.deb Description
"""

RUN = r"""
now() { date +%s%N; }
for name in "$@"; do
	for HOST in web.test evil.test; do
		export HOST URL=https://$HOST:9443 PLAIN=http://$HOST:9080
		began=$(now)
		sh -c ". ./client-$name" >"out" 2>&1 </dev/null
		rc=$?
		echo "== $name $HOST $rc $((($(now) - began) / 1000000))"
		cat out
	done
done
"""


def wheel():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        z.writestr("wardthing.py", "SAYS = 'GOOD-ANSWER'\n")
        z.writestr("wardthing-1.0.dist-info/METADATA",
                   "Metadata-Version: 2.1\nName: wardthing\nVersion: 1.0\n")
        z.writestr("wardthing-1.0.dist-info/WHEEL",
                   "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        z.writestr("wardthing-1.0.dist-info/RECORD",
                   "wardthing.py,,\nwardthing-1.0.dist-info/METADATA,,\n"
                   "wardthing-1.0.dist-info/WHEEL,,\nwardthing-1.0.dist-info/RECORD,,\n")
    return out.getvalue()


def npm_package(origin):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, text in (("package.json",
                            '{"name": "wardthing", "version": "1.0.0", "main": "x.js"}'),
                           ("x.js", 'module.exports = "GOOD-ANSWER"')):
            info = tarfile.TarInfo("package/" + name)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(out.getvalue()).digest()).decode()
    version = {"name": "wardthing", "version": "1.0.0", "main": "x.js",
               "dist": {"tarball": origin + "/files/wardthing-1.0.0.tgz", "integrity": integrity}}
    return out.getvalue(), json.dumps({"name": "wardthing", "dist-tags": {"latest": "1.0.0"},
                                       "versions": {"1.0.0": version}})


def apt_repository(t, directory):
    """One package, and the index over it."""
    tree = os.path.join(t.fresh_dir("package"), "tree")
    control = ("Package: wardthing\nVersion: 1.0\nArchitecture: all\n"
               "Maintainer: ward <ward@web.test>\nDescription: GOOD-ANSWER\n")
    t.write(tree, {"DEBIAN/control": control})
    os.chmod(tree, 0o755)
    os.chmod(os.path.join(tree, "DEBIAN"), 0o755)
    t.run("dpkg-deb", "--root-owner-group", "-b", tree,
          os.path.join(directory, "wardthing_1.0_all.deb"), check=True)
    with open(os.path.join(directory, "wardthing_1.0_all.deb"), "rb") as f:
        package = f.read()
    packages = (control + f"Filename: ./wardthing_1.0_all.deb\nSize: {len(package)}\n"
                f"SHA256: {hashlib.sha256(package).hexdigest()}\n\n")
    digest = hashlib.sha256(packages.encode()).hexdigest()
    t.write(directory,
            {"Packages": packages, "Release": "Origin: ward\nDate: Thu, 01 Jan 2026 00:00:00 UTC\n"
             f"SHA256:\n {digest} {len(packages)} Packages\n"})


def publish(t, world):
    """What nginx serves."""
    www = os.path.join(world.dir, "www")
    archive, packument = npm_package("https://web.test:9443")
    t.write(www, {"hello": "GOOD-ANSWER\n", "npm/wardthing": packument, "files/x": "", "apt/x": ""})
    for name, data in (("wardthing-1.0.0.tgz", archive),
                       ("wardthing-1.0-py3-none-any.whl", wheel())):
        with open(os.path.join(www, "files", name), "wb") as f:
            f.write(data)
    if shutil.which("dpkg-deb"):
        apt_repository(t, os.path.join(www, "apt"))
    t.write(www,
            {
                "simple/wardthing/index.html": '<a href="/files/wardthing-1.0-py3-none-any.whl">w</a>'})
    repo = t.git_repo({"README": "GOOD-ANSWER\n"})
    t.run("git", "clone", "-q", "--bare", repo, os.path.join(www, "repo.git"), check=True)
    t.run("git", "-C", os.path.join(www, "repo.git"), "update-server-info", check=True)
    with t.root():
        t.run("chmod", "-R", "a+rX", world.dir, root=True, check=True)


def nginx(t, make=World):
    """A world with nginx in it."""
    program, = need(t, "nginx")
    world = make(t)
    publish(t, world)
    t.write(world.dir, {"nginx.conf": NGINX.format(dir=world.dir, certificates=world.certificates)})
    serve(t, world, [program, "-c", os.path.join(world.dir, "nginx.conf")], 9443)
    return world


def run_clients(t, world, clients, ws, rules=None, before=""):
    """Runs those that are there, for the allowed name and for the other one; what each said."""
    there = {name: row for name, row in clients.items() if
             (os.path.exists(os.path.join(ws, row[0])) if row[0].startswith("./")
              else shutil.which(row[0]))}
    t.write(ws, {f"client-{name}": row[1] + "\n" for name, row in there.items()})
    t.write(ws, {"run.sh": before + RUN})
    shutil.copy(os.path.join(world.certificates, "ca.pem"), ws)
    r = world.ward("run", "-p", policy(t, rules or RULES), "--", "/bin/sh", "run.sh", *there,
                   cwd=ws, timeout=250, report=True)
    t.equal(r.rc, 0, f"exit code ({r.err})")
    seen = set()
    for part in r.out.split("== ")[1:]:
        head, _, text = part.partition("\n")
        name, host, rc, ms = head.split()
        seen.add((name, host))
        if host == "web.test":
            t.check(rc == "0" and "GOOD-ANSWER" in text,
                    f"{name} to the allowed name: exit {rc}: {text}")
        else:
            t.check(rc != "0" and "GOOD-ANSWER" not in text,
                    f"{name} to another name: exit {rc}: {text}")
            t.check(re.search(there[name][2], text, re.I), f"{name}: it only says: {text}")
            t.check(int(ms) < SECONDS * 1000, f"{name}: refused only after {ms} ms")
    t.equal(seen, {(name, host) for name in there for host in ("web.test", "evil.test")},
            "all have run")
    t.check(any(d["what"] == "name evil.test" for d in r.report["denials"]),
            f"the report: {r.report['denials']}")
    t.check(not any("evil" in line for line in world.log()),
            f"something of the other name went out: {world.log()}")
    absent = sorted(set(clients) - set(there))
    if absent:
        t.skip(f"all fine but for what is not here: {', '.join(absent)}")


@timeout(180)
def test_clients(t):
    """What every Debian can have: curl, wget, busybox, git, Python, pip, apt, a program linked with
    musl."""
    world = nginx(t)
    ws = t.workspace({"urllib_get.py": URLLIB, "requests_get.py": REQUESTS, "musl.c": MUSL,
                      "apt.sh": APT})
    if shutil.which("musl-gcc"):
        t.run("musl-gcc", "-static", "-o", os.path.join(ws, "musl"), os.path.join(ws, "musl.c"),
              check=True)
    run_clients(t, world, CLIENTS, ws)


@slow
@timeout(300)
def test_heavy_clients(t):
    """node, npm, a Go program (both of its resolvers), a Java program."""
    world = nginx(t)
    ws = t.workspace({"fetch.mjs": NODE, "Get.java": JAVA, "main.go": GO, "npm/package.json": "{}"})
    if shutil.which("go"):
        t.run("env", f"GOCACHE={t.fresh_dir('gocache')}", "GOFLAGS=-mod=mod", "GO111MODULE=off",
              "go", "build", "-o", os.path.join(ws, "go-get"),
              os.path.join(ws, "main.go"), check=True, timeout=200)
    if shutil.which("keytool"):
        t.run("keytool", "-importcert", "-noprompt", "-alias", "tests", "-storetype", "PKCS12",
              "-keystore", os.path.join(ws, "trust.p12"),
              "-storepass", "password", "-file", os.path.join(world.certificates, "ca.pem"),
              check=True, timeout=60)
    run_clients(t, world, SLOW_CLIENTS, ws)


@slow
@timeout(300)
def test_inspected_clients(t):
    """pip from an index, npm from a registry, git, apt, curl and others from nginx (HTTP/1.1 and
    HTTP/2), through a rule that looks into their requests."""
    world = nginx(t, trusted_world)
    ws = t.workspace({"urllib_get.py": URLLIB, "requests_get.py": REQUESTS, "apt.sh": APT,
                      "fetch.mjs": NODE, "npm/package.json": "{}"})
    clients = {name: row for name, row in {**CLIENTS, **SLOW_CLIENTS}.items()
               if not row[0].startswith("./") and name not in ("java", "busybox", "busybox-https")}
    rules = [{"host": "web.test", "ports": [9443], "methods": ["GET", "HEAD"]},
             {"host": "web.test", "ports": [9080], "mode": "http"}]
    # what the clients are told to trust is what the sandbox trusts
    run_clients(t, world, clients, ws, rules, "cat /etc/ssl/certs/ca-certificates.crt >ca.pem\n")
