/*
 * Showing a request that waits for its secret. In: what ward-keys says of it, the rules (for names
 * that the host could be taken for). Out: texts of a struct question. An answer for the run or for
 * a time is for the grant at this host, whatever the request is: which requests those are is what
 * the grant says. Pure. Fuzzed (fuzz/approve.c).
 */
#include <string.h>

#include "approve/show.h"
#include "base/sha256.h"
#include "protocol/secrets.h"

static void put_subject(const struct question *q, const struct keys_asked *said, struct buf *out)
{
	size_t n = strcspn(said->what, " ");

	buf_printf(out, "secret %s for %.*s https://%s", said->grants, (int)n, said->what, q->host);
	if (q->port != 443)
		buf_printf(out, ":%u", q->port);
	buf_puts(out, said->what + n + (said->what[n] ? 1 : 0));
}

void show_credential(const struct rules *r, const struct want *w, const struct keys_asked *said,
		     struct question *ret)
{
	auto_buf subject = { 0 };
	struct sha256 sum;
	char query[sizeof(said->query) + 8];
	size_t n;

	memset(ret, 0, sizeof(*ret));
	ret->kind = QUESTION_CREDENTIAL;
	ret->port = w->port;
	ret->serial_first = said->serial;
	memcpy(ret->exact, said->exact, sizeof(ret->exact));
	sha256_begin(&sum);
	sha256_add(&sum, said->grants, strlen(said->grants));
	sha256_end(&sum, ret->like);
	host_text(&w->host, ret->host);
	put_subject(ret, said, &subject);
	show_text(ret->subject, sizeof(ret->subject), subject.failed ? "?" : buf_text(&subject));
	show_text(ret->rule, sizeof(ret->rule), said->grants);
	n = show_host_warnings(r, w, ret);
	snprintf(query, sizeof(query), "query: %s", said->query);
	if (*said->query)
		show_text(ret->details[n++], sizeof(ret->details[0]), query);
	show_text(ret->details[n], sizeof(ret->details[0]),
		  "a yes for the run is for every request to this host that the grant is for");
}
