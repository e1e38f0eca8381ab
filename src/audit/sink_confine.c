/*
 * The process of a sink: what it reads before, and how it locks itself up (tables/procs.def). In:
 * the sink. Out: a process that can read the journals and what finding a name needs, connect to the
 * sink's port (or write in the directory of its file), and nothing else: no program is executed, no
 * other process touched, no capability kept. The command of a command sink is the user's own and
 * has the user's rights: there is nothing to lock up before it.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <string.h>

#include "audit/sink.h"
#include "base/io.h"
#include "confine/confine.h"

#define TOKEN_MAX 8192

static int read_token(struct sink *s, struct ward_err *e)
{
	const char *token = s->policy->token;
	auto_buf file = { 0 };

	if (!token)
		return 0;
	if (strncmp(token, "env:", 4) == 0) {
		const char *value = getenv(token + 4);

		if (!value)
			return ward_fail(e, ENOENT, "%s: the variable %s is not set", s->policy->to,
					 token + 4);
		buf_puts(&file, value);
	} else if (io_read_file(AT_FDCWD, token + 5, TOKEN_MAX, &file) < 0) {
		return ward_fail_errno(e, "%s: the token's file %s", s->policy->to, token + 5);
	}
	while (file.len && strchr(" \r\n", file.data[file.len - 1]))
		file.data[--file.len] = '\0';
	for (size_t i = 0; i < file.len; i++)
		if (file.data[i] <= ' ' || file.data[i] >= 127)
			return ward_fail(e, EINVAL,
					 "%s: the token contains characters that are not allowed "
					 "in a header",
					 s->policy->to);
	s->token = buf_take(&file);
	return s->token ? 0 : ward_fail(e, ENOMEM, "out of memory");
}

int sink_prepare(struct sink *s, struct ward_err *e)
{
	int r = read_token(s, e);

	if (r == 0 && (s->policy->way == SINK_TLS || s->policy->way == SINK_HTTPS))
		r = sink_tls_prepare(s, e);
	return r;
}

static enum proc proc_of(const struct sink *s)
{
	return s->policy->way == SINK_FILE   ? PROC_SINK_FILE
	       : s->policy->way == SINK_UNIX ? PROC_SINK_UNIX
					     : PROC_SINK_NET;
}

int sink_confine(const struct sink *s, struct ward_err *e)
{
	const bool is_file = s->policy->way == SINK_FILE;
	auto_free char *copy =
		is_file ? strdup(s->policy->place ? s->policy->place : s->policy->path) : NULL;
	const struct confine_tree trees[] = {
		{ .fd = s->audit_fd, .rights = CONFINE_READ },
		{ .path = copy ? dirname(copy) : NULL, .rights = CONFINE_WRITE },
	};
	const struct confine_own own = { .trees = trees,
					 .tree_count = is_file ? 2 : 1,
					 .port = s->policy->port };

	if (s->policy->way == SINK_COMMAND)
		return 0;
	if (is_file && !copy)
		return ward_fail(e, ENOMEM, "out of memory");
	return confine_enter(proc_of(s), &own, e);
}
