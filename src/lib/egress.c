/*
 * Starting the gateway and listening to it. In: a plan with a network, sockets of the sandbox's namespace. Out: denials and
 * totals in the result. Runs in the supervisor as the user. The supervisor waits for the sockets and reads none of them: at the
 * first sign of life in one it starts the gateway and hands them all over; a command that never uses the network costs no
 * process. The gateway is a program of its own that lies beside ward (or in
 * ../libexec/ward), so that what parses bytes from inside shares nothing with the supervisor: it starts with an empty
 * environment, a session of its own, and three descriptors. What it says is believed no further than it goes into the report.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clone.h"
#include "base/io.h"
#include "base/raw.h"
#include "gateway/waf.h"
#include "lib/egress_internal.h"
#include "lib/plan_tape.h"
#include "lib/secrets.h"
#include "policy/policy_grant.h"

#define BEGIN_MS 10000		/* and to begin, where that is waited for */
#define END_MS 1000		/* what the gateway may take to say its totals */
#define EVENTS_AT_ONCE 64
#define REST_MS 10		/* between two looks at what passed: a busy gateway shall not wake the supervisor for each connection */

/* -- the program */

const char *const egress_places[EGRESS_PLACES] = { "ward-gateway", "../libexec/ward/ward-gateway", "../gateway/ward-gateway",
						   "ward-gateway-tls", "../libexec/ward/ward-gateway-tls",
						   "../gateway/ward-gateway-tls" };

/* The first of the places that is there, seen from ward's own directory; -ENOENT without words: none is. */
static int open_beside(const char *const *places, size_t count, struct ward_err *e)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	auto_fd dir = -1;

	if (n <= 0)
		return ward_fail_errno(e, "cannot find ward's own file");
	self[n] = '\0';
	*strrchr(self, '/') = '\0';
	dir = open(*self ? self : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < count && dir >= 0; i++) {
		int fd = openat(dir, places[i], O_PATH | O_CLOEXEC);

		if (fd >= 0)
			return fd;
	}
	return -ENOENT;
}

/* Above all that a child overwrites. */
static int move_up(int fd)
{
	int moved = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 10);

	own_close_fd(&fd);
	return moved;
}

static int open_program(bool look, struct ward_err *e)
{
	size_t first = look ? EGRESS_PLACES / 2 : 0;
	int fd = open_beside(egress_places + first, EGRESS_PLACES / 2, e);

	if (fd >= 0 || e->code)
		return fd;
	ward_fail(e, ENOENT, "the network needs %s, which is neither beside ward nor in ../libexec/ward", egress_places[first]);
	return ward_remedy(e, "install ward with all its files (make install), or run without a network");
}

/* The firewall is a program of its own, and its rules are a package of the system's. */
static int open_waf(struct ward_err *e)
{
	static const char *const places[] = { "ward-waf", "../libexec/ward/ward-waf", "../gateway/ward-waf" };
	int fd = open_beside(places, ARRAY_LEN(places), e);

	if (fd == -ENOENT) {
		ward_fail(e, ENOENT, "waf: this ward was built without the firewall (ward-waf is not there)");
		return ward_remedy(e, "install libmodsecurity-dev and g++ and build ward anew, or leave waf away: methods and paths are checked without it");
	}
	if (fd >= 0 && access(WAF_RULES "/REQUEST-901-INITIALIZATION.conf", R_OK) < 0) {
		close(fd);
		ward_fail(e, ENOENT, "waf: the core rule set is not installed (%s)", WAF_RULES);
		return ward_remedy(e, "install the package modsecurity-crs, or leave waf away");
	}
	return fd < 0 ? fd : move_up(fd);
}

/* The hosts whose connections go through ward-keys; all that are inspected where every request is looked through for secrets. */
static void write_keys(const struct plan *p, struct buf *out)
{
	if (!p->secrets)
		return;
	if (p->spec->policy.cred_scanning)
		buf_add(out, "*", 2);
	for (size_t i = 0; i < p->spec->policy.cred_grants.len; i++) {
		struct ward_err ignored = { 0 };
		auto_grant g = { 0 };

		if (policy_grant_read(p->spec->policy.cred_grants.items[i], &g, &ignored) < 0)
			continue;	/* plan_add_creds() has read it */
		for (size_t k = 0; k < g.hosts.len; k++)
			buf_add(out, g.hosts.items[k], strlen(g.hosts.items[k]) + 1);
	}
}

