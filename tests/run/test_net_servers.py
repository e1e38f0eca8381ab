"""Real servers on the other side: nginx, sshd, Redis, PostgreSQL, each with its own client inside.
A server or client that the host does not have is the only reason to skip."""
import hashlib
import os
import shutil

from harness import slow, timeout
from harness.world import SBIN, World, need, policy, serve


def inside(t, world, script, rules, files=None):
    ws = t.workspace(files)
    shutil.copy(os.path.join(world.certificates, "ca.pem"), ws)
    r = world.ward("run", "-p", policy(t, rules), "--", "/bin/sh", "-ec", script, cwd=ws,
                   timeout=60, report=True)
    t.equal(r.rc, 0, "exit code")
    return r


@timeout(60)
def test_nginx(t):
    """TLS 1.2 and 1.3, keep-alive, a large file, HTTP/2 where curl has it."""
    nginx, curl = need(t, "nginx", "curl")
    world = World(t)
    content = os.urandom(1 << 20) * 8
    with open(os.path.join(world.dir, "big"), "wb") as f:
        f.write(content)
    t.write(world.dir, {"nginx.conf": f"""
daemon off; master_process off; pid {world.dir}/nginx.pid; error_log stderr; user root;
events {{}}
http {{ access_log off; client_body_temp_path {world.dir}; proxy_temp_path {world.dir}; fastcgi_temp_path {world.dir};
uwsgi_temp_path {world.dir}; scgi_temp_path {world.dir};
server {{ listen 9443 ssl http2; root {world.dir}; ssl_certificate {world.certificates}/server.pem;
ssl_certificate_key {world.certificates}/server.key; ssl_protocols TLSv1.2 TLSv1.3; ssl_ecdh_curve secp521r1:secp384r1:X25519; }} }}
"""})
    serve(t, world, [nginx, "-c", os.path.join(world.dir, "nginx.conf")], 9443)
    c = f"{curl} -sS --cacert ca.pem"
    r = inside(t, world, f"""
for v in --tls-max\\ 1.2 --tlsv1.3 --http1.1 --http2; do
    {c} $v https://web.test:9443/big | sha256sum; done
{c} --curves P-521:X25519 https://web.test:9443/big https://web.test:9443/big | sha256sum
""", [{"host": "web.test", "ports": [9443], "mode": "splice"}])
    sums = r.out.split()[::2]
    t.equal(len(set(sums[:4])), 1, f"the file: {r.out} {r.err}")
    t.equal(sums[0], hashlib.sha256(content).hexdigest(), "its content")
    t.equal(sums[4], hashlib.sha256(content * 2).hexdigest(), "twice over one connection")
    t.equal(r.report["denials"], [], "denials")


@timeout(60)
def test_sshd(t):
    """ssh, and git over it."""
    sshd, _, keygen, git = need(t, "sshd", "ssh", "ssh-keygen", "git")
    world = World(t)
    for name in ("host", "user"):
        t.run(keygen, "-q", "-t", "ed25519", "-N", "", "-f", os.path.join(world.dir, name),
              root=True, check=True)
    with t.root():
        with open(os.path.join(world.dir, "user")) as f:
            key = f.read()
        for name in ("host", "host.pub", "user", "user.pub"):
            os.chown(os.path.join(world.dir, name), 0, 0)
    repo = t.git_repo({"README": "hello over ssh\n"})
    t.run(git, "clone", "-q", "--bare", repo, os.path.join(world.dir, "repo.git"), check=True)
    command = f'case "$SSH_ORIGINAL_COMMAND" in git-upload-pack*) exec git -c safe.directory=* upload-pack {world.dir}/repo.git;; ' \
              '*) exec echo it was "$SSH_ORIGINAL_COMMAND";; esac'
    t.write(world.dir, {"force.sh": command + "\n"})
    # its directory in /run is the world's own
    serve(t, world, ["sh", "-c", 'mount -t tmpfs none /run && mkdir /run/sshd && exec "$@"', "sh",
                     sshd, "-D", "-e", "-f", "/dev/null", "-p", "2222", "-h",
                     os.path.join(world.dir, "host"), "-o",
                     "PermitRootLogin=yes", "-o", f"AuthorizedKeysFile={world.dir}/user.pub", "-o",
                     "StrictModes=no", "-o",
                     "UsePAM=no", "-o", f"ForceCommand=/bin/sh {world.dir}/force.sh", "-o",
                     "PidFile=none"], 2222)
    ssh = ("ssh -p 2222 -i key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o "
           "LogLevel=ERROR -o IdentitiesOnly=yes")
    r = inside(t, world, f"""
chmod 600 key
{ssh} root@db.test hello there
GIT_SSH_COMMAND='{ssh}' git clone -q ssh://root@db.test:2222/repo.git there
cat there/README
! timeout 10 {ssh} root@evil.test hello 2>&1
! timeout 10 {ssh.replace("2222", "2223")} root@db.test hello 2>&1
""", [{"host": "db.test", "ports": [2222]}], {"key": key})
    t.contains(r.out, "Could not resolve hostname evil.test", "another name")
    t.contains(r.out, "Connection refused", "another port")
    t.contains(r.out, "it was hello there", "ssh")
    t.contains(r.out, "hello over ssh", "git over ssh")


def test_redis(t):
    """redis-cli."""
    server, client = need(t, "redis-server", "redis-cli")
    world = World(t)
    serve(t, world, [server, "--port", "6379", "--bind", "0.0.0.0", "--protected-mode", "no",
                     "--save", "", "--dir", "/tmp"], 6379,
          root=False)
    r = inside(t, world, f"""
{client} -h db.test set greeting hello
{client} -h db.test get greeting
yes 'incr n' | head -2000 | {client} -h db.test --pipe | tail -1
! timeout 10 {client} -h other.test ping 2>&1
""", ["db.test:6379"])
    t.contains(r.out, "hello", "redis-cli")
    t.contains(r.out, "replies: 2000", "a pipe")


@slow
@timeout(120)
def test_postgresql(t):
    """psql."""
    base = "/usr/lib/postgresql"
    versions = sorted(os.listdir(base)) if os.path.isdir(base) else []
    if not versions or not shutil.which("psql", path=SBIN):
        t.skip("there is no PostgreSQL here")
    world = World(t)
    data = os.path.join(world.dir, "data")
    with t.root():
        os.mkdir(data)
        os.chown(data, 65534, 65534)
        os.chmod(world.dir, 0o755)
    programs = os.path.join(base, versions[-1], "bin")
    as_nobody = ("setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups")
    t.run(*as_nobody, f"{programs}/initdb", "-D", data, "-A", "trust", "-U", "agent", "-N",
          root=True, check=True, timeout=60)
    with t.root():
        with open(os.path.join(data, "pg_hba.conf"), "a") as f:
            f.write("host all all all trust\n")
    serve(t, world, [f"{programs}/postgres", "-D", data, "-c", "listen_addresses=*", "-p", "5433",
                     "-k", data], 5433, root=False)
    psql = "psql -p 5433 -U agent -d postgres"
    r = inside(t, world, f"""
{psql} -h db.test -Atc "select 'hello', sum(i) from generate_series(1, 100000) i"
! timeout 10 {psql} -h evil.test -c 'select 1' 2>&1
! timeout 10 psql -p 5434 -U agent -d postgres -h db.test -c 'select 1' 2>&1
""", ["db.test:5433"])
    t.contains(r.out, "hello|5000050000", "psql")
    t.contains(r.out, 'could not translate host name "evil.test"', "another name")
    t.contains(r.out, "Connection refused", "another port")
