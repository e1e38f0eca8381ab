/* The watch: replacing from outside is seen, everything else is not. */
#include "guard_help.h"

#include <poll.h>

#include "guard/guard.h"

/* The steps that are due, as text; reads until nothing more comes. */
static const char *due(struct guard_watch *w, const struct guard_root *g, struct buf *b)
{
	struct guard_undone undone[4];
	struct pollfd p = { .fd = guard_watch_fd(w), .events = POLLIN };
	size_t n;

	buf_free(b);
	while (poll(&p, 1, 50) > 0)
		while ((n = guard_watch_read(w, undone, ARRAY_LEN(undone))))
			for (size_t i = 0; i < n; i++)
				for (size_t s = 0; s < undone[i].count; s++)
					buf_printf(b, "%s ", g->steps[undone[i].steps[s]].path);
	return buf_text(b);
}

static void replaced_things_are_due(void **state unused_arg)
{
	struct tree t;
	struct guard_root g;
	struct guard_watch *w;
	struct strv notes = { 0 };
	struct ward_err e = { 0 };
	auto_buf b = { 0 };

	tree_make(&t);
	tree_put(&t, ".env", "x");
	tree_put(&t, "a/.git/config", "x");
	tree_put(&t, "a/.git/hooks/x", "x");
	tree_scan(&t, &g, list_of(".env", NULL), list_of(NULL));
	assert_int_equal(guard_watch_create(&g, 1, &w, &notes, &e), 0);
	assert_non_null(w);
	assert_int_equal(notes.len, 0);
	assert_string_equal(due(w, &g, &b), "");

	tree_put(&t, "other", "x");
	tree_put(&t, "a/.env", "x");
	tree_put(&t, ".env", "written in place");
	assert_string_equal(due(w, &g, &b), "");

	tree_put(&t, "new", "x");
	assert_int_equal(renameat(t.fd, "new", t.fd, ".env"), 0);
	assert_string_equal(due(w, &g, &b), ".env ");

	assert_int_equal(unlinkat(t.fd, ".env", 0), 0);
	assert_string_equal(due(w, &g, &b), "");
	tree_put(&t, ".env", "x");
	assert_string_equal(due(w, &g, &b), ".env ");

	tree_put(&t, "a/.git/config.lock", "x");
	assert_int_equal(renameat(t.fd, "a/.git/config.lock", t.fd, "a/.git/config"), 0);
	assert_string_equal(due(w, &g, &b), "a/.git/config ");

	/* a whole directory is replaced, and is watched in its new shape */
	assert_int_equal(renameat(t.fd, "a", t.fd, "old"), 0);
	tree_put(&t, "b/.git/config", "x");
	assert_int_equal(renameat(t.fd, "b", t.fd, "a"), 0);
	assert_string_equal(due(w, &g, &b), "a a/.git a/.git/config ");
	tree_put(&t, "a/.git/config.lock", "x");
	assert_int_equal(renameat(t.fd, "a/.git/config.lock", t.fd, "a/.git/config"), 0);
	assert_string_equal(due(w, &g, &b), "a/.git/config ");
	guard_watch_destroy(w);
	guard_clear(&g);
	tree_remove(&t);
}

/* Somebody took a protected name away between the scan and the watch: what the sandbox puts there
 * is new. A hidden one has nothing to lose. */
static void what_went_before_is_lost(void **state unused_arg)
{
	struct tree t;
	struct guard_root g;
	struct guard_watch *w;
	struct strv notes = { 0 };
	struct ward_err e = { 0 };

	tree_make(&t);
	tree_put(&t, ".bashrc", "x");
	tree_put(&t, ".profile", "x");
	tree_put(&t, ".env", "x");
	tree_put(&t, "a/.envrc", "x");
	tree_scan(&t, &g, list_of(".env", NULL), list_of(NULL));
	assert_int_equal(unlinkat(t.fd, ".bashrc", 0), 0);
	assert_int_equal(unlinkat(t.fd, ".env", 0), 0);
	assert_int_equal(renameat(t.fd, "a", t.fd, "b"), 0);
	assert_int_equal(guard_watch_create(&g, 1, &w, &notes, &e), 0);
	strv_sort(&g.lost);
	assert_int_equal(g.lost.len, 2);
	assert_string_equal(g.lost.items[0], ".bashrc");
	assert_string_equal(g.lost.items[1], "a/.envrc");
	guard_watch_destroy(w);
	guard_clear(&g);
	tree_remove(&t);
}

/* The kernel forgets what does not fit into its queue: a protected name that was taken away
 * meanwhile is lost all the same, and what only stayed is not. */
static void a_flood_hides_nothing(void **state unused_arg)
{
	struct tree t;
	struct guard_root g;
	struct guard_watch *w;
	struct strv notes = { 0 };
	struct ward_err e = { 0 };
	auto_buf b = { 0 };

	tree_make(&t);
	tree_put(&t, ".envrc", "the user's");
	tree_put(&t, ".bashrc", "the user's");
	tree_scan(&t, &g, list_of(NULL), list_of(NULL));
	assert_int_equal(guard_watch_create(&g, 1, &w, &notes, &e), 0);
	assert_non_null(w);
	/* more than fs.inotify.max_queued_events usually is */
	for (int i = 0; i < 70000; i++) {
		tree_put(&t, "flood", "x");
		assert_int_equal(unlinkat(t.fd, "flood", 0), 0);
	}
	assert_int_equal(unlinkat(t.fd, ".envrc", 0), 0);
	tree_put(&t, ".envrc", "planted");
	assert_string_equal(due(w, &g, &b), ".bashrc .envrc ");
	assert_int_equal(g.lost.len, 1);
	assert_string_equal(g.lost.items[0], ".envrc");
	guard_watch_destroy(w);
	guard_clear(&g);
	tree_remove(&t);
}

static void nothing_to_watch_is_no_watch(void **state unused_arg)
{
	struct guard_root g = { 0 };
	struct guard_watch *w = (void *)1;
	struct strv notes = { 0 };
	struct ward_err e = { 0 };

	assert_int_equal(guard_watch_create(&g, 1, &w, &notes, &e), 0);
	assert_null(w);
	guard_watch_destroy(NULL);
}

static void more_than_fits_is_kept(void **state unused_arg)
{
	struct tree t;
	struct guard_root g;
	struct guard_watch *w;
	struct guard_undone undone[1];
	struct strv notes = { 0 };
	struct ward_err e = { 0 };
	size_t n, total = 0;
	char name[32];

	tree_make(&t);
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "%d.key", i);
		tree_put(&t, name, "x");
	}
	tree_scan(&t, &g, list_of("*.key", NULL), list_of(NULL));
	assert_int_equal(guard_watch_create(&g, 1, &w, &notes, &e), 0);
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "%d.key", i);
		assert_int_equal(unlinkat(t.fd, name, 0), 0);
		tree_put(&t, name, "x");
	}
	while ((n = guard_watch_read(w, undone, 1)))
		total += undone[0].count;
	assert_int_equal(total, 100);
	guard_watch_destroy(w);
	guard_clear(&g);
	tree_remove(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replaced_things_are_due),
		cmocka_unit_test(what_went_before_is_lost),
		cmocka_unit_test(a_flood_hides_nothing),
		cmocka_unit_test(nothing_to_watch_is_no_watch),
		cmocka_unit_test(more_than_fits_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
