/*
 * ward rm: removes what detached sandboxes left: log, result, entry. In: names, or --all. Out:
 * nothing of them is left. One that lives is refused; with --force it is killed first, by its
 * supervisor or, if that does not answer, together with it.
 */
#include "cli/boxes.h"

#include <errno.h>

#include "audit/journal.h"

#define ENDING_MS 15000

static int end_by_force(struct box_info *i, struct ward_err *e)
{
	struct client c = NO_CLIENT;
	int r = client_connect(i, &c, e);

	if (r == 0)
		r = client_ask(&c, CONTROL_WAIT, 0, 0, 0, e);
	if (r == 0)
		r = client_ask(&c, CONTROL_KILL, 0, 0, 0, e);
	if (r == 0)
		r = client_wait_end(&c, ENDING_MS, e);
	client_close(&c);
	boxes_look_again(i);
	if (r < 0 && i->alive)
		r = client_kill_supervisor(i, e);
	boxes_look_again(i);
	return i->alive ? r : 0;
}

static int remove_one(const struct options *o, struct box_info *i, struct ward_err *e)
{
	struct ward_err ignored = { 0 };

	if (i->alive && !o->force) {
		ward_fail(e, EBUSY, "the sandbox %s is %s", i->id, box_state_name(i->state));
		return ward_remedy(e, "ward stop %s first, or --force", i->id);
	}
	if (i->alive) {
		int r = end_by_force(i, e);

		if (r < 0)
			return r;
	}
	if (i->state == BOX_DEAD && !i->recovered) {
		ward_fail(e, EBUSY, "cannot clean up after the dead sandbox %s yet", i->id);
		return ward_remedy(e, "ward recover says why");
	}
	/* its supervisor could not, and it may have been too young for a guardian */
	if (i->state == BOX_DEAD)
		(void)!journal_recover(SIZE_MAX, &ignored);
	return boxes_remove(i->id, e);
}

int verb_rm(struct options *o)
{
	struct chosen c;
	int code;

	if (!o->word_count && !o->all) {
		struct ward_err e = { 0 };

		ward_fail(&e, EINVAL, "no sandbox given");
		ward_remedy(&e, "ward ps -a lists them; --all removes all that have ended");
		return say_usage(&e, o);
	}
	boxes_choose(o, CHOOSE_ALL, &c, &code);
	for (size_t i = 0; i < c.len; i++) {
		struct ward_err e = { 0 };

		if (c.infos[i].alive && o->all && !o->force)
			c.failed[i] = true; /* all that have ended */
		else if (remove_one(o, &c.infos[i], &e) < 0)
			chosen_fail(o, &c, i, &e, &code);
	}
	code = boxes_report(o, &c, code);
	chosen_clear(&c);
	return code;
}
