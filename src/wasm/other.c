/*
 * Runtimes that are programs of their own: wasmedge, wasmtime, iwasm, node. In: the job. Out: the
 * runtime in place of this process, with the words that it has for directories, variables and
 * limits, and an environment of its own (the module's variables are among its words: they are
 * nothing that a runtime should follow). What a runtime has no option for (wasmtime: that a
 * directory is read-only) the sandbox holds anyway. The module comes as a descriptor of what was
 * looked at, not by its path, where it may have changed: but for node the module sees that in its
 * first argument. Exit codes of traps are the runtime's own. node adds no isolation of its own: its
 * WASI is meant for trusted code, says its manual; here it is one more program in a native sandbox.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wasm/wasm.h"

#define WORDS_MAX 4096
#define PAGE_BYTES 65536ull

struct line {
	const char *words[WORDS_MAX];
	size_t n;
	bool failed;
};

static void add(struct line *l, const char *word)
{
	if (!word || l->n + 1 >= WORDS_MAX)
		l->failed = true;
	else
		l->words[l->n++] = word;
}

static void __attribute__((format(printf, 2, 3))) addf(struct line *l, const char *format, ...)
{
	char *text = NULL;
	__builtin_va_list args;

	__builtin_va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	__builtin_va_end(args);
	add(l, text);
}

static void add_words(struct line *l, char *const *words)
{
	for (; *words; words++)
		add(l, *words);
}

static void wasmedge_words(const struct wasm_job *job, const char *module, struct line *l)
{
	add(l, "--force-interpreter"); /* a module may bring native code */
	for (size_t i = 0; i < job->dir_count; i++) {
		add(l, "--dir");
		addf(l, "%s:%s%s", job->dirs[i].name, job->dirs[i].path,
		     job->dirs[i].writable ? "" : ":readonly");
	}
	for (char **v = environ; *v; v++) {
		add(l, "--env");
		add(l, *v);
	}
	if (job->pages) {
		add(l, "--memory-page-limit");
		addf(l, "%u", job->pages);
	}
	if (job->fuel) {
		add(l, "--gas-limit");
		addf(l, "%llu", (unsigned long long)job->fuel);
	}
	add(l, module);
	add_words(l, job->words + 1);
}

static void wasmtime_words(const struct wasm_job *job, const char *module, struct line *l)
{
	add(l, "run");
	for (size_t i = 0; i < job->dir_count; i++) {
		add(l, "--dir");
		addf(l, "%s::%s", job->dirs[i].path, job->dirs[i].name);
	}
	for (char **v = environ; *v; v++) {
		add(l, "--env");
		add(l, *v);
	}
	if (job->pages)
		addf(l, "-Wmax-memory-size=%llu", job->pages * PAGE_BYTES);
	if (job->fuel)
		addf(l, "-Wfuel=%llu", (unsigned long long)job->fuel);
	add(l, module);
	add_words(l, job->words + 1);
}

static void iwasm_words(const struct wasm_job *job, const char *module, struct line *l)
{
	for (size_t i = 0; i < job->dir_count; i++)
		addf(l, "--map-dir=%s::%s", job->dirs[i].name, job->dirs[i].path);
	for (char **v = environ; *v; v++)
		addf(l, "--env=%s", *v);
	add(l, module);
	add_words(l, job->words + 1);
}

/* The words behind it: each list with its length in front: names of directories, their paths,
 * variables; where the module is, its name, its arguments. */
static const char node_script[] =
	"const fs = require('fs'), { WASI } = require('wasi'), w = process.argv.slice(1);\n"
	"const take = () => w.splice(0, Number(w.shift()));\n"
	"const preopens = {}, env = {};\n"
	"const names = take(), paths = take();\n"
	"names.forEach((n, i) => { preopens[n] = paths[i]; });\n"
	"for (const v of take()) env[v.slice(0, v.indexOf('='))] = v.slice(v.indexOf('=') + 1);\n"
	"const file = w.shift();\n"
	"const say = (code, text) => { fs.writeSync(2, `ward-wasm: ${w[0]}: ${text}\\n`); "
	"process.exit(code); };\n"
	"const wasi = new WASI({ version: 'preview1', args: w, env, preopens, returnOnExit: true "
	"});\n"
	"const imports = { wasi_snapshot_preview1: wasi.wasiImport };\n"
	"let module, instance, code;\n"
	"try { module = new WebAssembly.Module(fs.readFileSync(file)); } catch (e) { say(126, `is "
	"not valid: ${e.message}`); }\n"
	"const foreign = WebAssembly.Module.imports(module).find((i) => !(imports[i.module] && "
	"imports[i.module][i.name]));\n"
	"if (foreign) say(126, `imports ${foreign.name} of ${foreign.module}: only WASI preview 1 "
	"is there`);\n"
	"if (!WebAssembly.Module.exports(module).some((x) => x.name === '_start' && x.kind === "
	"'function')) say(126, 'exports no _start: it is a library, not a command');\n"
	"try { instance = new WebAssembly.Instance(module, imports); } catch (e) { say(126, "
	"`cannot be instantiated: ${e.message}`); }\n"
	"try { code = wasi.start(instance); } catch (e) { say(134, `trap: ${e.message}`); }\n"
	"process.exit(code & 255);\n";

static void node_words(const struct wasm_job *job, const char *module, struct line *l)
{
	size_t variables = 0;

	while (environ[variables])
		variables++;
	add(l, "--no-warnings");
	add(l, "--experimental-wasi-unstable-preview1");
	add(l, "-e");
	add(l, node_script);
	add(l, "--");
	addf(l, "%zu", job->dir_count);
	for (size_t i = 0; i < job->dir_count; i++)
		add(l, job->dirs[i].name);
	addf(l, "%zu", job->dir_count);
	for (size_t i = 0; i < job->dir_count; i++)
		add(l, job->dirs[i].path);
	addf(l, "%zu", variables);
	add_words(l, environ);
	add(l, module);
	add_words(l, job->words);
}

static const struct {
	const char *name;
	void (*words)(const struct wasm_job *job, const char *module, struct line *l);
} runtimes[] = {
	{ "wasmedge", wasmedge_words },
	{ "wasmtime", wasmtime_words },
	{ "iwasm", iwasm_words },
	{ "node", node_words },
};

int other_run(const struct wasm_job *job, const struct wasm_module *m)
{
	static char path[] = "PATH=/usr/local/bin:/usr/bin:/bin", home[] = "HOME=/nonexistent";
	char *const own_environment[] = { path, home, NULL };
	static char module[WASM_FD_PATH];
	static struct line l;
	int r;

	for (size_t i = 0; i < sizeof(runtimes) / sizeof(*runtimes); i++) {
		if (strcmp(runtimes[i].name, job->runtime) != 0)
			continue;
		r = module_hand_over(m, job->words[0], module);
		if (r)
			return r;
		add(&l, runtimes[i].name);
		runtimes[i].words(job, module, &l);
		if (l.failed)
			return say(EXIT_OWN, NULL, "too many words");
		l.words[l.n] = NULL;
		r = confine(job, false);
		if (r)
			return r;
		execve(job->file, (char *const *)(uintptr_t)l.words, own_environment);
		return say(errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUN, job->file,
			   "the runtime cannot be started: %s", strerror(errno));
	}
	return say(EXIT_OWN, job->runtime, "no runtime that ward knows");
}
