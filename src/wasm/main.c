/*
 * ward-wasm: what ward-init starts in place of a command under `isolation: wasm`. In: "run" with
 * the words of the plan, then the module and its arguments; or "compile", with a module at standard
 * input. Out: the module's own exit code, or one of wasm.h's with a line on standard error. It runs
 * inside a native sandbox with no rights but the sandbox's, and gives up more of them before it
 * reads the module: the runtime's parser, compiled code and everything that the module asks the
 * runtime for happen behind both.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wasm/wasm.h"

int say(int code, const char *about, const char *text, ...)
{
	char line[1024];
	va_list args;

	va_start(args, text);
	vsnprintf(line, sizeof(line), text, args);
	va_end(args);
	dprintf(STDERR_FILENO, "ward-wasm: %s%s%s\n", about ? about : "", about ? ": " : "", line);
	return code;
}

static int run(struct wasm_job *job)
{
	static char here[4096];
	struct wasm_module m;
	const char *wrong;
	int r;

	if (!job->words || !job->words[0])
		return say(EXIT_OWN, NULL, "no module given");
	wrong = getcwd(here, sizeof(here)) ? wasm_add_cwd(job, here) : NULL;
	if (wrong)
		return say(EXIT_OWN, NULL, "%s", wrong);
	setenv("PWD", here, 1); /* WASI has no working directory of its own */
	r = module_read(job->words[0], &m);
	if (r)
		return r;
	return strcmp(job->runtime, "library") == 0 ? edge_run(job, &m) : other_run(job, &m);
}

static int compile(struct wasm_job *job)
{
	struct wasm_module m;
	int r = module_read(NULL, &m);

	return r ? r : edge_compile(job, &m);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*act)(struct wasm_job *job);
	} acts[] = { { "run", run }, { "compile", compile } };

	for (size_t i = 0; argc >= 2 && i < sizeof(acts) / sizeof(*acts); i++)
		if (strcmp(argv[1], acts[i].name) == 0) {
			struct wasm_job job;
			const char *wrong = wasm_words(argc - 2, argv + 2, &job);

			/* without the destructors of the runtime's libraries, which only touch
			 * pages that go away */
			_exit(wrong ? say(EXIT_OWN, NULL,
					  "%s; it is started by ward run --isolation wasm", wrong)
				    : acts[i].act(&job));
		}
	return say(EXIT_OWN, NULL, "it is started by ward run --isolation wasm");
}
