/*
 * A checkpoint of what runs behind gVisor, and its way back. Runs in the native sandbox: started by
 * ward-init as a command of its own, or as the runner of a sandbox that goes on from a checkpoint.
 *
 *	ward-gvisor checkpoint TREE... -- WORD		WORD has nothing to say. Standard output
 *							gets the checkpoint: what gVisor's kernel
 *							has of itself (it reads a file from its
 *							beginning), the private directories
 *							(trees.c), struct tail, and last
 *							CHECKPOINT_DONE, which stands there only if
 *							all else does
 *	ward-gvisor restore COUNT TREE... PLATFORM ...	the words of `run` behind the trees;
 *							/.ward/image is what came out, without its
 *							end
 *
 * Everything stands still from before the first directory is read until a byte comes on standard
 * input or that ends: the process that keeps the bytes can end the sandbox at the very moment that
 * was kept. Whatever becomes of this process, a second one lets the sandbox go on.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"
#include "gvisor/gvisor.h"

static const char magic[8] = { 'w', 'a', 'r', 'd', 'g', 'v', '0', '1' };

struct tail {
	uint64_t bytes; /* of the directories, right before it */
	char magic[8];
};

/* What gVisor says is for its authors: its first words, or ours where we know better. */
static void say_refused(struct answer *a)
{
	char *trace = strstr(a->error, " goroutine ");

	if (trace)
		*trace = '\0';
	if (strstr(a->error, "deleted"))
		gvisor_say("a program has a deleted file open, which gVisor cannot save: have it "
			   "close the file, or start with --set resources.inode_limit=none and "
			   "keep such files in /dev/shm (%s)",
			   a->error);
	else
		gvisor_say("gVisor refuses: %s", a->error);
}

/* Stops the kernel, says on `say` how that went (0, -errno), and lets it go on when no
 * process holds the other end of `wait` any more. Nothing of what it does is cut short when the one
 * that started it is killed. */
static _Noreturn void watch(int say, int wait)
{
	int r = control_pause(true);
	ssize_t n;
	char byte;

	(void)!write(say, &r, sizeof(r));
	close(say);
	do
		n = read(wait, &byte, 1);
	while (n > 0 || (n < 0 && errno == EINTR));
	_exit(r == 0 && control_pause(false) < 0);
}

struct watcher {
	pid_t pid;
	int fd; /* as long as it is open all stands still */
};

static int start_watcher(struct watcher *w)
{
	int said[2], held[2], r = -EPIPE;
	ssize_t n;

	if (pipe(said) < 0)
		return -errno;
	if (pipe(held) < 0)
		return -errno;
	w->pid = fork();
	if (w->pid < 0)
		return -errno;
	if (w->pid == 0) {
		setsid();
		close(said[0]);
		close(held[1]);
		for (int i = 0; i < 3; i++)
			close(i);
		watch(said[1], held[0]);
	}
	close(said[1]);
	close(held[0]);
	w->fd = held[1];
	do
		n = read(said[0], &r, sizeof(r));
	while (n < 0 && errno == EINTR);
	close(said[0]);
	return n == (ssize_t)sizeof(r) ? r : -EPIPE;
}

