/* The store: state directory, records, recovery of killed runs, quarantine and restore. */
#include "guard_help.h"

#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <time.h>

#include "recover/recover.h"
#include "state/store.h"

struct place {
	struct tree state, work;
	char state_dir[128];
	struct guard_root g;
};

static int begin(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	tree_make(&p->state);
	tree_make(&p->work);
	snprintf(p->state_dir, sizeof(p->state_dir), "%s/made/by/ward", p->state.path);
	setenv("WARD_STATE_DIR", p->state_dir, 1);
	*state = p;
	return 0;
}

static int end(void **state)
{
	struct place *p = *state;

	guard_clear(&p->g);
	tree_remove(&p->state);
	tree_remove(&p->work);
	free(p);
	return 0;
}

static struct store_run *start(struct place *p, const char *id)
{
	struct store_run *r = NULL;
	struct ward_err e = { 0 };

	tree_scan(&p->work, &p->g, list_of(NULL), list_of("*.lock", NULL));
	if (store_begin(id, p->work.path, &p->g, 1, NULL, NULL, &r, &e) < 0)
		fail_msg("%s: %s", e.what, e.why);
	return r;
}

static void ids_sort_and_fit(void **state unused_arg)
{
	char a[24], b[24];

	store_new_id(a, sizeof(a));
	store_new_id(b, sizeof(b));
	assert_int_equal(strlen(a), 22);
	assert_string_not_equal(a, b);
	assert_memory_equal(a, "20", 2);
	assert_int_equal(strncmp(a, b, 15) <= 0, 1);
}

/* However many are made in one second. */
static void ids_sort_by_time(void **state unused_arg)
{
	/* longer than the microsecond that ids tell apart */
	const struct timespec moment = { .tv_nsec = 2000 };
	char before[24], after[24];

	store_new_id(before, sizeof(before));
	for (int i = 0; i < 2000; i++) {
		nanosleep(&moment, NULL);
		store_new_id(after, sizeof(after));
		assert_true(strcmp(before, after) < 0);
		assert_true(store_id_ns(before) < store_id_ns(after));
		memcpy(before, after, sizeof(before));
	}
}

static void ids_tell_their_time(void **state unused_arg)
{
	struct timespec now;
	char id[24];
	uint64_t ns;

	clock_gettime(CLOCK_REALTIME, &now);
	ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	store_new_id(id, sizeof(id));
	assert_true(store_id_ns(id) + 1024 > ns && store_id_ns(id) < ns + 5000000000);
	assert_int_equal(store_id_ns("19700101-000001-000000"), 1000000000);
	assert_int_equal(store_id_ns("20240229-000000-00000z"), 1709164800000000031);
	assert_int_equal(store_id_ns("20240229-000000-00000"), 0);
	assert_int_equal(store_id_ns("20240229-000000-00000i"), 0);
	assert_int_equal(store_id_ns("20241329-000000-000000"), 0);
	assert_int_equal(store_id_ns("20240229-000000-0000000"), 0);
	assert_int_equal(store_id_ns("2024"), 0);
	assert_int_equal(store_id_ns(""), 0);
}

static void state_directory_is_made_and_checked(void **state)
{
	struct place *p = *state;
	struct ward_err e = { 0 };
	struct stat st;
	int fd = store_open(&e);

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	close(fd);
	assert_int_equal(chmod(p->state_dir, 0777), 0);
	assert_int_equal(store_open(&e), -EPERM);
	assert_non_null(strstr(e.remedy, "chmod"));
	assert_int_equal(chmod(p->state_dir, 0700), 0);
	if (geteuid() == 0) {
		assert_int_equal(chown(p->state_dir, 12345, 0), 0);
		assert_int_equal(store_open(&e), -EPERM);
		assert_int_equal(chown(p->state_dir, 0, 0), 0);
	}
	setenv("WARD_STATE_DIR", "relative", 1);
	assert_int_equal(store_open(&e), -EINVAL);
}

static void a_link_of_somebody_else_is_refused(void **state)
{
	struct place *p = *state;
	struct ward_err e = { 0 };
	int fd;

	tree_link(&p->state, "link", ".");
	snprintf(p->state_dir, sizeof(p->state_dir), "%s/link", p->state.path);
	setenv("WARD_STATE_DIR", p->state_dir, 1);
	assert_int_equal(fchmodat(p->state.fd, ".", 0700, 0), 0);
	fd = store_open(&e);
	assert_true(fd >= 0); /* one's own is fine */
	close(fd);
	if (geteuid() == 0) {
		assert_int_equal(lchown(p->state_dir, 12345, 0), 0);
		assert_true(store_open(&e) < 0);
	}
}