int egress_write_config(const struct egress *g, struct ward_err *e)
{
	struct gate_config config = { .magic = GATE_MAGIC, .match_count = (uint32_t)g->bring.match_count };
	const struct plan *p = g->plan;
	auto_fd fd = memfd_create("ward-rules", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	auto_buf rules = { 0 }, keys = { 0 };
	int r = rules_encode(g->rules, &rules);

	_Static_assert(PLAN_NET_MATCHES_MAX == GATE_MATCHES_MAX, "the plan's matches fit the gateway's");
	if (r < 0 || fd < 0)
		return ward_fail(e, r < 0 ? -r : errno, "cannot write the gateway's rules");
	config.rules_bytes = (uint32_t)rules.len;
	config.proxy_bytes = p->net.proxy ? sizeof(*p->net.proxy) : 0;
	write_keys(p, &keys);
	config.keys_bytes = (uint32_t)keys.len;
	config.tape = !p->tape ? GATE_TAPE_NONE : p->tape->replay ? GATE_TAPE_REPLAY : GATE_TAPE_RECORD;
	config.tell = p->spec->policy.audit_journal != JOURNAL_NONE;
	memcpy(config.matches, g->bring.matches, sizeof(config.matches));
	config.classes = g->bring.classes;
	r = io_write_all(fd, &config, sizeof(config));
	if (r == 0)
		r = io_write_all(fd, rules.data, rules.len);
	if (r == 0 && p->net.proxy)
		r = io_write_all(fd, p->net.proxy, sizeof(*p->net.proxy));
	if (r == 0)
		r = keys.failed || keys.len > GATE_KEYS_MAX ? -ENOMEM : io_write_all(fd, keys.data, keys.len);
	if (r < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return ward_fail(e, EIO, "cannot write the gateway's rules");
	return take_fd(&fd);
}

/* What the child needs; it shares our memory until exec. */
struct starting {
	int fds[GATE_FDS_END];		/* become 0, 1, ...; -1: none */
	int program_fd;
	char *const *argv, *const *envp;
	uint64_t no_signals;
	bool failed;
};

static int child_main(void *argument)
{
	struct starting *s = argument;

	s->failed = true;
	raw_call(SYS_setsid);
	raw_call(SYS_rt_sigprocmask, SIG_SETMASK, &s->no_signals, 0, 8);
	for (int i = 0; i < GATE_FDS_END; i++)
		if (s->fds[i] < 0 ? raw_call(SYS_close, i) < -EBADF : raw_call(SYS_dup3, s->fds[i], i, 0) < 0)
			return 125;
	if (raw_call(SYS_close_range, GATE_FDS_END, ~0U, 4 /* CLOSE_RANGE_CLOEXEC */) < 0)
		return 125;
	s->failed = false;
	raw_call(SYS_execveat, s->program_fd, "", s->argv, s->envp, AT_EMPTY_PATH);
	s->failed = true;
	return 125;
}

/* ward-waf reads the rule set while the rest is made ready. *ret_fd: front's end of the talk with it. */
static int start_waf(struct egress *g, int *ret_fd, struct ward_err *e)
{
	static char *const argv[] = { (char *)(uintptr_t)"ward-waf", NULL };
	char stack[8192] __attribute__((aligned(16)));
	auto_fd nothing = move_up(open("/dev/null", O_RDWR | O_CLOEXEC)), own = -1, child_end = -1;
	struct starting s = { .fds = { nothing, nothing, nothing, -1, -1, -1, -1, -1, -1, -1, -1 }, .program_fd = g->waf_program_fd, .argv = argv, .envp = argv + 1 };
	struct clone_child child = { .flags = CLONE_VM | CLONE_VFORK, .stack = stack, .stack_bytes = sizeof(stack), .main = child_main, .argument = &s };
	int pair[2];
	long pid;

	if (nothing < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return ward_fail_errno(e, "cannot make the firewall's socket");
	own = move_up(pair[0]);
	child_end = move_up(pair[1]);
	s.fds[WAF_FD] = child_end;
	if (own < 0 || child_end < 0)
		return ward_fail_errno(e, "cannot make the firewall's socket");
	pid = clone_start(&child);
	if (pid < 0)
		return ward_fail(e, (int)-pid, "cannot start ward-waf: %s", strerror((int)-pid));
	g->waf_pid = (pid_t)pid;
	*ret_fd = take_fd(&own);
	return s.failed ? ward_fail(e, EIO, "ward-waf could not be executed") : 0;
}

static int start_program(struct egress *g, int config_fd, const int child_fds[2], struct ward_err *e)
{
	static char *const argv[] = { (char *)(uintptr_t)"ward-gateway", NULL };
	char stack[8192] __attribute__((aligned(16)));
	auto_fd nothing = move_up(open("/dev/null", O_RDWR | O_CLOEXEC));
	uint32_t changed;
	auto_fd hosts = move_up(open("/etc/hosts", O_RDONLY | O_CLOEXEC));
	auto_fd trust = g->plan->certs ? move_up(certs_open_store(e)) : -1;
	auto_fd other_trust = g->plan->secrets && trust >= 0 ? certs_open_store(e) : -1;	/* each reads its own from the beginning */
	auto_fd keys = other_trust >= 0 ? move_up(secrets_link(g->plan->secrets, other_trust)) : -1;
	auto_fd waf = -1;
	struct starting s = { .fds = { nothing, nothing, nothing, child_fds[0], config_fd, hosts, child_fds[1], trust, keys, g->plan->tape ? g->plan->tape->fd : -1 }, .program_fd = g->program_fd,
			      .argv = argv, .envp = argv + 1 };
	struct clone_child child = { .flags = CLONE_VM | CLONE_VFORK, .stack = stack, .stack_bytes = sizeof(stack),
				     .main = child_main, .argument = &s };
	long pid;

	if (nothing < 0)
		return ward_fail_errno(e, "cannot open /dev/null");
	egress_look_at_files(g, &changed);
	if (g->plan->certs && trust < 0)
		return e->code ? -e->code : ward_fail_errno(e, "cannot open the host's trust store");
	if (g->plan->secrets && g->plan->certs && keys < 0)
		return ward_fail(e, EPIPE, "the secrets cannot be handed over: ward-secrets has ended");
	if (g->waf_program_fd >= 0 && start_waf(g, &waf, e) < 0)
		return -e->code;
	s.fds[GATE_FD_WAF] = waf;
	pid = clone_start(&child);
	if (pid < 0)
		return ward_fail(e, (int)-pid, "cannot start the gateway: %s", strerror((int)-pid));
	g->pid = (pid_t)pid;
	return s.failed ? ward_fail(e, EIO, "the gateway could not be executed") : 0;
}

/* A port of the host's loopback; the other family's is taken where it can be had. */
static int publish(struct egress *g, uint16_t port, bool v6, struct ward_err *e)
{
	struct sockaddr_in a4 = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct sockaddr_in6 a6 = { .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	const struct sockaddr *address = v6 ? (const struct sockaddr *)&a6 : (const struct sockaddr *)&a4;
	auto_fd fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int on = 1;

	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (fd < 0 || bind(fd, address, v6 ? sizeof(a6) : sizeof(a4)) < 0 || listen(fd, 128) < 0) {
		if (v6)
			return 0;
		ward_fail_errno(e, "network.ingress: cannot publish port %u on this host's loopback", port);
		return ward_remedy(e, "%s", errno == EACCES ? "take a port from 1024 on" : "end whoever uses it, or take another port");
	}
	g->sockets[g->count++] = (struct net_fd){ .fd = take_fd(&fd), .kind = NET_PUBLISHED };
	return 0;
}

/* Our end never waits. */
static int make_pair(int *ret_own, int *ret_child, struct ward_err *e)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return ward_fail_errno(e, "cannot make the gateway's socket");
	*ret_own = pair[0];
	*ret_child = move_up(pair[1]);
	if (*ret_child < 0 || fcntl(pair[0], F_SETFL, O_NONBLOCK) < 0)
		return ward_fail_errno(e, "cannot make the gateway's socket");
	return 0;
}

static int start_gateway(struct egress *g, struct ward_err *e)
{
	auto_fd config = move_up(egress_write_config(g, e)), control = -1, orders = -1;
	int r;

	if (config < 0)
		return e->code ? -e->code : ward_fail_errno(e, "cannot write the gateway's rules");
	r = make_pair(&g->fd, &control, e);
	if (r == 0)
		r = make_pair(&g->orders_fd, &orders, e);
	if (r == 0)
		r = start_program(g, config, (const int[]){ control, orders }, e);
	g->asked = g->taken = g->rules->generation;
	return r;
}

/* With inspect rules the sandbox must know its authority's certificate before it is built: the gateway is started now. */
static int start_early(struct egress *g, struct ward_err *e)
{
	struct pollfd ready = { .events = POLLIN };
	struct gate_event event;
	auto_fd fd = -1;
	size_t count = 0;
	int r = start_gateway(g, e);

	if (r < 0)
		return r;
	r = certs_add_links(g->plan->certs, e);	/* while it begins */
	if (r < 0)
		return r;
	ready.fd = g->fd;
	while ((r = poll(&ready, 1, BEGIN_MS)) < 0 && errno == EINTR)
		;
	if (r <= 0 || io_recv_fds(g->fd, &event, sizeof(event), &fd, 1, &count) != (ssize_t)sizeof(event))
		return ward_fail(e, EPIPE, "the gateway ended before the sandbox was built");
	if (event.kind == GATE_FAILED)
		return ward_fail(e, EPIPE, "the gateway could not begin: %.*s", (int)sizeof(event.text), event.text);
	if (event.kind != GATE_TRUST || count != 1)
		return ward_fail(e, EPROTO, "the gateway said nothing that can be trusted");
	return certs_fill(g->plan->certs, fd, e);
}

int egress_begin(const struct plan *p, const struct engine *engine, struct egress **ret, struct ward_err *e)
{
	struct egress *g = calloc(1, sizeof(*g));
	int r = 0;

	if (!g)
		return ward_fail(e, ENOMEM, "out of memory");
	g->plan = p;
	g->engine = engine;
	g->rules = p->net.rules;
	g->bring = p->net;
	g->asked = g->taken = p->net.rules->generation;
	g->fd = g->waiting_fd = g->orders_fd = g->rules_fd = g->waf_program_fd = -1;
	*ret = g;	/* egress_end() sees to the rest */
	g->program_fd = move_up(open_program(rules_look(p->net.rules) || p->tape, e));
	if (g->program_fd < 0)
		return e->code ? -e->code : ward_fail_errno(e, "cannot open the gateway's program");
	if (rules_waf(p->net.rules, -1, 0))
		r = g->waf_program_fd = open_waf(e);
	for (size_t i = 0; i < p->net.published_count && r >= 0; i++) {
		r = publish(g, p->net.published[i], false, e);
		if (r == 0)
			r = publish(g, p->net.published[i], true, e);
	}
	if (r >= 0 && p->certs)
		r = start_early(g, e);
	return r < 0 ? r : 0;
}

bool egress_is_waiting(const struct egress *g)
{
	return g && g->waiting_fd >= 0;
}

/* It ended before it was given anything. */
static int explain_end(struct egress *g, struct ward_err *e)
{
	struct gate_event event;

	if (recv(g->fd, &event, sizeof(event), MSG_DONTWAIT) == (ssize_t)sizeof(event) && event.kind == GATE_FAILED)
		return ward_fail(e, EPIPE, "the gateway could not begin: %.*s", (int)sizeof(event.text), event.text);
	return ward_fail(e, EPIPE, "the gateway ended before the sandbox was built");
}

/* Nobody else has them from here on. */
static void close_sockets(struct egress *g)
{
	for (size_t i = 0; i < g->count; i++)
		close(g->sockets[i].fd);
	g->count = 0;
	own_close_fd(&g->waiting_fd);
	g->waiting_fd = -1;
}

static int give_sockets(struct egress *g, struct ward_err *e)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(NET_FDS_MAX * sizeof(int))];
	} control = { 0 };
	struct gate_order order = { .word = GATE_SOCKETS, .count = (uint32_t)g->count, .ports = g->ports };
	struct iovec iov = { .iov_base = &order, .iov_len = sizeof(order) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.space,
			    .msg_controllen = CMSG_SPACE(g->count * sizeof(int)) };
	int *fds = (int *)(void *)CMSG_DATA(&control.align);

	control.align.cmsg_level = SOL_SOCKET;
	control.align.cmsg_type = SCM_RIGHTS;
	control.align.cmsg_len = CMSG_LEN(g->count * sizeof(int));
	for (size_t i = 0; i < g->count; i++) {
		fds[i] = g->sockets[i].fd;
		order.kinds[i] = (uint8_t)g->sockets[i].kind;
	}
	return sendmsg(g->fd, &m, MSG_NOSIGNAL) < 0 ? explain_end(g, e) : 0;
}

