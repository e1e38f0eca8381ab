/*
 * Starting the gateway. In: a plan with a network. Out: the process, with a configuration, and
 * sockets to talk with it. Runs in the supervisor as the user. The gateway is a program of its own
 * that lies beside ward (or in ../libexec/ward), so that what parses bytes from inside shares
 * nothing with the supervisor: it starts with an empty environment, a session of its own, and the
 * descriptors that protocol/gateway.h names.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/clone.h"
#include "base/io.h"
#include "base/raw.h"
#include "egress/egress_internal.h"
#include "egress/secrets.h"
#include "host/program.h"
#include "plan/certs.h"
#include "plan/plan_canary.h"
#include "plan/plan_tape.h"
#include "policy/policy_grant.h"
#include "rules/waf.h"

#define BEGIN_MS 10000 /* what it may take to begin, where that is waited for */

/* -- the program */

/* Above all that a child overwrites. */
static int move_up(int fd)
{
	int moved = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, GATE_FDS_END);

	own_close_fd(&fd);
	return moved;
}

static int open_program(bool look, struct ward_err *e)
{
	const char *name = look ? "ward-gateway-tls" : "ward-gateway";
	int fd = program_open(name, e);

	if (fd != -ENOENT)
		return fd;
	ward_fail(e, ENOENT,
		  "the network needs %s, which is neither next to ward nor in ../libexec/ward",
		  name);
	return ward_remedy(e, "install all files of ward (make install), or run without a network");
}

/* The firewall is a program of its own, and its rules are a package of the system's. */
static int open_waf(struct ward_err *e)
{
	int fd = program_open("ward-waf", e);

	if (fd == -ENOENT) {
		ward_fail(e, ENOENT, "waf: this ward was built without the firewall (no ward-waf)");
		return ward_remedy(e, "install libmodsecurity-dev and g++ and rebuild ward, or "
				      "remove waf: methods and paths are checked without it");
	}
	if (fd >= 0 && access(WAF_RULES "/REQUEST-901-INITIALIZATION.conf", R_OK) < 0) {
		close(fd);
		ward_fail(e, ENOENT, "waf: the core rule set is not installed (%s)", WAF_RULES);
		return ward_remedy(e, "install the package modsecurity-crs, or remove waf");
	}
	return fd;
}

/* The hosts whose connections go through ward-keys; all that are inspected where every request is
 * looked through for secrets. */
static void write_keys(const struct plan *p, struct buf *out)
{
	if (!p->live->secrets)
		return;
	if (p->spec->policy.cred_scanning)
		buf_add(out, "*", 2);
	for (size_t i = 0; i < p->spec->policy.cred_grants.len; i++) {
		struct ward_err ignored = { 0 };
		auto_grant g = { 0 };

		if (policy_grant_read(p->spec->policy.cred_grants.items[i], &g, &ignored) < 0)
			continue; /* plan_add_creds() has read it */
		for (size_t k = 0; k < g.hosts.len; k++)
			buf_add(out, g.hosts.items[k], strlen(g.hosts.items[k]) + 1);
	}
}