/* All goes on: when this returns, it does. */
static void end_watcher(struct watcher *w)
{
	close(w->fd);
	while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* Looks inside gVisor for what could not be restored; the search reports it. */
static int check_streams(void)
{
	auto_fd nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
	const int stdio[] = { nothing, nothing, 2 };
	struct answer a;
	int status, pid = nothing < 0 ? -errno : control_exec("streams", "", stdio, &a),
		    r = pid < 0 ? pid : control_wait(pid, &status);

	if (r < 0) {
		gvisor_say("cannot inspect the running processes: %s",
			   r == -EREMOTEIO ? a.error : strerror(-r));
		return r;
	}
	return status ? -EBUSY : 0;
}

static int write_all(char *const *trees, size_t count)
{
	struct answer a = { 0 };
	struct tail tail;
	int r = control_checkpoint(1, &a);

	memcpy(tail.magic, magic, sizeof(magic));
	if (r == -EREMOTEIO)
		say_refused(&a);
	if (r == 0)
		r = trees_send(1, trees, count, &tail.bytes);
	if (r == 0)
		r = io_write_all(1, &tail, sizeof(tail));
	if (r == 0)
		r = io_write_all(1, CHECKPOINT_DONE, sizeof(CHECKPOINT_DONE) - 1);
	if (r < 0 && r != -EREMOTEIO)
		gvisor_say("cannot write the checkpoint: %s", strerror(-r));
	return r;
}

/* Whether one came: one that goes away without it has kept nothing. */
static bool wait_for_word(void)
{
	ssize_t n;
	char byte;

	close(1);
	do
		n = read(0, &byte, 1);
	while (n < 0 && errno == EINTR);
	return n == 1;
}

int gvisor_checkpoint(int argc, char **argv)
{
	size_t trees = 0;
	sigset_t all;
	struct watcher watcher = { .fd = -1 };
	bool kept = false;
	int r;

	while ((int)trees < argc && strcmp(argv[trees], "--") != 0)
		trees++;
	if ((int)trees == argc) {
		gvisor_say("usage: ward-gvisor checkpoint TREE... -- WORD");
		return 125;
	}
	sigfillset(&all); /* a peer that goes away closes the pipes, which is sign enough */
	sigprocmask(SIG_SETMASK, &all, NULL);
	signal(SIGPIPE, SIG_IGN);
	r = gvisor_wait_for_kernel();
	if (r == 0)
		r = gvisor_own_files();
	if (r == 0)
		r = check_streams();
	if (r < 0)
		return 125;
	r = start_watcher(&watcher);
	if (r < 0) {
		gvisor_say("cannot pause gVisor's kernel: %s", strerror(-r));
		return 125;
	}
	r = write_all(argv, trees);
	if (r == 0)
		kept = wait_for_word();
	end_watcher(&watcher); /* it lets everything go on; so it does if we are killed */
	return kept ? 0 : 125;
}

/* Opens the image and fills the directories. */
static int open_image(char *const *trees, size_t count)
{
	auto_fd fd = open(GVISOR_IMAGE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct tail tail;
	off_t size;
	int r;

	if (fd < 0) {
		r = -errno;
		gvisor_say("the checkpoint: %s", strerror(errno));
		return r;
	}
	size = lseek(fd, 0, SEEK_END) - (off_t)sizeof(tail);
	if (size < 0 || pread(fd, &tail, sizeof(tail), size) != (ssize_t)sizeof(tail) ||
	    memcmp(tail.magic, magic, sizeof(magic)) != 0 || tail.bytes > (uint64_t)size ||
	    lseek(fd, size - (off_t)tail.bytes, SEEK_SET) < 0) {
		gvisor_say("not a checkpoint, or from another version of ward");
		return -EPROTO;
	}
	umask(0);
	r = trees_take(fd, trees, count);
	umask(022);
	if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
		r = -errno;
	if (r < 0) {
		gvisor_say("the private files of the checkpoint: %s",
			   r == -EPROTO ? "they are damaged" : strerror(-r));
		return r;
	}
	return take_fd(&fd);
}

int gvisor_restore(int argc, char **argv)
{
	long count = argc > 1 ? strtol(argv[0], NULL, 10) : -1;
	int image;

	if (count < 0 || count > argc - 1) {
		gvisor_say("usage: ward-gvisor restore COUNT TREE... PLATFORM OPTION WAY BYTES "
			   "COUNT DIR... CMD...");
		return 125;
	}
	image = open_image(argv + 1, (size_t)count);
	return image < 0 ? 125 : gvisor_run_from(image, argc - 1 - (int)count, argv + 1 + count);
}
