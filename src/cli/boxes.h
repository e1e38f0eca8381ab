/* What the verbs about detached sandboxes share. */
#ifndef WARD_CLI_BOXES_H
#define WARD_CLI_BOXES_H

#include "base/json.h"
#include "cli/cli.h"
#include "control/boxes_json.h"
#include "control/client.h"

/* Sandboxes that a verb was given, each with a connection where one was made. */
struct chosen {
	struct box_info *infos;
	struct client *clients;
	bool *failed; /* said already */
	size_t len;
};

enum choose_flag {
	CHOOSE_ALIVE = 1, /* those that are not are an error */
	CHOOSE_ALL = 2    /* o->all: every one, the living ones with CHOOSE_ALIVE */
};

/* The sandboxes that the words name (or all of them); errors are reported, and counted in
 * *ret_code. */
void boxes_choose(const struct options *o, unsigned flags, struct chosen *ret_chosen,
		  int *ret_code);
void chosen_clear(struct chosen *c);
/* Says what is wrong with number i and takes it out of what follows. */
void chosen_fail(const struct options *o, struct chosen *c, size_t i, const struct ward_err *e,
		 int *ret_code);
/* With --json: {"sandboxes": [...]} of those that did not fail; else nothing, or their ids. */
int boxes_report(const struct options *o, struct chosen *c, int code);
/* Stands still from now on, whatever it was. */
must_check int boxes_freeze(const struct box_info *i, struct ward_err *e);
/* The entry as it is now, in place of the old one. */
void boxes_look_again(struct box_info *i);

#endif
