/*
 * Signing. In: the head of the index. Out: a checkpoint line in it, Ed25519. Run by ward-audit with
 * the user's rights, never on the start path. The key is the user's own and lies in a file that
 * only he can read: it proves to others that the journal is the one that this user's ward wrote up
 * to a checkpoint they know, and not that the user himself did not write another one (SECURITY.md).
 *
 * The file key holds the 32 private bytes; key.pub the public ones as text, for those who verify
 * elsewhere. Of two that make a key at once one wins, by link(2).
 */
#include "audit/sign.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <string.h>
#include <sys/stat.h>

#include "audit/index.h"
#include "base/io.h"
#include "event/event.h"

#define CONTEXT "ward journal checkpoint 1\n"
#define CONTEXT_EVIDENCE "ward evidence archive 01\n\n" /* as long as the other */
_Static_assert(sizeof(CONTEXT) == sizeof(CONTEXT_EVIDENCE), "one message has both");

struct message {
	uint8_t bytes[sizeof(CONTEXT) - 1 + CHAIN_BYTES];
};

static struct message message_of(const char *context, const uint8_t head[CHAIN_BYTES])
{
	struct message m;

	memcpy(m.bytes, context, sizeof(CONTEXT) - 1);
	memcpy(m.bytes + sizeof(CONTEXT) - 1, head, CHAIN_BYTES);
	return m;
}

static int fill_file(int fd, const void *bytes, size_t n)
{
	int r = io_write_all(fd, bytes, n);

	return r == 0 && fsync(fd) < 0 ? -errno : r;
}

/* It has no name until it is whole: a process that is killed leaves nothing. */
static int write_unnamed(int dir_fd, const char *name, const void *bytes, size_t n, mode_t mode)
{
	auto_fd fd = openat(dir_fd, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, mode);
	char path[40];
	int r = fd < 0 ? -errno : fill_file(fd, bytes, n);

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (r == 0 && linkat(AT_FDCWD, path, dir_fd, name, AT_SYMLINK_FOLLOW) < 0 &&
	    errno != EEXIST)
		r = -errno;
	return r;
}

/* A file that appears whole or not at all, and never in place of another. */
static int write_new(int dir_fd, const char *name, const void *bytes, size_t n, mode_t mode)
{
	char made[64];
	auto_fd fd = -1;
	int r = write_unnamed(dir_fd, name, bytes, n, mode);

	if (r == 0)
		return 0;
	/* not every file system has files without a name */
	snprintf(made, sizeof(made), ".%s.%d", name, (int)getpid());
	(void)!unlinkat(dir_fd, made, 0);
	fd = openat(dir_fd, made, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (fd < 0)
		return -errno;
	r = fill_file(fd, bytes, n);
	if (r == 0 && linkat(dir_fd, made, dir_fd, name, 0) < 0 && errno != EEXIST)
		r = -errno;
	(void)!unlinkat(dir_fd, made, 0);
	return r;
}

static int make_key(int audit_fd)
{
	EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	uint8_t bytes[SIGN_KEY];
	size_t n = sizeof(bytes);
	int r = key && EVP_PKEY_get_raw_private_key(key, bytes, &n) == 1 && n == SIGN_KEY ? 0
											  : -EIO;

	if (r == 0)
		r = write_new(audit_fd, "key", bytes, sizeof(bytes), 0600);
	OPENSSL_cleanse(bytes, sizeof(bytes));
	EVP_PKEY_free(key);
	return r;
}

static int read_key(int audit_fd, uint8_t ret[SIGN_KEY], struct ward_err *e)
{
	auto_fd fd = openat(audit_fd, "key", O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return errno == ENOENT ? -ENOENT
				       : ward_fail_errno(e, "cannot read the journal's key");
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    (st.st_mode & 077)) {
		ward_fail(e, EPERM, "the journal's key is readable by others");
		return ward_remedy(e, "if no one else has read it, chmod 600; otherwise move it "
				      "away, and ward creates a new key");
	}
	return read(fd, ret, SIGN_KEY) == SIGN_KEY
		       ? 0
		       : ward_fail(e, EIO, "the journal's key is invalid");
}

static int open_key(int audit_fd, EVP_PKEY **ret_key, char ret_hex[SIGN_KEY_HEX],
		    struct ward_err *e)
{
	uint8_t bytes[SIGN_KEY], public[SIGN_KEY];
	size_t n = sizeof(public);
	int r = read_key(audit_fd, bytes, e);

	if (r == -ENOENT) {
		r = make_key(audit_fd);
		if (r < 0) {
			errno = -r;
			return ward_fail_errno(e, "cannot create the journal's key");
		}
		r = read_key(audit_fd, bytes, e);
	}
	if (r < 0)
		return e->code ? -e->code
			       : ward_fail(e, ENOENT,
					   "the journal's key was removed while ward started");
	*ret_key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, bytes, sizeof(bytes));
	OPENSSL_cleanse(bytes, sizeof(bytes));
	if (!*ret_key || EVP_PKEY_get_raw_public_key(*ret_key, public, &n) != 1) {
		ward_fail(e, EIO, "the journal's key is damaged");
		return ward_remedy(e, "move it away: ward makes a new one, and what the old one "
				      "signed can still be verified with its key.pub");
	}
	chain_hex(public, ret_hex);
	return 0;
}

struct signing {
	EVP_PKEY *key;
	char public[SIGN_KEY_HEX], head[2 * CHAIN_BYTES + 1], signature[2 * SIGN_BYTES + 1];
};

