/*
 * Fuzzes the reader of recordings: a file whose hashes are made right, so that what lies behind
 * them is reached, and the same as it is. What is taken is within bounds, can be walked through
 * from every exchange, and its texts are safe to say again.
 */
#include <stdlib.h>
#include <string.h>

#include "rules/tape.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void check_fields(const struct http_fields *f)
{
	for (unsigned i = 0; i < f->count; i++)
		if (!f->items[i].name.n || memchr(f->items[i].name.s, '\n', f->items[i].name.n) ||
		    memchr(f->items[i].name.s, ':', f->items[i].name.n) ||
		    (f->items[i].value.n && memchr(f->items[i].value.s, '\n', f->items[i].value.n)))
			abort();
}

static void walk(const struct tape *t)
{
	static struct http_fields f;
	struct tape_ask ask = { .fields = &f };
	enum tape_end how;
	uint32_t others;
	uint16_t status;

	for (uint32_t i = 0; i < t->count; i++) {
		struct tape_frame a = tape_frame_at(t, t->entries[i].ask_at);

		if (!tape_ask_read(t->bytes + t->entries[i].ask_at + sizeof(a), a.bytes, &ask))
			abort();
		check_fields(&f);
		for (uint64_t at = t->entries[i].ask_at; (at = tape_after(t, at, i + 1));) {
			struct tape_frame frame = tape_frame_at(t, at);

			if (at + sizeof(frame) + frame.bytes > t->len)
				abort();
			if (frame.kind == TAPE_HEAD &&
			    !tape_head_read(t->bytes + at + sizeof(frame), frame.bytes, &status,
					    &f))
				abort();
			if (frame.kind == TAPE_END &&
			    !tape_end_read(t->bytes + at + sizeof(frame), frame.bytes, &how, &f))
				abort();
			if (frame.kind == TAPE_HEAD || frame.kind == TAPE_END)
				check_fields(&f);
		}
		(void)!tape_find(t, t->entries[i].key, &t->entries[i].body, &others);
		(void)!tape_find(t, t->entries[i].key, NULL, &others);
	}
}

static void open_it(const uint8_t *bytes, size_t n)
{
	struct ward_err e = { 0 };
	struct tape t;

	if (tape_open(bytes, n, &t, &e) < 0)
		return;
	if (t.len > n)
		abort();
	walk(&t);
	tape_close(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	uint8_t *copy = malloc(n + 1), before[TAPE_HASH] = { 0 };

	open_it(bytes, n);
	memcpy(copy, bytes, n);
	if (n >= TAPE_START)
		tape_start(copy);
	for (size_t at = TAPE_START; at <= n && n - at >= sizeof(struct tape_frame);) {
		struct tape_frame f;

		memcpy(&f, copy + at, sizeof(f));
		if (f.bytes > n - at - sizeof(f))
			f.bytes = (uint32_t)(n - at - sizeof(f));
		tape_hash(before, &f, copy + at + sizeof(f), f.hash);
		memcpy(copy + at, &f, sizeof(f));
		memcpy(before, f.hash, sizeof(before));
		at += sizeof(f) + f.bytes;
	}
	open_it(copy, n);
	free(copy);
	return 0;
}
