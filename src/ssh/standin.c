/*
 * ward-gpg: what git inside a sandbox runs as gpg. In: git's arguments. To sign (-bsau KEY), the
 * text on standard input goes to ward-ssh-agent, whose signature goes to standard output. Anything
 * else, such as --verify, is done by the sandbox's own gpg, which is given the public keys of the
 * policy besides its own. It has no more rights than any program inside: what is signed is decided
 * outside. Static, because a sandbox may have any libraries.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define DIRECTORY "/.ward/ssh/"
#define EXTENSION "gpg-sign@ward" /* SSH_GPG_SIGN */
#define TEXT_MAX (256 * 1024)     /* GIT_SIGNED_MAX */
#define ANSWER_MAX (64 * 1024)

static int fail(const char *why)
{
	fprintf(stderr, "ward: gpg: %s\n", why);
	return 2;
}

static size_t read_input(uint8_t *to, size_t room)
{
	size_t have = 0;
	ssize_t n;

	while (have < room && (n = read(0, to + have, room - have)) != 0) {
		if (n < 0 && errno != EINTR)
			return 0;
		have += n > 0 ? (size_t)n : 0;
	}
	return have;
}

static int connect_agent(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX, .sun_path = DIRECTORY "agent" };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0 ? fd : -1;
}

static void put(FILE *to, const void *bytes, size_t n)
{
	const uint8_t head[4] = { (uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8),
				  (uint8_t)n };

	fwrite(head, 1, 4, to);
	fwrite(bytes, 1, n, to);
}

/* The number and the bytes behind it. False: the agent ended. */
static int get(FILE *from, char *to, size_t room, size_t *ret_n)
{
	uint8_t head[4];

	if (fread(head, 1, 4, from) != 4)
		return 0;
	*ret_n = (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
	return *ret_n && *ret_n < room && fread(to, 1, *ret_n, from) == *ret_n;
}

static int show(char *answer, size_t n)
{
	size_t text = n > 5 ? n - 5 : 0; /* its type, and the length of the text */

	answer[n] = '\0';
	if (answer[0] != 6 /* SSH_SUCCESS */ || !text)
		return fail(text ? answer + 5 : "the signature was refused");
	if (fwrite(answer + 5, 1, text, stdout) != text || fflush(stdout) != 0)
		return fail("cannot write the signature");
	/* git looks for this line, behind another */
	fprintf(stderr, "\n[GNUPG:] SIG_CREATED D\n");
	return 0;
}

static int sign(const char *key)
{
	static uint8_t text[TEXT_MAX + 1];
	static char answer[ANSWER_MAX + 1];
	size_t n = read_input(text, sizeof(text)), name = strlen(key);
	size_t whole = 1 + 4 + strlen(EXTENSION) + 4 + name + 4 + n, got = 0;
	const uint8_t head[5] = { (uint8_t)(whole >> 24), (uint8_t)(whole >> 16),
				  (uint8_t)(whole >> 8), (uint8_t)whole, 27 /* SSH_EXTENSION */ };
	int fd;
	FILE *agent;

	if (!n || n > TEXT_MAX)
		return fail("a commit or tag of more than 256 KiB is not signed");
	if (name > 512)
		return fail("the name of the key is too long");
	fd = connect_agent();
	agent = fd < 0 ? NULL : fdopen(fd, "r+");
	if (!agent)
		return fail("the agent outside does not answer");
	fwrite(head, 1, sizeof(head), agent);
	put(agent, EXTENSION, strlen(EXTENSION));
	put(agent, key, name);
	put(agent, text, n);
	if (fflush(agent) != 0 || !get(agent, answer, ANSWER_MAX, &got))
		return fail("the agent outside does not answer");
	return show(answer, got);
}

int main(int argc, char **argv)
{
	char **all;

	for (int i = 1; i + 1 < argc; i++)
		if (strcmp(argv[i], "-bsau") == 0)
			return sign(argv[i + 1]);
	all = calloc((size_t)argc + 3, sizeof(*all));
	if (!all)
		return fail("out of memory");
	all[0] = argv[0];
	all[1] = (char *)(uintptr_t) "--keyring";
	all[2] = (char *)(uintptr_t)DIRECTORY "gpg_keys";
	for (int i = 1; i < argc; i++)
		all[i + 2] = argv[i];
	execvp("gpg", all);
	return fail("the sandbox has no gpg: only signing works here");
}
