/* ward-wasm: the runner of WASI modules, inside a native sandbox. What its parts say to each other.
 */
#ifndef WARD_WASM_WASM_H
#define WARD_WASM_WASM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WASM_DIRS_MAX 65
#define WASM_MODULE_BYTES_MAX (1024u * 1024 * 1024) /* more than any compiler makes */

/* Exit codes beside the module's own. */
enum {
	EXIT_NO_ROOM = 74,  /* compile: the result cannot be written */
	EXIT_OWN = 125,     /* ward-wasm itself could not */
	EXIT_NOT_RUN = 126, /* it is no module, or none that can be started */
	EXIT_NOT_FOUND = 127,
	EXIT_TRAP = 134, /* as SIGABRT, which other runtimes raise */
	EXIT_LIMIT = 137 /* out of fuel */
};

/* A directory that the module may use. */
struct wasm_dir {
	const char *name; /* for the module: the path itself, or "." */
	const char *path; /* in the sandbox */
	bool writable;
};

/* What the words ask for. Everything is borrowed from argv. */
struct wasm_job {
	const char *runtime; /* a row of runtimes[], or "library" */
	const char *file;    /* the library, or the runtime's program */
	struct wasm_dir dirs[WASM_DIRS_MAX];
	size_t dir_count;
	uint32_t pages;  /* most memory, of 64 KiB; 0: what the module asks for */
	uint64_t fuel;   /* 0: no limit */
	const char *aot; /* compiled code of the module with this digest; NULL: none */
	const char *aot_digest;
	bool network; /* the sandbox has one */
	/* what ward-wasm must give up: files, system calls; the plan knows what the kernel and the
	 * sandbox's own filter allow */
	bool landlock, filter;
	bool metered; /* compile: code that counts */
	char **words; /* the module and its arguments, NULL-terminated */
};

/* Puts the directory that the process is in first, as ".", if it lies in one of the job's; path is
 * where that is. Returns NULL, or what is wrong with a directory. A pure function. */
const char *wasm_add_cwd(struct wasm_job *job, const char *path);

/* Reads the words behind "run" or "compile". Returns NULL, or what is wrong with them. A pure
 * function. */
const char *wasm_words(int argc, char **argv, struct wasm_job *ret_job);

enum wasm_kind {
	WASM_MODULE,
	WASM_NATIVE,
	WASM_DAMAGED,
	WASM_LARGE,
	WASM_COMPONENT,
	WASM_NEWER,
	WASM_TEXT,
	WASM_NONE
};
#define WASM_HEAD_BYTES 8
/* What a file is, by its first eight bytes, the names of its sections and how much they hold.
 * WASM_NATIVE: a module that brings native code; WASM_LARGE: more of something than any browser
 * takes. A pure function. */
enum wasm_kind wasm_kind(const uint8_t *bytes, size_t n);
/* The same by the first eight bytes alone: WASM_MODULE says that the rest is worth a look. */
enum wasm_kind wasm_kind_of_head(const uint8_t *bytes, size_t n);

/* The module's bytes. */
struct wasm_module {
	uint8_t *bytes;
	size_t n;
};

/* Reads the module at a path (NULL: standard input), or says why not and gives the exit code. */
int module_read(const char *path, struct wasm_module *ret);
#define WASM_FD_PATH 32
/* A private copy for another program: a file without a name that no process can write, at a
 * descriptor that stays open when this process executes; ret_path leads to it. Or says why not and
 * gives the exit code. */
int module_hand_over(const struct wasm_module *m, const char *name, char ret_path[WASM_FD_PATH]);
/* Whether its SHA-256 is these 64 digits. */
bool module_is(const struct wasm_module *m, const char *digest);

/* Takes from this process what a module does not need, as the job says: files outside its
 * directories; where the runtime is in this process (not strict: it is a program) system calls,
 * too: other programs, processes and (without a network) sockets. What cannot be had is an
 * error. */
int confine(const struct wasm_job *job, bool strict);

/* Runs the module by the library, in this process. Returns the exit code. */
int edge_run(const struct wasm_job *job, const struct wasm_module *m);
/* Compiles the module to standard output. Returns the exit code. */
int edge_compile(const struct wasm_job *job, const struct wasm_module *m);
/* Becomes another runtime, which gets the module at a descriptor. Returns an exit code if that
 * fails. */
int other_run(const struct wasm_job *job, const struct wasm_module *m);

/* Says why, on standard error. Returns code. */
int say(int code, const char *about, const char *text, ...) __attribute__((format(printf, 3, 4)));

#endif
