/*
 * ward kill --all and ward panic: the emergency stop. In: nothing but the state directory. Out:
 * every sandbox of this user is dead, whether it is detached or in the foreground, and whether its
 * supervisor answers or not. `ward panic` also sets the mark that refuses new runs, before anything
 * else, and kills the processes that hold secrets and connections of the runs; --clear takes the
 * mark away.
 *
 * With --dead-man FILE the panic waits until FILE is removed, or was not touched for a time: who
 * touches it says that somebody is there. A look is one lstat(); nothing is held that could fail
 * when the time has come.
 *
 * The order matters. First the sandboxes are frozen and killed from here (recover/stop_runs.c),
 * with nothing written and no supervisor asked. Then the supervisors do what follows every end:
 * sweep, report, record. One that is stopped, or takes too long, is killed, and the run is
 * finished here.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/io.h"
#include "cli/boxes.h"
#include "cli/panic.h"
#include "policy/units.h"
#include "recover/process_tree.h"
#include "recover/stop_runs.h"
#include "state/panic.h"
#include "state/store.h"

#define ENDING_MS 10000 /* for a supervisor that works */
#define SERVING_MS 2000 /* for what serves a run, once it is killed */
#define LOOK_MS 5
#define DEAD_MAN_LOOK_MS 200

/* What is known about one run that was stopped. */
struct ending {
	struct box_info info; /* id only: nothing else is known */
	bool over, failed;
};

/* ---- a processor in time ---- */

/* Hundreds of busy processes must not delay the one that stops them: a real-time priority where
 * the caller may have one, else the best of the ordinary ones. Returns whether to give it back. */
static bool hurry(void)
{
	const struct sched_param first = { .sched_priority = 1 };

	if (syscall(SYS_sched_setscheduler, 0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first) == 0)
		return true;
	(void)setpriority(PRIO_PROCESS, 0, -20);
	return false;
}

static void slow_down(bool hurried)
{
	const struct sched_param none = { 0 };

	if (hurried)
		(void)syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, &none);
	(void)setpriority(PRIO_PROCESS, 0, 0);
}

/* ---- the supervisors ---- */

/* The first character of the state in /proc/PID/stat; 0: no such process. */
static char process_state(const struct box_info *i)
{
	auto_buf stat = { 0 };
	char path[32];
	const char *at;

	snprintf(path, sizeof(path), "/proc/%d/stat", i->pid);
	if (i->pid <= 1 || store_process_start(i->pid) != i->pid_start ||
	    io_read_file(AT_FDCWD, path, 4096, &stat) < 0)
		return 0;
	at = strrchr(buf_text(&stat), ')');
	return at && at[1] == ' ' ? at[2] : '\0';
}

static bool is_stopped(const struct box_info *i)
{
	char state = process_state(i);

	return state == 'T' || state == 't';
}