static void unusable_state_is_a_clear_error(void **state unused_arg)
{
	struct ward_err e = { 0 };

	setenv("WARD_STATE_DIR", "/proc/ward", 1);
	assert_true(store_open(&e) < 0);
	assert_non_null(strstr(e.why, "/proc/ward"));
	assert_non_null(strstr(e.remedy, "WARD_STATE_DIR"));
	setenv("WARD_STATE_DIR", "/dev/null", 1);
	assert_true(store_open(&e) < 0);
}

static void state_inside_a_writable_tree_is_refused(void **state)
{
	struct place *p = *state;
	struct store_run *r = NULL;
	struct ward_err e = { 0 };
	char inside[128];

	snprintf(inside, sizeof(inside), "%s/state", p->work.path);
	setenv("WARD_STATE_DIR", inside, 1);
	tree_scan(&p->work, &p->g, list_of(NULL), list_of(NULL));
	assert_int_equal(store_begin("id", p->work.path, &p->g, 1, NULL, NULL, &r, &e), -EINVAL);
	assert_null(r);
	assert_non_null(strstr(e.why, "may write"));
}

static void a_run_without_finds_leaves_nothing(void **state)
{
	struct place *p = *state;
	struct store_run *r = start(p, "20260101-000000-aaaaaa");
	struct ward_err e = { 0 };
	struct strv moved = { 0 };
	struct store_items items;

	assert_true(store_has_record("20260101-000000-aaaaaa"));
	assert_int_equal(recover_runs(&e), 0); /* it lives */
	assert_int_equal(store_sweep(r, &p->g, 1, &moved, NULL, &e), 0);
	assert_int_equal(moved.len, 0);
	store_end(r);
	assert_false(store_has_record("20260101-000000-aaaaaa"));
	assert_false(tree_has(&p->state, "made/by/ward/quarantine"));
	assert_int_equal(store_list(&items, &e), 0);
	assert_int_equal(items.len, 0);
	strv_free(&moved);
}

static void quarantine_lists_and_restores(void **state)
{
	struct place *p = *state;
	struct store_run *r = start(p, "20260101-000000-bbbbbb");
	struct ward_err e = { 0 };
	struct strv moved = { 0 };
	struct store_items items;
	char *where = NULL;

	tree_put(&p->work, "odd\tname\n/.envrc", "evil");
	tree_put(&p->work, ".vscode/tasks.json", "evil");
	assert_int_equal(store_sweep(r, &p->g, 1, &moved, NULL, &e), 0);
	assert_int_equal(moved.len, 2);
	store_end(r);
	assert_int_equal(store_list(&items, &e), 0);
	assert_int_equal(items.len, 2);
	for (size_t i = 0; i < items.len; i++) {
		assert_string_equal(items.items[i].root, p->work.path);
		assert_string_equal(items.items[i].workspace, p->work.path);
		if (strcmp(items.items[i].path, ".vscode") == 0) {
			tree_put(&p->work, ".vscode", "in the way");
			assert_int_equal(store_restore(&items.items[i], NULL, &where, &e), -EEXIST);
			assert_int_equal(unlinkat(p->work.fd, ".vscode", 0), 0);
		}
		assert_int_equal(store_restore(&items.items[i], NULL, &where, &e), 0);
		free(where);
	}
	assert_true(tree_has(&p->work, "odd\tname\n/.envrc"));
	assert_true(tree_has(&p->work, ".vscode/tasks.json"));
	store_items_clear(&items);
	assert_int_equal(store_list(&items, &e), 0);
	assert_int_equal(items.len, 0);
	assert_false(tree_has(&p->state, "made/by/ward/quarantine/20260101-000000-bbbbbb"));
	strv_free(&moved);
}

static void restore_follows_no_link(void **state)
{
	struct place *p = *state;
	struct store_run *r = start(p, "20260101-000000-cccccc");
	struct ward_err e = { 0 };
	struct strv moved = { 0 };
	struct store_items items;
	char *where = NULL, to[128];

	tree_put(&p->work, "sub/.envrc", "evil");
	assert_int_equal(store_sweep(r, &p->g, 1, &moved, NULL, &e), 0);
	store_end(r);
	assert_int_equal(unlinkat(p->work.fd, "sub", AT_REMOVEDIR), 0);
	tree_link(&p->work, "sub", "/tmp");
	assert_int_equal(store_list(&items, &e), 0);
	assert_int_equal(items.len, 1);
	assert_true(store_restore(&items.items[0], NULL, &where, &e) < 0);
	tree_put(&p->state, "elsewhere/", "");
	snprintf(to, sizeof(to), "%s/elsewhere", p->state.path);
	assert_int_equal(store_restore(&items.items[0], to, &where, &e), 0);
	free(where);
	assert_true(tree_has(&p->state, "elsewhere/sub/.envrc"));
	store_items_clear(&items);
	strv_free(&moved);
}

