/*
 * Guarded programs while a run lives. In: requests of stand-ins (guest/stand_in.c), or of any other
 * process inside: they are copied once, read, and decided about by the rules of the policy or by a
 * person. Out: ward-init starts exactly what was decided about, with the program's own file; how it
 * ended; signals. Runs in the supervisor with the user's rights; nothing here waits.
 *
 *   - The bytes that were received are the ones that are matched, shown and started. Nothing is
 *     read from the asking process: not its memory, not its /proc. The directory and 0-2 are
 *     descriptors, which stay what they are.
 *   - The program's name stands in place of its first word, and its environment is that of the
 *     sandbox's start but for a few variables (command_keeps()): a program that acts by its name,
 *     or a loader that obeys LD_PRELOAD, was not shown to anybody.
 *   - What is executed is a sealed copy that can be executed and not be read. So the kernel lets no
 *     process of the sandbox trace it, read its memory, or open the file through /proc/PID/exe.
 *   - Who asked and is gone takes its question, and its program, along.
 *   - Messages are received, and everything that came from inside is closed, by threads
 *     (host/foreign_fds.h): both may take as long as the sandbox wants. ward-init closes its
 *     own before it says so, while the supervisor's still hold them open.
 */
#include "run/box_commands.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "approve/approve.h"
#include "approve/command_read.h"
#include "approve/show.h"
#include "base/io.h"
#include "base/text.h"
#include "event/result.h"
#include "host/foreign_fds.h"
#include "rules/never.h"
#include "run/commands.h"
#include "run/peer.h"

#define ASKERS_MAX (APPROVE_PENDING_MAX + 100)
#define RUNNING_MAX 48       /* of GUEST_EXECS_MAX: `ward exec` needs some, too */
#define HELD_MAX (16u << 20) /* bytes of requests that wait */
/* descriptors of one request, those of messages that are not closed yet, and the supervisor's */
#define FILES_EACH (COMMAND_FDS + 1)
#define FILES_BESIDE 1000
#define REFUSED_CODE 126
#define LISTENER 0

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

enum state { ASKER_NEW, ASKER_WAITS, ASKER_RUNS, ASKER_DROPPED };

/* One process that asks. */
struct asker {
	enum state state;
	int fd; /* -1: it is gone, and its program is being killed */
	uint64_t serial;
	uint32_t tag;
	size_t program;       /* of plan->commands->guarded */
	int fds[COMMAND_FDS]; /* until ward-init has them, and has closed its own */
	uint8_t *bytes;       /* its request; owned; NULL: none yet */
	size_t len;
	struct command_said said;
	struct question q;
};

struct box_commands {
	struct box *box;
	int epoll_fd;
	uint64_t serial;
	uint32_t last_tag;
	struct asker *askers[ASKERS_MAX]; /* owned */
	size_t count, most, running, held_bytes;
	struct foreign_fds *foreign; /* owned */
	uint64_t receiving;          /* from whom a message is received right now; 0: from none */
	int *copy_fds; /* of the programs, made when they are first started; -1: not yet */
};

/* How many may ask at one time, with as many descriptors as this process may have. */
static size_t count_askers(void)
{
	struct rlimit files;
	rlim_t wanted = FILES_BESIDE + FILES_EACH * ASKERS_MAX;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return 1;
	if (files.rlim_cur < wanted) {
		files.rlim_cur = files.rlim_max < wanted ? files.rlim_max : wanted;
		(void)!setrlimit(RLIMIT_NOFILE, &files);
		(void)!getrlimit(RLIMIT_NOFILE, &files);
	}
	if (files.rlim_cur >= wanted)
		return ASKERS_MAX;
	return files.rlim_cur > FILES_BESIDE + FILES_EACH
		       ? (files.rlim_cur - FILES_BESIDE) / FILES_EACH
		       : 1;
}

int box_commands_begin(struct box *b, struct ward_err *e)
{
	const struct commands *live = b->plan->live->commands;
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = LISTENER };
	struct box_commands *c;

	if (!live)
		return 0;
	c = b->commands = calloc(1, sizeof(*c));
	if (!c)
		return ward_fail(e, ENOMEM, "out of memory");
	c->box = b;
	c->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	c->copy_fds = malloc(live->count * sizeof(*c->copy_fds));
	for (size_t i = 0; c->copy_fds && i < live->count; i++)
		c->copy_fds[i] = -1;
	if (c->epoll_fd < 0 || !c->copy_fds ||
	    epoll_ctl(c->epoll_fd, EPOLL_CTL_ADD, live->socket.listen_fd, &event) < 0)
		return ward_fail_errno(e, "cannot answer for process.commands");
	c->most = count_askers();
	if (foreign_fds_start(COMMAND_MAX + 1, &c->foreign, e) < 0)
		return ward_wrap(e, "answering for process.commands");
	return 0;
}

