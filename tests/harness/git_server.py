"""git over HTTPS for tests: git_server.py CERTIFICATES PORT ROOT [AUTHORIZATION]. Runs git's
own http-backend for each request (of those with that header); each is a line of ROOT/requests."""
import http.server
import os
import ssl
import subprocess
import sys

CERTIFICATES, PORT, ROOT = sys.argv[1:4]
AUTHORIZATION = sys.argv[4] if len(sys.argv) > 4 else None


class Git(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def body(self):
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        whole = b""
        while size := int(self.rfile.readline(), 16):
            whole += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return whole

    def do_GET(self):
        with open(os.path.join(ROOT, "requests"), "a") as log:
            log.write(f"{self.command} {self.path}\n")
        if AUTHORIZATION and self.headers.get("Authorization") != AUTHORIZATION:
            self.body()
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        path, _, query = self.path.partition("?")
        environment = {"PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": ROOT,
                       "GIT_HTTP_EXPORT_ALL": "1", "REMOTE_USER": "tests", "HOME": ROOT,
                       "PATH_INFO": path,
                       "QUERY_STRING": query, "REQUEST_METHOD": self.command,
                       "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                       "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                       "GIT_PROTOCOL": self.headers.get("Git-Protocol", "")}
        git = ["git", "-c", "safe.directory=*", "-c", "http.receivepack=true", "-c",
               "receive.advertisePushOptions=true", "-c", "receive.denyDeleteCurrent=ignore",
               "http-backend"]
        done = subprocess.run(git, input=self.body(), env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=False)
        head, _, answer = done.stdout.partition(b"\r\n\r\n")
        fields = [line.split(": ", 1) for line in head.decode("latin-1").split("\r\n")
                  if ": " in line]
        status = [value for name, value in fields if name == "Status"]
        self.send_response(int(status[0].split()[0]) if status else 200)
        for name, value in fields:
            if name != "Status":
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_POST = do_GET

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("0.0.0.0", int(PORT)), Git)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(os.path.join(CERTIFICATES, "server.pem"),
                        os.path.join(CERTIFICATES, "server.key"))
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
server.serve_forever()
