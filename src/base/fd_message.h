/*
 * Descriptors in a message (SCM_RIGHTS): the one place that writes and reads them. Inline and
 * without a libc, so that ward-init and the child on the start path use the same code.
 */
#ifndef WARD_BASE_FD_MESSAGE_H
#define WARD_BASE_FD_MESSAGE_H

#include <stddef.h>
#include <sys/socket.h>

#include "base/raw.h"

/* The control part of a message with at most n descriptors. */
#define FD_MESSAGE_CONTROL(n)                                                                      \
	union {                                                                                    \
		struct cmsghdr align;                                                              \
		char space[CMSG_SPACE((n) * sizeof(int))];                                         \
	}

/* Puts count descriptors into the message, whose msg_control has room for them; they stay the
 * caller's. None: the message has no control part. */
static inline void fd_message_put(struct msghdr *m, const int *fds, size_t count)
{
	struct cmsghdr *header = (struct cmsghdr *)m->msg_control;
	int *into = (int *)(void *)CMSG_DATA(header);

	m->msg_controllen = count ? CMSG_SPACE(count * sizeof(int)) : 0;
	if (!count)
		return;
	/* all of it: where a libc has 32 bits for the length, the kernel reads the padding, too */
	*header = (struct cmsghdr){ .cmsg_len = CMSG_LEN(count * sizeof(int)),
				    .cmsg_level = SOL_SOCKET,
				    .cmsg_type = SCM_RIGHTS };
	for (size_t i = 0; i < count; i++)
		into[i] = fds[i];
	if (count % 2)
		into[count] = 0; /* CMSG_SPACE() rounds up to eight bytes */
}

/* The descriptors of a message that was received, in place; the caller owns them. The kernel puts
 * all of them into one part. */
static inline const int *fd_message_get(const struct msghdr *m, size_t *ret_count)
{
	const struct cmsghdr *header;

	*ret_count = 0;
	for (size_t at = 0; at + sizeof(*header) <= m->msg_controllen;
	     at += CMSG_ALIGN(header->cmsg_len)) {
		header = (const struct cmsghdr *)(const void *)((const char *)m->msg_control + at);
		if (header->cmsg_len < sizeof(*header))
			break;
		if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
			continue;
		*ret_count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		return (const int *)(const void *)CMSG_DATA(header);
	}
	return NULL;
}

/* The same as a copy of at most max; what is more is closed. Returns how many there are. There can
 * be one more than there was room for: the kernel uses what CMSG_SPACE() rounds up. */
static inline size_t fd_message_take(const struct msghdr *m, int *ret_fds, size_t max)
{
	size_t count;
	const int *fds = fd_message_get(m, &count);

	for (size_t i = 0; i < count; i++)
		if (i < max)
			ret_fds[i] = fds[i];
		else
			raw_call(SYS_close, fds[i]);
	return count < max ? count : max;
}

#endif
