#!/usr/bin/python3
"""The gates beside real programs: gateway_real.py GATE_FILTER

A relay on the loopback interface asks the gate (gate_filter.c) about every byte, as the gateway
does. Through it go a TLS client and server (OpenSSL, by way of Python: TLS 1.3, 1.2, a
HelloRetryRequest, another name), and HTTP clients with keep-alive, pipelining, bodies, 100-continue
and a websocket. What must pass arrives whole; of what must not, the server sees no byte.
"""
import http.client
import http.server
import os
import select
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading

FILTER = sys.argv[1]
NAME = 'a.example'


class Gate:
    def __init__(self, mode, port):
        self.p = subprocess.Popen([FILTER, mode, NAME, str(port)], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE)

    def ask(self, side, data):
        self.p.stdin.write(side + struct.pack('=I', len(data)) + data)
        self.p.stdin.flush()
        say = self.p.stdout.read(1)
        release = struct.unpack('=I', self.p.stdout.read(4))[0]
        if say == b'r':
            return say, self.p.stdout.read(struct.unpack('=I', self.p.stdout.read(4))[0]).decode()
        return say, release

    def close(self):
        self.p.stdin.close()
        self.p.wait()
        self.p.stdout.close()


class Relay:
    """One connection, in pieces of `piece` bytes; remembers what the server was sent and how it
    ended."""

    def __init__(self, mode, upstream, piece):
        self.mode, self.upstream, self.piece = mode, upstream, piece
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.port = self.listener.getsockname()[1]
        self.sent, self.end = b'', 'closed'
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        client, _ = self.listener.accept()
        server = socket.create_connection(self.upstream)
        gate = Gate(self.mode, self.port)
        with client, server, self.listener:
            try:
                self.pump(client, server, gate)
            except (ConnectionError, BrokenPipeError):
                pass
        gate.close()

    def pump(self, client, server, gate):
        held, blind = b'', False
        while True:
            for sock in select.select([client, server], [], [])[0]:
                data = sock.recv(self.piece)
                if not data:
                    return
                if blind:
                    (server if sock is client else client).sendall(data)
                    continue
                say, more = gate.ask(b'C' if sock is client else b'S', data)
                if say == b'r':
                    self.end = more
                    return
                if sock is server:
                    client.sendall(data)
                    data = b''
                    if say in (b'a', b'b'):
                        say, more = gate.ask(b'C', b'')
                held += data
                blind = say == b'b'
                out, held = held[:more], held[more:]
                self.sent += out
                server.sendall(out)
                if blind:
                    self.end = 'blind'

    def join(self):
        self.thread.join(30)
        assert not self.thread.is_alive(), 'the relay hangs'


def serve(handle):
    """One connection for handle(socket); returns its address."""
    listener = socket.create_server(('127.0.0.1', 0))

    def run():
        with listener, listener.accept()[0] as sock:
            try:
                handle(sock)
            except (OSError, ssl.SSLError):
                pass
    threading.Thread(target=run, daemon=True).start()
    return listener.getsockname()


def certificate(directory):
    path = os.path.join(directory, 'pem')
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt',
                    'ec_paramgen_curve:P-256', '-nodes', '-keyout', path + '.key',
                    '-out', path, '-days', '1', '-subj', '/CN=' + NAME], check=True,
                   stderr=subprocess.DEVNULL)
    return path, path + '.key'


def tls(pem, name, version, curve, piece):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*pem)
    if curve:
        context.set_ecdh_curve(curve)

    def handle(sock):
        with context.wrap_socket(sock, server_side=True) as s:
            s.sendall(s.recv(100)[::-1])
            s.recv(1)
    relay = Relay('splice', serve(handle), piece)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    client.minimum_version = client.maximum_version = version
    answer, got = b'', None
    try:
        with socket.create_connection(('127.0.0.1', relay.port)) as raw, client.wrap_socket(
            raw, server_hostname=name) as s:
            s.sendall(b'hello')
            while len(answer) < 5:
                got = s.recv(5)
                if not got:
                    break
                answer += got
    except (OSError, ssl.SSLError):
        pass
    relay.join()
    return relay, answer


