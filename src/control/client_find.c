/*
 * Finding sandboxes, and finishing what those left whose supervisor was killed. In: names, ids.
 * Out: entries of the register. For the verbs: what is finished here walks trees and may take its
 * time, which a library does not do to its host program.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/syscall.h>

#include "control/client.h"
#include "recover/recover.h"
#include "state/store.h"

#define DYING_MS 10000

void client_recover(struct boxes *all)
{
	struct ward_err ignored = { 0 };
	bool recovered = false;

	for (size_t i = 0; i < all->len; i++) {
		struct box_info *b = &all->items[i];

		if (b->state != BOX_DEAD || b->recovered)
			continue;
		if (!recovered && recover_runs(&ignored) < 0)
			return; /* the next one tries again; `ward recover` says why */
		recovered = b->recovered = true;
		boxes_mark_dead(b->id);
	}
}

int client_find(const char *word, struct box_info *ret_info, struct ward_err *e)
{
	int r = boxes_find(word, ret_info, e);
	struct boxes one = { .items = ret_info, .len = 1 };

	if (r == 0)
		client_recover(&one);
	return r;
}

int client_find_alive(const char *word, struct box_info *ret_info, struct ward_err *e)
{
	int r = client_find(word, ret_info, e);

	if (r == 0 && !ret_info->alive) {
		r = client_fail_not_alive(ret_info, e);
		box_info_clear(ret_info);
	}
	return r;
}

int client_kill_supervisor(const struct box_info *i, struct ward_err *e)
{
	struct pollfd dead = { .events = POLLIN };
	struct boxes one = { 0 };
	struct box_info now = { 0 };
	auto_fd fd = (int)syscall(SYS_pidfd_open, i->pid, 0);

	if (client_is_ending(i->id))
		return 0;
	if (fd >= 0 && store_process_start(i->pid) == i->pid_start) {
		dead.fd = fd;
		if (syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0) < 0 && errno != ESRCH)
			return ward_fail_errno(e, "cannot kill the supervisor %d of %s", i->pid,
					       i->id);
		if (poll(&dead, 1, DYING_MS) != 1)
			return ward_fail(e, ETIMEDOUT, "the supervisor %d of %s does not exit",
					 i->pid, i->id);
	}
	if (boxes_look(i->id, &now, e) < 0)
		return -e->code;
	one = (struct boxes){ .items = &now, .len = 1 };
	client_recover(&one);
	box_info_clear(&now);
	return 0;
}
