/*
 * The watch: what memory files hold. In: the processes of a sandbox whose inner runtime keeps its
 * command's memory in such files (gVisor). Out: the bytes behind them. Runs in the supervisor with
 * the user's rights, which hold over the user namespaces inside. A page of a memory file need not
 * be mapped by any process, so what processes have mapped is no measure: the file is asked.
 *
 * What is in the known ones is asked each time. Which descriptors are such files is looked at now
 * and then, in steps: an inner runtime has thousands of descriptors in hundreds of processes, the
 * sandbox says how many, and whatever is looked at, its disk fills meanwhile.
 */
#include "limit/watch_parts.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/io.h"

#define AGAIN_MS 200
#define STEP_MS 4 /* that looking for others may take at a time */

void memfds_open(struct memfds *m)
{
	auto_fd own = memfd_create("ward", MFD_CLOEXEC);
	struct stat st = { 0 };

	*m = (struct memfds){ .on = own >= 0 && fstat(own, &st) == 0 };
	if (m->on)
		m->dev = st.st_dev;
}

static struct memfd_place *known(struct memfds *m, ino_t ino)
{
	for (size_t i = 0; i < m->len; i++)
		if (m->items[i].ino == ino)
			return &m->items[i];
	return NULL;
}

/* A descriptor of a process: notes its file, if it is one. */
static void note(struct memfds *m, int dir_fd, const char *name, pid_t pid)
{
	struct memfd_place *old;
	struct stat st;
	int number = 0;

	if (sscanf(name, "%d", &number) != 1 || fstatat(dir_fd, name, &st, 0) < 0 ||
	    st.st_dev != m->dev || !S_ISREG(st.st_mode))
		return;
	old = known(m, st.st_ino);
	if (old && old->seen)
		return;
	if (old)
		/* where it was may be gone */
		*old = (struct memfd_place){ pid, number, st.st_ino, true };
	else if (m->len < MEMFDS_MAX)
		m->items[m->len++] = (struct memfd_place){ pid, number, st.st_ino, true };
}

/* Goes on in one process, from m->at_entry. False: out of time. */
static bool look_into(struct memfds *m, const struct proc_view *v, pid_t pid, uint64_t until_ms)
{
	char path[32];
	int fd;
	auto_dir dir = NULL;

	snprintf(path, sizeof(path), "%d/fd", pid);
	fd = openat(v->fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		own_close_fd(&fd);
		return true;
	}
	if (m->at_entry)
		/* by the number of the descriptor: see proc_readfd_common() of the kernel */
		seekdir(dir, m->at_entry);
	for (struct dirent *d = readdir(dir); d; d = readdir(dir)) {
		note(m, fd, d->d_name, pid);
		m->at_entry = telldir(dir);
		if (io_now_ms() >= until_ms)
			return false;
	}
	return true;
}

/* Those that no process had this time are gone. */
static void forget_unseen(struct memfds *m)
{
	size_t kept = 0;

	for (size_t i = 0; i < m->len; i++) {
		if (!m->items[i].seen)
			continue;
		m->items[kept] = m->items[i];
		m->items[kept++].seen = false;
	}
	m->len = kept;
}

/* Looks for memory files a step further. */
static void go_on(struct memfds *m, const struct proc_view *v, const struct proc_table *t)
{
	uint64_t began = io_now_ms(), until = began + STEP_MS;

	for (size_t i = 0; i < t->len; i++) {
		pid_t pid = t->items[i].pid;

		if (pid < m->at_pid)
			continue;
		if (pid != m->at_pid)
			m->at_entry = 0;
		m->at_pid = pid;
		if (!look_into(m, v, pid, until)) {
			m->cost_ms += io_now_ms() - began;
			return;
		}
		m->at_pid = pid + 1;
		m->at_entry = 0;
	}
	m->cost_ms += io_now_ms() - began;
	m->again_ms = io_now_ms() + (m->cost_ms * 20 > AGAIN_MS ? m->cost_ms * 20 : AGAIN_MS);
	m->at_pid = 0;
	m->cost_ms = 0;
	forget_unseen(m);
}

uint64_t memfds_bytes(struct memfds *m, const struct proc_view *v, const struct proc_table *t)
{
	uint64_t sum = 0;

	if (!m->on)
		return 0;
	if (io_now_ms() >= m->again_ms)
		go_on(m, v, t);
	for (size_t i = 0; i < m->len; i++) {
		char path[48];
		struct stat st;

		snprintf(path, sizeof(path), "%d/fd/%d", m->items[i].pid, m->items[i].fd);
		if (fstatat(v->fd, path, &st, 0) == 0 && st.st_dev == m->dev &&
		    st.st_ino == m->items[i].ino)
			sum += (uint64_t)st.st_blocks * 512;
		else
			m->again_ms = 0; /* another process may have it */
	}
	return sum;
}
