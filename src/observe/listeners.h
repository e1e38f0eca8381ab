/* Ports on which programs of the sandbox listen and which nothing outside can reach. */
#ifndef WARD_OBSERVE_LISTENERS_H
#define WARD_OBSERVE_LISTENERS_H

#include <stdint.h>

#include "model/result.h"

#define LISTENERS_MAX 8
#define LISTENERS_OWN_MAX 64

struct plan;
struct seccomp_notif;

/* Zeroed but for the descriptors: none was seen. */
struct listeners {
	int table_fds[2]; /* /proc/PID/net/tcp and tcp6 of the sandbox; -1: none */
	uint64_t look_ms; /* not before; 0: nothing to look for */
	struct listener {
		uint16_t port;
		uint64_t first_ms, last_ms; /* when it was seen */
	} seen[LISTENERS_MAX];
	size_t count;
	uint16_t own[LISTENERS_OWN_MAX]; /* ward's own, inside */
	size_t own_count;
};

void listeners_init(struct listeners *l);
/* A call of listen waits at the listener: from now on the tables are read. */
void listeners_saw(struct listeners *l, int listener_fd, const struct seccomp_notif *q,
		   uint64_t now_ms);
/* Reads the tables if it is time; each port that is not published becomes an event. */
void listeners_look(struct listeners *l, const struct plan *p, uint64_t now_ms, struct result *r);
/* The end, when *r says how: what a person should know becomes a denial. */
void listeners_finish(const struct listeners *l, struct result *r);
void listeners_close(struct listeners *l);

/* The port of a line of /proc/net/tcp if it is a listening socket's, else 0. Pure. */
uint16_t listeners_read_line(const char *line);

#endif