/* Gone, or only waiting for its parent. */
static bool is_dead(pid_t pid)
{
	int fd = pidfd_open(pid, 0);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	bool dead = fd < 0 || poll(&p, 1, 0) > 0;

	if (fd >= 0)
		close(fd);
	return dead;
}

/* Another process begins a run, plants things and is killed; we finish it. numbered: as kernels
 * since 6.9 know processes, else by when it began. */
static void killed_run_is_finished(struct place *p, bool numbered)
{
	pid_t *sandbox = mmap(NULL, sizeof(*sandbox), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct ward_err e = { 0 };
	struct store_items items;
	int status;
	pid_t pid;

	assert_ptr_not_equal(sandbox, MAP_FAILED);
	tree_put(&p->work, ".envrc", "mine");
	tree_put(&p->work, "a\tb/git-rebase-todo", "exec printf 'a\tb\\n'\n");
	pid = fork();
	if (pid == 0) {
		struct store_run *r = start(p, "20260101-000000-dddddd");
		int ready[2];
		char byte;

		if (pipe2(ready, O_CLOEXEC) < 0)
			_exit(1);
		pid = fork();
		if (pid == 0) {
			/* as an exec does: the lock is the supervisor's alone */
			close_range(0, ~0U, 0);
			alarm(60);
			for (;;)
				pause();
		}
		*sandbox = pid;
		close(ready[1]);
		if (read(ready[0], &byte, 1) != 0 ||
		    store_started(r, pid, numbered ? pidfd_open(pid, 0) : -1, &e) < 0)
			_exit(1);
		tree_put(&p->work, ".vscode/x", "evil");
		tree_put(&p->work, "x.lock", "forbidden by the policy");
		kill(getpid(), SIGKILL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(kill(*sandbox, 0), 0);
	assert_int_equal(recover_runs(&e), 1);
	assert_int_equal(recover_runs(&e), 0);
	assert_true(is_dead(*sandbox));
	munmap(sandbox, sizeof(*sandbox));
	assert_true(tree_has(&p->work, ".envrc"));
	assert_true(tree_has(&p->work, "a\tb/git-rebase-todo"));
	assert_false(tree_has(&p->work, ".vscode"));
	assert_false(tree_has(&p->work, "x.lock"));
	assert_int_equal(store_list(&items, &e), 0);
	assert_int_equal(items.len, 2);
	store_items_clear(&items);
}

static void killed_runs_are_finished(void **state)
{
	killed_run_is_finished(*state, false);
}

static void numbered_ones_too(void **state)
{
	killed_run_is_finished(*state, true);
}

static ino_t inode_of(struct place *p, const char *name)
{
	char path[192];
	struct stat st;

	snprintf(path, sizeof(path), "%s/live/%s", p->state_dir, name);
	return stat(path, &st) == 0 ? st.st_ino : 0;
}

/* Runs one after the other use one file; many at once have their own, and only a few of those
 * stay. */
static void records_stay_where_they_are(void **state)
{
	enum { MANY = 12 };
	struct place *p = *state;
	struct store_run *runs[MANY];
	struct ward_err e = { 0 };
	char name[32];
	ino_t first;

	store_end(start(p, "20260101-000000-000000"));
	first = inode_of(p, "0");
	assert_true(first > 0);
	for (int i = 0; i < MANY; i++) {
		guard_clear(&p->g);
		snprintf(name, sizeof(name), "20260101-000000-%06d", i);
		runs[i] = start(p, name);
		assert_true(store_has_record(name));
	}
	assert_int_equal(inode_of(p, "0"), first);
	assert_true(inode_of(p, "11") > 0);
	assert_int_equal(recover_runs(&e), 0);
	for (int i = 0; i < MANY; i++)
		store_end(runs[i]);
	assert_int_equal(inode_of(p, "0"), first);
	assert_true(inode_of(p, "7") > 0);
	assert_int_equal(inode_of(p, "8"), 0);
	assert_int_equal(recover_runs(&e), 0);
	assert_false(store_has_record("20260101-000000-000003"));
}

/* Whoever begins leaves a record alone whose run was killed, until somebody has finished that. */
static void a_dead_record_keeps_its_file(void **state)
{
	struct place *p = *state;
	struct ward_err e = { 0 };
	struct store_run *r;

	tree_put(&p->state, "made/by/ward/live/0",
		 "ward-run 1\nid 20260101-000000-dddddd\nworkspace /nowhere\ncomplete\n");
	tree_put(&p->state, "made/by/ward/live/1",
		 "ward-run 1\nid ../../etc\nworkspace /nowhere\ncomplete\n");
	assert_int_equal(chmod(p->state_dir, 0700), 0);
	r = start(p, "20260101-000000-ffffff");
	assert_true(store_has_record("20260101-000000-dddddd"));
	assert_true(inode_of(p, "2") > 0);
	/* nobody uses it, and it is one too many */
	tree_put(&p->state, "made/by/ward/live/12", "");
	assert_true(recover_runs(&e) < 0); /* the second is nobody's */
	assert_int_equal(inode_of(p, "12"), 0);
	assert_false(store_has_record("20260101-000000-dddddd"));
	assert_true(store_has_record("20260101-000000-ffffff"));
	store_end(r);
}

static void half_written_records_are_dropped(void **state)
{
	struct place *p = *state;
	struct ward_err e = { 0 };

	tree_put(&p->state, "made/by/ward/live/half",
		 "ward-run 1\nworkspace /nowhere\nroot /nowhere\n");
	tree_put(&p->state, "made/by/ward/live/empty", "");
	assert_int_equal(chmod(p->state_dir, 0700), 0);
	assert_int_equal(recover_runs(&e), 2);
	tree_put(&p->state, "made/by/ward/live/gone",
		 "ward-run 1\nroot /nowhere/at/all\ncomplete\n");
	assert_int_equal(recover_runs(&e), 1);
	tree_put(&p->state, "made/by/ward/live/strange", "something else\n");
	assert_true(recover_runs(&e) < 0);
	assert_non_null(strstr(e.what, "strange"));
}

/* The tree cannot be reached: the record stays, and the next start finishes the sweep. */
static void a_failed_sweep_is_tried_again(void **state)
{
	struct place *p = *state;
	struct store_run *r = start(p, "20260101-000000-eeeeee");
	struct ward_err e = { 0 };
	struct strv moved = { 0 };
	char away[128];

	snprintf(away, sizeof(away), "%s.away", p->work.path);
	tree_put(&p->work, ".bashrc", "evil");
	assert_int_equal(rename(p->work.path, away), 0);
	assert_int_equal(symlink(away, p->work.path), 0);
	assert_true(store_sweep(r, &p->g, 1, &moved, NULL, &e) < 0);
	store_end(r);
	assert_true(store_has_record("20260101-000000-eeeeee"));
	assert_true(recover_runs(&e) < 0);
	assert_true(tree_has(&p->work, ".bashrc"));
	assert_int_equal(unlink(p->work.path), 0);
	assert_int_equal(rename(away, p->work.path), 0);
	assert_int_equal(recover_runs(&e), 1);
	assert_false(tree_has(&p->work, ".bashrc"));
	strv_free(&moved);
}

/* The quarantine cannot be made: what was planted loses its name at least. */
static void without_a_quarantine_names_are_taken(void **state)
{
	struct place *p = *state;
	struct store_run *r = start(p, "20260101-000000-ffffff");
	struct ward_err e = { 0 };
	struct strv moved = { 0 };

	tree_put(&p->state, "made/by/ward/quarantine", "a file in the way");
	tree_put(&p->work, ".bashrc", "evil");
	assert_int_equal(store_sweep(r, &p->g, 1, &moved, NULL, &e), 0);
	assert_non_null(strstr(moved.items[0], "next to it"));
	assert_true(tree_has(&p->work, ".bashrc.quarantined"));
	store_end(r);
	strv_free(&moved);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)
		CASE(ids_sort_and_fit),
		CASE(ids_sort_by_time),
		CASE(ids_tell_their_time),
		CASE(state_directory_is_made_and_checked),
		CASE(a_link_of_somebody_else_is_refused),
		CASE(unusable_state_is_a_clear_error),
		CASE(state_inside_a_writable_tree_is_refused),
		CASE(a_run_without_finds_leaves_nothing),
		CASE(quarantine_lists_and_restores),
		CASE(restore_follows_no_link),
		CASE(killed_runs_are_finished),
		CASE(numbered_ones_too),
		CASE(half_written_records_are_dropped),
		CASE(records_stay_where_they_are),
		CASE(a_dead_record_keeps_its_file),
		CASE(a_failed_sweep_is_tried_again),
		CASE(without_a_quarantine_names_are_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
