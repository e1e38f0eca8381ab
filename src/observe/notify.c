/*
 * Denied system calls as events.
 *
 * In: the listener that came with the sandbox's filter. Out: an answer for every call that waits
 * there, and entries in the result's denials. Runs in the supervisor's loop with the user's rights.
 * The answer is EPERM whatever the call's arguments are: nothing behind a pointer decides, so there
 * is nothing to race. Only execve is answered with CONTINUE, which every set allows and which comes
 * here only to be seen (exec_watch.c), and to those that were asked to be shown (observe.c). An
 * open of a file that a person is asked about waits, and gets a descriptor of ours (file_ask.c).
 * Only on the Landlock level some calls are made on behalf of the sandbox (syscall_broker.c).
 *
 * A hostile caller can make calls as fast as it likes. Each tenth of a second has a budget; when it
 * is spent, callers wait in the kernel and the supervisor sleeps. What a caller is called (its
 * program's path) is its own choice: it is escaped and cut. A caller that dies while its call waits
 * is no error.
 *
 * RECV sleeps when nothing waits, so each is preceded by a poll: what poll saw stays receivable, at
 * worst as ENOENT.
 */
#include "observe/notify.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "base/io.h"
#include "base/text.h"
#include "event/event.h"
#include "event/result.h"
#include "observe/exec_watch.h"
#include "observe/listeners.h"
#include "observe/missing.h"
#include "observe/observe.h"
#include "observe/provenance.h"
#include "observe/syscall_broker.h"
#include "observe/unreached.h"

enum from { FROM_STRICT, FROM_DEFAULT, FROM_BUILD, FROM_NESTING, FROM_NEVER };

/* Offsets into texts[]. */
struct call {
	uint16_t name, why, rule_why, rule_remedy, level_why;
	uint8_t from;  /* enum from */
	uint8_t level; /* closed or changed on the Landlock level */
};

#include "seccomp-calls.h"

/* linux/seccomp.h has them since 6.6 */
#define NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#define NOTIF_SYNC_WAKE_UP 1UL

#define WINDOW_MS 100
/* of costs: 1,000 denials, 10,000 brokered calls or 50,000 that are only seen a second */
#define WINDOW_BUDGET 5000
#define COST_DENIAL 50
#define COST_BROKERED 5
#define COST_EXEC 5
#define COST_SEEN 1
#define RECORDED_EACH 100
#define REPORT_MS 1000 /* between two events that only count */
#define EXE_SHOWN_MAX 200

struct notify {
	int fd;
	const struct plan *plan;
	struct syscall_broker *broker; /* NULL: not on the Landlock level */
	struct exec_watch *execs;      /* NULL: not wanted */
	struct missing *missing;       /* likewise */
	struct file_ask *files;        /* NULL: nobody is asked about files */
	struct unreached unreached;
	struct listeners *listeners;   /* borrowed; NULL: not wanted */
	struct observation *seen;      /* the last call that was shown; NULL: none was yet */
	unsigned shown;                /* OBSERVE_*: what is shown */
	struct seccomp_notif *request; /* as long as the kernel's */
	struct seccomp_notif_resp *answer;
	size_t request_len, answer_len;
	uint64_t window_start_ms;
	unsigned window_spent;
	uint64_t reported_ms;
	uint64_t unreported;                     /* denials that no event tells yet */
	uint16_t recorded[ARRAY_LEN(calls) + 1]; /* the last one: numbers without a row */
};

static int allocate(struct notify *n, struct ward_err *e)
{
	struct seccomp_notif_sizes sizes;

	if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) < 0)
		return ward_fail_errno(e,
				       "the kernel does not report the size of its notifications");
	n->request_len = sizes.seccomp_notif > sizeof(*n->request) ? sizes.seccomp_notif
								   : sizeof(*n->request);
	n->answer_len = sizes.seccomp_notif_resp > sizeof(*n->answer) ? sizes.seccomp_notif_resp
								      : sizeof(*n->answer);
	n->request = calloc(1, n->request_len);
	n->answer = calloc(1, n->answer_len);
	if (!n->request || !n->answer)
		return ward_fail(e, ENOMEM, "out of memory");
	return 0;
}

static int begin_observing(struct notify *n, unsigned wanted, struct ward_err *e)
{
	if (!wanted)
		return 0;
	n->execs = wanted & OBSERVE_EXEC ? exec_watch_create(n->plan) : NULL;
	n->missing = wanted & OBSERVE_LOOKS ? missing_create() : NULL;
	if ((wanted & OBSERVE_EXEC && !n->execs) || (wanted & OBSERVE_LOOKS && !n->missing))
		return ward_fail(e, ENOMEM, "out of memory");
	/* since 6.6: the answer comes sooner */
	(void)ioctl(n->fd, NOTIF_SET_FLAGS, NOTIF_SYNC_WAKE_UP);
	return 0;
}

