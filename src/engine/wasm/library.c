/*
 * WasmEdge's library without its compiler. In: a plan that has modules run by the library. Out: a
 * file of the store that a run opens instead of it, or none: then the system's own is opened, which
 * takes five times as long because LLVM comes with it. It is made once for each library, by
 * ward-wasm in the sandbox in which modules are compiled, and tried there (src/wasm/trim.c,
 * trial.c). Runs in the supervisor with the user's rights; the library is not read here. It is run
 * inside as the code of a module is, with no more rights than the library itself: whoever makes the
 * image's makes this one.
 */
#include <errno.h>
#include <fcntl.h>

#include "base/path.h"
#include "engine/wasm/compile.h"

/* 1: it is there, under c->name; 0: it is not. */
static int find(const struct wasm_place *at, struct wasm_code *c, struct ward_err *e)
{
	struct compile_job job = { .at = at, .act = "trim", .code = c };
	auto_fd nothing = -1;
	int r = wasm_name_library(at, c);

	r = r < 0 ? r : wasm_store_look(c);
	if (r != 0 || !at->plan->spec->starts)
		return r > 0;
	nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (nothing < 0)
		return 0;
	job.input_fd = nothing;
	r = compile_module(&job, e);
	if (r < 0 && r != -EINTR) { /* whatever it was: the system's own is there */
		*e = (struct ward_err){ 0 };
		return 0;
	}
	return r < 0 ? r : 1;
}

int wasm_find_library(const struct wasm_place *at, struct wasm_code *c, char **ret_path,
		      struct ward_err *e)
{
	int r = find(at, c, e);

	*ret_path = r > 0 ? path_join(c->dir, c->name) : NULL;
	return r > 0 && !*ret_path ? ward_fail(e, ENOMEM, "out of memory") : r < 0 ? r : 0;
}
