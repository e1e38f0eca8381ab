/*
 * Scanners of others before an apply (--scanner). In: the changes of a review, the names of
 * scanners. Out: what they find. The changed files are copied, as plain files without their modes,
 * links and owners, into a directory of their own; a sandbox without a network sees that directory
 * read-only, at LOOKED_AT, and runs the scanner. Its workspace is another, empty directory, so no
 * policy, ignore file or setting among the changes has a say. What the scanner prints is read by
 * review/look_other.c. Runs with the user's rights; the scanner, which reads what a sandbox wrote,
 * has those of a sandbox.
 */
#include "cli/look_outside.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/json.h"
#include "base/path.h"
#include "base/remove.h"
#include "host/program.h"
#include "review/apply.h"
#include "review/look_other.h"

#define LOOKED_AT "/srv/changes"
#define FILE_MAX (64u << 20) /* bytes of one file that are looked at */
#define ALL_MAX (1u << 30)
#define SAID_MAX (16u << 20)
#define TIMEOUT_SECONDS 900

enum form { SARIF, LINES };
enum takes_rules { NO, YES };

static const struct known {
	const char *name;
	enum form form;
	enum takes_rules rules;
	const char *words, *get;
} known[] = {
#define SCANNER(name, form, rules, words, get) { name, form, rules, words, get },
#include "scanners.def"
};

/* One scanner as it was asked for. */
struct scanner {
	char *text;                /* owned; the other strings point into it */
	const char *name, *rules;  /* NULL: it takes none */
	const char *program;       /* a path of the host's, NULL: the name is found inside */
	const struct known *known; /* NULL: a program that prints SARIF */
	char *real, *real_rules;   /* links resolved; owned; NULL: not needed */
};

static void scanner_clear(struct scanner *s)
{
	free(s->text);
	free(s->real);
	free(s->real_rules);
	*s = (struct scanner){ 0 };
}

static int fail_scanner(const char *word, const char *why, struct ward_err *e)
{
	ward_fail(e, EINVAL, "--scanner %.100s: %s", word, why);
	return ward_remedy(e, "clamscan, semgrep=RULES, or /PATH of a program that prints SARIF; "
			      "several with commas between them");
}

static int read_known(struct scanner *s, const char *word, struct ward_err *e)
{
	char *equals = strchr(s->text, '=');

	if (equals) {
		*equals = '\0';
		s->rules = equals + 1;
	}
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (strcmp(known[i].name, s->text) == 0)
			s->known = &known[i];
	if (!s->known)
		return fail_scanner(word, "ward does not know it", e);
	if ((s->known->rules == YES) != (s->rules && *s->rules))
		return fail_scanner(word, s->rules ? "it takes no rules" : "it needs rules", e);
	s->name = s->text;
	s->real_rules = s->rules ? realpath(s->rules, NULL) : NULL;
	if (s->rules && !s->real_rules)
		return ward_fail_errno(e, "--scanner %.100s: cannot find the rules", word);
	return 0;
}

static int read_scanner(const char *word, size_t n, struct scanner *ret, struct ward_err *e)
{
	struct scanner s = { .text = strndup(word, n) };
	const char *slash;
	int r = 0;

	if (!s.text)
		return ward_fail(e, ENOMEM, "out of memory");
	if (strchr(s.text, '/') && (!strchr(s.text, '=') || *s.text == '/')) {
		s.program = s.text;
		s.real = realpath(s.text, NULL);
		slash = strrchr(s.text, '/');
		s.name = slash[1] ? slash + 1 : "scanner";
		if (!s.real || access(s.real, X_OK) < 0)
			r = ward_fail_errno(e, "--scanner %.200s: cannot run it", s.text);
	} else {
		r = read_known(&s, s.text, e);
	}
	if (r < 0)
		scanner_clear(&s);
	else
		*ret = s;
	return r;
}

/* -- copies of what has changed */

static int make_parents(int dir_fd, char *path, struct ward_err *e)
{
	for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdirat(dir_fd, path, 0755) < 0 && errno != EEXIST)
			return ward_fail_errno(e, "cannot copy the changes");
		*slash = '/';
	}
	return 0;
}