static void close_talk(struct egress *g)
{
	own_close_fd(&g->fd);
	own_close_fd(&g->orders_fd);
	g->fd = g->orders_fd = -1;
}

int egress_take(struct egress *g, struct running *run, struct ward_err *e)
{
	int r;

	g->waiting_fd = epoll_create1(EPOLL_CLOEXEC);
	if (g->waiting_fd < 0)
		return ward_fail_errno(e, "cannot wait for the sandbox's sockets");
	g->ports = run->net_ports;
	for (; run->net_count && g->count < NET_FDS_MAX; run->net_count--) {
		struct net_fd *socket = &run->net_fds[run->net_count - 1];

		if (socket->kind == NET_RULES)
			g->rules_fd = socket->fd;	/* ours alone */
		else
			g->sockets[g->count++] = *socket;
	}
	for (size_t i = 0; i < g->count; i++) {
		struct epoll_event event = { .events = EPOLLIN };
		enum net_socket kind = g->sockets[i].kind;

		/* a seed is not connected, which looks like an end to epoll; a maker is only for dial */
		if (kind >= NET_SEED4 && kind <= NET_MAKER6)
			continue;
		if (epoll_ctl(g->waiting_fd, EPOLL_CTL_ADD, g->sockets[i].fd, &event) < 0)
			return ward_fail_errno(e, "cannot wait for the sandbox's sockets");
	}
	if (g->fd < 0)
		return 0;
	r = give_sockets(g, e);	/* it was started early */
	close_sockets(g);
	return r;
}

