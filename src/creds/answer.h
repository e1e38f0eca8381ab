/* The secret in an answer of a Vault-style server. A pure function over untrusted bytes. */
#ifndef WARD_CREDS_ANSWER_H
#define WARD_CREDS_ANSWER_H

#include <stdint.h>

#include "base/err.h"

#define ANSWER_MAX 65536

/* Finds the text at field ("data.data.key"; NULL: the only text beneath "data", or in the whole
 * answer). ret has room for n bytes; *ret_n is the value's length; *ret_lease_s the answer's
 * lease_duration, 0: none. Nothing of the answer stands in *e. */
must_check int answer_read(const uint8_t *bytes, size_t n, const char *field, uint8_t *ret,
			   size_t *ret_n, uint64_t *ret_lease_s, struct ward_err *e);
/* AWS's form of credentials, {"AccessKeyId":..., "SecretAccessKey":..., "SessionToken":...}: the
 * values in that order, each on a line of ret. */
must_check int answer_read_aws(const uint8_t *bytes, size_t n, uint8_t *ret, size_t *ret_n,
			       struct ward_err *e);

#endif
