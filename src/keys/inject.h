/*
 * Putting a secret into a request's head. Two steps, so that the secret is only ever in locked
 * memory: inject_base() makes the head without anything that the grant is about, which is then
 * looked through for secrets; inject_write() makes the head that is sent, and can be called again.
 * Pure functions over (pointer, length), fuzzed (fuzz/inject.c); heads were accepted by
 * http1_head() before.
 */
#ifndef WARD_KEYS_INJECT_H
#define WARD_KEYS_INJECT_H

#include "base/buf.h"
#include "keys/sigv4.h"
#include "policy/policy_grant.h"
#include "rules/http_message.h"
#include "rules/http_path.h"

/* The request line of a head that http1_head() has accepted; pointers into it. */
struct inject_line {
	const char *method, *target;
	size_t method_len, target_len, path_len; /* path: the target up to "?" */
	size_t line_len;                         /* with its line break */
};
must_check bool inject_line(const uint8_t *head, const struct http_head *h,
			    struct inject_line *ret);

/* Whether the grant's methods and paths are those of the request, however its server may read
 * it. */
must_check bool inject_fits(const struct policy_grant *g, const struct http_request *request,
			    struct http_path *room);

/* One grant of a request, with its values as its source gave them. */
struct inject_secret {
	const struct policy_grant *grant;
	const uint8_t *values[GRANT_VALUES];
	size_t bytes[GRANT_VALUES], count;
};
#define INJECT_MAX 16 /* of one request */

/* The head without what the grants put in (count 0: nothing is put in), with Accept-Encoding:
 * identity and no extension of websockets (they compress), so that what comes back can be looked
 * through. sign gets what SigV4 has to know (NULL where it is not that). False: out of memory. */
must_check bool inject_base(const struct inject_secret *secrets, size_t count, const uint8_t *head,
			    const struct http_head *h, struct buf *ret, struct sigv4_request *sign);

/* Writes the head with the secrets into out: parameters, then headers in their order, then a
 * signature over all of it. Returns its length; 0: it does not fit into room. */
size_t inject_write(const struct inject_secret *secrets, size_t count, const struct buf *base,
		    const struct sigv4_request *sign, uint8_t *out, size_t room);

/* The first header in which one of the texts stands, for messages; NULL: none, or it is in the
 * request line (*ret_len 0). */
const char *inject_field_at(const struct buf *base, size_t at, size_t *ret_len);

#endif