int egress_write_config(const struct egress *g, struct ward_err *e)
{
	struct gate_config config = { .magic = GATE_MAGIC,
				      .match_count = (uint32_t)g->bring.match_count };
	const struct plan *p = g->plan;
	auto_fd fd = memfd_create("ward-rules", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	auto_buf rules = { 0 }, keys = { 0 };
	int r = rules_encode(g->rules, &rules);

	_Static_assert(PLAN_NET_MATCHES_MAX == GATE_MATCHES_MAX,
		       "the plan's matches fit the gateway's");
	if (r < 0 || fd < 0)
		return ward_fail(e, r < 0 ? -r : errno, "cannot write the gateway's rules");
	config.rules_bytes = (uint32_t)rules.len;
	config.proxy_bytes = p->net.proxy ? sizeof(*p->net.proxy) : 0;
	write_keys(p, &keys);
	config.keys_bytes = (uint32_t)keys.len;
	config.tape = !p->live->tape          ? GATE_TAPE_NONE
		      : p->live->tape->replay ? GATE_TAPE_REPLAY
					      : GATE_TAPE_RECORD;
	config.scan = SCAN_MODE(&p->spec->policy, p->spec->policy.cred_scan_requests);
	config.scan_personal = p->spec->policy.cred_scan_personal;
	config.canary_bytes =
		p->live->canaries ? (uint32_t)(p->live->canaries->value_count * CANARY_TOKEN) : 0;
	config.canary_passes = p->spec->policy.canary_do == CANARY_LOG;
	config.tell = p->spec->policy.audit_journal != JOURNAL_NONE;
	memcpy(config.matches, g->bring.matches, sizeof(config.matches));
	config.classes = g->bring.classes;
	r = io_write_all(fd, &config, sizeof(config));
	if (r == 0)
		r = io_write_all(fd, rules.data, rules.len);
	if (r == 0 && p->net.proxy)
		r = io_write_all(fd, p->net.proxy, sizeof(*p->net.proxy));
	if (r == 0)
		r = keys.failed || keys.len > GATE_KEYS_MAX ? -ENOMEM
							    : io_write_all(fd, keys.data, keys.len);
	if (r == 0 && config.canary_bytes)
		r = io_write_all(fd, p->live->canaries->tokens, config.canary_bytes);
	if (r < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return ward_fail(e, EIO, "cannot write the gateway's rules");
	return take_fd(&fd);
}

/* What the child needs; it shares our memory until exec. */
struct starting {
	int fds[GATE_FDS_END]; /* become 0, 1, ...; -1: none */
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
		if (s->fds[i] < 0 ? raw_call(SYS_close, i) < -EBADF
				  : raw_call(SYS_dup3, s->fds[i], i, 0) < 0)
			return 125;
	if (raw_call(SYS_close_range, GATE_FDS_END, ~0U, 4 /* CLOSE_RANGE_CLOEXEC */) < 0)
		return 125;
	s->failed = false;
	raw_call(SYS_execveat, s->program_fd, "", s->argv, s->envp, AT_EMPTY_PATH);
	s->failed = true;
	return 125;
}

/* ward-waf reads the rule set while the rest is made ready. *ret_fd: front's end of the talk with
 * it. */
static int start_waf(struct egress *g, int *ret_fd, struct ward_err *e)
{
	static char *const argv[] = { (char *)(uintptr_t) "ward-waf", NULL };
	char stack[8192] __attribute__((aligned(16)));
	auto_fd nothing = move_up(open("/dev/null", O_RDWR | O_CLOEXEC)), own = -1, child_end = -1;
	struct starting s = { .fds = { nothing, nothing, nothing, -1, -1, -1, -1, -1, -1, -1, -1 },
			      .program_fd = g->waf_program_fd,
			      .argv = argv,
			      .envp = argv + 1 };
	struct clone_child child = { .flags = CLONE_VM | CLONE_VFORK,
				     .stack = stack,
				     .stack_bytes = sizeof(stack),
				     .main = child_main,
				     .argument = &s };
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

static int start_program(struct egress *g, int config_fd, const int child_fds[2],
			 struct ward_err *e)
{
	static char *const argv[] = { (char *)(uintptr_t) "ward-gateway", NULL };
	char stack[8192] __attribute__((aligned(16)));
	auto_fd nothing = move_up(open("/dev/null", O_RDWR | O_CLOEXEC));
	uint32_t changed;
	auto_fd hosts = move_up(open("/etc/hosts", O_RDONLY | O_CLOEXEC));
	auto_fd trust = g->plan->live->certs ? move_up(certs_open_store(e)) : -1;
	/* each reads its own from the beginning */
	auto_fd other_trust = g->plan->live->secrets && trust >= 0 ? certs_open_store(e) : -1;
	auto_fd keys =
		other_trust >= 0 ? move_up(secrets_link(g->plan->live->secrets, other_trust)) : -1;
	auto_fd waf = -1;
	struct starting s = { .fds = { nothing, nothing, nothing, child_fds[0], config_fd, hosts,
				       child_fds[1], trust, keys,
				       g->plan->live->tape ? g->plan->live->tape->fd : -1 },
			      .program_fd = g->program_fd,
			      .argv = argv,
			      .envp = argv + 1 };
	struct clone_child child = { .flags = CLONE_VM | CLONE_VFORK,
				     .stack = stack,
				     .stack_bytes = sizeof(stack),
				     .main = child_main,
				     .argument = &s };
	long pid;

	if (nothing < 0)
		return ward_fail_errno(e, "cannot open /dev/null");
	egress_look_at_files(g, &changed);
	if (g->plan->live->certs && trust < 0)
		return e->code ? -e->code
			       : ward_fail_errno(e, "cannot open the host's trust store");
	if (g->plan->live->secrets && g->plan->live->certs && keys < 0)
		return ward_fail(e, EPIPE, "cannot pass the secrets: ward-secrets has exited");
	if (g->waf_program_fd >= 0 && start_waf(g, &waf, e) < 0)
		return -e->code;
	s.fds[GATE_FD_WAF] = waf;
	pid = clone_start(&child);
	if (pid < 0)
		return ward_fail(e, (int)-pid, "cannot start the gateway: %s", strerror((int)-pid));
	g->pid = (pid_t)pid;
	return s.failed ? ward_fail(e, EIO, "the gateway could not be executed") : 0;
}

/* A port that only a profile asked for, for a login, and another run of the agent has: no reason to
 * refuse this one. */
static bool is_busy_wish(struct egress *g, int error, uint16_t port)
{
	if (error != EADDRINUSE ||
	    g->plan->spec->policy.origin[POLICY_F_net_ingress].source != POLICY_PROFILE)
		return false;
	g->unpublished = port;
	return true;
}

/* A port of the host's loopback; the other family's is taken where it can be had. */
static int publish(struct egress *g, const struct plan_port *at, bool v6, struct ward_err *e)
{
	uint16_t port = at->host;
	struct sockaddr_in a4 = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct sockaddr_in6 a6 = { .sin6_family = AF_INET6,
				   .sin6_port = htons(port),
				   .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	const struct sockaddr *address =
		v6 ? (const struct sockaddr *)&a6 : (const struct sockaddr *)&a4;
	auto_fd fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int on = 1;

	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (fd < 0 || bind(fd, address, v6 ? sizeof(a6) : sizeof(a4)) < 0 || listen(fd, 128) < 0) {
		if (v6 || is_busy_wish(g, errno, port))
			return 0;
		ward_fail_errno(
			e, "network.ingress: cannot publish port %u on this host's loopback", port);
		return ward_remedy(
			e, "%s",
			errno == EACCES
				? "use a port of at least 1024"
				: "stop the process that uses it, or choose another port, as "
				  "in --publish 8081:8080");
	}
	g->sockets[g->count++] =
		(struct net_fd){ .fd = take_fd(&fd), .kind = NET_PUBLISHED, .inside = at->inside };
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

int egress_start(struct egress *g, struct ward_err *e)
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

/* With inspect rules the sandbox must know its authority's certificate before it is built: the
 * gateway is started now. */
static int start_early(struct egress *g, struct ward_err *e)
{
	struct pollfd ready = { .events = POLLIN };
	struct gate_event event;
	auto_fd fd = -1;
	size_t count = 0;
	int r = egress_start(g, e);

	if (r < 0)
		return r;
	r = certs_add_links(g->plan->live->certs, e); /* while it begins */
	if (r < 0)
		return r;
	ready.fd = g->fd;
	while ((r = poll(&ready, 1, BEGIN_MS)) < 0 && errno == EINTR)
		;
	if (r <= 0 ||
	    io_recv_fds(g->fd, &event, sizeof(event), &fd, 1, &count) != (ssize_t)sizeof(event))
		return ward_fail(e, EPIPE, "the gateway exited before the sandbox was built");
	if (event.kind == GATE_FAILED)
		return ward_fail(e, EPIPE, "the gateway could not start: %.*s",
				 (int)sizeof(event.text), event.text);
	if (event.kind != GATE_TRUST || count != 1)
		return ward_fail(e, EPROTO, "the gateway sent an invalid answer");
	return certs_fill(g->plan->live->certs, fd, e);
}

int egress_begin(const struct plan *p, const struct engine *engine, struct egress **ret,
		 struct ward_err *e)
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
	*ret = g; /* egress_end() sees to the rest */
	g->program_fd = open_program(rules_look(p->net.rules) || p->live->tape, e);
	if (g->program_fd < 0)
		return g->program_fd;
	if (rules_waf(p->net.rules, -1, 0))
		r = g->waf_program_fd = open_waf(e);
	for (size_t i = 0; i < p->net.published_count && r >= 0; i++) {
		r = publish(g, &p->net.published[i], false, e);
		if (r == 0)
			r = publish(g, &p->net.published[i], true, e);
	}
	if (r >= 0 && p->live->certs)
		r = start_early(g, e);
	return r < 0 ? r : 0;
}
