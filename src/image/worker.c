/*
 * The worker's parent. In: a job. Out: what the worker reports in memory that both share, once it
 * has ended. The parent never looks at a byte of the image: it waits, shows how far the work is,
 * and checks that what the worker wrote is what it should look like. If the parent dies, so does
 * the worker.
 */
#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "image/unpack.h"

#define LOOK_MS 100

static void work(const struct unpack_job *job, struct unpacked *shared, pid_t parent)
{
	struct ward_err e = { 0 };
	int r = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	setlocale(LC_CTYPE, "C.UTF-8"); /* names in archives are UTF-8 */
	r = confine_worker(job, &e);
	if (r == 0)
		r = unpack_work(job, shared, &e);
	shared->error = e;
	shared->result = r;
	_exit(0);
}

static void end_texts(struct unpacked *u)
{
	u->error.what[sizeof(u->error.what) - 1] = '\0';
	u->error.why[sizeof(u->error.why) - 1] = '\0';
	u->error.remedy[sizeof(u->error.remedy) - 1] = '\0';
	u->digest[sizeof(u->digest) - 1] = '\0';
	u->name[sizeof(u->name) - 1] = '\0';
}

static int wait_worker(const struct unpack_job *job, pid_t pid, struct unpacked *shared,
		       struct ward_err *e)
{
	auto_fd pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd p = { .fd = pid_fd, .events = POLLIN };
	int status = 0;

	progress_begin(job->progress, 0);
	while (pid_fd >= 0 && poll(&p, 1, LOOK_MS) == 0)
		if (job->progress) {
			job->progress->done =
				__atomic_load_n(&shared->count.entries, __ATOMIC_RELAXED);
			progress_look(job->progress, "unpacking, files");
		}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	ward_fail(e, EIO, "the unpacking process ended unexpectedly (%s %d)",
		  WIFSIGNALED(status) ? "signal" : "status",
		  WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	return ward_remedy(e, "the archive may be malicious, or memory was short");
}

int unpack_run(const struct unpack_job *job, struct unpacked *ret, struct ward_err *e)
{
	struct unpacked *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t parent = getpid(), pid;
	int r;

	if (shared == MAP_FAILED)
		return ward_fail_errno(e, "cannot share memory with the unpacking process");
	shared->result = -EIO;
	pid = fork();
	if (pid == 0)
		work(job, shared, parent);
	r = pid < 0 ? ward_fail_errno(e, "cannot start the unpacking process")
		    : wait_worker(job, pid, shared, e);
	*ret = *shared;
	munmap(shared, sizeof(*shared));
	end_texts(ret);
	if (r < 0)
		return r;
	if (ret->result < 0) {
		*e = ret->error;
		if (!e->code)
			e->code = EIO;
		return -e->code;
	}
	if (strlen(ret->digest) != DIGEST_HEX - 1 ||
	    strspn(ret->digest, "0123456789abcdef") != DIGEST_HEX - 1)
		return ward_fail(e, EIO, "the unpacking process gave no digest");
	return 0;
}
