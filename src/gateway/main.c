/*
 * ward-gateway: every byte that leaves a sandbox. Started by the supervisor of a run with a
 * network, as the user, outside of every namespace of the sandbox; found beside ward, never in
 * PATH. It takes no options and no environment: what it needs comes by descriptor
 * (protocol/gateway.h). Two processes, front and dial (with a recording front and record, or front
 * and replay), each confined before it reads a byte from inside. Where it inspects, it is ward-keys
 * as well, by that name (keys_main.c).
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "gateway/inspect_main.h"
#include "gateway/proc.h"
#include "protocol/gateway.h"

#ifdef __SANITIZE_ADDRESS__
/* Looking for leaks at the end needs threads and files, which are given up. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}
#endif

int main(int argc, char **argv)
{
	bool dial = argc == 2 && strcmp(argv[1], "dial") == 0;
	bool record = argc == 2 && inspect_here && strcmp(argv[1], "record") == 0,
	     replay = argc == 2 && inspect_here && strcmp(argv[1], "replay") == 0;

	if (keys_here && argc == 1 && strcmp(argv[0], "ward-keys") == 0)
		return keys_here();
	if (fcntl(GATE_FD_CONTROL, F_GETFD) < 0 || fcntl(GATE_FD_CONFIG, F_GETFD) < 0 ||
	    (argc > 1 && !dial && !record && !replay)) {
		fprintf(stderr, "ward-gateway: started by ward run if the policy grants a network; "
				"does nothing on its own\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_NAME, dial     ? "ward-dial"
			   : record ? "ward-record"
			   : replay ? "ward-replay"
				    : "ward-gateway");
	if (record || replay)
		return record ? inspect_here->record_main() : inspect_here->replay_main();
	return dial ? dial_main() : front_main(inspect_here);
}
