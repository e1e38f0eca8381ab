/*
 * ward mcp where ward-mcp is missing: main() starts that program (mcp/main.c), and comes here only
 * if there is none.
 */
#include <errno.h>

#include "cli/cli.h"

int verb_mcp(struct options *o)
{
	struct ward_err e = { 0 };

	ward_fail(&e, ENOENT,
		  "this needs ward-mcp, which is neither next to ward nor in ../libexec/ward");
	ward_remedy(&e, "install all files of ward (make install)");
	return say_error(&e, o->json, EXIT_REFUSED);
}
