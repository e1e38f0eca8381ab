/*
 * ward-waf: libmodsecurity with Debian's core rule set, in a process that has nothing else. In:
 * requests of front (waf.h), one after the other. Out: whether the rule set would deny each, and
 * which rules matched; what becomes of it front decides by the policy. The rules are read first,
 * then every right is given up (tables/procs.def): no file, no network, no child. What a request
 * does to the library stays here: a crash ends this process, and then rules with waf: block let
 * nothing pass. The library and its rules come with the system; nothing else of the gateway is in
 * here.
 */
#include <errno.h>
#include <fcntl.h>
#include <modsecurity/modsecurity.h>
#include <modsecurity/rules_set.h>
#include <modsecurity/transaction.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/io.h"
#include "confine/confine.h"
#include "inspect/waf_match.h"
#include "rules/waf.h"

/* What the rule set expects of its surroundings (modsecurity.conf-recommended), with what programs
 * say to APIs added to what it lets pass. */
static const char settings[] =
	"SecRuleEngine On\n"
	"SecRequestBodyAccess On\n"
	"SecResponseBodyAccess Off\n"
	"SecRequestBodyLimit 262144\n"
	"SecRequestBodyNoFilesLimit 262144\n"
	"SecRequestBodyLimitAction Reject\n"
	"SecRequestBodyJsonDepthLimit 512\n"
	"SecPcreMatchLimit 200000\n"
	"SecPcreMatchLimitRecursion 200000\n"
	"SecAuditEngine Off\n"
	"SecDebugLogLevel 0\n"
	"SecArgumentSeparator &\n"
	"SecCookieFormat 0\n"
	"SecRule REQUEST_HEADERS:Content-Type \"^(?:application(?:/soap\\+|/)|text/)xml\" "
	"\"id:200000,phase:1,t:none,t:lowercase,pass,nolog,ctl:requestBodyProcessor=XML\"\n"
	"SecRule REQUEST_HEADERS:Content-Type \"^application/(?:[a-z0-9.-]+[+])?json\" "
	"\"id:200001,phase:1,t:none,t:lowercase,pass,nolog,ctl:requestBodyProcessor=JSON\"\n"
	"SecRule REQBODY_ERROR \"!@eq 0\" "
	"\"id:200002,phase:2,t:none,log,deny,status:400,msg:'Request body that cannot be "
	"read',severity:2\"\n"
	"SecRule MULTIPART_STRICT_ERROR \"!@eq 0\" "
	"\"id:200003,phase:2,t:none,log,deny,status:400,msg:'Multipart body that cannot be "
	"read',severity:2\"\n"
	"SecAction \"id:200010,phase:1,nolog,pass,t:none,setvar:'tx.allowed_methods=GET HEAD POST "
	"OPTIONS PUT PATCH DELETE PROPFIND REPORT'\"\n"
	"SecAction "
	"\"id:200011,phase:1,nolog,pass,t:none,setvar:'tx.allowed_request_content_type=|"
	"application/x-www-form-urlencoded| |multipart/form-data| "
	"|multipart/related| |text/xml| |application/xml| |application/soap+xml| "
	"|application/json| |application/cloudevents+json| "
	"|application/cloudevents-batch+json| |application/x-ndjson| |application/graphql| "
	"|application/json-patch+json| "
	"|application/merge-patch+json| |application/vnd.api+json| |application/octet-stream| "
	"|text/plain|'\"\n"
	"SecAction \"id:200012,phase:1,nolog,pass,t:none,setvar:'tx.allowed_http_versions=HTTP/1.0 "
	"HTTP/1.1 HTTP/2 HTTP/2.0'\"\n";

static const char *const files[] = { "Include /etc/modsecurity/crs/crs-setup.conf\n",
				     "Include " WAF_RULES "/REQUEST-9*.conf\n" };

#ifdef __SANITIZE_ADDRESS__
/* Looking for leaks at the end needs threads and files, which are given up. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}
#endif

struct waf {
	ModSecurity *engine;
	RulesSet *rules;
	uint8_t *text, *body;
};

void waf_matched(void *about, int rule, int severity, const char *message, size_t n)
{
	struct waf_said *said = about;

	if (!said || said->count == WAF_MATCHES || rule <= 0)
		return;
	for (unsigned i = 0; i < said->count; i++)
		if (said->matches[i].rule == (uint32_t)rule)
			return; /* several places of one request */
	said->matches[said->count].rule = (uint32_t)rule;
	said->matches[said->count].severity =
		(uint8_t)(severity < 0 || severity > 7 ? 7 : severity);
	waf_match_text(message, n, &said->matches[said->count++]);
}

