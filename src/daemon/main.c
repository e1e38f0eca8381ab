/*
 * wardd: `ward serve`. Two processes of this program:
 *
 *	keeper	starts and ends sandboxes with the rights of the user who started the server; parses
 *		nothing that a client or a sandbox has written (keeper.h)
 *	front	reads all of that; can start no program, open no connection, and of files only the
 *		registry (row SERVE of tables/procs.def)
 *
 * If either dies, both do: the service manager starts the server again (systemd does). Sandboxes
 * are detached boxes of ward and live on; the next server finds them by its registry and by the
 * first characters of their names.
 *
 *	tls	wardd-tls, with --tls-dir alone: takes TLS off, and has the private key (tls_main.c)
 *
 * In: options of `ward serve`. Out: a line with the address on standard output, a log on standard
 * error. Without TLS it listens on loopback only. SIGHUP: the certificate and the list of templates
 * are read again.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/path.h"
#include "confine/confine.h"
#include "daemon/control_access.h"
#include "daemon/front.h"
#include "daemon/setup.h"
#include "daemon/snapshot.h"
#include "daemon/tls.h"
#include "host/program.h"

#define THREADS 8
#define DESCRIPTORS_MAX 16384 /* row SERVE of tables/procs.def */
#define REGISTRY_WAIT_MS 200  /* for another process that writes, a new key */

static volatile sig_atomic_t front_pid, tls_pid, on_terminal;

/* The keeper passes a signal on; the front ends, and then the keeper has nobody to work for. */
static void pass_on(int number)
{
	if (number == SIGHUP && on_terminal) /* the terminal has gone */
		number = SIGTERM;
	if (front_pid > 0)
		kill(front_pid, number);
	if (tls_pid > 0 && number == SIGHUP)
		kill(tls_pid, number);
}

static bool is_loopback(const struct sockaddr_in *a)
{
	return ntohl(a->sin_addr.s_addr) >> 24 == 127;
}

static int listen_on(const char *address, uint16_t port, bool tls, struct ward_err *e)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd, one = 1;

	if (inet_pton(AF_INET, address, &a.sin_addr) != 1)
		return ward_fail(e, EINVAL, "%s is not an IPv4 address", address);
	if (!tls && !is_loopback(&a)) {
		ward_fail(e, EINVAL, "without TLS ward serve listens on loopback only");
		return ward_remedy(e, "--tls-dir DIR, with DIR/cert.pem and DIR/key.pem");
	}
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return ward_fail_errno(e, "cannot make a socket");
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 512) < 0) {
		ward_fail_errno(e, "cannot listen on %s:%u", address, port);
		close(fd);
		return ward_remedy(e, "choose another port: --listen 127.0.0.1:PORT");
	}
	return fd;
}

static unsigned port_of(int fd)
{
	struct sockaddr_in a = { 0 };
	socklen_t n = sizeof(a);

	return getsockname(fd, (struct sockaddr *)&a, &n) == 0 ? ntohs(a.sin_port) : 0;
}

/* The socket that systemd has opened; -1: none. */
static int activated(void)
{
	const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");

	if (!pid || !count || atoi(pid) != getpid() || atoi(count) < 1)
		return -1;
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	fcntl(3, F_SETFD, FD_CLOEXEC);
	fcntl(3, F_SETFL, O_NONBLOCK);
	return 3;
}

static int open_listener(const struct setup *s, struct ward_err *e)
{
	struct sockaddr_in a = { 0 };
	socklen_t n = sizeof(a);
	int fd = activated();

	if (fd < 0)
		return listen_on(s->address, s->port, s->tls_dir, e);
	if (getsockname(fd, (struct sockaddr *)&a, &n) < 0 || a.sin_family != AF_INET ||
	    (!s->tls_dir && !is_loopback(&a))) {
		ward_fail(e, EINVAL, "the socket that was handed over is not on IPv4 loopback");
		return ward_remedy(e, "ListenStream=127.0.0.1:PORT in the unit of the socket, or "
				      "--tls-dir");
	}
	return fd;
}

static int lock_up(const struct setup *s, struct ward_err *e)
{
	const struct confine_tree tree = { .path = s->dir, .fd = -1, .rights = CONFINE_WRITE };
	const struct confine_own own = { .trees = &tree, .tree_count = 1 };

	return confine_enter(PROC_SERVE, &own, e);
}

static int run_front(struct front *f, const struct setup *s, pid_t keeper)
{
	struct ward_err e = { 0 };
	struct rlimit limit;
	char file[PATH_MAX + 32];
	int r;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != keeper)
		return 1;
	/* a sandbox that closes the pipe of its ward-envd gets EPIPE read here, no more */
	signal(SIGPIPE, SIG_IGN);
	snprintf(file, sizeof(file), "%s/registry.db", s->dir);
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		f->descriptors = limit.rlim_max < DESCRIPTORS_MAX ? (unsigned)limit.rlim_max
								  : DESCRIPTORS_MAX;
	r = lock_up(s, &e);
	if (r < 0) {
		front_log_text("not_confined", "why", e.why);
		return 1;
	}
	r = registry_open(file, &f->db, &e);
	if (r == 0) /* everybody waits with it: what cannot be written now is written later */
		(void)sqlite3_busy_timeout(f->db, REGISTRY_WAIT_MS);
	if (r == 0)
		r = registry_load(f, &e);
	if (r == 0)
		r = audit_open(f, s->dir, &e);
	if (r == 0)
		r = registry_load_snapshots(f, &e);
	if (r < 0) {
		front_log_text("server_failed", "why", e.why);
		return 1;
	}
	front_run(f);
	sqlite3_close(f->db);
	return 0;
}

