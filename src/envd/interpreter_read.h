/* Bodies of requests to the code interpreter. Pure, fuzzed (fuzz/interpreter.c). */
#ifndef WARD_ENVD_INTERPRETER_READ_H
#define WARD_ENVD_INTERPRETER_READ_H

#include "base/json.h"
#include "rules/json_in.h"

struct execution {
	struct buf code, context, language;
	struct buf env; /* an object of JSON */
	bool has_context, has_language;
};

struct new_context {
	struct buf language, cwd;
};

/* False: not JSON of that form. What was read is to be freed in any case. */
must_check bool execution_read(const uint8_t *bytes, size_t n, struct execution *ret);
void execution_free(struct execution *e);
must_check bool new_context_read(const uint8_t *bytes, size_t n, struct new_context *ret);
void new_context_free(struct new_context *c);
/* "/contexts/ID" and "/contexts/ID/restart"; false: another path. */
must_check bool context_path(const char *path, size_t n, char ret_id[64], bool *ret_restart);

#endif
