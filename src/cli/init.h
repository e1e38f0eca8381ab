/* What ward init knows of a project, and the two forms of what it writes. */
#ifndef WARD_CLI_INIT_H
#define WARD_CLI_INIT_H

#include "base/buf.h"
#include "cli/cli.h"

#define INIT_HIDDEN "[\".env\", \".env.*.local\", \"*.key\", \"*.pem\"]"

/* What was found out about a project, and answered. */
struct project {
	struct buf names;  /* "Python and C"; "" when no marker is there */
	struct buf caches; /* "[pip, uv]" */
	struct buf hosts;  /* "pypi.org, files.pythonhosted.org": where packages come from */
	struct strv hints; /* what there is to say */
	bool compiles;
	/* answers */
	bool packages; /* hosts may be reached */
	bool review;
	char agent[64]; /* "": none in particular */
};

/* Appends the reference: every field, with its comment. */
void init_full(const struct project *p, struct buf *out);

#endif