static int sign_one(const struct message *m, struct signing *s, struct ward_err *e)
{
	uint8_t signature[SIGN_BYTES];
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	size_t n = sizeof(signature);
	bool done = context && EVP_DigestSignInit(context, NULL, NULL, NULL, s->key) == 1 &&
		    EVP_DigestSign(context, signature, &n, m->bytes, sizeof(m->bytes)) == 1 &&
		    n == SIGN_BYTES;

	EVP_MD_CTX_free(context);
	if (!done)
		return ward_fail(e, EIO, "OpenSSL cannot sign");
	chain_hex(signature, s->signature);
	chain_hex(signature + CHAIN_BYTES, s->signature + 2 * CHAIN_BYTES);
	return 0;
}

static int fill(const struct chain *c, void *with, struct ward_event *ret, struct ward_err *e)
{
	struct signing *s = with;
	struct message m = message_of(CONTEXT, c->head);
	int r = sign_one(&m, s, e);

	if (r < 0)
		return r;
	chain_hex(c->head, s->head);
	*ret = event_make(EVENT_JOURNAL_CHECKPOINT, ACTION_LOG, s->head);
	event_number(ret, FIELD_EVENTS, c->seq);
	event_text(ret, FIELD_KEY, s->public);
	event_text(ret, FIELD_SIGNATURE, s->signature);
	return 0;
}

/* When the index was last signed: its time is what counts (journal_seal_due). */
static void note_sealed(int audit_fd)
{
	auto_fd fd = openat(audit_fd, PLACE_SEALED,
			    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd >= 0 && futimens(fd, NULL) < 0)
		return; /* then it is signed once more than need be */
}

static void note_key(int audit_fd, const struct signing *s)
{
	char text[SIGN_KEY_HEX + 1];

	snprintf(text, sizeof(text), "%s\n", s->public);
	(void)!write_new(audit_fd, "key.pub", text, strlen(text), 0644);
}

static void note_signed(int audit_fd, void *with)
{
	note_key(audit_fd, with);
	note_sealed(audit_fd);
}

int sign_checkpoint(int audit_fd, struct ward_err *e)
{
	struct signing s = { 0 };
	int r = open_key(audit_fd, &s.key, s.public, e);

	if (r == 0)
		r = index_append_with(audit_fd, fill, note_signed, &s, e);
	EVP_PKEY_free(s.key);
	return r < 0 ? r : 0;
}

int sign_public(int audit_fd, char ret_hex[SIGN_KEY_HEX], struct ward_err *e)
{
	auto_buf text = { 0 };
	uint8_t key[SIGN_KEY];
	int r = io_read_file(audit_fd, "key.pub", 256, &text);

	if (r == -ENOENT)
		return ward_fail(e, ENOENT, "there is no key yet: nothing has been signed");
	if (r < 0 || text.len < SIGN_KEY_HEX || text.data[SIGN_KEY_HEX - 1] != '\n' ||
	    !chain_unhex(text.data, SIGN_KEY_HEX - 1, key, SIGN_KEY))
		return ward_fail(e, EBADMSG,
				 "the journal's key.pub holds no public key: it was "
				 "changed, so signatures cannot be checked");
	memcpy(ret_hex, text.data, SIGN_KEY_HEX - 1);
	ret_hex[SIGN_KEY_HEX - 1] = '\0';
	return 0;
}

int sign_evidence(int audit_fd, const char *digest_hex, char ret_key[SIGN_KEY_HEX],
		  char ret_signature[2 * SIGN_BYTES + 1], struct ward_err *e)
{
	struct signing s = { 0 };
	uint8_t digest[CHAIN_BYTES];
	struct message m;
	int r;

	if (!chain_unhex(digest_hex, strlen(digest_hex), digest, sizeof(digest)))
		return ward_fail(e, EINVAL, "no digest to sign");
	m = message_of(CONTEXT_EVIDENCE, digest);
	r = open_key(audit_fd, &s.key, s.public, e);
	if (r == 0)
		r = sign_one(&m, &s, e);
	EVP_PKEY_free(s.key);
	if (r < 0)
		return r;
	note_key(audit_fd, &s);
	memcpy(ret_key, s.public, sizeof(s.public));
	memcpy(ret_signature, s.signature, sizeof(s.signature));
	return 0;
}

static bool check_one(const uint8_t key[SIGN_KEY], const struct message *m,
		      const uint8_t signature[SIGN_BYTES])
{
	EVP_PKEY *public = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, key, SIGN_KEY);
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	bool good =
		public && context && EVP_DigestVerifyInit(context, NULL, NULL, NULL, public) == 1 &&
		EVP_DigestVerify(context, signature, SIGN_BYTES, m->bytes, sizeof(m->bytes)) == 1;

	EVP_MD_CTX_free(context);
	EVP_PKEY_free(public);
	return good;
}

bool sign_check(const uint8_t key[SIGN_KEY], const uint8_t head[CHAIN_BYTES],
		const uint8_t signature[SIGN_BYTES])
{
	const struct message m = message_of(CONTEXT, head);

	return check_one(key, &m, signature);
}

bool sign_check_evidence(const uint8_t key[SIGN_KEY], const uint8_t digest[CHAIN_BYTES],
			 const uint8_t signature[SIGN_BYTES])
{
	const struct message m = message_of(CONTEXT_EVIDENCE, digest);

	return check_one(key, &m, signature);
}
