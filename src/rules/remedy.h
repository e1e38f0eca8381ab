/*
 * What would allow something that was refused: a line of the policy, or words where no line would
 * allow that and nothing else.
 *
 * A line never gives more than what was refused: it names the very host and port, the very method
 * and path, the repository and the ref, and repeats every other condition and limit of the rule
 * that came nearest. What a sandbox named is taken by its letters (remedy_literal). Where a rule is
 * for *.suffix, what it allows to this host is repeated as well, because a rule for the name itself
 * takes its place.
 */
#ifndef WARD_RULES_REMEDY_H
#define WARD_RULES_REMEDY_H

#include "rules/decide.h"

/* Appends the line as it would be written, `network.egress_allowlist: ["db.corp:5432"]`, or words;
 * nothing where nothing would help. request: "METHOD /path", perhaps with "KEY=ENTRY" behind
 * (exchange_note_asked()), or "" for a connection; more: of struct asked. Pure. */
void remedy_write(const struct rules *r, const struct want *w, const struct verdict *v,
		  const char *request, const char *more, struct buf *out);

/* Appends the rule that allows a request, and others like it, without asking as the rule `index`
 * does: {host: ..., methods: ..., paths: ...}. False: no rule would, and what was written is of no
 * use. Pure. */
must_check bool remedy_request(const struct rules *r, const struct want *w, int32_t index,
			       const char *request, const char *more, struct buf *out);

/* Whether a remedy may be shown to the program that was refused: it holds nothing that this program
 * has to add itself (headers). */
bool remedy_is_open(const struct rules *r, const struct verdict *v);

/* Whether a rule for this very host would be of any use, and of no harm: not for addresses that are
 * never reached or hand out credentials. */
bool remedy_may_name(const struct host *host);

/* Appends text as an entry of a rule's list that matches this text alone, in quotes. False, with
 * nothing appended: none would. Pure. */
must_check bool remedy_literal(struct buf *out, const char *text, size_t n);

#endif
