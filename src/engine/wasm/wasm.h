/* WASI as an inner runtime: WASI modules on a runtime inside a native sandbox. */
#ifndef WARD_ENGINE_WASM_WASM_H
#define WARD_ENGINE_WASM_WASM_H

#include "base/sha256.h"
#include "plan/inner.h"

/* The row of engines[]; a run has one of its variants, whose help names the runtime. */
extern const struct inner inner_wasm;

/* In the order in which they are tried. */
enum wasm_runtime_id {
	WASM_LIBRARY,
	WASM_WASMEDGE,
	WASM_WASMTIME,
	WASM_IWASM,
	WASM_NODE,
	WASM_RUNTIMES
};

struct wasm_runtime {
	enum wasm_runtime_id id;
	char file[256];       /* inside: the library, or the program */
	char host_file[4096]; /* the same file as the host has it */
	bool elsewhere;       /* a program outside /usr: filesystem.programs must show it */
};

/* What ward-wasm calls it. */
const char *wasm_runtime_name(enum wasm_runtime_id id);
/* The first runtime that the policy wants (wasm.runtime; 0 is auto) and that is there: on the host,
 * or in the image whose root is given (NULL: the host). */
must_check int wasm_find_runtime(unsigned wanted, const char *image_root, struct wasm_runtime *ret,
				 struct ward_err *e);

/* ward-wasm as the host has it. The caller frees. */
must_check int wasm_runner_path(char **ret_path, struct ward_err *e);

/* The store of compiled code: store.c. */
struct wasm_code {
	int dir_fd;                 /* STATE/wasm; owned */
	char *dir;                  /* its path; owned */
	char name[SHA256_HEX + 16]; /* of the entry */
};

/* What entries are made for. */
struct wasm_place {
	struct plan *plan;
	const struct wasm_runtime *runtime;
	const char *runner; /* ward-wasm as the host has it */
};

/* Compiled code of the plan's module, made first where there is none and the spec starts. *ret_path
 * is NULL where there is none to be had (a note of the plan says why); the caller frees. */
must_check int wasm_find_code(const struct wasm_place *at, struct wasm_code *c, char **ret_path,
			      char ret_digest[SHA256_HEX], struct ward_err *e);

#define WASM_STORE "wasm"
#define WASM_NEW_PREFIX "new-"
#define WASM_STORE_BYTES_MAX (UINT64_C(1) << 30)
#define WASM_STORE_FILES_MAX 512

/* What every entry ends with, behind the code: loaders do not look there. */
struct wasm_seal {
	char magic[8];
	uint64_t bytes;               /* of code; 0: there is none to be had */
	uint8_t digest[SHA256_BYTES]; /* of them */
	/* the digest of the module that it was made of */
	char origin[SHA256_HEX + 7];
};

/* Reads the seal of an open entry. false: it is not whole. */
bool wasm_store_unseal(int fd, struct wasm_seal *ret);
/* Whether the code in an open entry is still what it was. */
bool wasm_store_is_intact(int fd, const struct wasm_seal *seal);

must_check int wasm_store_open(struct wasm_code *c, struct ward_err *e);
void wasm_store_close(struct wasm_code *c);
/* 1: it is there; 0: it is not, or it is not whole; -ENOTSUP: this module could not be compiled
 * before. */
must_check int wasm_store_look(const struct wasm_code *c);
/* Makes room, and a new file that is no entry until it is kept; ret_name is "" where it has no
 * name. Returns its descriptor. */
must_check int wasm_store_begin(const struct wasm_code *c, char ret_name[64], struct ward_err *e);
/* Gives the new file its name; good: it holds code, else it says that there is none. origin: the
 * digest of the module (NULL: none). */
must_check int wasm_store_keep(const struct wasm_code *c, int fd, const char *name,
			       const char *origin, bool good, struct ward_err *e);

enum wasm_state { WASM_FINE, WASM_NO_CODE, WASM_DAMAGED, WASM_UNFINISHED };

/* An entry, for `ward wasm`. */
struct wasm_item {
	char name[256];
	char module[SHA256_HEX]; /* "": not known */
	enum wasm_state state;
	uint64_t bytes;
	time_t used;
};

struct wasm_items {
	struct wasm_item *items;
	size_t len;
};

/* Every entry, sorted by name. The caller frees the items. */
must_check int wasm_store_list(int dir_fd, struct wasm_items *ret, struct ward_err *e);

#endif
