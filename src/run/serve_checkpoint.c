/*
 * A checkpoint of the sandbox, as the supervisor sees it. In: a client's wish. Out: the words that
 * make one inside, and the part of its record that only the supervisor knows: what sandbox it is
 * and what another one must be to go on from it. The bytes themselves go from the sandbox to the
 * client, which keeps them; this process never has them. Refused is what cannot come back: a
 * sandbox with a network (gVisor has the host's sockets then), with a terminal, under review, or in
 * which a command of ward exec runs.
 */
#include <errno.h>
#include <string.h>

#include "event/event.h"
#include "run/box_internal.h"
#include "run/detach.h"
#include "run/serve_internal.h"
#include "state/checkpoint.h"

#define SLACK_MIB 128 /* of gVisor's kernel itself */

/* The image and all that is about it is the client's to fill in. */
static int write_record(const struct serve *s, int *ret_fd, struct ward_err *e)
{
	const struct plan *p = s->box->plan;
	struct checkpoint c = { .image = "none", .workspace = p->workspace };
	auto_buf same = { 0 }, text = { 0 };

	checkpoint_same(p, &same);
	for (char *const *word = p->spec->argv; word && *word; word++)
		strv_add(&c.command, *word);
	memset(c.sha256, '0', sizeof(c.sha256) - 1);
	snprintf(c.box, sizeof(c.box), "%s", s->entry->id);
	c.same = same.data;
	if (c.same && !c.command.failed)
		checkpoint_write(&c, &text);
	text.failed |= same.failed || c.command.failed || !c.same;
	strv_free(&c.command);
	if (text.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	*ret_fd = detach_text_fd(&text, e);
	return *ret_fd < 0 ? *ret_fd : 0;
}

int serve_checkpoint(struct serve *s, struct strv *words, int *ret_record_fd, struct ward_err *e)
{
	uint64_t memory = s->box->plan->limits[LIMIT_MEMORY].value;
	int r = checkpoint_possible(s->box->plan, s->box->engine->no_snapshot, words, e);

	if (r == 0 && serve_running(s)) {
		ward_fail(e, EBUSY,
			  "a ward exec command runs in the sandbox, and its streams cannot be "
			  "restored");
		r = ward_remedy(e, "wait until it ends");
	}
	if (r == 0)
		r = write_record(s, ret_record_fd, e);
	if (r < 0)
		return r;
	memory = memory == POLICY_NONE ? 0 : memory >> 20;
	return memory > 1 << 29 ? 0 : memory ? (int)(memory + memory / 8 + SLACK_MIB) : 0;
}

void serve_checkpoint_answer(struct serve *s, bool good)
{
	struct ward_event v =
		event_make(EVENT_STATE, good ? ACTION_ALLOW : ACTION_LOG, s->entry->id);

	event_text(&v, FIELD_CHANGE, "checkpoint");
	event_text(&v, FIELD_WHY, good ? NULL : "no process saved it");
	event_text(&v, FIELD_VIA, "control");
	event_emit(s->box->result->events, &v);
}