int notify_create(int fd, const struct plan *p, struct notify **ret_notify, struct ward_err *e)
{
	struct notify *n = calloc(1, sizeof(*n));
	bool failed = false;
	int r;

	if (!n) {
		close(fd);
		return ward_fail(e, ENOMEM, "out of memory");
	}
	n->fd = fd;
	n->plan = p;
	n->shown = observe_shown(p);
	r = allocate(n, e);
	if (r == 0 && p->level == LEVEL_LANDLOCK)
		r = syscall_broker_create(p, &n->broker, e);
	if (r == 0)
		r = begin_observing(n, observe_wanted(p), e);
	n->files = r == 0 ? file_ask_create(p, fd, &failed) : NULL;
	if (failed)
		r = ward_fail(e, ENOMEM, "out of memory");
	if (r < 0) {
		notify_destroy(n);
		return r;
	}
	*ret_notify = n;
	return 0;
}

void notify_listen(struct notify *n, struct listeners *l)
{
	n->listeners = l;
}

int notify_fd(const struct notify *n)
{
	return n->fd;
}

void notify_destroy(struct notify *n)
{
	if (!n)
		return;
	file_ask_destroy(n->files);
	close(n->fd);
	syscall_broker_destroy(n->broker);
	exec_watch_destroy(n->execs);
	missing_destroy(n->missing);
	free(n->seen);
	free(n->request);
	free(n->answer);
	free(n);
}

static const struct call *find_call(int nr)
{
	if (nr < 0 || (size_t)nr >= ARRAY_LEN(calls) || !calls[nr].name)
		return NULL;
	return &calls[nr];
}

static const char *text(uint16_t offset)
{
	return texts + offset;
}

/* The caller's pid as the sandbox knows it: one level beneath ours, however many it has made
 * beneath its own. */
static int inner_pid(int proc_fd, pid_t pid)
{
	static const char key[] = "\nNSpid:";
	auto_buf status = { 0 };
	const char *at;
	int shown = pid;

	if (io_read_file(proc_fd, "status", 16384, &status) < 0)
		return pid;
	at = strstr(buf_text(&status), key);
	at = at ? at + sizeof(key) - 1 : "";
	for (int level = 0; level < 2; level++) {
		char *end;

		at += strspn(at, "\t ");
		if (*at < '0' || *at > '9')
			break;
		shown = (int)strtol(at, &end, 10);
		at = end;
	}
	return shown;
}

/* "system call NAME by pid 12 (/usr/bin/python3)" */
static void describe(struct buf *what, const char *name, pid_t pid)
{
	char path[32], exe[EXE_SHOWN_MAX + 1];
	auto_fd proc_fd = -1;
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d", pid);
	proc_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (proc_fd < 0) {
		buf_printf(what, "system call %s", name);
		return;
	}
	buf_printf(what, "system call %s by pid %d", name, inner_pid(proc_fd, pid));
	len = readlinkat(proc_fd, "exe", exe, sizeof(exe) - 1);
	if (len <= 0)
		return;
	exe[len] = '\0';
	buf_puts(what, " (");
	text_escape(what, exe);
	buf_puts(what, ")");
}

static bool is_given(const struct notify *n, const struct call *c)
{
	const struct policy *policy = &n->plan->spec->policy;

	return c->from == FROM_NESTING ? policy->proc_nesting : c->from <= policy->proc_syscalls;
}

static void explain(const struct notify *n, const struct call *c, char *why, size_t why_len,
		    const char **remedy)
{
	static const char *const sets[] = { "strict", "default", "build" };
	static const char *const wider[] = { "", "process.syscalls: default",
					     "process.syscalls: build", "process.nesting: true",
					     "" };

	*remedy = wider[c->from];
	if (is_given(n, c)) {
		if (n->broker && c->level) {
			*remedy =
				"it needs user namespaces; `ward doctor` shows how to enable them";
			snprintf(why, why_len, "%s",
				 c->level_why ? text(c->level_why)
					      : "not available without namespaces");
			return;
		}
		*remedy = text(c->rule_remedy);
		snprintf(why, why_len, "%s", text(c->rule_why));
	} else if (c->from == FROM_NESTING) {
		snprintf(why, why_len,
			 "it needs a namespace of its own (unshare -Ur), which a sandbox may not "
			 "create");
	} else if (c->from == FROM_NEVER) {
		snprintf(why, why_len, "%s", text(c->why));
	} else {
		snprintf(why, why_len, "not in the %s set",
			 sets[n->plan->spec->policy.proc_syscalls]);
	}
}

/* The same as an event; the first ones one by one, then how many more there were each time the
 * window closes (see notify_handle). */
