/*
 * Which processes are behind a socket. In: a connected socket of a process inside. Out: the
 * programs of its parents, as the kernel names their files, for a person to read. Nothing is
 * decided by it. Runs in the supervisor.
 */
#include "run/peer.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "approve/show.h"
#include "base/io.h"
#include "base/text.h"

#define CHAIN_MAX 5

void peer_chain(int sock_fd, char *ret, size_t cap)
{
	struct ucred peer = { .pid = 0 };
	socklen_t len = sizeof(peer);
	auto_buf out = { 0 };
	long pid;

	if (getsockopt(sock_fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return;
	pid = peer.pid;
	for (int i = 0; i < CHAIN_MAX && pid > 1; i++) {
		char path[48], exe[256];
		auto_buf status = { 0 };
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/%ld/exe", pid);
		n = readlink(path, exe, sizeof(exe) - 1);
		if (i && n > 0) {
			exe[n] = '\0';
			buf_printf(&out, "%s%s", out.len ? " < " : "", exe);
		}
		snprintf(path, sizeof(path), "/proc/%ld/status", pid);
		if (n <= 0 || io_read_file(AT_FDCWD, path, 16384, &status) < 0 ||
		    !text_number_after(buf_text(&status), "\nPPid:", 0, &pid))
			break;
	}
	if (!out.failed)
		show_text(ret, cap, buf_text(&out));
}
