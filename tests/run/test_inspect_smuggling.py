"""Requests that servers read differently, sent to a real nginx through a rule that looks into them."""
import json
import os
import re
import shutil

from harness import smuggling
from harness.world import policy, serve, trusted_world

CLIENT = r"""
import json, socket, ssl, sys
context = ssl.create_default_context()
def send(data):
    s = socket.create_connection(("web.test", 9443), 20)
    s = context.wrap_socket(s, server_hostname="web.test")
    s.settimeout(20)
    got = b""
    try:
        s.sendall(data)
        while b"\r\n\r\n" not in got:
            more = s.recv(65536)
            if not more:
                break
            got += more
    except OSError as error:
        return type(error).__name__
    finally:
        s.close()
    return got.split(b"\r\n")[0].decode("latin-1")
print(json.dumps([send(bytes.fromhex(data)) for data in json.load(open("rows.json"))]))
"""

NGINX = """
daemon off; master_process off; pid {d}/nginx.pid; error_log {d}/error.log; user root;
events {{}}
http {{ log_format seen '$request_method $request_uri $host'; access_log {d}/seen.log seen; client_body_temp_path {d}; proxy_temp_path {d};
fastcgi_temp_path {d}; uwsgi_temp_path {d}; scgi_temp_path {d};
server {{ listen 9443 ssl; root {d}; ssl_certificate {c}/server.pem; ssl_certificate_key {c}/server.key;
location / {{ return 200 "fine"; }} }} }}
"""


def test_smuggling(t):
    """What may be read in two ways is refused with an answer, and nginx sees none of it; what passes is seen as it was decided about."""
    nginx = shutil.which("nginx", path="/usr/sbin:/usr/bin")
    if not nginx:
        t.skip("no nginx")
    world = trusted_world(t)
    t.write(world.dir, {"nginx.conf": NGINX.format(d=world.dir, c=world.certificates), "seen.log": ""})
    serve(t, world, [nginx, "-c", os.path.join(world.dir, "nginx.conf")], 9443)
    rows = smuggling.rows()
    t.check(len(rows) >= 80, f"{len(rows)} rows")
    ws = t.workspace({"client.py": CLIENT, "rows.json": json.dumps([data.hex() for _, data, _ in rows])})
    rules = [{"host": "web.test", "ports": [9443], "methods": ["GET", "POST"], "paths": ["/open/*"]}]
    r = world.ward("run", "-p", policy(t, rules), "--", "/usr/bin/python3", "client.py", cwd=ws, report=True, timeout=100)
    t.equal(r.rc, 0, f"exit code ({r.err})")
    with t.root():
        seen = (t.read(os.path.join(world.dir, "seen.log")) or "").splitlines()
    t.check(not [line for line in seen if "/hidden/" in line], f"smuggled: {seen}")
    numbers = {int(m.group(1)) for line in seen if (m := re.search(r"/open/(\d+)", line))}
    for i, ((name, _, passes), answer) in enumerate(zip(rows, json.loads(r.out))):
        if passes:
            t.contains(answer, "HTTP/1.1 200", name)
            t.check(i in numbers, f"{name}: nginx did not see it")
        else:
            t.check(re.match(r"HTTP/1.1 (400|403|421) ", answer), f"{name}: {answer}")
            t.check(i not in numbers, f"{name}: nginx saw it")
    t.check(all(line.endswith(" web.test") for line in seen), f"hosts: {seen}")
    t.contains(seen, f"GET /open/{len(rows) - 1}-second web.test", "the second of two requests in one packet")
