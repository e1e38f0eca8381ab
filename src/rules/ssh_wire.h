/* Messages of the ssh-agent protocol, and what a client asks an agent to sign. Pure functions over
 * bytes that programs inside send; spans are borrowed from them. */
#ifndef WARD_RULES_SSH_WIRE_H
#define WARD_RULES_SSH_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A part of a message. */
struct ssh_span {
	const uint8_t *at;
	size_t len;
};

/* Whether both have the same bytes; whether a span is this text. */
bool ssh_span_equal(struct ssh_span a, struct ssh_span b);
bool ssh_span_is(struct ssh_span a, const char *text);

/* Longest message of an ssh client; its requests have a few kilobytes. */
#define SSH_MESSAGE_MAX 32768
#define SSH_FAILURE 5
#define SSH_SUCCESS 6
#define SSH_LIST 11
#define SSH_LISTED 12
#define SSH_SIGN 13
#define SSH_SIGNED 14
#define SSH_EXTENSION 27

/* An extension of ward's own: sign these bytes with a gpg key. */
#define SSH_GPG_SIGN "gpg-sign@ward"
/* Longest message that has them. */
#define SSH_GPG_MAX (256 * 1024 + 1024)

enum ssh_ask { SSH_ASK_OTHER, SSH_ASK_LIST, SSH_ASK_SIGN, SSH_ASK_BIND, SSH_ASK_GPG };

/* A request to an agent. */
struct ssh_request {
	enum ssh_ask ask;
	uint8_t type;                                 /* as it stands in the message */
	struct ssh_span key, data;                    /* SIGN, GPG */
	uint32_t flags;                               /* SIGN */
	struct ssh_span host_key, session, signature; /* BIND */
	bool forwarding;                              /* BIND */
};

/* Reads one message (without its length). False: it has no complete request of a known form. A form
 * that is not known is fine and OTHER. */
bool ssh_request_read(const uint8_t *bytes, size_t n, struct ssh_request *ret);

/* What a client asks to have signed to log in: RFC 4252 section 7, and OpenSSH's hostbound form. */
struct ssh_userauth {
	struct ssh_span session, user, algorithm, key;
	struct ssh_span host_key; /* len 0: not the hostbound form */
};

/* False: it is anything else, has a byte more, or a name with control characters. */
bool ssh_userauth_read(struct ssh_span data, struct ssh_userauth *ret);

/* Whether this is what ssh-keygen -Y sign has signed (PROTOCOL.sshsig) in the name space. */
bool ssh_sig_read(struct ssh_span data, const char *name_space);

/* A host key, or a signature: the name of its algorithm and its parts. */
struct ssh_parts {
	struct ssh_span name, first, second;
};

/* Ed25519: first is the key. ECDSA: first is the curve, second the point. RSA: e and n. */
bool ssh_host_key_read(struct ssh_span blob, struct ssh_parts *ret);
/* Ed25519, RSA: first is the signature. ECDSA: r and s. */
bool ssh_signature_read(struct ssh_span blob, struct ssh_parts *ret);

/* The next key of an agent's list of count keys, at *at. False: there is none more. */
struct ssh_keys {
	struct ssh_span rest;
	uint32_t left;
};
bool ssh_keys_read(const uint8_t *bytes, size_t n, struct ssh_keys *ret);
bool ssh_keys_next(struct ssh_keys *keys, struct ssh_span *ret_blob, struct ssh_span *ret_comment);

#endif
