"""From one sandbox: connects to an abstract unix socket and to a TCP port on the loopback of
another sandbox of the same user.

layer: net namespace
control: two plain processes of the same user
"""


def serve(a):
    listeners = [socket.socket(socket.AF_UNIX), socket.socket()]
    listeners[0].bind("\0" + a["name"])
    listeners[1].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listeners[1].bind(("127.0.0.1", 0))
    for listener in listeners:
        listener.listen(8)
    put("ready.new", str(listeners[1].getsockname()[1]))
    os.rename("ready.new", "ready")
    import select
    end = time.monotonic() + 20
    while time.monotonic() < end:
        for listener in select.select(listeners, [], [], 1)[0]:
            peer, _ = listener.accept()
            peer.send(a["token"].encode())
            peer.close()


def scene(s):
    s.companion(serve, name=s.token[:14], token=s.token)
    s.args = {"name": s.token[:14]}


def attack(a):
    def unix():
        with socket.socket(socket.AF_UNIX) as c:
            c.connect("\0" + a["name"])
            print(c.recv(100))

    def tcp():
        with socket.socket() as c:
            c.settimeout(1)
            c.connect(("127.0.0.1", int(slurp("ready"))))
            print(c.recv(100))
    attempt(unix)
    attempt(tcp)
