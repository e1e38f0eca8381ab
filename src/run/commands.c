/*
 * What guarded programs need before a sandbox starts. In: a plan that names some. Out: a descriptor
 * of each program's file, which nothing inside can reach any more; the socket that stand-ins
 * connect to (inside_socket.c). Runs in `ward` with the user's rights.
 */
#include "run/commands.h"

#include <errno.h>
#include <fcntl.h>

#include "plan/plan_root.h"

static int open_files(const struct plan *p, struct commands *c, struct ward_err *e)
{
	const struct plan_commands *list = p->commands;

	c->file_fds = calloc(list->guarded_count, sizeof(*c->file_fds));
	if (!c->file_fds)
		return ward_fail(e, ENOMEM, "out of memory");
	for (; c->count < list->guarded_count; c->count++) {
		const char *path = list->guarded[c->count].host;

		c->file_fds[c->count] = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY);
		if (c->file_fds[c->count] < 0) {
			ward_fail_errno(e, "process.commands: cannot read %s", path);
			return ward_remedy(e, "ward starts a copy of it, so you must be able to "
					      "read it");
		}
	}
	return 0;
}

int commands_start(struct plan *p, struct ward_err *e)
{
	struct commands *c;
	int r;

	if (!p->spec->starts || !p->commands || !p->commands->guarded_count)
		return 0;
	c = p->live->commands = calloc(1, sizeof(*c));
	if (!c)
		return ward_fail(e, ENOMEM, "out of memory");
	c->socket = (struct inside_socket)NO_INSIDE_SOCKET;
	r = open_files(p, c, e);
	return r < 0 ? r
		     : inside_socket_make(p, "guard", PLAN_GUARD_SOCKET, "process.commands",
					  &c->socket, e);
}

void commands_mounted(const struct plan *p)
{
	if (p->live->commands)
		inside_socket_mounted(&p->live->commands->socket);
}

void commands_end(struct plan *p)
{
	struct commands *c = p->live->commands;

	if (!c)
		return;
	inside_socket_end(&c->socket);
	for (size_t i = 0; i < c->count; i++)
		own_close_fd(&c->file_fds[i]);
	free(c->file_fds);
	free(c);
	p->live->commands = NULL;
}
