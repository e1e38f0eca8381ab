"""The servers of harness/world.py: world_servers.py DIRECTORY CERTIFICATES, run in the world's
namespace.

DNS over UDP and TCP on 192.0.2.53; on every address: TLS with HTTP/1.1 on 443 and 8443, plain HTTP
on 80 and 8080, echo on 7 and 5432 (a first line "SIZE n" is answered with n bytes), a greeting
first on 22; UDP on 443 and 5432; proxies for user "agent" with password "s3:cret", HTTP on 3128 and
SOCKS5 on 1080 (8443 makes every TLS client send a second greeting). All that happens goes to
DIRECTORY/log.
"""
import base64
import hashlib
import http.server
import json
import os
import socket
import socketserver
import ssl
import struct
import sys
import threading
import time

HERE, CERTIFICATES = sys.argv[1:3]
NAMES = json.load(open(os.path.join(HERE, "names.json")))
LOG = os.open(os.path.join(HERE, "log"), os.O_WRONLY | os.O_APPEND)
asked = {}


def log(line):
    os.write(LOG, (line + "\n").encode())


def answer(message):
    """One DNS answer. A name with a list of lists is answered with the next list each time; one
    with [seconds, addresses] so much later."""
    at, labels = 12, []
    while message[at]:
        labels.append(message[at + 1:at + 1 + message[at]].decode("latin-1"))
        at += message[at] + 1
    kind = struct.unpack(">H", message[at + 1:at + 3])[0]
    question, name = message[12:at + 5], ".".join(labels).lower()
    log(f"dns {name} {kind}")
    addresses = NAMES.get(name)
    if addresses and isinstance(addresses[0], float):
        time.sleep(addresses[0])
        addresses = addresses[1]
    if addresses and isinstance(addresses[0], list):
        turn = asked.get((name, kind), 0)
        asked[name, kind] = turn + 1
        addresses = addresses[min(turn, len(addresses) - 1)]
    if addresses is None:
        return message[:2] + b"\x81\x83\0\1\0\0\0\0\0\0" + question
    family = {1: socket.AF_INET, 28: socket.AF_INET6}.get(kind)
    mine = [a for a in addresses if family and (":" in a) == (kind == 28)]
    records = b"".join(struct.pack(">HHHIH", 0xc00c, kind, 1, 0, 4 if kind == 1 else 16)
                       + socket.inet_pton(family, a)
                       for a in mine)
    return message[:2] + b"\x81\x80\0\1" + struct.pack(">H",
                                                       len(mine)) + b"\0\0\0\0" + question + records


class Dns(socketserver.BaseRequestHandler):
    def handle(self):
        self.request[1].sendto(answer(self.request[0]), self.client_address)


class Sink(socketserver.BaseRequestHandler):
    def handle(self):
        log(f"udp {len(self.request[0])} bytes")
        self.request[1].sendto(b"heard", self.client_address)


class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        log("tcp %s %d" % self.request.getsockname()[:2])
        data = self.request.recv(65536)
        if data.startswith(b"SIZE "):
            left, block = int(data.split()[1]), hashlib.sha256(b"ward").digest() * 2048
            while left > 0:
                self.request.sendall(block[:left])
                left -= min(left, len(block))
            return
        while data:
            self.request.sendall(data)
            data = self.request.recv(65536)


