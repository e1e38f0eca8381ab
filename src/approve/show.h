/* How what a sandbox asks for is shown to a person: nothing in it can look like something else. */
#ifndef WARD_APPROVE_SHOW_H
#define WARD_APPROVE_SHOW_H

#include "model/question.h"
#include "rules/decide.h"

/* Fills the texts of a question about a connection, with the host, the port and the rule of the
 * verdict. Names that a person could take for others are marked in the details. A pure function. */
void show_connection(const struct rules *r, const struct want *w, const struct verdict *v,
		     struct question *ret);

/* The same about a request, with what front says of it; its texts are ended. */
struct gate_request;
void show_request(const struct rules *r, const struct want *w, const struct verdict *v,
		  const struct gate_request *said, struct question *ret);

/* About a secret for a request to w's host, with what ward-keys says of it; its texts are ended. */
struct keys_asked;
void show_credential(const struct rules *r, const struct want *w, const struct keys_asked *said,
		     struct question *ret);

/* About a host file that a process inside opens. home: of the user; NULL: unknown. */
struct file_asked;
void show_file(const struct file_asked *asked, const char *home, struct question *ret);

/* Where a command line will be started: 0-2, and the directory. */
#define COMMAND_DIRECTORY 3
struct command_place {
	const char *where[4]; /* a path, "pipe:[NUMBER]" */
	const char *exact[4]; /* which file that is */
};

/* About a command line, as it will be started. */
struct command_said;
void show_command(const struct command_said *said, const struct command_place *place,
		  const char *rule, uint64_t serial, struct question *ret);

/* About a call of a tool; text: all of it, as tools_question() has made it. */
void show_tool(const char *text, uint64_t number, struct question *ret);

/* Writes warnings about the host into the details, first of all; how many. A pure function. */
size_t show_host_warnings(const struct rules *r, const struct want *w, struct question *ret);

/* Writes the line of policy that an answer makes: for ret's host and port alone, in the mode of the
 * verdict's rule. A pure function. */
void show_line(const struct rules *r, const struct verdict *v, struct question *ret);

/* Copies text, escaped, into cap bytes; what is too long is cut in the middle and gets a hash of
 * the whole: two long texts that differ in the middle look different. A pure function. */
void show_text(char *out, size_t cap, const char *text);

/* The known name that name could be taken for, NULL: none. A pure function. */
const char *show_looks_like(const char *name, const char *known);

#endif
