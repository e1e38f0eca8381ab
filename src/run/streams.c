/*
 * The three descriptors of the command. In: the caller's 0-2. Out: descriptors that may go inside,
 * or a relay.
 *
 * /dev/null goes inside as it is. Nothing else does: a sandbox that holds a file or a pipe could
 * open it again through /proc with another mode: write what others read from it, read what others
 * wrote into it, truncate it, change its mode and times. A socket belongs to the host's network: it
 * could be connected to somewhere else, or accepted from. The supervisor moves their bytes through
 * a pipe of its own (of a file the kernel does the copying) and leaves the caller's offset where
 * the command's reading or writing ended. That pipe is the agent's, so that /dev/stdin and
 * /dev/stdout can be opened inside. Out of a pipe, which cannot be given back to, it takes only
 * what the command has read: tee(2) shows the command one page, and the page is taken out when it
 * is read. Into a pipe it writes only what there is room for: a reader that does not read must not
 * keep the supervisor from its limits. A terminal never goes inside either: the command gets one of
 * the sandbox's own (run/console.c), or pipes; what goes to the operator's passes the terminal
 * filter. A directory is a way out (`< /`) and a device is a device: both are refused before
 * anything starts. The end of standard error is kept: what a failed command says about it is a hint
 * (box_words.c). Runs in the supervisor; ward itself never reads standard input but to pass it
 * on.
 */
#include "run/streams.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>

#include "base/io.h"

#define SPLICE_BYTES 65536
#define HOUR_MS 3600000
#define PAGE_BYTES 4096 /* the least that a pipe holds */

static const char *const stream_names[] = { "standard input", "standard output", "standard error" };

static int give_itself(struct streams *s, int i, struct ward_err *e)
{
	s->inside[i] = fcntl(i, F_DUPFD_CLOEXEC, 10);
	return s->inside[i] < 0 ? ward_fail_errno(e, "cannot pass %s on", stream_names[i]) : 0;
}

/* The terminal under a description of our own: one that is stopped must not stop us. */
static void use_own_terminal(struct relay *r, int i)
{
	char path[32];
	int tty;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", i);
	tty = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (tty >= 0) {
		r->to_fd = tty;
		r->own_to = true;
	}
}

/* What is printed goes through ward-scan; what is shown on a terminal is looked at. */
static int add_scan(struct streams *s, const struct plan *p, int i, struct relay *r,
		    struct ward_err *e)
{
	int fd, status;

	if (i == 0 || !output_scan_is_on(p))
		return 0;
	r->copied = true;
	if (r->to_type == S_IFCHR) {
		r->tapped = true;
		return s->tap_fd
			       ? 0
			       : output_scan_begin(&s->scan, p, -1, "the terminal", &s->tap_fd, e);
	}
	status = output_scan_begin(&s->scan, p, i, stream_names[i], &fd, e);
	if (status < 0)
		return status;
	r->to_fd = fd;
	r->own_to = true;
	r->to_file = false;
	r->to_type = S_IFIFO;
	return 0;
}

/* What is shown, for those who look; they must not slow it down. */
static void tap(struct streams *s, const char *bytes, size_t n)
{
	ssize_t seen = s->tap_fd ? write(s->tap_fd, bytes, n) : (ssize_t)n;

	s->scan.unseen += n - (seen > 0 ? (size_t)seen : 0);
}

