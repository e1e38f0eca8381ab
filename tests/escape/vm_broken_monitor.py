"""Stands for a guest that has broken its monitor: in QEMU's place a program attacks with native
code, in the sandbox in which QEMU stands. It wants the user's files, what is protected and hidden
in the workspace, the kernel and the roots of all other machines, the host's network and processes.

layer: the native sandbox around QEMU
control: the same program as the same user without a sandbox has all of that
"""
import os
import socket

NEEDS = ["root", "git"]
SLOW = True
QEMU = "/usr/bin/qemu-system-x86_64"
SOURCE = r"""
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static int out;

static void show(const char *path)
{
	char bytes[200];
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, bytes, sizeof(bytes));

	if (n > 0)
		dprintf(out, "READ %.*s\n", (int)n, bytes);
}

static void spoil(const char *what, const char *path)
{
	int fd = open(path, O_WRONLY | O_APPEND);

	if (fd >= 0 && write(fd, "EVIL", 4) == 4)
		dprintf(out, "WROTE-%s\n", what);
	if (fd < 0 && chmod(path, 0666) == 0)
		dprintf(out, "MODE-%s\n", what);
}

int main(int argc, char **argv)
{
	static const char *const parts[] = { "/.ward/vm/vmlinux", "/.ward/vm/initrd",
					     "/.ward/vm/root",    "/.ward/vm/ram",
					     "/.ward/vm/state",   "/.ward/vm/ward-vm-ram.so",
					     "/.ward/ward-vm" };
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(PORT),
				  .sin_addr = { htonl(INADDR_LOOPBACK) } };
	char bytes[100];
	int fd;

	out = open(WS "/result.txt", O_WRONLY | O_CREAT | O_APPEND, 0644);
	dprintf(out, "BEGAN\n");
	show(SECRET);
	show(WS "/hidden.txt");
	spoil("SECRET", SECRET);
	fd = open(WS "/.git/hooks/pre-commit", O_WRONLY | O_CREAT, 0755);
	if (fd >= 0)
		dprintf(out, "HOOK\n");
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		spoil("PART", parts[i]);
	for (int i = 1; i < argc; i++) {	/* whatever it was given, by name */
		const char *path = strchr(argv[i], '/');

		if (path &&
		    strncmp(path, "/.ward/vm-io/", 13) != 0) /* the machine's own disk is its own */
			spoil("GIVEN", path);
	}
	spoil("KERNEL", STATE "/kernel-like");
	if (kill(VICTIM, 0) == 0)
		dprintf(out, "SIGNAL\n");
	fd = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0 &&
	    read(fd, bytes, sizeof(bytes)) > 0)
		dprintf(out, "NETWORK\n");
	dprintf(out, "ENDED\n");
	return 0;
}
"""


def run(s):
    s.ws = s.cwd = s.t.git_repo()
    secret, victim = s.secret(), s.victim()
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    s.serve(listener)
    s.t.write(s.ws, {"hidden.txt": s.token, "result.txt": ""})
    s.t.write(s.t.state_dir, {"quarantine/kernel-like": ""})
    facts = {"PORT": port, "VICTIM": victim["pid"], "WS": f'"{s.ws}"', "SECRET": f'"{secret}"',
             "STATE": f'"{s.t.state_dir}/quarantine"'}
    evil = s.t.compile("".join(f"#define {k} {v}\n" for k, v in facts.items()) + SOURCE)
    if s.control:
        s.t.run(evil, cwd=s.ws)
    else:
        place = ["unshare", "-m", "sh", "-c", f'mount --bind {evil} {QEMU} && exec "$@"', "sh"]
        r = s.t.ward("run", "-w", s.ws, "--set", 'filesystem.hide=["hidden.txt"]', "--", "true",
                     cwd=s.ws, wrap=place, timeout=s.timeout)
        s.t.check(r.rc == 125, f"a monitor that ends at once: {r}")
    told = s.t.read(s.ws, "result.txt")
    s.t.say(told)
    s.t.check("BEGAN" in told and "ENDED" in told, f"it ran to its end: {told}")
    found = s.token in told or any(word in told
                                   for word in ("WROTE", "MODE", "HOOK", "SIGNAL", "NETWORK"))
    hook = os.path.exists(os.path.join(s.ws, ".git/hooks/pre-commit"))
    if s.control:
        s.t.check(all(word in told for word in (s.token, "WROTE-SECRET", "HOOK", "SIGNAL",
                                                "NETWORK")),
                  f"everything is there without a sandbox: {told}")
    return found or hook


def test(t):
    import sys
    from harness import escape
    escape.run_both(t, sys.modules[__name__], run)
