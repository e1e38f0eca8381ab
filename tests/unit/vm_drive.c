/* Drives a guest that waits at the other end of a socket, as ward-vm does:
 *   vm-drive SOCKET [--restored] [--exec-socket PATH] [--disk FILE] [--uid N] [--pids N] [--memory
 *   N] [--files N] [--tree PATH | --tree-ro PATH]... -- CMD...
 *   vm-drive exec PATH -- CMD...   vm-drive copy PATH WORDS... */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "vm/serve.h"

extern char **environ;

static int finish(int r, const struct ward_err *e)
{
	if (r >= 0)
		vm_end_like(r);
	fprintf(stderr, "vm-drive: %s%s%s\n", e->what, e->what[0] ? ": " : "", e->why);
	return 125;
}

static int reach(const char *path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(to.sun_path, sizeof(to.sun_path), "%s", path);
	for (int i = 0; i < 100; i++) {
		if (connect(fd, (const struct sockaddr *)&to, sizeof(to)) == 0)
			return fd;
		usleep(100000);
	}
	perror(path);
	exit(125);
}

int main(int argc, char **argv)
{
	struct vm_tree trees[16];
	auto_free char *cwd = getcwd(NULL, 0);
	struct vm_setup s = { .cwd = cwd,
			      .envp = environ,
			      .uid = 1000,
			      .gid = 1000,
			      .trees = trees,
			      .qemu_pid_fd = -1,
			      .disk_fd = -1 };
	struct ward_err e = { 0 };
	bool restored = false;
	int i = 2, fd;

	if (argc > 4 && strcmp(argv[1], "exec") == 0)
		return finish(vm_exec_client(argv[2], argc - 4, argv + 4, environ, &e), &e);
	if (argc > 3 && strcmp(argv[1], "copy") == 0)
		return finish(vm_copy_client(argv[2], argc - 3, argv + 3, &e), &e);
	for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
		const char *o = argv[i];

		if (strcmp(o, "--restored") == 0)
			restored = true;
		else if (i + 1 == argc)
			return 2;
		else if (strcmp(o, "--exec-socket") == 0)
			s.socket_path = argv[++i];
		else if (strcmp(o, "--disk") == 0)
			s.disk_fd = open(argv[++i], O_RDWR | O_CLOEXEC);
		else if (strcmp(o, "--uid") == 0)
			s.uid = s.gid = (uint32_t)atoi(argv[++i]);
		else if (strcmp(o, "--pids") == 0)
			s.pids = (uint64_t)atoll(argv[++i]);
		else if (strcmp(o, "--memory") == 0)
			s.memory_bytes = (uint64_t)atoll(argv[++i]);
		else if (strcmp(o, "--files") == 0)
			s.files = (uint64_t)atoll(argv[++i]);
		else
			trees[s.tree_count++] =
				(struct vm_tree){ .writable = strcmp(o, "--tree") == 0,
						  .path = argv[++i] };
	}
	if (i + 1 >= argc)
		return 2;
	s.argc = argc - i - 1;
	s.argv = argv + i + 1;
	fd = reach(argv[1]);
	if (!restored && vm_wait_ready(fd, 60000, &e) < 0)
		return finish(-1, &e);
	return finish(vm_serve(fd, &s, &e), &e);
}
