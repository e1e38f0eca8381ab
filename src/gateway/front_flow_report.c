/*
 * Flow reports: what passed, for the supervisor. In: the names and flows of front. Out: packets of
 * records (flow_report.h) over the control socket, sent at the end of a turn of front's loop.
 * Records that come within GATHER_MS of the last packet wait for the next one: otherwise a program
 * that connects often would wake the supervisor for each beginning and end of a connection. Records
 * that connect a process to a host do not wait. Sending never blocks: while the supervisor is slow,
 * records are queued; when QUEUE is full they are counted, and the count is reported as soon as
 * there is room. So nothing is lost silently, and no program inside can make front wait for the
 * journal. Runs in front.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/io.h"
#include "gateway/front.h"
#include "rules/waf.h"

#define QUEUE (256 * 1024)
#define GATHER_MS 10
/* the same name is not reported again within that time: most programs look a name up twice */
#define SAME_NAME_MS 1000

static void keep(struct front *f, const struct flow_report *t)
{
	struct front_flow_report *q = &f->report;
	size_t n;

	if (!q->bytes)
		q->bytes = malloc(QUEUE);
	if (q->bytes && q->lost) {
		struct flow_report lost = { .kind = FLOW_REPORT_LOST,
					    .rule = -1,
					    .number = q->lost };

		n = flow_report_put(q->bytes, q->len, QUEUE, &lost);
		if (n > q->len)
			q->lost = 0;
		q->len = n;
	}
	n = q->bytes && !q->lost ? flow_report_put(q->bytes, q->len, QUEUE, t) : q->len;
	if (n == q->len)
		q->lost++;
	q->len = n;
	if (t->kind == FLOW_REPORT_NAME ||
	    (t->kind == FLOW_REPORT_OPENED && t->how >= WANT_CONNECT) || q->len > QUEUE / 2)
		q->due_ms = 0;
}

static void put_host(struct flow_report *t, const struct host *host)
{
	host_text(host, t->host);
	t->host_len = (uint16_t)strnlen(t->host, HOST_TEXT - 1);
}

void front_flow_report_name(struct front *f, const struct want *w, const struct verdict *v,
			    const struct ip *given)
{
	struct flow_report t = { .kind = FLOW_REPORT_NAME,
				 .how = w->how,
				 .rule = v->rule,
				 .generation = v->generation,
				 .family = given->family };
	uint64_t now = f->config.tell ? io_now_ms() : 0;

	if (!f->config.tell)
		return;
	put_host(&t, &w->host);
	memcpy(t.address, given->bytes, sizeof(t.address));
	if (strcmp(t.host, f->report.name) == 0 && now - f->report.name_ms < SAME_NAME_MS) {
		if (f->report.name_address || !given->family)
			return;
		/* the name was reported before without this address */
		t.number = 1;
	}
	f->report.name_address = given->family != 0;
	memcpy(f->report.name, t.host, sizeof(f->report.name));
	f->report.name_ms = now;
	keep(f, &t);
}

void front_flow_report_flow(struct front *f, const struct flow *w, enum flow_report_kind kind)
{
	struct flow_report t = { .kind = (uint8_t)kind,
				 .how = w->want.how,
				 .mode = w->verdict.mode,
				 .inward = w->inward,
				 .port = w->want.port,
				 .rule = w->inward ? -1 : w->verdict.rule,
				 .flow = w->id >> 16,
				 .generation = w->verdict.generation,
				 .family = w->verdict.ip.family,
				 .bytes_in = w->lanes[DOWN].moved,
				 .bytes_out = w->lanes[UP].moved };

	if (!f->config.tell)
		return;
	if (!w->inward)
		put_host(&t, &w->want.host);
	memcpy(t.address, w->verdict.ip.bytes, sizeof(t.address));
	if (kind == FLOW_REPORT_CLOSED)
		t.number = io_now_ms() - w->began_ms;
	keep(f, &t);
}

