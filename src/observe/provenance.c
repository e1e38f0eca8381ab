/*
 * What is known about the processes of a sandbox and the files that they change. In: observed calls
 * (observe.h) in their order, names and their addresses inside from the gateway. Out: for each path
 * the processes that opened it for writing, made, renamed or removed it, and for each process the
 * hosts whose answers may have reached it. Runs in the supervisor at audit.level: full; tables are
 * bounded, and what does not fit is counted.
 *
 * Hosts are passed on: from a parent to the processes that it forks; through a pipe from a
 * program's standard output to every process that has the pipe as standard input, and to the
 * program's parent (which may collect the output); through a file from a process that opened it for
 * writing, after it had read from the network, to every process that later opens or executes the
 * file. A process whose parent is gone is taken to have read from every host. Not followed: Unix
 * sockets, shared memory, descriptors passed over sockets, pipes at descriptors other than 0 and 1,
 * signals, timing.
 */
#include "observe/provenance_internal.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/path.h"
#include "base/text.h"
#include "event/event.h"
#include "policy/policy_watch.h"

#define CHECK_MS 1000 /* a pid not seen for so long may belong to another process by now */
#define WORDS_KEPT 1024
#define PARENTS_MAX                                                                                \
	64 /* pipes that are looked up at once; a process with more may have read from any host */

struct provenance *provenance_create(const struct plan *p, int upper_fd)
{
	struct provenance *v = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	v->plan = p;
	v->upper_fd = upper_fd;
	v->wants_entropy = policy_watch_counts(&p->spec->policy, METRIC_FILES_ENCRYPTED);
	v->follows_hosts = p->spec->policy.audit_level == AUDIT_FULL;
	/* unused entries are never touched, so they cost no memory */
	v->processes = calloc(PROCESSES_MAX + 1, sizeof(*v->processes));
	v->process_slots = calloc(PROCESS_SLOTS, sizeof(*v->process_slots));
	v->pipes = calloc(PIPES_MAX, sizeof(*v->pipes));
	v->pipe_slots = calloc(SLOTS, sizeof(*v->pipe_slots));
	v->queue = calloc(PROCESSES_MAX, sizeof(*v->queue));
	v->files = calloc(FILES_MAX, sizeof(*v->files));
	v->slots = calloc(SLOTS, sizeof(*v->slots));
	if (v->processes && v->process_slots && v->pipes && v->pipe_slots && v->queue && v->files &&
	    v->slots)
		return v;
	provenance_destroy(v);
	return NULL;
}

void provenance_destroy(struct provenance *v)
{
	if (!v)
		return;
	for (uint32_t i = 0; v->processes && i < v->process_count; i++) {
		free(v->processes[i].exe);
		free(v->processes[i].words);
	}
	for (uint32_t i = 0; v->files && i < v->file_count; i++)
		free(v->files[i].path);
	for (unsigned i = 0; i < v->host_count; i++)
		free(v->hosts[i]);
	free(v->processes);
	free(v->process_slots);
	free(v->pipes);
	free(v->pipe_slots);
	free(v->queue);
	free(v->files);
	free(v->slots);
	free(v->names);
	provenance_free_reads(v);
	free(v);
}

/* ---- processes ---- */

struct status {
	pid_t tgid, parent;
	int inner; /* 0: it is not inside */
};

/* 0: the pipe has no such process. */
static long number_after(const char *text, const char *key, unsigned place)
{
	long number;

	return text_number_after(text, key, place, &number) ? number : 0;
}

static bool read_status(pid_t tid, struct status *ret)
{
	char path[32], text[2048];
	auto_fd fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	*ret = (struct status){ .tgid = (pid_t)number_after(text, "\nTgid:", 0),
				.parent = (pid_t)number_after(text, "\nPPid:", 0),
				.inner = (int)number_after(text, "\nNStgid:", 1) };
	return ret->tgid > 0;
}

/* The last process that had this number. */
static uint32_t find_process(const struct provenance *v, pid_t pid)
{
	for (uint32_t i = v->process_slots[(uint32_t)pid % PROCESS_SLOTS]; i;
	     i = v->processes[i - 1].next_slot)
		if (v->processes[i - 1].pid == pid)
			return i - 1;
	return NOBODY;
}

static uint64_t all_hosts(const struct provenance *v)
{
	return v->host_count == HOSTS_MAX ? UINT64_MAX : (UINT64_C(1) << v->host_count) - 1;
}

