"""A server of bad manners: odd_server.py CERTIFICATES PORT LOG [plain]. TLS, or in the clear. By
the path of a request:

/whole     a body that ends with the connection, which is ended as TLS wants it
/cut       the same, and the connection just stops: in TLS no close_notify, in the clear a reset
/wait      no answer at all until the other side hangs up
/stream    an answer that begins and goes on when the other side hangs up, or after 20 s
/put       the body is read; with Expect it says 100 first, and logs whether it was asked to
/ws        a websocket that says nothing
Logs "PATH came" for each request and "PATH left SECONDS" when its connection was ended by the other
side.
"""
import socket
import ssl
import struct
import sys
import threading
import time

CERTIFICATES, PORT, LOG, *PLAIN = sys.argv[1:]
LOCK = threading.Lock()


def log(line):
    with LOCK, open(LOG, "a") as f:
        f.write(line + "\n")


def wait_for_end(sock, path):
    began = time.monotonic()
    sock.settimeout(60)
    try:
        while sock.recv(4096):
            pass
    except OSError as error:
        if isinstance(error, TimeoutError):
            return
    log(f"{path} left {time.monotonic() - began:.1f}")


def answer(sock, raw, head):
    path = head.split(b" ")[1].decode()
    log(f"{path} came")
    if path in ("/whole", "/cut"):
        sock.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + b"w" * 5000)
        if path == "/whole" and not PLAIN:
            sock.unwrap()
        elif path == "/cut":
            time.sleep(0.3)
            if PLAIN:
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return False
    if path == "/put":
        expects = b"expect:" in head.lower()
        if expects:
            sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        left = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        while left:
            left -= len(sock.recv(left))
        log(f"/put whole {'expected' if expects else 'plain'}")
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nput")
        return True
    if path == "/ws":
        sock.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                     b"Connection: Upgrade\r\n\r\n")
    elif path == "/stream":
        sock.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
    wait_for_end(sock, path)
    return False


def handle(raw):
    sock = raw
    try:
        if not PLAIN:
            sock = CONTEXT.wrap_socket(raw, server_side=True)
        more = True
        while more:
            head = b""
            while b"\r\n\r\n" not in head:
                byte = sock.recv(1)
                if not byte:
                    return
                head += byte
            more = answer(sock, raw, head)
    except (OSError, ValueError, IndexError):
        pass
    finally:
        sock.close()
        raw.close()


CONTEXT = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
CONTEXT.load_cert_chain(CERTIFICATES + "/server.pem", CERTIFICATES + "/server.key")
listening = socket.create_server(("0.0.0.0", int(PORT)), backlog=64)
while True:
    threading.Thread(target=handle, args=(listening.accept()[0],), daemon=True).start()
