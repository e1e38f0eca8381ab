/*
 * The mark. In: the head of the index. Out: STATE/trusted-head, one line "ENTRY:HASH". Run with the
 * user's rights by the process that writes the index, under its lock, and read by `ward audit
 * verify`. The index holds at least what its mark says; if entry ENTRY is missing or has another
 * hash, the index was cut, removed or replaced, which nothing in an index that begins anew could
 * show. The file lies beside the directory audit, so that removing that directory leaves it. A
 * process that has the user's rights can change the mark as well (SECURITY.md says what helps
 * against that).
 */
#include "audit/mark.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"

#define PLACE "../" MARK_NAME

bool mark_read(const char *text, size_t n, struct chain *ret)
{
	struct chain c = { .seq = 0 };
	size_t at = 0;

	if (n && text[n - 1] == '\n')
		n--;
	for (; at < n && at < 19 && text[at] >= '0' && text[at] <= '9'; at++)
		c.seq = c.seq * 10 + (uint64_t)(text[at] - '0');
	if (!at || at == n || text[at] != ':' || !c.seq ||
	    !chain_unhex(text + at + 1, n - at - 1, c.head, CHAIN_BYTES))
		return false;
	*ret = c;
	return true;
}

void mark_text(const struct chain *c, char ret[MARK_TEXT])
{
	char hex[2 * CHAIN_BYTES + 1];

	chain_hex(c->head, hex);
	snprintf(ret, MARK_TEXT, "%" PRIu64 ":%s", c->seq, hex);
}

int mark_get(int audit_fd, struct chain *ret)
{
	auto_fd fd = openat(audit_fd, PLACE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	char text[MARK_TEXT + 1];
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof(text));
	if (n < 0)
		return -errno;
	return mark_read(text, (size_t)n, ret) ? 0 : -EBADMSG;
}

void mark_put(int audit_fd, const struct chain *c)
{
	auto_fd fd = openat(audit_fd, PLACE,
			    O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
	char text[MARK_TEXT];
	size_t n;

	if (fd < 0)
		return;
	mark_text(c, text);
	n = strlen(text);
	text[n++] = '\n'; /* in place of the NUL */
	if (pwrite(fd, text, n, 0) == (ssize_t)n)
		(void)!ftruncate(fd, (off_t)n);
}
