/*
 * ward run --notify: desktop notifications. In: every event of a run, on its way to the journal,
 * and the result. Out: notify-send is started at the end of the run, when a limit is reached, when
 * much is refused in a short time, and when a person has to answer a question. Runs in the
 * supervisor as its user, and only with --notify.
 *
 * notify-send is looked for once, before the sandbox starts, in the absolute directories of PATH;
 * one that lies in a tree that the sandbox can write is never used, because the sandbox could have
 * put it there. It is started by execve with an argument vector, with no descriptor of ward's, in a
 * session of its own, by a child that ends at once and is waited for: a notify-send that hangs
 * holds nothing up. Its texts are fixed but for names, of which only plain characters are kept:
 * notification servers read markup, and notify-send reads backslashes. There are at most NOTES_MAX
 * notifications before the one at the end, whatever happens inside.
 */
#include "cli/desktop.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/path.h"
#include "event/event.h"
#include "observe/explain.h"

#define PROGRAM "notify-send"
#define NOTES_MAX 8
#define NAME_BYTES 60
#define BURST_DENIALS 10
#define BURST_MS 10000
#define QUIET_MS 60000
#define LIMITS_KNOWN 8
#define ASKED_QUIET_MS 5000 /* between two about questions */

struct desktop {
	struct event_sink sink; /* first member: the sink that receives events */
	struct event_sink *next;
	char *program;    /* owned; absolute, no link */
	struct buf about; /* the command's name, fit to be shown */
	unsigned sent;
	uint64_t denied;
	struct desktop_burst burst;
	uint64_t asked_ms;
	char limits[LIMITS_KNOWN][32]; /* that were reported */
	size_t limit_count;
};

static struct desktop *of(struct event_sink *s)
{
	return (struct desktop *)(void *)s;
}

/* ---- texts ---- */

void desktop_put_name(struct buf *out, const char *name)
{
	static const char signs[] = "._-/:@+=, []()";
	size_t n = 0;

	for (; name[n] && n < NAME_BYTES; n++) {
		char c = name[n];
		bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			     (c >= '0' && c <= '9') || strchr(signs, c);

		buf_add(out, plain ? &c : "?", 1);
	}
	buf_puts(out, name[n] ? "..." : "");
}

bool desktop_is_burst(struct desktop_burst *b, uint64_t now_ms, uint64_t denials)
{
	if (now_ms - b->since_ms > BURST_MS) {
		b->since_ms = now_ms;
		b->denials = 0;
	}
	if (__builtin_add_overflow(b->denials, denials, &b->denials))
		b->denials = UINT64_MAX;
	if (b->denials < BURST_DENIALS || now_ms < b->quiet_until_ms)
		return false;
	b->quiet_until_ms = now_ms + QUIET_MS;
	return true;
}

/* ---- starting it ---- */

/* In the child of a child: nothing of ward's but its user, environment and directory. */
static void become(const char *program, char *const *argv)
{
	sigset_t none;
	int null_fd = open("/dev/null", O_RDWR);

	for (int s = 1; s < NSIG; s++)
		signal(s, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (null_fd < 0)
		_exit(127);
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (dup2(null_fd, fd) < 0)
			_exit(127);
	if (syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0) < 0 || chdir("/") < 0)
		_exit(127);
	execve(program, argv, environ);
	_exit(127);
}

