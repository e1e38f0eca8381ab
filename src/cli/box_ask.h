/* Questions of a sandbox that runs elsewhere, asked on this terminal: ward attach, ward exec -t. */
#ifndef WARD_CLI_BOX_ASK_H
#define WARD_CLI_BOX_ASK_H

#include "control/client_approve.h"
#include "run/always.h"
#include "run/console.h"

struct box_ask {
	struct client watch; /* NO_CLIENT: it asks nothing, or has gone */
	struct box_info box;
	struct client_questions questions;
	struct console *console;
	struct always always;
};

/* Asks on the console (NULL: there is none) what the sandbox asks, if it asks anything. Where that
 * fails its questions wait for ward approve all the same. */
void box_ask_begin(struct box_ask *a, const char *box, struct console *console);
/* Becomes readable when there is something to handle; -1: never. */
int box_ask_fd(const struct box_ask *a);
void box_ask_handle(struct box_ask *a);
void box_ask_end(struct box_ask *a);

#endif
