/* Fuzzes what programs inside send to their ssh-agent: requests, the data to be signed, host keys,
 * signatures. Every part lies in the message; a message with one byte more is none. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "rules/ssh_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_inside(struct ssh_span part, const uint8_t *data, size_t n)
{
	assert(!part.len || (part.at >= data && part.len <= n && part.at + part.len <= data + n));
}

static void check_signed(struct ssh_span s, const uint8_t *data, size_t n)
{
	struct ssh_userauth u;
	struct ssh_parts p;

	if (ssh_userauth_read(s, &u)) {
		check_inside(u.session, data, n);
		check_inside(u.user, data, n);
		check_inside(u.key, data, n);
		check_inside(u.host_key, data, n);
		assert(u.user.len && u.session.len && !ssh_sig_read(s, "git"));
		assert(!ssh_userauth_read((struct ssh_span){ s.at, s.len - 1 }, &u));
	}
	if (ssh_sig_read(s, "git"))
		assert(!ssh_sig_read((struct ssh_span){ s.at, s.len - 1 }, "git") &&
		       !ssh_sig_read(s, "file"));
	if (ssh_host_key_read(s, &p)) {
		check_inside(p.first, data, n);
		check_inside(p.second, data, n);
	}
	if (ssh_signature_read(s, &p)) {
		check_inside(p.first, data, n);
		check_inside(p.second, data, n);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	uint8_t *copy = malloc(n ? n : 1);
	struct ssh_span blob, comment;
	struct ssh_request q;
	struct ssh_keys keys;

	assert(copy);
	if (n)
		memcpy(copy, data, n);
	if (ssh_request_read(copy, n, &q)) {
		check_inside(q.key, copy, n);
		check_inside(q.data, copy, n);
		check_inside(q.host_key, copy, n);
		check_inside(q.signature, copy, n);
		check_signed(q.data, copy, n);
		check_signed(q.host_key, copy, n);
		check_signed(q.signature, copy, n);
	}
	check_signed((struct ssh_span){ copy, n }, copy, n);
	if (ssh_keys_read(copy, n, &keys))
		while (ssh_keys_next(&keys, &blob, &comment)) {
			check_inside(blob, copy, n);
			check_inside(comment, copy, n);
		}
	free(copy);
	return 0;
}
