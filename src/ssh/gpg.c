/*
 * gpg keys that sign commits. In: fingerprints of the policy, and texts that the serving process
 * has found to be commits or tags. Out: the public keys, for programs inside; signatures of the
 * user's gpg. ward reads no private key and no passphrase: gpg asks the user's gpg-agent, as when
 * the user signs by hand. It gets no terminal: the sandbox has that. Runs in the process with the
 * user's rights, which hands the text on and does not look at it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/io.h"
#include "protocol/ssh.h"
#include "ssh/ssh.h"

#define GPG "/usr/bin/gpg"
#define LIST_MS 20000
#define SIGN_MS 55000 /* a person may have to touch a device */
#define READ_MS 10000
#define LIST_MAX (256 * 1024)
#define PUBLIC_MAX (4 * 1024 * 1024)
#define SIGNATURE_MAX (16 * 1024)
#define BEGIN "-----BEGIN PGP SIGNATURE-----\n"

static __attribute__((noreturn)) void become_gpg(char *const *argv, int in_fd, int out_fd)
{
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

	setsid();
	if (nothing < 0 || dup2(in_fd < 0 ? nothing : in_fd, 0) < 0 || dup2(out_fd, 1) < 0 ||
	    dup2(nothing, 2) < 0)
		_exit(127);
	unsetenv("GPG_TTY");
	close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
	execv(GPG, argv);
	_exit(127);
}