static void send(const struct desktop *d, bool urgent, const char *title, const struct buf *body)
{
	const char *const words[] = {
		PROGRAM, "--app-name=ward", urgent ? "--urgency=critical" : "--urgency=normal",
		title,   buf_text(body),    NULL
	};
	char *argv[ARRAY_LEN(words)];
	pid_t pid;

	if (body->failed)
		return;
	memcpy(argv, words, sizeof(argv)); /* execve takes them without const */
	pid = fork();
	if (pid == 0) {
		setsid();
		if (fork() == 0)
			become(d->program, argv);
		_exit(0);
	}
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* Before the end: only so often. */
static void send_note(struct desktop *d, const char *title, const struct buf *body)
{
	if (d->sent == NOTES_MAX)
		return;
	d->sent++;
	send(d, true, title, body);
}

/* ---- what happens ---- */

static bool is_new_limit(struct desktop *d, const char *name)
{
	for (size_t i = 0; i < d->limit_count; i++)
		if (strncmp(d->limits[i], name, sizeof(d->limits[i]) - 1) == 0)
			return false;
	if (d->limit_count == LIMITS_KNOWN)
		return false;
	snprintf(d->limits[d->limit_count++], sizeof(d->limits[0]), "%s", name);
	return true;
}

static void take_limit(struct desktop *d, const struct ward_event *v)
{
	const struct event_value *object = event_get(v, FIELD_OBJECT);
	auto_free char *name = object && object->text ? strndup(object->text, object->len) : NULL;
	auto_buf body = { 0 };

	if (!name || !is_new_limit(d, name))
		return;
	buf_add(&body, buf_text(&d->about), d->about.len);
	buf_puts(&body, " reached its limit on ");
	desktop_put_name(&body, name);
	send_note(d, "ward: limit reached", &body);
}

static void take_denial(struct desktop *d, const struct ward_event *v)
{
	const struct event_value *count = event_get(v, FIELD_COUNT),
				 *object = event_get(v, FIELD_OBJECT);
	uint64_t denials = count ? count->number : 1;
	auto_free char *name = object && object->text ? strndup(object->text, object->len) : NULL;
	auto_buf body = { 0 };

	if (__builtin_add_overflow(d->denied, denials, &d->denied))
		d->denied = UINT64_MAX;
	if (!desktop_is_burst(&d->burst, io_now_ms(), denials))
		return;
	buf_add(&body, buf_text(&d->about), d->about.len);
	buf_printf(&body, " was refused %" PRIu64 " times in a short time, last ",
		   d->burst.denials);
	desktop_put_name(&body, name ? name : "something without a name");
	buf_puts(&body, "; ward explain shows the reasons");
	send_note(d, "ward: many denials", &body);
}

/* A person is wanted: not one of NOTES_MAX, but only so often. */
static void take_question(struct desktop *d, const struct ward_event *v)
{
	const struct event_value *object = event_get(v, FIELD_OBJECT);
	auto_free char *name = object && object->text ? strndup(object->text, object->len) : NULL;
	auto_buf body = { 0 };
	uint64_t now = io_now_ms();

	if (d->asked_ms && now < d->asked_ms + ASKED_QUIET_MS)
		return;
	d->asked_ms = now;
	buf_add(&body, buf_text(&d->about), d->about.len);
	buf_puts(&body, " asks for ");
	desktop_put_name(&body, name ? name : "something without a name");
	buf_puts(&body, "; ward approve");
	send(d, true, "ward: a question waits", &body);
}

static int on_begin(struct event_sink *s, const char *run, struct ward_err *e)
{
	return event_begin(of(s)->next, run, e);
}

static void on_take(struct event_sink *s, const struct ward_event *v)
{
	event_emit(of(s)->next, v);
	if (v->kind == EVENT_LIMIT || v->kind == EVENT_NET_LIMIT)
		take_limit(of(s), v);
	else if (v->kind == EVENT_APPROVAL_ASK)
		take_question(of(s), v);
	else if (v->kind != EVENT_FILE_MISSING && v->kind != EVENT_RUN_END && explain_is_denial(v))
		take_denial(of(s), v);
}

static int on_flush(struct event_sink *s, struct ward_err *e)
{
	return event_flush(of(s)->next, e);
}

/* ---- finding it ---- */

/* Whether the sandbox could have written it. */
static bool is_exposed(const struct plan *p, const char *program)
{
	for (size_t i = 0; i < p->live->root_count; i++)
		if (path_is_beneath(program, p->live->roots[i].path))
			return true;
	return p->workspace && path_is_beneath(program, p->workspace);
}

/* The first one in PATH that may be used. The caller frees. */
static char *find_program(const struct plan *p)
{
	const char *at = getenv("PATH");

	while (at && *at) {
		size_t n = strcspn(at, ":");
		char path[PATH_MAX];
		char *real;
		struct stat st;

		if (*at == '/' &&
		    (size_t)snprintf(path, sizeof(path), "%.*s/" PROGRAM, (int)n, at) <
			    sizeof(path) &&
		    (real = realpath(path, NULL))) {
			if (stat(real, &st) == 0 && S_ISREG(st.st_mode) &&
			    access(real, X_OK) == 0 && !is_exposed(p, real))
				return real;
			free(real);
		}
		at += n + (at[n] == ':');
	}
	return NULL;
}

struct desktop *desktop_create(const struct plan *p, struct result *r)
{
	static const char absent[] = "--notify: no notifications: " PROGRAM
				     " is not in PATH (Debian: apt install libnotify-bin), or "
				     "lies where the sandbox can write";
	struct desktop *d = calloc(1, sizeof(*d));
	const char *command = p->argv && p->argv[0] ? p->argv[0] : "the sandbox";
	const char *slash = strrchr(command, '/');

	if (!d) {
		strv_add(&r->notes, "out of memory: no notifications");
		return NULL;
	}
	d->program = find_program(p);
	desktop_put_name(&d->about, slash && slash[1] ? slash + 1 : command);
	if (!d->program || d->about.failed) {
		strv_add(&r->notes, absent);
		strv_add(&r->loud, absent);
		desktop_destroy(d);
		return NULL;
	}
	d->sink = (struct event_sink){ .begin = on_begin, .take = on_take, .flush = on_flush };
	d->next = r->events;
	r->events = &d->sink;
	return d;
}

void desktop_end(struct desktop *d, const struct result *r)
{
	auto_buf body = { 0 };
	bool fine = r->exit_code == 0;

	if (!d || r->refused)
		return;
	buf_add(&body, buf_text(&d->about), d->about.len);
	buf_printf(&body, ": exit %d after %" PRIu64 ".%u s", r->exit_code, r->duration_ms / 1000,
		   (unsigned)(r->duration_ms / 100 % 10));
	if (d->denied)
		buf_printf(&body, ", %" PRIu64 " denied: ward explain %s", d->denied, r->run_id);
	send(d, false, fine ? "ward: run finished" : "ward: run failed", &body);
}

void desktop_destroy(struct desktop *d)
{
	if (!d)
		return;
	free(d->program);
	buf_free(&d->about);
	free(d);
}