/* Whatever goes wrong, the sandbox has no network then, and the report says so. */
static void begin(struct egress *g, struct result *r)
{
	struct ward_err e = { 0 };

	if (start_gateway(g, &e) < 0 || give_sockets(g, &e) < 0) {
		strv_addf(&r->notes, "the sandbox had no network: %s", e.why);
		close_talk(g);
	}
	close_sockets(g);
}

int egress_fd(const struct egress *g)
{
	return !g ? -1 : g->waiting_fd >= 0 ? g->waiting_fd : g->rest_ms ? -1 : g->fd;
}

int egress_orders_fd(const struct egress *g)
{
	return g ? g->orders_fd : -1;
}

void egress_cut(struct egress *g)
{
	close_sockets(g);	/* it may not have been started yet */
	close_talk(g);
	if (g->pid > 0)
		kill(-g->pid, SIGKILL);	/* dial is of its group, and may be stuck, too */
}

/* -- what it says */

static const char *protocol_name(uint8_t protocol, char text[32])
{
	switch (protocol) {
	case 1:
	case 58:
		return "ping to";
	case 6:
		return "connection to";
	case 17:
		return "UDP to";
	default:
		snprintf(text, 32, "IP protocol %u to", protocol);
		return text;
	}
}

static void deny(const struct egress *g, const struct gate_event *event, struct result *r)
{
	struct want w = event->want;
	struct verdict v = event->verdict;
	auto_buf what = { 0 }, remedy = { 0 };
	char host[HOST_TEXT], protocol[32], request[sizeof(event->text)];

	w.host.name[sizeof(w.host.name) - 1] = '\0';
	w.host.len = (uint8_t)strlen(w.host.name);
	v.allow = false;
	if (v.reason >= VERDICT_REASONS)
		return;
	host_text(&w.host, host);
	memcpy(request, event->text, sizeof(request));
	request[sizeof(request) - 1] = '\0';
	for (char *c = request; *c; c++)	/* it comes from inside */
		*c = (char)(*c < ' ' || *c > '~' ? '?' : *c);
	if (*request && w.port)
		buf_printf(&what, "%s to %s:%u", request, host, w.port);
	else if (w.how == WANT_DNS)
		buf_printf(&what, "name %s", host);
	else if (w.host.kind == HOST_NONE)
		buf_puts(&what, "request to the proxy");
	else if (w.port && w.host.kind == HOST_ADDRESS && w.host.ip.family == 6)
		buf_printf(&what, "%s [%s]:%u", protocol_name(event->protocol, protocol), host, w.port);
	else if (w.port)
		buf_printf(&what, "%s %s:%u", protocol_name(event->protocol, protocol), host, w.port);
	else
		buf_printf(&what, "%s %s", protocol_name(event->protocol, protocol), host);
	verdict_http_remedy(&w, &v, request, &remedy);
	if (what.failed || remedy.failed)
		return;
	egress_report_denied(g, &w, &v, event->protocol, buf_text(&remedy), request, r);
	result_deny(r, buf_text(&what), verdict_reason_text((enum verdict_reason)v.reason), buf_text(&remedy));
}