/* Those that ward starts beside a sandbox and that hold its secrets or its connections. */
static bool serves_a_run(pid_t pid)
{
	static const char *const names[] = { "ward-gateway", "ward-dial", "ward-secret",
					     "ward-keys",    "ward-ssh",  "ward-waf" };
	auto_buf name = { 0 };
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	if (io_read_file(AT_FDCWD, path, 64, &name) < 0)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strncmp(buf_text(&name), names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

/* No request of a dead sandbox leaves with a secret, though its supervisor may hang. */
static void revoke_grants(const struct box_info *i)
{
	auto_fd fd = i->pid > 1 ? pidfd_open(i->pid, 0) : -1;

	if (fd >= 0 && store_process_start(i->pid) == i->pid_start)
		process_tree_end(i->pid, fd, serves_a_run, SERVING_MS);
}

/* ---- the end of the runs ---- */

static bool look_over(const struct stopped_run *r)
{
	struct ward_err ignored = { 0 };
	struct box_info now = { 0 };
	bool over = stopped_run_is_over(r);

	if (over && boxes_look(r->id, &now, &ignored) == 0) {
		over = !now.alive;
		box_info_clear(&now);
	}
	return over;
}

static void fail_one(const struct options *o, struct ending *x, const struct ward_err *e, int *code)
{
	*code = say_error(e, o->json, EXIT_REFUSED);
	x->failed = x->over = true;
}

/* One look at a run that is not over. late: its supervisor had its time. */
static void look_at(const struct options *o, const struct stopped_run *r, struct ending *x,
		    bool late, int *code)
{
	struct ward_err e = { 0 };

	x->over = look_over(r);
	if (x->over || (!late && !is_stopped(&x->info)))
		return;
	if (!x->info.pid) {
		ward_fail(&e, ETIMEDOUT, "the run %s is dead, but its supervisor does not end",
			  r->id);
		fail_one(o, x, &e, code);
	} else if (client_kill_supervisor(&x->info, &e) < 0) {
		fail_one(o, x, &e, code);
	} else {
		x->over = true;
	}
}

static void wait_over(const struct options *o, const struct stopped_runs *runs,
		      struct ending *endings, int *code)
{
	const struct timespec moment = { .tv_nsec = LOOK_MS * 1000000L };
	uint64_t until = io_now_ms() + ENDING_MS;
	size_t left = runs->len;

	while (left) {
		bool late = io_now_ms() >= until;

		left = 0;
		for (size_t i = 0; i < runs->len; i++) {
			if (!endings[i].over)
				look_at(o, &runs->items[i], &endings[i], late, code);
			left += !endings[i].over;
		}
		if (left)
			nanosleep(&moment, NULL);
	}
}

/* Names the supervisors; a run in the foreground that lasted only a moment has no entry. */
static void name_all(const struct stopped_runs *runs, struct ending *endings)
{
	struct ward_err ignored = { 0 };
	struct boxes all = { 0 };

	if (client_list(&all, &ignored) < 0)
		all = (struct boxes){ 0 };
	for (size_t i = 0; i < runs->len; i++) {
		for (size_t k = 0; k < all.len; k++)
			if (strcmp(all.items[k].id, runs->items[i].id) == 0) {
				endings[i].info = all.items[k];
				all.items[k] = (struct box_info){ 0 };
			}
		if (!endings[i].info.id[0]) {
			snprintf(endings[i].info.id, sizeof(endings[i].info.id), "%.23s",
				 runs->items[i].id);
			endings[i].info.foreground = true;
			endings[i].info.state = BOX_ENDED;
			endings[i].info.pid = runs->items[i].supervisor;
			endings[i].info.pid_start = runs->items[i].supervisor_start;
		}
	}
	boxes_clear(&all);
}

static int report(const struct options *o, const char *mark, struct ending *endings, size_t count,
		  int code)
{
	auto_buf out = { 0 };
	struct json j = { .out = &out };

	if (!o->json)
		return code;
	json_begin_object(&j, NULL);
	if (mark)
		json_string(&j, "panic", mark);
	json_begin_array(&j, "sandboxes");
	for (size_t i = 0; i < count; i++) {
		if (endings[i].failed)
			continue;
		boxes_look_again(&endings[i].info);
		if (endings[i].info.foreground)
			endings[i].info.state = BOX_ENDED;
		json_begin_object(&j, NULL);
		boxes_json(&j, &endings[i].info);
		json_end_object(&j);
	}
	json_end_array(&j);
	json_end_object(&j);
	buf_puts(&out, "\n");
	return say_out(&out, code);
}

/* Everything after the kill. */
static int finish(const struct options *o, const struct stopped_runs *runs, bool panic, int code)
{
	struct ending *endings = calloc(runs->len + 1, sizeof(*endings));
	struct ward_err e = { 0 };

	if (!endings) {
		ward_fail(&e, ENOMEM, "out of memory");
		return say_error(&e, o->json, EXIT_REFUSED);
	}
	name_all(runs, endings);
	for (size_t i = 0; panic && i < runs->len; i++)
		revoke_grants(&endings[i].info);
	wait_over(o, runs, endings, &code);
	code = report(o, panic ? "set" : NULL, endings, runs->len, code);
	for (size_t i = 0; i < runs->len; i++)
		box_info_clear(&endings[i].info);
	free(endings);
	return code;
}

static int stop_everything(const struct options *o, bool panic, size_t *ret_count)
{
	struct ward_err e = { 0 }, own = { 0 };
	struct stopped_runs runs;
	bool hurried = hurry(), marked = !panic || panic_set(true, &own) >= 0;
	int code = EXIT_FINE;

	if (stop_runs(!panic || !marked, &runs, &e) < 0)
		code = EXIT_REFUSED;
	slow_down(hurried);
	if (code != EXIT_FINE)
		code = say_error(&e, o->json, EXIT_REFUSED);
	if (!marked)
		code = say_error(&own, o->json, EXIT_REFUSED);
	*ret_count = runs.len;
	code = finish(o, &runs, panic, code);
	free(runs.items);
	return code;
}

int panic_kill_all(const struct options *o)
{
	size_t count;

	return stop_everything(o, false, &count);
}

static int clear(const struct options *o)
{
	struct ward_err e = { 0 };
	auto_buf out = { 0 };
	int was = panic_set(false, &e);

	if (was < 0)
		return say_error(&e, o->json, EXIT_REFUSED);
	if (o->json)
		return report(o, "cleared", NULL, 0, EXIT_FINE);
	buf_puts(&out, was ? "new runs are allowed again\n" : "no panic was in force\n");
	return say_out(&out, EXIT_FINE);
}

/* ---- the dead man's file ---- */

/* Milliseconds since the file was touched; UINT64_MAX: it is gone, or a link or directory took its
 * place. A file of the future was touched now. */
static uint64_t untouched_ms(const char *path)
{
	struct timespec now;
	struct stat st;
	int64_t ms;

	if (lstat(path, &st) < 0 || !S_ISREG(st.st_mode) || clock_gettime(CLOCK_REALTIME, &now) < 0)
		return UINT64_MAX;
	ms = (int64_t)(now.tv_sec - st.st_mtim.tv_sec) * 1000 +
	     (now.tv_nsec - st.st_mtim.tv_nsec) / 1000000;
	return ms > 0 ? (uint64_t)ms : 0;
}

/* Waits until the file is gone, or was not touched in time. */
static int await_dead_man(const struct options *o, struct ward_err *e)
{
	const struct timespec moment = { .tv_nsec = DEAD_MAN_LOOK_MS * 1000000L };
	uint64_t most = 0;

	if (!o->dead_after || units_parse_seconds(o->dead_after, &most) < 0 || most < 1000) {
		ward_fail(e, EINVAL, "--dead-man needs --after with a time of at least a second");
		return ward_remedy(e, "ward panic --dead-man FILE --after 5m, at least a second");
	}
	if (untouched_ms(o->dead_man) > most) {
		ward_fail(e, EINVAL, "%.300s is not a file that was touched in the last %.40s",
			  o->dead_man, o->dead_after);
		return ward_remedy(e, "touch it first; nothing was stopped");
	}
	while (untouched_ms(o->dead_man) <= most)
		nanosleep(&moment, NULL);
	return 0;
}

int verb_panic(struct options *o)
{
	struct ward_err e = { 0 };
	auto_buf out = { 0 };
	size_t count;
	int code;

	if (o->clear && !o->dead_man)
		return clear(o);
	if (!o->dead_man != !o->dead_after || (o->dead_man && o->clear)) {
		ward_fail(&e, EINVAL,
			  "--dead-man FILE needs --after TIME, and neither goes with --clear");
		return say_usage(&e, o);
	}
	if (o->dead_man && await_dead_man(o, &e) < 0)
		return say_error(&e, o->json, EXIT_REFUSED);
	code = stop_everything(o, true, &count);
	if (code != EXIT_FINE || o->json)
		return code;
	buf_printf(&out, "%zu %s killed; new runs are refused until ward panic --clear\n", count,
		   count == 1 ? "sandbox" : "sandboxes");
	return say_out(&out, code);
}
