/*
 * Programs started inside. In: execve and execveat that wait at the seccomp listener (audit.level:
 * exec). Out: one event each. Runs in the supervisor with the user's rights.
 *
 * Nothing is decided here: the filter allows both calls in every set, and the caller is told to go
 * on whatever was seen. What stands behind the caller's pointers can be changed by another of its
 * threads between our look and the kernel's: the event says "observed". The caller is hostile:
 * every length is bounded, every pointer may be wrong, and what it is called is its own choice; the
 * event's writer escapes it.
 *
 * The first program of each command is ward-init's doing. Its memory is closed to an ordinary user:
 * for the command of the run the plan has the words and PATH, for others what was handed to
 * ward-init (where two begin at one moment, neither). Of the places where ward-init looks for a
 * program only those that are there are reported. So it is with what others look for along PATH: a
 * file that is not there starts nothing. One that appears between our look and the kernel's is
 * missed, as one is whose name is changed in that moment.
 *
 * A storm is bounded: LOOKS in a window are looked at, the rest is counted, and the count is an
 * event of its own. Reading goes through /proc/PID/mem, because a confined supervisor has no
 * process_vm_readv.
 */
#include "observe/exec_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/io.h"
#include "base/text.h"
#include "event/event.h"

#define ARGUMENTS_MAX 64
#define PATH_SHOWN 512
#define WORDS_MAX 4096
#define WINDOW_MS 100
#define LOOKS 300 /* in a window: 3,000 a second */
#define KNOWN 64  /* processes whose inner number is remembered */

struct exec_watch {
	const struct plan *plan;
	struct expected {
		uint32_t tag; /* 0: free */
		int pid;      /* inside; 0: not known yet */
		bool reported;
		char *text; /* owned: words and variables, each ended by a NUL */
		size_t words_len, len;
	} expected[GUEST_EXECS_MAX];
	int first; /* number inside of the command of the run; 0: not seen yet */
	struct known {
		pid_t outer;
		int inner;
	} known[KNOWN];
	uint64_t window_ms, counted_ms;
	unsigned looks;
	uint64_t counted; /* not looked at, and not reported yet */
	/* what was seen of the last one */
	bool seen, cut;
	bool planned;  /* it is the plan's, and was not read */
	bool readable; /* its memory is, or we know what stands in it */
	int pid, ppid;
	char path[PATH_SHOWN], exe[PATH_SHOWN], cwd[PATH_SHOWN];
	size_t path_len, exe_len, cwd_len, words_len;
	char words[WORDS_MAX];
	uint64_t page_at; /* what page has; 0: nothing */
	char page[4096];
};

struct exec_watch *exec_watch_create(const struct plan *p)
{
	struct exec_watch *w = calloc(1, sizeof(*w));

	if (w)
		w->plan = p;
	return w;
}

void exec_watch_destroy(struct exec_watch *w)
{
	for (size_t i = 0; w && i < GUEST_EXECS_MAX; i++)
		free(w->expected[i].text);
	free(w);
}

bool exec_watch_knows(int nr)
{
	return nr == SYS_execve || nr == SYS_execveat;
}

/* Reads up to n bytes that lie in one page. Words usually lie in one page or two: the last one that
 * was read is kept while one call is looked at. */
static ssize_t read_page(struct exec_watch *w, int mem_fd, uint64_t at, char *out, size_t n)
{
	uint64_t page = at & ~UINT64_C(4095);

	if (!at)
		return 0;
	if (w->page_at != page) {
		w->page_at = 0;
		if (pread(mem_fd, w->page, sizeof(w->page), (off_t)page) != sizeof(w->page))
			return pread(mem_fd, out, n, (off_t)at);
		w->page_at = page;
	}
	memcpy(out, w->page + (at - page), n);
	return (ssize_t)n;
}

/* A text of the caller's: at most cap bytes, up to its NUL; what cannot be read is left out. */
static size_t read_text(struct exec_watch *w, int mem_fd, uint64_t at, char *out, size_t cap,
			bool *cut)
{
	size_t page = 4096 - at % 4096, want = cap < page ? cap : page, n;
	ssize_t got = read_page(w, mem_fd, at, out, want);

	if (got <= 0)
		return 0;
	n = strnlen(out, (size_t)got);
	if (n < (size_t)got)
		return n;
	if (n < cap) { /* it goes on in the next page */
		got = read_page(w, mem_fd, at + n, out + n, cap - n < 4096 ? cap - n : 4096);
		if (got > 0) {
			size_t more = strnlen(out + n, (size_t)got);

			*cut |= more == (size_t)got;
			return n + more;
		}
	}
	*cut = true;
	return n;
}

