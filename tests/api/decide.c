/* A function of the host program decides in place of a person: once, for the run, not at all, too
 * late, nonsense; the end of the box; a box that asks nothing. */
#include "check.h"

#include <unistd.h>

static const char *workspace, *asked;
static struct ward_error e;

static struct ward_box *start(const char *mode, const char *script)
{
	const char *const argv[] = { "sh", "-c", script, NULL };
	struct ward_spec *s = ward_spec_new();
	struct ward_box *b = NULL;

	FINE(ward_spec_workspace(s, workspace, &e));
	ward_spec_widen(s, 1);
	FINE(ward_spec_set(s, "approvals.mode", mode, &e));
	FINE(ward_spec_set(s, "approvals.timeout_seconds", "3", &e));
	FINE(ward_spec_add(s, "filesystem.ask", asked, &e));
	FINE(ward_spec_command(s, argv, &e));
	FINE(ward_start(s, 0, &b, &e));
	ward_spec_free(s);
	return b;
}

struct seen {
	int calls;
	uint64_t last;
	enum ward_answer answers[8];
	int wait_s;
};

static enum ward_answer decide(void *context, const struct ward_question *q, unsigned *ret_seconds)
{
	struct seen *s = context;

	CHECK(q->size == sizeof(*q) && q->number > s->last && strcmp(q->kind, "file") == 0);
	CHECK(strncmp(q->subject, "read ", 5) == 0 && strstr(q->subject, asked));
	CHECK(strcmp(q->rule, "filesystem.ask") == 0 && q->details[0] && q->count == 1);
	CHECK(q->left_ms > 0 && q->left_ms <= 3000);
	CHECK(s->calls < 8);
	s->last = q->number;
	sleep((unsigned)s->wait_s);
	*ret_seconds = 60;
	return s->answers[s->calls++];
}

static void expect(struct ward_box *b, const char *wanted)
{
	int out = ward_box_stream(b, 1, &e), code = -1;
	char text[256] = "";
	size_t got = 0;
	ssize_t n;

	CHECK(out >= 0);
	while ((n = read(out, text + got, sizeof(text) - 1 - got)) > 0)
		got += (size_t)n;
	close(out);
	CHECK(ward_wait(b, 20000, &code, &e) == 1);
	if (strcmp(text, wanted) != 0)
		fprintf(stderr, "got %s, wanted %s\n", text, wanted);
	CHECK(strcmp(text, wanted) == 0);
}

static void answers(void)
{
	struct seen s = { .answers = { WARD_ANSWER_ONCE, WARD_ANSWER_DENY, (enum ward_answer)77,
				       WARD_ANSWER_TIME } };
	char script[512];
	struct ward_box *b;
	int count = 0, r;

	snprintf(script, sizeof(script),
		 "for i in 1 2 3 4 5; do cat %s 2>/dev/null || echo no; done", asked);
	b = start("ask", script);
	while (count < 3 && (r = ward_decide(b, decide, &s, 20000, &e)) >= 0)
		count += r;
	CHECK(count == 3 && ward_decide(b, decide, &s, 20000, &e) == 1);
	expect(b, "data\nno\nno\ndata\ndata\n");
	CHECK(s.calls == 4); /* the fifth was covered by the fourth */
	REFUSED(ward_decide(b, decide, &s, 1000, &e), ESRCH, "ended");
	ward_box_free(b);
}

/* What it leaves to others, or answers too late, is a no in time. */
static void no_answer(void)
{
	struct seen s = { .answers = { WARD_ANSWER_NONE } },
		    late = { .answers = { WARD_ANSWER_RUN }, .wait_s = 4 };
	char script[512];
	struct ward_box *b;

	snprintf(script, sizeof(script), "cat %s 2>/dev/null || echo no", asked);
	b = start("ask", script);
	for (int i = 0; i < 20 && s.calls == 0; i++) /* a busy machine asks late */
		CHECK(ward_decide(b, decide, &s, 1000, &e) == 0);
	CHECK(s.calls == 1);
	CHECK(ward_decide(b, decide, &s, 100, &e) == 0 && s.calls == 1); /* handed over once */
	expect(b, "no\n");
	ward_box_free(b);
	snprintf(script, sizeof(script), "cat %s 2>/dev/null || echo no; sleep 3", asked);
	b = start("ask", script);
	CHECK(ward_decide(b, decide, &late, 4500, &e) == 0 && late.calls == 1);
	expect(b, "no\n");
	ward_box_free(b);
}

static void refuses(void)
{
	struct seen s = { 0 };
	struct ward_box *b = start("deny", "sleep 1000");

	REFUSED(ward_decide(b, decide, &s, 1000, &e), ENOTSUP, "asks nothing");
	ward_box_free(b);
	b = start("ask", "sleep 1000");
	CHECK(ward_decide(b, decide, &s, 50, &e) == 0);
	FINE(ward_kill(b, &e));
	CHECK(ward_decide(b, decide, &s, 20000, &e) < 0);
	ward_box_free(b);
	CHECK(s.calls == 0);
}

int main(int argc, char **argv)
{
	CHECK(argc == 3);
	workspace = argv[1];
	asked = argv[2];
	answers();
	no_answer();
	refuses();
	return 0;
}
