/*
 * A sandbox without a network refuses connections in the kernel, where nobody sees it. In:
 * observations of connect (observe.h). Out: one event and one denial for each
 *
 *   - address outside the sandbox,
 *   - port of the loopback on which nothing listens inside while something does on the host,
 *   - Unix socket that the host has and the sandbox lacks (tables/sockets.def).
 *
 * The address was seen in the caller's memory: observed, not proven, and nothing is decided by it.
 * Each is looked at once, and at most UNREACHED_MAX of them. Runs in the supervisor; the call goes
 * on before anything is looked up.
 */
#include "observe/unreached.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/un.h>

#include "base/io.h"
#include "base/path.h"
#include "base/text.h"
#include "event/event.h"
#include "event/result.h"
#include "observe/listeners.h"
#include "observe/walk_names.h"
#include "policy/hostname.h"
#include "rules/remedy.h"

#define RESOLVER 53
#define TABLE_BYTES (1024 * 1024) /* of /proc/net/tcp that are read */

static sa_family_t family_of(const struct observation *o)
{
	sa_family_t family;

	memcpy(&family, o->address, sizeof(family));
	return family;
}

static void read_target(const struct observation *o, struct ip *ret_ip, uint16_t *ret_port)
{
	struct sockaddr_in four;
	struct sockaddr_in6 six;

	if (family_of(o) == AF_INET) {
		memcpy(&four, o->address, sizeof(four));
		*ret_ip = ip_from_4((const uint8_t *)&four.sin_addr);
		*ret_port = ntohs(four.sin_port);
	} else {
		memcpy(&six, o->address, sizeof(six));
		*ret_ip = ip_from_16((const uint8_t *)&six.sin6_addr);
		*ret_port = ntohs(six.sin6_port);
	}
}

static bool is_loopback(const struct ip *ip)
{
	if (ip->family == 4)
		return ip->bytes[0] == 127 || ip->bytes[0] == 0;
	return memcmp(ip->bytes, &in6addr_loopback, 16) == 0 ||
	       memcmp(ip->bytes, &in6addr_any, 16) == 0;
}

static uint64_t hash(const uint8_t *bytes, size_t n)
{
	uint64_t h = 0xcbf29ce484222325;

	for (size_t i = 0; i < n; i++)
		h = (h ^ bytes[i]) * 0x100000001b3;
	return h;
}

static bool is_new(struct unreached *u, const struct observation *o)
{
	uint64_t h = hash(o->address, o->address_len);

	for (size_t i = 0; i < u->count; i++)
		if (u->seen[i] == h)
			return false;
	if (u->count == UNREACHED_MAX)
		return false;
	u->seen[u->count++] = h;
	return true;
}

/* -- loopback */

static bool is_listening_in(const char *file, uint16_t port)
{
	auto_buf text = { 0 };
	const char *line;
	int r = io_read_file(AT_FDCWD, file, TABLE_BYTES, &text);

	if (r < 0 && r != -EFBIG) /* what listens comes first in it */
		return false;
	buf_add(&text, "", 0);
	for (line = buf_text(&text); *line; line += strcspn(line, "\n"), line += *line == '\n')
		if (listeners_read_line(line) == port)
			return true;
	return false;
}

static bool is_listening(const char *who, uint16_t port)
{
	char four[48], six[48];

	snprintf(four, sizeof(four), "/proc/%s/net/tcp", who);
	snprintf(six, sizeof(six), "/proc/%s/net/tcp6", who);
	return is_listening_in(four, port) || is_listening_in(six, port);
}

/* -- what is said */

/* o: NULL where it was heard, not seen. */
static void tell(const struct observation *o, struct ward_event *v, const char *what,
		 const char *why, const char *remedy, struct result *r)
{
	auto_buf words = { 0 };
	char link[32] = "", exe[512];
	ssize_t n;

	if (o)
		snprintf(link, sizeof(link), "/proc/%d/exe", o->pid);
	n = readlink(link, exe, sizeof(exe));
	event_text(v, FIELD_WHY, why);
	event_text(v, FIELD_REMEDY, *remedy ? remedy : NULL);
	event_bytes(v, FIELD_EXE, n > 0 ? exe : NULL, n > 0 ? (size_t)n : 0);
	event_flag(v, FIELD_OBSERVED);
	event_emit(r->events, v);
	buf_puts(&words, "connection to ");
	text_escape(&words, what);
	if (!words.failed)
		result_deny(r, buf_text(&words), why, remedy);
}

static void tell_outside(const struct observation *o, const struct ip *ip, uint16_t port,
			 struct result *r)
{
	struct ward_event v;
	char host[HOST_TEXT];
	auto_buf object = { 0 }, remedy = { 0 };

	ip_text(ip, host);
	buf_printf(&object, ip->family == 6 ? "[%s]:%u" : "%s:%u", host, port);
	/* a name that is asked for is no address that would help, and one that hands out
	 * credentials is not offered */
	if (port == RESOLVER)
		buf_puts(&remedy, "name the host that is to be reached: --allow HOST");
	else if (remedy_may_name(&(struct host){ .kind = HOST_ADDRESS, .ip = *ip }))
		buf_printf(&remedy, "network.egress_allowlist: [\"%s\"]", buf_text(&object));
	v = event_make(EVENT_CONNECT, ACTION_DENY, buf_text(&object));
	event_text(&v, FIELD_RULE, "network.mode");
	event_text(&v, FIELD_HOST, host);
	event_number(&v, FIELD_PORT, port);
	event_text(&v, FIELD_REASON, "no_network");
	tell(o, &v, buf_text(&object), "the policy grants no network", buf_text(&remedy), r);
}