/* The name of a descriptor of the process (/proc/PID/fd). False: it has none. */
static bool read_descriptor(pid_t tid, int fd, char out[PATH_MAX])
{
	char path[40];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", tid, fd);
	n = readlink(path, out, PATH_MAX - 1);
	if (n <= 0)
		return false;
	out[n] = '\0';
	return true;
}

/* Passes the hosts of a process on to every process that reads what it writes. Sets only grow, so
 * the readers of a pipe are walked at most once for each host. */
static void add_hosts(struct provenance *v, uint32_t at, uint64_t hosts)
{
	uint32_t waiting = 0;

	if (!(hosts & ~v->processes[at].hosts))
		return;
	v->processes[at].hosts |= hosts;
	if (at != ANYBODY)
		v->queue[waiting++] = at;
	while (waiting) {
		struct process *from = &v->processes[v->queue[--waiting]];
		struct pipe *pipe = from->out_pipe ? &v->pipes[from->out_pipe - 1] : NULL;

		from->queued = false;
		if (!pipe || !(from->hosts & ~pipe->hosts))
			continue;
		pipe->hosts |= from->hosts;
		for (uint32_t i = pipe->first_reader; i; i = v->processes[i - 1].next_reader) {
			struct process *to = &v->processes[i - 1];

			if (!(pipe->hosts & ~to->hosts))
				continue;
			to->hosts |= pipe->hosts;
			if (!to->queued)
				v->queue[waiting++] = i - 1;
			to->queued = true;
		}
	}
}

/* Index + 1 of the pipe behind a descriptor; 0: it is not a pipe. */
static uint32_t read_pipe(struct provenance *v, pid_t tid, int fd)
{
	unsigned long long inode = 0;
	char link[PATH_MAX];
	uint32_t at;

	if (!read_descriptor(tid, fd, link) || sscanf(link, "pipe:[%llu]", &inode) != 1)
		return 0;
	for (at = (uint32_t)(inode * 0x9e3779b1u) % SLOTS; v->pipe_slots[at]; at = (at + 1) % SLOTS)
		if (v->pipes[v->pipe_slots[at] - 1].inode == inode)
			return v->pipe_slots[at];
	if (v->pipe_count == PIPES_MAX)
		return PIPES_MAX;
	v->pipes[v->pipe_count].inode = inode;
	return v->pipe_slots[at] = ++v->pipe_count;
}

static void leave_pipe(struct provenance *v, struct process *p)
{
	if (!p->in_pipe)
		return;
	if (p->previous_reader)
		v->processes[p->previous_reader - 1].next_reader = p->next_reader;
	else
		v->pipes[p->in_pipe - 1].first_reader = p->next_reader;
	if (p->next_reader)
		v->processes[p->next_reader - 1].previous_reader = p->previous_reader;
	p->in_pipe = p->next_reader = p->previous_reader = 0;
}

/* Records the pipes that the process has from now on. */
static void set_pipes(struct provenance *v, uint32_t at, uint32_t in_pipe, uint32_t out_pipe)
{
	struct process *p = &v->processes[at];
	uint64_t hosts = p->hosts | (in_pipe ? v->pipes[in_pipe - 1].hosts : 0);

	leave_pipe(v, p);
	if (in_pipe) {
		struct pipe *pipe = &v->pipes[in_pipe - 1];

		if (pipe->first_reader)
			v->processes[pipe->first_reader - 1].previous_reader = at + 1;
		p->next_reader = pipe->first_reader;
		p->in_pipe = in_pipe;
		pipe->first_reader = at + 1;
	}
	p->out_pipe = out_pipe;
	p->hosts = 0; /* so that all hosts are passed into the new pipe */
	add_hosts(v, at, hosts);
}

static bool take_room(struct provenance *v, size_t bytes)
{
	if (bytes > PROGRAM_TEXT_MAX - v->program_text) {
		v->lost++;
		return false;
	}
	v->program_text += bytes;
	return true;
}

static void set_program(struct provenance *v, struct process *p, const char *exe, const char *words,
			size_t len)
{
	if (len > WORDS_KEPT) {
		len = WORDS_KEPT;
		while (len && words[len - 1])
			len--;
	}
	v->program_text -= (p->exe ? strlen(p->exe) + 1 : 0) + p->words_len;
	free(p->exe);
	free(p->words);
	p->exe = p->words = NULL;
	p->words_len = 0;
	if (take_room(v, strlen(exe) + 1)) {
		p->exe = strdup(exe);
		v->program_text -= p->exe ? 0 : strlen(exe) + 1;
	}
	if (len && take_room(v, len)) {
		p->words = malloc(len);
		if (p->words)
			memcpy(p->words, words, len);
		p->words_len = p->words ? len : 0;
		v->program_text -= len - p->words_len;
	}
}