static void read_words(struct exec_watch *w, int mem_fd, uint64_t at)
{
	uint64_t pointers[ARGUMENTS_MAX];
	ssize_t got = at ? pread(mem_fd, pointers, sizeof(pointers), (off_t)at) : 0;
	size_t count = got > 0 ? (size_t)got / sizeof(pointers[0]) : 0, i;

	w->words_len = 0;
	for (i = 0; i < count && pointers[i]; i++) {
		size_t room = WORDS_MAX - w->words_len;

		if (room < 2)
			break;
		w->words_len += read_text(w, mem_fd, pointers[i], w->words + w->words_len,
					  (room < PATH_SHOWN ? room : PATH_SHOWN) - 1, &w->cut);
		w->words[w->words_len++] = '\0';
	}
	w->cut |= i == ARGUMENTS_MAX || (i < count && pointers[i]);
}

/* Number inside, and the parent's number outside. Inside is one level beneath us: what a namespace
 * that was made there (process.nesting) calls its first process would be 1, too, and that one is
 * not ward-init. */
static int read_status(int proc_fd, pid_t outer, pid_t *ret_parent)
{
	auto_fd fd = openat(proc_fd, "status", O_RDONLY | O_CLOEXEC);
	char status[2048]; /* both stand at its beginning */
	ssize_t n = fd < 0 ? -1 : read(fd, status, sizeof(status) - 1);
	long inner, parent;

	*ret_parent = 0;
	if (n <= 0)
		return outer;
	status[n] = '\0';
	/* the last, where a level is missing */
	(void)text_number_after(status, "\nNSpid:", 1, &inner);
	(void)text_number_after(status, "\nPPid:", 0, &parent);
	*ret_parent = (pid_t)parent;
	return inner > 0 ? (int)inner : outer;
}

static int inner_of_parent(struct exec_watch *w, pid_t outer)
{
	struct known *k = &w->known[(unsigned)outer % KNOWN];
	char path[32];
	auto_fd fd = -1;
	pid_t unused;

	if (outer <= 0 || k->outer == outer)
		return outer <= 0 ? 0 : k->inner;
	snprintf(path, sizeof(path), "/proc/%d", outer);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	*k = (struct known){ .outer = outer, .inner = read_status(fd, outer, &unused) };
	return k->inner;
}

static size_t read_link(int proc_fd, const char *name, char out[PATH_SHOWN])
{
	ssize_t n = readlinkat(proc_fd, name, out, PATH_SHOWN);

	return n > 0 ? (size_t)n : 0;
}

/* Whether a program is there to be started, as the caller would find it; true where that cannot
 * tell. */
static bool is_there(int root_fd, const char *path)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	auto_fd fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	struct stat st;

	if (fd < 0)
		return errno != ENOENT && errno != ENOTDIR;
	return fstat(fd, &st) < 0 || (S_ISREG(st.st_mode) && st.st_mode & 0111);
}

/* Where ward-init will find the command, by the rules of guest/exec.c. False: nowhere. */
static bool find_program(struct exec_watch *w, int root_fd, const char *name, const char *dirs)
{
	snprintf(w->path, sizeof(w->path), "%s", name);
	if (strchr(name, '/'))
		return name[0] != '/' || is_there(root_fd, w->path);
	for (; *dirs; dirs += *dirs == ':') {
		size_t n = strcspn(dirs, ":");

		if (n && n < sizeof(w->path) && dirs[0] == '/') {
			snprintf(w->path, sizeof(w->path), "%.*s/%s", (int)n, dirs, name);
			if (is_there(root_fd, w->path))
				return true;
		}
		dirs += n;
	}
	return false;
}

/* The place and the words of a command that is known; each word is added by add_word(). */
static void take_known(struct exec_watch *w, int root_fd, const char *name, const char *dirs)
{
	w->seen = find_program(w, root_fd, name, dirs);
	w->path_len = strlen(w->path);
	w->readable = w->planned = true;
}

static void add_word(struct exec_watch *w, const char *word)
{
	size_t n = strlen(word) + 1;

	if (w->cut || n > WORDS_MAX - w->words_len) {
		w->cut = true;
		return;
	}
	memcpy(w->words + w->words_len, word, n);
	w->words_len += n;
}

