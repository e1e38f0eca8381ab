/* The verbs of `ward vm`, which starts ward-vm-tool, and what they share. */
#ifndef WARD_VMTOOL_TOOL_H
#define WARD_VMTOOL_TOOL_H

#include "base/progress.h"
#include "base/say.h"
#include "host/program.h"
#include "state/vm.h"

struct tool_options {
	bool json, quiet, network;
	/* setup: a .deb, or a kernel with its modules in /lib/modules; NULL: whatever is found */
	const char *from;
	const char *accel; /* template: kvm unless said */
	const char *image; /* template: host unless said */
	uint64_t memory_bytes, cpus;
	char **words; /* behind the verb, NULL-terminated */
	size_t count;
	struct progress *progress; /* NULL: not shown */
};

int tool_setup(const struct tool_options *o);
int tool_template(const struct tool_options *o);
int tool_root(const struct tool_options *o);
int tool_list(const struct tool_options *o);

/* Says what is being done, to a person only. */
void tool_tell(const struct tool_options *o, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* A directory STATE/vm/work-ID in which something is made; no process takes it for a leftover while
 * it is open. */
struct tool_work {
	char *path; /* absolute, owned */
	int lock_fd;
};
must_check int tool_work_begin(struct tool_work *w, struct ward_err *e);
void tool_work_end(struct tool_work *w);
/* Makes a file read-only that a sandbox has made: a regular one, no link. -1: errno says why
 * not. */
must_check int tool_seal(const char *path);

/* Runs a program of the system's own directories (PATH is not asked) with no input and hardly a
 * variable; what it prints is shown only if it fails. cwd NULL: here. */
must_check int tool_run(char *const *argv, const char *cwd, struct ward_err *e);
/* The same, and its standard output is kept, at most max bytes. */
must_check int tool_run_read(char *const *argv, const char *cwd, size_t max, struct buf *out,
			     struct ward_err *e);
/* Runs `ward` itself with these words, the first of which is what it is called. name: of what runs
 * inside, for errors. */
must_check int tool_run_ward(const char *name, char *const *argv, struct ward_err *e);

/* A kernel with its modules, unpacked somewhere. */
struct tool_kernel {
	char *image;   /* path of the bzImage */
	char *modules; /* path of lib/modules/RELEASE */
	char release[64];
};
void tool_kernel_clear(struct tool_kernel *k);
/* Finds one, or fetches it into the work directory. */
must_check int tool_kernel_find(const struct tool_options *o, const struct tool_work *w,
				struct tool_kernel *ret, struct ward_err *e);
/* Takes the uncompressed kernel out of a bzImage. */
must_check int tool_kernel_extract(const char *image, const char *out, struct ward_err *e);

/* Reads a file that is packed or not (xz, zstd, gzip, lz4), by what its first bytes say. */
must_check int tool_unpack(const void *bytes, size_t n, size_t max, struct buf *out,
			   struct ward_err *e);

/* A module as the guest loads it. */
struct tool_module {
	char *name;
	struct buf bytes;
};
struct tool_modules {
	struct tool_module items[40];
	size_t len;
};
/* The modules that a guest needs and the kernel has not built in, in the order in which they are
 * loaded. */
must_check int tool_modules_find(const char *dir, struct tool_modules *ret, struct ward_err *e);
void tool_modules_clear(struct tool_modules *m);
/* What a module says that it depends on: the text behind "depends=" in its bytes; NULL: it says
 * nothing. A pure function. */
const char *tool_module_depends(const char *bytes, size_t n);

/* Writes the archive that the guest's kernel starts from. */
must_check int tool_initrd_write(const char *path, const char *init, const struct tool_modules *m,
				 struct ward_err *e);

/* Makes the root's file where it is not there yet. *ret_made: it was made now. */
must_check int tool_root_make(const struct tool_options *o, const char *image,
			      char ret_key[SHA256_HEX], bool *ret_made, struct ward_err *e);

#endif
