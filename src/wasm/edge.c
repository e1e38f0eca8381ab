/*
 * Running a module by libwasmedge, in this process: no second program is started, and the code that
 * was compiled before is mapped as it lies in ward's store. In: the module's bytes, compiled code
 * if there is some for exactly these bytes, directories, limits. Out: the module's exit code; traps
 * and whatever else goes wrong as a line on standard error. The library is opened first, then the
 * process locks itself up (confine.c), then the module is read.
 */
#include "wasm/edge.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Puts the library's function of that name into the slot. */
static int find(void *library, const char *path, const char *name, void *slot)
{
	void *symbol = dlsym(library, name);

	if (!symbol) {
		say(EXIT_OWN, path, "it has no %s: WasmEdge 0.14 or newer is needed", name);
		return EXIT_OWN;
	}
	memcpy(slot, &symbol, sizeof(symbol));
	return 0;
}

int edge_open(const struct wasm_job *job, struct edge *ret)
{
	void *library = dlopen(job->file, RTLD_LAZY | RTLD_LOCAL);
	int r = 0;

	*ret = (struct edge){ 0 };
	if (!library) {
		say(EXIT_OWN, NULL, "cannot open the runtime's library: %s", dlerror());
		return EXIT_OWN;
	}
#define EDGE(result, name, arguments)                                                              \
	r = r ? r : find(library, job->file, "WasmEdge_" #name, &ret->name);
#include "wasm/edge_api.def"
	if (r)
		return r;
	ret->LogOff();
	return 0;
}

/* The directories in the library's words: NAME:PATH[:readonly]. */
static const char **list_dirs(const struct wasm_job *job)
{
	const char **list = calloc(job->dir_count + 1, sizeof(*list));

	for (size_t i = 0; list && i < job->dir_count; i++) {
		const struct wasm_dir *d = &job->dirs[i];
		char *text = NULL;

		if (asprintf(&text, "%s:%s%s", d->name, d->path, d->writable ? "" : ":readonly") <
		    0)
			return NULL;
		list[i] = text;
	}
	return list;
}

static uint32_t count(char *const *list)
{
	uint32_t n = 0;

	while (list[n])
		n++;
	return n;
}

static struct edge_string wrap(const char *text)
{
	return (struct edge_string){ .length = (uint32_t)strlen(text), .text = text };
}

static struct edge_bytes bytes_of(const struct wasm_module *m)
{
	return (struct edge_bytes){ .length = (uint32_t)m->n, .bytes = m->bytes };
}

/* Only a machine that gets ward's own code executes native code. The configuration stays as it is
 * for readers of the module's bytes: none of them takes code that came with it. */
static void *make_vm(const struct edge *edge, const struct wasm_job *job, void *configure,
		     bool has_code)
{
	void *vm;

	edge->ConfigureAddHostRegistration(configure, EDGE_HOST_WASI);
	if (job->pages)
		edge->ConfigureSetMaxMemoryPage(configure, job->pages);
	if (job->fuel)
		edge->ConfigureStatisticsSetCostMeasuring(configure, true);
	edge->ConfigureSetForceInterpreter(configure, !has_code);
	vm = edge->VMCreate(configure, NULL);
	edge->ConfigureSetForceInterpreter(configure, true);
	if (vm && job->fuel)
		edge->StatisticsSetCostLimit(edge->VMGetStatisticsContext(vm), job->fuel);
	return vm;
}

/* Compiled code that the library does not take (it was updated) is no loss: the module itself is
 * there. */
static struct edge_result load(const struct edge *edge, const char *code,
			       const struct wasm_module *m, void *configure, void *vm)
{
	struct edge_result r = { 0 };
	void *ast = NULL;

	if (code)
		r = edge->VMLoadWasmFromFile(vm, code);
	if (code && r.code == 0)
		return r;
	r = edge->LoaderParseFromBytes(edge->LoaderCreate(configure), &ast, bytes_of(m));
	return r.code ? r : edge->VMLoadWasmFromASTModule(vm, ast);
}

/* Names the first import that is not WASI's. */
static int say_imports(const struct edge *edge, const struct wasm_job *job,
		       const struct wasm_module *m, void *configure)
{
	static const char wasi[] = "wasi_snapshot_preview1";
	const void *imports[256] = { NULL };
	void *ast = NULL;
	uint32_t n = 0;

	if (edge->LoaderParseFromBytes(edge->LoaderCreate(configure), &ast, bytes_of(m)).code ==
		    0 &&
	    ast)
		n = edge->ASTModuleListImports(ast, imports, 256);
	for (uint32_t i = 0; i < n && i < 256; i++) {
		struct edge_string from = edge->ImportTypeGetModuleName(imports[i]),
				   name = edge->ImportTypeGetExternalName(imports[i]);

		if (from.length != sizeof(wasi) - 1 || memcmp(from.text, wasi, from.length) != 0)
			return say(EXIT_NOT_RUN, job->words[0],
				   "imports %.*s of %.*s: only WASI preview 1 is available",
				   (int)name.length, name.text, (int)from.length, from.text);
	}
	return say(EXIT_NOT_RUN, job->words[0],
		   "imports a function that this runtime's WASI does not have");
}

static int start(const struct edge *edge, const struct wasm_job *job, void *vm, const void *wasi)
{
	struct edge_string entry = wrap("_start");
	struct edge_result r;

	if (!edge->VMGetFunctionType(vm, entry))
		return say(EXIT_NOT_RUN, job->words[0],
			   "exports no _start: it is a library, not a command");
	r = edge->VMExecute(vm, entry, NULL, 0, NULL, 0);
	if (r.code == EDGE_OUT_OF_COST)
		return say(EXIT_LIMIT, job->words[0], "used up its fuel (wasm.fuel: %llu)",
			   (unsigned long long)job->fuel);
	if (r.code != 0 && r.code != EDGE_TERMINATED)
		return say(EXIT_TRAP, job->words[0], "trap: %s", edge->ResultGetMessage(r));
	return (int)(edge->ModuleInstanceWASIGetExitCode(wasi) & 0xff);
}

int edge_run(const struct wasm_job *job, const struct wasm_module *m)
{
	const char **dirs = list_dirs(job), *step = "cannot be loaded",
		   *native = job->aot && module_is(m, job->aot_digest) ? job->aot : NULL;
	void *configure, *vm, *wasi;
	struct edge_result r;
	struct edge edge;
	int code = edge_open(job, &edge);

	if (code)
		return code;
	configure = edge.ConfigureCreate();
	vm = configure && dirs ? make_vm(&edge, job, configure, native) : NULL;
	wasi = vm ? edge.VMGetImportModuleContext(vm, EDGE_HOST_WASI) : NULL;
	if (!wasi)
		return say(EXIT_OWN, NULL, "out of memory");
	edge.ModuleInstanceInitWASI(wasi, (const char *const *)job->words, count(job->words),
				    (const char *const *)environ, count(environ), dirs,
				    (uint32_t)job->dir_count);
	code = confine(job, true);
	if (code)
		return code;
	r = load(&edge, native, m, configure, vm);
	if (r.code == 0) {
		step = "is not valid";
		r = edge.VMValidate(vm);
	}
	if (r.code == 0) {
		step = "cannot be instantiated";
		r = edge.VMInstantiate(vm);
	}
	if (r.code == EDGE_UNKNOWN_IMPORT)
		return say_imports(&edge, job, m, configure);
	if (r.code)
		return say(EXIT_NOT_RUN, job->words[0],
			   "%s: %s; the file may be truncated or damaged, or use newer WebAssembly "
			   "features than this WasmEdge supports",
			   step, edge.ResultGetMessage(r));
	return start(&edge, job, vm, wasi);
}