static void report(int nr, pid_t pid, const char *name, const char *why, const char *remedy,
		   struct result *r)
{
	struct ward_event v = event_make(EVENT_SYSCALL, ACTION_DENY, name);
	char path[32], exe[EXE_SHOWN_MAX + 1];
	auto_fd proc_fd = -1;
	ssize_t len = 0;

	if (!r->events)
		return;
	snprintf(path, sizeof(path), "/proc/%d", pid);
	proc_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (proc_fd >= 0) {
		event_number(&v, FIELD_PID, (uint64_t)inner_pid(proc_fd, pid));
		len = readlinkat(proc_fd, "exe", exe, sizeof(exe));
	}
	event_bytes(&v, FIELD_EXE, len > 0 ? exe : NULL, len > 0 ? (size_t)len : 0);
	event_number(&v, FIELD_VALUE, (uint64_t)nr);
	event_text(&v, FIELD_RULE, "seccomp");
	event_text(&v, FIELD_WHY, why);
	event_text(&v, FIELD_REMEDY, *remedy ? remedy : NULL);
	event_emit(r->events, &v);
}

static void record(struct notify *n, int nr, pid_t pid, struct result *r)
{
	const struct call *c = find_call(nr);
	uint16_t *recorded = &n->recorded[c ? (size_t)nr : ARRAY_LEN(calls)];
	const char *remedy = "", *name = c ? text(c->name) : "without a name";
	auto_buf what = { 0 };
	char why[256] = "not a known system call";

	if (c)
		explain(n, c, why, sizeof(why), &remedy);
	if (*recorded < RECORDED_EACH) {
		(*recorded)++;
		describe(&what, name, pid);
		report(nr, pid, name, why, remedy, r);
	} else {
		buf_printf(&what, "system call %s, more of them", name);
		n->unreported++;
	}
	if (!what.failed)
		result_deny(r, buf_text(&what), why, remedy);
}

/* Receives one. 0: n->request is filled; -ENOENT: its caller is gone; -EAGAIN: nothing waits. */
static int receive(struct notify *n)
{
	struct pollfd ready = { .fd = n->fd, .events = POLLIN };

	if (poll(&ready, 1, 0) <= 0 || !(ready.revents & POLLIN))
		return -EAGAIN;
	memset(n->request, 0, n->request_len);
	return ioctl(n->fd, SECCOMP_IOCTL_NOTIF_RECV, n->request) < 0 ? -errno : 0;
}

static void answer(struct notify *n, int error)
{
	memset(n->answer, 0, n->answer_len);
	n->answer->id = n->request->id;
	n->answer->error = error;
	/* ENOENT: the caller is gone. Any other failure leaves it waiting, which harms only itself.
	 */
	(void)ioctl(n->fd, SECCOMP_IOCTL_NOTIF_SEND, n->answer);
}

/* Whether it is an open that a person is asked about; then it waits, or was answered. */
static bool is_asked(struct notify *n, struct result *r)
{
	const struct seccomp_notif *q = n->request;
	int error = 0;

	if (!n->files || q->data.arch != AUDIT_ARCH_X86_64 ||
	    (q->data.nr != SYS_open && q->data.nr != SYS_openat))
		return false;
	if (!n->seen)
		n->seen = calloc(1, sizeof(*n->seen));
	if (!n->seen || observe_denied(q) || !observe_look(n->fd, q, n->seen) ||
	    !file_ask_take(n->files, q, n->seen, r, &error))
		return false;
	n->window_spent += COST_BROKERED;
	if (error)
		answer(n, -error);
	return true;
}

/* A call that was asked to be shown: it goes on whatever was seen. The filter sends this here only
 * where its set allows it. */
static void pass_shown(struct notify *n, bool starts, struct result *r)
{
	bool whole = provenance_follows_hosts(r->provenance), seen = false;

	/* a program that is started is read by exec_watch.c, too */
	if (starts ? whole || n->missing : n->shown & ~(unsigned)OBSERVE_EXEC) {
		/* not at the start: many runs never show anything. Without memory it is not seen */
		if (!n->seen)
			n->seen = calloc(1, sizeof(*n->seen));
		seen = n->seen && observe_look(n->fd, n->request, n->seen);
	}
	n->window_spent += starts ? COST_EXEC : COST_SEEN;
	if (n->listeners && n->request->data.nr == SYS_listen)
		listeners_saw(n->listeners, n->fd, n->request, io_now_ms());
	if (starts)
		exec_watch_look(n->execs, n->fd, n->request);
	if (seen && n->missing)
		missing_look(n->missing, n->seen);
	if (seen && !n->plan->net.on)
		unreached_prepare(&n->unreached, n->seen);
	if (seen && r->provenance && (whole || !starts)) {
		size_t len = 0;
		const char *words = starts ? exec_watch_words(n->execs, &len) : NULL;

		provenance_saw(r->provenance, n->seen, words, len);
		/* a rule that waits for a label must know before the caller goes on */
		if (n->plan->spec->policy.watch_labels.len)
			provenance_tell_reads(r->provenance, r, false);
	} else if (starts) {
		provenance_began(r->provenance, (pid_t)n->request->pid);
	}
	memset(n->answer, 0, n->answer_len);
	n->answer->id = n->request->id;
	n->answer->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	(void)ioctl(n->fd, SECCOMP_IOCTL_NOTIF_SEND, n->answer);
	if (starts)
		exec_watch_report(n->execs, r);
	if (seen && n->missing)
		missing_report(n->missing, r);
	if (seen && !n->plan->net.on)
		unreached_report(&n->unreached, n->seen, r);
}

