/*
 * Running a call. In: a policy that is the tool's scope, and an argv. Out: what the command wrote,
 * up to its limit, its exit code, and from the report, which the sandbox cannot forge: the run, the
 * denials, the limits. The sandbox is that of `ward run`, started as a program of its own with a
 * policy file that only this user can read; nothing of the caller's environment, profile or policy
 * chooses anything. A command that writes more than it may is ended. The place under the runtime
 * directory is locked while it is used; the next call removes those of processes that were killed.
 * Runs with the user's rights.
 */
#include "tools/call.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <dirent.h>
#include <unistd.h>

#include "base/io.h"
#include "base/remove.h"
#include "host/program.h"
#include "state/runtime.h"
#include "tools/scope.h"

#define PLACE_PREFIX "tool."
#define REPORT_MAX (1024u * 1024)
#define READ_BYTES 65536

/* -- the place */

/* Removes the places whose owner is gone: their lock is free. */
static void remove_stale(int runtime_fd)
{
	int copy = fcntl(runtime_fd, F_DUPFD_CLOEXEC, 3);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *entry;

	if (!dir) {
		own_close_fd(&copy);
		return;
	}
	while ((entry = readdir(dir))) {
		auto_fd fd = -1;

		if (strncmp(entry->d_name, PLACE_PREFIX, strlen(PLACE_PREFIX)) != 0)
			continue;
		fd = openat(runtime_fd, entry->d_name,
			    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
			(void)!remove_tree_at(runtime_fd, entry->d_name);
	}
	closedir(dir);
}

void call_place_close(struct call_place *p)
{
	if (p->path)
		(void)!remove_tree(p->path);
	if (p->lock_fd > 0)
		close(p->lock_fd);
	free(p->path);
	free(p->empty);
	*p = (struct call_place){ 0 };
}

/* A name of our own, locked before anybody could take it for stale: made under another name. */
static int make_place(int runtime_fd, const char *runtime, struct call_place *ret,
		      struct ward_err *e)
{
	auto_free char *first = NULL;

	if (asprintf(&first, "%s/new.XXXXXX", runtime) < 0)
		return ward_fail(e, ENOMEM, "out of memory");
	if (!mkdtemp(first))
		return ward_fail_errno(e, "cannot make a directory in %.200s", runtime);
	ret->lock_fd = open(first, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (asprintf(&ret->path, "%s/" PLACE_PREFIX "%s", runtime, strrchr(first, '.') + 1) < 0 ||
	    asprintf(&ret->empty, "%s/none", ret->path) < 0)
		ret->path = ret->empty = NULL;
	if (ret->lock_fd < 0 || !ret->path || flock(ret->lock_fd, LOCK_EX | LOCK_NB) < 0 ||
	    mkdirat(ret->lock_fd, "none", 0700) < 0 || rename(first, ret->path) < 0) {
		ward_fail_errno(e, "cannot prepare a directory in %.200s", runtime);
		(void)!remove_tree(first);
		return -e->code;
	}
	(void)runtime_fd;
	return 0;
}

int call_place_open(struct call_place *ret, struct ward_err *e)
{
	char link[40], runtime[PATH_MAX];
	auto_fd fd = runtime_open(e);
	ssize_t n;

	*ret = (struct call_place){ .lock_fd = -1 };
	if (fd < 0)
		return fd;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, runtime, sizeof(runtime) - 1);
	if (n <= 0)
		return ward_fail_errno(e, "cannot find the runtime directory");
	runtime[n] = '\0';
	remove_stale(fd);
	return make_place(fd, runtime, ret, e);
}

void call_place_sweep(void)
{
	struct ward_err ignored = { 0 };
	auto_fd fd = runtime_open(&ignored);

	if (fd >= 0)
		remove_stale(fd);
}

/* -- starting */

static int write_policy(const char *path, const struct buf *text, struct ward_err *e)
{
	auto_fd fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r;

	if (text->failed)
		return ward_fail(e, ENOMEM, "out of memory");
	r = fd < 0 ? -errno : io_write_all(fd, buf_text(text), text->len);
	return r < 0 ? ward_fail(e, -r, "cannot write the policy of the call: %s", strerror(-r))
		     : 0;
}

int call_words(const struct call_place *at, const struct policy *p, char *const *argv,
	       struct strv *ret_words, struct ward_err *e)
{
	auto_buf text = { 0 };

	scope_document(p, &text);
	return call_words_in(at, &text, p->fs_workspace, argv, ret_words, e);
}

int call_words_in(const struct call_place *at, const struct buf *document, const char *cwd,
		  char *const *argv, struct strv *ret_words, struct ward_err *e)
{
	auto_free char *ward = NULL;
	auto_free char *policy = NULL;
	int r = program_path("ward", &ward, e);

	if (r < 0)
		return r;
	if (asprintf(&policy, "%s/policy.yaml", at->path) < 0)
		policy = NULL;
	if (!policy)
		return ward_fail(e, ENOMEM, "out of memory");
	r = write_policy(policy, document, e);
	if (r < 0)
		return r;
	strv_add(ret_words, ward);
	strv_add(ret_words, "run");
	strv_add(ret_words, "-p");
	strv_add(ret_words, policy);
	strv_add(ret_words, "-C");
	strv_add(ret_words, cwd);
	strv_add(ret_words, "--report");
	strv_addf(ret_words, "%s/report.json", at->path);
	strv_add(ret_words, "--");
	for (size_t i = 0; argv[i]; i++)
		strv_add(ret_words, argv[i]);
	return ret_words->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

/* Variables that would choose something in place of the tool's scope. */
static void drop_choices(void)
{
	unsetenv("WARD_PROFILE");
	unsetenv("WARD_POLICY");
	unsetenv("WARD_ISOLATION");
}

int call_name(const char *tool, const char *agent, const char *file, const char *policy,
	      struct ward_err *e)
{
	const char *const parts[] = { tool, agent, file, policy };
	auto_buf text = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		buf_printf(&text, "%s%s", i ? "\n" : "",
			   parts[i] && !strchr(parts[i], '\n') ? parts[i] : "");
	if (text.failed || setenv("WARD_TOOL", buf_text(&text), 1) < 0)
		return ward_fail(e, ENOMEM, "out of memory");
	return 0;
}

int call_start(const struct strv *words, const int fds[3], pid_t *ret_pid, struct ward_err *e)
{
	pid_t parent = getpid(), pid = fork();
	sigset_t none;

	if (pid < 0)
		return ward_fail_errno(e, "cannot start ward run");
	if (pid > 0) {
		*ret_pid = pid;
		return 0;
	}
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	drop_choices();
	if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != parent || dup2(fds[0], 0) < 0 ||
	    dup2(fds[1], 1) < 0 || dup2(fds[2], 2) < 0)
		_exit(125);
	execv(words->items[0], words->items);
	_exit(125);
}

/* -- waiting */

struct pump {
	pid_t pid;
	int signal_fd, out_fd, err_fd;
	uint64_t output_max;
	struct call_result *result;
};

/* Reads what there is; false: the end. What is beyond max is read and dropped. */
static bool read_some(int fd, struct buf *to, uint64_t max, bool *ret_over)
{
	char bytes[READ_BYTES];
	ssize_t n = read(fd, bytes, sizeof(bytes));
	size_t room = to->len < max ? (size_t)(max - to->len) : 0;

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return true;
	if (n <= 0)
		return false;
	if ((size_t)n > room)
		*ret_over = true;
	buf_add(to, bytes, (size_t)n < room ? (size_t)n : room);
	return true;
}

static void pass_signal(const struct pump *p)
{
	struct signalfd_siginfo info;

	if (read(p->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		kill(p->pid, (int)info.ssi_signo == SIGINT ? SIGTERM : (int)info.ssi_signo);
}

/* Until both streams have ended. A command that writes more than it may is ended once. */
static void pump(struct pump *p)
{
	struct pollfd fds[] = { { p->out_fd, POLLIN, 0 },
				{ p->err_fd, POLLIN, 0 },
				{ p->signal_fd, POLLIN, 0 } };

	while (fds[0].fd >= 0 || fds[1].fd >= 0) {
		bool over = false, ignored = false;

		if (poll(fds, ARRAY_LEN(fds), -1) < 0 && errno != EINTR)
			break;
		if (fds[2].revents)
			pass_signal(p);
		if (fds[0].revents && !read_some(p->out_fd, &p->result->out, p->output_max, &over))
			fds[0].fd = -1;
		if (fds[1].revents &&
		    !read_some(p->err_fd, &p->result->error, CALL_ERRORS_MAX, &ignored))
			fds[1].fd = -1;
		if (over && !p->result->output_limit) {
			p->result->output_limit = true;
			kill(p->pid, SIGTERM);
		}
		for (size_t i = 0; i < 2; i++)
			fds[i].revents = 0;
	}
}

static int block_signals(sigset_t *ret_old)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, ret_old);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static const struct node *member(const struct node *n, const char *key)
{
	return n && n->kind == NODE_MAP ? node_get(n, key) : NULL;
}

/* The report is ward's own, and still read as if it were not. */
void call_read_report(const struct call_place *at, struct call_result *ret)
{
	struct ward_err ignored = { 0 };
	struct reader r = { .name = "", .e = &ignored };
	auto_buf text = { 0 };
	auto_node root = NULL;
	const struct node *n;

	if (io_read_file(at->lock_fd, "report.json", REPORT_MAX, &text) < 0 || !text.len) {
		ret->refused = true;
		return;
	}
	root = json_read(&r, (const uint8_t *)text.data, text.len);
	n = member(root, "run");
	if (n && n->text)
		snprintf(ret->run_id, sizeof(ret->run_id), "%s", n->text);
	ret->refused = !n || !n->text;
	n = member(root, "duration_ms");
	if (n && n->text)
		ret->duration_ms = strtoull(n->text, NULL, 10);
	n = member(root, "denials");
	for (n = n ? n->first : NULL; n; n = n->next) {
		const struct node *what = member(n, "what"), *why = member(n, "why");

		if (what && what->text)
			strv_addf(&ret->denials, "%s: %s", what->text,
				  why && why->text ? why->text : "");
	}
	n = member(root, "limits");
	for (n = n ? n->first : NULL; n; n = n->next) {
		const struct node *hit = member(n, "hit");

		if (hit && hit->text && *hit->text == 't')
			strv_add(&ret->limits, n->key);
	}
}

static int open_input(const struct buf *input)
{
	int fd = !input ? open("/dev/null", O_RDONLY | O_CLOEXEC)
			: memfd_create("tool-input", MFD_CLOEXEC);

	if (fd >= 0 && input &&
	    (io_write_all(fd, buf_text(input), input->len) < 0 || lseek(fd, 0, SEEK_SET) < 0)) {
		close(fd);
		return -1;
	}
	return fd;
}

int call_run_words(const struct strv *words, const struct call_request *r, struct call_result *ret,
		   struct ward_err *e)
{
	auto_fd in = open_input(r->input);
	int out[2] = { -1, -1 }, err[2] = { -1, -1 }, status = 0, result;
	struct pump p = { .output_max = r->output_max, .result = ret };
	sigset_t old;

	if (in < 0 || pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0) {
		own_close_fd(&out[0]);
		own_close_fd(&out[1]);
		return ward_fail_errno(e, "cannot make the streams of the call");
	}
	p.signal_fd = block_signals(&old);
	result = call_start(words, (int[]){ in, out[1], err[1] }, &p.pid, e);
	close(out[1]);
	close(err[1]);
	p.out_fd = out[0];
	p.err_fd = err[0];
	if (result == 0) {
		pump(&p);
		while (waitpid(p.pid, &status, 0) < 0 && errno == EINTR)
			;
		ret->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	}
	close(out[0]);
	close(err[0]);
	own_close_fd(&p.signal_fd);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return result;
}

int call_run(const struct call_place *at, const struct call_request *r, struct call_result *ret,
	     struct ward_err *e)
{
	auto_strv words = { 0 };
	int result = call_words(at, r->policy, r->argv, &words, e);

	*ret = (struct call_result){ 0 };
	if (result == 0)
		result = call_run_words(&words, r, ret, e);
	if (result == 0)
		call_read_report(at, ret);
	if (result == 0 && (ret->out.failed || ret->error.failed))
		result = ward_fail(e, ENOMEM, "out of memory");
	return result;
}

void call_result_free(struct call_result *r)
{
	buf_free(&r->out);
	buf_free(&r->error);
	strv_free(&r->denials);
	strv_free(&r->limits);
	*r = (struct call_result){ 0 };
}
