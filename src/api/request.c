/*
 * Requests as bytes. In: words, or bytes that claim to be some. Out: the other. A head, then as
 * many NUL-terminated texts as it promises. The words are a command line of `ward run`, so that
 * whatever can be said there can be asked for here, and there is one reader of options. Reading is
 * a pure function: it takes nothing for granted about the bytes and refuses what does not come out
 * even.
 */
#include "api/request.h"

#include <errno.h>
#include <string.h>

struct head {
	uint32_t magic, flags, count;
};

int request_write(uint32_t flags, const struct strv *words, struct buf *out, struct ward_err *e)
{
	const struct head h = { DETACH_MAGIC, flags, (uint32_t)words->len };

	buf_add(out, &h, sizeof(h));
	for (size_t i = 0; i < words->len; i++)
		buf_add(out, words->items[i], strlen(words->items[i]) + 1);
	if (out->failed || words->failed)
		return ward_fail(e, ENOMEM, "out of memory");
	if (out->len > REQUEST_BYTES_MAX)
		return ward_fail(e, E2BIG, "the command and its options are larger than %u MiB",
				 REQUEST_BYTES_MAX >> 20);
	return 0;
}

/* Exactly as many texts as there are words, and nothing behind them. */
static bool read_words(char *at, size_t n, struct request *r)
{
	char *end = at + n;

	for (size_t i = 0; i < r->count; i++) {
		char *stop = at < end ? memchr(at, '\0', (size_t)(end - at)) : NULL;

		if (!stop)
			return false;
		r->words[i] = at;
		at = stop + 1;
	}
	return at == end;
}

int request_read(char *bytes, size_t n, struct request *ret_request, struct ward_err *e)
{
	struct request r = { 0 };
	struct head h = { 0 };

	if (n >= sizeof(h))
		memcpy(&h, bytes, sizeof(h));
	if (n < sizeof(h) || n > REQUEST_BYTES_MAX || h.magic != DETACH_MAGIC ||
	    h.flags & ~(uint32_t)REQUEST_FLAGS || h.count > n) /* no text has less than one byte */
		return ward_fail(e, EINVAL,
				 "the request is from another version of libward; install ward and "
				 "libward of one version");
	r = (struct request){ .flags = h.flags,
			      .count = h.count,
			      .words = calloc(h.count + 1, sizeof(*r.words)) };
	if (!r.words)
		return ward_fail(e, ENOMEM, "out of memory");
	if (!read_words(bytes + sizeof(h), n - sizeof(h), &r)) {
		request_clear(&r);
		return ward_fail(e, EINVAL, "the request is damaged");
	}
	*ret_request = r;
	return 0;
}

void request_clear(struct request *r)
{
	free(r->words);
	*r = (struct request){ 0 };
}