/* One message at a time, and none while too much of what came before is not closed. */
int box_commands_fd(const struct box *b)
{
	const struct box_commands *c = b->commands;

	if (!c)
		return -1;
	return c->receiving || foreign_fds_is_full(c->foreign) ? foreign_fds_fd(c->foreign)
							       : c->epoll_fd;
}

static void close_fds(struct box_commands *c, struct asker *a)
{
	for (size_t i = 0; i < COMMAND_FDS; i++)
		foreign_fds_close(c->foreign, &a->fds[i]);
}

static void free_request(struct box_commands *c, struct asker *a)
{
	c->held_bytes -= a->len;
	a->len = 0;
	free(take_ptr(a->bytes));
}

static void drop(struct box_commands *c, struct asker *a)
{
	size_t at = 0;

	if (a->state == ASKER_RUNS)
		c->running--;
	a->state = ASKER_DROPPED;
	if (c->receiving == a->serial)
		return; /* on_received() does the rest */
	while (at < c->count && c->askers[at] != a)
		at++;
	if (at < c->count)
		c->askers[at] = c->askers[--c->count];
	close_fds(c, a);
	if (a->fd >= 0)
		(void)!epoll_ctl(c->epoll_fd, EPOLL_CTL_DEL, a->fd, NULL);
	foreign_fds_close(c->foreign, &a->fd);
	free_request(c, a);
	free(a);
}

void box_commands_end(struct box *b)
{
	struct box_commands *c = b->commands;

	if (!c)
		return;
	c->receiving = 0; /* what comes yet is closed when this process ends */
	while (c->count)
		drop(c, c->askers[0]);
	/* requests that were not received lie in it */
	foreign_fds_close(c->foreign, &b->plan->live->commands->socket.listen_fd);
	foreign_fds_end(c->foreign);
	for (size_t i = 0; c->copy_fds && i < b->plan->live->commands->count; i++)
		own_close_fd(&c->copy_fds[i]);
	free(c->copy_fds);
	own_close_fd(&c->epoll_fd);
	free(c);
	b->commands = NULL;
}

/* -- answers to those who ask */

