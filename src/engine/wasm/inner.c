/*
 * WASI as an inner runtime. In: a spec whose command is a WASI module. Out: a native plan in which
 * ward-init starts ward-wasm (src/wasm), which shows the module the plan's directories and nothing
 * else: the workspace, host mounts, volumes, /tmp and /home/agent, each as writable as its mount
 * is. Runs in the supervisor, which reads of a module no more than its digest needs. What no
 * runtime here can hold is refused: fuel where it does not count, a network where it has no sockets
 * that end at the gateway.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "engine/wasm/wasm.h"
#include "host/program.h"
#include "plan/plan_root.h"
#include "state/images.h"

#define RUNNER "/.ward/ward-wasm"
#define CODE "/.ward/module-" /* and the digest of the module that it was made of */
#define NODE_FILES 128        /* it was seen to take 22, and one for each directory */
#define PAGE_BYTES 65536
#define PAGES_MAX 65536

static const char *which(void);
static int want(struct spec *s, struct ward_err *e);
static int mounts(struct plan *p, struct ward_err *e);
static int words(struct plan *p, struct ward_err *e);

static const char *const stages[] = {
	"wasm", "ward-wasm opens the plan's directories, then reads and runs the module", NULL
};

static int probe(struct ward_err *e)
{
	struct wasm_runtime found;
	auto_free char *runner = NULL;
	int r = wasm_runner_path(&runner, e);

	return r < 0 ? r : wasm_find_runtime(0, NULL, &found, e);
}

#define WALL(text)                                                                                 \
	{                                                                                          \
		.name = "wasm", .help = text, .probe = probe, .in_image = true, .which = which,    \
		.want = want, .mounts = mounts, .words = words, .stages = stages,                  \
		.no_snapshot =                                                                     \
			"its runtimes cannot save the state of a module\nuse isolation: gvisor"    \
	}

const struct inner inner_wasm = WALL("a WASI module in a native sandbox");

/* What stands in plan and result. */
static const struct inner variants[WASM_RUNTIMES] = {
	[WASM_LIBRARY] = WALL("a WASI module run by the WasmEdge library in a native sandbox"),
	[WASM_WASMEDGE] = WALL("a WASI module run by wasmedge in a native sandbox"),
	[WASM_WASMTIME] = WALL("a WASI module run by wasmtime (untested) in a native sandbox"),
	[WASM_IWASM] = WALL("a WASI module run by iwasm (untested) in a native sandbox"),
	[WASM_NODE] = WALL("a WASI module run by node in a native sandbox: node adds no isolation"),
};

static const char *which(void)
{
	struct ward_err unused = { 0 };
	struct wasm_runtime found;

	return wasm_find_runtime(0, NULL, &found, &unused) < 0 ? NULL : variants[found.id].help;
}

int wasm_runner_path(char **ret_path, struct ward_err *e)
{
	auto_fd fd = program_open("ward-wasm", e);
	char link[32], path[4096];
	ssize_t n;

	if (fd < 0)
		return fd;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n <= 0)
		return ward_fail_errno(e, "cannot find ward-wasm");
	*ret_path = strndup(path, (size_t)n);
	return *ret_path ? 0 : ward_fail(e, ENOMEM, "out of memory");
}

/* -- it was picked */

static int check_runtime(const struct spec *s, const struct wasm_runtime *found, struct ward_err *e)
{
	const struct policy *policy = &s->policy;
	const char *name = wasm_runtime_name(found->id);
	bool edge = found->id == WASM_LIBRARY || found->id == WASM_WASMEDGE;

	if (policy->wasm_fuel != POLICY_NONE && !edge && found->id != WASM_WASMTIME) {
		ward_fail(e, ENOTSUP, "wasm.fuel: %s does not count instructions", name);
		return ward_remedy(e, "install wasmedge or wasmtime, or use --timeout");
	}
	if (policy->net_mode != NET_MODE_NONE && found->id != WASM_LIBRARY) {
		ward_fail(e, ENOTSUP, "network.mode: modules have no network with %s", name);
		return ward_remedy(e, "set network.mode: none, or use another isolation");
	}
	if (found->id == WASM_NODE && policy->res_open_files < NODE_FILES) {
		ward_fail(e, EINVAL,
			  "resources.open_files: %llu is too low for node, which needs %d for "
			  "itself and a sandbox's directories",
			  (unsigned long long)policy->res_open_files, NODE_FILES);
		return ward_remedy(
			e,
			"--set resources.open_files=%d or more, or another runtime (wasm.runtime)",
			NODE_FILES);
	}
	if (policy->res_gpus.len) {
		ward_fail(e, ENOTSUP, "resources.gpus: WASI modules cannot use GPUs");
		return ward_remedy(e, "set resources.gpus: none, or use isolation: native");
	}
	return 0;
}