/* Whether the filter has sent the call only to be seen. One with set-id bits in its mode was not
 * shown: it is denied. */
static bool is_shown(const struct notify *n, const struct seccomp_notif *q)
{
	if (q->data.arch != AUDIT_ARCH_X86_64)
		return false;
	if (exec_watch_knows(q->data.nr))
		return n->execs;
	return observe_knows(q->data.nr, n->shown) && !observe_denied(q);
}

/* libseccomp asks which flags the kernel knows with a filter that is not there (QEMU does at every
 * start): whatever the answer is, nothing was wanted, and nothing is denied. */
static bool is_question(const struct seccomp_notif *q)
{
	return q->data.nr == SYS_seccomp && q->data.args[0] == SECCOMP_SET_MODE_FILTER &&
	       q->data.args[2] == 0;
}

static void handle_one(struct notify *n, struct result *r)
{
	const struct seccomp_notif *q = n->request;
	int error = -EPERM;

	if (is_asked(n, r))
		return;
	if (is_shown(n, q)) {
		pass_shown(n, n->execs && exec_watch_knows(q->data.nr), r);
		return;
	}
	if (n->broker && syscall_broker_serves(q->data.nr)) {
		n->window_spent += COST_BROKERED;
		error = syscall_broker_call(n->broker, n->fd, q);
	}
	if (error == -EPERM) {
		n->window_spent += COST_DENIAL;
		if (!is_question(q))
			record(n, q->data.nr, (pid_t)q->pid, r);
	}
	answer(n, error);
}

/* Denials beyond those that are reported one by one: their number, in one event. */
static void report_more(struct notify *n, struct result *r)
{
	struct ward_event v;

	if (!n->unreported)
		return;
	v = event_make(EVENT_SYSCALL, ACTION_DENY, "more of those before");
	event_text(&v, FIELD_RULE, "seccomp");
	event_number(&v, FIELD_COUNT, n->unreported);
	event_emit(r->events, &v);
	n->unreported = 0;
}

void notify_expect(struct notify *n, uint32_t tag, int32_t words, const char *text, size_t len)
{
	if (n && n->execs && len)
		exec_watch_expect(n->execs, tag, words, text, len);
}

void notify_guest(struct notify *n, const struct guest_message *m)
{
	if (n && n->execs)
		exec_watch_guest(n->execs, m);
}

void notify_on_file(struct notify *n, file_ask_fn *asked, void *context)
{
	if (n)
		file_ask_on(n->files, asked, context);
}

int notify_answer_file(struct notify *n, const uint8_t exact[32], uint64_t serial, bool yes,
		       struct ward_err *e)
{
	if (n && n->files)
		return file_ask_answer(n->files, exact, serial, yes, e);
	return ward_fail(e, ESRCH, "no process of the sandbox waits for it");
}

uint64_t notify_due_ms(const struct notify *n)
{
	return n ? file_ask_due_ms(n->files) : 0;
}

void notify_on_time(struct notify *n, uint64_t now_ms)
{
	if (n)
		file_ask_on_time(n->files, now_ms);
}

void notify_finish(struct notify *n, struct result *r)
{
	if (!n)
		return;
	report_more(n, r);
	exec_watch_finish(n->execs, r);
	missing_finish(n->missing, r);
}

unsigned notify_handle(struct notify *n, struct result *r)
{
	uint64_t now = io_now_ms();

	if (now - n->window_start_ms >= WINDOW_MS) {
		n->window_start_ms = now;
		n->window_spent = 0;
		if (now - n->reported_ms >= REPORT_MS) {
			report_more(n, r);
			n->reported_ms = now;
		}
	}
	provenance_tell(r->provenance, r, false);
	while (n->window_spent + COST_DENIAL <= WINDOW_BUDGET) {
		int got = receive(n);

		if (got == 0)
			handle_one(n, r);
		else if (got == -ENOENT || got == -EINTR)
			n->window_spent += COST_BROKERED;
		else
			return 0;
	}
	return (unsigned)(n->window_start_ms + WINDOW_MS - now);
}
