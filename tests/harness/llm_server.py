"""A language model for tests: llm_server.py CERTIFICATES PORT LOG. Answers in the forms of OpenAI
and Anthropic, plain and streamed.

A request says in "metadata" how it is answered: in, out (tokens of usage), usage (false: none is
said), events (how many), text and times (how often) of the answer; wait: not before somebody has
asked for /go; gzip: compressed; die: the connection breaks. /early/... answers as soon as the JSON
is whole, without waiting for the body's end. Logs "llm PATH MODEL accept-encoding" for every
request that came whole.
"""
import gzip
import http.server
import json
import ssl
import sys
import threading

CERTIFICATES, PORT, LOG = sys.argv[1:4]
GO = threading.Event()


def log(line):
    with open(LOG, "a") as f:
        f.write(line + "\n")


class Model(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path == "/go":
            GO.set()
        self.answer(b'{"data": []}')

    def answer(self, body, status=200, kind="application/json", packed=False):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if packed:
            body = gzip.compress(body)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def read(self):
        if not self.path.startswith("/early/"):
            return self.rfile.read(int(self.headers["Content-Length"]))
        body = b""
        while True:
            body += self.rfile.read(1)
            try:
                json.loads(body)
                return body
            except ValueError:
                pass

    def do_POST(self):
        body = self.read()
        if len(body) < int(self.headers["Content-Length"]) and not self.path.startswith("/early/"):
            return None	# the program, or somebody on the way, has thought better of it
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        try:
            asked = json.loads(body)
        except ValueError:
            asked = {}
        how = asked.get("metadata", {})
        log(f"llm {self.path} {asked.get('model')} {self.headers.get('Accept-Encoding')} "
            f"{self.headers.get('Authorization')}")
        if how.get("wait"):
            GO.wait(30)
        if how.get("status"):
            return self.answer(b'{"error": {"message": "overloaded"}}', how["status"])
        if how.get("die"):
            self.close_connection = True
            return self.connection.close()
        if asked.get("stream"):
            return self.stream(asked, how)
        anthropic = self.path.endswith("/messages")
        usage = {("input_tokens" if anthropic else "prompt_tokens"): how.get("in", 1000),
                 ("output_tokens" if anthropic else "completion_tokens"): how.get("out", 1000)}
        text = how.get("text", "hello") * how.get("times", 1)
        answer = {"id": "1", "model": how.get("model", asked.get("model")),
                  "content" if anthropic else "choices":
                  [{"type": "text", "text": text}] if anthropic
                  else [{"message": {"role": "assistant", "content": text}}]}
        if how.get("usage", True):
            answer["usage"] = usage
        return self.answer(json.dumps(answer).encode(), packed=how.get("gzip", False))

    def stream(self, asked, how):
        anthropic = self.path.endswith("/messages")
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        said = 0
        try:
            if anthropic:
                self.event({"type": "message_start",
                            "message": {"model": asked["model"],
                                        "usage": {"input_tokens": how.get("in", 1000),
                                                  "output_tokens": 1}}})
            for said in range(how.get("events", 10)):
                self.event({"type": "content_block_delta",
                            "delta": {"type": "text_delta", "text": "word"}} if anthropic else
                           {"model": asked["model"], "choices": [{"delta": {"content": "word"}}]})
            if how.get("wait_at_end"):
                GO.wait(30)
            if anthropic:
                self.event({"type": "message_delta",
                            "usage": {"output_tokens": how.get("out", 1000)}})
            elif how.get("usage", True):
                self.event({"model": asked["model"], "choices": [],
                            "usage": {"prompt_tokens": how.get("in", 1000),
                                      "completion_tokens": how.get("out", 1000)}})
            self.wfile.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
        except OSError:
            log(f"llm broken off after {'few' if said < how.get('events', 10) - 1 else 'all'}")

    def event(self, data):
        text = f"data: {json.dumps(data)}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text))
        self.wfile.flush()

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True

    def handle_error(self, *_):
        pass

    def finish_request(self, request, client_address):
        super().finish_request(CONTEXT.wrap_socket(request, server_side=True), client_address)


CONTEXT = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
CONTEXT.load_cert_chain(CERTIFICATES + "/server.pem", CERTIFICATES + "/server.key")
Server(("0.0.0.0", int(PORT)), Model).serve_forever()
