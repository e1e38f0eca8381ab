/*
 * The watch: what memory files hold. In: the processes of a sandbox whose wall keeps its command's memory in such files (gVisor). Out: the bytes behind them. Runs in the supervisor with the user's rights, which hold over the user
 * namespaces inside. A page of a memory file need not be mapped by anybody, so what processes have mapped is no measure: the file is asked. Which descriptors are such files is looked at now and then, what is in them each time.
 */
#include "lib/watch_parts.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/io.h"

#define AGAIN_MS 200

void memfds_open(struct memfds *m)
{
	auto_fd own = memfd_create("ward", MFD_CLOEXEC);
	struct stat st = { 0 };

	*m = (struct memfds){ .on = own >= 0 && fstat(own, &st) == 0 };
	if (m->on)
		m->dev = st.st_dev;
}

static bool is_known(const struct memfds *m, ino_t ino)
{
	for (size_t i = 0; i < m->len; i++)
		if (m->items[i].ino == ino)
			return true;
	return false;
}

/* The memory files of one process that nobody before it had. */
static void look_into(struct memfds *m, const struct proc_view *v, pid_t pid)
{
	char path[32];
	int fd;
	DIR *dir;

	snprintf(path, sizeof(path), "%d/fd", pid);
	fd = openat(v->fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		own_close_fd(&fd);
		return;
	}
	for (struct dirent *d = readdir(dir); d && m->len < MEMFDS_MAX; d = readdir(dir)) {
		struct stat st;
		int number = 0;

		if (sscanf(d->d_name, "%d", &number) != 1 || fstatat(dirfd(dir), d->d_name, &st, 0) < 0 || st.st_dev != m->dev || !S_ISREG(st.st_mode) ||
		    is_known(m, st.st_ino))
			continue;
		m->items[m->len++] = (struct memfd_place){ pid, number, st.st_ino };
	}
	closedir(dir);
}

uint64_t memfds_bytes(struct memfds *m, const struct proc_view *v, const struct proc_table *t)
{
	uint64_t sum = 0, now = io_now_ms(), cost;

	if (!m->on)
		return 0;
	if (now >= m->again_ms) {
		m->len = 0;
		for (size_t i = 0; i < t->len; i++)
			look_into(m, v, t->items[i].pid);
		cost = io_now_ms() - now;	/* a wall's processes have thousands of descriptors, and a disk may fill meanwhile */
		m->again_ms = now + (cost * 20 > AGAIN_MS ? cost * 20 : AGAIN_MS);
	}
	for (size_t i = 0; i < m->len; i++) {
		char path[48];
		struct stat st;

		snprintf(path, sizeof(path), "%d/fd/%d", m->items[i].pid, m->items[i].fd);
		if (fstatat(v->fd, path, &st, 0) == 0 && st.st_dev == m->dev && st.st_ino == m->items[i].ino)
			sum += (uint64_t)st.st_blocks * 512;
		else
			m->again_ms = 0;
	}
	return sum;
}
