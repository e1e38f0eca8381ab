/*
 * record: the process that writes a recording. In: frames of front over a pipe, which reads what
 * programs inside and servers say and is believed no further than the file. Out: the file, which
 * the supervisor has made and which this process has open and nothing else; each frame with its
 * hash. A pipe that ends makes the last frame; what cannot be written ends the process, and front
 * with its next word. It holds the supervisor's socket, too, for as long as it writes: the run is
 * not over before the recording is.
 */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "base/io.h"
#include "gateway/proc.h"
#include "protocol/gateway.h"
#include "tape/record.h"

/* 1: all of it; 0: the end; -1: cut in the middle. */
static int receive(void *bytes, size_t n)
{
	uint8_t *at = bytes;
	size_t got = 0;

	while (got < n) {
		ssize_t k = read(GATE_FD_CONFIG, at + got, n - got);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return got || k < 0 ? -1 : 0;
		got += (size_t)k;
	}
	return 1;
}

static bool put(struct tape_frame *f, uint8_t last[TAPE_HASH], uint8_t *bytes)
{
	memset(f->unused, 0, sizeof(f->unused));
	tape_hash(last, f, bytes, f->hash);
	memcpy(last, f->hash, TAPE_HASH);
	memmove(bytes + sizeof(*f), bytes, f->bytes);
	memcpy(bytes, f, sizeof(*f));
	return io_write_all(GATE_FD_TAPE, bytes, sizeof(*f) + f->bytes) == 0;
}

int record_main(void)
{
	struct tape_frame f, end = { .kind = TAPE_CLOSE };
	uint8_t *bytes = malloc(TAPE_PAYLOAD_MAX + sizeof(f)), last[TAPE_HASH] = { 0 },
		start[TAPE_START];
	struct ward_err e = { 0 };
	int r;

	tape_start(start);
	if (!bytes || confine_enter(PROC_RECORD, NULL, &e) < 0 ||
	    io_write_all(GATE_FD_TAPE, start, sizeof(start)) < 0)
		return 125;
	while ((r = receive(&f, sizeof(f))) > 0) {
		if (f.bytes > TAPE_PAYLOAD_MAX || f.kind < TAPE_ASK || f.kind >= TAPE_CLOSE ||
		    receive(bytes, f.bytes) < (f.bytes ? 1 : 0))
			return 125;
		end.at_ms = f.at_ms;
		end.exchange += f.kind == TAPE_ASK;
		if (!put(&f, last, bytes))
			return 125;
	}
	return r == 0 && put(&end, last, bytes) ? 0 : 125;
}
