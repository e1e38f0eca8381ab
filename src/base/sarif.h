/* SARIF 2.1.0, the form in which code hosts take findings: one run of one tool. The order of the
 * calls: begin, each rule, sarif_results(), each result, end. Pure; the texts are escaped here. */
#ifndef WARD_BASE_SARIF_H
#define WARD_BASE_SARIF_H

#include "base/json.h"

#include <stdbool.h>
#include <stdint.h>

struct sarif_rule {
	const char *id, *title;
	const char *help; /* NULL: none */
};

enum sarif_level { SARIF_NOTE, SARIF_WARNING, SARIF_ERROR };

struct sarif_result {
	const char *rule;
	bool is_listed; /* it was given to sarif_rule(), as number rule_index from 0 */
	unsigned rule_index;
	enum sarif_level level;
	const char *message;
	const char *path;
	uint64_t line, column;                      /* from 1; 0: not known */
	uint64_t offset, bytes;                     /* bytes 0: not known */
	const char *fingerprint_name, *fingerprint; /* NULL: none */
};

/* version NULL: none. */
void sarif_begin(struct json *j, const char *tool, const char *version);
void sarif_rule(struct json *j, const struct sarif_rule *rule);
void sarif_results(struct json *j);
void sarif_result(struct json *j, const struct sarif_result *x);
/* With the end of the last line. */
void sarif_end(struct json *j);

#endif