static void say_ready(const struct setup *s, const struct front *f, unsigned port)
{
	const char *scheme = s->tls_dir ? "https" : "http";

	printf("ward serve: %s://%s:%u\n", scheme, s->address, port);
	if (s->dev)
		printf("export E2B_API_URL=%s://%s:%u E2B_SANDBOX_URL=%s://%s:%u "
		       "E2B_API_KEY=%s\n",
		       scheme, s->address, port, scheme, s->address, port, s->dev_key);
	if (f->debug)
		puts("debug mode: E2B_DEBUG=true, on http://127.0.0.1:49983");
	fflush(stdout);
}

static void fill_front(struct setup *s, struct front *f)
{
	*f = (struct front){ .most = s->most,
			     .quota = s->quota,
			     .rate = s->rate,
			     .snapshot_quota = (uint64_t)s->snapshot_mib << 20,
			     .least_memory = s->least_memory,
			     .envd_version = "0.6.13",
			     .debug = s->debug,
			     .dev = s->dev,
			     .tls = { .fd = -1 },
			     .debug_listener = { .fd = -1 } };
	memcpy(f->secret, s->secret, sizeof(f->secret));
	memcpy(f->tag, s->tag, sizeof(f->tag));
	f->pools = s->pools;
	f->pool_count = s->pool_count;
	f->cpus = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
}

/* With TLS, connections come from wardd-tls, and the front listens nowhere. */
static int start_tls(const struct setup *s, struct front *f, struct ward_err *e)
{
	pid_t pid = -1;
	int fd = -1, r;

	if (!s->tls_dir)
		return 0;
	r = tls_start(s->tls_dir, s->tls_clients, f->listener.fd, &fd, &pid, e);
	f->listener.fd = -1;
	if (r < 0)
		return r;
	fcntl(fd, F_SETFL, O_NONBLOCK);
	f->tls = (struct source){ fd, conn_accept_tls };
	tls_pid = pid;
	return 0;
}

static void handle_signals(void)
{
	struct sigaction a = { .sa_handler = pass_on, .sa_flags = SA_RESTART };

	on_terminal = isatty(STDOUT_FILENO);
	sigaction(SIGTERM, &a, NULL);
	sigaction(SIGINT, &a, NULL);
	sigaction(SIGHUP, &a, NULL);
	signal(SIGPIPE, SIG_DFL);
}

static int serve(struct setup *s, struct ward_err *e)
{
	struct keeper k = { .templates = s->templates,
			    .base = s->base,
			    .workspace = s->workspace,
			    .snapshots_fd = s->snapshots_fd };
	static struct front f;
	auto_free char *ward = NULL, *envd = NULL;
	int pair[2], big = 1 << 20, status = 0, r;
	unsigned port;
	pid_t pid, keeper;

	fill_front(s, &f);
	memcpy(k.tag, s->tag, sizeof(k.tag));
	r = program_path("ward", &ward, e);
	if (r == 0)
		r = program_path("ward-envd", &envd, e);
	if (r == 0)
		r = f.listener.fd = open_listener(s, e);
	if (r >= 0 && s->debug)
		r = f.debug_listener.fd = listen_on("127.0.0.1", ENVD_PORT, false, e);
	if (r < 0)
		return r;
	port = port_of(f.listener.fd);
	r = start_tls(s, &f, e);
	if (r < 0)
		return r;
	f.listener.ready = conn_accept;
	f.debug_listener.ready = conn_accept_debug;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return ward_fail_errno(e, "cannot make a socket pair");
	for (int i = 0; i < 2; i++)
		(void)setsockopt(pair[i], SOL_SOCKET, SO_SNDBUF, &big, sizeof(big));
	say_ready(s, &f, port);
	keeper = getpid();
	pid = fork();
	if (pid < 0)
		return ward_fail_errno(e, "cannot start a process");
	if (pid == 0) {
		close(pair[0]);
		close(s->snapshots_fd);
		f.keeper_fd = pair[1];
		_exit(run_front(&f, s, keeper));
	}
	front_pid = pid;
	handle_signals();
	close(pair[1]);
	own_close_fd(&f.listener.fd);
	own_close_fd(&f.tls.fd);
	own_close_fd(&f.debug_listener.fd);
	keeper_sweep_snapshots(k.snapshots_fd);
	k.ward = ward;
	k.envd = envd;
	k.fd = pair[0];
	keeper_run(&k, THREADS);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0
		       ? 0
		       : ward_fail(e, EIO, "the process that talks to clients has died");
}

int main(int argc, char **argv)
{
	static struct setup s;
	struct ward_err e = { 0 };
	int r = setup_read(argc, argv, &s, &e);

	if (r == 0)
		r = setup_prepare(&s, &e);
	if (r == 0 && s.add_key)
		r = setup_add_key(&s, &e);
	else if (r == 0 && setup_is_about_keys(&s))
		r = setup_keys(&s, &e);
	else if (r == 0)
		r = serve(&s, &e);
	if (r < 0) {
		fprintf(stderr, "ward serve: %s%s%s\n", e.what, *e.what ? ": " : "", e.why);
		if (*e.remedy)
			fprintf(stderr, "  %s\n", e.remedy);
	}
	return r < 0 ? (r == -EINVAL ? 2 : 125) : 0;
}
