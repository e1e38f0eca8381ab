/* What programs inside ask over http://ward.internal/, as ward-ask does. */
#ifndef WARD_APPROVE_PROPOSAL_HTTP_H
#define WARD_APPROVE_PROPOSAL_HTTP_H

#include "approve/proposal.h"
#include "rules/http_message.h"

#define PROPOSAL_HTTP_NAME "ward.internal"
#define PROPOSAL_HTTP_BODY 4096

/* What http://ward.internal/ answers at its top. */
extern const char proposal_http_usage[];

/* Reads a request whose head was accepted; host, port: of its head. 0: *ret is what ward-ask would
 * have asked; else the status of the refusal, with *ret_why. A pure function over untrusted
 * bytes. */
must_check unsigned proposal_http_read(const struct http_request *req, const struct host *host,
				       uint16_t port, const uint8_t *body, size_t n,
				       struct proposal *ret, const char **ret_why);

#endif
