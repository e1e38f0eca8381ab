/*
 * Finding sandboxes, and finishing what those left whose supervisor was killed. In: names, ids.
 * Out: entries of the register. For the verbs: what is finished here walks trees and may take its
 * time, which a library does not do to its host program.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/syscall.h>

#include "control/client.h"
#include "state/boxes_internal.h"
#include "state/runs.h"
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

static int by_id(const void *a, const void *b)
{
	return strcmp(((const struct box_info *)a)->id, ((const struct box_info *)b)->id);
}

int client_list(struct boxes *ret_boxes, struct ward_err *e)
{
	struct boxes runs = { 0 };
	size_t cap;
	int r = boxes_list(ret_boxes, e);

	if (r < 0)
		return r;
	cap = ret_boxes->len;
	r = runs_list(&runs, e);
	for (size_t i = 0; i < runs.len && r == 0; i++) {
		if (boxes_add(ret_boxes, &cap, &runs.items[i]) < 0)
			r = ward_fail(e, ENOMEM, "out of memory");
		else
			runs.items[i] = (struct box_info){ 0 };
	}
	boxes_clear(&runs);
	if (r < 0)
		boxes_clear(ret_boxes);
	else if (ret_boxes->len)
		qsort(ret_boxes->items, ret_boxes->len, sizeof(*ret_boxes->items), by_id);
	return r;
}

int client_find(const char *word, struct box_info *ret_info, struct ward_err *e)
{
	struct boxes all, one = { .items = ret_info, .len = 1 };
	int r = client_list(&all, e);

	if (r < 0)
		return r;
	r = boxes_find_in(&all, word, ret_info, e);
	boxes_clear(&all);
	if (r == 0 && ret_info->foreground) { /* it has no log and leaves no entry */
		ward_fail(e, ENOTSUP, "%s runs in the foreground", ret_info->id);
		box_info_clear(ret_info);
		return ward_remedy(e,
				   "ward ps, top, stop, kill, pause, resume, net and secret work "
				   "with it; the others need a sandbox of ward run -d");
	}
	if (r == 0)
		client_recover(&one);
	return r;
}

/* Only those that live: the beginning of an id that an ended one has, too, is not ambiguous. */
static int find_living(const char *word, struct box_info *ret_info, struct ward_err *e)
{
	struct boxes all;
	size_t kept = 0;
	int r = client_list(&all, e);

	if (r < 0)
		return r;
	for (size_t i = 0; i < all.len; i++) {
		if (!all.items[i].alive) {
			box_info_clear(&all.items[i]);
			continue;
		}
		if (kept != i) {
			all.items[kept] = all.items[i];
			all.items[i] = (struct box_info){ 0 };
		}
		kept++;
	}
	all.len = kept;
	r = boxes_find_in(&all, word, ret_info, e);
	boxes_clear(&all);
	return r;
}

int client_find_alive(const char *word, struct box_info *ret_info, struct ward_err *e)
{
	struct ward_err none = { 0 };
	int r = find_living(word, ret_info, &none);

	if (r == 0)
		return 0;
	if (r != -ENOENT) {
		*e = none;
		return r;
	}
	r = client_find(word, ret_info, e);
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
	if (i->foreground)
		return recover_runs(e);
	if (boxes_look(i->id, &now, e) < 0)
		return -e->code;
	one = (struct boxes){ .items = &now, .len = 1 };
	client_recover(&one);
	box_info_clear(&now);
	return 0;
}
