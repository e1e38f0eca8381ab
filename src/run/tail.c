/*
 * The end of what a command wrote to standard error. In: its bytes, as they pass the supervisor.
 * Out: the last few thousand of them, for box_words.c. Nothing is allocated before the first byte:
 * a command that says nothing costs nothing.
 */
#include "run/tail.h"

#include <string.h>

void tail_add(struct tail *t, const void *data, size_t n)
{
	const char *from = data;

	if (n > TAIL_BYTES) {
		from += n - TAIL_BYTES;
		n = TAIL_BYTES;
	}
	if (t->kept.len + n > (size_t)2 * TAIL_BYTES) {
		size_t drop = t->kept.len - TAIL_BYTES;

		memmove(t->kept.data, t->kept.data + drop, TAIL_BYTES);
		t->kept.len = TAIL_BYTES;
	}
	buf_add(&t->kept, from, n);
}

bool tail_is_open(const struct tail *t)
{
	return t->kept.len && t->kept.data[t->kept.len - 1] != '\n';
}

void tail_free(struct tail *t)
{
	buf_free(&t->kept);
}
