/* A WASI module that speaks with an echo server through WasmEdge's own sockets: four numbers of an address, a port. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WASI(name) __attribute__((import_module("wasi_snapshot_preview1"), import_name(name)))

struct address {
	uint8_t *bytes;
	uint32_t n;
};

struct part {
	void *bytes;
	uint32_t n;
};

WASI("sock_open") int32_t edge_open(int32_t family, int32_t type, int32_t *fd);
WASI("sock_connect") int32_t edge_connect(int32_t fd, struct address *address, int32_t port);
WASI("sock_send") int32_t edge_send(int32_t fd, struct part *parts, int32_t n, int32_t flags, uint32_t *done);
WASI("sock_recv") int32_t edge_recv(int32_t fd, struct part *parts, int32_t n, int32_t flags, uint32_t *done, uint32_t *out_flags);

int main(int argc, char **argv)
{
	uint8_t bytes[4];
	struct address address = { bytes, 4 };
	char answer[16] = "";
	struct part out = { (void *)"hello", 5 }, in = { answer, sizeof(answer) - 1 };
	uint32_t done = 0, flags = 0;
	int32_t fd = -1, r;

	for (int i = 0; i < 4; i++)
		bytes[i] = (uint8_t)atoi(argv[1 + i]);
	r = edge_open(1, 2, &fd);
	if (r) {
		printf("no socket: %d\n", r);
		return 2;
	}
	r = edge_connect(fd, &address, atoi(argv[5]));
	if (!r)
		r = edge_send(fd, &out, 1, 0, &done);
	if (!r)
		r = edge_recv(fd, &in, 1, 0, &done, &flags);
	if (r || !done) {
		printf("no answer: %d\n", r);
		return 1;
	}
	printf("got %s\n", answer);
	return 0;
}