/* Waits for it; the supervisor's end ends it. Its exit status, or -errno. */
static int await_gpg(pid_t pid, unsigned ms)
{
	auto_fd pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd polled[] = { { .fd = pidfd, .events = POLLIN },
				   { .fd = SSH_FD_CONTROL, .events = POLLRDHUP } };
	int status = -1, r;

	do
		r = pidfd < 0 ? -1 : poll(polled, 2, (int)ms);
	while (r < 0 && pidfd >= 0 && errno == EINTR);
	if (r <= 0 || !polled[0].revents) {
		kill(-pid, SIGKILL);
		kill(pid, SIGKILL);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (r == 0)
		return -ETIMEDOUT;
	return r < 0 || !polled[0].revents ? -EPIPE : WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* Runs gpg with the text on its standard input; what it writes is *ret. Its exit status or -errno.
 */
static int run_gpg(char *const *argv, const void *text, size_t n, unsigned ms, size_t max,
		   struct buf *ret)
{
	auto_fd in = text ? memfd_create("gpg-in", MFD_CLOEXEC) : -1,
		out = memfd_create("gpg-out", MFD_CLOEXEC);
	pid_t pid;
	int r;

	if (out < 0 || (text && (in < 0 || io_write_all(in, text, n) < 0 || lseek(in, 0, 0) < 0)))
		return -EIO;
	pid = fork();
	if (pid == 0)
		become_gpg(argv, in, out);
	r = pid < 0 ? -errno : await_gpg(pid, ms);
	if (r == 0 && (lseek(out, 0, SEEK_SET) < 0 || io_read_all(out, max, ret) < 0))
		return -EIO;
	return r;
}

#define WORDS(...)                                                                                 \
	(char *const[])                                                                            \
	{                                                                                          \
		(char *)(uintptr_t) "gpg", (char *)(uintptr_t) "--batch",                          \
			(char *)(uintptr_t) "--no-tty", __VA_ARGS__, NULL                          \
	}
#define WORD(text) (char *)(uintptr_t)(text)

/* -- which keys */

/* The field of a line of gpg --with-colons, from 1. */
static void field(const char *line, unsigned number, char *ret, size_t room)
{
	size_t n;

	while (--number && line) {
		line = strchr(line, ':');
		line = line ? line + 1 : NULL;
	}
	n = line ? strcspn(line, ":\n") : 0;
	snprintf(ret, room, "%.*s", (int)n, line ? line : "");
}

static void add_name(struct agent_gpg *g, const char *id)
{
	for (size_t i = 0; i < g->name_count; i++)
		if (strcmp(g->names[i], id) == 0)
			return;
	if (strlen(id) == GPG_ID_BYTES - 1 && g->name_count < GPG_NAMES_MAX)
		memcpy(g->names[g->name_count++], id, GPG_ID_BYTES);
}

/* The names of the key and its subkeys. False: nothing of it can sign. */
static bool read_list(struct agent_gpg *g, char *text)
{
	char *save = NULL, word[64];
	bool signs = false;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (strncmp(line, "sec:", 4) == 0) {
			field(line, 12, word, sizeof(word));
			signs |= strchr(word, 'S') != NULL; /* what is usable of all of it */
		} else if (strncmp(line, "fpr:", 4) == 0) {
			field(line, 10, word, sizeof(word));
			add_name(g, word);
		}
	return signs;
}

int agent_find_gpg(struct agent *a, const char *fingerprint, struct ward_err *e)
{
	struct agent_gpg *g = &a->gpg[a->gpg_count];
	auto_buf list = { 0 };
	char id[GPG_ID_BYTES];
	int r;

	if (a->gpg_count == GPG_KEYS_MAX) {
		ward_fail(e, E2BIG, "credentials.gpg: more than %d keys", GPG_KEYS_MAX);
		return ward_remedy(e, "name only the keys that sign in this sandbox");
	}
	if (access(GPG, X_OK) < 0) {
		ward_fail_errno(e, "credentials.gpg: cannot start %s", GPG);
		return ward_remedy(e, "install GnuPG: apt install gpg gpg-agent");
	}
	snprintf(id, sizeof(id), "%s", fingerprint);
	for (char *s = id; *s; s++)
		*s = (char)(*s >= 'a' && *s <= 'f' ? *s - 'a' + 'A' : *s);
	add_name(g, id);
	r = run_gpg(WORDS(WORD("--with-colons"), WORD("--list-secret-keys"), WORD("--"), id), NULL,
		    0, LIST_MS, LIST_MAX, &list);
	if (r != 0) {
		ward_fail(e, ENOENT, "credentials.gpg: your gpg has no secret key %s", id);
		return ward_remedy(e, "gpg --list-secret-keys shows the fingerprints");
	}
	if (!read_list(g, list.data)) {
		ward_fail(e, EKEYEXPIRED, "credentials.gpg: the key %s cannot sign, or has expired",
			  id);
		return ward_remedy(e, "gpg --list-secret-keys marks keys that sign with [S]");
	}
	a->gpg_count++;
	return 0;
}

int agent_export_gpg(const struct agent *a, struct ward_err *e)
{
	auto_buf all = { 0 };
	auto_fd fd = openat(SSH_FD_DIR, "gpg_keys", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	for (size_t i = 0; i < a->gpg_count && fd >= 0; i++) {
		auto_buf one = { 0 };

		if (run_gpg(WORDS(WORD("--export-options"), WORD("export-minimal"),
				  WORD("--export"), WORD("--"), WORD(a->gpg[i].names[0])),
			    NULL, 0, LIST_MS, PUBLIC_MAX, &one) != 0)
			return ward_fail(e, EIO, "credentials.gpg: gpg --export failed");
		buf_add(&all, one.data, one.len);
	}
	if (fd < 0 || all.failed || fchmod(fd, 0644) < 0 || io_write_all(fd, all.data, all.len) < 0)
		return ward_fail_errno(e, "credentials.gpg: cannot write the public keys");
	return 0;
}

/* -- signatures */

static int sign(const struct agent_gpg *g, const uint8_t *text, size_t n, struct buf *ret)
{
	int r = run_gpg(WORDS(WORD("--armor"), WORD("--detach-sign"), WORD("--local-user"),
			      WORD(g->names[0])),
			text, n, SIGN_MS, SIGNATURE_MAX, ret);

	if (r == 0 && (ret->failed || strncmp(buf_text(ret), BEGIN, strlen(BEGIN)) != 0))
		return -EPROTO;
	return r;
}

int agent_run_gpg(const struct agent *a, int fd)
{
	auto_buf asked = { 0 }, signature = { 0 }, answer = { 0 };
	int r = agent_read(fd, &asked, SSH_GPG_MAX, io_now_ms() + READ_MS);
	uint8_t head[4];
	size_t n;

	if (r < 0 || asked.len < 2 || (uint8_t)asked.data[0] >= a->gpg_count)
		return -EPIPE;
	r = sign(&a->gpg[(uint8_t)asked.data[0]], (const uint8_t *)asked.data + 1, asked.len - 1,
		 &signature);
	if (r == -EPIPE)
		return r;
	n = 1 + (r == 0 ? signature.len : 0);
	head[0] = (uint8_t)(n >> 24);
	head[1] = (uint8_t)(n >> 16);
	head[2] = (uint8_t)(n >> 8);
	head[3] = (uint8_t)n;
	buf_add(&answer, head, 4);
	buf_puts(&answer, r == 0 ? "+" : r == -ETIMEDOUT ? "t" : "-");
	if (r == 0)
		buf_add(&answer, signature.data, signature.len);
	return !answer.failed && send(fd, answer.data, answer.len, MSG_NOSIGNAL) ==
					 (ssize_t)answer.len
		       ? 0
		       : -EPIPE;
}
