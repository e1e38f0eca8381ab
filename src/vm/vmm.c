/*
 * What all monitors have in common: the end of a machine, and what its monitor said last. Runs in
 * ward-vm inside the sandbox.
 */
#include "vm/vmm.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/text.h"

void vm_close(struct vm *v)
{
	int *const fds[] = { &v->pid_fd, &v->port_fd, &v->control_fd, &v->words_fd };

	if (v->pid > 0) {
		if (v->pid_fd >= 0)
			syscall(SYS_pidfd_send_signal, v->pid_fd, SIGKILL, NULL, 0);
		else
			kill(v->pid, SIGKILL);
		while (waitpid(v->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	v->pid = 0;
	for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
		own_close_fd(fds[i]);
		*fds[i] = -1;
	}
	buf_free(&v->received);
}

int vm_fail_with_words(const struct vm *v, const char *what, struct ward_err *e)
{
	char words[600] = "";
	auto_buf safe = { 0 };
	ssize_t n = read(v->words_fd, words, sizeof(words) - 1);

	if (n < 0)
		n = 0;
	words[n] = '\0';
	while (n > 0 && words[n - 1] == '\n')
		words[--n] = '\0';
	text_escape(&safe, words);
	return ward_fail(e, EIO, n ? "%s: %s" : "%s", what, buf_text(&safe));
}