/* One event. False: there is none now. */
static bool hear(struct egress *g, struct result *r)
{
	union {
		struct gate_event event;
		struct gate_shown shown;
		uint8_t told[TOLD_PACKET];
		uint32_t kind;
	} said;
	ssize_t n = recv(g->fd, &said, sizeof(said), MSG_DONTWAIT);
	struct gate_event event;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n == (ssize_t)sizeof(said.shown) && said.shown.kind == GATE_SHOWN) {
		if (g->shown)
			g->shown(g->shown_context, &said.shown);
		return true;
	}
	if (n > (ssize_t)sizeof(said.kind) && said.kind == GATE_TOLD && egress_on_told(g, said.told + sizeof(said.kind), (size_t)n - sizeof(said.kind), r)) {
		if (!g->taken_by_ms)
			g->rest_ms = io_now_ms() + REST_MS;
		return true;
	}
	if (n != (ssize_t)sizeof(event)) {
		close_talk(g);
		return false;
	}
	event = said.event;
	if (event.kind == GATE_TAKEN)
		egress_on_taken(g, &event);
	if (event.kind == GATE_DENIED)
		deny(g, &event, r);
	if (event.kind == GATE_FAILED)
		strv_addf(&r->notes, "the gateway could not begin: %.*s", (int)sizeof(event.text), event.text);
	if (event.kind == GATE_TOTALS) {
		g->told = true;
		r->network.connections = event.totals.connections;
		r->network.bytes_in = event.totals.bytes_in;
		r->network.bytes_out = event.totals.bytes_out;
		r->network.names = event.totals.names;
		r->network.denied = event.totals.denied;
		r->network.spent = event.totals.spent;
		if (event.count)
			egress_report_lost(r, event.count, "more denied attempts than are told one by one");
		if (event.count)
			strv_addf(&r->notes, "%u more denied attempts at the network are counted but not listed", event.count);
	}
	return true;
}

