"""Servers of Amazon's manners behind TLS: aws_server.py CERTIFICATES PORT LOG ID SECRET TOKEN.
Objects (S3) and a table (DynamoDB).

Each request is judged by botocore itself: the signature is computed again from what arrived, with
the true key. Logs a line of JSON for each: method, path, "fine" or what is wrong with it, the
body's size, and whether it came with Expect.
"""
import hashlib
import json
import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from botocore.auth import S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

CERTIFICATES, PORT, LOG, ID, SECRET, TOKEN = sys.argv[1:]
LOCK, OBJECTS = threading.Lock(), {}


def judge(handler, body):
    """What is wrong with the signature of a request; None where nothing is."""
    words = dict(w.strip().split("=", 1)
                 for w in handler.headers.get("Authorization", "").partition(" ")[2].split(","))
    who, _, region, service, _ = words["Credential"].split("/")
    if who != ID:
        return f"signed by {who}"
    if (handler.headers.get("X-Amz-Security-Token") or "") != TOKEN:
        return "another token"
    auth = (S3SigV4Auth if service == "s3" else SigV4Auth)(Credentials(ID, SECRET), service, region)
    names = words["SignedHeaders"].split(";")
    for name in handler.headers:
        if name.lower().startswith("x-amz-") and name.lower() not in names:
            return f"{name} is not signed"
    headers = {name: handler.headers.get(name, "") for name in names}
    hashed = handler.headers.get("X-Amz-Content-SHA256")
    if hashed and len(hashed) == 64 and hashed != hashlib.sha256(body).hexdigest():
        return "another body"
    request = AWSRequest(handler.command, f"https://{handler.headers['Host']}{handler.path}",
                         headers, body)
    request.context["timestamp"] = handler.headers["X-Amz-Date"]
    wanted = auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request)
    return None if wanted == words[
        "Signature"] else f"signature {words['Signature']}, wanted {wanted}"


def plain_body(headers, body):
    """The bytes in pieces with trailers (aws-chunked), or as they came."""
    if "aws-chunked" not in headers.get("Content-Encoding", ""):
        return body
    out = b""
    while body:
        head, _, body = body.partition(b"\r\n")
        size = int(head.split(b";")[0], 16)
        if not size:
            break
        out, body = out + body[:size], body[size + 2:]
    return out


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def body(self):
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        out = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            out += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return out

    def answer(self, status, body=b"", kind="application/xml", **headers):
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)),
                            **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def serve(self):
        body = self.body()
        try:
            wrong = judge(self, body)
        except Exception as error:
            wrong = f"{type(error).__name__}: {error}"
        with LOCK, open(LOG, "a") as f:
            f.write(json.dumps([self.command, self.path, wrong or "fine", len(body),
                                "Expect" in self.headers]) + "\n")
        if wrong:
            self.answer(403, b"<Error><Code>SignatureDoesNotMatch</Code><Message>" + wrong.encode()
                        + b"</Message></Error>")
        elif "X-Amz-Target" in self.headers:
            self.answer(200, b"{}", "application/x-amz-json-1.0")
        elif self.command == "PUT":
            OBJECTS[self.path] = plain_body(self.headers, body)
            self.answer(200, ETag=f'"{hashlib.md5(OBJECTS[self.path]).hexdigest()}"')
        elif self.command == "DELETE":
            OBJECTS.pop(self.path, None)
            self.answer(204)
        elif "list-type" in self.path:
            self.answer(200,
                        b"<ListBucketResult><Name>b</Name><KeyCount>1</KeyCount>"
                        b"<Contents><Key>k</Key></Contents></ListBucketResult>")
        elif self.path in OBJECTS:
            self.answer(200, OBJECTS[self.path], "application/octet-stream")
        else:
            self.answer(404, b"<Error><Code>NoSuchKey</Code></Error>")

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = serve

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("", int(PORT)), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(f"{CERTIFICATES}/server.pem", f"{CERTIFICATES}/server.key")
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