/* A program whose start was not seen: ward-init starts the first program of each command. */
static void read_program(struct provenance *v, uint32_t at)
{
	struct process *p = &v->processes[at];
	char path[40], exe[512], words[WORDS_KEPT];
	auto_fd fd = -1;
	ssize_t n, len;

	p->stale = false;
	snprintf(path, sizeof(path), "/proc/%d/exe", p->pid);
	n = readlink(path, exe, sizeof(exe) - 1);
	snprintf(path, sizeof(path), "/proc/%d/cmdline", p->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = fd < 0 ? 0 : read(fd, words, sizeof(words));
	if (n <= 0)
		return;
	exe[n] = '\0';
	if (len == (ssize_t)sizeof(words))
		words[len - 1] = '\0';
	set_program(v, p, exe, words, len > 0 ? (size_t)len : 0);
	if (v->follows_hosts)
		set_pipes(v, at, read_pipe(v, p->pid, 0), read_pipe(v, p->pid, 1));
}

static uint32_t add_row(struct provenance *v, const struct status *s)
{
	uint32_t at = v->process_count++,
		 *slot = &v->process_slots[(uint32_t)s->tgid % PROCESS_SLOTS];

	v->processes[at] = (struct process){ .pid = s->tgid,
					     .inner = s->inner,
					     .parent = find_process(v, s->parent),
					     .next_slot = *slot };
	*slot = at + 1;
	return at;
}

/* A process that was not seen before inherits the hosts of its parent. */
static uint32_t add_process(struct provenance *v, const struct status *s, unsigned depth)
{
	struct status parent;
	struct process *p;
	uint32_t at;

	if (v->process_count == PROCESSES_MAX) {
		v->lost++;
		return ANYBODY;
	}
	at = add_row(v, s);
	p = &v->processes[at];
	if (read_status(s->parent, &parent))
		p->parent_inner = parent.inner;
	if (!v->follows_hosts) {
		p->parent = NOBODY;
		read_program(v, at);
		return at;
	}
	/* a process that only forks and waits is first seen through its children */
	if (p->parent == NOBODY && p->parent_inner > 1 && depth)
		p->parent = add_process(v, &parent, depth - 1);
	if (p->parent == ANYBODY)
		p->parent = NOBODY;
	if (p->parent != NOBODY) {
		const struct process *from = &v->processes[p->parent];

		p->hosts = from->hosts;
		p->proxy = from->proxy;
		set_pipes(v, at, from->in_pipe, from->out_pipe);
		if (from->exe)
			set_program(v, p, from->exe, from->words, from->words_len);
	} else {
		read_program(v, at);
		if (at)
			/* its parent is gone and may have been any process */
			add_hosts(v, at, all_hosts(v));
	}
	return at;
}

static uint32_t process_of(struct provenance *v, pid_t tid)
{
	struct known_thread *k = &v->threads[(unsigned)tid % ARRAY_LEN(v->threads)];
	uint64_t now = io_now_ms();
	struct status s;
	uint32_t at;

	if (k->tid == tid && now - k->checked_ms < CHECK_MS)
		return k->process;
	if (!read_status(tid, &s) || s.inner <= 1) /* gone, or ward-init */
		return NOBODY;
	at = find_process(v, s.tgid);
	if (at == NOBODY || v->processes[at].inner != s.inner)
		at = add_process(v, &s, PARENTS_MAX);
	else if (!v->follows_hosts)
		v->processes[at].stale = true; /* a thread's exec was not looked at */
	*k = (struct known_thread){ .tid = tid, .process = at, .checked_ms = now };
	return at;
}

bool provenance_follows_hosts(const struct provenance *v)
{
	return v && v->follows_hosts;
}

void provenance_began(struct provenance *v, pid_t pid)
{
	uint32_t at = NOBODY;

	if (v)
		at = v->follows_hosts ? process_of(v, pid) : find_process(v, pid);
	if (at != NOBODY && at != ANYBODY)
		v->processes[at].stale = true;
}

/* ---- files ---- */

static uint32_t hash(const char *text)
{
	uint64_t h = 0xcbf29ce484222325;

	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 0x100000001b3;
	return (uint32_t)(h ^ h >> 32);
}

bool provenance_within(const struct provenance *v, const char *path)
{
	for (size_t i = 0; i < v->plan->live->root_count; i++)
		if (path_is_beneath(path, v->plan->live->roots[i].path))
			return true;
	return false;
}

/* The slot that has the path, or the free one where it belongs. */
static uint32_t *slot_of(struct provenance *v, const char *path)
{
	uint32_t at = hash(path) % SLOTS;

	while (v->slots[at] && strcmp(v->files[v->slots[at] - 1].path, path) != 0)
		at = (at + 1) % SLOTS;
	return &v->slots[at];
}

static bool is_reported(const struct file *f)
{
	for (uint8_t i = 0; i < f->writer_count; i++)
		if (f->within && !f->writers[i].reported)
			return false;
	return true;
}

/* Removes the file from the list; what was not reported of it becomes a number. */
static void forget_file(struct provenance *v, struct file *f)
{
	for (uint8_t i = 0; i < f->writer_count; i++)
		if (f->within && !f->writers[i].reported)
			v->uncounted[f->writers[i].change == ACT_DELETE]++;
	v->lost += v->follows_hosts;
	v->file_text -= strlen(f->path) + 1;
	free(f->path);
}

void provenance_forget(struct provenance *v)
{
	uint32_t reported = 0, kept = 0;

	for (uint32_t i = 0; i < v->file_count; i++)
		reported += is_reported(&v->files[i]);
	memset(v->slots, 0, SLOTS * sizeof(*v->slots));
	for (uint32_t i = 0; i < v->file_count; i++) {
		struct file f = v->files[i];

		v->files[i] = (struct file){ 0 };
		if (reported < v->file_count / 4 || is_reported(&f)) {
			forget_file(v, &f);
			continue;
		}
		v->files[kept] = f;
		*slot_of(v, f.path) = ++kept;
	}
	v->file_count = kept;
	v->tell_at = 0;
}

/* What is written to /dev/null is never read again. */
static bool is_kept(const char *path)
{
	return !path_is_beneath(path, "/dev") && !path_is_beneath(path, "/proc");
}

static struct file *find_file(struct provenance *v, const char *path, bool make)
{
	size_t n = strlen(path) + 1;
	uint32_t *slot = slot_of(v, path);
	struct file *f;

	if (*slot)
		return &v->files[*slot - 1];
	if (!make || !is_kept(path))
		return NULL;
	if (v->file_count == FILES_MAX || n > FILE_TEXT_MAX - v->file_text) {
		provenance_forget(v);
		slot = slot_of(v, path);
	}
	f = &v->files[v->file_count];
	f->path = strdup(path);
	if (!f->path) {
		v->uncounted[0]++;
		return NULL;
	}
	v->file_text += n;
	f->within = provenance_within(v, path);
	*slot = ++v->file_count;
	return f;
}

static void add_writer(struct provenance *v, const char *path, uint32_t process,
		       enum observe_act change)
{
	struct file *f = *path ? find_file(v, path, true) : NULL;
	struct writer w = { .process = process,
			    .change = (uint8_t)change,
			    .seen_us = event_now_us() };

	if (!f)
		return;
	f->pending = f->within;
	f->moved |= change == ACT_DELETE || change == ACT_RENAME;
	for (uint8_t i = 0; i < f->writer_count; i++)
		if (f->writers[i].process == process) {
			if (f->writers[i].change != w.change)
				f->writers[i].reported = false;
			f->writers[i].change = w.change;
			f->writers[i].seen_us = w.seen_us;
			return;
		}
	if (f->writer_count == WRITERS_MAX) { /* keep the first writer and the latest ones */
		memmove(&f->writers[1], &f->writers[2], sizeof(f->writers[0]) * (WRITERS_MAX - 2));
		f->writer_count--;
	}
	f->writers[f->writer_count++] = w;
}

/* Whether the call cannot change anything because no file has that name. If a process renamed the
 * file or a directory above it, the name may exist again when the kernel looks it up. */
static bool is_idle(struct provenance *v, const char *path)
{
	const struct file *f = find_file(v, path, false);
	char above[PATH_MAX];

	if ((f && f->writer_count) || !provenance_within(v, path) ||
	    !provenance_is_missing(v, path))
		return false;
	snprintf(above, sizeof(above), "%s", path);
	for (char *slash = strrchr(above, '/'); slash && slash != above;
	     slash = strrchr(above, '/')) {
		*slash = '\0';
		f = find_file(v, above, false);
		if (f && f->moved)
			return false;
	}
	return true;
}

static void read_file(struct provenance *v, const char *path, uint32_t at)
{
	const struct file *f = v->host_count ? find_file(v, path, false) : NULL;

	for (uint8_t i = 0; f && i < f->writer_count; i++)
		add_hosts(v, at, v->processes[f->writers[i].process].hosts);
}

/* A program begins. Its descriptors 0 to 2 were often opened by the shell that started it. */
static void begin_program(struct provenance *v, uint32_t at, const struct observation *o,
			  const char *words, size_t len)
{
	struct process *p = &v->processes[at];
	char link[PATH_MAX];

	if (at == ANYBODY)
		return;
	set_program(v, p, o->path, words, len);
	set_pipes(v, at, read_pipe(v, o->pid, 0), read_pipe(v, o->pid, 1));
	p->stale = true; /* the program it really executed is read at its next call */
	if (!p->in_pipe && read_descriptor(o->pid, 0, link))
		read_file(v, link, at);
	for (int fd = 1; fd <= 2; fd++)
		if (read_descriptor(o->pid, fd, link) && find_file(v, link, false))
			add_writer(v, link, at, ACT_WRITE);
	read_file(v, o->path, at);
}

/* What was written under the old name is found under the new one from now on. */
static void rename_file(struct provenance *v, const struct observation *o, uint32_t process)
{
	const struct file *old = *o->from ? find_file(v, o->from, false) : NULL;
	struct writer writers[WRITERS_MAX];
	uint8_t count = old ? old->writer_count : 0;

	if (o->act == ACT_RENAME && *o->from && is_idle(v, o->from))
		return;
	if (old)
		memcpy(writers, old->writers, sizeof(writers));
	for (uint8_t i = 0; i < count; i++)
		if (writers[i].process != process)
			add_writer(v, o->path, writers[i].process,
				   (enum observe_act)writers[i].change);
	add_writer(v, o->path, process, o->act);
	if (o->act == ACT_RENAME)
		add_writer(v, o->from, process, ACT_DELETE);
}

/* ---- the network ---- */

/* The bit of a host. */
static uint64_t host_bit(struct provenance *v, const char *host)
{
	for (unsigned i = 0; i < v->host_count; i++)
		if (strcmp(v->hosts[i], host) == 0)
			return UINT64_C(1) << i;
	if (v->host_count == HOSTS_MAX)
		return OTHER_HOSTS;
	v->hosts[v->host_count] = strdup(host);
	if (!v->hosts[v->host_count])
		return OTHER_HOSTS;
	return UINT64_C(1) << v->host_count++;
}

void provenance_name(struct provenance *v, const char *host, const uint8_t *address, size_t n)
{
	struct synthetic s = { 0 };
	uint64_t bit;

	if (!v || !n)
		return;
	memcpy(s.address, address, n < sizeof(s.address) ? n : sizeof(s.address));
	for (size_t i = 0; i < v->name_count; i++)
		if (memcmp(v->names[i].address, s.address, sizeof(s.address)) == 0)
			return;
	bit = host_bit(v, host);
	s.host = (uint8_t)__builtin_ctzll(bit);
	if (v->name_count == v->name_cap) {
		struct synthetic *grown = reallocarray(v->names, v->name_cap + 64, sizeof(*grown));

		if (!grown)
			return;
		v->names = grown;
		v->name_cap += 64;
	}
	v->names[v->name_count++] = s;
	for (size_t i = 0; i < ARRAY_LEN(v->waiting); i++)
		if (v->waiting[i].process < v->process_count &&
		    memcmp(v->waiting[i].address, s.address, sizeof(s.address)) == 0)
			add_hosts(v, v->waiting[i].process, bit);
}

void provenance_proxied(struct provenance *v, const char *host)
{
	uint64_t bit = v ? host_bit(v, host) : 0;

	if (!v || v->proxied & bit)
		return;
	v->proxied |= bit;
	for (uint32_t i = 0; i < v->process_count; i++)
		if (v->processes[i].proxy)
			add_hosts(v, i, v->proxied);
}

static void connect_to(struct provenance *v, uint32_t process, const struct observation *o)
{
	struct sockaddr_in6 in6 = { 0 };
	struct sockaddr_in in = { 0 };
	uint8_t address[16] = { 0 };
	char text[INET6_ADDRSTRLEN] = "";
	sa_family_t family;

	memcpy(&family, o->address, sizeof(family));
	if (family != AF_INET && family != AF_INET6)
		return;
	memcpy(family == AF_INET ? (void *)&in : (void *)&in6, o->address,
	       family == AF_INET ? sizeof(in) : sizeof(in6));
	if (family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr)) {
		family = AF_INET;
		memcpy(&in.sin_addr, in6.sin6_addr.s6_addr + 12, 4);
		in.sin_port = in6.sin6_port;
	}
	memcpy(address, family == AF_INET ? (void *)&in.sin_addr : (void *)&in6.sin6_addr,
	       family == AF_INET ? 4 : 16);
	if (family == AF_INET ? address[0] == 127 : IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr)) {
		if (ntohs(family == AF_INET ? in.sin_port : in6.sin6_port) == 53)
			return; /* the resolver's answers hold nothing but addresses */
		v->processes[process].proxy = true;
		add_hosts(v, process, v->proxied);
		return;
	}
	for (size_t i = 0; i < v->name_count; i++)
		if (memcmp(v->names[i].address, address, sizeof(address)) == 0) {
			add_hosts(v, process, UINT64_C(1) << v->names[i].host);
			return;
		}
	/* it stands for a name that the gateway is about to report */
	if (family == AF_INET && address[0] == 198 && (address[1] & 0xfe) == 18) {
		struct waiting *w = &v->waiting[v->waiting_at++ % ARRAY_LEN(v->waiting)];

		w->process = process;
		memcpy(w->address, address, sizeof(address));
	} else if (inet_ntop(family,
			     family == AF_INET ? (void *)&in.sin_addr : (void *)&in6.sin6_addr,
			     text, sizeof(text))) {
		add_hosts(v, process, host_bit(v, text));
	}
}

