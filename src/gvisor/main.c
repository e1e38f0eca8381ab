/*
 * ward-gvisor: what stands between ward-init and a command behind gVisor. One program in seven
 * roles, see run.c, enter.c, checkpoint.c and streams.c: the same file is on both sides of the
 * wall, so it is static and needs nothing of either.
 */
#include <string.h>

#include "base/own.h"
#include "gvisor/gvisor.h"

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*role)(int argc, char **argv);
	} roles[] = { { "run", gvisor_run },
		      { "exec", gvisor_exec },
		      { "enter", gvisor_enter },
		      { "idle", gvisor_idle },
		      { "checkpoint", gvisor_checkpoint },
		      { "restore", gvisor_restore },
		      { "streams", gvisor_streams } };

	for (size_t i = 0; argc > 1 && i < ARRAY_LEN(roles); i++)
		if (strcmp(argv[1], roles[i].name) == 0)
			return roles[i].role(argc - 2, argv + 2);
	gvisor_say("started by ward, see ward(1)");
	return 125;
}
