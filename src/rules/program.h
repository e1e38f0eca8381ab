/* What a program file needs to start, and which programs are interpreters. Pure functions. */
#ifndef WARD_RULES_PROGRAM_H
#define WARD_RULES_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROGRAM_HEAD 4096 /* bytes of the file that program_read() wants, if there are as many */

enum program_form {
	PROGRAM_OTHER,   /* nothing that the kernel starts here, or a 32-bit program */
	PROGRAM_STATIC,  /* ELF without a loader */
	PROGRAM_DYNAMIC, /* ELF; helper: the path of its loader */
	PROGRAM_SCRIPT   /* helper: the path of its interpreter; argument: the first word for it */
};

struct program {
	enum program_form form;
	char helper[256], argument[256];
};

/* Reads the first bytes of a file, whatever they are. */
void program_read(const uint8_t *bytes, size_t n, struct program *ret);

/* Of an interpreter by its name ("python3.11"): what it can do that no list of programs holds.
 * Static text; NULL: it is not known as one. */
const char *program_interprets(const char *name);

#endif
