/*
 * Looking for secrets in requests that are looked into (credentials.scan_requests). In: a request
 * that the rules allow, its body piece by piece. Out: what may go on of it, with secrets
 * overwritten under redact, or a reason to refuse it under block. Runs in front.
 */
#ifndef WARD_INSPECT_BODY_SCAN_H
#define WARD_INSPECT_BODY_SCAN_H

#include "inspect/inspect.h"

struct body_scan;

/* Whether requests are looked through. */
bool body_scan_is_on(const struct front *f);
/* Looks through the target and the fields, which are overwritten in place; what remains of a
 * body_scan is for the body. *ret stays NULL where there is nothing to do. */
must_check enum verdict_reason body_scan_begin(struct front *f, struct exchange *ex,
					       struct http_request *r, struct http_text path,
					       struct body_scan **ret);
/* n bytes of the body; what can go on is appended to out. end: that was all. */
must_check enum verdict_reason body_scan_take(struct front *f, struct exchange *ex,
					      struct body_scan *b, const uint8_t *bytes, size_t n,
					      bool end, struct buf *out);
/* Fields behind the body. */
must_check enum verdict_reason body_scan_trailers(struct front *f, struct exchange *ex,
						  const struct http_fields *fields);
/* Bytes that it holds back. NULL is fine. */
size_t body_scan_held(const struct body_scan *b);
/* Frees it; NULL is fine. */
void body_scan_end(struct body_scan *b);

#endif
