/*
 * Trees between the native sandbox and the guest. All that go one way go through one channel, whose
 * party is a child of this process: it reads the files and writes records, or takes records and
 * writes the files, and may wait for either while this process goes on. The records are on the
 * machine's block device (disk.c), messages about them go through two pipes. It has the rights of
 * the native sandbox: what that protects stays as it is, whatever the guest says.
 */
#include "vm/server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/buf.h"

#define LOST_CODE 3 /* of the child that makes files: some did not come back */

static _Noreturn void die(const struct ward_err *e)
{
	dprintf(2, "ward-vm: %s%s%s\n", e->what, e->what[0] ? ": " : "", e->why);
	_exit(1);
}

/* Which trees a copy is of. */
struct batch {
	bool into;
	struct strv paths;
};

static _Noreturn void child(const struct server *v, const struct batch *b,
			    const struct tree_way *way)
{
	struct ward_err e = { 0 };
	uint64_t lost = 0;
	int r = b->into ? tree_send(way, b->paths.items, b->paths.len, &e)
			: tree_take(way, b->paths.items, b->paths.len, v->setup->copy_max_bytes,
				    &lost, &e);

	if (r < 0)
		die(&e);
	_exit(lost ? LOST_CODE : 0);
}

/* Runs the channel until it has ended; the guest's own exit code, or -errno. */
static int follow(struct server *v, struct party *p, struct ward_err *e)
{
	const struct vm_channel *c = &v->session.channels[p->channel];
	struct party_message none = { 0 };
	int r = 0, status;

	while (r == 0 && (c->state != VM_ENDED || !party_flushed(c)))
		r = server_turn(v, false, e);
	status = c->status;
	if (r == 0)
		session_close(&v->session, p->channel);
	party_end(p, &none, NULL);
	return r < 0 ? r : status != 0;
}

static int open_channel(struct server *v, struct batch *b, struct ward_err *e)
{
	struct vm_start start = { .kind = b->into ? VM_TREE_IN : VM_TREE_OUT };
	size_t len = 0;
	char *words = party_words("", (int)b->paths.len, b->paths.items, NULL, &len, &start);

	return session_open(&v->session, &start, words, len, e);
}

/* The child's process; the other ends of its pipes are the channel's 0 and 1. */
static pid_t start_child(const struct server *v, const struct batch *b, int *fds)
{
	int to_guest[2] = { -1, -1 }, from_guest[2] = { -1, -1 };
	pid_t pid =
		pipe2(to_guest, O_CLOEXEC) < 0 || pipe2(from_guest, O_CLOEXEC) < 0 ? -1 : fork();

	if (pid == 0) {
		close(to_guest[0]);
		close(from_guest[1]);
		child(v, b,
		      &(struct tree_way){ .in_fd = from_guest[0],
					  .out_fd = to_guest[1],
					  .disk_fd = v->setup->disk_fd });
	}
	own_close_fd(&to_guest[1]);
	own_close_fd(&from_guest[0]);
	fds[0] = to_guest[0];
	fds[1] = from_guest[1];
	fds[2] = fcntl(2, F_DUPFD_CLOEXEC, 3);
	return pid;
}

static int copy(struct server *v, struct batch *b, struct ward_err *e)
{
	int fds[VM_STREAMS] = { -1, -1, -1 }, status = 0, channel = open_channel(v, b, e), guest;
	struct party *p = server_party(v, true);
	pid_t pid;

	if (channel < 0 || !p)
		return channel < 0 ? channel : ward_fail(e, EBUSY, "another copy is not finished");
	pid = start_child(v, b, fds);
	party_begin(p, (unsigned)channel, fds, -1, &v->session.channels[channel]);
	guest = pid < 0 ? ward_fail_errno(e, "a process for it") : follow(v, p, e);
	if (pid > 0)
		waitpid(pid, &status, 0);
	if (guest < 0)
		return guest;
	if (WIFEXITED(status) && WEXITSTATUS(status) == LOST_CODE)
		v->lost++;
	else if (guest || status)
		return ward_fail(e, EIO, "it is not complete");
	return 0;
}

/* All trees, or all that can be written, at once: each process that a machine starts costs time. */
static int copy_all(struct server *v, bool into, struct ward_err *e)
{
	struct batch b = { .into = into };
	int r = 0;

	for (size_t i = 0; i < v->setup->tree_count; i++)
		if (into || v->setup->trees[i].writable)
			strv_add(&b.paths, v->setup->trees[i].path);
	if (b.paths.failed)
		r = ward_fail(e, ENOMEM, "no memory");
	else if (b.paths.len)
		r = copy(v, &b, e);
	if (r < 0)
		ward_wrap(e, into ? "copying %s into the guest" : "copying what changed in %s back",
			  b.paths.len == 1 ? b.paths.items[0] : "its trees");
	strv_free(&b.paths);
	return r < 0 ? r : 0;
}

int server_trees_in(struct server *v, struct ward_err *e)
{
	return copy_all(v, true, e);
}

int server_trees_out(struct server *v, struct ward_err *e)
{
	return copy_all(v, false, e);
}
