/* A WASI module that speaks with an echo server through WasmEdge's own sockets: four numbers of an
 * address, or a name; a port. */
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
WASI("sock_send")
int32_t edge_send(int32_t fd, struct part *parts, int32_t n, int32_t flags, uint32_t *done);
WASI("sock_recv")
int32_t edge_recv(int32_t fd, struct part *parts, int32_t n, int32_t flags, uint32_t *done,
		  uint32_t *out_flags);

struct place {
	uint8_t family;
	uint32_t n;
	uint8_t *bytes;
};

struct found {
	uint16_t flags;
	uint8_t family, type, protocol;
	uint32_t address_bytes;
	struct place *place;
	char *name;
	uint32_t name_bytes;
	struct found *next;
};

WASI("sock_getaddrinfo")
int32_t edge_lookup(const char *name, uint32_t name_bytes, const char *service,
		    uint32_t service_bytes, const struct found *hints, struct found **found,
		    uint32_t most, uint32_t *count);

/* The first address of a name. */
static int32_t look_up(const char *name, const char *service, uint8_t *ret_bytes)
{
	static uint8_t bytes[32];
	static char canonical[64];
	static struct place place = { .n = 26, .bytes = bytes };
	static struct found found = { .place = &place, .name = canonical, .name_bytes = 30 },
			    *list = &found;
	struct found hints = { .family = 1, .type = 2, .protocol = 1 };
	uint32_t count = 0;
	int32_t r = edge_lookup(name, (uint32_t)strlen(name), service, (uint32_t)strlen(service),
				&hints, &list, 1, &count);

	if (r || !count)
		return r ? r : -1;
	memcpy(ret_bytes, bytes + 2, 4);
	return 0;
}

int main(int argc, char **argv)
{
	uint8_t bytes[4];
	struct address address = { bytes, 4 };
	char answer[16] = "";
	struct part out = { (void *)"hello", 5 }, in = { answer, sizeof(answer) - 1 };
	uint32_t done = 0, flags = 0;
	int32_t fd = -1, r;

	for (int i = 0; i < 4 && argc > 5; i++)
		bytes[i] = (uint8_t)atoi(argv[1 + i]);
	r = argc > 5 ? 0 : look_up(argv[1], argv[2], bytes);
	if (r) {
		printf("no address: %d\n", r);
		return 3;
	}
	r = edge_open(1, 2, &fd);
	if (r) {
		printf("no socket: %d\n", r);
		return 2;
	}
	r = edge_connect(fd, &address, atoi(argv[argc - 1]));
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