class Proxy(socketserver.BaseRequestHandler):
    """HTTP CONNECT and SOCKS5; says in one piece with its answer what the server says first, if
    that is soon."""
    LOGIN = ("agent", "s3:cret")

    def handle(self):
        self.file = self.request.makefile("rb", buffering=0)
        first = self.file.read(1)
        target = self.socks() if first == b"\x05" else self.http(first)
        if not target:
            return
        name, port = target
        log(f"proxy {name} {port}")
        addresses = NAMES.get(name, [name])
        try:
            server = socket.create_connection((addresses[0], port), 10)
        except OSError:
            self.request.sendall(b"\5\4\0\1\0\0\0\0\0\0" if first == b"\x05"
                                 else b"HTTP/1.1 502 Bad Gateway\r\n\r\n")
            return
        server.settimeout(0.2)
        try:
            early = server.recv(1000)
        except TimeoutError:
            early = b""
        server.settimeout(None)
        self.request.sendall((b"\5\0\0\1\0\0\0\0\0\0" if first == b"\x05"
                              else b"HTTP/1.1 200 Yes\r\nVia: proxy\r\n\r\n") + early)
        back = threading.Thread(target=self.copy, args=(server, self.request), daemon=True)
        back.start()
        self.copy(self.request, server)
        back.join()

    def http(self, head):
        while not head.endswith(b"\r\n\r\n"):
            head += self.file.read(1) or b"\r\n\r\n"
        words = head.decode().split("\r\n")[0].split(" ")
        login = base64.b64encode(":".join(self.LOGIN).encode()).decode()
        if f"Proxy-Authorization: Basic {login}\r\n" not in head.decode():
            log("proxy login refused")
            self.request.sendall(b"HTTP/1.1 407 Who are you\r\nProxy-Authenticate: Basic\r\n\r\n")
            return None
        name, port = words[1].rsplit(":", 1)
        return name.strip("[]"), int(port)

    def socks(self):
        methods = self.file.read(self.file.read(1)[0])
        if 2 not in methods:
            self.request.sendall(b"\5\xff")
            return None
        self.request.sendall(b"\5\2")
        self.file.read(1)
        login = tuple(self.file.read(self.file.read(1)[0]).decode() for _ in range(2))
        self.request.sendall(b"\1\0" if login == self.LOGIN else b"\1\1")
        if login != self.LOGIN:
            log("proxy login refused")
            return None
        kind = self.file.read(4)[3]
        name = self.file.read(self.file.read(1)[0]).decode() if kind == 3 else socket.inet_ntop(
            socket.AF_INET if kind == 1 else socket.AF_INET6,
            self.file.read(4 if kind == 1 else 16))
        return name, struct.unpack(">H", self.file.read(2))[0]

    @staticmethod
    def copy(source, target):
        try:
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass


class Greet(socketserver.BaseRequestHandler):
    def handle(self):
        log("tcp %s %d" % self.request.getsockname()[:2])
        self.request.sendall(b"SSH-2.0-first\r\n")
        self.request.recv(100)


class Web(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        log(f"http {self.headers.get('Host')} {self.path}")
        if self.headers.get("X-Api-Key"):
            log(f"key {self.headers.get('Host')} {self.headers.get('X-Api-Key')}")
        if self.path.startswith("/repo.git/"):
            super().do_GET()
            return
        body = f"hello from {self.headers.get('Host')}\n".encode()
        if self.path.startswith("/size/"):
            body = b"x" * int(self.path.split("/")[2])
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        body = b""
        while self.headers.get("Transfer-Encoding") == "chunked" and (
            size := int(self.rfile.readline(), 16)):
            body += self.rfile.read(size)
            self.rfile.readline()
        body += self.rfile.read(int(self.headers["Content-Length"])) if self.headers[
            "Content-Length"] else self.rfile.readline()
        log(f"http {self.headers.get('Host')} {self.path}")
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 512
    tls = None

    def finish_request(self, request, client_address):
        if self.tls:
            log("tcp %s %d" % request.getsockname()[:2])
            request.settimeout(20)
            try:
                request = self.tls.wrap_socket(request, server_side=True)
            except OSError:
                return
        self.RequestHandlerClass(request, client_address, self)

    def handle_error(self, *_):
        pass


def serve(server):
    threading.Thread(target=server.serve_forever, daemon=True).start()


def main():
    os.chdir(HERE)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(os.path.join(CERTIFICATES, "server.pem"),
                        os.path.join(CERTIFICATES, "server.key"))
    tls.sni_callback = lambda _s, name, _c: log(f"tls {name}")
    # no client's first key is of this curve: it is asked for another one
    retry = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    retry.load_cert_chain(os.path.join(CERTIFICATES, "server.pem"),
                          os.path.join(CERTIFICATES, "server.key"))
    retry.set_ecdh_curve("secp521r1")
    retry.sni_callback = tls.sni_callback
    serve(socketserver.ThreadingUDPServer(("192.0.2.53", 53), Dns))
    for port in (443, 5432):
        serve(socketserver.ThreadingUDPServer(("0.0.0.0", port), Sink))
    for port, handler in ((7, Echo), (5432, Echo), (22, Greet), (80, Web), (8080, Web), (443, Web),
                          (8443, Web), (3128, Proxy), (1080, Proxy)):
        server = Server(("0.0.0.0", port), handler)
        if port in (443, 8443):
            server.tls = tls if port == 443 else retry
        serve(server)
    open(os.path.join(HERE, "ready"), "w").close()
    threading.Event().wait()


main()
