/* What the gateway's unit tests share: rules from a line of policy, hosts from text. */
#ifndef WARD_TESTS_GATEWAY_HELP_H
#define WARD_TESTS_GATEWAY_HELP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "rules/decide.h"

/* Rules of a policy document's network map: "{mode: restricted, egress_allowlist: [...]}". */
static inline struct rules *rules_of(const char *network)
{
	auto_buf text = { 0 };
	struct policy_errors errors = { 0 };
	struct ward_err e = { 0 };
	struct policy p = { 0 };
	struct rules *r = NULL;

	buf_printf(&text, "network: %s\n", network);
	assert_int_equal(policy_defaults(&p, &e), 0);
	if (policy_read(&p, "test", (const uint8_t *)text.data, text.len, POLICY_FILE, &errors) < 0)
		fail_msg("%s: %s", network, errors.lines.items[0]);
	if (rules_compile(&p, 1, &r, &e) < 0)
		fail_msg("%s: %s: %s", network, e.what, e.why);
	policy_clear(&p);
	strv_free(&errors.lines);
	return r;
}

static inline struct host host_of(const char *text)
{
	struct host h;

	if (host_read(text, strlen(text), &h) != HOST_FINE)
		fail_msg("%s is no host", text);
	return h;
}

static inline struct ip ip_of(const char *text)
{
	struct host h = host_of(text);

	assert_int_equal(h.kind, HOST_ADDRESS);
	return h.ip;
}

static inline struct verdict decide_on(const struct rules *r, const char *host, uint16_t port)
{
	struct host h = host_of(host);
	struct verdict v;
	struct want w;

	want_host(&w, port ? WANT_TRANSPARENT : WANT_DNS, &h, port);
	decide_name(r, &w, &v);
	return v;
}

#endif
