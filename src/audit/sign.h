/* The user's key, and signatures over the index. Only in ward-audit, which has OpenSSL. */
#ifndef WARD_AUDIT_SIGN_H
#define WARD_AUDIT_SIGN_H

#include "audit/place.h"

#define SIGN_KEY 32
#define SIGN_BYTES 64
#define SIGN_KEY_HEX (2 * SIGN_KEY + 1)

/* Appends a checkpoint to the index: a signature over its head. Makes the key (STATE/audit/key,
 * 0600) if there is none. */
must_check int sign_checkpoint(int audit_fd, struct ward_err *e);
/* The public key that lies beside the journals, hexadecimal. -ENOENT: there is none. */
must_check int sign_public(int audit_fd, char ret_hex[SIGN_KEY_HEX], struct ward_err *e);
/* Signs the digest (hexadecimal) of an archive of ward evidence with the same key, in a context of
 * its own: none of these signatures is one of a checkpoint. */
must_check int sign_evidence(int audit_fd, const char *digest_hex, char ret_key[SIGN_KEY_HEX],
			     char ret_signature[2 * SIGN_BYTES + 1], struct ward_err *e);
bool sign_check_evidence(const uint8_t key[SIGN_KEY], const uint8_t digest[CHAIN_BYTES],
			 const uint8_t signature[SIGN_BYTES]);
/* Whether the signature is that key's over this head. */
bool sign_check(const uint8_t key[SIGN_KEY], const uint8_t head[CHAIN_BYTES],
		const uint8_t signature[SIGN_BYTES]);

#endif
