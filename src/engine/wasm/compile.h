/* Compiling a module in a sandbox of its own. */
#ifndef WARD_ENGINE_WASM_COMPILE_H
#define WARD_ENGINE_WASM_COMPILE_H

#include "base/progress.h"
#include "engine/wasm/wasm.h"

struct compile_job {
	const struct wasm_runtime *runtime;
	const char *runner;		/* ward-wasm */
	const char *image_root;		/* NULL: the host */
	bool metered;
	int module_fd;			/* a copy that nobody else has */
	const struct wasm_code *code;	/* where the result goes */
	struct progress *progress;	/* NULL: nobody looks */
};

/* 0: the entry is in the store. -ENOTSUP: it cannot be compiled, which is in the store, too. -EINTR: somebody asked ward to end. */
must_check int compile_module(const struct compile_job *job, struct ward_err *e);

#endif