static int copy_bytes(int from_fd, int to_fd, uint64_t *total, struct ward_err *e)
{
	char bytes[65536];
	size_t copied = 0;
	ssize_t n;
	int r;

	while (copied < FILE_MAX && (n = read(from_fd, bytes, sizeof(bytes))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return ward_fail_errno(e, "cannot read a change");
		r = io_write_all(to_fd, bytes, (size_t)n);
		if (r < 0)
			return ward_fail(e, -r, "cannot copy the changes: %s", strerror(-r));
		copied += (size_t)n;
		*total += (size_t)n;
		if (*total > ALL_MAX) {
			ward_fail(e, E2BIG, "the changes are too large for a scanner");
			return ward_remedy(e, "name some of the paths, or leave --scanner out");
		}
	}
	return 0;
}

/* Where it lies among the copies. A list of what the sandbox is not to read would hide the others
 * from the scanner as well: it has another name there. */
static char *copy_name(const char *path)
{
	static const char list[] = ".aiignore";
	const char *slash = strrchr(path, '/');
	auto_buf out = { 0 };

	buf_puts(&out, path);
	if (strcmp(slash ? slash + 1 : path, list) == 0)
		buf_puts(&out, "~copy");
	return buf_take(&out);
}

static int copy_one(const struct review *r, int dir_fd, const char *path, uint64_t *total,
		    struct ward_err *e)
{
	auto_fd from = path_open_nolink(r->upper_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, e),
		to = -1;
	auto_free char *name = copy_name(path);
	struct stat st;

	if (from < 0)
		return ward_wrap(e, "copying %.200s", path);
	if (!name)
		return ward_fail(e, ENOMEM, "out of memory");
	if (fstat(from, &st) < 0 || !S_ISREG(st.st_mode))
		return ward_fail(e, EBUSY, "%.200s is another file by now", path);
	if (make_parents(dir_fd, name, e) < 0)
		return -e->code;
	to = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	return to < 0 ? ward_fail_errno(e, "cannot copy the changes")
		      : copy_bytes(from, to, total, e);
}

static int copy_changes(const struct review *r, const struct changes *all, const struct strv *paths,
			int dir_fd, size_t *ret_count, struct ward_err *e)
{
	uint64_t total = 0;
	int status = 0;

	*ret_count = 0;
	for (size_t i = 0; i < all->len && status == 0; i++) {
		const struct change *c = &all->items[i];

		if (c->implied || !S_ISREG(c->new_mode) || !apply_is_selected(paths, c->path))
			continue;
		status = copy_one(r, dir_fd, c->path, &total, e);
		++*ret_count;
	}
	return status;
}

/* -- the sandbox */

/* Signals that would end ward wait until the copies are removed. */
struct held {
	sigset_t old;
	int fd; /* owned; readable when one is pending */
};

static int hold_signals(struct held *ret, struct ward_err *e)
{
	sigset_t ends;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	ret->fd = -1;
	if (sigprocmask(SIG_BLOCK, &ends, &ret->old) == 0)
		ret->fd = signalfd(-1, &ends, SFD_CLOEXEC);
	return ret->fd < 0 ? ward_fail_errno(e, "cannot hold signals") : 0;
}

static void release_signals(struct held *h)
{
	own_close_fd(&h->fd);
	(void)sigprocmask(SIG_SETMASK, &h->old, NULL);
}

static void put_mount(struct json *j, const char *path, const char *at)
{
	json_begin_object(j, NULL);
	json_string(j, "path", path);
	json_string(j, "at", at);
	json_string(j, "mode", "read_only");
	json_end_object(j);
}

/* Names of its own, so that neither can stand for another file of the sandbox. */
#define PROGRAM_AT "/srv/scanner"
#define RULES_AT "/srv/rules"

static int write_policy(const struct scanner *s, const char *changes, int dir_fd,
			struct ward_err *e)
{
	auto_buf out = { 0 };
	struct json j = { .out = &out };
	auto_fd fd = -1;
	int r;

	json_begin_object(&j, NULL);
	json_uint(&j, "version", 1);
	json_begin_object(&j, "filesystem");
	json_string(&j, "mode", "read_only");
	json_begin_array(&j, "host_mounts");
	put_mount(&j, changes, LOOKED_AT);
	if (s->real)
		put_mount(&j, s->real, PROGRAM_AT);
	if (s->real_rules)
		put_mount(&j, s->real_rules, RULES_AT);
	if (s->known && strcmp(s->name, "clamscan") == 0 && access("/var/lib/clamav", R_OK) == 0)
		put_mount(&j, "/var/lib/clamav", "/var/lib/clamav");
	json_end_array(&j);
	json_end_object(&j);
	json_begin_object(&j, "network");
	json_string(&j, "mode", "none");
	json_end_object(&j);
	json_begin_object(&j, "resources");
	json_uint(&j, "timeout_seconds", TIMEOUT_SECONDS);
	json_end_object(&j);
	json_end_object(&j);
	if (out.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	fd = openat(dir_fd, "policy.json", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
		    0600);
	r = fd < 0 ? -errno : io_write_all(fd, out.data, out.len);
	return r < 0 ? ward_fail(e, -r, "cannot write the scanner's policy: %s", strerror(-r)) : 0;
}

static void put_words(const struct scanner *s, struct strv *argv)
{
	const char *at = s->known ? s->known->words : "";

	strv_add(argv, s->real ? PROGRAM_AT : s->name);
	while (*at) {
		size_t n = strcspn(at, " ");

		strv_addf(argv, "%.*s", (int)n, at);
		at += n + (at[n] == ' ');
	}
	if (s->real_rules)
		strv_add(argv, RULES_AT);
	strv_add(argv, LOOKED_AT);
}

static _Noreturn void become(char *const *argv, int out_fd, const sigset_t *signals)
{
	struct ward_err e = { 0 };
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (sigprocmask(SIG_SETMASK, signals, NULL) < 0 || null_fd < 0 ||
	    dup2(null_fd, STDIN_FILENO) < 0 || dup2(out_fd, STDOUT_FILENO) < 0)
		_exit(EXIT_REFUSED);
	(void)!program_become(argv, &e);
	(void)say_error(&e, false, EXIT_REFUSED);
	_exit(EXIT_REFUSED);
}

/* Reads until the end; a signal is passed on, and its own end comes when the copies are gone. */
static int read_until_end(int fd, int signal_fd, pid_t pid, struct buf *said)
{
	struct pollfd p[] = { { .fd = fd, .events = POLLIN },
			      { .fd = signal_fd, .events = POLLIN } };
	char bytes[16384];

	for (;;) {
		ssize_t n;

		if (poll(p, ARRAY_LEN(p), -1) < 0 && errno != EINTR)
			return -errno;
		if (p[1].revents) { /* it stays pending for the caller */
			(void)kill(pid, SIGTERM);
			return -EINTR;
		}
		n = p[0].revents ? read(fd, bytes, sizeof(bytes)) : -1;
		if (n == 0)
			return 0;
		if (n < 0 && p[0].revents && errno != EINTR)
			return -errno;
		if (n > 0)
			buf_add(said, bytes, (size_t)n);
		if (said->failed || said->len > SAID_MAX)
			return -E2BIG;
	}
}

static int run_sandboxed(const struct scanner *s, const char *top, const struct held *held,
			 struct buf *said, int *ret_status, struct ward_err *e)
{
	auto_free char *policy = path_join(top, "policy.json"), *empty = path_join(top, "empty");
	auto_strv argv = { 0 };
	int ends[2], r;
	pid_t pid;

	if (!policy || !empty)
		return ward_fail(e, ENOMEM, "out of memory");
	strv_add(&argv, "ward");
	strv_add(&argv, "run");
	strv_add(&argv, "--quiet");
	strv_add(&argv, "--policy");
	strv_add(&argv, policy);
	strv_add(&argv, "--workspace");
	strv_add(&argv, empty);
	strv_add(&argv, "--");
	put_words(s, &argv);
	if (argv.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	if (pipe2(ends, O_CLOEXEC) < 0)
		return ward_fail_errno(e, "cannot make a pipe");
	pid = fork();
	if (pid == 0)
		become(argv.items, ends[1], &held->old);
	close(ends[1]);
	r = pid < 0 ? -errno : read_until_end(ends[0], held->fd, pid, said);
	close(ends[0]);
	if (pid > 0 && r < 0)
		(void)kill(pid, SIGTERM);
	while (pid > 0 && waitpid(pid, ret_status, 0) < 0 && errno == EINTR)
		;
	return r < 0 ? ward_fail(e, -r, "%s: %s", s->name,
				 r == -E2BIG ? "it says too much" : strerror(-r))
		     : 0;
}

static int read_said(const struct scanner *s, const struct buf *said, int status,
		     struct look_findings *found, struct ward_err *e)
{
	bool lines = s->known && s->known->form == LINES;
	struct look_findings new = { 0 };
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1, r;

	/* 1: it has found something */
	if (code != 0 && code != 1) {
		ward_fail(e, EIO, "%s ended with status %d", s->name, code);
		return ward_remedy(e, "%s%s", code == 127 && s->known ? "to install it: " : "",
				   code == 127 && s->known ? s->known->get
							   : "what it says stands above");
	}
	r = (lines ? look_other_lines : look_other_sarif)((const uint8_t *)buf_text(said),
							  said->len, s->name, LOOKED_AT, &new);
	if (r == 0 && lines && code == 1 && !new.len)
		r = -EINVAL;
	if (r < 0)
		return ward_fail(e, EPROTO, "%s: cannot read what it says", s->name);
	for (size_t i = 0; i < new.len &&r == 0; i++)
		r = look_add(found, &new.items[i]);
	look_clear(&new);
	return r < 0 ? ward_fail(e, E2BIG, "%s: it finds too much", s->name) : 0;
}

static int scan(const struct scanner *s, const char *top, int dir_fd, const struct held *held,
		struct look_findings *found, struct ward_err *e)
{
	auto_free char *changes = path_join(top, "changes");
	auto_buf said = { 0 };
	int status = 0, r;

	if (!changes)
		return ward_fail(e, ENOMEM, "out of memory");
	r = write_policy(s, changes, dir_fd, e);
	if (r == 0)
		r = run_sandboxed(s, top, held, &said, &status, e);
	return r == 0 ? read_said(s, &said, status, found, e) : r;
}

/* -- all of it */

static int scan_all(const char *list, const char *top, int dir_fd, const struct held *held,
		    struct look_findings *found, struct ward_err *e)
{
	int r = 0;

	for (size_t n; *list && r == 0; list += n + (list[n] == ',')) {
		struct scanner s = { 0 };

		n = strcspn(list, ",");
		r = read_scanner(list, n, &s, e);
		if (r == 0)
			r = scan(&s, top, dir_fd, held, found, e);
		scanner_clear(&s);
	}
	return r;
}

/* A misspelt one is an error before anything is copied. */
static int check(const char *list, struct ward_err *e)
{
	int r = *list ? 0 : fail_scanner("", "no scanner", e);

	for (size_t n; *list && r == 0; list += n + (list[n] == ',')) {
		struct scanner s = { 0 };

		n = strcspn(list, ",");
		r = read_scanner(list, n, &s, e);
		scanner_clear(&s);
	}
	return r;
}

/* In a directory that goes again. */
static int look_in(const char *top, const struct options *o, const struct review *r,
		   const struct changes *all, const struct strv *paths, const struct held *held,
		   struct look_findings *found, struct ward_err *e)
{
	auto_fd dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC), changes = -1;
	size_t count = 0;
	int status;

	if (dir < 0 || mkdirat(dir, "empty", 0755) < 0 || mkdirat(dir, "changes", 0755) < 0 ||
	    (changes = openat(dir, "changes", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		return ward_fail_errno(e, "cannot make a directory in /tmp");
	status = copy_changes(r, all, paths, changes, &count, e);
	return status == 0 && count ? scan_all(o->scanner, top, dir, held, found, e) : status;
}

int look_outside(const struct options *o, const struct review *r, const struct changes *all,
		 const struct strv *paths, struct look_findings *found, struct ward_err *e)
{
	char top[] = "/tmp/ward-look-XXXXXX";
	struct held held;
	int status;

	if (!o->scanner)
		return 0;
	status = check(o->scanner, e);
	if (status < 0)
		return status;
	status = hold_signals(&held, e);
	if (status < 0)
		return status;
	if (!mkdtemp(top)) {
		status = ward_fail_errno(e, "cannot make a directory in /tmp");
	} else {
		status = look_in(top, o, r, all, paths, &held, found, e);
		if (remove_tree(top) < 0 && status == 0)
			status = ward_fail(e, EIO, "cannot remove %s", top);
	}
	release_signals(&held); /* one that came ends ward here */
	return status < 0 ? ward_wrap(e, "looking through the changes") : 0;
}
