/*
 * AWS Signature Version 4. The program inside has signed with its placeholder; what it signed is
 * read from its Authorization header, and signed again with the secret. Pure but for SHA-256
 * (libcrypto); fuzzed with inject.
 */
#ifndef WARD_KEYS_SIGV4_H
#define WARD_KEYS_SIGV4_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sigv4_wrong {
	SIGV4_FINE,
	SIGV4_UNSIGNED,
	SIGV4_SCOPE,
	SIGV4_STREAMED,
	SIGV4_DATE,
	SIGV4_HEADERS
};

/* What a request says about its signature. Everything is copied, bounded. */
struct sigv4_request {
	bool found; /* it has an Authorization of this kind */
	/* x-amz-content-sha256 says the body's hash, or that it is not signed */
	bool has_hash;
	char date[9], time[17]; /* 20260102, 20260102T030405Z */
	char region[33], service[33];
	char headers[1024]; /* SignedHeaders, as they stand there */
	char hash[72];      /* of the body */
};

/* Reads the value of Authorization (n bytes). */
void sigv4_read(struct sigv4_request *s, const char *value, size_t n);
/* Reads another header that belongs to it; name in lower case. */
void sigv4_read_field(struct sigv4_request *s, const char *name, size_t name_len, const char *value,
		      size_t n);
/* A header (its name in lower case) is not signed: it is not there any more. */
void sigv4_forget(struct sigv4_request *s, const char *name);
/* Whether it can be signed again for region and service ("*": any). */
enum sigv4_wrong sigv4_check(const struct sigv4_request *s, const char *region,
			     const char *service);
const char *sigv4_wrong_text(enum sigv4_wrong w);
/* The body's hash, where the request did not say it. */
void sigv4_hash_body(struct sigv4_request *s, const uint8_t *body, size_t n);

/* The key of one request: id and secret, and a token that is sent along where there is one. */
struct sigv4_key {
	const uint8_t *id, *secret, *token;
	size_t id_len, secret_len, token_len;
};

/* Writes the headers "Authorization: ...\r\n" and, with a token, "X-Amz-Security-Token: ...\r\n"
 * for head (its request line and fields, without Authorization and token). Returns their length; 0:
 * they do not fit, or a signed header is missing. */
size_t sigv4_sign(const struct sigv4_request *s, const struct sigv4_key *key, const uint8_t *head,
		  size_t n, char *out, size_t room);

#endif