void egress_handle(struct egress *g, struct result *r)
{
	int heard;

	if (g->waiting_fd >= 0) {
		begin(g, r);
		return;
	}
	for (heard = 0; heard < EVENTS_AT_ONCE && g->fd >= 0 && hear(g, r); heard++)
		;
	if (heard == EVENTS_AT_ONCE)
		g->rest_ms = 0;		/* there is more */
	if (g->fd < 0 && !g->ending)
		strv_add(&r->notes, "the gateway ended before the command did: from then on the sandbox had no network");
}

void egress_end(struct egress *g, struct result *r)
{
	uint64_t until = io_now_ms() + END_MS, now;

	struct epoll_event event;

	if (!g)
		return;
	g->ending = true;
	r->network.generation = g->rules->generation;
	if (g->waiting_fd >= 0 && epoll_wait(g->waiting_fd, &event, 1, 0) > 0)
		begin(g, r);	/* something was tried at the very end: it shall be told */
	close_sockets(g);
	if (g->fd >= 0)
		shutdown(g->fd, SHUT_WR);
	while (g->fd >= 0 && (now = io_now_ms()) < until) {
		struct pollfd ready = { .fd = g->fd, .events = POLLIN };

		if (hear(g, r))
			continue;
		if (g->fd >= 0 && poll(&ready, 1, (int)(until - now)) < 0 && errno != EINTR)
			break;
	}
	close_talk(g);
	egress_report_tape(g, r);
	own_close_fd(&g->rules_fd);
	own_close_fd(&g->program_fd);
	own_close_fd(&g->waf_program_fd);
	rules_free(g->own);
	if (g->waf_pid > 0 && waitpid(g->waf_pid, NULL, WNOHANG) == g->waf_pid) {
		strv_add(&r->notes, "the web application firewall (ward-waf) ended before the command did: from then on rules with waf: block refused everything");
	} else if (g->waf_pid > 0) {
		kill(g->waf_pid, SIGKILL);
		while (waitpid(g->waf_pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	buf_free(&g->named.text);
	if (g->pid > 0) {
		kill(-g->pid, SIGKILL);	/* it has said all that it had to say */
		while (waitpid(g->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	free(g);
}
