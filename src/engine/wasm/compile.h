/* Compiling a module in a sandbox of its own. */
#ifndef WARD_ENGINE_WASM_COMPILE_H
#define WARD_ENGINE_WASM_COMPILE_H

#include "base/progress.h"
#include "engine/wasm/wasm.h"

struct compile_job {
	const struct wasm_place *at;
	bool metered;
	int input_fd;                 /* a copy of the module that no other process has */
	const char *origin;           /* the module's digest */
	const struct wasm_code *code; /* where the result goes */
};

/* 0: the entry is in the store. -ENOTSUP: there is none, and *e says why; what will be so again is
 * in the store, too. -EINTR: ward was asked to end. */
must_check int compile_module(const struct compile_job *job, struct ward_err *e);

/* Names of entries: key.c. */
must_check int wasm_name_code(const struct wasm_place *at, const char *digest, struct wasm_code *c);

#endif