static const char *plan_path(const struct exec_watch *w)
{
	for (size_t i = 0; i < w->plan->env.len; i++)
		if (strncmp(w->plan->env.items[i], "PATH=", 5) == 0)
			return w->plan->env.items[i] + 5;
	return "";
}

/* The command of the run, as the plan has it; it is reported once, however many places are tried.
 * */
static void take_from_plan(struct exec_watch *w, int root_fd)
{
	char *const *argv = w->plan->argv;

	w->first = w->pid;
	take_known(w, root_fd, argv[0], plan_path(w));
	for (size_t i = 0; argv[i]; i++)
		add_word(w, argv[i]);
}

/* The command that was handed to ward-init for this process; NULL: it may be any of several. */
static struct expected *find_expected(struct exec_watch *w)
{
	struct expected *only = NULL;
	unsigned open = 0;

	for (size_t i = 0; i < GUEST_EXECS_MAX; i++) {
		struct expected *x = &w->expected[i];

		if (x->tag && x->pid == w->pid)
			return x;
		if (x->tag && !x->pid) {
			only = x;
			open++;
		}
	}
	return open == 1 ? only : NULL;
}

static void take_expected(struct exec_watch *w, int root_fd, struct expected *x)
{
	const char *dirs = NULL;

	if (x->reported) {
		w->seen = false;
		return;
	}
	x->pid = w->pid;
	x->reported = true;
	for (size_t at = x->words_len; at < x->len; at += strlen(x->text + at) + 1)
		if (strncmp(x->text + at, "PATH=", 5) == 0 && !dirs)
			dirs = x->text + at + 5;
	/* ward-init adds what it has itself */
	take_known(w, root_fd, x->text, dirs ? dirs : plan_path(w));
	for (size_t at = 0; at < x->words_len; at += strlen(x->text + at) + 1)
		add_word(w, x->text + at);
}

void exec_watch_expect(struct exec_watch *w, uint32_t tag, int32_t words, const char *text,
		       size_t n)
{
	struct expected *x = w->expected;
	size_t directory = strnlen(text, n) + 1, at = directory;

	while (x < w->expected + GUEST_EXECS_MAX && x->tag)
		x++;
	if (x == w->expected + GUEST_EXECS_MAX || words < 1 || directory >= n || text[n - 1])
		return;
	for (; words > 0 && at < n; words--)
		at += strlen(text + at) + 1;
	x->text = malloc(n - directory);
	if (!x->text)
		return;
	memcpy(x->text, text + directory, n - directory);
	*x = (struct expected){
		.tag = tag, .text = x->text, .words_len = at - directory, .len = n - directory
	};
}

void exec_watch_guest(struct exec_watch *w, const struct guest_message *m)
{
	for (size_t i = 0; m->tag && i < GUEST_EXECS_MAX; i++) {
		struct expected *x = &w->expected[i];

		if (x->tag != m->tag)
			continue;
		if (m->op == GUEST_READY && !x->pid)
			x->pid = m->a;
		if (m->op != GUEST_EXITED && m->op != GUEST_FAILED)
			return;
		free(x->text);
		*x = (struct expected){ 0 };
	}
}

/* An absolute path at which nothing is: one of those that are tried along PATH. */
static bool is_tried_in_vain(const struct exec_watch *w, int proc_fd)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	auto_fd root_fd = -1, fd = -1;
	char path[PATH_SHOWN];

	if (!w->readable || !w->path_len || w->path_len >= PATH_SHOWN || w->path[0] != '/')
		return false;
	memcpy(path, w->path, w->path_len);
	path[w->path_len] = '\0';
	root_fd = openat(proc_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return false;
	fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	return fd < 0 && (errno == ENOENT || errno == ENOTDIR);
}