static void say(struct asker *a, enum command_op op, int32_t value, const char *text)
{
	struct command_message m = { .magic = COMMAND_MAGIC, .op = op, .a = value };
	auto_buf out = { 0 };

	buf_add(&out, &m, sizeof(m));
	if (text)
		buf_printf(&out, "ward: %.800s\n", text);
	if (!out.failed && a->fd >= 0)
		(void)!send(a->fd, out.data, out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* For its standard error, the summary and the journal; it is dropped. */
static void refuse(struct box_commands *c, struct asker *a, const char *why, const char *remedy)
{
	auto_buf text = { 0 }, what = { 0 }, line = { 0 };

	if (a->bytes) {
		command_text(&a->said, &text);
		buf_puts(&what, "run ");
		text_escape(&what, text.failed ? "?" : buf_text(&text));
		if (what.len > 300)
			what.len = 300;
	}
	if (a->bytes && !what.failed)
		result_deny(c->box->result, buf_text(&what), why, remedy);
	buf_printf(&line, "%s: %s", a->bytes ? a->said.program : "a program", why);
	text.len = 0;
	text_escape(&text, line.failed ? why : buf_text(&line));
	say(a, COMMAND_REFUSED, REFUSED_CODE, buf_text(&text));
	drop(c, a);
}

/* -- starting */

/* All of the file, which can be executed, not read, and not changed. */
static int copy_program(int file_fd, const char *name, struct ward_err *e)
{
	auto_fd to = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC), ret = -1;
	char link[48];
	struct stat st;
	off_t at = 0;

	if (to < 0 && errno == EINVAL) /* before Linux 6.3 */
		to = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (to < 0 || fstat(file_fd, &st) < 0) {
		ward_fail_errno(e, "cannot copy %s", name);
		return ward_remedy(e, "memory files must be executable: sysctl vm.memfd_noexec=0");
	}
	while (at < st.st_size) {
		ssize_t n = sendfile(to, file_fd, &at, (size_t)(st.st_size - at));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return ward_fail(e, n ? errno : EIO, "cannot copy %s", name);
	}
	/* one that is open for writing cannot be executed */
	snprintf(link, sizeof(link), "/proc/self/fd/%d", to);
	ret = open(link, O_PATH | O_CLOEXEC);
	if (ret < 0 || fchmod(to, 0111) < 0 ||
	    fcntl(to, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return ward_fail_errno(e, "cannot seal the copy of %s", name);
	return take_fd(&ret);
}

static int program_fd(struct box_commands *c, const struct asker *a, struct ward_err *e)
{
	const struct plan *p = c->box->plan;
	const char *path = p->commands->guarded[a->program].names.items[0];
	int *fd = &c->copy_fds[a->program];

	if (*fd < 0)
		*fd = copy_program(p->live->commands->file_fds[a->program], strrchr(path, '/') + 1,
				   e);
	return *fd;
}

static int check_now(const struct box *b, const struct asker *a, struct ward_err *e)
{
	if (b->commands->running == RUNNING_MAX) {
		ward_fail(e, EAGAIN, "%d programs that ward started for this sandbox still run",
			  RUNNING_MAX);
		return ward_remedy(e, "wait until one of them has ended");
	}
	if (never_program(&b->plan->spec->policy.appr_never, a->said.program))
		return ward_fail(e, EPERM, "approvals.never names it");
	if (b->held)
		return ward_fail(e, EBUSY, "the sandbox is paused");
	return b->ending || b->dead ? ward_fail(e, ESRCH, "the sandbox is ending") : 0;
}

/* ward-init gets the words that were decided about, and the program's own file. */
static int start(struct box_commands *c, struct asker *a, struct ward_err *e)
{
	struct box *b = c->box;
	struct guest_message m = { .op = GUEST_EXEC_FILE,
				   .a = (int32_t)a->said.word_count,
				   .b = (int32_t)a->said.variable_count,
				   .tag = GUEST_TAG_COMMAND | ++c->last_tag };
	size_t first = strlen(a->said.words) + 1;
	auto_buf packet = { 0 };
	int fds[COMMAND_FDS + 1], r = check_now(b, a, e);

	if (r < 0)
		return r;
	memcpy(fds, a->fds, sizeof(a->fds));
	fds[COMMAND_FDS] = program_fd(c, a, e);
	if (fds[COMMAND_FDS] < 0)
		return -e->code;
	buf_add(&packet, &m, sizeof(m));
	buf_add(&packet, "", 1); /* the directory is a descriptor */
	buf_add(&packet, a->said.program, strlen(a->said.program) + 1);
	buf_add(&packet, a->said.words + first, a->said.words_len - first);
	buf_add(&packet, a->said.variables, a->said.variables_len);
	if (packet.failed || packet.len > GUEST_PACKET_MAX)
		return ward_fail(e, E2BIG, "the command line is too long");
	if (io_sendmsg_fds(b->run.control_fd, packet.data, packet.len, fds, COMMAND_FDS + 1,
			   MSG_DONTWAIT) != (ssize_t)packet.len)
		return ward_fail_errno(e, "cannot send the command to ward-init");
	notify_expect(b->notify, m.tag, m.a, packet.data + sizeof(m), packet.len - sizeof(m));
	a->tag = m.tag;
	a->state = ASKER_RUNS;
	c->running++;
	say(a, COMMAND_STARTED, 0, NULL);
	box_look_again(b);
	return 0;
}

static void start_or_refuse(struct box_commands *c, struct asker *a)
{
	struct ward_err e = { 0 };

	if (start(c, a, &e) < 0)
		refuse(c, a, e.why, e.remedy);
}

void box_commands_guest(struct box *b, const struct guest_message *m)
{
	struct box_commands *c = b->commands;

	notify_guest(b->notify, m);
	for (size_t i = 0; c && i < c->count; i++) {
		struct asker *a = c->askers[i];

		if (a->state != ASKER_RUNS || a->tag != m->tag)
			continue;
		if (m->op == GUEST_READY) {
			close_fds(c, a);
			free_request(c, a);
			return;
		}
		if (m->op == GUEST_EXITED)
			say(a, COMMAND_ENDED, m->a, NULL);
		else if (m->op == GUEST_FAILED)
			say(a, COMMAND_REFUSED, m->b, strerror(m->a));
		else
			return;
		drop(c, a);
		if (b->serve)
			box_ended_one(b);
		return;
	}
}

/* -- deciding */

/* Where a descriptor leads, and which file that is: of descriptors, which cannot be changed any
 * more. No file system is asked. */
static void describe_fd(int fd, char where[4096], char exact[96])
{
	char link[48];
	auto_buf info = { 0 };
	long mount = -1, inode = -1;
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, where, 4095);
	snprintf(where + (n > 0 ? n : 0), 2, "%s", n > 0 ? "" : "?");
	snprintf(link, sizeof(link), "/proc/self/fdinfo/%d", fd);
	if (io_read_file(AT_FDCWD, link, 4096, &info) == 0) {
		(void)!text_number_after(buf_text(&info), "\nmnt_id:", 0, &mount);
		(void)!text_number_after(buf_text(&info), "\nino:", 0, &inode);
	}
	snprintf(exact, 96, "%ld:%ld", mount, inode);
}

static void ask(struct box_commands *c, struct asker *a, const char *rule)
{
	char where[COMMAND_FDS][4096], exact[COMMAND_FDS][96];
	struct command_place place;

	if (!c->box->approve) {
		refuse(c, a, "process.commands asks a person about it, and approvals.mode is deny",
		       "approvals.mode: ask");
		return;
	}
	for (size_t i = 0; i < COMMAND_FDS; i++) {
		describe_fd(a->fds[i], where[i], exact[i]);
		place.where[i] = where[i];
		place.exact[i] = exact[i];
	}
	show_command(&a->said, &place, rule, a->serial, &a->q);
	peer_chain(a->fd, a->q.process, sizeof(a->q.process));
	a->state = ASKER_WAITS;
	if (box_ask(c->box, true, &a->q) < 0)
		refuse(c, a, "too many questions wait for an answer already", "");
}

/* By a hard link of another name the program may be another one (git-push). */
static bool is_renamed(const struct plan_guarded *g, const char *program)
{
	return strcmp(strrchr(program, '/'), strrchr(g->names.items[0], '/')) != 0;
}

static bool find_program(const struct plan *p, struct asker *a)
{
	for (size_t i = 0; i < p->commands->guarded_count; i++)
		if (strv_has(&p->commands->guarded[i].names, a->said.program)) {
			a->program = i;
			return true;
		}
	return false;
}

static void decide(struct box_commands *c, struct asker *a)
{
	const struct plan *p = c->box->plan;
	const struct plan_guarded *g;
	enum command_verdict verdict;
	const char *rule = NULL;

	if (!find_program(p, a)) {
		refuse(c, a, "no program of process.commands that ward starts", "");
		return;
	}
	g = &p->commands->guarded[a->program];
	verdict = command_decide(&g->rules, p->commands->listed ? COMMAND_DENY : COMMAND_ALLOW,
				 &a->said, &rule);
	if (verdict == COMMAND_ALLOW && is_renamed(g, a->said.program)) {
		verdict = COMMAND_ASK; /* rules are for words behind its own name */
		rule = "another name of a program of which words decide";
	}
	switch (verdict) {
	case COMMAND_ALLOW:
		start_or_refuse(c, a);
		break;
	case COMMAND_ASK:
		if (never_program(&p->spec->policy.appr_never, a->said.program))
			refuse(c, a, "approvals.never names it: no answer can allow it", "");
		else
			ask(c, a, rule);
		break;
	case COMMAND_DENY:
		refuse(c, a,
		       rule ? "process.commands denies these words"
			    : "process.commands allows it with other words only",
		       "process.commands");
		break;
	}
}

int box_commands_answer(struct box *b, const struct question *q, enum question_answer answer,
			struct ward_err *e)
{
	struct box_commands *c = b->commands;
	bool yes = answer && answer != QUESTION_DENY, some = false;

	for (size_t i = 0; c && i < c->count;) {
		struct asker *a = c->askers[i];

		if (a->state != ASKER_WAITS || a->serial > q->serial_last ||
		    memcmp(a->q.exact, q->exact, sizeof(q->exact)) != 0) {
			i++;
			continue;
		}
		if (yes && !some && start(c, a, e) < 0)
			return -e->code; /* it waits on */
		if (yes && a->state == ASKER_WAITS)
			start_or_refuse(c, a);
		else if (!yes)
			refuse(c, a,
			       answer ? "a person was asked and said no"
				      : "a person was asked and did not answer in time",
			       "");
		some = true;
		i = 0; /* it is another set now */
	}
	return some || !yes ? 0 : ward_fail(e, ESRCH, "its request has ended");
}

/* -- what comes */

/* False: it is no request, or one too many. */
static bool take_request(struct box_commands *c, struct asker *a, struct foreign_message *m)
{
	struct command_said said;

	if (m->len <= 0 || m->fd_count != COMMAND_FDS ||
	    !command_read(m->bytes, (size_t)m->len, &said))
		return false;
	a->bytes = malloc((size_t)m->len);
	if (!a->bytes)
		return false;
	memcpy(a->bytes, m->bytes, (size_t)m->len);
	a->len = (size_t)m->len;
	c->held_bytes += a->len;
	for (size_t i = 0; i < COMMAND_FDS; i++)
		a->fds[i] = take_fd(&m->fds[i]);
	return command_read(a->bytes, a->len, &a->said);
}

static void on_gone(struct box_commands *c, struct asker *a)
{
	if (a->state == ASKER_WAITS)
		(void)!box_ask(c->box, false, &a->q);
	if (a->state != ASKER_RUNS) {
		drop(c, a);
		return;
	}
	box_signal(c->box, SIGKILL, a->tag);
	(void)!epoll_ctl(c->epoll_fd, EPOLL_CTL_DEL, a->fd, NULL);
	foreign_fds_close(c->foreign, &a->fd);
}

static void on_message(struct box_commands *c, struct asker *a, struct foreign_message *got)
{
	struct command_message m = { 0 };

	if (a->state == ASKER_DROPPED)
		drop(c, a);
	else if (got->len == -EAGAIN || got->len == -EINTR)
		return;
	else if (a->state == ASKER_NEW) {
		if (!take_request(c, a, got))
			drop(c, a);
		else if (c->held_bytes > HELD_MAX)
			refuse(c, a,
			       "the command lines that wait for an answer are too long together",
			       "");
		else
			decide(c, a);
	} else if (got->len <= 0)
		on_gone(c, a);
	else if (got->len == (ssize_t)sizeof(m)) {
		memcpy(&m, got->bytes, sizeof(m));
		if (m.magic == COMMAND_MAGIC && m.op == COMMAND_SIGNAL && m.a > 0 && m.a <= 64 &&
		    a->state == ASKER_RUNS && !c->box->held)
			box_signal(c->box, m.a, a->tag);
	}
}

static struct asker *find_asker(struct box_commands *c, uint64_t serial)
{
	for (size_t i = 0; i < c->count; i++)
		if (c->askers[i]->serial == serial)
			return c->askers[i];
	return NULL;
}

/* What is not taken over is closed, elsewhere. */
static void on_received(struct box_commands *c, struct foreign_message *got)
{
	struct asker *a = got->fd < 0 ? NULL : find_asker(c, got->serial);

	if (got->fd >= 0)
		c->receiving = 0;
	if (a)
		on_message(c, a, got);
	for (size_t i = 0; i < got->fd_count; i++)
		foreign_fds_close(c->foreign, &got->fds[i]);
	foreign_message_free(c->foreign, got);
}

/* Refuses one too many, with the reason. */
static void take_asker(struct box_commands *c)
{
	auto_fd fd = accept4(c->box->plan->live->commands->socket.listen_fd, NULL, NULL,
			     SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = c->serial + 1 };
	struct asker *a = fd < 0 ? NULL : calloc(1, sizeof(*a));

	if (!a) {
		foreign_fds_close(c->foreign, &fd);
		return;
	}
	a->serial = ++c->serial;
	a->fd = take_fd(&fd);
	for (size_t i = 0; i < COMMAND_FDS; i++)
		a->fds[i] = -1;
	if (c->count == c->most) {
		refuse(c, a, "too many programs wait for an answer, or run", "");
		return;
	}
	c->askers[c->count++] = a;
	if (epoll_ctl(c->epoll_fd, EPOLL_CTL_ADD, a->fd, &event) < 0)
		drop(c, a);
}

void box_commands_handle(struct box *b)
{
	struct box_commands *c = b->commands;
	struct foreign_message got;
	struct epoll_event event;
	struct asker *a;

	while (foreign_fds_next(c->foreign, &got))
		on_received(c, &got);
	if (c->receiving || foreign_fds_is_full(c->foreign) ||
	    epoll_wait(c->epoll_fd, &event, 1, 0) != 1)
		return;
	if (event.data.u64 == LISTENER) {
		take_asker(c);
		return;
	}
	a = find_asker(c, event.data.u64);
	if (!a || a->fd < 0)
		return;
	c->receiving = a->serial;
	foreign_fds_receive(c->foreign, a->fd, a->serial);
}
