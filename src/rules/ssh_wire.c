/*
 * The ssh-agent protocol, as far as ward-ssh-agent speaks it. In: bytes of programs inside, and the
 * host keys and signatures in them. Out: their parts, or that they have no form that is known. A
 * message must be complete and have no byte too many: what one reader skips, another could take for
 * something else. Sources: the internet draft draft-miller-ssh-agent, PROTOCOL.agent and
 * PROTOCOL.sshsig of OpenSSH, RFC 4252 and 4253. Pure functions, fuzzed (fuzz/ssh.c).
 */
#include "rules/ssh_wire.h"

#include <string.h>

#define USERAUTH_REQUEST 50
#define NAME_MAX_BYTES 256

bool ssh_span_equal(struct ssh_span a, struct ssh_span b)
{
	return a.len == b.len && (!a.len || memcmp(a.at, b.at, a.len) == 0);
}

bool ssh_span_is(struct ssh_span a, const char *text)
{
	return a.len == strlen(text) && memcmp(a.at, text, a.len) == 0;
}

/* -- what messages are made of */

struct reader {
	const uint8_t *at;
	size_t left;
	bool failed;
};

static uint8_t get_byte(struct reader *r)
{
	if (!r->left) {
		r->failed = true;
		return 0;
	}
	r->left--;
	return *r->at++;
}

static uint32_t get_number(struct reader *r)
{
	uint32_t value = 0;

	for (int i = 0; i < 4; i++)
		value = value << 8 | get_byte(r);
	return value;
}

static struct ssh_span get_string(struct reader *r)
{
	uint32_t n = get_number(r);
	struct ssh_span got = { r->at, n };

	if (r->failed || n > r->left) {
		r->failed = true;
		return (struct ssh_span){ r->at, 0 };
	}
	r->at += n;
	r->left -= n;
	return got;
}

/* A name: not empty, not long, visible ASCII. */
static struct ssh_span get_name(struct reader *r)
{
	struct ssh_span got = get_string(r);

	r->failed |= !got.len || got.len > NAME_MAX_BYTES;
	for (size_t i = 0; i < got.len && !r->failed; i++)
		r->failed |= got.at[i] <= ' ' || got.at[i] >= 127;
	return got;
}

static bool is_done(const struct reader *r)
{
	return !r->failed && !r->left;
}

static struct reader reader_of(struct ssh_span s)
{
	return (struct reader){ s.at, s.len, false };
}

/* -- requests */

static bool read_extension(struct reader *r, struct ssh_request *ret)
{
	struct ssh_span name = get_name(r);
	uint8_t forwarding;

	if (ssh_span_is(name, SSH_GPG_SIGN)) {
		ret->ask = SSH_ASK_GPG;
		ret->key = get_string(r);
		ret->data = get_string(r);
		return is_done(r);
	}
	if (r->failed || !ssh_span_is(name, "session-bind@openssh.com"))
		return !r->failed;
	ret->ask = SSH_ASK_BIND;
	ret->host_key = get_string(r);
	ret->session = get_string(r);
	ret->signature = get_string(r);
	forwarding = get_byte(r);
	ret->forwarding = forwarding != 0;
	return is_done(r) && ret->host_key.len && ret->session.len && ret->signature.len;
}

static bool read_request(struct reader r, struct ssh_request *ret)
{
	*ret = (struct ssh_request){ .ask = SSH_ASK_OTHER, .type = get_byte(&r) };
	switch (ret->type) {
	case SSH_LIST:
		ret->ask = SSH_ASK_LIST;
		return is_done(&r);
	case SSH_SIGN:
		ret->ask = SSH_ASK_SIGN;
		ret->key = get_string(&r);
		ret->data = get_string(&r);
		ret->flags = get_number(&r);
		return is_done(&r) && ret->key.len;
	case SSH_EXTENSION:
		return read_extension(&r, ret);
	default:
		return !r.failed;
	}
}

bool ssh_request_read(const uint8_t *bytes, size_t n, struct ssh_request *ret)
{
	return read_request((struct reader){ bytes, n, false }, ret) &&
	       n <= (ret->ask == SSH_ASK_GPG ? SSH_GPG_MAX : SSH_MESSAGE_MAX);
}