void provenance_saw(struct provenance *v, const struct observation *o, const char *words,
		    size_t words_len)
{
	uint32_t at;

	/* else a file may pass on what its writer has read */
	if (!v->follows_hosts && !provenance_within(v, o->path) &&
	    !(*o->from && provenance_within(v, o->from)))
		return;
	at = process_of(v, o->pid);
	if (at == NOBODY)
		return; /* gone by now, or ward-init, which changes no file of the host */
	if (at == ANYBODY)
		add_hosts(v, at, all_hosts(v));
	else if (v->processes[at].stale && o->act != ACT_EXEC)
		read_program(v, at);
	switch (o->act) {
	case ACT_EXEC:
		begin_program(v, at, o, words, words_len);
		break;
	case ACT_OPEN:
		if (o->writes)
			/* it is unknown whether the file existed before */
			add_writer(v, o->path, at, ACT_WRITE);
		else
			provenance_read(v, o->path, at);
		read_file(v, o->path, at);
		break;
	case ACT_RENAME:
	case ACT_LINK:
		rename_file(v, o, at);
		break;
	case ACT_DELETE:
		if (!is_idle(v, o->path))
			add_writer(v, o->path, at, o->act);
		break;
	case ACT_CREATE:
	case ACT_WRITE:
	case ACT_MODE:
		add_writer(v, o->path, at, o->act);
		break;
	case ACT_CONNECT:
		connect_to(v, at, o);
		break;
	case ACT_LISTEN:
	case ACT_LOOK:
		break;
	}
}

/* If no process has been seen with this pipe as its input, and it is not the parent's own output,
 * then the parent is taken to collect it. */
static bool spread_one(struct provenance *v, const struct process *from)
{
	bool crowded = from->out_pipe == PIPES_MAX; /* it may be any pipe */
	uint64_t had;

	if (!from->out_pipe || from->parent == NOBODY ||
	    (!crowded && v->pipes[from->out_pipe - 1].first_reader))
		return false;
	if (!crowded && v->processes[from->parent].out_pipe == from->out_pipe)
		return false;
	had = v->processes[from->parent].hosts;
	add_hosts(v, from->parent, from->hosts);
	return v->processes[from->parent].hosts != had;
}

void provenance_spread(struct provenance *v)
{
	bool more = v->host_count > 0;

	/* children usually come after their parents in the table */
	for (unsigned turn = 0; more && turn < 8; turn++) {
		more = false;
		for (uint32_t i = v->process_count; i-- > 0;)
			more |= spread_one(v, &v->processes[i]);
	}
}
