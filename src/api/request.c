/*
 * Requests as bytes. In: a request, or bytes that claim to be one. Out: the other. A head with counts, then that many
 * NUL-terminated texts: the fixed ones, four for each option, the command's words. Reading is a pure function: it
 * takes nothing for granted about the bytes and refuses what does not come out even.
 */
#include "api/request.h"

#include <errno.h>
#include <string.h>

struct head {
	uint32_t magic, flags, texts, options, args;
};

enum { OPTION_FIELD, OPTION_VALUE, OPTION_ORIGIN, OPTION_APPEND, OPTION_PARTS };

static void add_text(struct buf *out, const char *text)
{
	buf_add(out, text ? text : "", text ? strlen(text) + 1 : 1);
}

int request_write(const struct request *r, struct buf *out, struct ward_err *e)
{
	const struct head h = { REQUEST_MAGIC, r->flags, REQUEST_TEXTS, (uint32_t)r->option_count,
				(uint32_t)r->arg_count };

	buf_add(out, &h, sizeof(h));
	for (size_t i = 0; i < REQUEST_TEXTS; i++)
		add_text(out, r->texts[i]);
	for (size_t i = 0; i < r->option_count; i++) {
		add_text(out, r->options[i].field);
		add_text(out, r->options[i].value);
		add_text(out, r->options[i].origin);
		add_text(out, r->options[i].append ? "+" : "");
	}
	for (size_t i = 0; i < r->arg_count; i++)
		add_text(out, r->argv[i]);
	if (out->failed)
		return ward_fail(e, ENOMEM, "out of memory");
	if (out->len > REQUEST_BYTES_MAX)
		return ward_fail(e, E2BIG, "the command and its options have more than %u MiB",
				 REQUEST_BYTES_MAX >> 20);
	return 0;
}

struct reader {
	char *at, *end;
};

/* The next text, NULL when there is none. */
static char *next(struct reader *in)
{
	char *text = in->at;
	char *end = in->at < in->end ? memchr(in->at, '\0', (size_t)(in->end - in->at)) : NULL;

	if (!end)
		return NULL;
	in->at = end + 1;
	return text;
}

static int read_options(struct reader *in, struct request *r)
{
	for (size_t i = 0; i < r->option_count; i++) {
		const char *parts[OPTION_PARTS];

		for (size_t k = 0; k < OPTION_PARTS; k++) {
			parts[k] = next(in);
			if (!parts[k])
				return -EINVAL;
		}
		if (!*parts[OPTION_FIELD] || (*parts[OPTION_APPEND] && strcmp(parts[OPTION_APPEND], "+") != 0))
			return -EINVAL;
		r->options[i] = (struct request_option){ parts[OPTION_FIELD], parts[OPTION_VALUE],
							 parts[OPTION_ORIGIN], *parts[OPTION_APPEND] == '+' };
	}
	return 0;
}

static int read_texts(struct reader *in, struct request *r)
{
	for (size_t i = 0; i < REQUEST_TEXTS; i++) {
		const char *text = next(in);

		if (!text)
			return -EINVAL;
		r->texts[i] = *text ? text : NULL;
	}
	if (read_options(in, r) < 0)
		return -EINVAL;
	for (size_t i = 0; i < r->arg_count; i++) {
		r->argv[i] = next(in);
		if (!r->argv[i])
			return -EINVAL;
	}
	return in->at == in->end ? 0 : -EINVAL;
}

int request_read(char *bytes, size_t n, struct request *ret_request, struct ward_err *e)
{
	struct reader in = { bytes + sizeof(struct head), bytes + n };
	struct request r = { 0 };
	struct head h = { 0 };
	size_t most = n;	/* no text has less than one byte */

	if (n >= sizeof(h))
		memcpy(&h, bytes, sizeof(h));
	if (n < sizeof(h) || n > REQUEST_BYTES_MAX || h.magic != REQUEST_MAGIC || h.texts != REQUEST_TEXTS ||
	    h.flags & ~(uint32_t)REQUEST_FLAGS || h.options > most / OPTION_PARTS || h.args > most)
		return ward_fail(e, EINVAL, "the request is not one of this version");
	r.flags = h.flags;
	r.option_count = h.options;
	r.arg_count = h.args;
	r.options = calloc(r.option_count + 1, sizeof(*r.options));
	r.argv = calloc(r.arg_count + 1, sizeof(*r.argv));
	if (!r.options || !r.argv || read_texts(&in, &r) < 0) {
		int code = r.options && r.argv ? EINVAL : ENOMEM;

		request_clear(&r);
		return ward_fail(e, code, "%s", code == EINVAL ? "the request is damaged" : "out of memory");
	}
	*ret_request = r;
	return 0;
}

void request_clear(struct request *r)
{
	free(r->options);
	free(r->argv);
	*r = (struct request){ 0 };
}
