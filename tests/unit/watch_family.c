/*
 * A family of processes that stands for a sandbox, and the world that it lives in (watch_family.h).
 * Where the host gives no mount namespace (a container without rights) the program ends with 77,
 * which meson counts as skipped.
 */
#include "watch_family.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"

static struct spec spec;
struct plan plan;
char *disk_dir, *tmpfs_dir;
static char directory[] = "/tmp/ward-ut-watchXXXXXX";

void plan_none(void)
{
	memset(&plan, 0, sizeof(plan));
	plan.spec = &spec;
	plan.level = LEVEL_NAMESPACES;
	plan.facts.cpus = 2;
	for (unsigned i = 0; i < LIMITS; i++)
		plan.limits[i].value = POLICY_NONE;
}

void plan_set(enum limit l, uint64_t value, enum held_by held)
{
	plan.limits[l] = (struct plan_limit){ value, held };
}

struct family begin(int (*work)(int ready_fd))
{
	int ready[2], go[2];
	struct family f;
	char byte;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	f.pid = fork();
	if (f.pid == 0) {
		setpgid(0, 0);
		close(go[1]);
		close(ready[0]);
		if (read(go[0], &byte, 1) != 1)
			_exit(1);
		_exit(work(ready[1]));
	}
	setpgid(f.pid, f.pid);
	close(ready[1]);
	close(go[0]);
	f.ready_fd = ready[0];
	f.go_fd = go[1];
	return f;
}

void go(struct family *f)
{
	char byte;

	assert_int_equal(write(f->go_fd, "g", 1), 1);
	assert_int_equal(read(f->ready_fd, &byte, 1), 1);
}

void end(struct family *f)
{
	kill(-f->pid, SIGKILL);
	assert_int_equal(waitpid(f->pid, NULL, 0), f->pid);
	close(f->ready_fd);
	close(f->go_fd);
}

int ready(int fd)
{
	if (write(fd, "r", 1) != 1)
		return 1;
	while (pause() < 0)
		;
	return 0;
}

struct watch *watch(const struct family *f)
{
	static int tmpfs_fds[1], disk_fds[1];
	struct watch_config c = { .plan = &plan,
				  .init_pid = f->pid,
				  .proc_fd = -1,
				  .tmpfs_fds = tmpfs_fds,
				  .tmpfs_count = 1,
				  .disk_fds = disk_fds,
				  .disk_count = 1 };
	struct ward_err e = { 0 };
	struct watch *w = NULL;

	if (tmpfs_fds[0] == 0) {
		tmpfs_fds[0] = open(tmpfs_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		disk_fds[0] = open(disk_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	if (watch_create(&c, &w, &e) < 0)
		fail_msg("%s: %s", e.what, e.why);
	return w;
}

void tick_sleep(void)
{
	const struct timespec t = { .tv_nsec = WATCH_TICK_MS * 1000000L };

	nanosleep(&t, NULL);
}

bool supervise(struct watch *w, const struct family *f, struct usage *u, enum limit *l, int *looks)
{
	for (int i = 0; i < 13; i++) {
		if (watch_tick(w, u)) {
			kill(-f->pid, SIGSTOP);
			watch_confirm(w, u, WATCH_SIGNALLED);
			kill(-f->pid, SIGCONT);
			(*looks)++;
		}
		if (limits_stop(&plan, u, l))
			return true;
		tick_sleep();
	}
	return false;
}

enum limit run(int (*work)(int), struct usage *u, int *ret_looks)
{
	struct family f = begin(work);
	struct watch *w = watch(&f);
	enum limit l = LIMITS;
	bool stopped;

	memset(u, 0, sizeof(*u));
	*ret_looks = 0;
	go(&f);
	stopped = supervise(w, &f, u, &l, ret_looks);
	end(&f);
	watch_destroy(w);
	return stopped ? l : LIMITS;
}

void expect(int (*work)(int), enum limit l)
{
	struct usage u;
	int looks;

	assert_int_equal(run(work, &u, &looks), l);
}

int make_world(void **state)
{
	uid_t uid = getuid();
	gid_t gid = getgid();
	char map[64];

	(void)state;
	if (!mkdtemp(directory))
		return -1;
	if (uid != 0 && unshare(CLONE_NEWUSER) == 0) {
		snprintf(map, sizeof(map), "0 %u 1", uid);
		if (io_write_file(AT_FDCWD, "/proc/self/setgroups", "deny") < 0 ||
		    io_write_file(AT_FDCWD, "/proc/self/uid_map", map) < 0)
			return -1;
		snprintf(map, sizeof(map), "0 %u 1", gid);
		if (io_write_file(AT_FDCWD, "/proc/self/gid_map", map) < 0)
			return -1;
	}
	if (unshare(CLONE_NEWNS) < 0) {
		print_message("skipped: needs a mount namespace, which this container refuses\n");
		rmdir(directory);
		exit(77);
	}
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    asprintf(&disk_dir, "%s/disk", directory) < 0 ||
	    asprintf(&tmpfs_dir, "%s/tmpfs", directory) < 0 || mkdir(disk_dir, 0700) < 0 ||
	    mkdir(tmpfs_dir, 0700) < 0 ||
	    mount("disk", disk_dir, "tmpfs", 0, "size=160m,nr_inodes=4096") < 0 ||
	    mount("tmp", tmpfs_dir, "tmpfs", 0, "size=64m,nr_inodes=4096") < 0)
		return -1;
	return 0;
}

int end_world(void **state)
{
	(void)state;
	umount2(disk_dir, MNT_DETACH);
	umount2(tmpfs_dir, MNT_DETACH);
	rmdir(disk_dir);
	rmdir(tmpfs_dir);
	free(disk_dir);
	free(tmpfs_dir);
	return rmdir(directory);
}
