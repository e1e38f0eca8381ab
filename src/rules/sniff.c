/*
 * The gate of a connection, whatever its mode: one face for the pump over tls_sniff.c and
 * http_sniff.c. In: bytes of both sides. Out: how many of the client's may go, when nothing more
 * needs to be looked at, or a reason. Run by the gateway's parsing process.
 */
#include <string.h>

#include "rules/sniff.h"

static const uint8_t hello_reasons[] = {
	[TLS_HELLO_FINE] = REASON_ALLOWED,   [TLS_HELLO_NOT_TLS] = REASON_NOT_TLS,
	[TLS_HELLO_OLD] = REASON_TLS_OLD,    [TLS_HELLO_LARGE] = REASON_TLS_LARGE,
	[TLS_HELLO_NO_NAME] = REASON_NO_SNI, [TLS_HELLO_OTHER_NAME] = REASON_WRONG_SNI,
	[TLS_HELLO_HIDDEN] = REASON_ECH,
};

static const uint8_t http_reasons[] = {
	[HTTP_FINE] = REASON_ALLOWED,          [HTTP_NOT] = REASON_NOT_HTTP,
	[HTTP_BAD] = REASON_HTTP_BAD,          [HTTP_LARGE] = REASON_HTTP_LARGE,
	[HTTP_OTHER_HOST] = REASON_WRONG_HOST, [HTTP_TUNNEL] = REASON_HTTP_TUNNEL,
};

void sniff_init(struct sniff *g, enum rule_mode mode, const struct host *host, uint16_t port)
{
	memset(g, 0, sizeof(*g));
	g->mode = (uint8_t)mode;
	if (mode == RULE_SPLICE)
		tls_sniff_init(&g->tls, host);
	else if (mode == RULE_HTTP)
		http_sniff_init(&g->http, host, port);
	else
		g->blind = mode == RULE_TCP;
}

/* What the gate of the mode says, as one word. */
static enum sniff_say say(struct sniff *g)
{
	if (g->mode == RULE_SPLICE)
		g->reason = hello_reasons[g->tls.wrong];
	else if (g->mode == RULE_HTTP)
		g->reason = http_reasons[g->http.wrong];
	else if (g->mode != RULE_TCP)
		g->reason = REASON_DENIED; /* an unknown mode lets nothing pass */
	if (g->reason != REASON_ALLOWED)
		return SNIFF_REFUSE;
	if (g->mode == RULE_SPLICE)
		g->blind = g->tls.blind;
	else if (g->mode == RULE_HTTP)
		g->blind = g->http.blind;
	return g->blind ? SNIFF_BLIND : SNIFF_OPEN;
}

enum sniff_say sniff_client(struct sniff *g, uint8_t *held, size_t n, size_t *ret_release)
{
	enum sniff_say answer;

	*ret_release = 0;
	if (g->mode == RULE_SPLICE)
		*ret_release = tls_sniff_client(&g->tls, held, n);
	else if (g->mode == RULE_HTTP)
		*ret_release = http_sniff_client(&g->http, held, n);
	answer = say(g);
	if (answer == SNIFF_BLIND)
		*ret_release = n;
	else if (answer == SNIFF_REFUSE)
		*ret_release = 0;
	return answer;
}

enum sniff_say sniff_server(struct sniff *g, const uint8_t *bytes, size_t n)
{
	bool again = false;
	enum sniff_say answer;

	if (g->mode == RULE_SPLICE)
		tls_sniff_server(&g->tls, bytes, n);
	else if (g->mode == RULE_HTTP)
		again = http_sniff_server(&g->http, bytes, n);
	answer = say(g);
	return answer == SNIFF_OPEN && again ? SNIFF_AGAIN : answer;
}

const char *sniff_reply(const struct sniff *g)
{
	if (g->mode != RULE_HTTP || g->reason == REASON_NOT_HTTP || !http_sniff_is_quiet(&g->http))
		return "";
	return http1_proxy_reply(
		g->reason == REASON_WRONG_HOST || g->reason == REASON_HTTP_TUNNEL ? 403 : 400);
}
