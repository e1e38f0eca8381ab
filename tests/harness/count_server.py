"""A server that counts what reaches it: count_server.py CERTIFICATES PORT LOG [MODE].

TLS with HTTP/1.1, or plain HTTP with MODE plain. Each line of LOG is a number of bytes that came,
after TLS was taken off; their sum is all that ever left. /slow/... is read only after half a
second, a request with Upgrade: websocket becomes a websocket that reads on, anything else is read
whole and answered with 200. /big is answered with a megabyte.
"""
import socket
import ssl
import sys
import threading
import time

CERTIFICATES, PORT, LOG, *MODE = sys.argv[1:]
LOCK = threading.Lock()


def log(n):
    with LOCK, open(LOG, "a") as f:
        f.write(f"{n}\n")


class Connection:
    def __init__(self, sock):
        self.sock, self.bytes = sock, b""

    def more(self):
        data = self.sock.recv(65536)
        if not data:
            raise EOFError
        log(len(data))
        self.bytes += data

    def take(self, n):
        while len(self.bytes) < n:
            self.more()
        taken, self.bytes = self.bytes[:n], self.bytes[n:]
        return taken

    def line(self, end=b"\r\n"):
        while end not in self.bytes:
            self.more()
        return self.take(self.bytes.index(end) + len(end))

    def serve(self):
        while True:
            head = self.line(b"\r\n\r\n").lower()
            if b"/slow/" in head.split(b"\r\n")[0]:
                time.sleep(0.5)
            if b"upgrade: websocket" in head:
                self.sock.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                                  b"Connection: Upgrade\r\n\r\n")
                while True:
                    self.more()
                    self.bytes = b""
            if b"transfer-encoding: chunked" in head:
                while n := int(self.line(), 16):
                    self.take(n + 2)
                self.line()
            elif b"content-length:" in head:
                self.take(int(head.split(b"content-length:")[1].split(b"\r\n")[0]))
            body = b"b" * (1 << 20 if b"/big" in head.split(b"\r\n")[0] else 0)
            self.sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s"
                              % (len(body), body))


def handle(sock):
    try:
        if not MODE:
            sock = CONTEXT.wrap_socket(sock, server_side=True)
        Connection(sock).serve()
    except (OSError, EOFError, ValueError):
        pass
    finally:
        sock.close()


CONTEXT = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
CONTEXT.load_cert_chain(CERTIFICATES + "/server.pem", CERTIFICATES + "/server.key")
listening = socket.create_server(("0.0.0.0", int(PORT)), backlog=256)
while True:
    threading.Thread(target=handle, args=(listening.accept()[0],), daemon=True).start()
