/*
 * ward run --restore: a run that goes on from a checkpoint. In: its name. Out: options with the
 * command that it was (for listings and events: nothing is started by these words) and its
 * workspace. Whether the policy is the same is seen when there is a plan (state/checkpoint.c). The
 * image is compared with its digest here, and read only by gVisor, in the sandbox.
 */
#include "cli/run_restore.h"

#include <errno.h>
#include <string.h>

int restore_resolve(struct options *o, struct checkpoint *c, struct ward_err *e)
{
	int r = checkpoint_open(o->restore, c, e);

	if (r == 0)
		r = checkpoint_verify(c, true, e);
	if (r < 0)
		return ward_wrap(e, "--restore");
	if (!c->command.len && !o->detach) {
		ward_fail(e, EINVAL,
			  "--restore %s: that sandbox had no command, so there is none to wait for",
			  c->name);
		return ward_remedy(e, "add -d, then start commands with ward exec");
	}
	if (o->tty) {
		ward_fail(e, ENOTSUP,
			  "--restore: the restored command keeps its streams and has no terminal");
		return ward_remedy(e, "remove -t");
	}
	if (c->command.len) {
		o->words = c->command.items;
		o->word_count = c->command.len;
	}
	o->image_command = false;
	if (!o->workspace)
		o->workspace = c->workspace;
	o->restored = c;
	return 0;
}