static int prepare(struct waf *w, struct ward_err *e)
{
	const char *wrong = NULL;

	w->engine = msc_init();
	w->rules = msc_create_rules_set();
	w->text = malloc(WAF_TEXT_MAX + 1);
	w->body = malloc(WAF_BODY_MAX + 1);
	if (!w->engine || !w->rules || !w->text || !w->body)
		return ward_fail(e, ENOMEM, "out of memory");
	waf_listen(w->engine);
	if (msc_rules_add(w->rules, settings, &wrong) < 0)
		return ward_fail(e, EINVAL, "the settings of the firewall: %.200s",
				 wrong ? wrong : "");
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		if (msc_rules_add(w->rules, files[i], &wrong) < 0)
			return ward_fail(e, EINVAL,
					 "libmodsecurity refuses the core rule set: %.200s",
					 wrong ? wrong : "");
	/* the library looks for the machine's address and leaves its socket behind */
	if (syscall(SYS_close_range, WAF_FD + 1, ~0U, 0) < 0)
		return ward_fail_errno(e, "cannot close what the library has opened");
	return confine_enter(PROC_WAF, NULL, e);
}

/* Whether the rule set has denied by now. */
static bool denies(Transaction *t)
{
	ModSecurityIntervention it = { .status = 200 };
	bool deny = msc_intervention(t, &it) && it.disruptive;

	free(it.url);
	free(it.log);
	return deny;
}

static void judge(struct waf *w, const struct waf_ask *ask, struct waf_said *said)
{
	Transaction *t = msc_new_transaction(w->engine, w->rules, said);
	size_t at = 0;
	const char *method = waf_next_text(w->text, ask->text_bytes, &at),
		   *target = waf_next_text(w->text, ask->text_bytes, &at);

	said->deny = true; /* unless it has come to its end */
	if (!t)
		return;
	msc_process_connection(t, "192.0.2.1", 1024, "192.0.2.2", 443);
	msc_process_uri(t, target, method, "1.1");
	for (uint32_t i = 0; i < ask->fields; i++) {
		const char *name = waf_next_text(w->text, ask->text_bytes, &at),
			   *value = waf_next_text(w->text, ask->text_bytes, &at);

		msc_add_request_header(t, (const unsigned char *)name,
				       (const unsigned char *)value);
	}
	msc_process_request_headers(t);
	said->deny = denies(t);
	if (!said->deny) {
		if (ask->body_bytes)
			msc_append_request_body(t, w->body, ask->body_bytes);
		msc_process_request_body(t);
		said->deny = denies(t);
	}
	msc_transaction_cleanup(t);
}

/* False: the end. */
static bool read_all(void *bytes, size_t n)
{
	for (size_t at = 0; at < n;) {
		ssize_t got = read(WAF_FD, (uint8_t *)bytes + at, n - at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		at += (size_t)got;
	}
	return true;
}

static bool serve_one(struct waf *w)
{
	struct waf_said said = { .magic = WAF_MAGIC };
	struct waf_ask ask;

	if (!read_all(&ask, sizeof(ask)) || !waf_ask_is_sound(&ask) ||
	    !read_all(w->text, ask.text_bytes) || !read_all(w->body, ask.body_bytes) ||
	    !waf_text_is_sound(&ask, w->text))
		return false;
	said.id = ask.id;
	judge(w, &ask, &said);
	return io_write_all(WAF_FD, &said, sizeof(said)) == 0;
}

int main(void)
{
	struct waf w = { 0 };
	struct ward_err e = { 0 };

	if (fcntl(WAF_FD, F_GETFD) < 0) {
		fprintf(stderr, "ward-waf: started by ward run if a rule has waf; does nothing on "
				"its own\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_NAME, "ward-waf");
	if (prepare(&w, &e) < 0)
		return 125;
	while (serve_one(&w))
		;
	return 0;
}
