/*
 * What ward's stand-in for a guarded program (guest/stand_in.c) and the supervisor say to each
 * other: one packet a message over a SOCK_SEQPACKET socket inside, PLAN_GUARD_SOCKET. Whoever is
 * inside may connect: a request is what is shown and what is started, so nobody gains by asking.
 */
#ifndef WARD_PROTOCOL_COMMAND_H
#define WARD_PROTOCOL_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#define COMMAND_MAGIC 0x31636477 /* "wdc1" */
#define COMMAND_MAX (96 * 1024)  /* a request */
#define COMMAND_WORDS_MAX 4096
#define COMMAND_FDS 4 /* 0-2, and the directory to start in (O_PATH) */

enum command_op {
	/* stand-in -> supervisor */
	COMMAND_START = 1, /* a, b: count of words, of variables; with it the descriptors */
	COMMAND_SIGNAL,    /* a: the signal for the program's process group */
	/* supervisor -> stand-in */
	COMMAND_STARTED,
	COMMAND_ENDED,   /* a: wait status */
	COMMAND_MESSAGE, /* behind it a message of a channel; ward's client prints it and ends */
	COMMAND_REFUSED  /* behind it the reason, for standard error; a: the exit code */
};

/* Behind a START: the path of the program inside, its words, its variables, each ended by NUL. */
struct command_message {
	uint32_t magic, op;
	int32_t a, b;
};

/* What stands behind the prefix, or a null. Without a libc, as the rest: the stand-in has none. */
static inline const char *command_behind(const char *text, const char *prefix)
{
	while (*prefix && *text == *prefix) {
		text++;
		prefix++;
	}
	return *prefix ? 0 : text;
}

/* Whether a variable of whoever asks is passed on to the program: about the terminal, language and
 * time, and nothing that could be the name of a file. All others are those of the sandbox's own
 * start: what a loader or a program obeys (LD_*, GIT_*) nobody was shown. Pure. */
static inline bool command_keeps(const char *variable)
{
	static const char names[][12] = { "TERM=", "COLORTERM=", "COLUMNS=",  "LINES=", "NO_COLOR=",
					  "TZ=",   "LANG=",      "LANGUAGE=", "LC_" };
	bool known = false, named = false;

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		known |= command_behind(variable, names[i]) != 0;
	for (; known && *variable; variable++) {
		unsigned char c = (unsigned char)*variable;
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

		if (c == '=')
			named = true;
		else if (!letter && !(c >= '0' && c <= '9') && c != '_' && c != '-' && c != '.' &&
			 c != '@' && c != ':' && c != '+')
			return false;
	}
	return known && named;
}

#endif
