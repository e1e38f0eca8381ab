/* State files: what merge, rebase, am, cherry-pick, revert and bisect leave while they are under
 * way. Pure functions. */
#ifndef WARD_RULES_GIT_STATE_H
#define WARD_RULES_GIT_STATE_H

#include "rules/git_path.h"

/* NULL when bytes have the form (any form but INDEX, CONFIG, objects, refs and links, which have
 * readers of their own), otherwise the reason (static text). */
const char *git_state_refused(enum git_form form, const uint8_t *bytes, size_t n, unsigned hash);

/* The same for a todo list (git-rebase-todo, done, sequencer/todo): only commands that run no
 * program. */
const char *git_todo_refused(const uint8_t *bytes, size_t n, unsigned hash);

/* The next line of a todo list, from *at on, that runs a program or that git does not write like
 * this; *at is moved behind it, its length is *ret_len. NULL: there is none. */
const char *git_todo_next_refused(const uint8_t *bytes, size_t n, size_t *at, size_t *ret_len);

/* Whether bytes are lines of text: no NUL. */
bool git_text_ok(const uint8_t *bytes, size_t n);

#endif