/* A pipe inside, and the supervisor moves the bytes. */
static int give_relay(struct streams *s, const struct plan *p, int i, const struct stat *st,
		      struct ward_err *e)
{
	struct relay *r = &s->relays[s->relay_count];
	bool file = S_ISREG(st->st_mode), input = i == 0, pipe = input && S_ISFIFO(st->st_mode);
	int fds[2], own;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return ward_fail_errno(e, "cannot make a pipe for %s", stream_names[i]);
	if (p->ids.host_uid != geteuid()) /* without it only the names in /dev do not work */
		(void)!fchown(fds[0], p->ids.host_uid, p->ids.host_gid);
	s->inside[i] = fcntl(fds[input ? 0 : 1], F_DUPFD_CLOEXEC, 10);
	own = fds[input ? 1 : 0];
	if (file && input)
		s->unread_fd = fds[0];
	else if (pipe && fcntl(own, F_SETPIPE_SZ, PAGE_BYTES) >= 0)
		s->unread_fd = fds[0];
	else
		close(fds[input ? 0 : 1]);
	if (s->inside[i] < 0 || fcntl(own, F_SETFL, O_NONBLOCK) < 0) {
		close(own);
		return ward_fail_errno(e, "cannot make a pipe for %s", stream_names[i]);
	}
	*r = (struct relay){ .from_fd = input ? i : own,
			     .to_fd = input ? own : i,
			     .own_from = !input,
			     .own_to = input,
			     .from_file = input && file,
			     .to_file = !input && file,
			     .to_type = input ? 0 : st->st_mode & S_IFMT,
			     .from_pipe = pipe && s->unread_fd >= 0,
			     .copied = !file || i == STDERR_FILENO,
			     .heard = i == STDERR_FILENO };
	r->from_terminal = input && S_ISCHR(st->st_mode);
	if (!input && S_ISCHR(st->st_mode)) {
		r->clean = p->spec->policy.proc_terminal != TERMINAL_RAW;
		r->terminal.no_input = true; /* what it sends goes to the next reader */
		r->terminal.bytes_only = !console_knows_utf8(i);
		use_own_terminal(r, i);
	}
	s->relay_count++;
	return add_scan(s, p, i, r, e);
}

static bool is_null(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(1, 3);
}

/* What 0-2 may be. */
static int check_one(int i, struct stat *st, struct ward_err *e)
{
	int mode = fcntl(i, F_GETFL) & O_ACCMODE;

	if (fstat(i, st) < 0)
		return ward_fail_errno(e, "%s is not open", stream_names[i]);
	if (S_ISREG(st->st_mode) && mode == (i == 0 ? O_WRONLY : O_RDONLY))
		return ward_fail(e, EBADF, "%s is not open for %s", stream_names[i],
				 i ? "writing" : "reading");
	if (S_ISREG(st->st_mode) || S_ISFIFO(st->st_mode) || S_ISSOCK(st->st_mode) || is_null(st) ||
	    (S_ISCHR(st->st_mode) && isatty(i)))
		return 0;
	ward_fail(e, EINVAL, "%s is a %s, which would be a way out of the sandbox", stream_names[i],
		  S_ISDIR(st->st_mode) ? "directory" : "device");
	return ward_remedy(e, "give a file, a pipe, a terminal or /dev/null");
}

static int prepare_one(struct streams *s, const struct plan *p, int i, struct ward_err *e)
{
	struct stat st;
	int r = check_one(i, &st, e);

	if (r < 0)
		return r;
	return is_null(&st) ? give_itself(s, i, e) : give_relay(s, p, i, &st, e);
}

/* Which of 0-2 are the terminal inside: those that are the operator's, if he sits at both ends or
 * asks for it with -t; all where he asks and has none. */
static int choose_terminal(struct streams *s, const struct plan *p, bool terminals,
			   unsigned *ret_mask, struct ward_err *e)
{
	unsigned mask = console_terminals();
	bool wanted = p->spec->tty || (mask & 3) == 3;

	*ret_mask = 0;
	if (!wanted)
		return 0;
	if (!terminals && p->spec->tty) {
		ward_fail(e, ENOTSUP, "-t: there are no terminals inside without namespaces");
		return ward_remedy(e, "remove -t: the output still reaches your terminal, but the "
				      "command has pipes; or see ward doctor");
	}
	if (!mask && SCAN_MODE(&p->spec->policy, p->spec->policy.cred_scan_output) < SCAN_LOG) {
		ward_fail(e, ENOTSUP,
			  "-t: credentials.scan_output cannot stop what is written to a "
			  "terminal inside");
		return ward_remedy(e, "remove -t, or set credentials.scan_output: log");
	}
	s->terminal = terminals;
	s->no_terminal = !terminals;
	if (terminals)
		*ret_mask = mask ? mask : 7;
	return 0;
}