def test_tls():
    with tempfile.TemporaryDirectory() as directory:
        pem = certificate(directory)
        new, old = ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_2
        for piece in (1, 7, 100000):
            for version, curve in ((new, None), (old, None), (new, 'secp521r1')):
                relay, answer = tls(pem, NAME, version, curve, piece)
                assert answer == b'olleh' and relay.end == 'blind', (version, curve, piece, answer,
                                                                     relay.end)
                # after a HelloRetryRequest there are two greetings with the name
                assert relay.sent.count(NAME.encode()) == (2 if curve else 1), (curve, relay.sent)
            for name, end in (('evil.test', 'wrong_sni'), (None, 'no_sni')):
                relay, answer = tls(pem, name, new, None, piece)
                assert relay.end == end and not relay.sent and not answer, (relay.end, relay.sent)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *_):
        pass

    def reply(self, body, chunked=False):
        self.send_response(200)
        self.send_header(*(('Transfer-Encoding', 'chunked')
                           if chunked else ('Content-Length', str(len(body)))))
        self.end_headers()
        if self.command != 'HEAD':
            self.wfile.write(b'%x\r\n%s\r\n0\r\n\r\n' % (len(body), body) if chunked else body)

    def do_GET(self):
        if self.headers.get('Upgrade') == 'websocket':
            self.send_response(101)
            self.end_headers()
            self.wfile.write(self.rfile.readline())
            self.close_connection = True
        else:
            self.reply(b'HTTP/1.1 101 no\r\n\r\n' + self.path.encode(), self.path == '/chunked')

    do_HEAD = do_GET

    def do_POST(self):
        if self.headers.get('Transfer-Encoding') == 'chunked':
            body = b''
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            body = self.rfile.read(int(self.headers['Content-Length']))
        self.reply(body)


def web():
    return serve(lambda sock: Handler(sock, ('127.0.0.1', 0), None))


def connection(piece):
    relay = Relay('http', web(), piece)
    sock = socket.create_connection(('127.0.0.1', relay.port), timeout=30)
    client = http.client.HTTPConnection(NAME, relay.port)
    client.sock = sock
    return relay, client, sock


def test_http():
    for piece in (1, 11, 100000):
        relay, client, sock = connection(piece)
        for method, path in (('GET', '/x'), ('HEAD', '/h'), ('GET', '/chunked'), ('GET', '/y')):
            client.request(method, path, headers={'Upgrade': 'h2c', 'Connection': 'Upgrade'}
                           if path == '/x' else {})
            body = client.getresponse().read()
            assert method == 'HEAD' or body.endswith(path.encode()), body
        client.request('POST', '/', body=b'some body', headers={'Expect': '100-continue'})
        assert client.getresponse().read() == b'some body'
        client.request('POST', '/', body=iter([b'in ', b'chunks']), encode_chunked=True)
        assert client.getresponse().read() == b'in chunks'
        request = f'GET /1 HTTP/1.1\r\nHost: {NAME}:{relay.port}\r\n\r\n'.encode()
        sock.sendall(request * 3)	# a pipeline, then one for somebody else
        got = b''
        while got.count(b'/1') < 3:
            got += sock.recv(1000)
        sock.sendall(b'GET /evil HTTP/1.1\r\nHost: evil.test\r\n\r\n')
        try:
            while sock.recv(1000):
                pass
        except ConnectionError:
            pass
        sock.close()
        relay.join()
        assert relay.end == 'wrong_host' and b'evil' not in relay.sent, (relay.end, relay.sent)
        client.close()


def test_websocket():
    for piece in (1, 100000):
        relay, client, sock = connection(piece)
        client.request('GET', '/', headers={'Upgrade': 'websocket', 'Connection': 'Upgrade'})
        got = b''
        while b'\r\n\r\n' not in got:
            got += sock.recv(100)
        assert b' 101 ' in got, got
        sock.sendall(b'\x81frame\n')	# nothing that HTTP has
        assert sock.recv(100).startswith(b'\x81')
        sock.close()
        relay.join()
        assert relay.end == 'blind', relay.end


for test in (test_tls, test_http, test_websocket):
    test()
print('3 passed, 0 failed')
