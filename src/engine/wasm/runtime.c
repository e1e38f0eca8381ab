/*
 * Which runtime runs WASI modules here. In: what the policy wants, and where to look: the host, or
 * the tree of an image. Out: the first of the table that is there, with its path inside. Nothing is
 * executed or loaded here: whether it works is seen inside, where ward-wasm opens it.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "engine/wasm/wasm.h"
#include "plan/plan_root.h"

static const char *const library_dirs[] = {
	"/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib",
	"/usr/local/lib64",          NULL
};
static const char *const program_dirs[] = { "/usr/local/bin", "/usr/bin", "/bin", NULL };

static const struct {
	const char *name;   /* as ward-wasm has it */
	const char *wanted; /* as wasm.runtime has it */
	const char *file;
	const char *const *dirs;
} runtimes[WASM_RUNTIMES] = {
	[WASM_LIBRARY] = { "library", "wasmedge", "libwasmedge.so.0", library_dirs },
	[WASM_WASMEDGE] = { "wasmedge", "wasmedge", "wasmedge", program_dirs },
	[WASM_WASMTIME] = { "wasmtime", "wasmtime", "wasmtime", program_dirs },
	[WASM_IWASM] = { "iwasm", "iwasm", "iwasm", program_dirs },
	[WASM_NODE] = { "node", "node", "node", program_dirs },
};

/* The values of wasm.runtime behind auto. */
static const char *const choices[] = { NULL, "wasmedge", "wasmtime", "iwasm", "node" };

const char *wasm_runtime_name(enum wasm_runtime_id id)
{
	return runtimes[id].name;
}

static bool is_file(const char *root, const char *path)
{
	auto_fd dir = open(root ? root : "/", O_PATH | O_DIRECTORY | O_CLOEXEC), fd = -1;
	struct ward_err unused = { 0 };
	struct stat st;

	if (dir < 0)
		return false;
	fd = path_open_beneath(dir, path + 1, O_PATH, &unused);
	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

/* In the system's directories. */
static bool find_in_system(enum wasm_runtime_id id, const char *root, struct wasm_runtime *ret)
{
	for (const char *const *dir = runtimes[id].dirs; *dir; dir++) {
		snprintf(ret->file, sizeof(ret->file), "%s/%s", *dir, runtimes[id].file);
		if (!is_file(root, ret->file))
			continue;
		snprintf(ret->host_file, sizeof(ret->host_file), "%s%s", root ? root : "",
			 ret->file);
		return true;
	}
	return false;
}

/* A program that the user has elsewhere in PATH. */
static bool find_elsewhere(enum wasm_runtime_id id, struct wasm_runtime *ret)
{
	const char *path = getenv("PATH");

	while (path && *path) {
		size_t n = strcspn(path, ":");

		snprintf(ret->host_file, sizeof(ret->host_file), "%.*s/%s", (int)n, path,
			 runtimes[id].file);
		if (*path == '/' && access(ret->host_file, X_OK) == 0) {
			snprintf(ret->file, sizeof(ret->file), PLAN_PROGRAMS "/%s",
				 runtimes[id].file);
			ret->elsewhere = true;
			return true;
		}
		path += n + (path[n] == ':');
	}
	return false;
}

static int say_none(unsigned wanted, const char *image_root, struct ward_err *e)
{
	const char *name = wanted ? choices[wanted] : "wasmedge, wasmtime, iwasm or node";

	ward_fail(e, ENOENT, "wasm needs a WASI runtime, but %s has no %s",
		  image_root ? "the image" : "this host", name);
	return ward_remedy(e,
			   image_root ? "put %s into the image"
				      : "install %s (Debian 13: apt-get install wasmedge)",
			   name);
}

int wasm_find_runtime(unsigned wanted, const char *image_root, struct wasm_runtime *ret,
		      struct ward_err *e)
{
	if (wanted >= ARRAY_LEN(choices))
		wanted = 0;
	for (enum wasm_runtime_id id = 0; id < WASM_RUNTIMES; id++) {
		*ret = (struct wasm_runtime){ .id = id };
		if (wanted && strcmp(choices[wanted], runtimes[id].wanted) != 0)
			continue;
		if (find_in_system(id, image_root, ret) ||
		    (id != WASM_LIBRARY && !image_root && find_elsewhere(id, ret)))
			return 0;
	}
	return say_none(wanted, image_root, e);
}
