/* The signature of an archive of ward evidence, in a file beside it. */
#ifndef WARD_CLI_EVIDENCE_SIGN_H
#define WARD_CLI_EVIDENCE_SIGN_H

#include "audit/sign.h"
#include "cli/cli.h"

#define EVIDENCE_SIGNATURE ".sig" /* behind the archive's name */
#define EVIDENCE_HEADLINE "ward evidence 1"

/* Writes FILE.sig: the digest, signed with the key of the user's journals. */
must_check int evidence_sign(const char *file, const char *digest, struct ward_err *e);
/* ward evidence --verify FILE: whether it is as it was signed, with --key or the own key. */
int evidence_verify(const struct options *o);

/* A signature file, taken apart. */
struct evidence_signature {
	char digest[2 * CHAIN_BYTES + 1], key[SIGN_KEY_HEX], signature[2 * SIGN_BYTES + 1];
};

/* False: it is none. A pure function. */
must_check bool evidence_signature_read(const char *text, size_t n, struct evidence_signature *ret);

#endif
