"""Connects to the cloud's metadata service, to private and to public addresses.

layer: net namespace
control: in a throw-away net namespace that has those addresses, a plain program is served
"""
import os

NEEDS = ["root"]
ADDRESSES = ["169.254.169.254", "10.0.0.1", "192.168.1.1", "203.0.113.7", "2001:db8::7"]
SERVER = """
import socket, sys
s = socket.socket(socket.AF_INET6)
s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("::", 8080))
s.listen(16)
open(sys.argv[2], "w").close()
while True:
    c, _ = s.accept()
    c.sendall(sys.argv[1].encode())
    c.close()
"""


def scene(s):
    up = os.path.join(s.outside, "up")
    s.t.write(s.outside, {"server.py": SERVER})
    setup = " && ".join(["ip link set lo up"] + [f"ip addr add {a}/{128 if ':' in a else 32} dev lo"
                                                 for a in ADDRESSES])
    s.wrap = ["unshare", "-n", "sh", "-c", f"""{setup} || exit 99
/usr/bin/python3 {s.outside}/server.py {s.token} {up} & v=$!
while ! test -e {up}; do sleep 0.02; done
"$@"; rc=$?; kill $v; exit $rc""", "sh"]
    s.args = {"addresses": ADDRESSES}


def attack(a):
    for address in a["addresses"]:
        def call():
            with socket.create_connection((address, 8080), timeout=1) as c:
                print(address, c.recv(100))
        attempt(call)
    print([name for _, name in socket.if_nameindex()])
