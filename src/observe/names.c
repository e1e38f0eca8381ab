/*
 * Name lookups where there is no network. In: DNS questions that programs inside send to the
 * loopback's port 53, where a resolver without a server asks (the socket was made in the sandbox's
 * network namespace, engine/native/net_open.c). Out: for each question an answer at once, that the
 * name does not exist, so that programs fail instead of waiting; and for each name one event and
 * one denial with the option that would allow it. Runs in the supervisor with the user's rights.
 *
 * The questions are hostile: they are read by rules/dns.c, which is pure and fuzzed, and nothing is
 * ever asked outside. At most NAMES_MAX names are recorded and WINDOW_BUDGET questions answered in
 * a tenth of a second; what comes faster waits in the socket's buffer, or is dropped there.
 */
#include "observe/names.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "rules/dns.h"
#include "rules/remedy.h"
#include "event/event.h"
#include "event/result.h"

#define NAMES_MAX 64
#define WINDOW_MS 100
#define WINDOW_BUDGET 200

struct names {
	int fd;
	uint64_t window_ms, rest_ms;
	unsigned spent;
	uint64_t seen[NAMES_MAX]; /* hashes */
	size_t count;
};

struct names *names_create(int fd)
{
	struct names *n = calloc(1, sizeof(*n));

	if (!n) {
		close(fd);
		return NULL;
	}
	n->fd = fd;
	return n;
}

void names_destroy(struct names *n)
{
	if (!n)
		return;
	close(n->fd);
	free(n);
}

int names_fd(const struct names *n)
{
	return n && !n->rest_ms ? n->fd : -1;
}

uint64_t names_due_ms(const struct names *n)
{
	return n ? n->rest_ms : 0;
}

/* FNV-1a. Two names with one hash: one of them is not recorded. */
static bool is_new(struct names *n, const struct host *host)
{
	uint64_t h = 0xcbf29ce484222325;

	for (size_t i = 0; i < host->len; i++)
		h = (h ^ (unsigned char)host->name[i]) * 0x100000001b3;
	for (size_t i = 0; i < n->count; i++)
		if (n->seen[i] == h)
			return false;
	if (n->count == NAMES_MAX)
		return false;
	n->seen[n->count++] = h;
	return true;
}

static bool is_outside(const struct host *h)
{
	static const char *const own[] = { "localhost", ".localhost", ".arpa" };

	if (h->kind != HOST_NAME || !h->len)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(own); i++) {
		size_t len = strlen(own[i]);

		if (h->len >= len && strcmp(h->name + h->len - len, own[i]) == 0)
			return false;
	}
	return true;
}

static bool is_on_record(const struct result *r, const char *what)
{
	for (size_t i = 0; i < r->denial_count; i++)
		if (r->denials[i].what && strcmp(r->denials[i].what, what) == 0)
			return true;
	return false;
}

static void record(const struct host *h, bool heard, struct result *r)
{
	static const char why[] = "the policy grants no network, so names do not resolve";
	struct ward_event v;
	auto_buf what = { 0 }, remedy = { 0 };

	if (remedy_may_name(h))
		buf_printf(&remedy, "network.egress_allowlist: [\"%s\"]", h->name);
	buf_printf(&what, "name %s", h->name);
	if (what.failed || remedy.failed || (heard && is_on_record(r, buf_text(&what))))
		return;
	v = event_make(EVENT_DNS, ACTION_DENY, h->name);
	event_text(&v, FIELD_RULE, "network.mode");
	event_text(&v, FIELD_HOST, h->name);
	event_text(&v, FIELD_REASON, "no_network");
	event_text(&v, FIELD_WHY, why);
	event_text(&v, FIELD_REMEDY, remedy.len ? buf_text(&remedy) : NULL);
	if (heard)
		event_flag(&v, FIELD_OBSERVED);
	event_emit(r->events, &v);
	result_deny(r, buf_text(&what), why, buf_text(&remedy));
}

void names_heard(const char *name, struct result *r)
{
	struct host h;

	if (host_read(name, strlen(name), &h) == HOST_FINE && is_outside(&h))
		record(&h, true, r);
}

/* One question. False: there is none now. */
static bool answer_one(struct names *n, struct result *r)
{
	struct sockaddr_in from;
	socklen_t from_len = sizeof(from);
	uint8_t question[DNS_QUERY_MAX], answer[DNS_ANSWER_MAX];
	struct dns_query q;
	ssize_t got = recvfrom(n->fd, question, sizeof(question), MSG_DONTWAIT,
			       (struct sockaddr *)&from, &from_len);
	size_t len;

	if (got < 0)
		return false;
	len = resolver_refuse(question, (size_t)got, answer, sizeof(answer), &q);
	if (len) /* who is gone needs no answer */
		(void)!sendto(n->fd, answer, len, MSG_DONTWAIT | MSG_NOSIGNAL,
			      (struct sockaddr *)&from, from_len);
	if (len && q.rcode == DNS_NOERROR && q.named && is_outside(&q.host) && is_new(n, &q.host))
		record(&q.host, false, r);
	return true;
}

void names_handle(struct names *n, uint64_t now_ms, struct result *r)
{
	if (!n)
		return;
	if (now_ms - n->window_ms >= WINDOW_MS) {
		n->window_ms = now_ms;
		n->spent = 0;
		n->rest_ms = 0;
	}
	while (n->spent < WINDOW_BUDGET && answer_one(n, r))
		n->spent++;
	if (n->spent == WINDOW_BUDGET)
		n->rest_ms = n->window_ms + WINDOW_MS;
}
