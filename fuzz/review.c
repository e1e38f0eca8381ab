/* Fuzzer of what reviews are read from: records, intent logs, the table of mounts. What is read and
 * written again reads the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "plan/plan_root.h"
#include "review/apply.h"
#include "review/changes_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void fuzz_record(const char *text, size_t n)
{
	struct review_record r, again;
	auto_buf out = { 0 };

	if (review_record_read(text, n, &r) < 0)
		return;
	if (r.workspace[0] != '/' || !r.start_count)
		abort();
	review_record_write(&r, &out);
	if (review_record_read(out.data, out.len, &again) < 0 ||
	    strcmp(r.workspace, again.workspace) != 0 || r.hidden.len != again.hidden.len ||
	    r.start_count != again.start_count)
		abort();
	review_record_clear(&again);
	review_record_clear(&r);
}

static bool goes_up(const char *path)
{
	return strcmp(path, "..") == 0 || strncmp(path, "../", 3) == 0 || strstr(path, "/../") ||
	       *path == '/';
}

static void fuzz_intent(const char *text, size_t n)
{
	struct apply_intent i;

	if (apply_intent_read(text, n, &i) < 0)
		return;
	if (!review_is_id(i.id) || strchr(i.token, '/') || !i.token[0] || (i.at && goes_up(i.at)))
		abort();
	for (size_t k = 0; k < i.paths.len; k++)
		if (goes_up(i.paths.items[k]))
			abort();
	apply_intent_clear(&i);
}

/* A link that is let through leads nowhere but down, or up as far as it is deep. */
static void fuzz_link(const char *text, size_t n)
{
	auto_free char *target = strndup(text, n);

	if (target && !changes_link_leaves("/w", "a/b", target) &&
	    (strcmp(target, "../..") == 0 || strncmp(target, "../../", 6) == 0 ||
	     strncmp(target, "/etc", 4) == 0 || strcmp(target, "x/..") == 0))
		abort();
}

static void fuzz_applied(const char *text, size_t n)
{
	struct applied_list l;

	if (changes_applied_read(text, n, &l) < 0)
		return;
	for (size_t i = 0; i < l.len; i++)
		if (changes_applied_at(&l, l.items[i].path) < l.items[i].ns)
			abort(); /* the last time counts */
	changes_applied_clear(&l);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	const char *text = (const char *)bytes;

	fuzz_record(text, n);
	fuzz_intent(text, n);
	fuzz_link(text, n);
	fuzz_applied(text, n);
	free(plan_mount_beneath(text, n, "/home/user/ws"));
	return 0;
}
