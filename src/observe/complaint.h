/* What the last words of a failed command complain about. */
#ifndef WARD_OBSERVE_COMPLAINT_H
#define WARD_OBSERVE_COMPLAINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COMPLAINT_WORD_MAX 512
#define COMPLAINTS_MAX 64

enum complaint_kind {
	COMPLAINT_ABSENT,    /* something does not exist: a path, or the name of a program */
	COMPLAINT_DENIED,    /* a path may not be read or written */
	COMPLAINT_READ_ONLY, /* a path cannot be written */
	COMPLAINT_NEEDS,     /* a path of the table, which the message does not name */
	COMPLAINT_SSH,       /* an ssh login failed: the host, where it is named */
	COMPLAINT_HOST,      /* a name was not resolved: the name; "": some name */
	COMPLAINT_ADDRESS,   /* a connection failed: IPv4 address and port, "192.0.2.1:443" */
	COMPLAINT_LOGIN,     /* a login is missing: the host, where it is named; `advice` */
	COMPLAINT_LIBRARY,   /* a library is missing: its name */
	COMPLAINT_COMMAND,   /* a shell has not found a program: its name */
	/* no word: limits, */
	COMPLAINT_MEMORY,
	COMPLAINT_PIDS,
	COMPLAINT_OPEN_FILES,
	COMPLAINT_DISK,
	/* and others */
	COMPLAINT_CERTIFICATE, /* a server's is not trusted */
	COMPLAINT_REPOSITORY,  /* git finds no repository */
	COMPLAINT_UNNAMED,     /* a file, which is not named */
	COMPLAINT_SAYS         /* `advice` */
};

struct complaint {
	enum complaint_kind kind;
	bool writes; /* its line says that a file was to be written */
	/* as it was printed: a path (absolute, or with ./ or ../ in front), or a word that may be a
	 * name; "" where the kind has none */
	char word[COMPLAINT_WORD_MAX];
	/* of a login: the option, with HOST in place of the name; what is to be done; static */
	const char *advice;
};

/* Reads the text line by line, and fills at most COMPLAINTS_MAX entries, each of them once; returns
 * how many. The text is a sandbox's. A pure function. */
size_t complaint_read(const uint8_t *text, size_t len, struct complaint out[COMPLAINTS_MAX]);
/* Whether a name (letters, digits, "_") stands in the text as a word. The text is a sandbox's. A
 * pure function. */
bool complaint_names(const uint8_t *text, size_t len, const char *name);

#endif
