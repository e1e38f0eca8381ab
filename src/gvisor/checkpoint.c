/*
 * A checkpoint of what runs behind gVisor, and its way back. Runs in the native sandbox: started by ward-init as a command of its own, or as the runner of a sandbox that goes on from a checkpoint.
 *
 *	ward-gvisor checkpoint TREE... -- WORD		WORD has nothing to say. Standard output gets the checkpoint: what gVisor's kernel has of itself (it reads a file from its beginning), the private directories (trees.c), struct tail, and last CHECKPOINT_DONE, which stands there only if all else does
 *	ward-gvisor restore COUNT TREE... PLATFORM ...	the words of `run` behind the trees; /.ward/image is what came out, without its end
 *
 * Everything stands still from before the first directory is read until a byte comes on standard input or that ends: whoever keeps the bytes can end the sandbox at the very moment that was kept. Whatever becomes of this process, a second one lets the sandbox go on.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"
#include "gvisor/gvisor.h"

static const char magic[8] = { 'w', 'a', 'r', 'd', 'g', 'v', '0', '1' };

struct tail {
	uint64_t bytes;		/* of the directories, right before it */
	char magic[8];
};

/* What gVisor says is for its authors: its first words, or ours where we know better. */
static void say_refused(struct answer *a)
{
	char *trace = strstr(a->error, " goroutine ");

	if (trace)
		*trace = '\0';
	if (strstr(a->error, "deleted"))
		gvisor_say("a program has a file open that was deleted, which gVisor cannot keep: have it close the file, or keep such files in /dev/shm (%s)", a->error);
	else
		gvisor_say("gVisor refuses: %s", a->error);
}

/* Lets the kernel go on when its other end is gone without a byte. Returns that end; -errno. */
static int start_watcher(void)
{
	ssize_t n;
	int ends[2];
	char byte;

	if (pipe(ends) < 0)
		return -errno;
	switch (fork()) {
	case -1:
		return -errno;
	case 0:
		setsid();
		close(ends[1]);
		for (int i = 0; i < 3; i++)
			close(i);
		do
			n = read(ends[0], &byte, 1);
		while (n < 0 && errno == EINTR);
		if (n <= 0 && control_pause(false) < 0)
			_exit(1);
		_exit(0);
	default:
		close(ends[0]);
		fcntl(ends[1], F_SETFD, FD_CLOEXEC);
		return ends[1];
	}
}

/* Looks behind the wall for what could not come back, which says so by itself. */
static int check_streams(void)
{
	auto_fd nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
	const int stdio[] = { nothing, nothing, 2 };
	struct answer a;
	int status, pid = nothing < 0 ? -errno : control_exec("streams", "", stdio, &a), r = pid < 0 ? pid : control_wait(pid, &status);

	if (r < 0) {
		gvisor_say("what runs cannot be looked at: %s", r == -EREMOTEIO ? a.error : strerror(-r));
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
		gvisor_say("the checkpoint cannot be written: %s", strerror(-r));
	return r;
}

static void wait_for_word(void)
{
	ssize_t n;
	char byte;

	close(1);
	do
		n = read(0, &byte, 1);
	while (n < 0 && errno == EINTR);
}

int gvisor_checkpoint(int argc, char **argv)
{
	size_t trees = 0;
	sigset_t all;
	int watcher, r;

	while ((int)trees < argc && strcmp(argv[trees], "--") != 0)
		trees++;
	if ((int)trees == argc) {
		gvisor_say("usage: ward-gvisor checkpoint TREE... -- WORD");
		return 125;
	}
	sigfillset(&all);	/* who goes away takes the pipes along, which is sign enough */
	sigprocmask(SIG_SETMASK, &all, NULL);
	signal(SIGPIPE, SIG_IGN);
	r = gvisor_wait_for_kernel();
	if (r == 0)
		r = gvisor_own_files();
	if (r == 0)
		r = check_streams();
	if (r < 0)
		return 125;
	watcher = start_watcher();
	r = watcher < 0 ? watcher : control_pause(true);
	if (r < 0) {
		gvisor_say("gVisor's kernel cannot be made to stand still: %s", strerror(-r));
		if (watcher >= 0 && io_write_all(watcher, "n", 1) < 0)
			errno = 0;	/* then it lets go on what goes on */
		return 125;
	}
	r = write_all(argv, trees);
	if (r == 0)
		wait_for_word();
	close(watcher);	/* it lets everything go on; so it does if we are killed */
	return r < 0 ? 125 : 0;
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
	if (size < 0 || pread(fd, &tail, sizeof(tail), size) != (ssize_t)sizeof(tail) || memcmp(tail.magic, magic, sizeof(magic)) != 0 || tail.bytes > (uint64_t)size ||
	    lseek(fd, size - (off_t)tail.bytes, SEEK_SET) < 0) {
		gvisor_say("the checkpoint is none, or of another version of ward");
		return -EPROTO;
	}
	umask(0);
	r = trees_take(fd, trees, count);
	umask(022);
	if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
		r = -errno;
	if (r < 0) {
		gvisor_say("the private files of the checkpoint: %s", r == -EPROTO ? "they are damaged" : strerror(-r));
		return r;
	}
	return take_fd(&fd);
}

int gvisor_restore(int argc, char **argv)
{
	long count = argc > 1 ? strtol(argv[0], NULL, 10) : -1;
	int image;

	if (count < 0 || count > argc - 1) {
		gvisor_say("usage: ward-gvisor restore COUNT TREE... PLATFORM OPTION WAY BYTES COUNT DIR... CMD...");
		return 125;
	}
	image = open_image(argv + 1, (size_t)count);
	return image < 0 ? 125 : gvisor_run_from(image, argc - 1 - (int)count, argv + 1 + count);
}
