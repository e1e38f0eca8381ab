/* Conditions on what a pattern has found: checksums, structure, entropy, placeholders. Pure. */
#ifndef WARD_SCAN_CHECK_H
#define WARD_SCAN_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum check {
	CHECK_NONE,
	CHECK_MIXED,      /* letters and at least two digits */
	CHECK_RANDOM,     /* looks made by a generator, not by a person or a programmer */
	CHECK_PASSWORD,   /* in a URL: no word of an example */
	CHECK_PASSPHRASE, /* in an assignment: has several classes of characters */
	CHECK_CRC62,      /* ends with six digits of base 62: CRC-32 of the rest */
	CHECK_BECH32,     /* the hit ends with a bech32 checksum */
	CHECK_BASE58,     /* ends with four bytes of a double SHA-256 */
	CHECK_JWT,        /* its head is JSON with an algorithm */
	CHECK_PEM,        /* a private key with a body; its end is cut to the END line */
	CHECK_BASIC,      /* base64 of user:password */
	CHECK_EMAIL,
	CHECK_CARD, /* Luhn, and a known first digit */
	CHECK_IBAN, /* mod 97, and the country's length */
	CHECK_SSN,
	CHECK_PHONE
};

/* Part of some bytes. */
struct part {
	const uint8_t *bytes;
	size_t n;
};

/* Whether the secret in the hit passes. It may become shorter. */
bool check_secret(enum check c, struct part hit, struct part *secret, bool quoted);
/* Whether a text stands for a secret and is none: EXAMPLE, xxxx, changeme, ${VAR}, 12345678. */
bool check_is_placeholder(struct part p);
/* Shannon entropy in tenths of a bit per byte. */
unsigned check_entropy(struct part p);

#endif
