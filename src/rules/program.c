/*
 * What a program file needs to start. In: the first bytes of a file that a policy allows or denies,
 * or a name. Out: the loader or interpreter that the kernel will look for, what an interpreter can
 * do. Used by the plan (process.commands). Pure functions; every offset is checked against what is
 * there.
 */
#include "rules/program.h"

#include <elf.h>
#include <string.h>

#include "base/own.h"

#define SCRIPTS                                                                                    \
	"an interpreter: it runs scripts from any file that it can read; the programs that they "  \
	"start are held to the list"
#define MACHINE                                                                                    \
	"an interpreter: it runs scripts, and machine code of its own making, so that it can do "  \
	"what any program can do here"
#define APPLETS                                                                                    \
	"many programs in one file, a shell among them: all of them are allowed or denied "        \
	"together"

static const struct {
	const char *name, *what;
} interpreters[] = {
#define INTERPRETER(name, kind) { name, kind },
#include "interpreters.def"
};

const char *program_interprets(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(interpreters); i++) {
		size_t n = strlen(interpreters[i].name);

		if (strncmp(name, interpreters[i].name, n) == 0 &&
		    name[n + strspn(name + n, "0123456789.-")] == '\0')
			return interpreters[i].what;
	}
	return NULL;
}

/* The loader that an ELF file for x86-64 names. */
static void read_elf(const uint8_t *bytes, size_t n, struct program *ret)
{
	Elf64_Ehdr head;
	Elf64_Phdr part;

	if (n < sizeof(head))
		return;
	memcpy(&head, bytes, sizeof(head));
	if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_machine != EM_X86_64 ||
	    head.e_phentsize != sizeof(part))
		return;
	for (size_t i = 0; i < head.e_phnum; i++) {
		uint64_t at;

		if (__builtin_add_overflow(head.e_phoff, i * sizeof(part), &at) || at > n ||
		    n - at < sizeof(part))
			return; /* not in the part that was read: not known */
		memcpy(&part, bytes + at, sizeof(part));
		if (part.p_type != PT_INTERP)
			continue;
		if (part.p_offset > n || part.p_filesz > n - part.p_offset || part.p_filesz < 2 ||
		    part.p_filesz > sizeof(ret->helper) || bytes[part.p_offset + part.p_filesz - 1])
			return;
		memcpy(ret->helper, bytes + part.p_offset, part.p_filesz);
		ret->form = PROGRAM_DYNAMIC;
		return;
	}
	ret->form = PROGRAM_STATIC;
}

static size_t take_word(const uint8_t *bytes, size_t n, size_t at, char *out, size_t cap)
{
	size_t len = 0;

	while (at < n && (bytes[at] == ' ' || bytes[at] == '\t'))
		at++;
	while (at < n && bytes[at] && !strchr(" \t\n", bytes[at])) {
		if (len + 1 < cap)
			out[len++] = (char)bytes[at];
		at++;
	}
	out[len] = '\0';
	return at;
}

void program_read(const uint8_t *bytes, size_t n, struct program *ret)
{
	*ret = (struct program){ 0 };
	if (n >= 4 && memcmp(bytes, "\177ELF", 4) == 0) {
		read_elf(bytes, n, ret);
	} else if (n >= 3 && bytes[0] == '#' && bytes[1] == '!') {
		size_t at = take_word(bytes, n, 2, ret->helper, sizeof(ret->helper));

		if (!ret->helper[0])
			return;
		take_word(bytes, n, at, ret->argument, sizeof(ret->argument));
		ret->form = PROGRAM_SCRIPT;
	}
}
