/*
 * The keys of a policy. In: its entries. Out: for each key that one names its public part, the
 * agent that has it, and who names it. Keys of the user's are in the user's ssh-agent
 * (SSH_AUTH_SOCK of who started ward); a key file is loaded into an ssh-agent of ward's own, which
 * ends with this process (hold.c). ward itself never reads a private key. Connections are made
 * here, with the user's rights: an agent looks at who connects. Keys that are added to the user's
 * agent later are not offered inside.
 */
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/io.h"
#include "base/path.h"
#include "base/sha256.h"
#include "protocol/ssh.h"
#include "ssh/ssh.h"

#define ANSWER_MS 60000 /* a person may have to confirm, or to touch a device */
#define ANSWER_MAX (256 * 1024)
#define HOLD_MS 10000
#define SSH_AGENT "/usr/bin/ssh-agent"

static int wait_for(int fd, short what, uint64_t until)
{
	uint64_t now = io_now_ms();
	struct pollfd p = { .fd = fd, .events = what };

	return now < until && poll(&p, 1, (int)(until - now)) > 0 ? 0 : -ETIMEDOUT;
}

static int take(int fd, void *bytes, size_t n, uint64_t until)
{
	for (size_t got = 0; got < n;) {
		ssize_t more;

		if (wait_for(fd, POLLIN, until) < 0)
			return -ETIMEDOUT;
		more = recv(fd, (char *)bytes + got, n - got, 0);
		if (more == 0 || (more < 0 && errno != EINTR && errno != EAGAIN))
			return -EPIPE;
		got += more > 0 ? (size_t)more : 0;
	}
	return 0;
}

int agent_read(int fd, struct buf *ret, size_t max, uint64_t until)
{
	uint8_t head[4] = { 0 };
	int r = take(fd, head, 4, until);
	uint32_t len;

	len = (uint32_t)head[0] << 24 | (uint32_t)head[1] << 16 | (uint32_t)head[2] << 8 | head[3];
	if (r < 0 || !len || len > max)
		return r < 0 ? r : -EPROTO;
	ret->len = 0;
	if (!buf_reserve(ret, len))
		return -ENOMEM;
	r = take(fd, ret->data, len, until);
	ret->len = r < 0 ? 0 : len;
	return r;
}

int agent_ask(int fd, const uint8_t *bytes, size_t n, struct buf *ret)
{
	uint64_t until = io_now_ms() + ANSWER_MS;
	uint8_t head[4] = { (uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n };

	if (send(fd, head, 4, MSG_NOSIGNAL) != 4 || send(fd, bytes, n, MSG_NOSIGNAL) != (ssize_t)n)
		return -EPIPE;
	return agent_read(fd, ret, ANSWER_MAX, until);
}

static int connect_to(const char *path, int *ret_fd)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	auto_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (strlen(path) >= sizeof(to.sun_path))
		return -ENAMETOOLONG;
	memcpy(to.sun_path, path, strlen(path));
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		return -errno;
	*ret_fd = take_fd(&fd);
	return 0;
}

static void fingerprint(struct ssh_span blob, char ret[FINGERPRINT_BYTES])
{
	uint8_t digest[SHA256_BYTES];
	unsigned char text[64];
	struct sha256 s;

	sha256_begin(&s);
	sha256_add(&s, blob.at, blob.len);
	sha256_end(&s, digest);
	EVP_EncodeBlock(text, digest, SHA256_BYTES);
	text[43] = '\0'; /* without the padding */
	snprintf(ret, FINGERPRINT_BYTES, "SHA256:%.43s", (const char *)text);
}

/* One key of an agent's: a new one, or one that an entry before has named. */
static int add_key(struct agent *a, size_t entry, int fd, struct ssh_span blob, struct ward_err *e)
{
	struct agent_key *k = NULL;

	for (size_t i = 0; i < a->key_count && !k; i++)
		if (ssh_span_equal((struct ssh_span){ a->keys[i].blob, a->keys[i].len }, blob))
			k = &a->keys[i];
	if (!k && a->key_count == KEYS_MAX)
		return ward_fail(e, E2BIG, "more than %d keys: name one, agent:SHA256:FINGERPRINT",
				 KEYS_MAX);
	if (!k) {
		k = &a->keys[a->key_count];
		*k = (struct agent_key){ .blob = malloc(blob.len),
					 .len = blob.len,
					 .agent_fd = fd };
		if (!k->blob)
			return ward_fail(e, ENOMEM, "out of memory");
		memcpy(k->blob, blob.at, blob.len);
		fingerprint(blob, k->fingerprint);
		a->key_count++;
	}
	k->entries |= 1u << entry;
	return 0;
}

static int add_keys(struct agent *a, size_t entry, int fd, const char *wanted, size_t *ret_count,
		    struct ward_err *e)
{
	auto_buf answer = { 0 };
	struct ssh_span blob, comment;
	struct ssh_keys keys;
	int r = agent_ask(fd, (const uint8_t *)&(char){ SSH_LIST }, 1, &answer);

	*ret_count = 0;
	if (r < 0 || !ssh_keys_read((const uint8_t *)answer.data, answer.len, &keys))
		return ward_fail(e, r < 0 ? -r : EPROTO, "the ssh-agent does not list its keys");
	r = 0;
	while (r == 0 && ssh_keys_next(&keys, &blob, &comment)) {
		char text[FINGERPRINT_BYTES];

		fingerprint(blob, text);
		if (wanted && strcmp(text, wanted) != 0)
			continue;
		r = add_key(a, entry, fd, blob, e);
		++*ret_count;
	}
	return r;
}