/* Newer kernels (6.10) tell without kcmp, which an outer sandbox denies, with an event. */
static bool is_one_file(int a, int b)
{
	int same = fcntl(a, 1027 /* F_DUPFD_QUERY */, b);
	pid_t self = getpid();

	return same >= 0 ? same == 1 : syscall(SYS_kcmp, self, self, 0 /* KCMP_FILE */, a, b) == 0;
}

/* Output and error that are one open file (2>&1) share one relay: their lines stay in order. */
static bool shares_output(const struct streams *s)
{
	return s->relay_count && s->relays[s->relay_count - 1].from_fd != STDIN_FILENO &&
	       is_one_file(STDOUT_FILENO, STDERR_FILENO);
}

static int share_output(struct streams *s)
{
	struct relay *r = &s->relays[s->relay_count - 1];

	r->heard = r->copied = true;
	return fcntl(s->inside[STDOUT_FILENO], F_DUPFD_CLOEXEC, 10);
}

int streams_prepare(struct streams *s, const struct plan *p, bool terminals, struct ward_err *e)
{
	unsigned mask;
	struct stat st;
	int r;

	*s = (struct streams){ .inside = { -1, -1, -1 }, .unread_fd = -1 };
	r = choose_terminal(s, p, terminals, &mask, e);
	for (int i = 0; i < 3 && r == 0; i++) {
		if (mask & 1U << i)
			r = check_one(i, &st, e);
		else if (i == STDERR_FILENO && shares_output(s))
			s->inside[i] = share_output(s);
		else
			r = prepare_one(s, p, i, e);
		if (r == 0 && s->inside[i] < 0 && !(mask & 1U << i))
			r = ward_fail_errno(e, "cannot pass %s on", stream_names[i]);
	}
	return r;
}

static void tap_console(void *ctx, const char *bytes, size_t n)
{
	tap(ctx, bytes, n);
}

int streams_open_terminal(struct streams *s, const struct plan *p, int master_fd, int slave_fd,
			  struct ward_err *e)
{
	if (output_scan_is_on(p) && !s->tap_fd &&
	    output_scan_begin(&s->scan, p, -1, "the terminal", &s->tap_fd, e) < 0) {
		close(master_fd);
		if (slave_fd >= 0)
			close(slave_fd);
		return -e->code;
	}
	const struct console_config config = { .tap = s->tap_fd ? &tap_console : NULL,
					       .tap_ctx = s,
					       .master_fd = master_fd,
					       .slave_fd = slave_fd,
					       .unfiltered = p->spec->policy.proc_terminal ==
							     TERMINAL_RAW,
					       .heard = &s->tail };

	return console_create(&config, &s->console, e);
}

int streams_count_output(struct streams *s, int *outer_fd, struct ward_err *e)
{
	int fds[2];

	if (s->relay_count == ARRAY_LEN(s->relays) || fcntl(*outer_fd, F_SETFL, O_NONBLOCK) < 0 ||
	    pipe2(fds, O_CLOEXEC) < 0)
		return ward_fail_errno(e, "cannot make a pipe for the command's output");
	s->relays[s->relay_count++] = (struct relay){ .from_fd = *outer_fd,
						      .to_fd = fds[1],
						      .own_from = true,
						      .own_to = true,
						      .to_type = S_IFIFO,
						      .copied = true };
	*outer_fd = fds[0];
	return 0;
}

void streams_started(struct streams *s)
{
	for (int i = 0; i < 3; i++) {
		own_close_fd(&s->inside[i]);
		s->inside[i] = -1;
	}
}

