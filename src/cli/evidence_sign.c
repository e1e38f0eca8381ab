/*
 * Signatures of ward evidence. In: an archive's digest, or an archive and FILE.sig. Out: FILE.sig,
 * Ed25519 with the key that signs the user's journals (audit/sign.c), or whether the archive is the
 * one that was signed. The signature proves that this user's ward has made the archive, not what a
 * sandbox wrote into its files. Which key counts is the caller's to say (--key): the one in
 * FILE.sig proves nothing by itself. Run by ward-explain with the user's rights.
 */
#include "cli/evidence_sign.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/place.h"
#include "base/io.h"
#include "base/json.h"
#include "base/sha256.h"

#define SIGNATURE_MAX 1024

static void name_of(const char *file, struct buf *out)
{
	buf_printf(out, "%s" EVIDENCE_SIGNATURE, file);
}

int evidence_sign(const char *file, const char *digest, struct ward_err *e)
{
	auto_fd audit = place_open(true, e), fd = -1;
	char key[SIGN_KEY_HEX], signature[2 * SIGN_BYTES + 1];
	auto_buf name = { 0 }, text = { 0 };
	int r = audit < 0 ? audit : sign_evidence(audit, digest, key, signature, e);

	if (r < 0)
		return r;
	name_of(file, &name);
	buf_printf(&text, EVIDENCE_HEADLINE "\nsha256 %s\nkey %s\nsignature %s\n", digest, key,
		   signature);
	if (name.failed || text.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	fd = open(name.data, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	r = fd < 0 ? -errno : io_write_all(fd, text.data, text.len);
	return r < 0 ? ward_fail(e, -r, "cannot write %.300s: %s", name.data, strerror(-r)) : 0;
}

static int digest_file(const char *path, char ret[SHA256_HEX], struct ward_err *e)
{
	auto_fd fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	uint8_t digest[CHAIN_BYTES];
	struct sha256 sum;
	struct stat st;
	char bytes[65536];
	ssize_t n = 0;

	if (fd < 0 || fstat(fd, &st) < 0)
		return ward_fail_errno(e, "cannot open %.300s", path);
	if (!S_ISREG(st.st_mode))
		return ward_fail(e, EINVAL, "%.300s is not a regular file", path);
	sha256_begin(&sum);
	while ((n = read(fd, bytes, sizeof(bytes))) > 0)
		sha256_add(&sum, bytes, (size_t)n);
	if (n < 0)
		return ward_fail_errno(e, "cannot read %.300s", path);
	sha256_end(&sum, digest);
	chain_hex(digest, ret);
	return 0;
}

static int read_signature(const char *path, struct evidence_signature *ret, struct ward_err *e)
{
	auto_buf name = { 0 }, text = { 0 };
	int r;

	name_of(path, &name);
	r = name.failed ? -ENOMEM : io_read_file(AT_FDCWD, name.data, SIGNATURE_MAX, &text);
	if (r < 0)
		return ward_fail(e, -r, "cannot read %.300s: %s", buf_text(&name), strerror(-r));
	return evidence_signature_read(buf_text(&text), text.len, ret)
		       ? 0
		       : ward_fail(e, EBADMSG, "%.300s holds no signature", name.data);
}

/* The key that must have signed. */
static int wanted_key(const struct options *o, char ret[SIGN_KEY_HEX], struct ward_err *e)
{
	uint8_t bytes[SIGN_KEY];
	auto_fd audit = -1;

	if (o->key) {
		if (!chain_unhex(o->key, strlen(o->key), bytes, SIGN_KEY)) {
			ward_fail(e, EINVAL, "--key %.100s: no public key", o->key);
			return ward_remedy(e, "64 hexadecimal digits, as key.pub has them");
		}
		chain_hex(bytes, ret);
		return 0;
	}
	audit = place_open(false, e);
	return audit < 0 ? audit : sign_public(audit, ret, e);
}

static bool is_signed(const struct evidence_signature *s)
{
	uint8_t key[SIGN_KEY], digest[CHAIN_BYTES], signature[SIGN_BYTES];

	return chain_unhex(s->key, strlen(s->key), key, sizeof(key)) &&
	       chain_unhex(s->digest, strlen(s->digest), digest, sizeof(digest)) &&
	       chain_unhex(s->signature, strlen(s->signature), signature, sizeof(signature)) &&
	       sign_check_evidence(key, digest, signature);
}

int evidence_verify(const struct options *o)
{
	struct evidence_signature s = { 0 };
	char digest[SHA256_HEX], key[SIGN_KEY_HEX];
	struct ward_err e = { 0 };
	auto_buf out = { 0 };
	struct json j = { .out = &out };
	const char *wrong;

	if (digest_file(o->words[0], digest, &e) < 0 || read_signature(o->words[0], &s, &e) < 0 ||
	    wanted_key(o, key, &e) < 0)
		return say_error(&e, o->json, EXIT_REFUSED);
	wrong = strcmp(s.digest, digest) != 0 ? "it is not the archive that was signed"
		: strcmp(s.key, key) != 0     ? "another key has signed it"
		: !is_signed(&s)              ? "the signature is wrong"
					      : NULL;
	if (o->json) {
		json_begin_object(&j, NULL);
		json_string(&j, "file", o->words[0]);
		json_string(&j, "sha256", digest);
		json_string(&j, "key", s.key);
		json_bool(&j, "good", !wrong);
		json_string(&j, "why", wrong);
		json_end_object(&j);
		buf_puts(&out, "\n");
	} else {
		buf_printf(&out, "%s: %s\n", o->words[0],
			   wrong ? wrong : "as it was signed, with the key that counts");
	}
	return say_out(&out, wrong ? EXIT_FINDINGS : EXIT_FINE);
}