static void tell_service(const struct observation *o, const struct ip *ip, uint16_t port,
			 struct result *r)
{
	struct ward_event v;
	char host[HOST_TEXT], who[16];
	auto_buf object = { 0 }, why = { 0 }, remedy = { 0 };

	snprintf(who, sizeof(who), "%d", o->pid);
	if (is_listening(who, port) || !is_listening("self", port))
		return;
	ip_text(ip, host);
	buf_printf(&object, ip->family == 6 ? "[%s]:%u" : "%s:%u", host, port);
	buf_printf(&why,
		   "nothing listens there inside, on the host something does; an option gives that "
		   "service the name svc%u, to connect to in place of localhost",
		   port);
	buf_printf(&remedy, "network.host_services: [\"svc%u=127.0.0.1:%u\"]", port, port);
	v = event_make(EVENT_CONNECT, ACTION_DENY, buf_text(&object));
	event_text(&v, FIELD_RULE, "network.host_services");
	event_text(&v, FIELD_HOST, host);
	event_number(&v, FIELD_PORT, port);
	if (!why.failed && !remedy.failed)
		tell(o, &v, buf_text(&object), buf_text(&why), buf_text(&remedy), r);
}

/* -- Unix sockets */

const char *unreached_socket_advice(const char *path)
{
	static const struct {
		const char *path, *advice;
	} sockets[] = {
#define SOCKET(path, advice) { path, advice },
#include "sockets.def"
	};

	for (size_t i = 0; i < ARRAY_LEN(sockets); i++)
		if (path_is_beneath(path, sockets[i].path))
			return sockets[i].advice;
	return NULL;
}

static bool is_there(int root_fd, const char *path)
{
	char ignored[PATH_MAX];

	/* what may not be looked at counts as there: then nothing is said */
	return root_fd < 0 || walk_names(root_fd, path, true, ignored) != WALK_ABSENT;
}

static void tell_socket(const struct unreached *u, const struct observation *o, struct result *r)
{
	struct sockaddr_un un;
	struct ward_event v;
	auto_free char *path = NULL;
	auto_fd host_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	const char *advice;

	memset(&un, 0, sizeof(un));
	memcpy(&un, o->address, o->address_len < sizeof(un) ? o->address_len : sizeof(un) - 1);
	if (un.sun_path[0] != '/') /* abstract names and relative paths are the sandbox's own */
		return;
	un.sun_path[sizeof(un.sun_path) - 1] = '\0';
	path = path_clean(un.sun_path);
	advice = path ? unreached_socket_advice(path) : "";
	if (!advice)
		advice = "sockets of the host are not mounted; reach the program over TCP: "
			 "--service NAME=127.0.0.1:PORT";
	if (!*advice || is_there(u->root_fd, path) || !is_there(host_fd, path))
		return;
	v = event_make(EVENT_CONNECT, ACTION_DENY, path);
	event_text(&v, FIELD_RULE, "filesystem.host_mounts");
	tell(o, &v, path, "the host has this socket, the sandbox does not", advice, r);
}

void unreached_prepare(struct unreached *u, const struct observation *o)
{
	char root[32];

	u->root_fd = -1;
	if (o->act != ACT_CONNECT || !o->address_len || family_of(o) != AF_UNIX)
		return;
	snprintf(root, sizeof(root), "/proc/%d/root", o->pid);
	u->root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static void report_socket(struct unreached *u, const struct observation *o, struct result *r)
{
	if (is_new(u, o))
		tell_socket(u, o, r);
	own_close_fd(&u->root_fd);
	u->root_fd = -1;
}

void unreached_somewhere(struct result *r)
{
	static const char what[] = "a host outside", reason[] = "the policy grants no network";
	struct ward_event v = event_make(EVENT_CONNECT, ACTION_DENY, what);

	event_text(&v, FIELD_RULE, "network.mode");
	event_text(&v, FIELD_REASON, "no_network");
	tell(NULL, &v, what, reason, "name the host that is to be reached: --allow HOST", r);
}

void unreached_heard(const char *address, struct result *r)
{
	auto_buf what = { 0 };
	struct host h;
	uint16_t port;

	if (host_read_port(address, strlen(address), &h, &port) != HOST_FINE || !port ||
	    h.kind != HOST_ADDRESS || is_loopback(&h.ip))
		return;
	buf_printf(&what, "connection to %s", address);
	for (size_t i = 0; i < r->denial_count; i++)
		if (r->denials[i].what && strcmp(r->denials[i].what, buf_text(&what)) == 0)
			return;
	tell_outside(NULL, &h.ip, port, r);
}

void unreached_report(struct unreached *u, const struct observation *o, struct result *r)
{
	struct ip ip;
	uint16_t port;

	if (o->act != ACT_CONNECT || !o->address_len)
		return;
	if (family_of(o) == AF_UNIX) {
		report_socket(u, o, r);
		return;
	}
	if (!is_new(u, o))
		return;
	read_target(o, &ip, &port);
	if (!port)
		return;
	if (!is_loopback(&ip))
		tell_outside(o, &ip, port, r);
	else if (port != RESOLVER)
		tell_service(o, &ip, port, r);
}