static void close_side(int *fd, bool own)
{
	if (own && *fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Whatever the command left on the operator's screen ends with it. */
static void undo_terminal(struct relay *r)
{
	auto_buf undo = { 0 };

	if (!r->clean || r->to_fd < 0)
		return;
	terminal_undo(&r->terminal, false, &undo);
	if (undo.len)
		(void)!write(r->to_fd, undo.data, undo.len);
}

static void close_relay(struct relay *r)
{
	undo_terminal(r);
	close_side(&r->from_fd, r->own_from);
	close_side(&r->to_fd, r->own_to);
	buf_free(&r->pending);
	r->done = 0;
}

size_t streams_poll(struct streams *s, struct pollfd *polled)
{
	for (size_t i = 0; i < s->relay_count; i++) {
		struct relay *r = &s->relays[i];

		if (r->done < r->pending.len || r->from_file || r->ahead)
			polled[i] = (struct pollfd){ .fd = r->to_fd, .events = POLLOUT };
		else
			polled[i] = (struct pollfd){
				.fd = r->from_terminal && !console_is_foreground(r->from_fd)
					      ? -1
					      : r->from_fd,
				.events = POLLIN
			};
	}
	if (!s->console)
		return s->relay_count;
	console_poll(s->console, polled + s->relay_count);
	return s->relay_count + CONSOLE_POLLS;
}

/* The kernel moves the bytes; false where it cannot (a file opened for appending, an odd file
 * system). */
static bool relay_splice(struct streams *s, struct relay *r)
{
	ssize_t n = splice(r->from_fd, NULL, r->to_fd, NULL, SPLICE_BYTES, SPLICE_F_NONBLOCK);

	if (n < 0 && errno == EINVAL) {
		r->copied = true;
		return false;
	}
	if (n > 0)
		r->moved += (size_t)n;
	if (n > 0 && r->own_from)
		s->out_bytes += (size_t)n;
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		close_relay(r); /* the other side learns of the end */
	return true;
}

/* Takes n bytes out of the pipe that the command has read; they are there unless another process
 * took them. */
static void take_out(int fd, size_t n)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char data[PAGE_BYTES];

	while (n > 0 && poll(&p, 1, 0) > 0) {
		ssize_t got = read(fd, data, n < sizeof(data) ? n : sizeof(data));

		if (got <= 0)
			return;
		n -= (size_t)got;
	}
}

/* Shows the command the next page, once it has read the one before: only then is there room. */
static void relay_tee(struct relay *r)
{
	ssize_t n;

	if (r->ahead)
		take_out(r->from_fd, r->ahead);
	r->ahead = 0;
	n = tee(r->from_fd, r->to_fd, PAGE_BYTES, SPLICE_F_NONBLOCK);
	if (n > 0)
		r->ahead = (size_t)n;
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		close_relay(r);
}

/* What is over the limit is not passed on while the command is being ended for it. */
static void cut_off(const struct streams *s, struct relay *r)
{
	uint64_t over = s->most && s->out_bytes > s->most ? s->out_bytes - s->most : 0;

	if (!r->clean)
		r->pending.len -= over < r->pending.len ? (size_t)over : r->pending.len;
}

static void relay_read(struct streams *s, struct relay *r)
{
	char data[4096]; /* what a pipe takes at once when poll says that it is ready */
	ssize_t n = read(r->from_fd, data, sizeof(data));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0 && r->from_terminal && !console_is_foreground(r->from_fd))
		return; /* it was taken from us this very moment */
	if (n <= 0) {
		close_relay(r);
		return;
	}
	r->moved += (size_t)n;
	if (r->tapped)
		tap(s, data, (size_t)n);
	if (r->heard)
		tail_add(&s->tail, data, (size_t)n);
	r->pending.len = r->done = 0;
	if (r->clean)
		terminal_filter(&r->terminal, data, (size_t)n, &r->pending);
	else
		buf_add(&r->pending, data, (size_t)n);
	if (r->own_from) {
		s->out_bytes += (size_t)n;
		cut_off(s, r);
	}
	if (r->pending.failed)
		close_relay(r);
}

static void relay_write(struct relay *r)
{
	ssize_t n = io_write_some(r->to_fd, r->to_type, r->pending.data + r->done,
				  r->pending.len - r->done);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0)
		close_relay(r); /* the reader is gone: the command gets its SIGPIPE */
	else
		r->done += (size_t)n;
}

