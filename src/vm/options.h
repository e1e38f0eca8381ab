/* The words that ward starts ward-vm with. */
#ifndef WARD_VM_OPTIONS_H
#define WARD_VM_OPTIONS_H

#include "vm/vmm.h"

#define VM_TREES_MAX 64

struct vm_options {
	struct vm_config config;
	/* "in:PATH", which is not brought back, or "rw:PATH" */
	const char *trees[VM_TREES_MAX];
	size_t tree_count;
	uint64_t uid, gid, pids, open_files; /* of the commands; 0: no limit */
	/* where commands of ward exec come to, inside the sandbox */
	const char *socket;
	/* template: the file that the state is written to */
	const char *out;
	char **words; /* behind "--" */
	int word_count;
};

/* Reads "--NAME VALUE" up to "--". Texts are borrowed. */
must_check int vm_options_read(int argc, char **argv, struct vm_options *ret, struct ward_err *e);

#endif