/* ward-wasm is built for the C library of GNU. */
static int check_libc(const struct image *image, struct ward_err *e)
{
	static const char loader[] = "lib64/ld-linux-x86-64.so.2";
	auto_fd root = open(image->root, O_PATH | O_DIRECTORY | O_CLOEXEC), fd = -1;

	fd = root < 0 ? -1 : path_open_beneath(root, loader, O_PATH, e);
	if (fd >= 0)
		return 0;
	ward_fail(e, ENOENT, "ward-wasm needs the GNU C library, but the image has no /%s", loader);
	return ward_remedy(e, "use an image of Debian 13 or similar, with wasmedge installed");
}

/* An image has its own runtimes, whatever the host has. */
static int find_runtime(const struct spec *s, struct wasm_runtime *ret, struct ward_err *e)
{
	const struct policy *policy = &s->policy;
	struct image image;
	int r;

	if (strcmp(policy->image, "host") == 0)
		return wasm_find_runtime(policy->wasm_runtime, NULL, ret, e);
	r = images_open(policy->image, &image, e);
	if (r < 0)
		return r;
	r = check_libc(&image, e);
	if (r == 0)
		r = wasm_find_runtime(policy->wasm_runtime, image.root, ret, e);
	image_clear(&image);
	return r;
}

static int want(struct spec *s, struct ward_err *e)
{
	struct wasm_runtime found;
	int r = find_runtime(s, &found, e);

	if (r == 0)
		r = check_runtime(s, &found, e);
	if (r < 0)
		return r;
	s->inner = &variants[found.id];
	if (found.elsewhere && !strv_has(&s->policy.fs_programs, wasm_runtime_name(found.id)))
		strv_add(&s->policy.fs_programs, wasm_runtime_name(found.id));
	return s->policy.fs_programs.failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

/* -- the plan */

/* A file of ward's own; from_policy: it is mounted by number, and as root before the rights are
 * gone. */
static int add_file(struct plan *p, const char *source, const char *target, struct ward_err *e)
{
	struct plan_mount *m = plan_add_bind(p, source, target);
	struct stat st;

	if (!m)
		return ward_fail(e, ENOMEM, "out of memory");
	if (stat(source, &st) < 0)
		return ward_fail_errno(e, "cannot mount %s in the sandbox", source);
	m->is_file = m->from_policy = true;
	m->dev = st.st_dev;
	m->ino = st.st_ino;
	return 0;
}

/* Out of the store: code of the module, where there is any. */
static int add_code(const struct wasm_place *at, struct ward_err *e)
{
	auto_free char *code = NULL;
	char digest[SHA256_HEX], target[sizeof(CODE) + SHA256_HEX];
	struct wasm_code c = { .dir_fd = -1 };
	int r;

	if (at->runtime->id != WASM_LIBRARY || !at->plan->spec->policy.wasm_compile)
		return 0;
	r = wasm_store_open(&c, e);
	if (r == 0)
		r = wasm_find_code(at, &c, &code, digest, e);
	wasm_store_close(&c);
	if (r < 0 || !code)
		return r;
	snprintf(target, sizeof(target), CODE "%s", digest);
	return add_file(at->plan, code, target, e);
}

static int mounts(struct plan *p, struct ward_err *e)
{
	auto_free char *runner = NULL;
	struct wasm_runtime found;
	int r = wasm_runner_path(&runner, e);

	if (r == 0 && p->level != LEVEL_NAMESPACES)
		r = ward_fail(
			e, ENOTSUP,
			"isolation wasm needs namespaces: isolation level landlock cannot run it");
	if (r == 0)
		r = add_file(p, runner, RUNNER, e);
	if (r == 0)
		r = find_runtime(p->spec, &found, e);
	return r < 0 ? r : add_code(&(struct wasm_place){ p, &found, runner }, e);
}

static void add_dirs(const struct plan *p, struct strv *out)
{
	static const char *const own[] = { "/tmp", PLAN_HOME };

	for (size_t i = 0; i < p->mount_count; i++) {
		const struct plan_mount *m = &p->mounts[i];

		if (m->kind != MOUNT_BIND || !m->from_policy || m->is_file)
			continue;
		strv_add(out, m->writable ? "--dir" : "--dir-ro");
		strv_add(out, m->target);
	}
	for (size_t i = 0; i < ARRAY_LEN(own); i++) {
		strv_add(out, "--dir");
		strv_add(out, own[i]);
	}
}

static void add_limits(const struct plan *p, struct strv *out)
{
	uint64_t memory = p->limits[LIMIT_MEMORY].value;

	if (memory != POLICY_NONE && memory / PAGE_BYTES < PAGES_MAX) {
		strv_add(out, "--pages");
		strv_addf(out, "%llu", (unsigned long long)(memory / PAGE_BYTES));
	}
	if (p->spec->policy.wasm_fuel != POLICY_NONE) {
		strv_add(out, "--fuel");
		strv_addf(out, "%llu", (unsigned long long)p->spec->policy.wasm_fuel);
	}
	if (p->net.on)
		strv_add(out, "--network");
	if (p->facts.landlock_abi >= LANDLOCK_ABI_MIN)
		strv_add(out, "--landlock");
	if (p->spec->policy.proc_syscalls != SYSCALLS_STRICT)
		strv_add(out, "--filter");
}

/* What ward-wasm cannot add to the sandbox. */
static void note_less(struct plan *p, const struct wasm_runtime *found)
{
	if (p->facts.landlock_abi < LANDLOCK_ABI_MIN)
		strv_add(&p->notes, "wasm: this kernel has no Landlock: a module that breaks out "
				    "of its runtime reaches all files of the sandbox, not only its "
				    "directories (require.landlock refuses that)");
	if (found->id == WASM_LIBRARY && p->spec->policy.proc_syscalls == SYSCALLS_STRICT)
		strv_add(&p->notes, "wasm: with process.syscalls: strict the runtime uses that set "
				    "of system calls, not a smaller one of its own");
}

static void name_code(const struct plan *p, struct strv *out)
{
	for (size_t i = 0; i < p->mount_count; i++)
		if (p->mounts[i].is_file && strncmp(p->mounts[i].target, CODE, strlen(CODE)) == 0) {
			strv_add(out, "--aot");
			strv_add(out, p->mounts[i].target);
			strv_add(out, "--aot-digest");
			strv_add(out, p->mounts[i].target + strlen(CODE));
		}
}

/* All commands of a sandbox have the same words; where one starts, and whether it is the module
 * that was compiled, ward-wasm sees for itself. */
static int words(struct plan *p, struct ward_err *e)
{
	struct wasm_runtime found;
	int r = find_runtime(p->spec, &found, e);

	if (r < 0)
		return r;
	note_less(p, &found);
	for (struct strv *out = &p->inner_run; out;
	     out = out == &p->inner_run ? &p->inner_exec : NULL) {
		strv_add(out, RUNNER);
		strv_add(out, "run");
		strv_add(out, "--runtime");
		strv_add(out, wasm_runtime_name(found.id));
		strv_add(out, "--file");
		strv_add(out, found.file);
		add_dirs(p, out);
		add_limits(p, out);
		name_code(p, out);
		strv_add(out, "--");
	}
	return 0;
}
