/*
 * Compiling ahead of time. In: a module's bytes, from standard input. Out: at standard output a
 * shared object for this processor and this version of the library, which ward puts into its store;
 * nothing of a module that cannot be compiled. It runs in a native sandbox of its own, which sees
 * neither workspace nor network: the compiler is a large program, and what it reads is any
 * process's.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "wasm/edge.h"

static const char output[] = "/tmp/ward-module.so";

static int hand_out(const char *path)
{
	char bytes[65536];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = -1;

	while (fd >= 0 && (n = read(fd, bytes, sizeof(bytes))) > 0)
		for (ssize_t done = 0, w; done < n; done += w) {
			w = write(STDOUT_FILENO, bytes + done, (size_t)(n - done));
			if (w < 0)
				return say(EXIT_NO_ROOM, NULL, "cannot write the result: %s",
					   strerror(errno));
		}
	return n < 0 ? say(EXIT_OWN, NULL, "cannot read the result: %s", strerror(errno)) : 0;
}

static int compile_to(const struct wasm_job *job, const struct wasm_module *m, const char *path)
{
	struct edge_bytes bytes = { .length = (uint32_t)m->n, .bytes = m->bytes };
	void *configure, *compiler;
	struct edge_result r;
	struct edge edge;
	int code = edge_open(job, &edge);

	if (code)
		return code;
	configure = edge.ConfigureCreate();
	if (!configure)
		return say(EXIT_OWN, NULL, "out of memory");
	/* nothing is executed of what is compiled */
	edge.ConfigureSetForceInterpreter(configure, true);
	edge.ConfigureCompilerSetOptimizationLevel(configure, EDGE_OPTIMIZE_2);
	edge.ConfigureCompilerSetOutputFormat(configure, EDGE_FORMAT_NATIVE);
	if (job->pages)
		edge.ConfigureSetMaxMemoryPage(configure, job->pages);
	edge.ConfigureStatisticsSetCostMeasuring(configure, job->metered);
	compiler = edge.CompilerCreate(configure);
	if (!compiler)
		return say(EXIT_NOT_RUN, NULL, "this WasmEdge was built without its compiler");
	r = edge.CompilerCompileFromBytes(compiler, bytes, path);
	if (r.code)
		return say(EXIT_NOT_RUN, NULL, "the module cannot be compiled: %s",
			   edge.ResultGetMessage(r));
	return 0;
}

int edge_compile(const struct wasm_job *job, const struct wasm_module *m)
{
	int r = compile_to(job, m, output);

	return r ? r : hand_out(output);
}
