/*
 * Showing what a program inside proposes with ward-ask. In: the proposal, the rules in force. Out:
 * texts of a struct question. That the sandbox proposes it, and what it would widen, is said by
 * ward; the reason is the sandbox's own text, in a line that says so, escaped as all else. Two
 * proposals for the same are one question, whatever their reasons. Pure. Fuzzed (fuzz/proposal.c).
 */
#include <string.h>

#include "approve/proposal.h"
#include "approve/show.h"
#include "base/sha256.h"
#include "rules/address.h"

enum proposal_news proposal_judge(const struct rules *r, const struct proposal *p)
{
	struct verdict v;
	struct want w;

	if (!r || r->network == RULES_NONE)
		return PROPOSAL_NO_NETWORK;
	want_host(&w, WANT_CONNECT, &p->host, p->port);
	decide_name(r, &w, &v);
	if (v.ask)
		return PROPOSAL_ASKED;
	if (v.allow)
		return PROPOSAL_NOTHING;
	if (rules_match(r, &p->host, p->port).denied)
		return PROPOSAL_DENIED;
	return rules_match(r, &p->host, p->port).other_port ? PROPOSAL_OTHER_PORT
							    : PROPOSAL_UNLISTED;
}

bool proposal_is_public(const struct proposal *p)
{
	return p->host.kind == HOST_NAME || address_classify(&p->host.ip) == ADDRESS_PUBLIC;
}

/* Only the text is cut where there is no room for it: the label stays whole. */
static void add(struct question *ret, size_t *n, const char *label, const char *text)
{
	size_t cap = sizeof(ret->details[0]), at = strlen(label);
	char *line;

	if (*n == QUESTION_DETAILS_MAX)
		return;
	line = ret->details[(*n)++];
	snprintf(line, cap, "%s", label);
	show_text(line + at, cap - at, text);
}

static void show_host(const struct rules *r, const struct proposal *p, enum proposal_news news,
		      struct question *ret, size_t *n)
{
	static const char *const widens[] = {
		[PROPOSAL_NOTHING] = "nothing: the rules allow it",
		[PROPOSAL_ASKED] = "a host about which a rule asks for each connection",
		[PROPOSAL_UNLISTED] = "a host that no rule names",
		[PROPOSAL_OTHER_PORT] = "another port of a host that a rule names",
		[PROPOSAL_DENIED] = "a host that a rule denies; that rule would be taken back",
		[PROPOSAL_NO_NETWORK] = "network.mode, from none; this run gets no network",
	};
	const struct rules none = { .network = RULES_NONE };
	const struct verdict v = { .rule = -1 };
	char text[HOST_TEXT + 32];
	struct want w;

	want_host(&w, WANT_CONNECT, &p->host, p->port);
	host_text(&p->host, ret->host);
	ret->port = p->port;
	show_line(&none, &v, ret);
	snprintf(text, sizeof(text), strchr(ret->host, ':') ? "allow [%s]:%u" : "allow %s:%u",
		 ret->host, ret->port);
	show_text(ret->subject, sizeof(ret->subject), text);
	*n = show_host_warnings(r ? r : &none, &w, ret);
	if (news == PROPOSAL_DENIED || news == PROPOSAL_NO_NETWORK)
		add(ret, n, "warning: widens ", widens[news]);
	else
		add(ret, n, "widens: ", widens[news]);
	add(ret, n, "allows: ",
	    p->host.kind == HOST_NAME && p->port == 443  ? "TLS to this name"
	    : p->host.kind == HOST_NAME && p->port == 80 ? "plain HTTP to this name"
							 : "any protocol");
}

static void show_path(const struct proposal *p, const char *real, struct question *ret, size_t *n)
{
	char text[PROPOSAL_PATH_MAX + 16];

	snprintf(text, sizeof(text), "allow reading %s", p->path);
	show_text(ret->subject, sizeof(ret->subject), text);
	snprintf(ret->line, sizeof(ret->line), "%s", p->path);
	if (!real)
		add(ret, n, "warning: ", "this host has no such file");
	else if (strcmp(real, p->path) != 0)
		add(ret, n, "warning: it leads to ", real);
	add(ret, n,
	    "widens: ", "the files that are inside, by this one and all below it, read-only");
	add(ret, n, "", "takes effect in the next run; only always and deny are answers");
}

static void show_port(const struct proposal *p, struct question *ret, size_t *n)
{
	ret->port = p->port;
	snprintf(ret->subject, sizeof(ret->subject), "publish port %u", p->port);
	snprintf(ret->line, sizeof(ret->line), "%u", p->port);
	add(ret, n, "widens: ",
	    "what reaches the sandbox: programs of this machine, what listens on this port");
	add(ret, n, "", "takes effect in the next run; only always and deny are answers");
}

void proposal_show(const struct rules *r, const struct proposal *p, const char *real,
		   enum proposal_news news, uint64_t serial, struct question *ret)
{
	struct sha256 sum;
	size_t n = 0;

	memset(ret, 0, sizeof(*ret));
	ret->kind = QUESTION_PROPOSAL;
	ret->serial_first = serial;
	if (p->verb == PROPOSAL_PUBLISH)
		show_port(p, ret, &n);
	else if (p->host.kind == HOST_NONE)
		show_path(p, real, ret, &n);
	else
		show_host(r, p, news, ret, &n);
	sha256_begin(&sum);
	sha256_add(&sum, p->path, strlen(p->path));
	sha256_end(&sum, ret->exact);
	add(ret, &n, "the sandbox proposes it, and says why: ", p->reason);
	snprintf(ret->rule, sizeof(ret->rule), "approvals.proposals");
}
