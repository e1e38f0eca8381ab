/*
 * Where the server listens, and for whom. In: options. Out: a socket, a token. The token is a new
 * one, 256 random bits, or what a file has that only this user can read. Loopback is the default:
 * there is no TLS, so on another address any host on the path can read the token.
 */
#include "cli/mcp/web.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "policy/hostname.h"

#define TOKEN_BYTES 32 /* of a new one */
#define TOKEN_MIN 16
#define TOKEN_MAX 4096

static int fail_address(const char *text, struct ward_err *e)
{
	ward_fail(e, EINVAL, "--http: [ADDRESS:]PORT, not \"%.100s\"", text);
	return ward_remedy(e, "for instance --http 8080, or --http 127.0.0.1:8080");
}

static int read_port(const char *text, uint16_t *ret)
{
	unsigned port = 0;

	if (!*text || strlen(text) > 5)
		return -EINVAL;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return -EINVAL;
		port = port * 10 + (unsigned)(*text - '0');
	}
	*ret = (uint16_t)port;
	return port > 65535 ? -EINVAL : 0;
}

int web_read_address(const char *text, struct web_address *ret, struct ward_err *e)
{
	const char *colon = strrchr(text, ':');
	struct host host = { .kind = HOST_ADDRESS, .ip = { 4, { 127, 0, 0, 1 } } };

	*ret = (struct web_address){ 0 };
	if (colon && (host_read(text, (size_t)(colon - text), &host) != HOST_FINE ||
		      host.kind != HOST_ADDRESS || (host.ip.family == 6 && *text != '[')))
		return fail_address(text, e);
	if (read_port(colon ? colon + 1 : text, &ret->port) < 0)
		return fail_address(text, e);
	ret->ip = host.ip;
	ret->is_loopback = host.ip.family == 4 ? host.ip.bytes[0] == 127
					       : memcmp(host.ip.bytes, &in6addr_loopback,
							sizeof(in6addr_loopback)) == 0;
	return 0;
}

static int bind_to(int fd, const struct web_address *a)
{
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(a->port) };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(a->port) };

	if (a->ip.family == 4) {
		memcpy(&four.sin_addr, a->ip.bytes, sizeof(four.sin_addr));
		return bind(fd, (struct sockaddr *)&four, sizeof(four));
	}
	memcpy(&six.sin6_addr, a->ip.bytes, sizeof(six.sin6_addr));
	return bind(fd, (struct sockaddr *)&six, sizeof(six));
}

int web_listen(struct web_address *a, struct ward_err *e)
{
	struct sockaddr_storage got = { 0 };
	socklen_t n = sizeof(got);
	char text[HOST_TEXT];
	int one = 1;
	auto_fd fd = socket(a->ip.family == 4 ? AF_INET : AF_INET6,
			    SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return ward_fail_errno(e, "cannot make a socket");
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind_to(fd, a) < 0 || listen(fd, 128) < 0) {
		ward_fail_errno(e, "cannot listen on %s port %u", ip_text(&a->ip, text), a->port);
		return ward_remedy(e, "choose another port; 0 is any that is free");
	}
	if (getsockname(fd, (struct sockaddr *)&got, &n) < 0)
		return ward_fail_errno(e, "getsockname");
	a->port = ntohs(got.ss_family == AF_INET ? ((struct sockaddr_in *)&got)->sin_port
						 : ((struct sockaddr_in6 *)&got)->sin6_port);
	return take_fd(&fd);
}

static int read_file(const char *path, struct buf *ret, struct ward_err *e)
{
	auto_fd fd = open(path, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return ward_fail_errno(e, "cannot open the token's file %.200s", path);
	if (!S_ISREG(st.st_mode) || st.st_mode & 077 || (st.st_uid != geteuid() && st.st_uid)) {
		ward_fail(e, EACCES, "the token's file %.200s can be read by others", path);
		return ward_remedy(e, "chmod 600 %.200s", path);
	}
	r = io_read_all(fd, TOKEN_MAX, ret);
	if (r < 0)
		return ward_fail(e, -r, "cannot read the token's file %.200s: %s", path,
				 strerror(-r));
	while (ret->len && strchr("\r\n", ret->data[ret->len - 1]))
		ret->data[--ret->len] = '\0';
	for (size_t i = 0; i < ret->len; i++)
		if (ret->data[i] <= ' ' || ret->data[i] > '~')
			return ward_fail(e, EINVAL,
					 "the token in %.200s must be one word of printable ASCII",
					 path);
	if (ret->len < TOKEN_MIN) {
		ward_fail(e, EINVAL, "the token in %.200s has fewer than %d characters", path,
			  TOKEN_MIN);
		return ward_remedy(e, "openssl rand -hex 32 > %.200s", path);
	}
	return 0;
}

int web_token(const char *path, struct buf *ret, struct ward_err *e)
{
	uint8_t random[TOKEN_BYTES];

	if (path)
		return read_file(path, ret, e);
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return ward_fail_errno(e, "no random bytes");
	for (size_t i = 0; i < sizeof(random); i++)
		buf_printf(ret, "%02x", random[i]);
	return ret->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}
