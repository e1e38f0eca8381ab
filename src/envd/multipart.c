/*
 * Reading multipart/form-data (multipart.h). In: the body of an upload, cut anywhere. Out: parts. A
 * body that ends without its last boundary never says MULTIPART_DONE, so an upload that was cut off
 * is known as such. What is not decided about yet is held: at most a boundary, or a part's head.
 * Run by ward-envd. Pure.
 */
#include "envd/multipart.h"

#include <string.h>
#include <strings.h>

static void drop(struct buf *b, size_t n)
{
	memmove(b->data, b->data + n, b->len - n);
	b->len -= n;
	b->data[b->len] = '\0';
}

/* The value of a parameter as `name="value"` or `name=value` among those behind ";". Of a quoted
 * value only \" and \\ are escapes of old; browsers write %22, %0D and %0A. */
static char *parameter(const char *s, const char *name)
{
	size_t n = strlen(name);
	bool quoted = false;

	for (; *s; s++) {
		auto_buf value = { 0 };

		if (*s == '"' && (!quoted || s[-1] != '\\'))
			quoted = !quoted;
		if (*s != ';' || quoted)
			continue;
		s += 1 + strspn(s + 1, " \t");
		if (strncasecmp(s, name, n) != 0 || s[n] != '=') {
			s--;
			continue;
		}
		s += n + 1;
		if (*s == '"')
			for (s++; *s && *s != '"'; s++) {
				if (*s == '\\' && (s[1] == '"' || s[1] == '\\'))
					s++;
				if (strncmp(s, "%22", 3) == 0) {
					buf_add(&value, "\"", 1);
					s += 2;
					continue;
				}
				buf_add(&value, s, 1);
			}
		else
			buf_add(&value, s, strcspn(s, "; \t"));
		buf_add(&value, "", 0);
		return value.data ? buf_take(&value) : strdup("");
	}
	return NULL;
}

bool multipart_init(struct multipart *m, const char *content_type)
{
	static const char wanted[] = "multipart/form-data";
	auto_free char *boundary = NULL;

	*m = (struct multipart){ .state = MULTIPART_START };
	if (strncasecmp(content_type, wanted, sizeof(wanted) - 1) != 0)
		return false;
	boundary = parameter(content_type, "boundary");
	if (!boundary || !*boundary || strlen(boundary) > MULTIPART_BOUNDARY_MAX)
		return false;
	m->boundary_len = (size_t)snprintf(m->boundary, sizeof(m->boundary), "\r\n--%s", boundary);
	buf_puts(&m->held, "\r\n"); /* as if a line had ended in front of the first boundary */
	return !m->held.failed;
}

void multipart_free(struct multipart *m)
{
	buf_free(&m->held);
	free(m->name);
	free(m->filename);
}

void multipart_feed(struct multipart *m, const void *bytes, size_t n)
{
	if (m->state != MULTIPART_BAD && m->state != MULTIPART_END)
		buf_add(&m->held, bytes, n);
	if (m->held.failed)
		m->state = MULTIPART_BAD;
}

static enum multipart_what wrong(struct multipart *m)
{
	m->state = MULTIPART_BAD;
	return MULTIPART_WRONG;
}

/* Behind a boundary: "--" ends all, CRLF begins a part. */
static enum multipart_what after_boundary(struct multipart *m, size_t at)
{
	if (m->held.len < at + 2)
		return MULTIPART_MORE;
	if (memcmp(m->held.data + at, "--", 2) == 0) {
		m->state = MULTIPART_END;
		return MULTIPART_DONE;
	}
	if (memcmp(m->held.data + at, "\r\n", 2) != 0)
		return wrong(m);
	drop(&m->held, at);
	m->state = MULTIPART_HEAD;
	return MULTIPART_PART;
}

/* The head of a part, which begins with the CRLF of the boundary's line and ends with an empty
 * line. */
static enum multipart_what read_head(struct multipart *m)
{
	char *end = m->held.len >= 4 ? memmem(m->held.data, m->held.len, "\r\n\r\n", 4) : NULL;

	free(take_ptr(m->name));
	free(take_ptr(m->filename));
	if (!end)
		return m->held.len > MULTIPART_HEAD_MAX ? wrong(m) : MULTIPART_MORE;
	if (end - m->held.data > MULTIPART_HEAD_MAX ||
	    memchr(m->held.data, '\0', (size_t)(end - m->held.data)))
		return wrong(m);
	*end = '\0';
	for (char *line = m->held.data; line && *line;) {
		static const char name[] = "Content-Disposition:";
		char *next;

		line += strspn(line, "\r\n");
		next = strstr(line, "\r\n");
		if (next)
			*next++ = '\0';
		if (strncasecmp(line, name, sizeof(name) - 1) == 0) {
			free(m->name);
			free(m->filename);
			m->name = parameter(line, "name");
			m->filename = parameter(line, "filename");
		}
		line = next;
	}
	drop(&m->held, (size_t)(end - m->held.data) + 4);
	m->state = MULTIPART_BODY;
	return MULTIPART_PART;
}

static enum multipart_what read_body(struct multipart *m, const char **ret, size_t *ret_n)
{
	char *found = m->held.len ? memmem(m->held.data, m->held.len, m->boundary, m->boundary_len)
				  : NULL;

	if (found == m->held.data && found) {
		m->state = MULTIPART_START; /* at a boundary again */
		return MULTIPART_PART_END;
	}
	if (!found && m->held.len < m->boundary_len)
		return MULTIPART_MORE;
	m->given = found ? (size_t)(found - m->held.data) : m->held.len - m->boundary_len + 1;
	*ret = m->held.data;
	*ret_n = m->given;
	return MULTIPART_DATA;
}

enum multipart_what multipart_next(struct multipart *m, const char **ret, size_t *ret_n)
{
	enum multipart_what what;

	if (m->given)
		drop(&m->held, m->given);
	m->given = 0;
	switch (m->state) {
	case MULTIPART_START:
		if (m->held.len < m->boundary_len)
			return MULTIPART_MORE;
		if (memcmp(m->held.data, m->boundary, m->boundary_len) != 0)
			return wrong(m);
		what = after_boundary(m, m->boundary_len);
		return what == MULTIPART_PART ? multipart_next(m, ret, ret_n) : what;
	case MULTIPART_HEAD:
		return read_head(m);
	case MULTIPART_BODY:
		return read_body(m, ret, ret_n);
	case MULTIPART_END:
		return MULTIPART_DONE;
	case MULTIPART_BAD:
	default:
		return MULTIPART_WRONG;
	}
}