/* -- the user's agent */

static int use_agent(struct agent *a, size_t entry, const char *wanted, struct ward_err *e)
{
	const char *place = getenv("SSH_AUTH_SOCK");
	size_t count = 0;
	int r = 0;

	if (!place || !*place) {
		ward_fail(e, ENOENT, "SSH_AUTH_SOCK is not set: there is no ssh-agent to ask");
		return ward_remedy(e, "eval $(ssh-agent); ssh-add, or name a file: key: file:PATH");
	}
	if (a->user_fd < 0)
		r = connect_to(place, &a->user_fd);
	if (r < 0) {
		ward_fail(e, -r, "cannot connect to your ssh-agent at %.200s: %s", place,
			  strerror(-r));
		return ward_remedy(e, "eval $(ssh-agent); ssh-add");
	}
	r = add_keys(a, entry, a->user_fd, wanted, &count, e);
	if (r < 0 || count)
		return r;
	if (wanted)
		ward_fail(e, ENOENT, "your ssh-agent has no key %s", wanted);
	else
		ward_fail(e, ENOENT, "your ssh-agent has no key");
	return ward_remedy(e, "ssh-add PATH adds one, ssh-add -l lists them");
}

/* -- a key file */

/* ssh-agent forks: what was started becomes its command, and the agent lives beside it. */
static void become_agent(const char *socket_path, const char *key, int in_fd, int out_fd)
{
	char self[64];

	snprintf(self, sizeof(self), "/proc/%d/exe", getppid());
	if (dup2(in_fd, 0) < 0 || dup2(out_fd, 1) < 0)
		_exit(127);
	close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
	execl(SSH_AGENT, "ssh-agent", "-a", socket_path, self, "hold", key, (char *)NULL);
	_exit(127);
}

static int start_agent(struct agent *a, const char *socket_path, const char *key,
		       struct ward_err *e)
{
	int in_pipe[2], out_pipe[2], r;
	char said = 0;
	pid_t pid;

	if (pipe2(in_pipe, O_CLOEXEC) < 0 || pipe2(out_pipe, O_CLOEXEC) < 0)
		return ward_fail_errno(e, "cannot make a pipe");
	pid = fork();
	if (pid == 0)
		become_agent(socket_path, key, in_pipe[0], out_pipe[1]);
	close(in_pipe[0]);
	close(out_pipe[1]);
	a->hold_fds[a->hold_count++] = in_pipe[1];
	r = pid < 0 ? -errno : wait_for(out_pipe[0], POLLIN, io_now_ms() + HOLD_MS);
	if (r == 0 && read(out_pipe[0], &said, 1) != 1)
		said = 0;
	close(out_pipe[0]);
	if (r == 0 && said == '+')
		return 0;
	ward_fail(e, EACCES, "cannot load the key %.300s into an ssh-agent", key);
	return ward_remedy(e, "a key file must be readable and have no passphrase; one with a "
			      "passphrase goes into your own agent: ssh-add PATH, key: agent");
}

static int use_file(struct agent *a, size_t entry, const char *path, struct ward_err *e)
{
	const char *home = getenv("HOME");
	auto_free char *whole = *path == '~' ? path_join(home ? home : "", path + 2) : strdup(path);
	char name[32], socket_path[64];
	size_t count = 0;
	int fd = -1, connected = 0, r;

	if (!whole)
		return ward_fail(e, ENOMEM, "out of memory");
	snprintf(name, sizeof(name), "keys-%zu", entry);
	snprintf(socket_path, sizeof(socket_path), "/proc/%d/fd/%d/%s", getpid(), SSH_FD_DIR, name);
	r = start_agent(a, socket_path, whole, e);
	if (r == 0)
		connected = connect_to(socket_path, &fd);
	/* no process but this one gets to it, and it does not outlive a failed start */
	(void)unlinkat(SSH_FD_DIR, name, 0);
	if (r < 0)
		return r;
	r = connected;
	if (r < 0)
		return ward_fail(e, -r, "cannot connect to the ssh-agent of %.300s", path);
	r = add_keys(a, entry, fd, NULL, &count, e);
	return r == 0 && !count ? ward_fail(e, ENOENT, "%.300s has no key", path) : r;
}

/* -- all of them */

static void write_public(struct agent *a, const struct agent_key *k)
{
	size_t n = (k->len + 2) / 3 * 4 + 1;
	auto_free unsigned char *text = malloc(n);
	uint32_t type_len = k->len > 4 ? k->blob[3] : 0;

	if (!text || k->len < 4 + (size_t)type_len) {
		a->signs_as.failed = true;
		return;
	}
	EVP_EncodeBlock(text, k->blob, (int)k->len);
	buf_printf(&a->signs_as, "%.*s %s", (int)type_len, (const char *)k->blob + 4,
		   (const char *)text);
}

int agent_find_keys(struct agent *a, struct ward_err *e)
{
	for (size_t i = 0; i < a->entry_count; i++) {
		const char *key = a->entries[i].key;
		int r = strncmp(key, "file:", 5) == 0 ? use_file(a, i, key + 5, e)
						      : use_agent(a, i, key[5] ? key + 6 : NULL, e);

		if (r < 0)
			return ward_wrap(e, "credentials.ssh[%zu].key", i);
		for (size_t k = 0; a->entries[i].sign && !a->signs_as.len && k < a->key_count; k++)
			if (a->keys[k].entries & 1u << i)
				write_public(a, &a->keys[k]);
	}
	return a->signs_as.failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}