/* A program that ward-init starts. */
static void look_at_init(struct exec_watch *w, int proc_fd)
{
	static const char init[] = "/.ward/init";
	auto_fd root_fd = -1;
	struct expected *x;

	if (w->ppid != 1 || w->exe_len != sizeof(init) - 1 || memcmp(w->exe, init, w->exe_len) != 0)
		return;
	root_fd = openat(proc_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	x = w->readable ? NULL : find_expected(w);
	if (!w->readable && w->first == w->pid) {
		w->seen = false;
	} else if (!w->readable && !w->first && w->plan->argv && w->plan->argv[0]) {
		take_from_plan(w, root_fd);
	} else if (x) {
		take_expected(w, root_fd, x);
	} else if (w->readable && w->path_len && w->path_len < PATH_SHOWN && w->path[0] == '/') {
		w->path[w->path_len] = '\0';
		w->seen = is_there(root_fd, w->path);
	}
}

static bool may_look(struct exec_watch *w)
{
	uint64_t now = io_now_ms();

	if (now - w->window_ms >= WINDOW_MS) {
		w->window_ms = now;
		w->looks = 0;
	}
	return w->looks++ < LOOKS;
}

void exec_watch_look(struct exec_watch *w, int listener_fd, const struct seccomp_notif *q)
{
	bool at = q->data.nr == SYS_execveat;
	char path[32];
	auto_fd proc_fd = -1, mem_fd = -1;
	pid_t parent = 0;

	w->seen = w->cut = w->planned = false;
	if (!may_look(w)) {
		w->counted++;
		return;
	}
	w->seen = true;
	w->path_len = w->exe_len = w->cwd_len = w->words_len = 0;
	w->pid = w->ppid = 0;
	snprintf(path, sizeof(path), "/proc/%d", (int)q->pid);
	proc_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	mem_fd = proc_fd < 0 ? -1 : openat(proc_fd, "mem", O_RDONLY | O_CLOEXEC);
	w->readable = mem_fd >= 0;
	if (mem_fd >= 0) {
		w->page_at = 0;
		w->path_len = read_text(w, mem_fd, q->data.args[at], w->path, PATH_SHOWN, &w->cut);
		/* most calls of a search along PATH end here */
		if (is_tried_in_vain(w, proc_fd)) {
			w->seen = false;
			return;
		}
		read_words(w, mem_fd, q->data.args[at + 1]);
	}
	if (proc_fd >= 0) {
		w->exe_len = read_link(proc_fd, "exe", w->exe);
		w->cwd_len = read_link(proc_fd, "cwd", w->cwd);
		w->pid = read_status(proc_fd, (pid_t)q->pid, &parent);
		w->known[q->pid % KNOWN] =
			(struct known){ .outer = (pid_t)q->pid, .inner = w->pid };
		w->ppid = inner_of_parent(w, parent);
		if (w->pid == 1)
			w->seen = false; /* ward-init itself */
		else
			look_at_init(w, proc_fd);
	}
	/* its pid may be another process's by now: then all of this was */
	if (ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &q->id) < 0)
		w->seen = false;
}

const char *exec_watch_words(const struct exec_watch *w, size_t *ret_len)
{
	*ret_len = w->seen ? w->words_len : 0;
	return w->words;
}

static void report_counted(struct exec_watch *w, struct result *r)
{
	struct ward_event v =
		event_make(EVENT_EXEC, ACTION_LOG, "more of them, too many to examine");

	if (!w->counted)
		return;
	event_number(&v, FIELD_COUNT, w->counted);
	event_emit(r->events, &v);
	w->counted = 0;
}

void exec_watch_report(struct exec_watch *w, struct result *r)
{
	struct ward_event v;

	if (w->counted && io_now_ms() - w->counted_ms >= 1000) {
		w->counted_ms = io_now_ms();
		report_counted(w, r);
	}
	if (!w->seen)
		return;
	v = event_make(EVENT_EXEC, ACTION_LOG, NULL);
	if (w->readable) {
		event_bytes(&v, FIELD_OBJECT, w->path, w->path_len);
		event_list(&v, FIELD_ARGV, w->words, w->words_len);
		if (!w->planned)
			event_flag(&v, FIELD_OBSERVED);
	}
	if (w->pid > 0)
		event_number(&v, FIELD_PID, (uint64_t)w->pid);
	if (w->ppid > 0)
		event_number(&v, FIELD_PPID, (uint64_t)w->ppid);
	event_bytes(&v, FIELD_EXE, w->exe_len ? w->exe : NULL, w->exe_len);
	event_bytes(&v, FIELD_CWD, w->cwd_len ? w->cwd : NULL, w->cwd_len);
	if (w->cut)
		event_flag(&v, FIELD_CUT);
	event_emit(r->events, &v);
	w->seen = false;
}

void exec_watch_finish(struct exec_watch *w, struct result *r)
{
	if (w)
		report_counted(w, r);
}
