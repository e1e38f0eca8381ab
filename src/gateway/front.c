/*
 * front: the process that parses. In: the sandbox's sockets, and every byte that programs inside
 * send to them. Out: decisions, bytes, events. One thread, one epoll; level-triggered for the
 * listening sockets, edge-triggered for flows, with a list of those that have more to do, so that a
 * busy flow gives way to the others and is not forgotten.
 *
 * It cannot open a file, connect or execute anything (tables/procs.def): connected sockets come
 * from dial. When it ends, for whatever reason, no other process has the listening sockets, and the
 * sandbox has no network.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/trim_memory.h"
#include "gateway/config.h"
#include "gateway/flow.h"
#include "gateway/inspect_main.h"
#include "gateway/proc.h"

#define FLOWS_MAX 30000
#define SPARE_FDS 160 /* listening sockets, pipes, our own */
#define ACCEPT_AT_ONCE 64
#define TELL_MS 20   /* when the supervisor is slow to read */
#define PAUSE_MS 100 /* when nothing more can be accepted */
#define IDLE_MS 5000 /* after that it gives memory back */
#define LAST_MS 200  /* what a connection that is being made may take at the end */

static int watch(struct front *f, int fd, uint32_t events, uint64_t data)
{
	struct epoll_event event = { .events = events, .data.u64 = data };

	return epoll_ctl(f->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

/* -- accepting */

/* Messages come from it, not connections. */
static bool is_reported(enum net_socket kind)
{
	return kind == NET_DNS_UDP || kind == NET_LOG || kind == NET_PACKETS;
}

static void listen_all(struct front *f, bool on)
{
	for (size_t i = 0; i < f->listening_count; i++) {
		if (is_reported(f->kinds[i]))
			continue;
		if (on)
			(void)watch(f, f->listening[i], EPOLLIN, EVENT_LISTENING + i);
		else
			epoll_ctl(f->epoll_fd, EPOLL_CTL_DEL, f->listening[i], NULL);
	}
	f->paused = !on;
}

static void on_listening(struct front *f, size_t i)
{
	if (i >= f->listening_count)
		return;
	if (f->kinds[i] == NET_DNS_UDP) {
		front_datagrams(f, f->listening[i]);
		return;
	}
	if (f->kinds[i] == NET_LOG || f->kinds[i] == NET_PACKETS) {
		front_audit(f, f->listening[i], f->kinds[i]);
		return;
	}
	for (int k = 0; k < ACCEPT_AT_ONCE; k++) {
		int fd = accept4(f->listening[i], NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0) {
			if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
				listen_all(f, false); /* they wait in the backlog */
			return;
		}
		flow_accepted(f, fd, f->kinds[i], f->inside[i]);
	}
}

/* -- orders and answers */

/* Those that others are made with are dial's: it connects. */
static void pass_on(struct front *f, const struct gate_order *order, const int *fds, size_t count)
{
	struct dial_request request = { .inward = INWARD_SOCKETS };
	int passed[4];
	size_t n = 0;

	for (size_t i = 0; i < count && n < ARRAY_LEN(passed); i++)
		if (order->kinds[i] >= NET_SEED4 && order->kinds[i] <= NET_MAKER6) {
			request.kinds[n] = order->kinds[i];
			passed[n++] = fds[i];
		}
	if (!n)
		return;
	if (io_send_fds(f->dial_fd, &request, sizeof(request), passed, n) < 0)
		f->finish = true;
	for (size_t i = 0; i < n; i++)
		close(passed[i]);
}

static void take_sockets(struct front *f, const struct gate_order *order, const int *fds,
			 size_t count)
{
	f->ports = order->ports;
	pass_on(f, order, fds, count);
	for (size_t i = 0; i < count; i++) {
		if (order->kinds[i] >= NET_SEED4 && order->kinds[i] <= NET_MAKER6)
			continue;
		if (f->listening_count >= NET_FDS_MAX || order->kinds[i] >= NET_SOCKETS) {
			close(fds[i]);
			continue;
		}
		f->kinds[f->listening_count] = (enum net_socket)order->kinds[i];
		f->inside[f->listening_count] = order->inside[i];
		f->listening[f->listening_count] = fds[i];
		(void)watch(f, fds[i], EPOLLIN, EVENT_LISTENING + f->listening_count);
		f->listening_count++;
	}
}

static void on_control(struct front *f)
{
	struct gate_order order = { 0 };
	int fds[NET_FDS_MAX];
	size_t count = 0;
	ssize_t n = io_recv_fds(f->control_fd, &order, sizeof(order), fds, NET_FDS_MAX, &count);

	if (f->report.len) /* flows that passed before are reported before the answer */
		front_flow_report_send(f, false);
	if (n == (ssize_t)sizeof(order) && order.word == GATE_SOCKETS && order.count == count)
		take_sockets(f, &order, fds, count);
	else if (n == (ssize_t)sizeof(order) && order.word == GATE_RULES && count == 1)
		front_take_rules(f, fds[0]);
	else if (n == (ssize_t)sizeof(order) && order.word == GATE_SHOW && !count)
		front_show(f, &order);
	else if (n == (ssize_t)sizeof(order) && order.word == GATE_ANSWER && !count)
		flow_answered(f, &order);
	else if (n == (ssize_t)sizeof(order) && order.word == GATE_ANSWER_REQUEST && !count &&
		 f->inspect)
		f->inspect->answered(f, &order);
	else
		f->finish = true; /* asked to, or the supervisor is gone */
}

/* -- the loop */

static void on_flow(struct front *f, const struct epoll_event *event)
{
	enum side s = event->data.u64 >> 63 ? SERVER : CLIENT;
	uint64_t id = event->data.u64 & ~(UINT64_C(1) << 63);
	struct flow *w = f->flows[id & 0xffff];

	if (!w || w->id != id)
		return;
	if (event->events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		w->can_read[s] = true;
	w->has_urgent[s] |= (event->events & EPOLLPRI) != 0;
	if (event->events & EPOLLRDHUP) {
		if (s == CLIENT && !w->has_ended[s])
			flow_probe(w->fds[s]);
		w->has_ended[s] = true;
	}
	w->gone[s] |= (event->events & (EPOLLHUP | EPOLLERR)) != 0;
	if (event->events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
		w->can_write[s] = true;
	/* until dial has answered only a client that has given up matters */
	if (w->state != FLOW_DIAL || event->events & (EPOLLHUP | EPOLLERR))
		flow_mark_ready(f, w);
}

static void run_ready(struct front *f)
{
	struct flow *w = f->ready.first;

	f->ready = (struct flow_list){ 0 };
	while (w) {
		struct flow *next = w->ready_next;

		w->ready = false;
		if (w->state != FLOW_DEAD)
			flow_run(f, w);
		w = next;
	}
}

static int wait_ms(const struct front *f, uint64_t now)
{
	uint64_t end = flow_next_end(f);

	if (f->wake_at_ms && (!end || f->wake_at_ms < end))
		end = f->wake_at_ms;
	if (f->report.len && (!end || f->report.due_ms < end))
		end = f->report.due_ms;
	if (f->ready.first)
		return 0;
	if ((f->later_count || f->unasked) && (!end || end > now + TELL_MS))
		return TELL_MS;
	if (f->paused)
		return PAUSE_MS;
	if (f->fat && (!end || end > now + IDLE_MS))
		return IDLE_MS;
	if (!end)
		return -1;
	return end > now ? (int)(end - now) : 0;
}

/* What inspection needs of its program is megabytes, and a sandbox may be silent for hours. */
static void rest(struct front *f, int events)
{
	if (events != 0) {
		f->fat = f->inspect != NULL;
		f->busy_ms = f->fat ? io_now_ms() : 0;
		/* greetings are over: what is busy needs a part of what has begun */
		if (f->fat && ++f->rounds == SETTLED_ROUNDS)
			trim_memory_now();
	} else if (f->fat && io_now_ms() - f->busy_ms >= IDLE_MS) {
		f->fat = false;
		f->rounds = 0;
		trim_memory_now();
	}
}

static void serve_once(struct front *f)
{
	struct epoll_event events[256];
	bool paused = f->paused;
	int n = epoll_wait(f->epoll_fd, events, ARRAY_LEN(events),
			   wait_ms(f, flow_next_end(f) || f->wake_at_ms || f->report.len ||
						      f->later_count || f->unasked || f->fat
					      ? io_now_ms()
					      : 0));

	for (int i = 0; i < n; i++) {
		uint64_t data = events[i].data.u64;

		if (data == EVENT_CONTROL)
			on_control(f);
		else if (data == EVENT_DIAL)
			front_read_dial(f);
		else if (data < EVENT_LISTENING + NET_FDS_MAX)
			on_listening(f, (size_t)(data - EVENT_LISTENING));
		else if (data == EVENT_WAF)
			f->inspect->waf_ready(f);
		else
			on_flow(f, &events[i]);
	}
	if (f->wake_at_ms && io_now_ms() >= f->wake_at_ms)
		flow_wake(f);
	run_ready(f);
	if (f->record_failed && !f->record_cut)
		f->inspect->record_failed(f);
	if (flow_next_end(f))
		flow_expire(f, io_now_ms());
	if (f->unasked)
		flow_ask_later(f);
	front_ask(f);
	flow_free_dead(f);
	if (f->later_count ||
	    (f->report.len && (!f->report.due_ms || io_now_ms() >= f->report.due_ms)))
		front_flow_report_send(f, false);
	if (paused) /* for a round at least */
		listen_all(f, true);
	rest(f, n);
}

static bool is_dialling(const struct front *f)
{
	for (uint32_t i = 0; i < f->flow_max; i++)
		if (f->flows[i] && f->flows[i]->state == FLOW_DIAL)
			return true;
	return false;
}

/* What dial is at work on may have reached a server though its program is gone. */
static void wait_for_dial(struct front *f)
{
	struct timeval most = { .tv_usec = LAST_MS * 1000 };
	uint64_t until = io_now_ms() + LAST_MS;
	char byte;

	front_ask(f);
	setsockopt(f->dial_fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
	while (is_dialling(f) && io_now_ms() < until && recv(f->dial_fd, &byte, 1, MSG_PEEK) > 0)
		front_read_dial(f);
}

/* Reports what was tried before the end. */
static void finish(struct front *f)
{
	wait_for_dial(f);
	close(f->dial_fd); /* it ends, too */
	for (size_t i = 0; i < f->listening_count; i++)
		if (is_reported(f->kinds[i]))
			on_listening(f, i);
	for (uint32_t i = 0; i < f->flow_max; i++) {
		struct flow *w = f->flows[i];

		if (w && w->inspect && !w->server)
			flow_close(f, w, true); /* requests that are under way are reported then */
		else if (w && !w->server && w->fds[SERVER] >= 0)
			front_flow_report_flow(f, w, FLOW_REPORT_CLOSED);
	}
	front_flow_report_send(f, true);
	front_totals(f);
	if (f->inspect)
		f->inspect->recorded(f);
	while (wait4(-1, NULL, 0, NULL) > 0 || errno == EINTR) /* no other process would */
		;
}

/* -- the start */

/* dial, or replay in its place, is the same program started anew: it shares no memory and no layout
 * with what parses. */
static int start_dial(bool replay, struct ward_err *e)
{
	char *const argv[] = { (char *)(uintptr_t) "ward-gateway",
			       (char *)(uintptr_t)(replay ? "replay" : "dial"), NULL };
	static char *const none[] = { NULL };
	auto_fd self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int pair[2];
	pid_t pid;

	if (self < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return ward_fail_errno(e, "cannot prepare the gateway's second process");
	pid = fork();
	if (pid == 0) {
		dup2(pair[1], GATE_FD_CONTROL); /* its copies of the rest close with exec */
		execveat(self, "", argv, none, AT_EMPTY_PATH);
		_exit(125);
	}
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return ward_fail_errno(e, "cannot start the gateway's second process");
	}
	return pair[0];
}

static int make_room(struct front *f, struct ward_err *e)
{
	struct rlimit files = { 0 };

	/* confine_enter() takes all that the hard limit gives */
	if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_max < 2 * SPARE_FDS)
		return ward_fail(e, EMFILE, "it may have too few file descriptors (ulimit -Hn)");
	if (files.rlim_max > 2 * FLOWS_MAX + SPARE_FDS)
		files.rlim_max = 2 * FLOWS_MAX + SPARE_FDS;
	f->flow_max = (uint32_t)(files.rlim_max - SPARE_FDS) / 2;
	f->flows = calloc(f->flow_max, sizeof(struct flow *));
	f->free_numbers = calloc(f->flow_max, sizeof(*f->free_numbers));
	return f->flows && f->free_numbers ? 0 : ward_fail(e, ENOMEM, "out of memory");
}

static int prepare(struct front *f, struct ward_err *e)
{
	uint8_t seed[16];
	int r = config_read(GATE_FD_CONFIG, &f->rules, &f->config, e);

	f->has_trust = fcntl(GATE_FD_TRUST, F_SETFD, FD_CLOEXEC) == 0; /* not for dial */
	(void)fcntl(GATE_FD_KEYS, F_SETFD, FD_CLOEXEC);
	/* its descriptor number is soon used for something else */
	f->waf_fd = fcntl(GATE_FD_WAF, F_SETFD, FD_CLOEXEC) < 0 ? -1 : GATE_FD_WAF;
	if (r == 0)
		r = config_read_keys(&f->config, &f->keys_hosts, e);
	if (r == 0)
		r = config_read_canaries(&f->config, &f->canaries, e);
	if (r == 0 && f->config.tape == GATE_TAPE_RECORD)
		r = f->inspect ? f->inspect->record(f, e)
			       : ward_fail(e, EINVAL, "this build cannot record");
	if (r == 0)
		r = f->dial_fd = start_dial(f->config.tape == GATE_TAPE_REPLAY, e);
	if (r >= 0 && getrandom(seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
		r = ward_fail_errno(e, "cannot get random numbers");
	if (r < 0)
		return r;
	f->names = name_table_new(seed);
	if (f->names)
		name_table_use_classes(f->names, &f->config.classes);
	f->control_fd = GATE_FD_CONTROL;
	f->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (!f->names || f->epoll_fd < 0 || watch(f, f->control_fd, EPOLLIN, EVENT_CONTROL) < 0 ||
	    watch(f, f->dial_fd, EPOLLIN | EPOLLET, EVENT_DIAL) < 0)
		return ward_fail_errno(e, "cannot prepare the gateway");
	close(GATE_FD_CONFIG);
	close(GATE_FD_HOSTS);
	close(GATE_FD_ORDERS); /* dial's */
	if (f->config.tape == GATE_TAPE_REPLAY)
		close(GATE_FD_TAPE);
	r = make_room(f, e);
	if (r == 0 && f->inspect)
		r = f->inspect->prepare(f, e);
	return r < 0 ? r : confine_enter(PROC_FRONT, NULL, e);
}

int front_main(const struct inspect_ops *inspect)
{
	struct front *f = calloc(1, sizeof(*f));
	struct ward_err e = { 0 };

	if (!f)
		return 125;
	f->inspect = inspect;
	if (prepare(f, &e) < 0) {
		front_failed(&e);
		return 125;
	}
	trim_memory_now();
	while (!f->finish)
		serve_once(f);
	finish(f);
	return 0;
}
