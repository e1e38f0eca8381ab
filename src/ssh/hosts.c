/*
 * The keys of the hosts that a policy names. In: its hosts, and the user's known_hosts, read by
 * ssh-keygen -F, which knows every form of those files. Out: the keys of each host, and a
 * known_hosts file for the sandbox that has these and no others. A host without a key is an error:
 * a login that no host key proves cannot be told from one to somebody else. A key that is marked as
 * revoked in either file counts as none; authorities of certificates are passed over. Runs before
 * anything is served, with the user's rights.
 */
#include <errno.h>
#include <openssl/evp.h>
#include <string.h>

#include "creds/run.h"
#include "ssh/ssh.h"

#define KEYGEN "/usr/bin/ssh-keygen"
#define FOUND_MAX 65536
#define KEYGEN_MS 10000
#define BLOB_MAX 8192

/* What ssh-keygen prints for a name in one file; nothing where there is no such file. */
static int look_up(const char *name, const char *file, struct buf *ret, struct ward_err *e)
{
	char *const argv[] = { (char *)(uintptr_t) "ssh-keygen", (char *)(uintptr_t) "-F",
			       (char *)(uintptr_t)name,          (char *)(uintptr_t) "-f",
			       (char *)(uintptr_t)file,          NULL };
	struct ward_err ignored = { 0 };
	auto_free uint8_t *out = malloc(FOUND_MAX);
	size_t n = 0;

	if (!out)
		return ward_fail(e, ENOMEM, "out of memory");
	if (access(KEYGEN, X_OK) < 0) {
		ward_fail_errno(e, "cannot start %s", KEYGEN);
		return ward_remedy(e, "install OpenSSH's client: apt install openssh-client");
	}
	/* 1: not found; an unreadable file has no keys either */
	if (access(file, R_OK) == 0 &&
	    run_program(KEYGEN, argv, NULL, 0, KEYGEN_MS, NULL, out, FOUND_MAX, &n, &ignored) == 0)
		buf_add(ret, out, n);
	return ret->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

/* The words of a line: [MARKER] NAMES TYPE BASE64 ... */
static bool read_line(char *line, char **ret_marker, char **ret_type, char **ret_key)
{
	char *save = NULL, *word = strtok_r(line, " \t", &save);

	*ret_marker = word && *word == '@' ? word : NULL;
	if (*ret_marker)
		word = strtok_r(NULL, " \t", &save);
	*ret_type = word ? strtok_r(NULL, " \t", &save) : NULL;
	*ret_key = *ret_type ? strtok_r(NULL, " \t", &save) : NULL;
	return *ret_key != NULL;
}

static int decode(const char *text, uint8_t *out)
{
	size_t n = strlen(text), padding = 0;
	int got;

	if (!n || n % 4 || n / 4 * 3 > BLOB_MAX)
		return -EINVAL;
	padding = (size_t)(text[n - 1] == '=') + (text[n - 2] == '=');
	got = EVP_DecodeBlock(out, (const unsigned char *)text, (int)n);
	return got < (int)padding ? -EINVAL : got - (int)padding;
}

static bool has_key(const struct agent *a, unsigned host, const uint8_t *blob, size_t n)
{
	for (size_t i = 0; i < a->host_key_count; i++)
		if (a->host_keys[i].host == host && a->host_keys[i].len == n &&
		    memcmp(a->host_keys[i].blob, blob, n) == 0)
			return true;
	return false;
}

static int add_key(struct agent *a, unsigned host, const uint8_t *blob, size_t n,
		   struct ward_err *e)
{
	struct agent_host_key *k = &a->host_keys[a->host_key_count];

	if (has_key(a, host, blob, n))
		return 0;
	if (a->host_key_count == HOST_KEYS_MAX)
		return ward_fail(e, E2BIG, "more than %d keys of hosts in known_hosts",
				 HOST_KEYS_MAX);
	*k = (struct agent_host_key){ .blob = malloc(n), .len = n, .host = host };
	if (!k->blob)
		return ward_fail(e, ENOMEM, "out of memory");
	memcpy(k->blob, blob, n);
	a->host_key_count++;
	return 0;
}

static void drop_key(struct agent *a, unsigned host, const uint8_t *blob, size_t n)
{
	for (size_t i = 0; i < a->host_key_count; i++)
		if (a->host_keys[i].host == host && a->host_keys[i].len == n &&
		    memcmp(a->host_keys[i].blob, blob, n) == 0) {
			free(a->host_keys[i].blob);
			a->host_keys[i] = a->host_keys[--a->host_key_count];
			return;
		}
}

/* Keys first, then those that are revoked. */
static int read_lines(struct agent *a, unsigned host, const char *found, bool revoked,
		      struct ward_err *e)
{
	auto_free char *copy = strdup(found);
	char *save = NULL;
	int r = 0;

	if (!copy)
		return ward_fail(e, ENOMEM, "out of memory");
	for (char *line = strtok_r(copy, "\n", &save); line && r == 0;
	     line = strtok_r(NULL, "\n", &save)) {
		char *marker, *type, *key;
		struct ssh_parts parts;
		uint8_t blob[BLOB_MAX + 4];
		int n;

		if (*line == '#' || !read_line(line, &marker, &type, &key))
			continue;
		n = decode(key, blob);
		if (n <= 0 || !ssh_host_key_read((struct ssh_span){ blob, (size_t)n }, &parts))
			continue; /* of a kind that is not verified here */
		if (revoked && marker && strcmp(marker, "@revoked") == 0)
			drop_key(a, host, blob, (size_t)n);
		else if (!revoked && !marker)
			r = add_key(a, host, blob, (size_t)n, e);
	}
	return r;
}

static void write_known(struct agent *a, unsigned host, const char *name)
{
	for (size_t i = 0; i < a->host_key_count; i++) {
		const struct agent_host_key *k = &a->host_keys[i];
		unsigned char text[BLOB_MAX * 2];
		struct ssh_parts parts;

		if (k->host != host ||
		    !ssh_host_key_read((struct ssh_span){ k->blob, k->len }, &parts))
			continue;
		EVP_EncodeBlock(text, k->blob, (int)k->len);
		buf_printf(&a->known, "%s %.*s %s\n", name, (int)parts.name.len,
			   (const char *)parts.name.at, (const char *)text);
	}
}

static int find_one(struct agent *a, unsigned host, const char *own_file, struct ward_err *e)
{
	const struct ssh_host *h = &a->hosts[host].host;
	size_t before = a->host_key_count;
	auto_buf name = { 0 }, found = { 0 };
	int r;

	buf_printf(&name, h->port == SSH_PORT ? "%s" : "[%s]:%u", h->host, h->port);
	r = name.failed ? ward_fail(e, ENOMEM, "out of memory")
			: look_up(buf_text(&name), own_file, &found, e);
	if (r == 0)
		r = look_up(buf_text(&name), "/etc/ssh/ssh_known_hosts", &found, e);
	if (r == 0)
		r = read_lines(a, host, buf_text(&found), false, e);
	if (r == 0)
		r = read_lines(a, host, buf_text(&found), true, e);
	if (r < 0)
		return r;
	if (a->host_key_count <= before) {
		ward_fail(e, ENOENT,
			  "%s: no key of this host is in %s or "
			  "/etc/ssh/ssh_known_hosts",
			  buf_text(&name), own_file);
		return ward_remedy(e, "log in once and compare the fingerprint: ssh -p %u %s%s%s",
				   h->port, h->user, *h->user ? "@" : "", h->host);
	}
	write_known(a, host, buf_text(&name));
	return a->known.failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

int agent_find_hosts(struct agent *a, struct ward_err *e)
{
	const char *home = getenv("HOME");
	auto_buf file = { 0 };
	int r = 0;

	buf_printf(&file, "%s/.ssh/known_hosts", home && *home == '/' ? home : "/root");
	if (file.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	for (unsigned i = 0; i < a->host_count && r == 0; i++)
		r = find_one(a, i, buf_text(&file), e);
	return r;
}
