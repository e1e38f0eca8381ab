/* Arguments of a call become text of a command: checked by type, put into argv elements whole,
 * never through a shell. Pure functions over untrusted text, fuzzed (fuzz/bind.c). */
#ifndef WARD_TOOLS_BIND_H
#define WARD_TOOLS_BIND_H

#include "tools/tools.h"

/* An argument as it was given: one value of a parameter. */
struct tools_argument {
	const char *name, *value; /* borrowed, UTF-8 is not required */
};

/* What a call binds to. */
struct tools_call {
	struct strv argv;  /* argv[0] is the program */
	struct strv names; /* with values: of each parameter, in order; without NULL */
	struct strv values;
	struct buf body; /* of a request */
	char *input;     /* the arguments as JSON; owned */
};

void tools_call_free(struct tools_call *c);
#define auto_call __attribute__((cleanup(tools_call_free))) struct tools_call

/* Checks the arguments against the tool's parameters and its input schema, and puts them into the
 * command. dir: the workspace, absolute and clean; home may be NULL. -EINVAL with *e: which
 * argument and what is wrong. The caller frees *ret in any case. */
must_check int tools_bind(const struct tools *t, const struct tool_tool *tool, const char *dir,
			  const char *home, const struct tools_argument *arguments, size_t count,
			  struct tools_call *ret, struct ward_err *e);

/* A piece of a template: text, or a parameter. */
struct bind_piece {
	const char *text; /* begins here */
	size_t len;
	bool parameter, all; /* {name}, {name...}; text and len are the name's */
};
/* The next piece at *at (which moves on); false: there is none, or *ret_wrong says what is wrong.
 * {{ is a brace. */
must_check bool bind_next_piece(const char **at, struct bind_piece *ret, const char **ret_wrong);
/* Whether the piece names the parameter. */
bool bind_piece_is(const struct bind_piece *p, const char *name);

/* Whether a value that this entry of `run` begins with can be taken for an option: the entry has
 * no text in front, and no entry before it is "--". */
bool bind_can_be_option(const struct tool_tool *tool, size_t entry);

/* The JSON Schema of the parameters, as one line: what a client is shown. */
void bind_input_schema(const struct tool_tool *tool, struct buf *out);

/* A scope's path, absolute and clean; the caller frees. NULL: out of memory, or ~ and no home. */
must_check char *bind_scope_path(const char *dir, const char *home, const char *path);
/* Whether a path (absolute, clean) lies in the scope. */
bool bind_path_in_scope(const struct tool_tool *tool, const char *dir, const char *home,
			const char *path, bool write);

#endif
