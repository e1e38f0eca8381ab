/* Checking a tools.yaml: rules of tables/checks.def over what was read. Pure functions. */
#ifndef WARD_TOOLS_CHECK_H
#define WARD_TOOLS_CHECK_H

#include "tools/tools.h"

enum check_rule {
#define CHECK(id, ...) CHECK_##id,
#include "checks.def"
	CHECKS
};

struct check_rule_row {
	const char *name, *title, *help;
	bool error;
};
const struct check_rule_row *check_rule_row(enum check_rule rule);

struct check_finding {
	enum check_rule rule;
	unsigned line, column;
	char *file, *message, *fix; /* owned; fix may be NULL */
};

struct check_findings {
	const char *file; /* of the findings that are added now */
	struct check_finding *items;
	size_t len, cap;
	bool failed;
};

void check_add(struct check_findings *f, enum check_rule rule, struct place at, const char *fix,
	       const char *format, ...) __attribute__((format(printf, 5, 6)));
void check_free(struct check_findings *f);
size_t check_errors(const struct check_findings *f);

/* Rules about single tools and servers. suffixes: the public suffix list, n bytes. */
void check_each_tool(const struct tools *t, const char *suffixes, size_t n,
		     struct check_findings *f);
/* The scope of each tool beside a policy (NULL: none); agent: whose (NULL: those that no
 * agent holds). */
void check_policy(const struct tools *t, const struct tool_agent *agent,
		  const struct policy *policy, const char *policy_name, const char *dir,
		  const char *home, struct check_findings *f);
/* The lethal trifecta, through shared files too. */
void check_trifecta(const struct tools *t, const char *dir, const char *home,
		    struct check_findings *f);
/* Whether two different agents can pass something on through files. */
bool check_agents_share(const struct tools *t, const char *dir, const char *home);
/* What grew since base; policies: what their policies allow more, a line each (NULL: nothing). */
void check_growth(const struct tools *base, const struct tools *t, const char *dir,
		  const char *home, const struct strv *policies, struct check_findings *f);

/* Reports: one document each. */
void check_report_text(const struct check_findings *f, struct buf *out);
void check_report_json(const struct check_findings *f, struct buf *out);
void check_report_sarif(const struct check_findings *f, struct buf *out);
void check_report_junit(const struct check_findings *f, const char *suite, struct buf *out);

#endif
