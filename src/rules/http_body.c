/*
 * The framing of HTTP/1 messages, as streams in constant memory. In: bytes of a body or of an
 * answer's head, cut anywhere. Out: where it ends. Requests are read strictly; answers leniently
 * (they come from a host that the policy allows, and are passed on whatever they are): all that
 * depends on them is which request they answer. Run by the gateway's parsing process. Fuzzed
 * (fuzz/http1.c).
 */
#include <string.h>
#include <strings.h>

#include "rules/http_body.h"

#define LINE_MAX_BYTES 8192 /* of trailers, of a chunk's size */
#define ANSWER_MAX (256 * 1024)

void body_length(struct http_body *b, uint64_t length)
{
	*b = (struct http_body){ .state = length ? BODY_LENGTH : BODY_NONE, .left = length };
}

void body_chunked(struct http_body *b)
{
	*b = (struct http_body){ .state = BODY_SIZE };
}

void body_until_close(struct http_body *b)
{
	*b = (struct http_body){ .state = BODY_CLOSE };
}

static int hex_digit(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The line with the size is over. */
static void begin_chunk(struct http_body *b)
{
	b->state = b->left ? BODY_DATA : BODY_TRAILER;
	b->line = 0;
}

static void take_size(struct http_body *b, uint8_t c, bool strict)
{
	int digit = hex_digit(c);

	if (digit >= 0 && b->line < 15) {
		b->left = b->left << 4 | (unsigned)digit;
		b->line++;
	} else if (c == '\r' && b->line) {
		b->state = BODY_SIZE_END;
	} else if (!strict && b->line && c == '\n') {
		begin_chunk(b);
	} else if (!strict && b->line && (c == ';' || c == ' ' || c == '\t')) {
		b->state = BODY_SIZE_EXTENSION;
	} else {
		b->state = BODY_BAD;
	}
}

/* One byte that is not data. */
static void take_frame(struct http_body *b, uint8_t c, bool strict)
{
	switch (b->state) {
	case BODY_SIZE:
		take_size(b, c, strict);
		break;
	case BODY_SIZE_EXTENSION:
		if (c == '\n')
			begin_chunk(b);
		else if (++b->line > LINE_MAX_BYTES)
			b->state = BODY_BAD;
		break;
	case BODY_SIZE_END:
		if (c == '\n')
			begin_chunk(b);
		else
			b->state = BODY_BAD;
		break;
	case BODY_DATA_CR:
		b->state = c == '\r' ? BODY_DATA_LF : !strict && c == '\n' ? BODY_SIZE : BODY_BAD;
		break;
	case BODY_DATA_LF:
		b->state = c == '\n' ? BODY_SIZE : BODY_BAD;
		break;
	case BODY_TRAILER: /* at the beginning of a line behind the last chunk */
		if (c == '\r')
			b->state = BODY_TRAILER_END;
		else if (c == '\n' && !strict)
			b->state = BODY_NONE;
		else
			b->state = strict ? BODY_BAD : BODY_TRAILER_LINE;
		break;
	case BODY_TRAILER_LINE:
		if (c == '\n')
			b->state = BODY_TRAILER;
		else if (++b->line > LINE_MAX_BYTES)
			b->state = BODY_BAD;
		break;
	default: /* BODY_TRAILER_END */
		b->state = c == '\n' ? BODY_NONE : BODY_BAD;
		break;
	}
}

size_t body_take(struct http_body *b, const uint8_t *bytes, size_t n, bool strict)
{
	size_t used = 0;

	while (used < n && b->state != BODY_NONE && b->state != BODY_BAD) {
		size_t some = n - used;

		if (b->state == BODY_CLOSE)
			return n;
		if (b->state != BODY_LENGTH && b->state != BODY_DATA) {
			take_frame(b, bytes[used++], strict);
			continue;
		}
		some = some < b->left ? some : (size_t)b->left;
		used += some;
		b->left -= some;
		if (!b->left) {
			b->line = 0;
			b->state = b->state == BODY_DATA ? BODY_DATA_CR : BODY_NONE;
		}
	}
	return used;
}

void answer_init(struct http_answer *a)
{
	memset(a, 0, sizeof(*a));
}

static void take_status(struct http_answer *a)
{
	const char *v = a->value;

	if (a->value_len < 12 || memcmp(v, "HTTP/1.", 7) != 0 || v[8] != ' ') {
		a->bad = true;
		return;
	}
	for (unsigned i = 9; i < 12; i++) {
		a->bad |= v[i] < '0' || v[i] > '9';
		a->status = (uint16_t)(a->status * 10 + (v[i] - '0'));
	}
	a->bad |= a->status < 100;
}

static void take_answer_length(struct http_answer *a)
{
	uint64_t length = 0;

	for (unsigned i = 0; i < a->value_len; i++) {
		if (a->value[i] < '0' || a->value[i] > '9' || i >= 18) {
			a->bad = true;
			return;
		}
		length = length * 10 + (uint64_t)(a->value[i] - '0');
	}
	a->bad |= !a->value_len || (a->has_length && a->length != length);
	a->has_length = true;
	a->length = length;
}

static bool is_name(const struct http_answer *a, const char *name)
{
	return a->name_len == strlen(name) && strncasecmp(a->name, name, a->name_len) == 0;
}

static void end_line(struct http_answer *a)
{
	while (a->value_len && a->value_len <= sizeof(a->value) &&
	       (a->value[a->value_len - 1] == ' ' || a->value[a->value_len - 1] == '\t'))
		a->value_len--;
	if (a->state == ANSWER_STATUS)
		take_status(a);
	else if (a->state == ANSWER_NAME && !a->name_len)
		a->state = ANSWER_DONE;
	else if (is_name(a, "content-length"))
		take_answer_length(a);
	else if (is_name(a, "transfer-encoding"))
		a->coded = true,
		a->chunked = a->value_len >= 7 && a->value_len <= sizeof(a->value) &&
			     strncasecmp(a->value + a->value_len - 7, "chunked", 7) == 0;
	if (a->state != ANSWER_DONE)
		a->state = ANSWER_NAME;
	a->name_len = a->value_len = 0;
}

/* One longer than fits counts on, so that it matches nothing. */
static void keep(char *text, size_t size, uint8_t *len, char c)
{
	if (*len < size)
		text[*len] = c;
	if (*len < UINT8_MAX)
		++*len;
}

size_t answer_take(struct http_answer *a, const uint8_t *bytes, size_t n)
{
	size_t used = 0;

	while (used < n && a->state != ANSWER_DONE && !a->bad) {
		char c = (char)bytes[used++];

		if (++a->bytes > ANSWER_MAX)
			a->bad = true;
		else if (c == '\n')
			end_line(a);
		else if (c == '\r')
			continue;
		else if (a->state == ANSWER_NAME && c == ':')
			a->state = ANSWER_VALUE;
		else if (a->state == ANSWER_NAME)
			keep(a->name, sizeof(a->name), &a->name_len, c);
		else if (a->state == ANSWER_STATUS ? a->value_len < 12
						   : a->value_len || (c != ' ' && c != '\t'))
			keep(a->value, sizeof(a->value), &a->value_len, c);
	}
	return used;
}