void front_flow_report_spent(struct front *f, int32_t rule, const char *model, uint64_t sent,
			     uint64_t written, uint64_t cost)
{
	struct flow_report t = { .kind = FLOW_REPORT_SPENT,
				 .rule = rule,
				 .generation = f->rules->generation,
				 .bytes_in = written,
				 .bytes_out = sent,
				 .number = cost };

	if (!f->config.tell)
		return;
	for (; *model && t.host_len < TOKENS_MODEL;
	     model++) /* a server or a program chose this text */
		t.host[t.host_len++] = (char)(*model <= ' ' || *model > '~' ? '?' : *model);
	keep(f, &t);
}

void front_flow_report_waf(struct front *f, const struct flow *w, const struct waf_match *match,
			   enum verdict_reason reason, bool blocked)
{
	const char *text = match ? match->text : verdict_reason_text(reason);
	struct flow_report t = { .kind = FLOW_REPORT_WAF,
				 .rule = w->verdict.rule,
				 .generation = f->rules->generation,
				 .flow = w->id >> 16,
				 .inward = blocked,
				 .number = match ? match->rule : 0,
				 .bytes_in = match ? match->severity : 4 };

	if (!f->config.tell)
		return;
	for (; *text && t.host_len < HOST_TEXT - 1; text++)
		t.host[t.host_len++] = *text;
	keep(f, &t);
}

void front_flow_report_secret(struct front *f, const struct flow *w, uint32_t mode,
			      const char *rule, const char *where)
{
	struct flow_report t = { .kind = FLOW_REPORT_SECRET,
				 .how = (uint8_t)mode,
				 .rule = w->verdict.rule,
				 .port = w->want.port,
				 .generation = f->rules->generation,
				 .flow = w->id >> 16 };
	char host[HOST_TEXT];

	host_text(&w->want.host, host);
	t.host_len = (uint16_t)snprintf(t.host, HOST_TEXT, "%.60s %.20s %.160s", rule, where, host);
	keep(f, &t);
}

void front_flow_report_canary(struct front *f, const struct flow *w, int value, const char *where)
{
	char name[32];

	snprintf(name, sizeof(name), "canary:%d", value);
	front_flow_report_secret(f, w, f->config.canary_passes ? SCAN_LOG : SCAN_BLOCK, name,
				 where);
}

void front_flow_report_budget(struct front *f, int32_t rule, uint64_t spent, uint64_t limit)
{
	struct flow_report t = { .kind = FLOW_REPORT_BUDGET,
				 .rule = rule,
				 .generation = f->rules->generation,
				 .bytes_out = limit,
				 .number = spent };

	keep(f, &t); /* also without a journal: the summary shows it */
}

void front_flow_report_http(struct front *f, const struct flow *w, int32_t rule, const char *what,
			    unsigned status, uint64_t sent, uint64_t received)
{
	struct flow_report t = { .kind = FLOW_REPORT_HTTP,
				 .how = w->want.how,
				 .mode = w->verdict.mode,
				 .port = w->want.port,
				 .rule = rule,
				 .flow = w->id >> 16,
				 .generation = f->rules->generation,
				 .bytes_in = received,
				 .bytes_out = sent,
				 .number = status };

	if (!f->config.tell)
		return;
	put_host(&t, &w->want.host);
	t.host[t.host_len] = ' ';
	for (t.host_len++; *what && t.host_len < sizeof(t.host) - 1; what++)
		t.host[t.host_len++] = (char)(*what < ' ' || *what > '~' ? '?' : *what);
	keep(f, &t);
}

void front_flow_report_send(struct front *f, bool wait)
{
	struct front_flow_report *q = &f->report;
	uint8_t packet[FLOW_REPORT_PACKET];
	const uint32_t kind = GATE_FLOW_REPORT;
	size_t at = 0;

	q->due_ms = io_now_ms() + GATHER_MS;
	if (!front_say_later(f, wait))
		return;
	while (at < q->len) {
		size_t n = sizeof(kind), len;

		memcpy(packet, &kind, sizeof(kind));
		for (; (len = flow_report_length(q->bytes + at, q->len - at)) &&
		       n + len <= sizeof(packet);
		     at += len, n += len)
			memcpy(packet + n, q->bytes + at, len);
		if (send(f->control_fd, packet, n, MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT)) >= 0)
			continue;
		at -= n - sizeof(kind); /* the rest is sent later */
		break;
	}
	if (at)
		memmove(q->bytes, q->bytes + at, q->len - at);
	q->len -= at;
}
