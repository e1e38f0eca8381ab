/*
 * Holds an ssh-agent of ward's own: `ssh-agent -a SOCKET ward-ssh-agent hold FILE`. In: the agent
 * beside it (SSH_AGENT_PID, SSH_AUTH_SOCK), a key file, standard input from ward-ssh-agent. Out:
 * one '+' when the agent has the key. When standard input ends, because ward-ssh-agent has ended
 * however that was, it ends the agent. Runs with the user's rights and sees no byte from inside.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "ssh/ssh.h"

#define SSH_ADD "/usr/bin/ssh-add"

static void become_add(const char *path)
{
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

	/* a passphrase cannot be asked for here */
	if (nothing < 0 || dup2(nothing, 0) < 0 || dup2(nothing, 1) < 0 || dup2(nothing, 2) < 0 ||
	    setenv("SSH_ASKPASS_REQUIRE", "force", 1) < 0 ||
	    setenv("SSH_ASKPASS", "/bin/false", 1) < 0)
		_exit(127);
	execl(SSH_ADD, "ssh-add", "-q", "--", path, (char *)NULL);
	_exit(127);
}

void agent_hold(const char *path)
{
	const char *agent = getenv("SSH_AGENT_PID");
	int pid = agent ? atoi(agent) : 0, status = -1;
	char byte;
	pid_t adder = fork();

	if (adder == 0)
		become_add(path);
	while (adder > 0 && waitpid(adder, &status, 0) < 0 && errno == EINTR)
		;
	if (status == 0 && write(1, "+", 1) == 1) {
		close(1);
		while (read(0, &byte, 1) != 0 && errno == EINTR)
			;
	}
	if (pid > 1)
		kill(pid, SIGTERM);
	_exit(0);
}
