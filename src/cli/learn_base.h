/* The policy file of ward learn's rounds, in the state directory. */
#ifndef WARD_CLI_LEARN_BASE_H
#define WARD_CLI_LEARN_BASE_H

#include "base/buf.h"
#include "base/own.h"
#include "cli/cli.h"

struct learn_base {
	char *path; /* owned; NULL: none was made */
	int fd;     /* locked while it is used */
};

/* Makes the file, or gives it another content. */
must_check int learn_base_write(struct learn_base *b, const struct buf *text, struct ward_err *e);
/* Removes it. */
void learn_base_clear(struct learn_base *b);

#endif