static void move_console(struct streams *s, const struct pollfd *polled)
{
	uint64_t before = console_out_bytes(s->console);

	console_move(s->console, polled);
	s->out_bytes += console_out_bytes(s->console) - before;
}

void streams_move(struct streams *s, const struct pollfd *polled, size_t count)
{
	if (s->console && count > s->relay_count)
		move_console(s, polled + s->relay_count);
	for (size_t i = 0; i < count && i < s->relay_count; i++) {
		struct relay *r = &s->relays[i];

		if (!polled[i].revents || r->to_fd < 0)
			continue;
		if (r->from_pipe) {
			relay_tee(r);
			continue;
		}
		if (r->done < r->pending.len) {
			relay_write(r);
			continue;
		}
		if (!r->copied && relay_splice(s, r))
			continue;
		relay_read(s, r);
		if (r->done < r->pending.len)
			relay_write(r);
	}
}

int streams_wait_ms(const struct streams *s)
{
	for (size_t i = 0; i < s->relay_count; i++)
		if (s->relays[i].from_terminal && s->relays[i].from_fd >= 0 &&
		    !console_is_foreground(s->relays[i].from_fd))
			return CONSOLE_LOOK_MS;
	return s->console ? console_wait_ms(s->console) : -1;
}

int streams_drain(struct streams *s, uint64_t until_ms, int stop_fd)
{
	if (s->console)
		console_end(s->console);
	for (;;) {
		struct pollfd polled[STREAMS_POLLS + 1];
		size_t count = streams_poll(s, polled), open = 0;
		uint64_t now = io_now_ms();
		int n;

		for (size_t i = 0; i < count; i++) {
			if (i < s->relay_count && !s->relays[i].own_from)
				polled[i].fd = -1; /* no process reads the input */
			open += polled[i].fd >= 0;
		}
		if (open == 0 || now >= until_ms)
			return 0;
		polled[count] = (struct pollfd){ .fd = stop_fd, .events = POLLIN };
		n = poll(polled, count + 1,
			 until_ms - now < HOUR_MS ? (int)(until_ms - now) : HOUR_MS);
		if (n < 0 && errno != EINTR)
			return 0;
		if (n > 0 && polled[count].revents)
			return 1;
		if (n > 0)
			streams_move(s, polled, count);
	}
}

/* What the relay took from standard input's file and the command did not read goes back; what it
 * showed of a pipe and the command did read is taken out. */
static void give_back(struct streams *s)
{
	const struct relay *r = &s->relays[0]; /* standard input's is the first */
	int unread = 0;

	if (s->unread_fd < 0)
		return;
	if (ioctl(s->unread_fd, FIONREAD, &unread) < 0)
		unread = 0;
	if (r->from_pipe) {
		if (r->ahead > (size_t)unread)
			take_out(STDIN_FILENO, r->ahead - (size_t)unread);
	} else {
		unread += (int)(r->pending.len - r->done);
		if (unread > 0 && (uint64_t)unread > r->moved)
			unread = (int)r->moved; /* the agent can write into its own input */
		if (unread > 0)
			(void)!lseek(STDIN_FILENO, -unread, SEEK_CUR);
	}
	close(s->unread_fd);
	s->unread_fd = -1;
}

int streams_wait_scan(struct streams *s, uint64_t until_ms, int stop_fd)
{
	if (!s->scan.count)
		return 0;
	for (size_t i = 0; i < s->relay_count; i++)
		if (s->relays[i].own_from)
			close_relay(&s->relays[i]);
	if (s->tap_fd)
		close(s->tap_fd);
	s->tap_fd = 0;
	return output_scan_wait(&s->scan, until_ms, stop_fd);
}

void streams_finish(struct streams *s)
{
	streams_started(s);
	console_destroy(s->console);
	s->console = NULL;
	tail_free(&s->tail);
	give_back(s);
	for (size_t i = 0; i < s->relay_count; i++)
		close_relay(&s->relays[i]);
}
