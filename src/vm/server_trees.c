/*
 * Trees between the native sandbox and the guest. Each is a channel whose party is a child of this process: it reads the files and
 * writes records into a pipe, or reads records from a pipe and writes the files, and may wait for the disk while this process
 * goes on. It has the rights of the native sandbox: what that protects stays as it is, whatever the guest says.
 */
#include "vm/server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define LOST_CODE 3	/* of the child that makes files: some did not come back */

static _Noreturn void die(const struct ward_err *e)
{
	dprintf(2, "ward-vm: %s%s%s\n", e->what, e->what[0] ? ": " : "", e->why);
	_exit(1);
}

static _Noreturn void child(const struct server *v, const char *path, bool into, int fd)
{
	struct ward_err e = { 0 };
	uint64_t lost = 0;
	int r = into ? tree_send(fd, path, &e) : tree_take(fd, path, v->setup->copy_max_bytes, &lost, &e);

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

static int copy(struct server *v, const char *path, bool into, struct ward_err *e)
{
	struct vm_start start = { .kind = into ? VM_TREE_IN : VM_TREE_OUT };
	int pipe_fds[2], fds[VM_STREAMS] = { -1, -1, -1 }, status = 0, channel, guest;
	struct party *p = server_party(v, true);
	char *argv[] = { strdup(path) };
	size_t len = 0;
	char *words = argv[0] ? party_words("", 1, argv, NULL, &len, &start) : NULL;
	pid_t pid;

	free(argv[0]);
	channel = session_open(&v->session, &start, words, len, e);
	if (channel < 0 || !p || pipe2(pipe_fds, O_CLOEXEC) < 0)
		return channel < 0 ? channel : ward_fail_errno(e, "a pipe for %s", path);
	pid = fork();
	if (pid == 0) {
		close(pipe_fds[into ? 0 : 1]);
		child(v, path, into, pipe_fds[into ? 1 : 0]);
	}
	close(pipe_fds[into ? 1 : 0]);
	fds[into ? 0 : 1] = pipe_fds[into ? 0 : 1];
	fds[2] = fcntl(2, F_DUPFD_CLOEXEC, 3);
	party_begin(p, (unsigned)channel, fds, -1, &v->session.channels[channel]);
	guest = pid < 0 ? ward_fail_errno(e, "a process for %s", path) : follow(v, p, e);
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

int server_trees_in(struct server *v, struct ward_err *e)
{
	for (size_t i = 0; i < v->setup->tree_count; i++)
		if (copy(v, v->setup->trees[i].path, true, e) < 0)
			return ward_wrap(e, "copying %s into the guest", v->setup->trees[i].path);
	return 0;
}

int server_trees_out(struct server *v, struct ward_err *e)
{
	for (size_t i = 0; i < v->setup->tree_count; i++)
		if (v->setup->trees[i].writable && copy(v, v->setup->trees[i].path, false, e) < 0)
			return ward_wrap(e, "copying what changed in %s back", v->setup->trees[i].path);
	return 0;
}
