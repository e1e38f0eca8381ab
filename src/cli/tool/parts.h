/* The words of `ward tool`, each a file here. All return the exit code. */
#ifndef WARD_CLI_TOOL_PARTS_H
#define WARD_CLI_TOOL_PARTS_H

#include "cli/cli.h"
#include "tools/invoke.h"

int tool_ls(struct options *o);
int tool_show(struct options *o);
int tool_trust(struct options *o);
int tool_run(struct options *o);
int tool_pipe(struct options *o);
int tool_init(struct options *o);
/* `ward check` of tools: see check.c. */
int tool_check(struct options *o);

/* Loads the file that the options name; prints what is wrong with it. 0, or the exit code. */
int tool_load(const struct options *o, struct tools_source *ret);
/* The tool of that name, or NULL with *e (nearest known name). */
const struct tool_tool *tool_find(const struct tools_source *s, const char *name,
				  struct ward_err *e);
/* Invokes, asking on the terminal where the tool wants that. -errno with *e, said by the caller. */
int tool_invoke(const struct options *o, struct tools_source *s, const struct tool_tool *tool,
		const struct tools_argument *arguments, size_t count, const struct buf *input,
		struct invoke_result *ret, struct ward_err *e);
/* The exit code of a result. */
int tool_exit_code(const struct invoke_result *r);
/* "a, b" of a list, or "-". */
void tool_join(const struct strv *list, struct buf *out);

#endif
