/*
 * What a push asks for: the commands in front of the pack, in pkt-lines, as `git receive-pack`
 * reads them (protocol versions 0 and 1; 2 has no push). Signed pushes are refused. Pure, fuzzed
 * (fuzz/git_push.c).
 */
#ifndef WARD_INSPECT_GIT_PUSH_H
#define WARD_INSPECT_GIT_PUSH_H

#include "base/buf.h"

#define GIT_ID_MAX 32
#define GIT_COMMANDS_MAX 1000
#define GIT_COMMANDS_BYTES (256 * 1024)

struct git_command {
	uint8_t old[GIT_ID_MAX], new[GIT_ID_MAX];
	bool create, delete; /* old, new is none */
	size_t ref, ref_len; /* offset in the bytes */
};

struct git_push {
	/* read so far; when it is complete, where the pack begins */
	size_t at;
	unsigned id_len;       /* 20 or 32; 0: no command yet */
	bool options;          /* push options came */
	bool report, sideband; /* what the client understands as an answer */
	unsigned count, cap;
	struct git_command *commands; /* owned */
	const char *wrong;            /* why it is not understood; static text */
	uint8_t state;                /* where the reading is */
};

void git_push_free(struct git_push *p);
/* Reads on in (bytes, n), which begin where they did in the call before. 1: all commands are there;
 * 0: more is needed; -1: p->wrong. */
must_check int git_push_take(struct git_push *p, const uint8_t *bytes, size_t n);

/* Writes the answer of a push of which nothing was done. whys: for each command; message: for the
 * person who pushed. */
void git_push_report(const struct git_push *p, const uint8_t *bytes, const char *const *whys,
		     const char *message, struct buf *out);

#endif