/* -- what is signed */

bool ssh_userauth_read(struct ssh_span data, struct ssh_userauth *ret)
{
	struct reader r = reader_of(data);
	struct ssh_span method;
	bool fine;

	*ret = (struct ssh_userauth){ .session = get_string(&r) };
	fine = get_byte(&r) == USERAUTH_REQUEST;
	ret->user = get_name(&r);
	fine &= ssh_span_is(get_name(&r), "ssh-connection");
	method = get_name(&r);
	fine &= get_byte(&r) == 1; /* there is a signature */
	ret->algorithm = get_name(&r);
	ret->key = get_string(&r);
	if (ssh_span_is(method, "publickey-hostbound-v00@openssh.com"))
		ret->host_key = get_string(&r);
	else
		fine &= ssh_span_is(method, "publickey");
	fine &= !ssh_span_is(method, "publickey-hostbound-v00@openssh.com") || ret->host_key.len;
	return fine && is_done(&r) && ret->session.len && ret->key.len;
}

bool ssh_sig_read(struct ssh_span data, const char *name_space)
{
	static const char magic[] = "SSHSIG";
	struct ssh_span space, reserved, hash, digest;
	struct reader r;

	if (data.len < sizeof(magic) - 1 || memcmp(data.at, magic, sizeof(magic) - 1) != 0)
		return false;
	r = reader_of(
		(struct ssh_span){ data.at + sizeof(magic) - 1, data.len - (sizeof(magic) - 1) });
	space = get_name(&r);
	reserved = get_string(&r);
	hash = get_name(&r);
	digest = get_string(&r);
	return is_done(&r) && ssh_span_is(space, name_space) && !reserved.len &&
	       ((ssh_span_is(hash, "sha512") && digest.len == 64) ||
		(ssh_span_is(hash, "sha256") && digest.len == 32));
}

/* -- keys and signatures */

bool ssh_host_key_read(struct ssh_span blob, struct ssh_parts *ret)
{
	struct reader r = reader_of(blob);

	*ret = (struct ssh_parts){ .name = get_name(&r) };
	ret->first = get_string(&r);
	if (r.failed)
		return false;
	if (ssh_span_is(ret->name, "ssh-ed25519"))
		return is_done(&r) && ret->first.len == 32;
	ret->second = get_string(&r);
	if (ssh_span_is(ret->name, "ssh-rsa"))
		return is_done(&r) && ret->first.len && ret->second.len;
	return is_done(&r) && ret->second.len && ret->name.len > 11 &&
	       memcmp(ret->name.at, "ecdsa-sha2-", 11) == 0 &&
	       ssh_span_equal((struct ssh_span){ ret->name.at + 11, ret->name.len - 11 },
			      ret->first);
}

bool ssh_signature_read(struct ssh_span blob, struct ssh_parts *ret)
{
	struct reader r = reader_of(blob), inner;

	*ret = (struct ssh_parts){ .name = get_name(&r) };
	ret->first = get_string(&r);
	if (!is_done(&r) || !ret->first.len)
		return false;
	if (ret->name.len <= 11 || memcmp(ret->name.at, "ecdsa-sha2-", 11) != 0)
		return true;
	inner = reader_of(ret->first);
	ret->first = get_string(&inner);
	ret->second = get_string(&inner);
	return is_done(&inner) && ret->first.len && ret->second.len;
}

/* -- what an agent answers */

bool ssh_keys_read(const uint8_t *bytes, size_t n, struct ssh_keys *ret)
{
	struct reader r = { bytes, n, false };
	bool listed = get_byte(&r) == SSH_LISTED;

	ret->left = get_number(&r);
	ret->rest = (struct ssh_span){ r.at, r.left };
	return listed && !r.failed;
}

bool ssh_keys_next(struct ssh_keys *keys, struct ssh_span *ret_blob, struct ssh_span *ret_comment)
{
	struct reader r = reader_of(keys->rest);

	if (!keys->left)
		return false;
	*ret_blob = get_string(&r);
	*ret_comment = get_string(&r);
	keys->left--;
	keys->rest = (struct ssh_span){ r.at, r.left };
	return !r.failed && ret_blob->len;
}
