/*
 * The two files that runner and `enter` exchange across gVisor's boundary. In: bytes, which a
 * command inside the inner runtime may have written. Out: a command, or how one ended. Pure
 * functions: no I/O. A process that writes them inside the inner runtime can but change what runs
 * inside the inner runtime, with the rights that it has itself.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gvisor/gvisor.h"

#define HEAD_WORDS 4

void start_write(const struct start *s, struct buf *out)
{
	const uint32_t head[HEAD_WORDS] = { s->uid, s->gid, s->argc, s->envc };

	buf_add(out, head, sizeof(head));
	buf_add(out, s->cwd, strlen(s->cwd) + 1);
	for (uint32_t i = 0; i < s->argc; i++)
		buf_add(out, s->argv[i], strlen(s->argv[i]) + 1);
	for (uint32_t i = 0; i < s->envc; i++)
		buf_add(out, s->envp[i], strlen(s->envp[i]) + 1);
}

/* The text at *at, which moves behind it; NULL: there is none. */
static const char *next_text(const char **at, const char *end)
{
	const char *text = *at, *zero = *at < end ? memchr(*at, '\0', (size_t)(end - *at)) : NULL;

	if (!zero)
		return NULL;
	*at = zero + 1;
	return text;
}

static char **read_texts(const char **at, const char *end, uint32_t count)
{
	char **list =
		count <= (size_t)(end - *at) ? calloc((size_t)count + 1, sizeof(*list)) : NULL;

	for (uint32_t i = 0; list && i < count; i++) {
		const char *text = next_text(at, end);

		if (!text) {
			free(list);
			return NULL;
		}
		/* execve()'s prototype wants them writable; they are not written */
		memcpy(&list[i], &text, sizeof(text));
	}
	return list;
}

int start_parse(const char *bytes, size_t n, struct start *ret_start)
{
	uint32_t head[HEAD_WORDS];
	const char *at = bytes + sizeof(head), *end = bytes + n;
	struct start s = { 0 };

	if (n < sizeof(head))
		return -EINVAL;
	memcpy(head, bytes, sizeof(head));
	s.uid = head[0];
	s.gid = head[1];
	s.argc = head[2];
	s.envc = head[3];
	s.cwd = next_text(&at, end);
	if (!s.cwd || s.cwd[0] != '/' || !s.argc)
		return -EINVAL;
	s.argv = read_texts(&at, end, s.argc);
	s.envp = s.argv ? read_texts(&at, end, s.envc) : NULL;
	if (!s.envp || at != end || !s.argv[0][0]) {
		start_free(&s);
		return -EINVAL;
	}
	*ret_start = s;
	return 0;
}

void start_free(struct start *s)
{
	free(s->argv);
	free(s->envp);
	s->argv = s->envp = NULL;
}

enum command_report command_report_parse(const char *bytes, size_t n, int *ret_value)
{
	int value = 0;

	if (n == 0 || bytes[0] != 'b')
		return REPORT_NOTHING;
	if (n < 3 || n > 5 || (bytes[1] != 'e' && bytes[1] != 's'))
		return REPORT_BEGUN;
	for (size_t i = 2; i < n; i++) {
		if (bytes[i] < '0' || bytes[i] > '9')
			return REPORT_BEGUN;
		value = 10 * value + (bytes[i] - '0');
	}
	if (value > (bytes[1] == 's' ? 64 : 255) || (bytes[1] == 's' && value == 0))
		return REPORT_BEGUN;
	*ret_value = value;
	return bytes[1] == 's' ? REPORT_SIGNAL : REPORT_EXIT;
}
