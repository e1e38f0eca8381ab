/*
 * Starting processes and threads of ward-envd. In: a program, its arguments, what becomes of
 * descriptors. Out: a process in a session of its own. posix_spawn() is used, because other threads
 * run: between fork and exec nothing of ours is called. Runs in the sandbox, with its rights.
 */
#include "envd/launch.h"

#include <pthread.h>
#include <signal.h>

int launch(const char *program, posix_spawn_file_actions_t *files, const struct strv *argv,
	   char *const *env, pid_t *ret_pid)
{
	posix_spawnattr_t a;
	sigset_t none, all;
	int r;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawnattr_init(&a);
	posix_spawnattr_setsigmask(&a, &none);
	posix_spawnattr_setsigdefault(&a, &all);
	posix_spawnattr_setflags(&a, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
					     POSIX_SPAWN_SETSIGDEF);
	r = posix_spawnp(ret_pid, program, files, &a, argv->items, env);
	posix_spawnattr_destroy(&a);
	return -r;
}

int launch_thread(void *(*body)(void *), void *argument)
{
	pthread_attr_t a;
	pthread_t t;
	int r;

	pthread_attr_init(&a);
	pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&a, 256 * 1024);
	r = pthread_create(&t, &a, body, argument);
	pthread_attr_destroy(&a);
	return -r;
}
