"""A module with no network connects to a service of the host's loopback, by WasmEdge's own sockets.

layer: ward-wasm's own filter, net namespace
control: the same C as a program without a sandbox, by the kernel's sockets
"""
import socket

RUNTIME = "wasmedge"
WASM = r"""
#include <stdint.h>
#ifdef __wasi__
#define WASI(name) __attribute__((import_module("wasi_snapshot_preview1"), import_name(name)))
struct address { uint8_t *bytes; uint32_t n; };
struct part { void *bytes; uint32_t n; };
WASI("sock_open") int32_t edge_open(int32_t family, int32_t type, int32_t *fd);
WASI("sock_bind") int32_t edge_bind(int32_t fd, struct address *address, int32_t port);
WASI("sock_connect") int32_t edge_connect(int32_t fd, struct address *address, int32_t port);
WASI("sock_recv")
int32_t edge_recv(int32_t fd, struct part *parts, int32_t n, int32_t flags, uint32_t *done,
		  uint32_t *out_flags);

static int call(int port, char *answer, int room)
{
	uint8_t bytes[4] = { 127, 0, 0, 1 };
	struct address address = { bytes, 4 };
	struct part in = { answer, (uint32_t)room };
	uint32_t done = 0, flags = 0;

	for (int32_t fd = -1, i = 0; i < 16;
	     i++) { /* a descriptor that it has is no socket either */
		if (i == 0 && edge_open(1, 2, &fd))
			puts("no socket");
		if (edge_connect(i ? i : fd, &address, port) == 0)
			return edge_recv(i ? i : fd, &in, 1, 0, &done, &flags) == 0 && done > 0;
	}
	return 0;
}
#else
#include <netinet/in.h>
#include <sys/socket.h>
static int call(int port, char *answer, int room)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)port),
				  .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	return connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0 &&
	       read(fd, answer, (size_t)room) > 0;
}
#endif

int main(int argc, char **argv)
{
	char answer[100] = "";

	began();
	puts(call(atoi(argv[1]), answer, sizeof(answer) - 1) ? answer : "no answer");
	return 0;
}
"""


def scene(s):
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    s.argv = [listener.getsockname()[1]]
    s.serve(listener)


def escaped(s, r):
    return s.token in r.out or "connected" in s.heard()
